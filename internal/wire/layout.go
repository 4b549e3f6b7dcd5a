package wire

import (
	"math"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/scgs"
)

// The layouts: the order of the calls is the order of the fields in the frame.

func (m *Hello) layout(c *coder) {
	c.token("member", &m.Member)
	c.uint("incarnation", &m.Incarnation)
	c.text("host", &m.Host, MaxHostBytes)
	c.text("domain", (*string)(&m.Domain), MaxHostBytes)
	c.need(m.Domain != "", "domain", "the domain is empty: every member reads some clock")
	c.text("quality", &m.Quality.Source, MaxHostBytes)
	c.bool("assumed", &m.Quality.Assumed)
	c.bool("typed", &m.Typed)
	c.schema(&m.Schema)
	c.bool("threads", &m.Threads)
	c.text("timeline", (*string)(&m.Quality.Timeline), MaxHostBytes)
	c.standing(&m.Quality)
	c.text("multiplexer", &m.Multiplexer, maxSender)
	c.need(m.Multiplexer == "" || isSender(m.Multiplexer), "multiplexer", strconv.Quote(m.Multiplexer)+": "+tokenRule)
	if !c.writing && len(c.buf) == 0 {
		return // Of the release before.
	}
	c.text("leader", &m.Leader, MaxTokenBytes)
	c.need(m.Leader == "" || isToken(m.Leader), "leader", strconv.Quote(m.Leader)+": "+tokenRule)
	c.uint("term", &m.Term)
	c.need((m.Term == 0) == (m.Leader == ""), "term", "a term belongs to a leader")
	c.bool("causes", &m.Causes)
	if c.writing {
		c.fit("fates", len(m.Fates), MaxFates, MaxFrameBytes-MaxPart+tailBytes, func(i int) { c.fated(&m.Fates[i]) })
	} else {
		list(c, "fates", &m.Fates, MaxFates, 6, c.fated)
	}
	process := m.Process > 0 || m.Asks || m.Had > 0 || m.Over || m.Common
	if c.writing && m.Life == 0 && m.Same == (Same{}) && !process || !c.writing && len(c.buf) == 0 {
		return
	}
	c.uint("life", &m.Life)
	c.need(m.Life == 0 || m.Life < m.Incarnation, "life", "the life is not before the incarnation")
	if c.writing && (m.Same != (Same{}) || process) || !c.writing && c.err == nil && (m.Life == 0 || len(c.buf) > 0) {
		c.same(&m.Same, process)
	}
	if c.writing && process || !c.writing && c.err == nil && len(c.buf) > 0 {
		c.uint("process", &m.Process)
		c.bool("asks", &m.Asks)
		c.uint("had", &m.Had)
		if c.writing && (m.Over || m.Common) || !c.writing && c.err == nil && len(c.buf) > 0 {
			c.bool("over", &m.Over)
			if c.writing && m.Common || !c.writing && c.err == nil && len(c.buf) > 0 {
				c.bool("common", &m.Common)
				c.need(m.Common, "common", "a false value has no form: leave it out")
			}
			c.need(m.Over || m.Common, "over", "a false value has no form: leave it out")
		}
		c.need(m.Process > 0 || m.Asks || m.Had > 0 || m.Over || m.Common, "process", "the process is 0, and the frame asks for nothing")
	}
}

// tailBytes is the most that the life, the same state and the process of a hello take.
const tailBytes = 6*9 + 2

// same is there where a state has begun again. If more follows, three zeros stand for none.
func (c *coder) same(s *Same, more bool) {
	c.uint("same", &s.Seq)
	c.uint("same incarnation", &s.Incarnation)
	c.uint("same of", &s.Of)
	if *s == (Same{}) && (more || !c.writing && len(c.buf) > 0) {
		return
	}
	c.need(s.Seq > 0 && s.Of > 0, "same", "reports are numbered from 1")
	c.need(s.Incarnation < MaxIncarnation, "same incarnation", "the incarnation is not below 2^62")
}

func (c *coder) fated(f *control.Fated) {
	c.cause(&f.Cause)
	c.token("name", &f.Name)
	c.uint("entry", &f.Entry)
	c.small("fate", (*uint8)(&f.Fate), uint8(control.Waiting), uint8(control.Unconfirmed))
}

func (c *coder) cause(s *control.Cause) {
	c.uint("source", &s.Source)
	c.need(s.Source > 0, "source", "the value is 0, which stands for none")
	c.uint("witness", &s.Witness)
	firing := uint64(s.Firing)
	c.uint("firing", &firing)
	c.need(firing <= math.MaxUint32, "firing", "the value is above 4294967295")
	if !c.writing && c.err == nil {
		s.Firing = uint32(firing) //nolint:gosec // It was compared.
	}
}

// standing is what may change of a quality while its source stays.
func (c *coder) standing(q *clocksync.Quality) {
	c.bool("unverified", &q.Unverified)
	c.small("status", (*uint8)(&q.Status), uint8(clocksync.Unknown), uint8(clocksync.Untrusted))
	c.int("expires", (*int64)(&q.Expires))
}

func (m *Ping) layout(c *coder) { c.token("member", &m.Member) }

func (m *Pong) layout(c *coder) {
	c.text("timeline", (*string)(&m.Timeline), MaxHostBytes)
	c.need(m.Timeline != "", "timeline", "the timeline is empty: times without a timeline cannot be compared")
	c.interval("arrived", &m.Arrived)
	c.interval("departed", &m.Departed)
	c.float("drift", &m.Drift)
	c.need(m.Drift >= 0 && m.Drift <= clocksync.MaxDrift, "drift", "the drift is not a number from 0 to 100000")
}

func (c *coder) interval(field string, i *clocksync.Interval) {
	c.int(field, (*int64)(&i.Earliest))
	c.int(field, (*int64)(&i.Latest))
	c.need(i.Valid(), field, "the interval ends before its start")
}

func (m *Welcome) layout(c *coder) {
	c.token("synchronizer", &m.Synchronizer)
	c.uint("term", &m.Term)
	c.uint("epoch", &m.Epoch)
	c.text("member", &m.Member, MaxTokenBytes)
	c.need(m.Member == "" || isToken(m.Member), "member", tokenRule)
	c.uint("incarnation", &m.Incarnation)
	c.bool("accepted", &m.Accepted)
	c.bool("refused", &m.Refused)
	c.need(!m.Accepted || !m.Refused, "refused", "the member is both accepted and refused")
	c.reason("reason", &m.Reason)
	c.schema(&m.Schema)
	c.blob("section", &m.Section, MaxSection)
	c.uint("section hash", &m.SectionHash)
	c.int("heartbeat", &m.Heartbeat)
	c.need(m.Heartbeat >= 0, "heartbeat", "the value is negative")
	c.uint("next seq", &m.NextSeq)
	c.text("domain", (*string)(&m.Domain), MaxHostBytes)
	c.text("timeline", (*string)(&m.Timeline), MaxHostBytes)
	more := len(m.Aims) > 0 || m.Replaced || m.Untold > 0
	if c.writing && m.Work == 0 && !more || !c.writing && len(c.buf) == 0 {
		return // As without a section work.
	}
	c.uint("work", &m.Work)
	c.need(m.Work > 0 || c.writing || len(c.buf) > 0, "work", "the value is 0, which stands for none")
	if c.writing && !more || !c.writing && len(c.buf) == 0 {
		return
	}
	if c.writing {
		c.fit("aims", len(m.Aims), MaxAims, 1+9, func(i int) { c.aim(&m.Aims[i]) })
	} else {
		list(c, "aims", &m.Aims, MaxAims, 3, c.aim)
	}
	c.bool("replaced", &m.Replaced)
	c.need(!m.Replaced || m.Refused, "replaced", "the member is not refused")
	c.uint("untold", &m.Untold)
	c.need(c.writing || len(m.Aims) > 0 || m.Replaced || m.Untold > 0, "aims", "there are none, and nothing follows")
}

func (c *coder) aim(a *Aim) {
	c.token("signal", &a.Signal)
	c.small("kind", (*uint8)(&a.Kind), uint8(control.Activate), uint8(control.Cancel))
	c.token("region", &a.Region)
}

func (m *Gone) layout(c *coder) {
	c.token("member", &m.Member)
	c.uint("incarnation", &m.Incarnation)
	c.uint("first", &m.First)
	c.need(m.First > 0, "first", zeroSeq)
}

func (m *Probe) layout(c *coder) {
	c.uint("incarnation", &m.Incarnation)
	c.uint("seq", &m.Seq)
	c.int("after mono", (*int64)(&m.AfterMono))
	c.int("after time", (*int64)(&m.AfterTime))
	if c.writing && m.Domain != "" || !c.writing && c.err == nil && len(c.buf) > 0 {
		c.text("domain", (*string)(&m.Domain), MaxHostBytes)
		c.need(m.Domain != "", "domain", "an empty one has no form: leave it out")
		c.need(m.Incarnation == 0 && m.Seq == 0, "domain", "a request to a domain names no state")
	}
}

func (m *Body) layout(c *coder) {
	c.token("member", &m.Member)
	c.uint("program", &m.Program)
	c.uint("run", &m.Run)
	c.small("kind", (*uint8)(&m.Kind), uint8(BodyInput), uint8(BodyFailure))
	c.uint("size", &m.Size)
	c.need(m.Size <= MaxBody, "size", "the body is above 1 MiB: hand over a reference and fetch the rest")
	c.uint("offset", &m.Offset)
	c.blob("piece", &m.Piece, MaxPiece)
	c.need(m.Offset <= m.Size && uint64(len(m.Piece)) <= m.Size-m.Offset, "piece", "the piece ends behind the body")
	c.reason("reason", &m.Reason)
}

func (m *Resend) layout(c *coder) {
	c.uint("incarnation", &m.Incarnation)
	c.uint("from", &m.From)
	c.need(m.From > 0, "from", zeroSeq)
	c.uint("to", &m.To)
	c.need(m.From <= m.To, "to", "the last number is before from")
}

// layout of Signals returns how many of them the frame holds.
func (m *Signals) layout(c *coder) int {
	c.token("synchronizer", &m.Synchronizer)
	c.uint("term", &m.Term)
	c.uint("epoch", &m.Epoch)
	c.uint("incarnation", &m.Incarnation)
	n := some(c, "signals", &m.Signals, MaxSignals, 12, c.signal)
	if c.writing && len(m.Recorded) == 0 || !c.writing && len(c.buf) == 0 {
		return n // As in the release before.
	}
	c.need(len(m.Signals) == 0, "recorded", "receipts are allowed only in a frame without signals")
	list(c, "recorded", &m.Recorded, MaxSignals, 3, c.receipt)
	return n
}

func (c *coder) receipt(r *Receipt) {
	c.uint("term", &r.Term)
	c.uint("number", &r.Number)
	c.token("name", &r.Name)
}

func (c *coder) signal(s *control.Signal) {
	c.decision(&s.Decision)
	c.token("name", &s.Name)
	c.token("predicate", &s.Predicate)
	traced, caused := c.signalKind(s)
	c.token("target", &s.Target)
	c.token("region", &s.Region)
	c.uint("entry", &s.Entry)
	c.int("ttl", (*int64)(&s.TTL))
	c.need(s.TTL >= 0, "ttl", "the value is negative")
	list(c, "data", &s.Data, control.MaxData, 3, c.datum)
	if c.err == nil {
		if err := control.CheckData(s.Data); err != nil {
			c.fail("data", err.Error())
		}
	}
	if caused && c.err == nil {
		c.cause(&s.Cause)
	}
	c.trace(&s.Trace, traced)
}

// The marks in the kind of a signal that ends with a trace context, or has a cause before
// that, or is over, so that the frames of signals without are as they were before there was any.
const (
	flagOverKind   = 0x10
	flagTracedKind = 0x40
	flagCausedKind = 0x20
)

func (c *coder) signalKind(s *control.Signal) (traced, caused bool) {
	kind := uint8(s.Kind)
	if c.writing && s.Trace.Valid() {
		kind |= flagTracedKind
	}
	if c.writing && s.Cause.Source > 0 {
		kind |= flagCausedKind
	}
	if c.writing && s.Over {
		kind |= flagOverKind
	}
	c.small("kind", &kind, 0, math.MaxUint8)
	over := kind&flagOverKind != 0
	traced, caused = kind&flagTracedKind != 0, kind&flagCausedKind != 0
	if kind &^= flagTracedKind | flagCausedKind | flagOverKind; kind < uint8(control.Activate) || kind > uint8(control.Cancel) {
		c.fail("kind", strconv.Itoa(int(kind))+" is not 1 to 2")
	}
	if !c.writing {
		s.Kind, s.Over = control.Kind(kind), over
	}
	return traced, caused
}

// trace codes a trace context that is there.
func (c *coder) trace(t *control.Trace, there bool) {
	switch {
	case !there || c.err != nil:
	case c.writing:
		c.buf = msgp.AppendBytes(c.buf, t[:])
	default:
		got, rest, err := msgp.ReadBytesZC(c.buf)
		if err != nil {
			c.failRead("trace", "a string of bytes", err)
			return
		}
		if len(got) == len(t) {
			*t, c.buf = control.Trace(got), rest
		}
		c.need(len(got) == len(t) && t.Valid(), "trace", "the bytes are no trace context: it has 25 bytes, and begins with two ids that are not zero")
	}
}

func (c *coder) decision(d *control.Decision) {
	c.token("synchronizer", &d.Synchronizer)
	c.uint("term", &d.Term)
	c.uint("epoch", &d.Epoch)
	c.uint("number", &d.Number)
}

// layout of Ack returns how many answers the frame holds.
func (m *Ack) layout(c *coder) int {
	c.token("member", &m.Member)
	c.uint("incarnation", &m.Incarnation)
	return some(c, "answers", &m.Answers, MaxSignals, 8, c.answer)
}

func (c *coder) answer(a *Answer) {
	c.decision(&a.Decision)
	c.token("name", &a.Name)
	c.token("target", &a.Target)
	known := c.answerFate(a)
	c.reason("detail", &a.Detail)
	if known {
		c.small("kind", (*uint8)(&a.Kind), uint8(control.Activate), uint8(control.Cancel))
		c.token("predicate", &a.Predicate)
		c.token("region", &a.Region)
		c.uint("entry", &a.Entry)
	}
}

// flagKnownFate marks the fate of an answer that says what signal it is of.
const flagKnownFate = 0x40

func (c *coder) answerFate(a *Answer) (known bool) {
	fate := uint8(a.Fate)
	if c.writing && a.Kind > 0 {
		fate |= flagKnownFate
	}
	c.small("fate", &fate, 0, math.MaxUint8)
	known = fate&flagKnownFate != 0
	if fate &^= flagKnownFate; fate < uint8(control.Waiting) || fate > uint8(control.Unconfirmed) {
		c.fail("fate", strconv.Itoa(int(fate))+" is not 1 to 8")
	}
	if !c.writing {
		a.Fate = control.Fate(fate)
	}
	return known && c.err == nil
}

func (c *coder) schema(s *scgs.Schema) {
	list(c, "state", (*[]scgs.Field)(s), scgs.MaxFields, 3, c.field)
	if c.err == nil {
		if err := s.Validate(); err != nil {
			c.fail("state", err.Error())
		}
	}
}

// hasDefault marks the type of a field whose default follows its words. It is
// part of the format, as is the mark of lists.
const hasDefault = 1 << 6

// isRedacted marks the type of a field with Redact. It is part of the format.
const isRedacted = 1 << 5

func (c *coder) field(f *scgs.Field) {
	c.text("name", &f.Name, scgs.MaxNameBytes)
	kind := uint8(f.Type)
	if f.Default.Type() != scgs.Invalid {
		kind |= hasDefault
	}
	if f.Redact {
		kind |= isRedacted
	}
	c.small("type", &kind, uint8(scgs.Bool), math.MaxUint8)
	if !c.writing {
		f.Type, f.Redact = scgs.Type(kind&^(hasDefault|isRedacted)), kind&isRedacted != 0
	}
	list(c, "words", &f.Words, scgs.MaxFields, 1, func(w *string) { c.text("word", w, scgs.MaxNameBytes) })
	switch {
	case kind&hasDefault == 0 || c.err != nil:
	case c.writing:
		c.buf = appendValue(c.buf, f, f.Default)
	default:
		plain := scgs.Field{Name: "default", Type: f.Type, Words: f.Words}
		c.fieldValue(&plain, &f.Default, scgs.Value{})
	}
}

func (c *coder) datum(d *control.Datum) {
	c.token("name", &d.Name)
	c.value(&d.Value)
}

// value codes a value that carries its type along.
func (c *coder) value(v *scgs.Value) {
	typ := uint8(v.Type())
	c.small("type", &typ, uint8(scgs.Invalid), uint8(scgs.Enum))
	var got scgs.Value
	switch scgs.Type(typ) {
	case scgs.Invalid:
	case scgs.Bool:
		b := v.Bool()
		c.bool("value", &b)
		got = scgs.BoolValue(b)
	case scgs.Int, scgs.Duration:
		i := v.Int()
		c.int("value", &i)
		got = scgs.IntValue(i)
		if scgs.Type(typ) == scgs.Duration {
			got = scgs.DurationValue(time.Duration(i))
		}
	case scgs.Float:
		f := v.Float()
		c.float("value", &f)
		c.need(!math.IsNaN(f), "value", "the float is not a number")
		got = scgs.FloatValue(f)
	case scgs.String, scgs.Enum:
		s := v.Text()
		c.text("value", &s, control.MaxDataBytes)
		got = scgs.StringValue(s)
		if scgs.Type(typ) == scgs.Enum {
			got = scgs.EnumValue(s)
		}
	}
	if !c.writing {
		*v = got
	}
}

const zeroSeq = "the number is 0: the states of a member count from 1"

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
	c.codeToken("member", &m.Member)
	c.codeUint("incarnation", &m.Incarnation)
	c.codeText("host", &m.Host, MaxHostBytes)
	c.codeText("domain", (*string)(&m.Domain), MaxHostBytes)
	c.needTrue(m.Domain != "", "domain", "the domain is empty: every member reads some clock")
	c.codeText("quality", &m.Quality.Source, MaxHostBytes)
	c.codeBool("assumed", &m.Quality.Assumed)
	c.codeBool("typed", &m.Typed)
	c.schema(&m.Schema)
	c.codeBool("threads", &m.Threads)
	c.codeText("timeline", (*string)(&m.Quality.Timeline), MaxHostBytes)
	c.codeStanding(&m.Quality)
	c.codeText("multiplexer", &m.Multiplexer, maxSender)
	c.needTrue(m.Multiplexer == "" || isSender(m.Multiplexer), "multiplexer", strconv.Quote(m.Multiplexer)+": "+tokenRule)
	if !c.writing && len(c.buf) == 0 {
		return // Of the release before.
	}
	c.codeText("leader", &m.Leader, MaxTokenBytes)
	c.needTrue(m.Leader == "" || isToken(m.Leader), "leader", strconv.Quote(m.Leader)+": "+tokenRule)
	c.codeUint("term", &m.Term)
	c.needTrue((m.Term == 0) == (m.Leader == ""), "term", "a term belongs to a leader")
	c.codeBool("causes", &m.Causes)
	if c.writing {
		c.fitItems("fates", len(m.Fates), MaxFates, MaxFrameBytes-MaxPart+tailBytes, func(i int) { c.fated(&m.Fates[i]) })
	} else {
		list(c, "fates", &m.Fates, MaxFates, 6, c.fated)
	}
	process := m.Process > 0 || m.Asks || m.Had > 0 || m.Over || m.Common
	if c.writing && m.Life == 0 && m.Same == (Same{}) && !process || !c.writing && len(c.buf) == 0 {
		return
	}
	c.codeUint("life", &m.Life)
	c.needTrue(m.Life == 0 || m.Life < m.Incarnation, "life", "the life is not before the incarnation")
	if c.writing && (m.Same != (Same{}) || process) || !c.writing && c.err == nil && (m.Life == 0 || len(c.buf) > 0) {
		c.same(&m.Same, process)
	}
	if c.writing && process || !c.writing && c.err == nil && len(c.buf) > 0 {
		c.codeUint("process", &m.Process)
		c.codeBool("asks", &m.Asks)
		c.codeUint("had", &m.Had)
		if c.writing && (m.Over || m.Common) || !c.writing && c.err == nil && len(c.buf) > 0 {
			c.codeBool("over", &m.Over)
			if c.writing && m.Common || !c.writing && c.err == nil && len(c.buf) > 0 {
				c.codeBool("common", &m.Common)
				c.needTrue(m.Common, "common", "a false value has no form: leave it out")
			}
			c.needTrue(m.Over || m.Common, "over", "a false value has no form: leave it out")
		}
		c.needTrue(m.Process > 0 || m.Asks || m.Had > 0 || m.Over || m.Common, "process", "the process is 0, and the frame asks for nothing")
	}
}

// tailBytes is the most that the life, the same state and the process of a hello take.
const tailBytes = 6*9 + 2

// same is there where a state has begun again. If more follows, three zeros stand for none.
func (c *coder) same(s *Same, more bool) {
	c.codeUint("same", &s.Seq)
	c.codeUint("same incarnation", &s.Incarnation)
	c.codeUint("same of", &s.Of)
	if *s == (Same{}) && (more || !c.writing && len(c.buf) > 0) {
		return
	}
	c.needTrue(s.Seq > 0 && s.Of > 0, "same", "reports are numbered from 1")
	c.needTrue(s.Incarnation < MaxIncarnation, "same incarnation", "the incarnation is not below 2^62")
}

func (c *coder) fated(f *control.Fated) {
	c.cause(&f.Cause)
	c.codeToken("name", &f.Name)
	c.codeUint("entry", &f.Entry)
	c.codeSmall("fate", (*uint8)(&f.Fate), uint8(control.Waiting), uint8(control.Unconfirmed))
}

func (c *coder) cause(s *control.Cause) {
	c.codeUint("source", &s.Source)
	c.needTrue(s.Source > 0, "source", "the value is 0, which stands for none")
	c.codeUint("witness", &s.Witness)
	firing := uint64(s.Firing)
	c.codeUint("firing", &firing)
	c.needTrue(firing <= math.MaxUint32, "firing", "the value is above 4294967295")
	if !c.writing && c.err == nil {
		s.Firing = uint32(firing) //nolint:gosec // It was compared.
	}
}

// codeStanding is what may change of a quality while its source stays.
func (c *coder) codeStanding(q *clocksync.Quality) {
	c.codeBool("unverified", &q.Unverified)
	c.codeSmall("status", (*uint8)(&q.Status), uint8(clocksync.Unknown), uint8(clocksync.Untrusted))
	c.codeInt("expires", (*int64)(&q.Expires))
}

func (m *Ping) layout(c *coder) { c.codeToken("member", &m.Member) }

func (m *Pong) layout(c *coder) {
	c.codeText("timeline", (*string)(&m.Timeline), MaxHostBytes)
	c.needTrue(m.Timeline != "", "timeline", "the timeline is empty: times without a timeline cannot be compared")
	c.interval("arrived", &m.Arrived)
	c.interval("departed", &m.Departed)
	c.codeFloat("drift", &m.Drift)
	c.needTrue(m.Drift >= 0 && m.Drift <= clocksync.MaxDrift, "drift", "the drift is not a number from 0 to 100000")
}

func (c *coder) interval(field string, i *clocksync.Interval) {
	c.codeInt(field, (*int64)(&i.Earliest))
	c.codeInt(field, (*int64)(&i.Latest))
	c.needTrue(i.Valid(), field, "the interval ends before its start")
}

func (m *Welcome) layout(c *coder) {
	c.codeToken("synchronizer", &m.Synchronizer)
	c.codeUint("term", &m.Term)
	c.codeUint("epoch", &m.Epoch)
	c.codeText("member", &m.Member, MaxTokenBytes)
	c.needTrue(m.Member == "" || isToken(m.Member), "member", tokenRule)
	c.codeUint("incarnation", &m.Incarnation)
	c.codeBool("accepted", &m.Accepted)
	c.codeBool("refused", &m.Refused)
	c.needTrue(!m.Accepted || !m.Refused, "refused", "the member is both accepted and refused")
	c.codeReason("reason", &m.Reason)
	c.schema(&m.Schema)
	c.codeBlob("section", &m.Section, MaxSection)
	c.codeUint("section hash", &m.SectionHash)
	c.codeInt("heartbeat", &m.Heartbeat)
	c.needTrue(m.Heartbeat >= 0, "heartbeat", "the value is negative")
	c.codeUint("next seq", &m.NextSeq)
	c.codeText("domain", (*string)(&m.Domain), MaxHostBytes)
	c.codeText("timeline", (*string)(&m.Timeline), MaxHostBytes)
	more := len(m.Aims) > 0 || m.Replaced || m.Untold > 0
	if c.writing && m.Work == 0 && !more || !c.writing && len(c.buf) == 0 {
		return // As without a section work.
	}
	c.codeUint("work", &m.Work)
	c.needTrue(m.Work > 0 || c.writing || len(c.buf) > 0, "work", "the value is 0, which stands for none")
	if c.writing && !more || !c.writing && len(c.buf) == 0 {
		return
	}
	if c.writing {
		c.fitItems("aims", len(m.Aims), MaxAims, 1+9, func(i int) { c.aim(&m.Aims[i]) })
	} else {
		list(c, "aims", &m.Aims, MaxAims, 3, c.aim)
	}
	c.codeBool("replaced", &m.Replaced)
	c.needTrue(!m.Replaced || m.Refused, "replaced", "the member is not refused")
	c.codeUint("untold", &m.Untold)
	c.needTrue(c.writing || len(m.Aims) > 0 || m.Replaced || m.Untold > 0, "aims", "there are none, and nothing follows")
}

func (c *coder) aim(a *Aim) {
	c.codeToken("signal", &a.Signal)
	c.codeSmall("kind", (*uint8)(&a.Kind), uint8(control.Activate), uint8(control.Cancel))
	c.codeToken("region", &a.Region)
}

func (m *Gone) layout(c *coder) {
	c.codeToken("member", &m.Member)
	c.codeUint("incarnation", &m.Incarnation)
	c.codeUint("first", &m.First)
	c.needTrue(m.First > 0, "first", zeroSeq)
}

func (m *Probe) layout(c *coder) {
	c.codeUint("incarnation", &m.Incarnation)
	c.codeUint("seq", &m.Seq)
	c.codeInt("after mono", (*int64)(&m.AfterMono))
	c.codeInt("after time", (*int64)(&m.AfterTime))
	if c.writing && m.Domain != "" || !c.writing && c.err == nil && len(c.buf) > 0 {
		c.codeText("domain", (*string)(&m.Domain), MaxHostBytes)
		c.needTrue(m.Domain != "", "domain", "an empty one has no form: leave it out")
		c.needTrue(m.Incarnation == 0 && m.Seq == 0, "domain", "a request to a domain names no state")
	}
}

func (m *Body) layout(c *coder) {
	c.codeToken("member", &m.Member)
	c.codeUint("program", &m.Program)
	c.codeUint("run", &m.Run)
	c.codeSmall("kind", (*uint8)(&m.Kind), uint8(BodyInput), uint8(BodyFailure))
	c.codeUint("size", &m.Size)
	c.needTrue(m.Size <= MaxBody, "size", "the body is above 1 MiB: hand over a reference and fetch the rest")
	c.codeUint("offset", &m.Offset)
	c.codeBlob("piece", &m.Piece, MaxPiece)
	c.needTrue(m.Offset <= m.Size && uint64(len(m.Piece)) <= m.Size-m.Offset, "piece", "the piece ends behind the body")
	c.codeReason("reason", &m.Reason)
}

func (m *Resend) layout(c *coder) {
	c.codeUint("incarnation", &m.Incarnation)
	c.codeUint("from", &m.From)
	c.needTrue(m.From > 0, "from", zeroSeq)
	c.codeUint("to", &m.To)
	c.needTrue(m.From <= m.To, "to", "the last number is before from")
}

// layout of Signals returns how many of them the frame holds.
func (m *Signals) layout(c *coder) int {
	c.codeToken("synchronizer", &m.Synchronizer)
	c.codeUint("term", &m.Term)
	c.codeUint("epoch", &m.Epoch)
	c.codeUint("incarnation", &m.Incarnation)
	n := some(c, "signals", &m.Signals, MaxSignals, 12, c.signal)
	if c.writing && len(m.Recorded) == 0 || !c.writing && len(c.buf) == 0 {
		return n // As in the release before.
	}
	c.needTrue(len(m.Signals) == 0, "recorded", "receipts are allowed only in a frame without signals")
	list(c, "recorded", &m.Recorded, MaxSignals, 3, c.receipt)
	return n
}

func (c *coder) receipt(r *Receipt) {
	c.codeUint("term", &r.Term)
	c.codeUint("number", &r.Number)
	c.codeToken("name", &r.Name)
}

func (c *coder) signal(s *control.Signal) {
	c.decision(&s.Decision)
	c.codeToken("name", &s.Name)
	c.codeToken("predicate", &s.Predicate)
	traced, caused := c.signalKind(s)
	c.codeToken("target", &s.Target)
	c.codeToken("region", &s.Region)
	c.codeUint("entry", &s.Entry)
	c.codeInt("ttl", (*int64)(&s.TTL))
	c.needTrue(s.TTL >= 0, "ttl", "the value is negative")
	list(c, "data", &s.Data, control.MaxData, 3, c.datum)
	if c.err == nil {
		if err := control.CheckData(s.Data); err != nil {
			c.keepFault("data", err.Error())
		}
	}
	if caused && c.err == nil {
		c.cause(&s.Cause)
	}
	c.codeTrace(&s.Trace, traced)
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
	c.codeSmall("kind", &kind, 0, math.MaxUint8)
	over := kind&flagOverKind != 0
	traced, caused = kind&flagTracedKind != 0, kind&flagCausedKind != 0
	if kind &^= flagTracedKind | flagCausedKind | flagOverKind; kind < uint8(control.Activate) || kind > uint8(control.Cancel) {
		c.keepFault("kind", strconv.Itoa(int(kind))+" is not 1 to 2")
	}
	if !c.writing {
		s.Kind, s.Over = control.Kind(kind), over
	}
	return traced, caused
}

// codeTrace codes a trace context that is there.
func (c *coder) codeTrace(t *control.Trace, there bool) {
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
		c.needTrue(len(got) == len(t) && t.Valid(), "trace", "the bytes are no trace context: it has 25 bytes, and begins with two ids that are not zero")
	}
}

func (c *coder) decision(d *control.Decision) {
	c.codeToken("synchronizer", &d.Synchronizer)
	c.codeUint("term", &d.Term)
	c.codeUint("epoch", &d.Epoch)
	c.codeUint("number", &d.Number)
}

// layout of Ack returns how many answers the frame holds.
func (m *Ack) layout(c *coder) int {
	c.codeToken("member", &m.Member)
	c.codeUint("incarnation", &m.Incarnation)
	return some(c, "answers", &m.Answers, MaxSignals, 8, c.answer)
}

func (c *coder) answer(a *Answer) {
	c.decision(&a.Decision)
	c.codeToken("name", &a.Name)
	c.codeToken("target", &a.Target)
	known := c.answerFate(a)
	c.codeReason("detail", &a.Detail)
	if known {
		c.codeSmall("kind", (*uint8)(&a.Kind), uint8(control.Activate), uint8(control.Cancel))
		c.codeToken("predicate", &a.Predicate)
		c.codeToken("region", &a.Region)
		c.codeUint("entry", &a.Entry)
	}
}

// flagKnownFate marks the fate of an answer that says what signal it is of.
const flagKnownFate = 0x40

func (c *coder) answerFate(a *Answer) (known bool) {
	fate := uint8(a.Fate)
	if c.writing && a.Kind > 0 {
		fate |= flagKnownFate
	}
	c.codeSmall("fate", &fate, 0, math.MaxUint8)
	known = fate&flagKnownFate != 0
	if fate &^= flagKnownFate; fate < uint8(control.Waiting) || fate > uint8(control.Unconfirmed) {
		c.keepFault("fate", strconv.Itoa(int(fate))+" is not 1 to 8")
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
			c.keepFault("state", err.Error())
		}
	}
}

// hasDefault marks the type of a field whose default follows its words. It is
// part of the format, as is the mark of lists.
const hasDefault = 1 << 6

// isRedacted marks the type of a field with Redact. It is part of the format.
const isRedacted = 1 << 5

func (c *coder) field(f *scgs.Field) {
	c.codeText("name", &f.Name, scgs.MaxNameBytes)
	kind := uint8(f.Type)
	if f.Default.Type() != scgs.Invalid {
		kind |= hasDefault
	}
	if f.Redact {
		kind |= isRedacted
	}
	c.codeSmall("type", &kind, uint8(scgs.Bool), math.MaxUint8)
	if !c.writing {
		f.Type, f.Redact = scgs.Type(kind&^(hasDefault|isRedacted)), kind&isRedacted != 0
	}
	list(c, "words", &f.Words, scgs.MaxFields, 1, func(w *string) { c.codeText("word", w, scgs.MaxNameBytes) })
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
	c.codeToken("name", &d.Name)
	c.value(&d.Value)
}

// value codes a value that carries its type along.
func (c *coder) value(v *scgs.Value) {
	typ := uint8(v.Type())
	c.codeSmall("type", &typ, uint8(scgs.Invalid), uint8(scgs.Enum))
	var got scgs.Value
	switch scgs.Type(typ) {
	case scgs.Invalid:
	case scgs.Bool:
		b := v.Bool()
		c.codeBool("value", &b)
		got = scgs.BoolValue(b)
	case scgs.Int, scgs.Duration:
		i := v.Int()
		c.codeInt("value", &i)
		got = scgs.IntValue(i)
		if scgs.Type(typ) == scgs.Duration {
			got = scgs.DurationValue(time.Duration(i))
		}
	case scgs.Float:
		f := v.Float()
		c.codeFloat("value", &f)
		c.needTrue(!math.IsNaN(f), "value", "the float is not a number")
		got = scgs.FloatValue(f)
	case scgs.String, scgs.Enum:
		s := v.Text()
		c.codeText("value", &s, control.MaxDataBytes)
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

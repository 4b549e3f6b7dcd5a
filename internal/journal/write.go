// Package journal records the inputs of a machine as JSON lines, with a digest of
// its outputs, and reads them again: whatever a machine did can be replayed to the
// same outputs. The first line is a [Header], with all that the machine was made of;
// each other one is an input, or the end.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Format is the version of the lines of a journal. A reader refuses every
// other one.
const Format = 2

// MaxLine is the greatest length of a line in bytes, its end included.
const MaxLine = 16 << 20

// Header is the first line of a journal: all that the machine was made of, and the clocks of
// its instants.
type Header struct {
	Journal      int    `json:"journal"`      // the format
	Pegasus      string `json:"pegasus"`      // the version that wrote it; empty if that is not known
	Synchronizer string `json:"synchronizer"` // its name in Config

	synccore.Options // that the machine was made with

	Started int64             `json:"started"` // of the wall clock, in ns since 1970, at the reading Now
	Now     clocksync.Instant `json:"now"`     // of the host's monotonic clock, in ns
	Hash    string            `json:"hash"`    // of Config.Text
	Config  plan.Source       `json:"config"`  // the text that the machine's level was compiled from
}

// NewHeader returns the header of a machine's journal, without the version and
// the clocks.
func NewHeader(level *plan.Level, opt synccore.Options) Header {
	return Header{
		Journal: Format, Synchronizer: level.Name, Options: opt.Resolved(),
		Hash: level.Source.Hash(), Config: *level.Source,
	}
}

// AppendHeader appends the line of a header.
func AppendHeader(dst []byte, h *Header) []byte { return append(appendJSON(dst, h), '\n') }

// The JSON of a hello, where that of its schema is another one than in the sections
// of a configuration. The types have the fields of the message, so that it cannot
// gain one that the journal lacks.
type (
	helloLine struct {
		Member      string            `json:"member"`
		Incarnation uint64            `json:"incarnation"`
		Host        string            `json:"host"`
		Domain      clocksync.Domain  `json:"domain"`
		Quality     clocksync.Quality `json:"quality"`
		Typed       bool              `json:"typed,omitempty"`
		Schema      []fieldLine       `json:"state,omitempty"`
		Threads     bool              `json:"threads,omitempty"`
		Multiplexer string            `json:"carrier,omitempty"`
		Leader      string            `json:"leader,omitempty"`
		Term        uint64            `json:"term,omitempty"`
		Causes      bool              `json:"causes,omitempty"`
		Life        uint64            `json:"life,omitempty"`
		Fates       []control.Fated   `json:"fates,omitempty"`
		Same        wire.Same         `json:"same,omitzero"`
		Process     uint64            `json:"process,omitempty"`
		Asks        bool              `json:"asks,omitempty"`
		Had         uint64            `json:"had,omitempty"`
		Over        bool              `json:"over,omitempty"`
		Common      bool              `json:"common,omitempty"`
	}
	fieldLine struct {
		Name  string    `json:"name"`
		Type  scgs.Type `json:"type"`
		Words []string  `json:"words,omitempty"`
		// Default is with its type, since it may have none.
		Default scgs.Value `json:"default,omitzero"`
		Redact  bool       `json:"-"` // Programs do not declare it.
	}
)

// AppendInput appends the line of an input but for its end, which [AppendOutput] adds after the
// step. State is the members' state. The machine must not host threads: what these say does not
// come as a message, and has no line.
func AppendInput(dst []byte, state scgs.Schema, now clocksync.Instant, in *synccore.Input) ([]byte, error) {
	buf := strconv.AppendInt(append(dst, `{"now":`...), int64(now), 10)
	if in.More {
		buf = append(buf, `,"more":true`...)
	}
	if in.From != "" {
		buf = appendText(append(buf, `,"from":`...), in.From)
	}
	if in.Group != "" {
		buf = appendText(append(buf, `,"group":`...), in.Group)
	}
	if in.By != "" {
		buf = appendText(append(buf, `,"by":`...), in.By)
	}
	if in.Person != "" {
		buf = appendText(append(buf, `,"person":`...), in.Person)
	}
	if in.Reached != 0 {
		buf = strconv.AppendInt(append(buf, `,"reached":`...), int64(in.Reached), 10)
	}
	switch in.Kind { //nolint:exhaustive // The others come from threads.
	case synccore.InTick:
		if in.Watched {
			buf = append(buf, `,"watched":true`...)
		}
		return append(buf, `,"tick":true`...), nil
	case synccore.InHello:
		return appendJSON(append(buf, `,"hello":`...), newHelloLine(in.Hello)), nil
	case synccore.InBatch:
		buf, err := appendBatch(append(buf, `,"batch":`...), state, in.Batch)
		if err != nil {
			return dst, err
		}
		return buf, nil
	case synccore.InAlive:
		return appendAlive(append(buf, `,"alive":`...), in.Alive), nil
	case synccore.InShared:
		return appendShared(append(buf, `,"shared":{`...), in.Shared), nil
	case synccore.InGone:
		return appendJSON(append(buf, `,"gone":`...), in.Gone), nil
	case synccore.InAck:
		return appendJSON(append(buf, `,"ack":`...), in.Ack), nil
	case synccore.InTimeline:
		return appendText(append(buf, `,"timeline":`...), string(in.Timeline)), nil
	case synccore.InLevel:
		return appendJSON(append(buf, `,"config":`...), in.Level.Source), nil
	case synccore.InBody:
		return appendJSON(append(buf, `,"body":`...), in.Body), nil
	case synccore.InCancel:
		return appendText(append(buf, `,"cancel":`...), strings.ToValidUTF8(in.Reason, "?")), nil
	case synccore.InTerm:
		return strconv.AppendUint(append(buf, `,"term":`...), in.Term, 10), nil
	case synccore.InKept:
		return appendJSON(append(buf, `,"kept":`...), in.Kept), nil
	case synccore.InProgram:
		return appendJSON(append(buf, `,"program":`...), in.Record), nil
	case synccore.InRestart:
		return appendJSON(append(buf, `,"restart":`...), in.Restart), nil
	}
	return dst, fmt.Errorf("an input of kind %d has no line in a journal", in.Kind)
}

// AppendOutput ends the line of an input with the digest of all outputs so far.
func AppendOutput(dst []byte, d *Digest) []byte {
	return append(d.appendHex(append(dst, `,"out":"`...)), "\"}\n"...)
}

// AppendBroken ends the line of an input whose step did not end.
func AppendBroken(dst []byte) []byte { return append(dst, "}\n"...) }

// AppendEnd appends the last line: how many inputs there are, and why there are
// no more, empty if the machine has ended.
func AppendEnd(dst []byte, inputs uint64, stopped string) []byte {
	dst = strconv.AppendUint(append(dst, `{"end":`...), inputs, 10)
	if stopped != "" {
		dst = appendText(append(dst, `,"stopped":`...), stopped)
	}
	return append(dst, "}\n"...)
}

func newHelloLine(h *wire.Hello) helloLine {
	line := helloLine{
		Member: h.Member, Incarnation: h.Incarnation, Host: h.Host, Domain: h.Domain, Quality: h.Quality,
		Typed: h.Typed, Threads: h.Threads, Multiplexer: h.Multiplexer, Leader: h.Leader, Term: h.Term,
		Causes: h.Causes, Life: h.Life, Fates: h.Fates, Same: h.Same, Process: h.Process, Asks: h.Asks, Had: h.Had, Over: h.Over, Common: h.Common,
	}
	for _, f := range h.Schema {
		line.Schema = append(line.Schema, fieldLine(f))
	}
	return line
}

var errDomains = errors.New("a batch with stamps of several clock domains has no line in a journal")

// appendBatch writes the object by hand: all other messages together are few
// beside the batches.
func appendBatch(buf []byte, state scgs.Schema, b *wire.Batch) ([]byte, error) {
	buf = appendText(append(buf, `{"member":`...), b.Member)
	buf = strconv.AppendUint(append(buf, `,"incarnation":`...), b.Incarnation, 10)
	domain := b.Evidence.At.Domain
	if len(b.Reports) > 0 {
		domain = b.Reports[0].At.Domain
	}
	if domain != "" {
		buf = appendText(append(buf, `,"domain":`...), string(domain))
	}
	if b.Again {
		buf = append(buf, `,"again":true`...)
	}
	if b.Leaving {
		buf = append(buf, `,"leaving":true`...)
	}
	for i := range b.Reports {
		r := &b.Reports[i]
		if r.At.Domain != domain {
			return nil, errDomains
		}
		buf = append(buf, between(i, `,"reports":[`)...)
		buf = appendAt(strconv.AppendUint(append(buf, `{"seq":`...), r.Seq, 10), r.At)
		if r.End {
			buf = append(buf, `,"end":true}`...)
			continue
		}
		if err := state.Accepts(r.Row); err != nil {
			return nil, err
		}
		buf = append(buf, `,"state":[`...)
		for j, v := range r.Row {
			if j > 0 {
				buf = append(buf, ',')
			}
			buf = appendValue(buf, v)
		}
		buf = append(buf, "]}"...)
	}
	buf = closing(buf, len(b.Reports))
	buf = appendRegions(buf, b.Regions)
	if b.Evidence.Seq > 0 {
		if b.Evidence.At.Domain != domain {
			return nil, errDomains
		}
		buf = strconv.AppendUint(append(buf, `,"evidence":{"seq":`...), b.Evidence.Seq, 10)
		buf = append(appendAt(buf, b.Evidence.At), '}')
	}
	if b.Tagged {
		buf = appendJSON(append(buf, `,"quality":`...), b.Quality)
	}
	return append(buf, '}'), nil
}

func appendAlive(buf []byte, alive []wire.Alive) []byte {
	buf = append(buf, '[')
	for i := range alive {
		a := &alive[i]
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(append(buf, `{"member":`...), a.Member)
		buf = strconv.AppendUint(append(buf, `,"incarnation":`...), a.Incarnation, 10)
		buf = strconv.AppendUint(append(buf, `,"seq":`...), a.Evidence.Seq, 10)
		buf = append(appendAt(buf, a.Evidence.At), '}')
	}
	return append(buf, ']')
}

func appendShared(buf []byte, b *wire.Bundle) []byte {
	if b.Version > 0 {
		buf = strconv.AppendUint(append(buf, `"version":`...), b.Version, 10)
		buf = strconv.AppendUint(append(buf, `,"total":`...), b.Total, 10)
		buf = strconv.AppendUint(append(buf, `,"first":`...), b.First, 10)
		for i := range b.Listed {
			m := &b.Listed[i]
			buf = appendText(append(append(buf, between(i, `,"listed":[`)...), `{"member":`...), m.Member)
			buf = strconv.AppendUint(append(buf, `,"incarnation":`...), m.Incarnation, 10)
			buf = strconv.AppendUint(append(buf, `,"seq":`...), m.Seq, 10)
			buf = append(appendRegions(buf, m.Regions), '}')
		}
		buf = closing(buf, len(b.Listed))
		if b.Of > 0 {
			buf = append(buf, ',')
		}
	}
	if b.Of > 0 {
		buf = strconv.AppendUint(append(buf, `"of":`...), b.Of, 10)
		buf = appendAt(strconv.AppendUint(append(buf, `,"sum":`...), b.Sum, 10), b.At)
	}
	return append(buf, '}')
}

func appendRegions(buf []byte, regions []wire.Region) []byte {
	for i, r := range regions {
		buf = append(buf, between(i, `,"regions":[`)...)
		buf = appendText(append(buf, `{"name":`...), r.Name)
		buf = strconv.AppendUint(append(buf, `,"entry":`...), r.Entry, 10)
		buf = append(strconv.AppendUint(append(buf, `,"since":`...), r.Since, 10), '}')
	}
	return closing(buf, len(regions))
}

// between is what stands before item i of a list.
func between(i int, open string) string {
	if i == 0 {
		return open
	}
	return ","
}

func closing(buf []byte, items int) []byte {
	if items > 0 {
		return append(buf, ']')
	}
	return buf
}

// appendAt writes a stamp as its reading, and both ends of its interval where it
// has any.
func appendAt(buf []byte, s clocksync.Stamp) []byte {
	buf = strconv.AppendInt(append(buf, `,"at":[`...), int64(s.Mono), 10)
	if s.Within != clocksync.Unbounded {
		buf = appendInstant(append(buf, ','), s.Within.Earliest)
		buf = appendInstant(append(buf, ','), s.Within.Latest)
	}
	return append(buf, ']')
}

// appendInstant writes nanoseconds, or null for an infinity: whose it is shows
// from which end it is.
func appendInstant(buf []byte, t clocksync.Instant) []byte {
	if !t.Finite() {
		return append(buf, "null"...)
	}
	return strconv.AppendInt(buf, int64(t), 10)
}

// appendValue writes a value of which the schema tells the type: null for none,
// durations in nanoseconds, infinities as texts.
func appendValue(buf []byte, v scgs.Value) []byte {
	if v.Type().IsList() {
		buf = append(buf, '[')
		for i := range v.Len() {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = appendValue(buf, v.At(i))
		}
		return append(buf, ']')
	}
	switch v.Type() {
	case scgs.Bool:
		return strconv.AppendBool(buf, v.Bool())
	case scgs.Int, scgs.Duration:
		return strconv.AppendInt(buf, v.Int(), 10)
	case scgs.Float:
		if f := v.Float(); !math.IsInf(f, 0) {
			return strconv.AppendFloat(buf, f, 'g', -1, 64)
		}
		return append(strconv.AppendFloat(append(buf, '"'), v.Float(), 'g', -1, 64), '"')
	case scgs.String, scgs.Enum:
		return appendText(buf, v.Text())
	case scgs.Invalid:
	}
	return append(buf, "null"...)
}

// appendText writes a text, which is UTF-8: messages and configurations that are
// not are refused before.
func appendText(buf []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b == '"' || b == '\\' || b >= 0x7f {
			return appendJSON(buf, s)
		}
	}
	return append(append(append(buf, '"'), s...), '"')
}

func appendJSON(buf []byte, v any) []byte {
	w := bytes.NewBuffer(buf)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("journal: %T does not encode: %v", v, err))
	}
	return w.Bytes()[:w.Len()-1] // Without its newline.
}

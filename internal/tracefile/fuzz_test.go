package tracefile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// wanted are the fields that the tests' scanners look for.
var wanted = []string{"role", "load", ""}

// plain is a Line that shares no memory.
type plain struct {
	Participant, Domain string
	Mono                clocksync.Instant
	Within              clocksync.Interval
	Type                string
	Seq, Incarnation    uint64
	Kinds               []tracefile.Kind
	Texts               []string
}

func plainOf(l *tracefile.Line) plain {
	p := plain{
		Participant: string(l.Participant), Domain: string(l.Domain), Mono: l.Mono, Within: l.Within,
		Type: l.Type.String(), Seq: l.Seq, Incarnation: l.Incarnation,
	}
	for _, d := range l.State {
		p.Kinds = append(p.Kinds, d.Kind)
		p.Texts = append(p.Texts, string(d.Text))
	}
	return p
}

// FuzzTrace holds the scanner against a reading of the same line by package
// encoding/json, which is written from the rules of the package comment.
func FuzzTrace(f *testing.F) {
	for _, line := range samples(f) {
		f.Add([]byte(line))
	}
	for _, n := range []int{0, 3} {
		f.Add(lines(n)[0])
	}
	s := tracefile.NewScanner(wanted)
	lists := tracefile.NewColumns(scgs.Schema{
		{Name: "role", Type: scgs.ListOf(scgs.String)}, {Name: "load", Type: scgs.ListOf(scgs.Float)}, {Type: scgs.ListOf(scgs.Bool)},
	})
	row := make([]scgs.Value, len(wanted))
	var l tracefile.Line
	f.Fuzz(func(t *testing.T, line []byte) {
		err := s.Scan(line, &l)
		if fault, ok := errors.AsType[*tracefile.Error](err); ok && (fault.Column < 1 || fault.Column > len(line)+1 || !utf8.ValidString(fault.Reason)) {
			t.Errorf("%q: column %d of %d, %q", line, fault.Column, len(line), fault.Reason)
		}
		if bytes.Contains(bytes.ToLower(line), []byte("fffd")) || bytes.ContainsRune(line, utf8.RuneError) {
			return // Package json writes it for what it cannot read.
		}
		want, good := reading(line)
		if good != (err == nil) {
			t.Fatalf("%q: error %v, want good: %t", line, err, good)
		}
		if good {
			if diff := cmp.Diff(want, plainOf(&l)); diff != "" {
				t.Errorf("%q: (-want +got)\n%s", line, diff)
			}
			if l.State != nil {
				lists.Row(l.State, row)
				checkList(t, &l.State[0], row[0], func(list []string) bool { return len(strings.Join(list, "")) <= scgs.MaxTextBytes })
				checkList(t, &l.State[1], row[1], func([]float64) bool { return true })
				checkList(t, &l.State[2], row[2], func([]bool) bool { return true })
			}
		}
	})
}

// checkList holds a list against what package json makes of the array.
func checkList[T any](t *testing.T, d *tracefile.Datum, got scgs.Value, fits func([]T) bool) {
	t.Helper()
	var list []*T
	good := d.Kind == tracefile.Array && json.Unmarshal(d.Text, &list) == nil && len(list) <= scgs.MaxElements
	want := make([]T, len(list))
	for i, e := range list {
		if e == nil { // null
			good = false
			break
		}
		want[i] = *e
	}
	good = good && fits(want)
	if good != (got.Type() != scgs.Invalid) || good && !cmp.Equal(any(want), got.Any()) {
		t.Fatalf("%q reads as %v, want %v (%t)", d.Text, got, want, good)
	}
}

// reading is what a line says, and whether it is one.
func reading(line []byte) (p plain, good bool) {
	if !utf8.Valid(line) || !json.Valid(line) || halves(line) {
		return p, false
	}
	top, good := object(line)
	if !good {
		return p, false
	}
	p.Incarnation = 1
	for _, key := range []string{"participant", "domain", "mono", "earliest", "latest", "type", "seq"} {
		if _, ok := top[key]; !ok {
			return p, false
		}
	}
	state := map[string]json.RawMessage{}
	for key, raw := range top {
		ok := true
		switch key {
		case "participant":
			p.Participant, ok = text(raw)
			ok = ok && p.Participant != ""
		case "domain":
			p.Domain, ok = text(raw)
			ok = ok && p.Domain != ""
		case "type":
			p.Type, ok = text(raw)
			ok = ok && (p.Type == "state" || p.Type == "alive" || p.Type == "leave")
		case "mono":
			p.Mono, ok = instant(raw)
			ok = ok && p.Mono < math.MaxInt64
		case "earliest":
			p.Within.Earliest, ok = instant(raw)
			ok = ok && p.Within.Earliest < math.MaxInt64
			if string(raw) == "null" {
				p.Within.Earliest, ok = math.MinInt64, true
			}
		case "latest":
			p.Within.Latest, ok = instant(raw)
			ok = ok && p.Within.Latest > math.MinInt64
			if string(raw) == "null" {
				p.Within.Latest, ok = math.MaxInt64, true
			}
		case "seq", "incarnation":
			var n clocksync.Instant
			n, ok = instant(raw)
			ok = ok && n > 0
			if key == "seq" {
				p.Seq = uint64(n)
			} else {
				p.Incarnation = uint64(n)
			}
		case "state":
			if string(raw) != "null" {
				state, ok = object(raw)
				ok = ok && len(state) <= tracefile.MaxFields
			}
		default:
			ok = false
		}
		if !ok {
			return p, false
		}
	}
	for _, raw := range state {
		if depth(raw) > tracefile.MaxNesting {
			return p, false
		}
	}
	for _, field := range wanted {
		kind, words := kindOf(state[field])
		p.Kinds, p.Texts = append(p.Kinds, kind), append(p.Texts, words)
	}
	return p, p.Type == "state" || len(state) == 0
}

// object returns the values of an object whose keys differ.
func object(raw []byte) (map[string]json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	values := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if _, double := values[key.(string)]; double || d.Decode(&value) != nil {
			return nil, false
		}
		values[key.(string)] = value
	}
	return values, true
}

func text(raw json.RawMessage) (s string, ok bool) {
	return s, raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

func instant(raw json.RawMessage) (n clocksync.Instant, ok bool) {
	err := json.Unmarshal(raw, &n)
	return n, err == nil && string(raw) != "null"
}

func kindOf(raw json.RawMessage) (tracefile.Kind, string) {
	switch {
	case raw == nil:
		return tracefile.Missing, ""
	case raw[0] == '"':
		s, _ := text(raw)
		return tracefile.Text, s
	case raw[0] == '{':
		return tracefile.Nested, ""
	case raw[0] == '[':
		return tracefile.Array, string(raw)
	}
	switch string(raw) {
	case "null":
		return tracefile.Null, ""
	case "true":
		return tracefile.True, ""
	case "false":
		return tracefile.False, ""
	}
	return tracefile.Number, string(raw)
}

// halves reports whether a string of the line has half of a surrogate pair.
func halves(line []byte) bool {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if s, ok := token.(string); ok && strings.ContainsRune(s, utf8.RuneError) {
			return true
		}
	}
}

// depth is how deep arrays and objects are nested.
func depth(raw json.RawMessage) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for now := 0; ; {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

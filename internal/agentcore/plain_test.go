package agentcore_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

var plainTypes = []scgs.Type{scgs.Bool, scgs.Int, scgs.Float, scgs.Duration, scgs.Enum}

func drawSchema(t *rapid.T) scgs.Schema {
	types := plainTypes
	if rapid.Bool().Draw(t, "varied") {
		types = append(slices.Clone(types), scgs.String, scgs.ListOf(scgs.Int), scgs.ListOf(scgs.String))
	}
	var s scgs.Schema
	for i := range rapid.IntRange(0, 6).Draw(t, "fields") {
		f := scgs.Field{Name: fmt.Sprint("f", i), Type: rapid.SampledFrom(types).Draw(t, "type")}
		if f.Type == scgs.Enum {
			f.Words = []string{"idle", "search", "done"}
		}
		s = append(s, f)
	}
	return s
}

func drawValue(t *rapid.T, f *scgs.Field) scgs.Value {
	if rapid.IntRange(0, 30).Draw(t, "absent") == 0 {
		return scgs.Value{}
	}
	if f.Type.IsList() {
		elem, values := f.Element(), make([]scgs.Value, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range values {
			for values[i].Type() == scgs.Invalid {
				values[i] = drawValue(t, &elem)
			}
		}
		return scgs.ListValue(elem.Type, values...)
	}
	n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2)).Draw(t, "n")
	switch f.Type {
	case scgs.Bool:
		return scgs.BoolValue(n > 0)
	case scgs.Int:
		return scgs.IntValue(n)
	case scgs.Duration:
		return scgs.DurationValue(time.Duration(n))
	case scgs.Float:
		return scgs.FloatValue(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1.5, -math.MaxFloat64, math.SmallestNonzeroFloat64}).Draw(t, "x"))
	case scgs.String:
		return scgs.StringValue(rapid.SampledFrom([]string{"", "a", strings.Repeat("x", 80)}).Draw(t, "text"))
	default:
		return scgs.EnumValue(rapid.SampledFrom(f.Words).Draw(t, "word"))
	}
}

// TestEveryReportIsItsTransition: whatever was lost, asked for again, dropped by the
// ring or told to another synchronizer, a report has the stamp and the row of the
// transition with its number; and a row as words is that row.
func TestEveryReportIsItsTransition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &history{schema: drawSchema(t)}
		for i := range r.cores {
			r.cores[i] = newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d", Threads: true}})
		}
		r.welcome(t, 1)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) { r.set(t) },
			"burst": func(t *rapid.T) {
				for range rapid.IntRange(1, 2*agentcore.RingTransitions).Draw(t, "n") {
					r.again(t)
				}
			},
			"end":   r.end,
			"flush": r.flush,
			"resend": func(t *rapid.T) {
				from := rapid.Uint64Range(1, 3000).Draw(t, "from")
				r.each(t, func(m *machine) {
					m.OnResend(r.now, &wire.Resend{Incarnation: m.Incarnation(), From: from, To: from + 20})
				})
			},
			"recall": func(t *rapid.T) {
				r.each(t, func(m *machine) { m.Recall(r.now) })
				r.flush(t)
				r.welcome(t, rapid.Uint64Range(1, uint64(len(r.told)+1)).Draw(t, "next"))
			},
			"dropped": func(t *rapid.T) {
				r.each(t, func(m *machine) {
					m.OnWelcome(r.now, &wire.Welcome{Synchronizer: "s", Term: uint64(r.now), Member: "w", Incarnation: m.Incarnation(), Reason: "silent"})
				})
				r.restart()
				r.flush(t)
				r.welcome(t, 1)
			},
			"other fields": func(t *rapid.T) {
				before := r.schema.Hash()
				r.schema = drawSchema(t)
				r.each(t, func(m *machine) { m.Recall(r.now) })
				r.flush(t)
				r.welcome(t, 1)
				if r.schema.Hash() != before {
					r.skip()
					r.open = false
				}
			},
		})
		r.flush(t)
	})
}

// history is what two members did: one gets rows, the other words where possible.
type history struct {
	schema scgs.Schema
	cores  [2]*machine
	outs   [2]agentcore.Output
	now    clocksync.Instant
	told   []wire.Report // by number from 1
	row    []scgs.Value  // of the newest state
	open   bool
	wait   bool // the open state begins again with the next evidence
}

func (r *history) each(t *rapid.T, do func(*machine)) {
	t.Helper()
	for _, m := range r.cores {
		do(m)
	}
	if a, b := r.cores[0].Stats(), r.cores[1].Stats(); a != b {
		t.Fatalf("counters %+v, with words %+v", a, b)
	}
}

func (r *history) welcome(t *rapid.T, next uint64) {
	r.now++
	r.each(t, func(m *machine) {
		m.OnWelcome(r.now, &wire.Welcome{Synchronizer: "s", Term: uint64(r.now), Member: "w", Incarnation: m.Incarnation(), Accepted: true, Schema: r.schema, NextSeq: next})
	})
}

func (r *history) set(t *rapid.T) {
	r.row = make([]scgs.Value, len(r.schema))
	for i := range r.row {
		r.row[i] = drawValue(t, &r.schema[i])
	}
	r.again(t)
}

// again sets the last row.
func (r *history) again(t *rapid.T) {
	if len(r.row) != len(r.schema) || !slices.EqualFunc(r.row, r.schema, func(v scgs.Value, f scgs.Field) bool { return v.Type() == scgs.Invalid || f.Accepts(v) }) {
		return // It is of the fields before.
	}
	r.now++
	ats := [2]clocksync.Stamp{stamp(r.now), stamp(r.now)}
	if _, err := r.cores[0].State(r.now, &ats[0], r.row); err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, len(r.row))
	plain := agentcore.Plain(r.schema)
	for i := range r.row {
		var ok bool
		words[i], ok = agentcore.Word(&r.schema[i], r.row[i])
		plain = plain && ok
	}
	var err error
	if plain {
		_, err = r.cores[1].Plain(r.now, &ats[1], words)
	} else {
		_, err = r.cores[1].State(r.now, &ats[1], r.row)
	}
	if err != nil || ats[0] != ats[1] {
		t.Fatalf("%v; stamps %v and %v", err, ats[0], ats[1])
	}
	clear(words) // They were copied.
	r.skip()
	r.told, r.open = append(r.told, wire.Report{At: ats[0], Row: slices.Clone(r.row)}), true
}

func (r *history) end(t *rapid.T) {
	if r.wait {
		r.each(t, func(m *machine) { _ = m.End(r.now, stamp(r.now)) })
		r.skip()
	}
	if !r.open {
		return
	}
	r.now++
	r.each(t, func(m *machine) {
		if err := m.End(r.now, stamp(r.now)); err != nil {
			t.Fatal(err)
		}
	})
	r.told, r.open = append(r.told, wire.Report{End: true, At: stamp(r.now)}), false
}

// restart begins the next incarnation, in which the open state waits for evidence, and has its
// number again.
func (r *history) restart() {
	if r.open {
		r.told, r.open, r.wait = r.told[:len(r.told)-1], false, true
	}
}

// skip gives up the state that waits, and its number.
func (r *history) skip() {
	if r.wait {
		r.told, r.wait = append(r.told, wire.Report{}), false
	}
}

func (r *history) flush(t *rapid.T) {
	r.now += 3e9
	if r.open || r.wait {
		r.each(t, func(m *machine) {
			if err := m.Alive(r.now, stamp(r.now)); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i, m := range r.cores {
		m.Flush(r.now, stamp(r.now), &r.outs[i])
	}
	if r.wait && len(r.outs[0].Batches) > 0 {
		r.told, r.open, r.wait = append(r.told, wire.Report{At: stamp(r.now), Row: slices.Clone(r.row)}), true, false
	}
	for i := range r.outs {
		for _, b := range r.outs[i].Batches {
			r.check(t, &b)
		}
	}
	if !reflect.DeepEqual(r.outs[0].Batches, r.outs[1].Batches) {
		t.Fatalf("batches %+v, with words %+v", r.outs[0].Batches, r.outs[1].Batches)
	}
}

func (r *history) check(t *rapid.T, b *wire.Batch) {
	for _, p := range b.Reports {
		if p.Seq == 0 || p.Seq > uint64(len(r.told)) {
			t.Fatalf("report %d of %d", p.Seq, len(r.told))
		}
		if w := r.told[p.Seq-1]; p.End != w.End || p.At != w.At || !slices.Equal(p.Row, w.Row) {
			t.Fatalf("report %+v, the transition was %+v", p, w)
		}
	}
}

func TestWordsOfAnotherSchemaAreRefused(t *testing.T) {
	m := newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d"}})
	at := stamp(1)
	if _, err := m.Plain(1, &at, []uint64{1}); err == nil || err.Error() != agentcore.ErrNotWelcome.Error() {
		t.Errorf("before the first welcome: %v", err)
	}
	m.OnWelcome(1, &wire.Welcome{Synchronizer: "s", Member: "w", Incarnation: 1, Accepted: true, Schema: fields})
	if _, err := m.Plain(1, &at, []uint64{1, 2}); err == nil || err.Error() != "agentcore: 2 words are no row of 1 fields, of which none may be a text or a list" {
		t.Errorf("a word too many: %v", err)
	}
}

//go:build broken && linux

package broken

import (
	"strings"
	"testing"
)

// written are the records of a short run in which all is well: two members are together in
// states of two terms, and each firing is applied.
type written struct {
	member, killed, leads *process
	records               []*record
	whose                 []*process
}

func wrote() *written {
	w := &written{
		member: &process{role: role{Name: "p0", Life: 1}, ended: 1000}, killed: &process{role: role{Name: "s0", Life: 1}, ended: 500},
		leads: &process{role: role{Name: "s1", Life: 1}, ended: 1000},
	}
	at := int64(0)
	put := func(p *process, r record) {
		at += 10
		r.At = at
		w.records, w.whose = append(w.records, &r), append(w.whose, p)
	}
	for serial := int64(1); serial <= 2; serial++ {
		for _, m := range []string{"ma", "mb"} {
			put(w.member, record{Kind: kindSet, By: m, State: &state{Serial: serial, Phase: "arrived"}})
			put(w.member, record{Kind: kindDid, By: m, State: &state{Serial: serial}})
		}
		by, made := w.killed, number{uint64(serial), 1, 1}
		if serial == 2 {
			by = w.leads
		}
		witness := []share{{Member: "ma", Began: at, state: state{serial, "arrived", false}}, {Member: "mb", Began: at, state: state{serial, "arrived", false}}}
		put(by, record{Kind: kindFired, Firing: &firing{Rule: "all-arrived", Made: made, Held: 10, Witness: witness}})
		for _, m := range []string{"ma", "mb"} {
			h := handled{Region: "barrier", Entry: 1, Name: "arrived", Predicate: "all-arrived", Decision: made, Target: m}
			put(w.member, record{Kind: kindBegin, By: m, Handled: &h})
			put(w.member, record{Kind: kindEnd, By: m, Handled: &h})
			told := h
			told.Fate = "applied"
			put(by, record{Kind: kindFate, Handled: &told})
		}
	}
	put(w.leads, record{Kind: kindTotal, Shown: &shown{Counters: map[string]uint64{}}})
	return w
}

// nth is the n-th record of a kind, from 0.
func (w *written) nth(kind string, n int) (at int, r *record) {
	for i, r := range w.records {
		if r.Kind == kind {
			if n == 0 {
				return i, r
			}
			n--
		}
	}
	panic("there is no such record")
}

func (w *written) without(kind string, n int) {
	i, _ := w.nth(kind, n)
	w.records[i] = &record{Kind: "none"}
}

// wait has all-waited fire in a second epoch, ma have arrived long before, and mb not. Of the epoch before there
// is a witness of so many members, ma first.
func (w *written) wait(members int) {
	_, set := w.nth(kindSet, 0)
	set.At = -2 * waited
	i, first := w.nth(kindFired, 0)
	again := *first.Firing
	again.Rule, again.Made.Epoch = "all-waited", 2
	w.records, w.whose = append(w.records, &record{Kind: kindFired, At: first.At, Firing: &again}), append(w.whose, w.whose[i])
	first.Firing.Rule, first.Firing.Witness, first.At = "decides", first.Firing.Witness[:members], -waited
	for range 2 {
		w.without(kindBegin, 0)
		w.without(kindEnd, 0)
		w.without(kindFate, 0)
	}
}

// TestJudgesBite: the judges find the faults of spoilt records, and none in good records.
func TestJudgesBite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		judge string
		spoil func(*written)
	}{
		"all is well":                {"", func(*written) {}},
		"a fate is lost with a kill": {"", func(w *written) { w.without(kindFate, 0) }},
		"a state that never was": {"S", func(w *written) {
			_, r := w.nth(kindFired, 0)
			r.Firing.Witness[0].Serial = 9
		}},
		"other values": {"S", func(w *written) {
			_, r := w.nth(kindFired, 0)
			r.Firing.Witness[0].Lit = true
		}},
		"states that were never together": {"S", func(w *written) {
			_, r := w.nth(kindFired, 1)
			r.Firing.Witness[0].Serial = 1
			_, set := w.nth(kindDid, 2) // Of the second state of ma.
			set.At = 5
		}},
		"a stamp before the state": {"S", func(w *written) {
			_, r := w.nth(kindFired, 1)
			r.Firing.Witness[0].Began = 1
		}},
		"held for too long": {"S", func(w *written) {
			_, r := w.nth(kindFired, 0)
			r.Firing.Held = 500
		}},
		"waited for too short a time":                    {"S", func(w *written) { w.wait(2) }},
		"waited with a member that has joined meanwhile": {"", func(w *written) { w.wait(1) }},
		"false on its witness": {"S", func(w *written) {
			_, r := w.nth(kindFired, 0)
			r.Firing.Rule = "mostly-lit"
		}},
		"applied twice": {"A", func(w *written) {
			i, r := w.nth(kindBegin, 0)
			w.records = append(w.records, r)
			w.whose = append(w.whose, w.whose[i])
		}},
		"the same firing in two terms": {"A", func(w *written) {
			_, r := w.nth(kindFired, 1)
			_, first := w.nth(kindFired, 0)
			r.Firing.Witness = first.Firing.Witness
		}},
		"the same runs in two terms": {"A", func(w *written) {
			for _, r := range w.records {
				if r.State != nil {
					r.State.Lit = true
				}
				if r.Firing != nil {
					r.Firing.Modality = "definitely"
					for i := range r.Firing.Witness {
						r.Firing.Witness[i].Lit = true
					}
				}
			}
		}},
		"an older term": {"A", func(w *written) {
			_, first := w.nth(kindBegin, 0)
			_, second := w.nth(kindBegin, 2)
			first.Handled.Decision.Term, second.Handled.Decision.Term = 2, 1
		}},
		"taken by another one": {"A", func(w *written) {
			_, r := w.nth(kindBegin, 0)
			r.By = "mb"
		}},
		"no fate": {"F", func(w *written) { w.without(kindFate, 2) }},
		"two fates": {"F", func(w *written) {
			i, r := w.nth(kindFate, 2)
			w.records, w.whose = append(w.records, r), append(w.whose, w.whose[i])
		}},
		"applied, and it was not": {"F", func(w *written) { w.without(kindEnd, 2) }},
		"applied by the same firing of another term": {"", func(w *written) {
			_, first := w.nth(kindFired, 0)
			_, second := w.nth(kindFired, 1)
			second.Firing.Witness = first.Firing.Witness
			for n := 3; n >= 2; n-- {
				w.without(kindBegin, n)
				w.without(kindEnd, n)
			}
		}},
		"not applied, and it was": {"F", func(w *written) {
			_, r := w.nth(kindFate, 2)
			r.Handled.Fate = "no-such-entry"
		}},
	} {
		w, f := wrote(), newFindings()
		c.spoil(w)
		for i, r := range w.records {
			f.take(w.whose[i], r)
		}
		f.judgeAll(false)
		if c.judge == "" && len(f.breaches) > 0 || c.judge != "" && (len(f.breaches) == 0 || !strings.HasPrefix(f.breaches[0], c.judge)) {
			t.Errorf("%s: judge %q should complain, and there is %q", name, c.judge, f.breaches)
		}
	}
	list := []*stretch{{state: state{Serial: 1}}, {state: state{Serial: 2}}, {state: state{Serial: 3}}, {state: state{Serial: 4}}, {state: state{Serial: 5}}}
	var l loss
	l.add(list, func(s *stretch) int64 { return []int64{7, 0, 7, 0, 8}[s.Serial-1] })
	if l != (loss{states: 2, ranges: 2, lives: 1, rejoins: 1}) {
		t.Errorf("of five states the second and fourth did not come, the fifth in another incarnation: %+v", l)
	}
	f := newFindings()
	if f.lost(&process{}, l); len(f.breaches) != 2 {
		t.Errorf("losses that nobody counted: %q", f.breaches)
	}
}

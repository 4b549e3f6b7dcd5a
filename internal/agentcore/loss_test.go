package agentcore_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestNothingFalseUnderLoss lets a member run beside a receiver that loses
// frames, forgets everything, drops the member and asks again. Whatever the
// receiver concludes must be true, and once nothing is lost any more it knows
// the newest state.
func TestNothingFalseUnderLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &lossy{virtual: rapid.Bool().Draw(t, "virtual")}
		r.core = newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d", Threads: r.virtual}})
		r.exchange(t, false)
		t.Repeat(map[string]func(*rapid.T){
			"set":   r.set,
			"burst": r.burst,
			"end":   r.end,
			"flush": func(t *rapid.T) { r.exchange(t, true) },
			"forget": func(t *rapid.T) {
				r.term++
				r.known, r.last = map[uint64]known{}, 0
				r.recall(rapid.Bool().Draw(t, "dropped"))
			},
			"": func(*rapid.T) {},
		})
		for range 6 { // Hello, welcome, news, resends.
			r.exchange(t, false)
			r.now += 3e9
		}
		r.check(t)
		if k := r.known[r.last]; r.open && (!k.begun || k.n != r.n) || !r.open && k.begun {
			t.Fatalf("the receiver's newest state is %d: %+v, the member's has n=%d, open %t", r.last, k, r.n, r.open)
		}
	})
}

// lossy is a member's true history and what a receiver knows of it.
type lossy struct {
	core        *machine
	out         agentcore.Output
	now         clocksync.Instant
	virtual     bool
	term        uint64
	incarnation uint64

	n     int64 // of the newest state; never twice the same
	open  bool
	spans map[int64]*span

	known map[uint64]known // reports by number
	last  uint64           // all up to this are known, or gone
}

type span struct {
	from, to clocksync.Instant
	ended    bool // explicitly
}

type known struct {
	n            int64
	begun, ended bool
	at           clocksync.Instant
}

func (r *lossy) set(t *rapid.T) {
	r.now++
	if err := r.core.Set(r.now, stamp(r.now), []scgs.Value{scgs.IntValue(r.n + 1)}); err != nil {
		t.Fatal(err)
	}
	if r.spans == nil {
		r.spans = map[int64]*span{}
	}
	if r.open {
		r.spans[r.n].to = r.now
	}
	r.n++
	r.open = true
	r.spans[r.n] = &span{from: r.now, to: clocksync.MaxInstant}
}

func (r *lossy) burst(t *rapid.T) {
	for range 2 * agentcore.RingTransitions {
		r.set(t)
		r.end(t)
	}
}

func (r *lossy) end(t *rapid.T) {
	if !r.open || !r.virtual {
		return
	}
	r.now++
	if err := r.core.End(r.now, stamp(r.now)); err != nil {
		t.Fatal(err)
	}
	r.open = false
	r.spans[r.n].to, r.spans[r.n].ended = r.now, true
}

func (r *lossy) recall(dropped bool) {
	w := &wire.Welcome{Synchronizer: "s", Term: r.term, Member: "w", Incarnation: r.core.Incarnation()}
	if dropped {
		w.Reason = "silent"
	}
	r.core.OnWelcome(r.now, w)
}

// exchange flushes the member once and plays the synchronizer on what arrives.
func (r *lossy) exchange(t *rapid.T, lose bool) {
	r.now++
	if r.virtual && r.open {
		if err := r.core.Alive(r.now, stamp(r.now)); err != nil {
			t.Fatal(err)
		}
	}
	r.core.Flush(r.now, stamp(r.now), &r.out)
	arrives := func() bool { return !lose || rapid.Bool().Draw(t, "arrives") }
	for _, h := range r.out.Hellos {
		if arrives() {
			if h.Incarnation != r.incarnation {
				r.incarnation, r.known, r.last = h.Incarnation, map[uint64]known{}, 0
			}
			r.core.OnWelcome(r.now, &wire.Welcome{
				Synchronizer: "s", Term: r.term, Member: "w", Incarnation: h.Incarnation, Accepted: true,
				Schema: scgs.Schema{{Name: "n", Type: scgs.Int}}, NextSeq: r.last + 1,
			})
		}
	}
	for i := range r.out.Batches {
		if b := &r.out.Batches[i]; arrives() && b.Incarnation == r.incarnation {
			r.take(t, b)
		}
	}
	for _, g := range r.out.Gones {
		if arrives() && g.First > r.last+1 {
			r.last = g.First - 1
		}
	}
	r.ask()
}

func (r *lossy) take(t *rapid.T, b *wire.Batch) {
	last := uint64(0)
	for _, p := range b.Reports {
		if p.Seq <= last {
			t.Fatalf("report %d after %d in one batch", p.Seq, last)
		}
		last = p.Seq
		k := known{begun: !p.End, ended: p.End, at: p.At.Mono}
		if !p.End {
			k.n = p.Row[0].Int()
		}
		r.known[p.Seq] = k
	}
	e := b.Evidence
	if e.Seq == 0 {
		return
	}
	if _, ok := r.known[e.Seq]; !ok {
		r.known[e.Seq] = known{} // It exists, so it will be asked for.
	}
	k := r.known[e.Seq]
	if s := r.spans[k.n]; k.begun && (e.At.Mono <= k.at || e.At.Mono > s.to) {
		t.Fatalf("evidence at %d for %+v of %+v", e.At.Mono, k, s)
	}
}

// ask advances over the numbers known without a gap and asks for the missing ones.
func (r *lossy) ask() {
	for r.known[r.last+1].begun || r.known[r.last+1].ended {
		r.last++
	}
	for seq := range r.known {
		if seq > r.last {
			r.core.OnResend(r.now, &wire.Resend{Incarnation: r.incarnation, From: r.last + 1, To: seq})
			return
		}
	}
}

// check: a known state is a true one, and it lasted until the report after it.
func (r *lossy) check(t *rapid.T) {
	for seq, k := range r.known {
		if !k.begun {
			continue
		}
		s := r.spans[k.n]
		if k.at < s.from || k.at > s.to {
			t.Fatalf("state %d is %+v, in truth %+v", seq, k, s)
		}
		if next, ok := r.known[seq+1]; ok && (next.begun || next.ended) && (next.ended != s.ended || s.to != next.at) {
			t.Fatalf("state %d lasts until %+v, in truth %+v", seq, next, s)
		}
	}
}

// TestRingIsBounded fills the ring beyond both of its limits.
func TestRingIsBounded(t *testing.T) {
	for name, text := range map[string]int{"small rows": 1, "large rows": 250} {
		t.Run(name, func(t *testing.T) {
			var schema scgs.Schema
			for _, n := range []string{"a", "b", "c", "d"} {
				schema = append(schema, scgs.Field{Name: n, Type: scgs.String})
			}
			c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d"}})
			welcome := &wire.Welcome{Synchronizer: "s", Member: "w", Incarnation: 1, Accepted: true, Schema: schema}
			c.OnWelcome(0, welcome)
			c.Recall(0)
			row := make([]scgs.Value, 4)
			for i := range row {
				row[i] = scgs.StringValue(string(make([]byte, text)))
			}
			const total = 4 * agentcore.RingTransitions
			for i := range total {
				if err := c.Set(clocksync.Instant(i), stamp(clocksync.Instant(i)), row); err != nil {
					t.Fatal(err)
				}
			}
			welcome.Term = 1
			c.OnWelcome(total, welcome)
			var out agentcore.Output
			c.Flush(total, stamp(total), &out)
			kept, bytes := 0, 0
			for _, b := range out.Batches {
				for _, r := range b.Reports {
					kept++
					for _, v := range r.Row {
						bytes += len(v.Text())
					}
				}
			}
			if kept > agentcore.RingTransitions || bytes > agentcore.RingBytes {
				t.Errorf("%d transitions with %d bytes were kept", kept, bytes)
			}
			if kept < 50 || len(out.Gones) != 1 || out.Gones[0].First != uint64(total-kept+1) {
				t.Errorf("%d kept, gone: %+v", kept, out.Gones)
			}
			if s := c.Stats(); s.Dropped != uint64(total-kept) {
				t.Errorf("%d counted as dropped, want %d", s.Dropped, total-kept)
			}
		})
	}
}

// TestRingGrows: for unreported states, and no others.
func TestRingGrows(t *testing.T) {
	const least = 256
	now := clocksync.Instant(0)
	var out agentcore.Output
	welcome := &wire.Welcome{Synchronizer: "s", Member: "w", Incarnation: 1, Accepted: true, Schema: scgs.Schema{{Name: "n", Type: scgs.Int}}}
	begin := func() *machine {
		c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d"}})
		c.OnWelcome(now, welcome)
		return c
	}
	set := func(c *machine, states int) {
		for range states {
			now++
			if err := c.Set(now, stamp(now), []scgs.Value{scgs.IntValue(int64(now))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush := func(c *machine) (told int) {
		now++
		c.Flush(now, stamp(now), &out)
		for _, b := range out.Batches {
			told += len(b.Reports)
		}
		return told
	}

	c := begin()
	for range 3 * least {
		set(c, 1)
		flush(c)
	}
	if held := c.Held(); held != least {
		t.Errorf("%d states are held, all of them told; want %d", held, least)
	}
	set(c, agentcore.RingTransitions)
	if told, dropped := flush(c), c.Stats().Dropped; told != agentcore.RingTransitions || dropped != 0 {
		t.Errorf("%d states of a burst are told and %d dropped", told, dropped)
	}

	c = begin()
	set(c, least)
	flush(c)
	c.Recall(now) // The last report may be lost.
	set(c, least)
	again := *welcome
	again.Term = 1
	c.OnWelcome(now, &again)
	if told := flush(c); told != 2*least || len(out.Gones) != 0 {
		t.Errorf("after the server was away %d states are told, gone: %+v", told, out.Gones)
	}
}

func TestSetAndFlushDoNotAllocate(t *testing.T) {
	c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d"}})
	c.OnWelcome(0, &wire.Welcome{Synchronizer: "s", Member: "w", Incarnation: 1, Accepted: true, Schema: scgs.Schema{{Name: "n", Type: scgs.Int}}})
	var out agentcore.Output
	now := clocksync.Instant(0)
	row := make([]scgs.Value, 1)
	step := func() {
		now++
		row[0] = scgs.IntValue(int64(now))
		if err := c.Set(now, stamp(now), row); err != nil {
			t.Fatal(err)
		}
		now++
		c.Flush(now, stamp(now), &out)
	}
	for range 2 * agentcore.RingTransitions {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("a state and its batch allocate %v times", n)
	}
}

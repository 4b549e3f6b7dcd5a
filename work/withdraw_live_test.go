package work_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

const liveWithdraw = `
synchronizers:
  gsync:
    members: {group: g, count: {min: 1, max: 64}}
    silence: {after: 500ms}
    state: {away: bool}
    work: {slots: 16, withdraw: {when: .away, back: not .away}}
`

// owned is the state that the owner of a machine sets.
type owned struct{ Away bool }

// owners opens the spaces of members whose state has the field away.
func (g *liveGroup) owners(options func(member string) []work.Option, names ...string) (members []*agent.Member, spaces []*work.Space) {
	g.t.Helper()
	members, spaces = make([]*agent.Member, len(names)), make([]*work.Space, len(names))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			m, err := agent.Join(g.t.Context(), g.server.URL(), agent.Config{Group: "g", Name: name}, agent.OwnConn())
			if err == nil {
				members[i] = m
				if err = m.Set(owned{}); err == nil {
					spaces[i], err = work.Open(g.t.Context(), m, options(name)...)
				}
			}
			errs[i] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		g.t.Fatal(err)
	}
	for i := range names {
		g.t.Cleanup(func() { _, _ = spaces[i].Close(), members[i].Close() })
	}
	return members, spaces
}

// leave has a member be withdrawn or return, and waits until it is.
func leave(t *testing.T, m *agent.Member, s *work.Space, away bool) {
	t.Helper()
	if err := m.Set(owned{away}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return s.Stats().Withdrawn == away })
}

// place is where tasks have run.
type place struct {
	mu  sync.Mutex
	ran map[string]int // by member
}

func (p *place) option(member string) work.Option {
	return work.Func("task", func(context.Context, int) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ran[member]++
		return 0, nil
	})
}

func (p *place) at(member string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ran[member]
}

// TestLiveWithdraw: a member whose owner takes it back begins no task and no object any more but those that are pinned
// or bound to it. It gets work again once its owner gives it back.
func TestLiveWithdraw(t *testing.T) {
	t.Parallel()
	g := newLive(t, liveWithdraw, 3)
	w, p := newWitness(), &place{ran: map[string]int{}}
	members, list := g.owners(func(member string) []work.Option { return append(w.options(member), p.option(member)) }, "a", "b", "c")
	a, b := list[0], list[1]
	serveLive(t, list[2])
	const free = 6
	ids := []string{"bound", "pinned"}
	for i := range free {
		ids = append(ids, strconv.Itoa(i))
	}
	for _, id := range ids {
		at := []work.PutOption{}
		if id == "bound" {
			at = append(at, work.At("b"))
		}
		if err := a.Create(limited(t), "tally", id, 0, at...); err != nil {
			t.Fatal(err)
		}
	}
	sent := map[string]int{}
	send := func(id, do string) {
		t.Helper()
		if err := a.Send(limited(t), id, "note", note{id, "a", do, sent[id]}); err != nil {
			t.Fatal(err)
		}
		sent[id]++
	}
	phase := func() {
		t.Helper()
		var both sync.WaitGroup
		for _, s := range []*work.Space{a, b} { // Both put tasks.
			both.Go(func() {
				if err := s.Wait(limited(t)); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	last := func(id string) string { return w.log(id)[len(w.log(id))-1][:1] }
	until(t, func() bool { return a.Move("tally", "pinned", "b") == nil })
	for i := range free / 2 { // Objects that are at b, and idle.
		if err := a.Move("tally", strconv.Itoa(i), "b"); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		do := ""
		if id == "pinned" {
			do = "pin"
		}
		send(id, do)
	}
	phase()
	if last("pinned") != "b" || last("bound") != "b" || last("0") != "b" {
		t.Fatalf("before: %v %v %v", w.log("pinned"), w.log("bound"), w.log("0"))
	}

	leave(t, members[1], b, true)
	before := p.at("b")
	for range 3 {
		for _, id := range ids {
			send(id, "")
		}
		putAll(t, a, 20)
		if err := b.Put(limited(t), "task", 0); err != nil { // It is a creator still.
			t.Fatal(err)
		}
		phase()
		for _, id := range ids {
			if at, stays := last(id), id == "pinned" || id == "bound"; stays != (at == "b") {
				t.Errorf("object %s has run at %s: %v", id, at, w.log(id))
			}
		}
	}
	if n := p.at("b") - before; n > 0 {
		t.Errorf("%d tasks have run at b although it is withdrawn", n)
	}
	if s := b.Stats(); s.Stay != 2 || s.Withdrawals != 1 || !s.Withdrawn {
		t.Errorf("b has %+v", s)
	}
	if err := a.Move("tally", "0", "b"); err == nil || err.Error() != `work: move: object "tally/0": it cannot move to member "b", which takes no work now: it is withdrawn, or drains` {
		t.Errorf("a move to b: %v", err)
	}

	leave(t, members[1], b, false)
	until(t, func() bool { return a.Move("tally", "0", "b") == nil })
	send("0", "")
	phase()
	if at := last("0"); at != "b" {
		t.Errorf("b is back, and the object has run at %s", at)
	}
	for _, id := range ids {
		if !inOrder(w.log(id), "a", sent[id]) {
			t.Errorf("object %s: %v", id, w.log(id))
		}
	}
}

// TestLiveWithdrawBusy: an object that serves messages when its member is withdrawn goes on elsewhere once it has
// served the one that runs.
func TestLiveWithdrawBusy(t *testing.T) {
	t.Parallel()
	g := newLive(t, liveWithdraw, 2)
	w := newWitness()
	members, list := g.owners(w.options, "a", "b")
	a, b := list[0], list[1]
	serveLive(t, b)
	if err := a.Create(limited(t), "tally", "x", 0, work.At()); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return a.Move("tally", "x", "b") == nil })
	for n, do := range []string{"wait", "end"} {
		if n == 1 {
			if at := <-w.waits; at != "b" {
				t.Fatalf("it runs at %s", at)
			}
			leave(t, members[1], b, true)
		}
		if err := a.Send(limited(t), "x", "note", note{"x", "a", do, n}); err != nil {
			t.Fatal(err)
		}
	}
	close(w.hold)
	if err := a.Wait(limited(t)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.log("x")); got != "[b a/0 a a/1]" {
		t.Error(got)
	}
}

// TestLiveAllWithdrawn: if all members are withdrawn each keeps its work, and does it.
func TestLiveAllWithdrawn(t *testing.T) {
	t.Parallel()
	g := newLive(t, liveWithdraw, 2)
	w, p := newWitness(), &place{ran: map[string]int{}}
	members, list := g.owners(func(member string) []work.Option { return append(w.options(member), p.option(member)) }, "a", "b")
	serveLive(t, list[1])
	for i := range list {
		leave(t, members[i], list[i], true)
	}
	if err := list[0].Create(limited(t), "tally", "x", 0); err != nil {
		t.Fatal(err)
	}
	if err := list[0].Send(limited(t), "x", "note", note{"x", "a", "", 0}); err != nil {
		t.Fatal(err)
	}
	putAll(t, list[0], 5)
	if err := list[0].Wait(limited(t)); err != nil {
		t.Fatal(err)
	}
	if p.at("a")+p.at("b") != 5 || len(w.log("x")) != 1 {
		t.Errorf("tasks: %v, object: %v", p.ran, w.log("x"))
	}
}

// TestLiveWithdrawReload: another rule counts at once, and without one a member takes work again.
func TestLiveWithdrawReload(t *testing.T) {
	t.Parallel()
	g := newLive(t, liveWithdraw, 2)
	p := &place{ran: map[string]int{}}
	members, list := g.owners(func(member string) []work.Option { return []work.Option{p.option(member)} }, "a", "b")
	reload := func(rule string) {
		t.Helper()
		text := strings.Replace(liveWithdraw, ", withdraw: {when: .away, back: not .away}", rule, 1)
		cfg, err := synchronizer.ParseConfig("test.yaml", []byte(text), synchronizer.Members("gsync", 2))
		if err == nil {
			err = g.sync.Reload(cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	withdrawn := func(away ...bool) {
		t.Helper()
		until(t, func() bool { return list[0].Stats().Withdrawn == away[0] && list[1].Stats().Withdrawn == away[1] })
	}
	leave(t, members[1], list[1], true)
	reload("")
	withdrawn(false, false)
	reload(`, withdraw: {when: 'not .away or .name == "b"'}`)
	withdrawn(true, true)
	reload(`, withdraw: {when: '.name == "none"', back: .away}`)
	withdrawn(true, false)
	reload(`, withdraw: {when: .away, back: not .away}`)
	withdrawn(false, true)
	if n := list[0].Stats().Withdrawals; n != 1 {
		t.Errorf("a was withdrawn %d times", n)
	}
}

// TestLiveWithdrawLoop: a member that is withdrawn stays in a loop without rows, and its body sees no iteration
// meanwhile. It gets rows once it is back. Each row is done once in each iteration.
func TestLiveWithdrawLoop(t *testing.T) {
	t.Parallel()
	g := newLive(t, liveWithdraw, 2)
	members, list := g.owners(func(string) []work.Option { return nil }, "a", "b")
	const rows = 40
	type counts [2]int
	add := func(x, y counts) counts { return counts{x[0] + y[0], x[1] + y[1]} }
	body := func(i int, l *work.ElasticLoop, decide func(number int, by counts) (goesOn bool)) error {
		for it, err := range l.Iterations(limited(t)) {
			if err != nil {
				return err
			}
			var own counts
			for range it.Mine() {
				own[i]++
			}
			by, err := work.Reduce(limited(t), it, own, add)
			if err != nil {
				return err
			}
			if by[0]+by[1] != rows {
				return fmt.Errorf("iteration %d has done %v rows", it.Number, by)
			}
			if !decide(it.Number, by) {
				break
			}
		}
		return nil
	}
	var seen []int // iterations of b
	other := make(chan error, 1)
	l := work.Loop(list[1], "rows", rows, nil)
	go func() {
		other <- body(1, l, func(number int, _ counts) bool {
			seen = append(seen, number)
			return true
		})
	}()
	stage, without, last := 0, 0, 0
	err := body(0, work.Loop(list[0], "rows", rows, nil, work.Home()), func(number int, by counts) bool {
		last = number
		switch {
		case stage == 0 && by[1] > 0:
			stage = 1
			if err := members[1].Set(owned{true}); err != nil {
				t.Error(err)
			}
		case stage == 1 && by[1] == 0:
			if without++; without == 3 {
				stage = 2
				if err := members[1].Set(owned{false}); err != nil {
					t.Error(err)
				}
			}
		case stage == 2 && by[1] > 0:
			stage = 3
		}
		return stage < 3
	})
	if err := errors.Join(err, <-other); err != nil {
		t.Fatal(err)
	}
	if stage != 3 || len(seen) > last-2 {
		t.Errorf("stage %d; b has seen %d of %d iterations", stage, len(seen), last)
	}
	if s := list[1].Stats(); s.Withdrawals != 1 || s.Withdrawn {
		t.Errorf("b has %+v", s)
	}
	if s := l.Stats(); s.Withdrawals != 1 || s.Withdrawing < 0 || s.Used < 0 || s.Used > 1 {
		t.Errorf("the loop of b has %+v", s)
	}
}

// TestLiveBusyFromTheStart: a member that is withdrawn when a loop begins has no part in it, and the loop does not wait
// for it; its body ends with the loop.
func TestLiveBusyFromTheStart(t *testing.T) {
	t.Parallel()
	g := newLive(t, liveWithdraw, 2)
	members, list := g.owners(func(string) []work.Option { return nil }, "a", "b")
	leave(t, members[1], list[1], true)
	other := make(chan error, 1)
	go func() {
		for it, err := range work.Loop(list[1], "rows", 9, nil).Iterations(limited(t)) {
			if err == nil {
				err = fmt.Errorf("b has iteration %d", it.Number)
			}
			other <- err
			return
		}
		other <- nil
	}()
	number := 0
	for it, err := range work.Loop(list[0], "rows", 9, nil, work.Home()).Iterations(limited(t)) {
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range it.Mine() {
			n++
		}
		all, err := work.Reduce(limited(t), it, n, func(a, b int) int { return a + b })
		if err != nil || all != 9 || n != 9 {
			t.Fatalf("iteration %d: %d of %d rows: %v", it.Number, n, all, err)
		}
		if number = it.Number; number == 5 {
			break
		}
	}
	if err := <-other; err != nil || number != 5 {
		t.Errorf("after iteration %d: %v", number, err)
	}
}

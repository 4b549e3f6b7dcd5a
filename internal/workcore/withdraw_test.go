package workcore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// TestWithdrawnSpaces: tasks are done once while members are withdrawn and return at random, in either topology, and
// each phase ends although members are withdrawn then.
func TestWithdrawnSpaces(t *testing.T) {
	n := testcount.Of(t, "WORK", 150)
	kills, withdrawals, moves := 0, 0, 0
	for seed := range uint64(n) { //nolint:gosec // Above 0.
		w := newSpace(seed)
		w.withdraws = true
		if w.live(); len(w.faults) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.faults, "\n"))
		}
		kills, withdrawals, moves = kills+w.kills, withdrawals+w.withdrawals, moves+w.moves
	}
	if t.Logf("%d worlds: %d kills, %d withdrawals, %d moves", n, kills, withdrawals, moves); withdrawals == 0 {
		t.Error("no member was withdrawn")
	}
}

// TestWithdrawnObjects: as TestObjects, while members are withdrawn and return at random. No member that gives its work
// away begins to run an object that may leave.
func TestWithdrawnObjects(t *testing.T) {
	for _, durable := range []bool{false, true} {
		n := testcount.Of(t, "WORK", 150)
		kills, withdrawals, served, parcels := 0, 0, 0, 0
		for seed := range uint64(n) { //nolint:gosec // Above 0.
			w := newEstate(seed, durable)
			w.withdraws = true
			if w.live(); len(w.faults) > 0 {
				t.Fatalf("durable %v, seed %d: %s", durable, seed, strings.Join(w.faults, "\n"))
			}
			kills, withdrawals, served, parcels = kills+w.kills, withdrawals+w.withdrawals, served+w.served, parcels+w.parcels
		}
		if t.Logf("durable %v: %d worlds: %d kills, %d withdrawals, %d messages, %d parcels", durable, n, kills, withdrawals, served, parcels); withdrawals == 0 {
			t.Error("no member was withdrawn")
		}
	}
}

// TestHysteresis: the condition that would change something has to hold for the hold time without interruption, and
// while both hold the member is withdrawn.
func TestHysteresis(t *testing.T) {
	const s = time.Second
	type step struct {
		at         time.Duration
		when, back bool
		away       bool
		again      time.Duration // -1: never
	}
	for name, c := range map[string]struct {
		hold  time.Duration
		steps []step
	}{
		"at once":   {0, []step{{1 * s, false, false, false, -1}, {2 * s, true, false, true, -1}, {3 * s, false, false, true, -1}, {4 * s, false, true, false, -1}}},
		"both hold": {0, []step{{1 * s, true, true, true, -1}, {2 * s, true, true, true, -1}, {3 * s, false, true, false, -1}}},
		"an interruption begins the time again": {5 * s, []step{
			{1 * s, true, false, false, 6 * s},
			{5 * s, false, false, false, -1},
			{6 * s, true, false, false, 11 * s},
			{10999 * time.Millisecond, true, false, false, 11 * s},
			{11 * s, true, false, true, -1},
			{12 * s, false, true, true, 17 * s},
			{14 * s, true, true, true, -1},
			{15 * s, false, true, true, 20 * s},
			{20 * s, false, true, false, -1},
		}},
	} {
		var h Hysteresis
		for _, step := range c.steps {
			again := clocksync.MaxInstant
			if step.again >= 0 {
				again = clocksync.Instant(step.again)
			}
			if got := h.Judge(clocksync.Instant(step.at), step.when, step.back, c.hold); h.Away != step.away || got != again {
				t.Errorf("%s, at %v: away %v, again at %v; want %v, %v", name, step.at, h.Away, got, step.away, again)
			}
		}
	}
	var h Hysteresis
	h.Judge(1, true, false, s)
	h.Restart() // The rule is another one.
	if again := h.Judge(clocksync.Instant(s), true, false, s); h.Away || again != clocksync.Instant(2*s) {
		t.Errorf("after another rule: away %v, again at %v", h.Away, again)
	}
}

// withdrawing is ann with the neighbours bob and cid, of which bob has more to do. A task runs in its slot.
func withdrawing(t *testing.T) (m *Member, out *Output, step func(in *Input)) {
	t.Helper()
	m, out = alone(t, 1, ann, bob, cid)
	now := clocksync.Instant(0)
	step = func(in *Input) {
		t.Helper()
		now += clocksync.Instant(time.Millisecond)
		if m.Step(now, in, out); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	step(frameOf(bob, Frame{Holds: &Holds{Number: 1, Load: 5}}))
	step(frameOf(cid, Frame{Holds: &Holds{Number: 1}}))
	step(put("x"))
	return m, out, step
}

func frameOf(from Peer, f Frame) *Input {
	f.From, f.To, f.Phase = from, ann, 1
	return &Input{Kind: InFrame, Frame: &f}
}

var cid = Peer{"cid", 1}

// saidIn lists what a step has said, and what it has begun: "bob away", "cid gets o", "run o".
func saidIn(out *Output) (list []string) {
	for i := range out.Frames {
		switch f := &out.Frames[i]; {
		case f.Holds != nil && f.Holds.Away:
			list = append(list, f.To.Name+" away")
		case f.Parcel != nil:
			for _, l := range f.Parcel.Leases {
				list = append(list, f.To.Name+" gets "+l.Lease.Task.ID)
			}
		}
	}
	for _, y := range out.Yields {
		list = append(list, fmt.Sprint("yield ", y.Slot))
	}
	for _, r := range out.Runs {
		list = append(list, "run "+r.Task.ID)
	}
	return list
}

// TestWithdrawnMember: what a member gives away that is withdrawn, what stays, and that it takes work again.
func TestWithdrawnMember(t *testing.T) {
	m, out, step := withdrawing(t)
	want := func(what string, want ...string) {
		t.Helper()
		if got := saidIn(out); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	step(&Input{Kind: InPut, Task: &Task{ID: "free", Func: "new", Object: &Object{}}})
	step(&Input{Kind: InPut, Task: &Task{ID: "next", Func: "new", Object: &Object{Near: []string{"free"}}}})
	step(&Input{Kind: InPut, Task: &Task{ID: "bound", Func: "new", Object: &Object{At: []string{"ann"}}}})
	step(&Input{Kind: InPut, Task: &Task{ID: "either", Func: "new", Object: &Object{At: []string{"ann", "bob"}}}})
	step(put("t"))
	want("before")

	step(&Input{Kind: InWithdraw})
	want("withdrawn", "cid gets free", "cid gets next", "bob gets either", "bob away", "cid away", "yield 0") // In the order of the puts.
	if told := out.Told; !told.Withdrawn || told.Withdrawals != 1 || told.Idle {
		t.Errorf("it tells %+v", told)
	}
	step(&Input{Kind: InWithdraw})
	want("once more")
	step(returned(Done, ""))
	want("the slot is free", "run bound")
	step(&Input{Kind: InDone, Step: &Step{Record: Record{Fate: Kept, Served: 1}}})
	want("bound is idle")
	if r := m.Report(clocksync.Instant(time.Second)).Withdrawal; out.Told.Stay != 1 || r == nil || r.Stay != 1 || !slices.Equal(r.Objects, []string{"bound"}) || r.Alone || r.Seconds <= 0 || r.Seconds >= 1 {
		t.Errorf("%d objects stay, %+v", out.Told.Stay, r)
	}
	step(frameOf(bob, Frame{Demand: &Demand{Number: 1, Tasks: 3}}))
	want("bob asks", "bob gets t")

	free := m.accounts.own.leaseOf(m.accounts.own.account.objects["free"])
	step(frameOf(cid, Frame{Parcel: &Parcel{Leases: []Parted{{ann, free}}}}))
	want("cid takes no work any more", "bob gets free")
	foreign := func(object *Object, pinned bool) *Input {
		l := Lease{Task: Task{ID: "o", Func: "new", Object: object}, Inbox: []Message{{ID: "m", Func: "f"}}, Pinned: pinned}
		return frameOf(bob, Frame{Parcel: &Parcel{Push: m.peers[0].pushed + 1, Leases: []Parted{{bob, l}}}})
	}
	step(foreign(&Object{}, false))
	want("an object that is sent here", "bob gets o")
	step(foreign(&Object{}, true))
	want("a pinned one", "run o")

	step(put("u"))
	want("a new task")
	step(&Input{Kind: InWithdraw, Active: true})
	if got := saidIn(out); len(got) > 0 || !slices.ContainsFunc(out.Frames, func(f Frame) bool { return f.Holds != nil }) {
		t.Errorf("back: %q, %v", got, out.Frames)
	}
	step(&Input{Kind: InDone, Step: &Step{Record: Record{Fate: Kept, Served: 1, Pinned: true}}})
	want("the slot is free", "run u")
	if told := out.Told; told.Withdrawn || told.Withdrawals != 1 || told.Stay != 0 || m.Report(0).Withdrawal != nil {
		t.Errorf("it tells %+v", told)
	}
}

// TestNobodyTakesWork: a member that is withdrawn keeps its work and does it while no neighbour takes work, and gives it
// away once one does. One that drains does the same.
func TestNobodyTakesWork(t *testing.T) {
	for name, begin := range map[string]Kind{"withdrawn": InWithdraw, "drains": InDrain} {
		m, out, step := withdrawing(t)
		for _, p := range []Peer{bob, cid} {
			step(frameOf(p, Frame{Holds: &Holds{Number: 2, Away: true}}))
		}
		step(put("t"))
		step(put("u"))
		step(&Input{Kind: begin})
		if got, want := saidIn(out), []string{"bob away", "cid away"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if r := m.Report(0).Withdrawal; begin == InWithdraw && (r == nil || !r.Alone) {
			t.Errorf("%s: reported %+v", name, r)
		}
		step(returned(Done, ""))
		if got, want := saidIn(out), []string{"run t"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		step(frameOf(cid, Frame{Holds: &Holds{Number: 3}}))
		step(returned(Done, ""))
		if got := saidIn(out); slices.Contains(got, "run u") {
			t.Errorf("%s, and cid takes work: %q", name, got)
		}
		step(frameOf(cid, Frame{Demand: &Demand{Number: 1, Tasks: 1}}))
		if got, want := saidIn(out), []string{"cid gets u"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestMoveToWithdrawn: an object does not move to a member that takes no work.
func TestMoveToWithdrawn(t *testing.T) {
	m, out, step := withdrawing(t)
	step(&Input{Kind: InPut, Task: &Task{ID: "o", Func: "new", Object: &Object{}}})
	step(frameOf(cid, Frame{Holds: &Holds{Number: 2, Away: true}}))
	m.Step(m.now, &Input{Kind: InMove, ID: "o", To: "cid"}, out)
	if want := `object "o": it cannot move to member "cid", which takes no work now: it is withdrawn, or drains`; out.Err == nil || out.Err.Error() != want {
		t.Errorf("%v, want %s", out.Err, want)
	}
}

package workcore

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

var (
	ann = Peer{"ann", 1}
	bob = Peer{"bob", 1}
)

// alone makes a member and tells it a roster.
func alone(tb testing.TB, slots int, roster ...Peer) (*Member, *Output) {
	tb.Helper()
	strategy, err := local.New(local.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	m, out := NewMember(Options{Self: ann, Slots: slots, Strategy: strategy}), &Output{}
	m.Step(0, &Input{Kind: InRoster, Roster: roster}, out)
	return m, out
}

func put(id string) *Input {
	return &Input{Kind: InPut, Task: &Task{ID: id, Func: "f"}}
}

func returned(fate Fate, why string) *Input {
	return &Input{Kind: InDone, Step: &Step{Record: Record{Fate: fate, Error: why}}}
}

// TestAlone: a member without others runs what it puts, by key, and retries what fails.
func TestAlone(t *testing.T) {
	m, out := alone(t, 1, ann)
	var got []string
	step := func(in *Input) {
		m.Step(1, in, out)
		for _, r := range out.Runs {
			got = append(got, "run "+r.Task.ID)
		}
		for _, r := range out.Results {
			got = append(got, fmt.Sprintf("%s %v %s", r.ID, r.Fate, r.Error))
		}
		for range out.Stops {
			got = append(got, "stop")
		}
		if out.Err != nil {
			got = append(got, out.Err.Error())
		}
	}
	step(put("a"))
	late := put("b")
	late.Key = 2
	step(late)
	step(put("c"))
	step(returned(Done, ""))
	step(returned(Failed, "no luck"))
	step(returned(Failed, "no luck"))
	step(returned(Failed, "no luck"))
	step(&Input{Kind: InEnd, Phase: 1})
	step(&Input{Kind: InCancel, ID: "b"})
	step(&Input{Kind: InCancel, ID: "b"})
	if out.Told.Idle != true || out.Told.Open != 0 || out.Told.Phase != 1 {
		t.Errorf("%+v", out.Told)
	}
	step(returned(Done, "")) // Of the task that was cancelled.
	step(put("d"))
	step(&Input{Kind: InYield, Step: &Step{Record: Record{Fate: Done}}})
	step(returned(Kept, ""))
	step(returned(Done, ""))
	want := `run a
run c
a done 
run c
run c
run b
c failed no luck
phase 1: tasks are open, 1 of them, and it was declared over
b failed its program has cancelled it
stop
task "b": it is not open here: a task is cancelled by the member that has put it
run d
record of task "d": it is done: a yield keeps its task, and a function that returns does not
run d
record of task "d": it is kept: a yield keeps its task, and a function that returns does not
d done `
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("%s", s)
	}
}

// TestOver: a member that is not in the roster gives up all, and says what its program has lost.
func TestOver(t *testing.T) {
	m, out := alone(t, 1, ann, bob)
	m.Step(1, put("a"), out)
	m.Step(2, &Input{Kind: InRoster, Roster: []Peer{bob, {"ann", 2}}}, out)
	if !out.Over || len(out.Lost) != 1 || out.Lost[0] != (Lost{ann, 1, 0}) || len(out.Stops) != 1 || out.Wake != clocksync.MaxInstant {
		t.Errorf("%+v", out)
	}
	if m.Step(3, put("b"), out); !out.Over || len(out.Runs)+len(out.Stops)+len(out.Lost) > 0 {
		t.Errorf("%+v", out)
	}
}

// TestPoison: members that die while they run a task poison it, and it is told which were.
func TestPoison(t *testing.T) {
	m, out := alone(t, 0, ann, bob)
	m.Step(1, put("a"), out)
	for life := uint64(1); life <= 3; life++ {
		peer := Peer{"bob", life}
		m.Step(2, &Input{Kind: InRoster, Roster: []Peer{ann, peer}}, out)
		m.Step(3, &Input{Kind: InFrame, Frame: &Frame{From: peer, To: ann, Phase: 1, Demand: &Demand{Number: 1}}}, out)
		if len(out.Frames) == 0 || out.Frames[0].Parcel == nil || len(out.Frames[0].Parcel.Leases) != 1 {
			t.Fatalf("life %d: %+v", life, out.Frames)
		}
		m.Step(4, &Input{Kind: InFrame, Frame: &Frame{From: peer, To: ann, Phase: 1, Holds: &Holds{Number: 1, Settled: 1, List: []Held{{ID: "a", Runs: true}}}}}, out)
	}
	m.Step(5, &Input{Kind: InRoster, Roster: []Peer{ann}}, out)
	if len(out.Results) != 1 || out.Results[0].Fate != Poisoned || out.Results[0].Error != "3 members died while they ran it, bob#3 the last" {
		t.Errorf("%+v", out.Results)
	}
}

// TestFrameChecks: no frame is sent or read that is too large, or says what cannot be.
func TestFrameChecks(t *testing.T) {
	leases := func(n, bytes int) *Parcel {
		p := &Parcel{}
		for i := range n {
			p.Leases = append(p.Leases, Parted{ann, Lease{Task: Task{ID: strconv.Itoa(i), Func: "f", Body: make([]byte, bytes)}}})
		}
		return p
	}
	for _, c := range []struct {
		frame Frame
		want  string
	}{
		{Frame{From: ann}, `frame between "ann" and "": the name of a member has 1 to 128 bytes`},
		{Frame{}, `the frame has 0 parts and must have 1`},
		{Frame{Demand: &Demand{Number: 1}, Holds: &Holds{}}, `the frame has 2 parts and must have 1`},
		{Frame{Demand: &Demand{Tasks: -1}}, `a demand has the number 0 and asks for -1 tasks`},
		{Frame{Parcel: leases(385, 0)}, `the parcel has 385 tasks, and at most 384 are allowed`},
		{Frame{Parcel: leases(2, 40<<10)}, `the parcel has 82058 bytes, and at most 57344 are allowed`},
		{Frame{Parcel: &Parcel{Leases: []Parted{{ann, Lease{Task: Task{ID: "a", Func: "f"}, Key: math.NaN()}}}}}, `the lease of task "a" has the account "ann", the key NaN and 0 failed runs`},
		{Frame{Parcel: &Parcel{Leases: []Parted{{ann, Lease{}}}}}, `task of function "": its ID is empty: give each task a name that no other one has`},
		{Frame{Step: &Step{Record: Record{ID: "a", Result: make([]byte, MaxBody), Rest: make([]byte, MaxBody), Children: []Task{{ID: "b", Func: "f", Body: make([]byte, MaxBody)}}}}}, `record of task "a": it has 50331675 bytes, 0 keys for 1 children, and at most 40894464 bytes are allowed: record more often`},
		{Frame{Step: &Step{Record: Record{ID: "a", Fate: Poisoned}}}, `record of task "a": only its account finds that it is poisoned`},
		{Frame{Step: &Step{Record: Record{ID: "a"}, Keys: []float64{math.NaN()}}}, `record of task "a": the key of a child is NaN: it must be a number`},
		{Frame{Verdict: &Verdict{ID: "a", Outcome: 9}}, `the verdict of "a" outcome 9`},
		{Frame{Holds: &Holds{List: make([]Held, 385)}}, `the list has 385 leases: at most 384 are allowed`},
		{Frame{Holds: &Holds{List: make([]Held, 1)}}, `the list has a task "": an ID has 1 to 128 bytes`},
	} {
		f := c.frame
		if f.From != ann {
			f.From, f.To = ann, bob
			c.want = "frame from ann#1 to bob#1: " + c.want
		}
		if err := f.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// TestLargest: a task with the largest body and names fits into a parcel.
func TestLargest(t *testing.T) {
	name := strings.Repeat("n", MaxName)
	l := Parted{Peer{name, 1}, Lease{Task: Task{ID: name, Func: name, Body: make([]byte, MaxBody)}}}
	f := Frame{From: ann, To: bob, Parcel: &Parcel{Leases: []Parted{l}}}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}

// TestLoad: a task that waits is more than a bag that runs, and a bag with more items is more than one with
// fewer; the last item of a bag is nothing to give.
func TestLoad(t *testing.T) {
	last := -1.0
	for _, c := range []struct{ items, waiting int }{{0, 0}, {2, 0}, {3, 0}, {1000, 0}, {0, 1}, {2, 1}, {0, 2}} {
		m, out := alone(t, 1, ann, bob)
		m.Step(1, put("bag"), out)
		for i := range c.waiting {
			m.Step(1, put(strconv.Itoa(i)), out)
		}
		m.Step(1, &Input{Kind: InItems, Items: c.items}, out)
		m.Step(clocksync.Instant(time.Minute), &Input{Kind: InTick}, out)
		holds := out.Frames[slices.IndexFunc(out.Frames, func(f Frame) bool { return f.Holds != nil })].Holds
		if holds.Load <= last {
			t.Errorf("%d items and %d tasks: a load of %v, and less has %v", c.items, c.waiting, holds.Load, last)
		}
		if last = holds.Load; c.items < 2 && holds.Load != float64(c.waiting) {
			t.Errorf("%d items and %d tasks: a load of %v", c.items, c.waiting, holds.Load)
		}
	}
}

// TestRoom: a member asks for no more leases than it may have, those counted that it has passed on and still
// tells of. Without room it asks nobody, and looks again when there is some.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ passed, tasks int }{{0, MaxHeld - 1}, {MaxHeld - 3, 2}, {MaxHeld - 1, 0}} {
		m, out := alone(t, 1, ann, bob)
		until := clocksync.Instant(time.Second)
		for range c.passed {
			m.passed = append(m.passed, passed{account: bob, to: bob, until: until})
		}
		asked := 0
		demands := func(at clocksync.Instant, in *Input) {
			m.Step(at, in, out)
			for _, f := range out.Frames {
				if f.Demand != nil {
					asked = f.Demand.Tasks
				}
			}
		}
		demands(1, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Holds: &Holds{Number: 1, Load: 9}}})
		if asked != c.tasks {
			t.Errorf("%d leases were passed on: it asks for %d tasks, and has room for %d", c.passed, asked, c.tasks)
		}
		if c.tasks > 0 {
			continue
		}
		for out.Wake < until {
			demands(out.Wake, &Input{Kind: InTick})
		}
		if demands(until, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Holds: &Holds{Number: 2, Load: 9}}}); asked != MaxHeld-1 {
			t.Errorf("there is room again: it asks for %d tasks", asked)
		}
	}
}

// TestPassedWhileAway: a member tells of a lease that it has passed on until the one who gets it has told everybody twice
// what it has. Until then its account may have heard nothing of it, if the server was away.
func TestPassedWhileAway(t *testing.T) {
	cid := Peer{"cid", 1}
	m, out := alone(t, 1, ann, bob, cid)
	holds := func(at clocksync.Instant, number uint64) {
		m.Step(at, &Input{Kind: InFrame, Frame: &Frame{From: cid, To: ann, Phase: 1, Holds: &Holds{Number: number}}}, out)
	}
	holds(1, 7)
	m.passed = append(m.passed, passed{bob, Held{ID: "t", Passed: true}, cid, clocksync.Instant(time.Second), 7})
	tells := func(at time.Duration) bool {
		m.Step(clocksync.Instant(at), &Input{Kind: InTick}, out)
		return len(m.heldOf(bob)) == 1
	}
	if !tells(3 * time.Second) {
		t.Error("its account may have heard nothing, and it tells of the lease no more")
	}
	holds(clocksync.Instant(3*time.Second), 8)
	if !tells(4 * time.Second) {
		t.Error("what cid has told then may have been from before")
	}
	holds(clocksync.Instant(4*time.Second), 9)
	if tells(5 * time.Second) {
		t.Error("cid has told everybody what it has")
	}
}

// TestQuiet: a member without work sends its holds at the pace, and allocates nothing for them.
func TestQuiet(t *testing.T) {
	m, out := alone(t, 2, ann, bob, Peer{"cid", 1})
	now, frames, steps := clocksync.Instant(0), 0, 0
	for now < clocksync.Instant(20*time.Second) {
		now = out.Wake
		m.Step(now, &Input{Kind: InTick}, out)
		steps++
		frames += len(out.Frames)
	}
	in := &Input{Kind: InTick}
	n := testing.AllocsPerRun(100, func() {
		now = now.Add(m.opts.Pace)
		for i := range m.peers { // They are not asked.
			m.view.Neighbours[i].Pending = true
		}
		m.Step(now, in, out)
	})
	if t.Logf("%d steps and %d frames in 20 s; %v allocations a tick", steps, frames, n); n > 0 || steps > 160 {
		t.Errorf("%v allocations a tick, %d steps", n, steps)
	}
	if m.Step(now, &Input{Kind: InEnd, Phase: 1}, out); errors.Is(out.Err, ErrOpen) || out.Told.Phase != 2 {
		t.Errorf("%+v", out)
	}
}

// BenchmarkMember puts and runs an empty task in one member.
func BenchmarkMember(b *testing.B) {
	m, out := alone(b, 1, ann)
	tasks := make([]Task, b.N)
	for i := range tasks {
		tasks[i] = Task{ID: fmt.Sprint("t/", i), Func: "f"}
	}
	in, done := &Input{Kind: InPut}, returned(Done, "")
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		in.Task = &tasks[i]
		m.Step(1, in, out)
		if m.Step(1, done, out); len(out.Results) != 1 {
			b.Fatal(out.Err)
		}
	}
}

// TestUnderway: a demand stays open while pieces of its answer arrive, and an object is not sent again while pieces of
// it leave.
func TestUnderway(t *testing.T) {
	for _, underway := range []bool{false, true} {
		m, out := alone(t, 1, ann, bob)
		demand := uint64(0)
		at := func(d time.Duration) clocksync.Instant { return clocksync.Instant(d) }
		m.Step(at(0), &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Holds: &Holds{Number: 1, Load: 5, Open: 5}}}, out)
		for i := range out.Frames {
			if d := out.Frames[i].Demand; d != nil {
				demand = d.Number
			}
		}
		if demand == 0 {
			t.Fatalf("it asks for nothing: %+v", out.Frames)
		}
		if underway {
			m.Step(at(900*time.Millisecond), &Input{Kind: InUnderway, Ticket: demand}, out)
		}
		m.Step(at(1200*time.Millisecond), &Input{Kind: InTick}, out)
		lease := Parted{bob, Lease{Task: Task{ID: "a", Func: "f"}}}
		m.Step(at(1500*time.Millisecond), &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Parcel: &Parcel{Demand: demand, Leases: []Parted{lease}}}}, out)
		if ran := len(out.Runs) == 1; ran != underway {
			t.Errorf("pieces arrive %t: the task runs %t", underway, ran)
		}
	}
	for _, underway := range []bool{false, true} {
		m, out := alone(t, 0, ann, bob)
		m.Step(1, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Holds: &Holds{Number: 1}}}, out)
		m.Step(1, &Input{Kind: InPut, Task: &Task{ID: "o", Func: "f", Object: &Object{At: []string{"bob"}}}}, out)
		sent := 0
		for now := time.Duration(2); now < 3*time.Second; now += 100 * time.Millisecond {
			in := &Input{Kind: InTick}
			if underway {
				in = &Input{Kind: InUnderway, To: "bob"}
			}
			m.Step(clocksync.Instant(now), in, out)
			for i := range out.Frames {
				if p := out.Frames[i].Parcel; p != nil && p.Push > 0 {
					sent++
				}
			}
		}
		if again := sent > 0; again == underway {
			t.Errorf("pieces leave %t: the object was sent again %d times", underway, sent)
		}
	}
}

package workcore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// TestLoadTold: a member tells of its load when tasks were put, when it has given some, and when it asks for some and has
// less than the other one knows. So no member waits for the next Holds to ask or give by the right figures.
func TestLoadTold(t *testing.T) {
	strategy, err := local.New(local.Config{Kind: local.Diffusion})
	if err != nil {
		t.Fatal(err)
	}
	m, out := NewMember(Options{Self: ann, Phase: 1, Slots: 1, Strategy: strategy}), &Output{}
	frame := func(f Frame) *Input {
		f.From, f.To, f.Phase = bob, ann, 1
		return &Input{Kind: InFrame, Frame: &f}
	}
	told := func(now time.Duration, in *Input) (loads []float64, demands, given int) {
		m.Step(clocksync.Instant(now), in, out)
		for _, f := range out.Frames {
			switch {
			case f.Holds != nil:
				loads = append(loads, f.Holds.Load)
			case f.Demand != nil:
				demands++
			case f.Parcel != nil:
				given = len(f.Parcel.Leases)
			}
		}
		return loads, demands, given
	}
	m.Step(0, &Input{Kind: InRoster, Roster: []Peer{ann, bob}}, out)
	m.Step(0, frame(Frame{Holds: &Holds{Number: 1}}), out)
	var early []float64
	for i := range 40 {
		loads, _, _ := told(time.Duration(i)*time.Millisecond+time.Second, &Input{Kind: InPut, Task: &Task{ID: fmt.Sprint("t", i), Func: "f"}})
		early = append(early, loads...)
	}
	if fmt.Sprint(early) != "[0 16 32]" && fmt.Sprint(early) != "[1 16 32]" {
		t.Errorf("while 40 tasks are put it tells the loads %v", early)
	}
	loads, _, given := told(1050*time.Millisecond, frame(Frame{Demand: &Demand{Number: 1, Tasks: 20}}))
	if given != 20 || len(loads) != 1 || loads[0] != 19 {
		t.Errorf("it gives %d tasks, and tells the loads %v", given, loads)
	}
	for i := range 15 {
		m.Step(clocksync.Instant(1051*time.Millisecond), returned(Done, ""), out)
		if len(out.Results) != 1 {
			t.Fatal(i, out.Err)
		}
	}
	loads, demands, _ := told(1052*time.Millisecond, frame(Frame{Holds: &Holds{Number: 2, Load: 100}}))
	if demands != 1 || len(loads) != 1 || loads[0] != 4 {
		t.Errorf("it asks %d times, and tells the loads %v", demands, loads)
	}
}

// BenchmarkWaiting lists what many tasks read that wait, as each step of a space does whose tasks read data.
func BenchmarkWaiting(b *testing.B) {
	strategy, err := local.New(local.Default())
	if err != nil {
		b.Fatal(err)
	}
	m, out := NewMember(Options{Self: ann, Phase: 1, Slots: 1, Strategy: strategy, Ready: func([]string) bool { return true }}), &Output{}
	m.Step(0, &Input{Kind: InRoster, Roster: []Peer{ann}}, out)
	m.Step(0, &Input{Kind: InWritten, ID: "img/1"}, out)
	m.Step(0, &Input{Kind: InWritten, ID: "img/2"}, out)
	for i := range 3000 {
		m.Step(0, &Input{Kind: InPut, Task: &Task{ID: fmt.Sprint("t", i), Func: "f", Reads: []string{strings.Clone("img/1"), "img/2"}}}, out)
	}
	var list [][]string
	b.ReportAllocs()
	for b.Loop() {
		if list = m.Waiting(list[:0]); len(list) != 1 {
			b.Fatal(list)
		}
	}
}

// TestTurnedAway: a member that refused others tells one of them of each task that it puts, and waits for no other report. It tells
// all of them when it puts the first one, and no member of a task that it can start. A member that was refused beside a load hears of
// the double of it.
func TestTurnedAway(t *testing.T) {
	strategy, err := local.New(local.Config{Kind: local.Chunk, Cut: "ss"})
	if err != nil {
		t.Fatal(err)
	}
	others := []Peer{bob, {"cyd", 1}, {"dan", 1}}
	m, out := NewMember(Options{Self: ann, Phase: 1, Slots: 1, Strategy: strategy}), &Output{}
	var heard []string
	at := 10 * time.Second
	step := func(in *Input) {
		at += time.Millisecond
		m.Step(clocksync.Instant(at), in, out)
		heard = heard[:0]
		for _, f := range out.Frames {
			if f.Holds != nil {
				heard = append(heard, fmt.Sprint(f.To.Name, " ", f.Holds.Load))
			}
		}
	}
	puts := 0
	put := func(want string) {
		t.Helper()
		puts++
		if step(&Input{Kind: InPut, Task: &Task{ID: strconv.Itoa(puts), Func: "f"}}); fmt.Sprint(heard) != want {
			t.Errorf("with task %d it tells %v, want %s", puts, heard, want)
		}
	}
	demands := map[Peer]uint64{}
	ask := func(from Peer, given int) {
		t.Helper()
		demands[from]++
		step(&Input{Kind: InFrame, Frame: &Frame{From: from, To: ann, Phase: 1, Demand: &Demand{Number: demands[from]}}})
		for _, f := range out.Frames {
			if f.Parcel != nil && f.To == from {
				given -= len(f.Parcel.Leases)
			}
		}
		if given != 0 {
			t.Errorf("%s gets %d tasks less than it should", from.Name, given)
		}
	}
	step(&Input{Kind: InRoster, Roster: append([]Peer{ann}, others...)})
	for _, p := range others {
		step(&Input{Kind: InFrame, Frame: &Frame{From: p, To: ann, Phase: 1, Holds: &Holds{Number: 1}}})
	}
	at += 9 * time.Second // It has been quiet.
	step(&Input{Kind: InTick})
	at += 100 * time.Millisecond
	for _, p := range others {
		ask(p, 0)
	}
	put("[]") // It starts at once.
	put("[bob 1 cyd 1 dan 1]")
	ask(others[0], 1)
	ask(others[1], 0)
	ask(others[2], 0)
	put("[cyd 1]")
	put("[dan 2]")
	put("[]")
	ask(others[0], 1)
	ask(others[1], 1)
	ask(others[2], 1)
	ask(others[2], 0)
	for range 10 {
		step(&Input{Kind: InTick})
		if len(heard) > 0 {
			t.Errorf("without a put it tells %v", heard)
		}
	}
	put("[dan 1]")
}

package workcore_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/workcore"
)

func frames() []workcore.Frame {
	task := workcore.Task{ID: "a/2", Func: "f", Body: []byte{0, 1, 255}, Weight: 2.5}
	list := []workcore.Frame{
		{Demand: &workcore.Demand{Number: 7, Tasks: 3}},
		{Demand: &workcore.Demand{Number: 8, Tasks: 4, Offer: true}},
		{Parcel: &workcore.Parcel{Demand: 1 << 60}},
		{Parcel: &workcore.Parcel{Demand: 9, Leases: []workcore.Parted{
			{Account: workcore.Peer{Name: "c", Life: 5}, Lease: workcore.Lease{Task: task, On: 4, Key: -1.5, Try: 2}},
			{Account: workcore.Peer{Name: "b", Life: 6}, Lease: workcore.Lease{Task: workcore.Task{ID: "x", Func: "g"}}},
		}}},
		{Step: &workcore.Step{
			Record: workcore.Record{ID: "a/1", On: 4, Result: []byte("r"), Rest: []byte("left"), Children: []workcore.Task{task}},
			Keys:   []float64{3}, Try: 1, For: workcore.Peer{Name: "d", Life: 8}, Demand: 11,
		}},
		{Step: &workcore.Step{Record: workcore.Record{ID: "a/1", Fate: workcore.Failed, Error: "no"}}},
		{Step: &workcore.Step{Record: workcore.Record{ID: "a/1", On: 4, Rest: []byte("left"), Children: []workcore.Task{
			{ID: "a/3", Func: "f", After: []string{"a/1", "later"}}, task, {ID: "a/4", Func: "f", Part: true},
		}}}},
		{Verdict: &workcore.Verdict{ID: "a/1", On: 4, Failed: true, Try: 1, Outcome: workcore.Stale, Seq: 12}},
		{Holds: &workcore.Holds{Number: 3, Settled: 2, Load: 1.5, Open: 10, List: []workcore.Held{{ID: "q", On: 1, Runs: true}, {ID: "p", Passed: true}}}},
		{Holds: &workcore.Holds{Number: 3, Funcs: []uint64{1, 1 << 63}, List: []workcore.Held{{ID: "q", On: 1}}}},
		{Holds: &workcore.Holds{Number: 4, Away: true, Funcs: []uint64{}, List: []workcore.Held{{ID: "q"}}}},
		{Loop: &workcore.LoopFrame{Name: "rows", Home: true, Version: 7, Heard: 6, Asks: true, Number: 3, Spans: []workcore.Span{{Low: 0, High: 5}, {Low: 9, High: 12}}, Close: true, Value: []byte("net")}},
		{Loop: &workcore.LoopFrame{Name: "rows", Version: 1 << 60, Number: 3, Total: 12, Done: 4, Gives: true, Out: true, Speed: 2.5, Has: true, Result: "*main.Grad", Value: []byte{0, 255}}},
		{Loop: &workcore.LoopFrame{Name: "rows", Home: true, Ended: true, Error: "why"}},
		{MoveOrder: &workcore.MoveOrder{ID: "part/1\x00\xff", To: "c"}},
		{MoveAnswer: &workcore.MoveAnswer{ID: "part/1"}},
		{MoveAnswer: &workcore.MoveAnswer{ID: "part/1", Refusal: "pinned"}},
	}
	for i := range list {
		list[i].From, list[i].To, list[i].Phase = workcore.Peer{Name: "a", Life: 1 << 63}, workcore.Peer{Name: "b", Life: 2}, 3
	}
	return list
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for _, f := range frames() {
		data := f.Append([]byte("before"))[len("before"):]
		got, err := new(workcore.Reader).Read(data)
		if err != nil || !reflect.DeepEqual(*got, f) {
			t.Errorf("read %+v, %v; want %+v", got, err, f)
		}
		for n := range data {
			if _, err := new(workcore.Reader).Read(data[:n]); err == nil {
				t.Errorf("the first %d of %d bytes are read without an error", n, len(data))
			}
		}
	}
}

// TestReaderKeepsNothing: what a reader has read before is not in what it reads next, be it read in full or not.
func TestReaderKeepsNothing(t *testing.T) {
	var r workcore.Reader
	list := frames()
	for range 2 {
		for _, f := range list {
			data := f.Append(nil)
			if got, err := r.Read(data); err != nil || !bytes.Equal(got.Append(nil), data) {
				t.Errorf("read %+v, %v; want %+v", got, err, f)
			}
			_, _ = r.Read(data[:len(data)-1])
		}
		slices.Reverse(list)
	}
}

func TestRefusedFrames(t *testing.T) {
	demand := frames()[0]
	good := demand.Append(nil)
	for text, data := range map[string][]byte{
		"frame: it has 0 bytes: 2 to 41943040 are allowed":        nil,
		"frame: it has 41943041 bytes: 2 to 41943040 are allowed": make([]byte, workcore.MaxWhole+1),
		"frame: it has the form 9, and this program reads 1 to 8": append([]byte{9}, good[1:]...),
		"frame: there is no part 0":                               {1, 0},
		"frame: 1 bytes are left over":                            append(slices.Clip(good), 0),
		"frame: the end is missing":                               good[:len(good)-1],
	} {
		if _, err := new(workcore.Reader).Read(data); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%v: %v; want %s", data[:min(8, len(data))], err, text)
		}
	}
}

// The largest frames that a member may send fit.
func TestLargestFrames(t *testing.T) {
	name, id := strings.Repeat("n", workcore.MaxName), strings.Repeat("i", workcore.MaxID)
	peer := workcore.Peer{Name: name, Life: 1<<64 - 1}
	holds := workcore.Frame{From: peer, To: peer, Phase: 1<<64 - 1, Holds: &workcore.Holds{Number: 1<<64 - 1, Settled: 1<<64 - 1, Open: 1<<31 - 1}}
	for range workcore.MaxHeld {
		holds.Holds.List = append(holds.Holds.List, workcore.Held{ID: id, On: 1<<64 - 1, Runs: true, Passed: true})
	}
	for i := range workcore.MaxFuncs {
		holds.Holds.Funcs = append(holds.Holds.Funcs, 1<<64-1<<10+uint64(i)) //nolint:gosec // It is small.
	}
	parcel := workcore.Frame{From: peer, To: peer, Parcel: &workcore.Parcel{Demand: 1<<64 - 1}}
	for parcel.Check() == nil && len(parcel.Parcel.Leases) < workcore.MaxHeld {
		parcel.Parcel.Leases = append(parcel.Parcel.Leases, workcore.Parted{Account: peer, Lease: workcore.Lease{Task: workcore.Task{ID: "i", Func: "f"}, On: 1<<64 - 1}})
	}
	if parcel.Check() != nil {
		parcel.Parcel.Leases = parcel.Parcel.Leases[1:]
	}
	loop := workcore.Frame{From: peer, To: peer, Phase: 1<<64 - 1, Loop: &workcore.LoopFrame{Name: id, Version: 1<<64 - 1, Heard: 1<<64 - 1, Number: workcore.MaxRows, Error: strings.Repeat("e", workcore.MaxError), Result: strings.Repeat("t", workcore.MaxError), Value: make([]byte, workcore.MaxBody)}}
	for i := range workcore.MaxSpans {
		loop.Loop.Spans = append(loop.Loop.Spans, workcore.Span{Low: workcore.MaxRows - 2*i - 1, High: workcore.MaxRows - 2*i})
	}
	for _, f := range []workcore.Frame{holds, parcel, loop} {
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		data := f.Append(nil)
		if _, err := new(workcore.Reader).Read(data); err != nil {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	for _, frame := range frames() {
		f.Add(frame.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := new(workcore.Reader).Read(data)
		if err != nil {
			return
		}
		data = frame.Append(nil)
		again, err := new(workcore.Reader).Read(data)
		if err != nil || !bytes.Equal(again.Append(nil), data) { // Not DeepEqual: a load may be NaN.
			t.Errorf("read again as %+v, %v; want %+v", again, err, frame)
		}
	})
}

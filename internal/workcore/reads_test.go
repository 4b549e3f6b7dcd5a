package workcore_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// TestReads: tasks wait for data as they wait for tasks, and run once all are written.
func TestReads(t *testing.T) {
	s := workcore.NewStore(workcore.Limits{})
	for id, reads := range map[string][]string{"one": {"x"}, "two": {"x", "y"}, "none": nil} {
		if err := s.Put(&workcore.Task{ID: id, Func: "f", Reads: reads}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		write                     string
		waiting, blocked, missing int
	}{{"", 1, 2, 2}, {"z", 1, 2, 2}, {"x", 2, 1, 1}, {"x", 2, 1, 1}, {"y", 3, 0, 0}} {
		if step.write != "" {
			s.Write(step.write)
		}
		if c := s.Account().Counts(); s.Waiting() != step.waiting || c.Blocked != step.blocked || c.Missing != step.missing {
			t.Errorf("after %q: %d wait, %+v; want %+v", step.write, s.Waiting(), c, step)
		}
	}
	if err := s.Put(&workcore.Task{ID: "late", Func: "f", Reads: []string{"y"}}, 0); err != nil || s.Waiting() != 4 {
		t.Errorf("a task whose data are written: %v, %d wait", err, s.Waiting())
	}
}

// TestReadsChecked: what a task reads is checked, also where it arrives.
func TestReadsChecked(t *testing.T) {
	const sorted = "names have 1 to 128 bytes, and are sorted without repetition"
	for want, task := range map[string]workcore.Task{
		`task "t": it reads 65 data, and at most 64 are allowed: write them as fewer, larger ones`:  {Reads: make([]string, 65)},
		`task "t": it reads data "b": ` + sorted:                                                    {Reads: []string{"b", "b"}},
		`task "t": it reads data "": ` + sorted:                                                     {Reads: []string{""}},
		`task "t": it reads data "` + strings.Repeat("n", 40) + `": ` + sorted:                      {Reads: []string{strings.Repeat("n", 129)}},
		`task "t": an object or a message reads data: have its function put a task that reads them`: {Reads: []string{"a"}, For: "o"},
	} {
		task.ID, task.Func = "t", "f"
		if want = strings.ReplaceAll(want, "  ", " "); task.Check() == nil || !strings.HasPrefix(task.Check().Error(), want) {
			t.Errorf("%v; want %s", task.Check(), want)
		}
	}
	peer := workcore.Peer{Name: "a", Life: 1}
	f := workcore.Frame{From: peer, To: workcore.Peer{Name: "b"}, Phase: 1, Parcel: &workcore.Parcel{Demand: 1, Leases: []workcore.Parted{{
		Account: peer, Lease: workcore.Lease{Task: workcore.Task{ID: "t", Func: "f", Reads: []string{"p", "q"}}},
	}}}}
	data := f.Append(nil)
	var r workcore.Reader
	if got, err := r.Read(data); err != nil || !slices.Equal(got.Parcel.Leases[0].Lease.Task.Reads, []string{"p", "q"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range data {
		if _, err := r.Read(data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are read without an error", n, len(data))
		}
	}
	at := bytes.LastIndexByte(data, 'q')
	data[at] = 'a'
	if _, err := r.Read(data); err == nil || !strings.Contains(err.Error(), sorted) {
		t.Errorf("names that are not sorted: %v", err)
	}
	data[at-4] = 200
	if got, err := r.Read(data); err == nil {
		t.Errorf("a length that is too large: %s", fmt.Sprint(got))
	}
}

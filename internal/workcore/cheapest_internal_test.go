package workcore

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/balance/local"
)

// TestCheapest: a member that asks gets tasks of the class that costs it the fewest data a task. Near, it gets only those whose
// data it has.
func TestCheapest(t *testing.T) {
	bob := Peer{Name: "b", Life: 1}
	has := map[string]bool{}
	strategy, err := local.New(local.Default())
	if err != nil {
		t.Fatal(err)
	}
	m := NewMember(Options{
		Self: Peer{Name: "a", Life: 1}, Slots: 1, Strategy: strategy, Ready: func([]string) bool { return false },
		Missing: func(at Peer, reads []string) (n int) {
			if at != bob {
				t.Errorf("asked for %v", at)
			}
			for _, name := range reads {
				if !has[name] {
					n++
				}
			}
			return n
		},
	})
	var out Output
	for i, reads := range []string{"p q", "r", "p q", "p q", "s t", "p q"} { // Two data for four tasks, one for one, two for one.
		task := &Task{ID: strconv.Itoa(i), Func: "f", Reads: strings.Fields(reads)}
		m.Step(0, &Input{Kind: InPut, Task: task}, &out)
		for _, name := range task.Reads {
			m.Step(0, &Input{Kind: InWritten, ID: name}, &out)
		}
	}
	other := Task{ID: "other", Func: "f", Reads: []string{"p", "q"}}
	m.waiting = append(m.waiting, Parted{Account: Peer{Name: "c", Life: 1}, Lease: Lease{Task: other}})
	for _, c := range []struct {
		has   string
		share local.Share
		want  string
	}{
		{"", local.Share{}, ""},
		{"", local.Share{Tasks: 1}, "1"},
		{"", local.Share{Tasks: 3}, "0 2 3"},
		{"", local.Share{Tasks: 6}, "0 2 3 5 1 other"},
		{"", local.Share{Tasks: 99}, "0 2 3 5 1 4 other"},
		{"s t", local.Share{Tasks: 2}, "4 1"},
		{"s t", local.Share{Tasks: 9, Near: true}, "4"},
		{"r p", local.Share{Tasks: 9, Near: true}, "1"},
		{"", local.Share{Tasks: 9, Near: true}, ""},
	} {
		clear(has)
		for name := range strings.FieldsSeq(c.has) {
			has[name] = true
		}
		own, others := m.cheapestTasks(bob, c.share)
		var got []string
		for _, o := range own {
			got = append(got, o.task.ID)
		}
		for _, l := range others {
			got = append(got, l.Lease.Task.ID)
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("the asking member has %q, and the share is %+v: %q, want %q", c.has, c.share, got, c.want)
		}
	}
}

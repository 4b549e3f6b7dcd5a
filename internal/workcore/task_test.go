package workcore

import (
	"math"
	"strings"
	"testing"
)

func TestChecks(t *testing.T) {
	large := make([]byte, MaxBody+1)
	for _, c := range []struct {
		task Task
		want string
	}{
		{Task{Func: "f"}, `task of function "f": its ID is empty: give each task a name that no other one has`},
		{Task{ID: strings.Repeat("x", 129), Func: "f"}, `task "` + strings.Repeat("x", 40) + `"...: its ID has 129 bytes, and at most 128 are allowed`},
		{Task{ID: "a"}, `task "a": it names no function`},
		{Task{ID: "a", Func: strings.Repeat("x", 129)}, `task "a": the name of its function has 129 bytes, and at most 128 are allowed`},
		{Task{ID: "a", Func: "f", Body: large}, `task "a": its body has 16777217 bytes, and at most 16777216 are allowed: put a reference to the data instead`},
		{Task{ID: "a", Func: "f", Weight: -1}, `task "a": its weight is -1: it must be a finite number of at least 0`},
		{Task{ID: "a", Func: "f", Weight: math.NaN()}, `task "a": its weight is NaN: it must be a finite number of at least 0`},
		{Task{ID: "a", Func: "f", Weight: math.Inf(1)}, `task "a": its weight is +Inf: it must be a finite number of at least 0`},
		{Task{ID: "a", Func: "f", After: make([]string, 65)}, `task "a": it runs after 65 tasks, and at most 64 are allowed: put a task between that runs after some of them`},
		{Task{ID: "a", Func: "f", After: []string{"b", ""}}, `task "a": it runs after task "": an ID has 1 to 128 bytes`},
		{Task{ID: "a", Func: "f", After: []string{"b", "a"}}, `task "a": it waits for itself: leave it out of After`},
		{Task{ID: "a", Func: "f", After: []string{"b"}, Part: true}, `task "a": it is a part of another task and runs after 1 tasks: a part waits for no task`},
	} {
		if err := c.task.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	child := Task{ID: "c", Func: "f"}
	for _, c := range []struct {
		record Record
		want   string
	}{
		{Record{}, `record of task "": an ID has 1 to 128 bytes`},
		{Record{ID: "a", Fate: 9}, `record of task "a": there is no fate 9`},
		{Record{ID: "a", Rest: large}, `record of task "a": its rest has 16777217 bytes and its result 0, and at most 16777216 are allowed: split the bag, or record more often`},
		{Record{ID: "a", Fate: Done, Rest: []byte("x")}, `record of task "a": it is done and has a rest`},
		{Record{ID: "a", Fate: Failed, Error: strings.Repeat("x", 1025)}, `record of task "a": its error has 1025 bytes, and at most 1024 are allowed: cut it`},
		{Record{ID: "a", Fate: Failed, Children: []Task{child}}, `record of task "a": it is failed and puts 1 tasks: what a failed run puts does not count`},
		{Record{ID: "a", Children: make([]Task, 1025)}, `record of task "a": it puts 1025 tasks, and at most 1024 are allowed: record more often`},
		{Record{ID: "a", Children: []Task{{ID: "c"}}}, `record of task "a": child 1: task "c": it names no function`},
		{Record{ID: "a", Children: []Task{child, child}}, `record of task "a": child 2 has the ID of another task, "c"`},
		{Record{ID: "c", Children: []Task{child}}, `record of task "c": child 1 has the ID of another task, "c"`},
	} {
		if err := c.record.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

package worksim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// Trace is the tasks and data of a real run. Its members, in the order of their names, are the first nodes.
type Trace struct {
	Took time.Duration // of the real run, from the first put to the end of the last task

	name    string
	members []string
	tasks   []tracedTask // in the order in which they were put
	objects []tracedObject
	lists   []int // of the objects that the tasks read; class has places in it
}

// tracedTask is a task of a trace.
type tracedTask struct {
	id              string
	line            int // on which it was put
	node            int
	at              time.Duration // after the first put
	seconds, weight float64
	bytes           int
	names           []string
	reads           class
}

// tracedObject is data of a trace.
type tracedObject struct {
	node  int
	at    time.Duration
	bytes int
}

// ParseTrace reads the lines that members have written, in any order. The error has the line that is refused.
func ParseTrace(name string, src []byte) (*Trace, error) {
	t := &Trace{name: name}
	var lines []workreport.TraceLine
	var numbers []int
	number := 0
	refuse := func(line int, format string, args ...any) error {
		return fmt.Errorf("%s:%d: "+format, append([]any{name, line}, args...)...)
	}
	for text := range bytes.Lines(src) {
		number++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		l, err := workreport.ParseTraceLine(text)
		if err != nil {
			return nil, refuse(number, "%w", err)
		}
		if lines, numbers = append(lines, l), append(numbers, number); len(lines) > 3*maxItems {
			return nil, refuse(number, "the trace has more than %d lines: trace a shorter run", 3*maxItems)
		}
	}
	places := map[string]int{}
	first, last := math.Inf(1), 0.0
	for i := range lines {
		l := &lines[i]
		places[l.Member] = 0
		switch {
		case l.Put != "":
			first = min(first, l.At)
		case l.Ran != "":
			last = max(last, l.At)
		}
	}
	if math.IsInf(first, 1) {
		return nil, fmt.Errorf("%s: the trace puts no task: give the lines that members with work.Trace have written", name)
	}
	t.members = slices.Sorted(maps.Keys(places))
	for i, m := range t.members {
		places[m] = i
	}
	ran, ranOn, put, objects := map[string]float64{}, map[string]int{}, map[string]bool{}, map[string]int{}
	for i := range lines {
		l, after := &lines[i], max(0, lines[i].At-first)
		if after > maxTime.Seconds() || l.Seconds > maxTime.Seconds() {
			return nil, refuse(numbers[i], "the line is %.6g s after the first put, and its run takes %.6g s: a trace has at most %v", after, l.Seconds, maxTime)
		}
		at := durationOf(after)
		switch {
		case l.Ran != "":
			// A task that ran more than once took the longest of these times: the others were ended before.
			ran[l.Ran], ranOn[l.Ran] = max(ran[l.Ran], l.Seconds, leastWork), numbers[i]
		case l.Data != "":
			if _, ok := objects[l.Data]; ok {
				break // The same bytes once more.
			}
			if l.Bytes > maxObject || len(objects) == maxObjects {
				return nil, refuse(numbers[i], "data %q: they have %d bytes, and %d data come before: at most %d data of %d bytes are simulated: trace a run with fewer or smaller data", l.Data, l.Bytes, len(objects), maxObjects, maxObject)
			}
			objects[l.Data] = len(t.objects)
			t.objects = append(t.objects, tracedObject{places[l.Member], at, l.Bytes})
		case put[l.Put]:
			return nil, refuse(numbers[i], "task %q is put once more: give all tasks of a trace different IDs", l.Put)
		case l.Bytes > maxBytes-bodyBytes || len(l.Reads) > workcore.MaxReads || l.Weight > maxNumber:
			return nil, refuse(numbers[i], "task %q: its argument, its data or its weight is too large: at most %d bytes, %d data and a weight of %v are simulated", l.Put, maxBytes-bodyBytes, workcore.MaxReads, maxNumber)
		default:
			put[l.Put] = true
			t.tasks = append(t.tasks, tracedTask{id: l.Put, line: numbers[i], node: places[l.Member], at: at, weight: l.Weight, bytes: l.Bytes, names: l.Reads})
			if err := (&workcore.Task{ID: l.Put, Func: Plain}).Check(); err != nil {
				return nil, refuse(numbers[i], "%w", err)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ran)) {
		if !put[id] {
			return nil, refuse(ranOn[id], "task %q ran, and no line puts it: trace all members; bags, objects, tasks that run after others and tasks that functions put are not simulated", id)
		}
	}
	classes := map[string]class{"[]": {}}
	for i := range t.tasks {
		task := &t.tasks[i]
		took, ok := ran[task.id]
		if !ok {
			return nil, refuse(task.line, "task %q is put, and no line says how long it ran: trace all members, up to the end of the run", task.id)
		}
		task.seconds = took
		key := fmt.Sprintf("%q", task.names)
		c, ok := classes[key]
		if !ok {
			c.first = len(t.lists)
			for _, data := range task.names {
				o, ok := objects[data]
				if !ok {
					return nil, refuse(task.line, "task %q reads data %q, and no line writes them: trace the member that writes them", task.id, data)
				}
				t.lists = append(t.lists, o)
			}
			slices.Sort(t.lists[c.first:])
			t.lists = append(t.lists[:c.first], slices.Compact(t.lists[c.first:])...)
			c.count = len(t.lists) - c.first
			classes[key] = c
		}
		task.reads = c
	}
	if len(t.tasks) > maxItems {
		return nil, fmt.Errorf("%s: the trace has more than %d tasks: trace a shorter run", name, maxItems)
	}
	slices.SortStableFunc(t.tasks, func(a, b tracedTask) int { return cmp.Compare(a.at, b.at) })
	t.Took = durationOf(min(last-first, maxTime.Seconds()))
	return t, nil
}

func durationOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// setTrace has the scenario put the tasks of a trace. They are one entry of tasks.
func (s *Scenario) setTrace(t *Trace) {
	s.trace = t
	all := defaultTasks()
	all.Count = len(t.tasks)
	s.Tasks, s.Data.Count = []Tasks{all}, len(t.objects)
}

// checkTrace refuses a trace that does not fit the scenario.
func (s *Scenario) checkTrace() error {
	t := s.trace
	if t == nil {
		return nil
	}
	if n := s.countNodes(); len(t.members) > n {
		return fmt.Errorf("%s: the trace has %d members, and the scenario %d nodes: write as many nodes at least", t.name, len(t.members), n)
	}
	for i := range t.tasks {
		sum := 0
		for _, o := range s.objectsOf(t.tasks[i].reads) {
			sum += t.objects[o].bytes
		}
		if sum > s.Work.Data.Cache<<20 {
			return fmt.Errorf("%s:%d: task %q: its data have %d bytes together, and work.data.cache of the scenario allows %d: raise data.cache", t.name, t.tasks[i].line, t.tasks[i].id, sum, s.Work.Data.Cache<<20)
		}
	}
	return nil
}

// resizeTrace has another number of nodes, all of the same kind. The tasks stay.
func (s *Scenario) resizeTrace(nodes int) error {
	if least := len(s.trace.members); len(s.Nodes) != 1 || nodes < least || nodes > maxNodes {
		return fmt.Errorf("%d nodes: use %d to %d nodes, since the trace has %d members, and a scenario with one group of them", nodes, least, maxNodes, least)
	}
	s.Nodes[0].Count = nodes
	return nil
}

// putTrace has the nodes put the tasks of the trace, each when a member put it.
func (w *world) putTrace() {
	w.yields = append(w.yields, w.set.Tasks[0].Yield)
	names := map[class][]string{} // As in draw.
	for i := range w.set.trace.tasks {
		t := &w.set.trace.tasks[i]
		w.weights, w.classes = append(w.weights, t.seconds), append(w.classes, t.reads)
		w.before = append(w.before, w.before[i]+t.seconds)
		if names[t.reads] == nil {
			names[t.reads] = w.set.namesOf(t.reads)
		}
		n, task := w.nodes[t.node], &workcore.Task{ID: t.id, Func: functionName(Plain, 0), Body: span(i, i+1, t.bytes), Weight: t.weight, Reads: names[t.reads]}
		w.After(t.at, func() { n.puts = append(n.puts, task); n.putTasks() })
	}
	w.result.Tasks = len(w.set.trace.tasks)
	w.result.Traced = w.set.trace.Took
}

package balancesim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// line is a line of a trace of loads: the speed of a node from a time on, a task,
// or what two tasks send each other.
type line struct {
	Node  *string  `json:"node,omitempty"`
	Task  *string  `json:"task,omitempty"`
	From  *string  `json:"from,omitempty"`
	To    *string  `json:"to,omitempty"`
	On    *string  `json:"on,omitempty"`
	At    *float64 `json:"at,omitempty"`
	Power *float64 `json:"power,omitempty"`
	Share *float64 `json:"share,omitempty"`
	// Weight is what is reported: the work if it is not given.
	Work   *float64 `json:"work,omitempty"`
	Weight *float64 `json:"weight,omitempty"`
	Size   *float64 `json:"size,omitempty"`
	Bytes  *float64 `json:"bytes,omitempty"`
}

// WriteTrace writes an instance so that ReadTrace gives it back.
func (in *Instance) WriteTrace(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	var err error
	put := func(l line) { err = cmp.Or(err, enc.Encode(l)) }
	for _, s := range in.Speeds {
		put(line{Node: &in.Nodes[s.Node], At: &s.At, Power: &s.Power, Share: &s.Share})
	}
	for _, t := range in.Tasks {
		put(line{Task: &t.Name, At: &t.At, On: &in.Nodes[t.Node], Work: &t.Work, Weight: &t.Weight, Size: &t.Size})
	}
	for _, t := range in.Traffic {
		put(line{From: &in.Tasks[t.From].Name, To: &in.Tasks[t.To].Name, Bytes: &t.Volume})
	}
	return errors.Join(err, out.Flush())
}

// maxLine is the longest line of a trace in bytes.
const maxLine = 4096

// ReadTrace reads an instance; name stands for the file in errors. A line is one
// JSON object of
//
//	{"node":"n1","at":0,"power":2.5,"share":1}
//	{"task":"t1","at":0,"on":"n1","work":1.5,"weight":1.5,"size":1000}
//	{"from":"t1","to":"t2","bytes":500}
//
// with times in seconds. A node is known from its first line on, which must stand
// before the tasks on it; tasks stand before their traffic.
func ReadTrace(name string, r io.Reader) (*Instance, error) {
	t := reading{nodes: map[string]int{}, tasks: map[string]int{}}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, maxLine)
	number := 0
	for scan.Scan() {
		number++
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		if err := t.line(scan.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if err := scan.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s:%d: the line is longer than %d bytes", name, number+1, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, number+1, err)
	}
	if len(t.in.Nodes) == 0 {
		return nil, fmt.Errorf("%s: no node: a trace needs a line such as {\"node\":\"n1\",\"at\":0,\"power\":2.5,\"share\":1}", name)
	}
	return t.sorted(), nil
}

// reading is a trace that is being read.
type reading struct {
	in           Instance
	nodes, tasks map[string]int
}

func (t *reading) line(src []byte) error {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	var l line
	if err := dec.Decode(&l); err != nil {
		return unreadable(err, dec.InputOffset()+1)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("column %d: there is more after the object", dec.InputOffset()+1)
	}
	switch {
	case l.Node != nil:
		return t.speed(&l)
	case l.Task != nil:
		return t.task(&l)
	case l.From != nil:
		return t.traffic(&l)
	}
	return errors.New(`it has none of "node", "task" and "from"`)
}

// unreadable says in the words of a trace why a line is no such object.
func unreadable(err error, column int64) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("column %d: not valid JSON: %w", e.Offset, err)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := "a number of 64 bits"
		switch {
		case e.Field == "":
			return fmt.Errorf("it is an %s and must be an object: {...}", e.Value)
		case e.Type.Kind() == reflect.String:
			want = "a text"
		}
		return fmt.Errorf("column %d: %q is a %s and must be %s", e.Offset, e.Field, e.Value, want)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends within its object")
	}
	return fmt.Errorf("column %d: %w", column, err)
}

// number takes a value that has to be there.
func number(x *float64, key string, most float64) (float64, error) {
	switch {
	case x == nil:
		return 0, fmt.Errorf("%q is missing", key)
	case !(*x >= 0 && *x <= most):
		return 0, fmt.Errorf("%q is %v and must be from 0 to %v", key, *x, most)
	}
	return *x, nil
}

// either gives a value or, where it is not there, another.
func either(x, other *float64) *float64 {
	if x == nil {
		return other
	}
	return x
}

func (t *reading) speed(l *line) error {
	one := 1.0
	at, err := number(l.At, "at", maxTime.Seconds())
	power, err2 := number(l.Power, "power", maxValue)
	share, err3 := number(either(l.Share, &one), "share", 1)
	if err := cmp.Or(err, err2, err3, l.only("node", "at", "power", "share")); err != nil {
		return err
	}
	i, ok := t.nodes[*l.Node]
	if !ok {
		if i = len(t.in.Nodes); i == maxNodes || *l.Node == "" {
			return fmt.Errorf("node %q: names must not be empty, and there may be %d nodes", *l.Node, maxNodes)
		}
		t.nodes[*l.Node] = i
		t.in.Nodes = append(t.in.Nodes, *l.Node)
	}
	t.in.Speeds = append(t.in.Speeds, Speed{at, i, power, share})
	if len(t.in.Speeds) > maxDraws {
		return fmt.Errorf("there may be %d lines of nodes", maxDraws)
	}
	return nil
}

func (t *reading) task(l *line) error {
	zero := 0.0
	at, err := number(either(l.At, &zero), "at", maxTime.Seconds())
	work, err2 := number(l.Work, "work", maxValue)
	weight, err3 := number(either(l.Weight, l.Work), "weight", maxValue)
	size, err4 := number(either(l.Size, &zero), "size", maxValue)
	if err := cmp.Or(err, err2, err3, err4, l.only("task", "at", "on", "work", "weight", "size")); err != nil {
		return err
	}
	if l.On == nil {
		return errors.New(`"on", the node, is missing`)
	}
	on, ok := t.nodes[*l.On]
	if !ok {
		return fmt.Errorf("node %q is not known: its line must stand before this one", *l.On)
	}
	if _, ok := t.tasks[*l.Task]; ok || *l.Task == "" || len(t.in.Tasks) == maxTasks {
		return fmt.Errorf("task %q: names must not be empty or used twice, and there may be %d tasks", *l.Task, maxTasks)
	}
	t.tasks[*l.Task] = len(t.in.Tasks)
	t.in.Tasks = append(t.in.Tasks, Task{*l.Task, at, on, work, weight, size})
	return nil
}

func (t *reading) traffic(l *line) error {
	volume, err := number(l.Bytes, "bytes", maxValue)
	if err := cmp.Or(err, l.only("from", "to", "bytes")); err != nil {
		return err
	}
	if l.To == nil {
		return errors.New(`"to" is missing`)
	}
	from, ok := t.tasks[*l.From]
	to, known := t.tasks[*l.To]
	if !ok || !known || from == to {
		return fmt.Errorf("traffic from %q to %q: they must be two tasks of lines before this one", *l.From, *l.To)
	}
	t.in.Traffic = append(t.in.Traffic, Traffic{from, to, volume})
	if len(t.in.Traffic) > maxTasks {
		return fmt.Errorf("there may be %d lines of traffic", maxTasks)
	}
	return nil
}

// only refuses keys that a kind of line has not.
func (l *line) only(kind string, keys ...string) error {
	for _, k := range []struct {
		key   string
		given bool
	}{
		{"node", l.Node != nil},
		{"task", l.Task != nil},
		{"from", l.From != nil},
		{"to", l.To != nil},
		{"on", l.On != nil},
		{"at", l.At != nil},
		{"power", l.Power != nil},
		{"share", l.Share != nil},
		{"work", l.Work != nil},
		{"weight", l.Weight != nil},
		{"size", l.Size != nil},
		{"bytes", l.Bytes != nil},
	} {
		if k.given && k.key != kind && !slices.Contains(keys, k.key) {
			return fmt.Errorf("a line of a %q has no %q, only %s", kind, k.key, strings.Join(keys, ", "))
		}
	}
	return nil
}

// sorted puts speeds and tasks in the order of time.
func (t *reading) sorted() *Instance {
	in := &t.in
	slices.SortStableFunc(in.Speeds, func(a, b Speed) int { return cmp.Compare(a.At, b.At) })
	order := make([]int, len(in.Tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(in.Tasks[a].At, in.Tasks[b].At) })
	tasks, places := make([]Task, len(order)), make([]int, len(order))
	for i, o := range order {
		tasks[i], places[o] = in.Tasks[o], i
	}
	in.Tasks = tasks
	for i := range in.Traffic {
		in.Traffic[i].From, in.Traffic[i].To = places[in.Traffic[i].From], places[in.Traffic[i].To]
	}
	return in
}

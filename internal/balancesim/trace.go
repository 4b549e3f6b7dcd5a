package balancesim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
)

// The lines of a trace of loads: the speed of a node from a time on, a task, and
// what two tasks send each other.
type (
	nodeLine struct {
		Node  string  `json:"node"`
		At    float64 `json:"at"`
		Power float64 `json:"power"`
		Share float64 `json:"share"`
	}
	taskLine struct {
		Task string  `json:"task"`
		At   float64 `json:"at"`
		On   string  `json:"on"`
		Work float64 `json:"work"`
		// Weight is what is reported: the work if it is not given.
		Weight float64 `json:"weight"`
		Size   float64 `json:"size"`
	}
	trafficLine struct {
		From  string  `json:"from"`
		To    string  `json:"to"`
		Bytes float64 `json:"bytes"`
	}
)

// missing is a number that a line does not give.
var missing = math.NaN()

// WriteTrace writes an instance so that ReadTrace gives it back.
func (in *Instance) WriteTrace(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	var err error
	put := func(line any) { err = cmp.Or(err, enc.Encode(line)) }
	for _, s := range in.Speeds {
		put(nodeLine{in.Nodes[s.Node], s.At, s.Power, s.Share})
	}
	for _, t := range in.Tasks {
		put(taskLine{t.Name, t.At, in.Nodes[t.Node], t.Work, t.Weight, t.Size})
	}
	for _, t := range in.Traffic {
		put(trafficLine{in.Tasks[t.From].Name, in.Tasks[t.To].Name, t.Volume})
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
	var kind struct {
		Node *string `json:"node"`
		Task *string `json:"task"`
		From *string `json:"from"`
	}
	if err := json.Unmarshal(src, &kind); err != nil {
		return unreadable(err)
	}
	switch {
	case kind.Node != nil:
		return t.speed(src)
	case kind.Task != nil:
		return t.task(src)
	case kind.From != nil:
		return t.traffic(src)
	}
	return errors.New(`none of "node", "task" and "from" is given`)
}

// decode reads a line of a kind, which has no keys but that and some more.
func decode(src []byte, line any, kind, more string) error {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	err := dec.Decode(line)
	if err == nil {
		return nil
	}
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("a line of a %q has no %s, only %s", kind, key, more)
	}
	return unreadable(err)
}

// unreadable says in the words of a trace why a line is no such object.
func unreadable(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("column %d: not valid JSON: %w", e.Offset, err)
	}
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err
	case e.Field == "":
		return fmt.Errorf("the line is an %s and must be an object: {...}", e.Value)
	case e.Type.Kind() == reflect.String:
		return fmt.Errorf("column %d: %q is a %s and must be a text", e.Offset, e.Field, e.Value)
	}
	return fmt.Errorf("column %d: %q is a %s and must be a number of 64 bits", e.Offset, e.Field, e.Value)
}

// within refuses a number that is missing or out of range.
func within(x float64, key string, most float64) error {
	switch {
	case math.IsNaN(x):
		return fmt.Errorf("%q is missing", key)
	case x < 0 || x > most:
		return fmt.Errorf("%q is %v and must be from 0 to %v", key, x, most)
	}
	return nil
}

func (t *reading) speed(src []byte) error {
	l := nodeLine{At: missing, Power: missing, Share: 1}
	if err := decode(src, &l, "node", "at, power, share"); err != nil {
		return err
	}
	if err := cmp.Or(within(l.At, "at", maxTime.Seconds()), within(l.Power, "power", maxValue), within(l.Share, "share", 1)); err != nil {
		return err
	}
	i, ok := t.nodes[l.Node]
	if !ok {
		if i = len(t.in.Nodes); i == maxNodes || l.Node == "" {
			return fmt.Errorf("node %q: names must not be empty, and there may be %d nodes", l.Node, maxNodes)
		}
		t.nodes[l.Node] = i
		t.in.Nodes = append(t.in.Nodes, l.Node)
	}
	t.in.Speeds = append(t.in.Speeds, Speed{l.At, i, l.Power, l.Share})
	if len(t.in.Speeds) > maxDraws {
		return fmt.Errorf("there may be %d lines of nodes", maxDraws)
	}
	return nil
}

func (t *reading) task(src []byte) error {
	l := taskLine{Work: missing, Weight: missing}
	if err := decode(src, &l, "task", "at, on, work, weight, size"); err != nil {
		return err
	}
	if math.IsNaN(l.Weight) {
		l.Weight = l.Work
	}
	if err := cmp.Or(within(l.At, "at", maxTime.Seconds()), within(l.Work, "work", maxValue), within(l.Weight, "weight", maxValue), within(l.Size, "size", maxValue)); err != nil {
		return err
	}
	if l.On == "" {
		return errors.New(`"on", the node, is missing`)
	}
	on, ok := t.nodes[l.On]
	if !ok {
		return fmt.Errorf("node %q is not known: its line must stand before this one", l.On)
	}
	if _, ok := t.tasks[l.Task]; ok || l.Task == "" || len(t.in.Tasks) == maxTasks {
		return fmt.Errorf("task %q: names must not be empty or used twice, and there may be %d tasks", l.Task, maxTasks)
	}
	t.tasks[l.Task] = len(t.in.Tasks)
	t.in.Tasks = append(t.in.Tasks, Task{l.Task, l.At, on, l.Work, l.Weight, l.Size})
	return nil
}

func (t *reading) traffic(src []byte) error {
	l := trafficLine{Bytes: missing}
	if err := decode(src, &l, "from", "to, bytes"); err != nil {
		return err
	}
	if err := within(l.Bytes, "bytes", maxValue); err != nil {
		return err
	}
	if l.To == "" {
		return errors.New(`"to" is missing`)
	}
	from, ok := t.tasks[l.From]
	to, known := t.tasks[l.To]
	if !ok || !known || from == to {
		return fmt.Errorf("traffic from %q to %q: they must be two tasks of lines before this one", l.From, l.To)
	}
	t.in.Traffic = append(t.in.Traffic, Traffic{from, to, l.Bytes})
	if len(t.in.Traffic) > maxTasks {
		return fmt.Errorf("there may be %d lines of traffic", maxTasks)
	}
	return nil
}

// sorted puts speeds and tasks in the order of time.
func (t *reading) sorted() *Instance {
	in := &t.in
	slices.SortStableFunc(in.Speeds, func(a, b Speed) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(in.Tasks, func(a, b Task) int { return cmp.Compare(a.At, b.At) })
	places := make([]int, len(in.Tasks))
	for i, task := range in.Tasks {
		places[t.tasks[task.Name]] = i
	}
	for i := range in.Traffic {
		in.Traffic[i].From, in.Traffic[i].To = places[in.Traffic[i].From], places[in.Traffic[i].To]
	}
	return in
}

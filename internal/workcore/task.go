package workcore

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// Limits of a task.
const (
	MaxBody     = 16 << 20 // bytes of a body, a rest, a result, a message, or the state of an object
	MaxID       = 128      // bytes of an ID
	MaxChildren = 1024     // tasks that one record puts
	MaxAfter    = 64       // tasks that a task runs after
	MaxError    = 1 << 10  // bytes of an error; a longer one is cut
	MaxReads    = 64       // names of data that a task reads
	MaxNear     = 16       // neighbours of an object, and members that it may be at
)

// Task is work to be done once.
type Task struct {
	ID     string  `json:"id"`               // unique in a phase; any text of 1 to MaxID bytes
	Func   string  `json:"func"`             // the name of the function that does it
	Body   []byte  `json:"body,omitempty"`   // its argument; of a bag the rest to do
	Weight float64 `json:"weight,omitempty"` // the expected cost, in a unit of the program; 0: not known
	// After are the IDs of tasks of the same account. The task waits until they are done, with all their
	// parts, and fails if one of them fails. An ID that the account does not know yet is waited for.
	After []string `json:"after,omitempty"`
	// Part marks a child that was split off the task whose record puts it: tasks that run after that task
	// also run after its parts.
	Part bool `json:"part,omitempty"`
	// Reads are names of data, sorted. The task waits until all of them are written, and starts where they are.
	Reads []string `json:"reads,omitempty"`
	// For makes it a message to the object of that ID, or to one of a group: [GroupOf].
	For string `json:"for,omitempty"`
	// Object makes it an object: it is there until it ends, and runs when it has messages.
	Object *Object `json:"object,omitempty"`
}

// Check returns an error if the task may not be put.
func (t *Task) Check() error {
	switch {
	case t.ID == "":
		return fmt.Errorf("task of function %q: its ID is empty: give each task a name that no other one has", t.Func)
	case len(t.ID) > MaxID:
		return fmt.Errorf("task %.40q...: its ID has %d bytes, and at most %d are allowed", t.ID, len(t.ID), MaxID)
	case t.Func == "":
		return fmt.Errorf("task %q: it names no function", t.ID)
	case len(t.Func) > MaxID:
		return fmt.Errorf("task %q: the name of its function has %d bytes, and at most %d are allowed", t.ID, len(t.Func), MaxID)
	case len(t.Body) > MaxBody:
		return fmt.Errorf("task %q: its body has %d bytes, and at most %d are allowed: put a reference to the data instead", t.ID, len(t.Body), MaxBody)
	case math.IsNaN(t.Weight) || math.IsInf(t.Weight, 0) || t.Weight < 0:
		return fmt.Errorf("task %q: its weight is %v: it must be a finite number of at least 0", t.ID, t.Weight)
	case len(t.After) > MaxAfter:
		return fmt.Errorf("task %q: it runs after %d tasks, and at most %d are allowed: put a task between that runs after some of them", t.ID, len(t.After), MaxAfter)
	case t.Part && len(t.After) > 0:
		return fmt.Errorf("task %q: it is a part of another task and runs after %d tasks: a part waits for no task", t.ID, len(t.After))
	}
	if err := t.checkObject(); err != nil {
		return err
	}
	if err := t.checkReads(); err != nil {
		return err
	}
	for _, id := range t.After {
		switch {
		case id == "" || len(id) > MaxID:
			return fmt.Errorf("task %q: it runs after task %.40q: an ID has 1 to %d bytes", t.ID, id, MaxID)
		case id == t.ID:
			return fmt.Errorf("task %q: it waits for itself: leave it out of After", t.ID)
		}
	}
	return nil
}

// sameTask reports whether two puts are of the same task.
func (t *Task) sameTask(u *Task) bool {
	return t.ID == u.ID && t.Func == u.Func && t.Weight == u.Weight && bytes.Equal(t.Body, u.Body) && slices.Equal(t.After, u.After) && slices.Equal(t.Reads, u.Reads) && t.For == u.For && t.Object.sameObject(u.Object)
}

// Fate says what a record leaves of its task.
type Fate uint8

// The fates of a record.
const (
	Kept     Fate = iota // something is left: Rest
	Done                 // nothing is left
	Failed               // its function returned an error, as often as it may
	Poisoned             // its holders died, as often as they may
)

// String is the fate in lower case.
func (f Fate) String() string {
	if int(f) < len(fateNames) {
		return fateNames[f]
	}
	return fmt.Sprintf("fate %d", uint8(f))
}

var fateNames = []string{"kept", "done", "failed", "poisoned"}

// Record is one step of a task.
type Record struct {
	ID       string `json:"id"`                 // of the task
	On       uint64 `json:"on"`                 // the sequence of the record that it builds on; 0: the first
	Fate     Fate   `json:"fate"`               // what it leaves
	Result   []byte `json:"result,omitempty"`   // the results since On
	Rest     []byte `json:"rest,omitempty"`     // the rest to do, if the fate is Kept
	Children []Task `json:"children,omitempty"` // what it puts: all of them, or none if it does not count
	Error    string `json:"error,omitempty"`    // why it is Failed or Poisoned, or why the message is that an object could not serve
	Served   int    `json:"served,omitempty"`   // of an object: how many of its messages are over
	Pinned   bool   `json:"pinned,omitempty"`   // of an object: it does not move from here on
}

// Check returns an error if the record may not be written.
func (r *Record) Check() error {
	switch {
	case r.ID == "" || len(r.ID) > MaxID:
		return fmt.Errorf("record of task %.40q: an ID has 1 to %d bytes", r.ID, MaxID)
	case int(r.Fate) >= len(fateNames):
		return fmt.Errorf("record of task %q: there is no %v", r.ID, r.Fate)
	case len(r.Rest) > MaxBody || len(r.Result) > MaxBody:
		return fmt.Errorf("record of task %q: its rest has %d bytes and its result %d, and at most %d are allowed: split the bag, or record more often", r.ID, len(r.Rest), len(r.Result), MaxBody)
	case len(r.Error) > MaxError:
		return fmt.Errorf("record of task %q: its error has %d bytes, and at most %d are allowed: cut it", r.ID, len(r.Error), MaxError)
	case r.Fate != Kept && len(r.Rest) > 0:
		return fmt.Errorf("record of task %q: it is %v and has a rest", r.ID, r.Fate)
	case r.Fate > Done && len(r.Children) > 0:
		return fmt.Errorf("record of task %q: it is %v and puts %d tasks: what a failed run puts does not count", r.ID, r.Fate, len(r.Children))
	case r.Served < 0 || r.Served > MaxServed:
		return fmt.Errorf("record of task %q: %d messages are over: 0 to %d are allowed", r.ID, r.Served, MaxServed)
	case len(r.Children) > MaxChildren:
		return fmt.Errorf("record of task %q: it puts %d tasks, and at most %d are allowed: record more often", r.ID, len(r.Children), MaxChildren)
	}
	for i := range r.Children {
		c := &r.Children[i]
		if err := c.Check(); err != nil {
			return fmt.Errorf("record of task %q: child %d: %w", r.ID, i+1, err)
		}
		if c.ID == r.ID || slices.ContainsFunc(r.Children[:i], func(other Task) bool { return other.ID == c.ID }) {
			return fmt.Errorf("record of task %q: child %d has the ID of another task, %q", r.ID, i+1, c.ID)
		}
	}
	return nil
}

package workcore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chain is a store whose tasks run after others, and what came of them.
type chain struct {
	tb testing.TB
	*Store
}

func newChain(tb testing.TB, limits Limits) *chain {
	tb.Helper()
	return &chain{tb, NewStore(limits)}
}

func (c *chain) put(id string, after ...string) {
	c.tb.Helper()
	if err := c.Put(&Task{ID: id, Func: "f", After: after}, 0); err != nil {
		c.tb.Fatal(err)
	}
}

// run hands out all that may run, and returns the IDs.
func (c *chain) run() string {
	var ids []string
	for {
		l, ok := c.Hand("h", 0)
		if !ok {
			return strings.Join(ids, " ")
		}
		if l.Task.After != nil || l.Task.Part {
			c.tb.Errorf("the lease of %q has the After %q", l.Task.ID, l.Task.After)
		}
		ids = append(ids, l.Task.ID)
	}
}

// record records with the sequence that a task builds on now.
func (c *chain) record(id string, fate Fate, children ...Task) Outcome {
	c.tb.Helper()
	_, on, _ := c.Account().Find(id)
	o, err := c.Record(&Record{ID: id, On: on, Fate: fate, Children: children}, nil)
	if err != nil {
		c.tb.Fatal(err)
	}
	return o
}

func (c *chain) got() string {
	var list []string
	for _, r := range c.Results(nil) {
		list = append(list, strings.TrimSuffix(fmt.Sprintf("%s %v: %s", r.ID, r.Fate, r.Error), ": "))
	}
	return strings.Join(list, "; ")
}

func (c *chain) want(what, got, want string) {
	c.tb.Helper()
	if got != want {
		c.tb.Errorf("%s: %q, want %q", what, got, want)
	}
}

// stand is open, blocked and missing.
func (c *chain) stand() string {
	n := c.Account().Counts()
	return fmt.Sprint(n.Open, n.Blocked, n.Missing)
}

// TestAfter: a task runs once all of its After are done, whether they were put before it or later.
func TestAfter(t *testing.T) {
	c := newChain(t, Limits{})
	c.put("c", "a", "b", "a")
	c.put("d", "c", "later")
	c.want("two wait", c.stand(), "2 2 3")
	c.put("a")
	c.put("b")
	c.want("a and b are there", c.stand(), "4 2 1")
	c.want("first", c.run(), "a b")
	if o := c.record("c", Done); o != Closed {
		t.Errorf("a record of a task that waits: %v", o)
	}
	if c.Fail("c", 0, 0, "no") || c.Hold("x", []Held{{ID: "c"}}, 9) == nil || c.End() {
		t.Error("somebody claims a task that waits, or the phase ends")
	}
	c.record("a", Done)
	c.want("after a", c.run(), "")
	c.record("b", Done)
	c.want("after b", c.run(), "c")
	c.record("c", Done)
	c.put("late", "a", "c")
	c.want("after what is over", c.run(), "late")
	c.put("later")
	c.want("later is there", c.stand(), "3 1 0")
	c.record("late", Done)
	c.want("later", c.run(), "later")
	c.record("later", Done)
	c.want("the last", c.run(), "d")
	c.record("d", Done)
	c.want("results", c.got(), "a done; b done; c done; late done; later done; d done")
	if c.want("none is open", c.stand(), "0 0 0"); !c.End() || len(c.account.awaited)+len(c.account.wholes)+len(c.account.doomed) > 0 {
		t.Errorf("%+v", c.account)
	}
	c.put("e", "a") // The IDs of the phase before are forgotten.
	c.want("another phase", c.stand(), "1 1 1")
}

// TestAfterFailures: whatever waits for a task that fails for good fails too, however long the chain is.
func TestAfterFailures(t *testing.T) {
	c := newChain(t, Limits{Retry: 1, Losses: 1})
	c.put("bad")
	c.put("b", "bad", "good")
	c.put("c", "b")
	c.put("d", "never", "c")
	c.put("good")
	c.put("free", "good")
	c.run()
	c.Fail("bad", 0, 0, "it is bad")
	c.want("a failure", c.got(), `bad failed: it is bad; b failed: task "bad", which has to be done before, has failed; c failed: task "b", which has to be done before, has failed; d failed: task "c", which has to be done before, has failed`)
	c.want("others go on", c.stand(), "2 1 0")
	c.put("e", "d")
	c.want("after one that has failed", c.got(), `e failed: task "d", which has to be done before, has failed`)
	c.put("f", "free")
	c.Cancel("free", "cancelled")
	c.want("a task that waits is cancelled", c.got(), `free failed: cancelled; f failed: task "free", which has to be done before, has failed`)
	c.put("g", "good")
	c.Hold("h", []Held{{ID: "good", Runs: true}}, 0)
	c.Lose("h")
	c.want("poisoned", c.got(), `good poisoned: 1 members died while they ran it, h the last; g failed: task "good", which has to be done before, is poisoned`)
	if c.want("none is open", c.stand(), "0 0 0"); !c.End() {
		t.Error("the phase does not end")
	}
	const long = 100_000
	for i := range long {
		c.put(strconv.Itoa(i), strconv.Itoa(i-1))
	}
	c.want("a long chain", c.stand(), fmt.Sprint(long, long, 1))
	c.put("-1")
	c.run()
	c.Fail("-1", 0, 0, "no")
	if c.want("a long chain", c.stand(), "0 0 0"); len(c.Results(nil)) != long+1 {
		t.Error("some of the chain have no result")
	}
}

// TestAfterABag: what runs after a bag waits for its parts, and for theirs, and fails if one of them fails.
func TestAfterABag(t *testing.T) {
	part := func(id string) Task { return Task{ID: id, Func: "f", Part: true} }
	for _, fails := range []bool{false, true} {
		c := newChain(t, Limits{Retry: 1})
		c.put("bag")
		c.put("next", "bag")
		c.run()
		c.record("bag", Kept, part("bag~1"), Task{ID: "child", Func: "f"})
		c.run()
		c.record("bag~1", Kept, part("bag~2"))
		c.run()
		c.record("bag", Done)
		c.put("other", "bag")
		c.put("of a part", "bag~1")
		c.record("bag~1", Done)
		c.want("a part is open", c.run(), "of a part")
		if !fails {
			c.record("bag~2", Done, Task{ID: "last", Func: "f", After: []string{"bag"}})
			c.want("all parts are over", c.run(), "next other last")
			c.put("late", "bag")
			c.want("later", c.run(), "late")
			continue
		}
		c.got()
		c.Fail("bag~2", 0, 0, "no")
		c.put("late", "bag")
		c.want("a part has failed", c.got(), `bag~2 failed: no; next failed: task "bag", which has to be done before, has failed; other failed: task "bag", which has to be done before, has failed; late failed: task "bag", which has to be done before, has failed`)
	}
}

// TestAfterOfChildren: a child may run after its parent, after its siblings, and after tasks of others.
func TestAfterOfChildren(t *testing.T) {
	c := newChain(t, Limits{})
	c.put("p")
	c.put("q")
	c.run()
	child := func(id string, after ...string) Task { return Task{ID: id, Func: "f", After: after} }
	c.record("p", Done, child("1", "p"), child("2", "3", "q"), child("3", "1"))
	c.want("children", c.run(), "1")
	c.record("1", Done)
	c.want("a sibling", c.run(), "3")
	c.record("3", Done)
	c.record("q", Done, child("x", "y"), child("y", "z"), child("z", "x"), child("u", "v"))
	c.got()
	c.want("the others", c.run(), "2")
	c.want("only u waits", c.stand(), "2 1 1")
	c.record("2", Done, child("v", "u"))
	c.want("the child that closes the circle fails", c.got(), `2 done; v failed: task "v" waits for "u", which waits for "v"; u failed: task "v", which has to be done before, has failed`)
	c.want("none is open", c.stand(), "0 0 0")
}

// TestCircles: a put that closes a circle is refused, and changes nothing.
func TestCircles(t *testing.T) {
	c := newChain(t, Limits{})
	c.put("b", "a")
	for i := 2; i < 9; i++ {
		c.put(strconv.Itoa(i), strconv.Itoa(i-1), "b")
	}
	for want, after := range map[string][]string{
		`task "a" waits for "b", which waits for "a": none of them could begin: leave one of these out of After`:                                                                                                    {"x", "b"},
		`task "1" waits for "3", which waits for "2", which waits for "1": none of them could begin: leave one of these out of After`:                                                                               {"3"},
		`task "1" waits for "8", which waits for "7", which waits for "6", which waits for "5", which waits for 3 more, the last of which waits for "1": none of them could begin: leave one of these out of After`: {"8"},
	} {
		id := want[len(`task "`) : len(`task "`)+1]
		err := c.Put(&Task{ID: id, Func: "f", After: after}, 0)
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	c.want("nothing has changed", c.stand(), "8 8 2")
	for want, task := range map[string]Task{
		`task "p": it is a part of another task, and only the record of that one puts it`: {ID: "p", Func: "f", Part: true},
		`task "b": another task has that ID: give each task of a phase its own`:           {ID: "b", Func: "f", After: []string{"8"}},
	} {
		if err := c.Put(&task, 0); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if err := c.Put(&Task{ID: "b", Func: "f", After: []string{"a"}}, 0); err != nil {
		t.Errorf("the same task once more: %v", err)
	}
	c.put("a")
	c.want("it begins", c.run(), "a")
}

// TestAfterIsBounded: an open limit counts tasks that wait.
func TestAfterIsBounded(t *testing.T) {
	c := newChain(t, Limits{Open: 2})
	c.put("a", "x")
	c.put("b", "a")
	if err := c.Put(&Task{ID: "x", Func: "f"}, 0); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

// TestAfterOfAMember: a member that waits for an ID that never comes is not idle, and says how many wait.
func TestAfterOfAMember(t *testing.T) {
	m, out := alone(t, 1, ann)
	for _, in := range []*Input{put("a"), put("b"), put("c")} {
		if in.Task.ID != "a" {
			in.Task.After = []string{"a", "never"}
		}
		m.Step(1, in, out)
	}
	m.Step(1, returned(Done, ""), out)
	if r := m.Report(0); len(out.Runs) > 0 || out.Told.Idle || out.Told.Queued != 0 || out.Told.Open != 2 || out.Told.Blocked != 2 || out.Told.Missing != 1 || r.Blocked != 2 || r.Missing != 1 {
		t.Errorf("%+v, %+v", out.Told, r)
	}
	if m.Step(1, &Input{Kind: InEnd, Phase: 1}, out); !errors.Is(out.Err, ErrOpen) {
		t.Error(out.Err)
	}
	m.Step(1, put("never"), out)
	m.Step(1, returned(Done, ""), out)
	if len(out.Runs) != 1 || out.Runs[0].Task.ID != "b" {
		t.Errorf("%+v", out.Runs)
	}
}

// TestAfterCostsNothing: a task without After costs what it did.
func TestAfterCostsNothing(t *testing.T) {
	m, out := alone(t, 1, ann)
	in, done := &Input{Kind: InPut}, returned(Done, "")
	tasks := make([]Task, 3001)
	for i := range tasks {
		tasks[i] = Task{ID: strconv.Itoa(i), Func: "f"}
	}
	i := 0
	n := testing.AllocsPerRun(3000, func() {
		in.Task = &tasks[i]
		i++
		m.Step(1, in, out)
		m.Step(1, done, out)
	})
	if n > 1 { // What the account keeps of it while it is open.
		t.Errorf("%v allocations a task", n)
	}
}

// TestHostileAfter: what cannot be is refused, before much is allocated for it.
func TestHostileAfter(t *testing.T) {
	f := Frame{From: ann, To: bob, Step: &Step{Record: Record{ID: "a", Children: []Task{{ID: "c", Func: "f", After: []string{"x"}}}}}}
	good := f.Append(nil)
	at := slices.Index(good, 'x') - 2 // How many IDs there are.
	for want, bend := range map[string]func([]byte){
		"frame: it has the form 9, and this program reads 1 to 8": func(b []byte) { b[0] = 9 },
		"frame: a task runs after 65 tasks, and at most 64 are":   func(b []byte) { b[at] = 65 },
		"frame: the end is missing":                               func(b []byte) { b[at] = 64 },
		"frame: 2 is neither 0 nor 1":                             func(b []byte) { b[at+3] = 2 },
		"it is a part of another task and runs after 1 tasks":     func(b []byte) { b[at+3] = 1 },
		`it waits for itself`:                                     func(b []byte) { b[at+2] = 'c' },
		"frame: ":                                                 func(b []byte) { b[0] = 1 },
	} {
		b := slices.Clone(good)
		bend(b)
		if got, err := new(Reader).Read(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v; want %s", got, err, want)
		}
	}
	lease := Frame{From: ann, To: bob, Parcel: &Parcel{Leases: []Parted{{ann, Lease{Task: Task{ID: "c", Func: "f", After: []string{"x"}}}}}}}
	if err := lease.Check(); err == nil || !strings.HasSuffix(err.Error(), `the lease of task "c" says what it runs after: a task that waits stays in its account`) {
		t.Error(err)
	}
	if frames := (&Frame{From: ann, To: bob, Step: &Step{Record: Record{ID: "a", Children: []Task{{ID: "c", Func: "f"}}}}}).Append(nil); frames[0] != 1 {
		t.Errorf("a frame that older programs can read has the form %d", frames[0])
	}
}

package workcore

import (
	"fmt"
	"slices"
	"strings"
)

// awaited are the tasks that wait for one ID.
type awaited struct {
	by   []*open // some are perhaps over: they have failed
	left int     // of by, those that are not over
}

// whole is a task that was split, with all its parts.
type whole struct {
	id     string
	open   int  // tasks that are not over
	failed bool // one of them has failed
}

// doom is a task that has to fail.
type doom struct {
	task *open
	why  string
}

// joinParent makes a task a part of another one, or of the task that this one is a part of.
func (a *Account) joinParent(of, part *open) {
	if of.whole == nil {
		of.whole = &whole{id: of.task.ID, open: 1}
		a.wholes[of.task.ID] = of.whole
	}
	of.whole.open++
	part.whole = of.whole
}

// blockTask has a new task wait for the tasks of its After that are not over.
func (a *Account) blockTask(o *open) {
	for _, id := range o.task.After {
		other := a.tasks[id]
		switch {
		case other == nil || other.fate == Kept || a.wholes[id] != nil:
			w := a.awaited[id]
			if w == nil {
				w = &awaited{}
				if a.awaited[id] = w; other == nil {
					a.missing++
				}
			}
			w.by = append(w.by, o)
			w.left++
			o.needs++
		case other.fate > Done:
			o.needs++ // It never begins.
			a.doomed = append(a.doomed, doom{o, becauseOf(id, other.fate)})
		default:
		}
	}
	a.blockReads(o)
	if o.needs > 0 {
		a.blocked++
	}
	if circle := a.findCircle(&o.task); circle != "" {
		a.doomed = append(a.doomed, doom{o, circle})
	}
}

func becauseOf(id string, fate Fate) string {
	has := "has failed"
	if fate != Failed {
		has = "is " + fate.String()
	}
	return fmt.Sprintf("task %q, which has to be done before, %s", id, has)
}

// finishWaiting lets tasks continue, or fail, that wait for a task that is over.
func (a *Account) finishWaiting(o *open, fate Fate) {
	if o.needs > 0 {
		a.unblock(o)
	}
	id, w := o.task.ID, o.whole
	if w == nil || w.id != id {
		a.settleWaiters(id, fate)
	}
	if w == nil {
		return
	}
	w.failed = w.failed || fate > Done
	if w.open--; w.open > 0 {
		return
	}
	if delete(a.wholes, w.id); w.failed && a.tasks[w.id].fate == Done {
		a.tasks[w.id] = overAs[Failed] // For tasks that run after it.
	}
	a.settleWaiters(w.id, a.tasks[w.id].fate)
}

// unblock takes a task that has failed out of those that wait.
func (a *Account) unblock(o *open) {
	a.blocked--
	for _, id := range o.task.After {
		a.unblockFrom(id)
	}
	for _, name := range o.task.Reads {
		a.unblockFrom(dataKey(name))
	}
}

// unblockFrom notes that one task less waits for an ID.
func (a *Account) unblockFrom(id string) {
	if w := a.awaited[id]; w != nil {
		if w.left--; w.left == 0 {
			if delete(a.awaited, id); a.tasks[id] == nil {
				a.missing--
			}
		}
	}
}

// settleWaiters tells those who wait for an ID that its task is over, with all its parts.
func (a *Account) settleWaiters(id string, fate Fate) {
	w := a.awaited[id]
	if w == nil {
		return
	}
	delete(a.awaited, id)
	for _, o := range w.by {
		switch {
		case o.fate != Kept:
		case fate > Done:
			a.doomed = append(a.doomed, doom{o, becauseOf(id, fate)})
		default:
			if o.needs--; o.needs == 0 {
				a.blocked--
				a.beginTask(o)
			}
		}
	}
}

// findCircle says how a new task would wait for itself; empty: it would not. It looks only if a task waits
// for the new one already.
func (a *Account) findCircle(t *Task) string {
	if len(t.After) == 0 || a.awaited[t.ID] == nil {
		return ""
	}
	by := map[string]string{} // By ID: a task that waits for it.
	look := []string{}
	wait := func(id string, after []string) {
		for _, next := range after {
			if _, seen := by[next]; !seen {
				by[next] = id
				look = append(look, next)
			}
		}
	}
	wait(t.ID, t.After)
	for len(look) > 0 {
		id := look[len(look)-1]
		look = look[:len(look)-1]
		if id == t.ID {
			return circleText(id, by)
		}
		if o := a.findTask(id); o != nil && o.needs > 0 {
			wait(id, o.task.After)
		}
	}
	return ""
}

// shownOfCircle is how many tasks of a circle its text names.
const shownOfCircle = 4

func circleText(id string, by map[string]string) string {
	path := []string{id}
	for at := by[id]; at != id; at = by[at] {
		path = append(path, at)
	}
	slices.Reverse(path[1:])
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "task %q waits for ", id)
	for i, next := range path[1:] {
		if i == shownOfCircle {
			_, _ = fmt.Fprintf(&b, "%d more, the last of which waits for ", len(path)-1-i)
			break
		}
		_, _ = fmt.Fprintf(&b, "%q, which waits for ", next)
	}
	_, _ = fmt.Fprintf(&b, "%q", id)
	return b.String()
}

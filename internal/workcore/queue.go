package workcore

import "container/heap"

// queue has the tasks that wait, in the order in which they are handed out. Those that come in this order stand
// in a line, and only those that come before another one in a heap.
type queue struct {
	line    []*open // nil: that task is not here any more; neither the last one is nil nor the head
	head    int     // the place of the first in line
	here    int     // how many in line are not nil
	late    late
	strange int // of them, those whose function this member cannot run
}

func (q *queue) len() int { return q.here + len(q.late) }

// firstTask is the task that is next. The queue must not be empty.
func (q *queue) firstTask() *open {
	if q.here == 0 || len(q.late) > 0 && q.late[0].comesBefore(q.line[q.head]) {
		return q.late[0]
	}
	return q.line[q.head]
}

func (q *queue) pushTask(o *open) {
	if o.lease.strange {
		q.strange++
	}
	if o.lease.late = q.here > 0 && o.comesBefore(q.line[len(q.line)-1]); o.lease.late {
		heap.Push(&q.late, o)
		return
	}
	if len(q.line) == cap(q.line) && q.here <= len(q.line)/2 {
		q.squeeze()
	}
	o.lease.place = len(q.line)
	q.line = append(q.line, o)
	q.here++
}

// squeeze moves the entries in line together.
func (q *queue) squeeze() {
	all := q.line
	q.line, q.head = all[:0], 0
	for _, o := range all {
		if o != nil {
			o.lease.place = len(q.line)
			q.line = append(q.line, o)
		}
	}
	clear(all[len(q.line):])
}

func (q *queue) removeTask(o *open) {
	if o.lease.strange {
		q.strange--
	}
	if o.lease.late {
		heap.Remove(&q.late, o.lease.place)
		return
	}
	q.line[o.lease.place] = nil
	if q.here--; q.here == 0 {
		q.line, q.head = q.line[:0], 0
		return
	}
	for q.line[q.head] == nil {
		q.head++
	}
	for q.line[len(q.line)-1] == nil {
		q.line = q.line[:len(q.line)-1]
	}
}

// comesBefore reports whether a task is handed out before another one.
func (o *open) comesBefore(other *open) bool {
	a, b := &o.lease, &other.lease
	return a.key < b.key || a.key == b.key && a.put < b.put
}

// late is a heap for package heap.
type late []*open

func (l late) Len() int           { return len(l) }
func (l late) Less(i, j int) bool { return l[i].comesBefore(l[j]) }

func (l late) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].lease.place, l[j].lease.place = i, j
}

// Push is for package heap.
func (l *late) Push(x any) {
	o := x.(*open) //nolint:forcetypeassert // Nothing else is pushed.
	o.lease.place = len(*l)
	*l = append(*l, o)
}

// Pop is for package heap.
func (l *late) Pop() any {
	last := len(*l) - 1
	o := (*l)[last]
	(*l)[last] = nil
	*l, o.lease.place = (*l)[:last], -1
	return o
}

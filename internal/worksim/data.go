package worksim

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/datacore"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// scale is how many bytes of an object one simulated byte stands for.
const scale = 1 << 10

// class is objects that some tasks read: count of them from first on; a count of 0: none. With a trace these are places in its lists
// of objects.
type class struct{ first, count int }

func objectName(i int) string { return fmt.Sprintf("object %07d", i+1) }

// objectsOf are the objects of a class, sorted.
func (s *Scenario) objectsOf(c class) (list []int) {
	if s.trace != nil {
		return s.trace.lists[c.first : c.first+c.count]
	}
	for i := range c.count {
		list = append(list, c.first+i)
	}
	return list
}

// namesOf are the names of the objects of a class, sorted.
func (s *Scenario) namesOf(c class) (list []string) {
	for _, i := range s.objectsOf(c) {
		list = append(list, objectName(i))
	}
	return list
}

// classOf is what task i of an entry reads: the tasks move over all objects in their order.
func (s *Scenario) classOf(t *Tasks, i int) class {
	switch {
	case s.trace != nil:
		return s.trace.tasks[i].reads
	case t.Reads == 0:
		return class{}
	}
	return class{i * (s.Data.Count - t.Reads + 1) / t.Count, t.Reads}
}

// putterOf is the place of the node that puts task i of an entry.
func (s *Scenario) putterOf(t *Tasks, i, nodes int) int {
	switch {
	case s.trace != nil:
		return s.trace.tasks[i].node
	case t.Put.Node > 0:
		return t.Put.Node - 1
	case t.Put.Split:
		return i * nodes / t.Count
	}
	return i % nodes
}

// writtenObjects are the objects that each node writes: those that its own tasks read. All that write an object write the same bytes.
func (s *Scenario) writtenObjects() []map[int]bool {
	list := make([]map[int]bool, s.countNodes())
	for i := range list {
		list[i] = map[int]bool{}
	}
	if s.trace != nil {
		for i, o := range s.trace.objects {
			list[o.node][i] = true
		}
		return list
	}
	for k := range s.Tasks {
		t := &s.Tasks[k]
		for i := range t.Count {
			c := s.classOf(t, i)
			for object := c.first; object < c.first+c.count; object++ {
				list[s.putterOf(t, i, len(list))][object] = true
			}
		}
	}
	return list
}

// newData makes the machine of a node for data.
func (n *node) newData(s *Scenario) {
	if s.Data.Count > 0 {
		n.data = datacore.NewMember(datacore.Options{Self: datacore.Peer(n.peer), Phase: 1, Cache: s.Work.Data.Cache << 20 / scale, Piece: datacore.PieceBytes / scale, Classes: s.Work.Data.Classes})
	}
}

// writeObjects has the nodes write their objects.
func (w *world) writeObjects() {
	if w.set.Data.Count == 0 {
		return
	}
	if w.set.trace != nil {
		for i, o := range w.set.trace.objects {
			w.After(o.at, func() {
				w.nodes[o.node].writeObject(i, o.bytes)
				w.nodes[o.node].carryData()
			})
		}
		return
	}
	for i, objects := range w.set.writtenObjects() {
		n := w.nodes[i]
		w.After(0, func() {
			for _, object := range slices.Sorted(maps.Keys(objects)) {
				n.writeObject(object, w.set.Data.Bytes)
			}
			n.carryData()
		})
	}
}

// writeObject writes an object of a size.
func (n *node) writeObject(object, size int) {
	size = (size + scale - 1) / scale
	content := bytes.Repeat([]byte(objectName(object)), size)[:size]
	if err := n.data.Write(n.world.Now(), objectName(object), content, sha256.Sum256(content), &n.dataOut); err != nil {
		n.world.addFault("%s: %v", n.peer.Name, err)
	}
}

// planData has the objects fetched that tasks here read, as a process does.
func (n *node) planData() {
	if n.data == nil || n.dead || n.world.ended || !n.machine.Reads() {
		return
	}
	n.running = n.running[:0]
	for i := range n.slots {
		if s := &n.slots[i]; s.runs && len(s.reads) > 0 {
			n.running = append(n.running, s.reads)
		}
	}
	n.waiting = n.machine.Waiting(n.waiting[:0])
	n.data.Plan(n.world.Now(), n.running, n.waiting, &n.dataOut)
	n.carryData()
}

// carryData carries out what the machine of the data asks for.
func (n *node) carryData() {
	w, out := n.world, n.dataOut
	n.dataOut = datacore.Output{}
	for i := range out.Sends {
		s := &out.Sends[i]
		size := len(s.Message.Append(nil))
		if s.Message.Kind == datacore.Piece {
			size += len(s.Message.Data) * (scale - 1)
		}
		w.result.Messages++
		w.result.Bytes += size
		to := w.nodes[w.places[s.To.Name]]
		n.scheduleArrival(to, size, func() { to.takeData(n.peer.Name, &s.Message) })
	}
	if out.Changed && !n.looks {
		n.looks = true
		w.After(0, func() {
			n.looks = false
			n.stepMachine(&workcore.Input{Kind: workcore.InTick})
		})
	}
	for _, name := range out.Written {
		n.stepMachine(&workcore.Input{Kind: workcore.InWritten, ID: name})
	}
	if at := n.data.Wake(); at < clocksync.MaxInstant && (n.dataWake <= w.Now() || at < n.dataWake) {
		n.dataWake = at
		w.After(at.Sub(w.Now()), func() {
			if n.dataWake == at && !n.dead && !w.ended {
				n.dataWake = clocksync.MaxInstant
				n.data.Tick(w.Now(), &n.dataOut)
				n.carryData()
			}
		})
	}
}

func (n *node) takeData(from string, m *datacore.Message) {
	if !n.dead && !n.world.ended {
		n.data.Take(n.world.Now(), from, m, &n.dataOut)
		n.carryData()
	}
}

// setDataRoster tells the machine of the data which members there are.
func (n *node) setDataRoster(roster []workcore.Peer) {
	if n.data == nil || n.dead || n.world.ended {
		return
	}
	peers := make([]datacore.Peer, len(roster))
	for i, p := range roster {
		peers[i] = datacore.Peer(p)
	}
	n.data.SetRoster(n.world.Now(), peers, &n.dataOut)
	n.carryData()
}

// countClasses counts the different classes of all tasks.
func (w *world) countClasses() int {
	var list []class
	for _, c := range w.classes {
		if k := len(list); c.count > 0 && (k == 0 || list[k-1] != c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b class) int { return (a.first-b.first)*(maxObjects+1) + a.count - b.count })
	return len(slices.Compact(list))
}

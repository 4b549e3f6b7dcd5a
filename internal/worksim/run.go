package worksim

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/datacore"
	"github.com/gopegasus/pegasus/internal/sim"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/predicates"
)

const (
	// savePause is how often a process has the bags of other members saved.
	savePause = time.Second
	// maxFactor is how many times the bound a run may take.
	maxFactor = 100
)

// world is one run.
type world struct {
	*sim.World
	set     *Scenario
	nodes   []*node
	places  map[string]int // of nodes, by name
	roster  []workcore.Peer
	links   *links    // nil: each pair of nodes has one
	classes []class   // of items
	weights []float64 // of items
	before  []float64 // by item: the weights of the items before it; one more than there are items
	counts  []uint8   // by item: how often it was recorded
	yields  []time.Duration
	left    int // items that are neither recorded nor given up
	parts   int
	key     func(weight, put float64) float64
	ended   bool
	failed  error    // why it ended early
	faults  []string // what must never happen
	bend    func(*workcore.Frame, *node) bool
	result  Result
}

// node is a simulated process and its machine.
type node struct {
	world   *world
	place   int
	peer    workcore.Peer
	machine *workcore.Member
	out     workcore.Output
	speed   speed
	slots   []slot
	runs    []int            // as in its group
	puts    []*workcore.Task // that the program is yet to put
	wake    clocksync.Instant
	last    []clocksync.Instant // by node: when the last frame to it arrives
	dead    bool
	// withdrawals are those that have not ended.
	withdrawals int
	ended       clocksync.Instant // when it died, or the run ended
	busy        time.Duration     // of all slots

	data     *datacore.Member // nil: tasks read none
	dataOut  datacore.Output
	dataWake clocksync.Instant
	looks    bool       // a tick of the machine is due at once
	waiting  [][]string // memory of planData
	running  [][]string
	queued   int // tasks that wait here
	lane     lane
}

// slot is where a function runs.
type slot struct {
	runs, waits bool // waits: for its record to count
	remote, bag bool
	save        bool
	part        int    // items that are to be given
	event       uint64 // the number of the event that counts
	low         int    // the first item that is not recorded
	at, high    int    // the first item that was not done at the last yield, and the end
	since       clocksync.Instant
	told        int
	yield       time.Duration
	reads       []string // names of data
}

// Run simulates a scenario with its seed.
func Run(s *Scenario, stop func() error) (*Result, error) { return run(s, stop, nil) }

func run(s *Scenario, stop func() error, bend func(*workcore.Frame, *node) bool) (*Result, error) {
	w := &world{World: sim.New(s.Seed), set: s, places: map[string]int{}, before: []float64{0}, key: func(_, _ float64) float64 { return 0 }, bend: bend}
	if s.Work.Order != "" {
		order, err := predicates.CompileOrder(s.Work.Order)
		if err != nil {
			return nil, err
		}
		w.key = order.Key
	}
	if err := w.build(); err != nil {
		return nil, err
	}
	bound, why := w.lowerBound()
	if bound > longest/maxFactor {
		return nil, fmt.Errorf("the work takes more than %v on all nodes together: give the tasks less weight, or the nodes more speed", longest/maxFactor)
	}
	w.result.Bound, w.result.Why = bound, why
	limit := clocksync.Instant(0).Add(maxFactor*bound + time.Minute)
	for until := clocksync.Instant(0); !w.ended && until < limit; {
		if until = until.Add(bound/64 + time.Millisecond); stop != nil {
			if err := stop(); err != nil {
				return nil, err
			}
		}
		w.Run(min(until, limit))
	}
	if !w.ended {
		return nil, fmt.Errorf("seed %d: %d of %d items are not done after %v, %d times the bound: the strategy does not spread the work, or too many frames are lost", s.Seed, w.left, len(w.weights), limit.Sub(0), maxFactor)
	}
	if w.failed != nil {
		return nil, w.failed
	}
	return w.fillResult(), nil
}

// build makes the nodes, and what is to happen.
func (w *world) build() error {
	s := w.set
	w.links = newLinks(&s.Network, s.countNodes())
	for i := range s.Nodes {
		g := &s.Nodes[i]
		for k := range g.Count {
			base := g.Speed
			if g.Fastest > 0 && g.Count > 1 {
				base += (g.Fastest - g.Speed) * float64(k) / float64(g.Count-1)
			}
			strategy, err := local.New(s.Work.Strategy)
			if err != nil {
				return err
			}
			n := &node{world: w, place: len(w.nodes), runs: g.Runs, wake: clocksync.MaxInstant, dataWake: clocksync.MaxInstant, ended: -1}
			n.peer = workcore.Peer{Name: fmt.Sprintf("n%04d", n.place+1), Life: 1}
			n.speed = newSpeed(base, g.Changes, clocksync.Instant(0).Add(time.Duration(k)*g.Changes.Shift))
			n.slots = make([]slot, cmp.Or(g.Slots, s.Work.Slots, 1))
			n.last = make([]clocksync.Instant, s.countNodes())
			n.newData(s)
			var ready func([]string) bool
			var missing func(workcore.Peer, []string) int
			if n.data != nil {
				ready = n.data.Ready
				missing = func(at workcore.Peer, reads []string) int { return n.data.Missing(datacore.Peer(at), reads) }
			}
			n.machine = workcore.NewMember(workcore.Options{
				Funcs: s.functionsOf(g), Ready: ready, Missing: missing, Self: n.peer, Slots: len(n.slots), Strategy: strategy, Topology: local.Topology(s.Work.Topology),
				Limits: workcore.Limits{Retry: s.Work.Retry, Losses: s.Work.Losses, Open: s.Work.Open},
			})
			w.places[n.peer.Name] = n.place
			w.nodes, w.roster = append(w.nodes, n), append(w.roster, n.peer)
		}
	}
	for _, n := range w.nodes {
		w.After(0, func() {
			n.setDataRoster(w.roster)
			n.stepMachine(&workcore.Input{Kind: workcore.InRoster, Roster: w.roster})
		})
	}
	w.writeObjects()
	if s.trace != nil {
		w.putTrace()
	} else {
		for i := range s.Tasks {
			w.draw(i)
		}
	}
	w.counts, w.left = make([]uint8, len(w.weights)), len(w.weights)
	for _, n := range w.nodes {
		w.After(w.Between(0, savePause), n.saveBags)
	}
	for range s.Withdrawals.Count {
		n := w.nodes[w.Rand.IntN(len(w.nodes))]
		w.After(w.Between(s.Withdrawals.From, s.Withdrawals.Until), func() { w.withdraw(n) })
	}
	mortal := s.mortalNodes()
	w.Rand.Shuffle(len(mortal), func(i, k int) { mortal[i], mortal[k] = mortal[k], mortal[i] })
	for _, i := range mortal[:min(s.Kills.Count, len(mortal))] {
		w.After(w.Between(s.Kills.From, s.Kills.Until), func() { w.kill(w.nodes[i]) })
	}
	return nil
}

// bodyBytes is what the body of a task begins with: its items.
const bodyBytes = 16

func span(low, high, bytes int) []byte {
	b := make([]byte, bodyBytes, bodyBytes+bytes)
	binary.BigEndian.PutUint64(b, uint64(low))      //nolint:gosec // Items count from 0.
	binary.BigEndian.PutUint64(b[8:], uint64(high)) //nolint:gosec // As above.
	return append(b, make([]byte, bytes)...)
}

func spanOf(body []byte) (low, high int) {
	return int(binary.BigEndian.Uint64(body)), int(binary.BigEndian.Uint64(body[8:])) //nolint:gosec // As span wrote them.
}

// functionName is the function of the tasks of an entry.
func functionName(kind string, entry int) string { return fmt.Sprintf("%s/%d", kind, entry) }

// functionsOf are those that the nodes of a group can run; nil if all nodes can run all.
func (s *Scenario) functionsOf(g *Group) []string {
	if !slices.ContainsFunc(s.Nodes, func(g Group) bool { return len(g.Runs) > 0 }) {
		return nil
	}
	list := []string{}
	for i := range s.Tasks {
		if len(g.Runs) == 0 || slices.Contains(g.Runs, i+1) {
			list = append(list, functionName(s.Tasks[i].Kind, i))
		}
	}
	return list
}

// draw draws the tasks of one entry of the scenario.
func (w *world) draw(entry int) {
	t := &w.set.Tasks[entry]
	dice := rand.New(rand.NewPCG(w.set.Seed, uint64(entry)+1)) //nolint:gosec // Of a simulation.
	items := 1
	if t.Kind == Bag {
		items = t.Items
	}
	w.yields = append(w.yields, t.Yield)
	lists := make([][]*workcore.Task, len(w.nodes))
	names := map[class][]string{} // Tasks of a class share them: strings at one address are compared at once.
	area := 1.0
	for i := range t.Count {
		low, reads := len(w.weights), w.set.classOf(t, i)
		if t.Areas > 0 && i%t.Areas == 0 {
			area = 0.5 + dice.Float64()
		}
		for k := range items {
			x := area * t.Weight.drawWeight(i*items+k, t.Count*items, dice.Float64, dice.ExpFloat64)
			w.weights, w.classes = append(w.weights, x), append(w.classes, reads)
			w.before = append(w.before, w.before[low+k]+x)
		}
		if names[reads] == nil {
			names[reads] = w.set.namesOf(reads)
		}
		by := w.set.putterOf(t, i, len(w.nodes))
		lists[by] = append(lists[by], &workcore.Task{
			ID: fmt.Sprintf("%d/%d", entry+1, i+1), Func: functionName(t.Kind, entry), Body: span(low, low+items, t.Bytes), Weight: w.workOf(low, low+items), Reads: names[reads],
		})
	}
	w.result.Tasks += t.Count
	for i, list := range lists {
		if n := w.nodes[i]; len(list) > 0 {
			w.After(t.Put.At, func() { n.puts = append(n.puts, list...); n.putTasks() })
		}
	}
}

// workOf is that of the items from low to high.
func (w *world) workOf(low, high int) float64 { return w.before[high] - w.before[low] }

func (w *world) addFault(format string, args ...any) {
	if len(w.faults) < 10 {
		w.faults = append(w.faults, fmt.Sprintf("at %v: ", w.Now().Sub(0))+fmt.Sprintf(format, args...))
	}
}

// putTasks is the program: it puts tasks until as many are open as may be.
func (n *node) putTasks() {
	for len(n.puts) > 0 && !n.dead && !n.world.ended {
		t := n.puts[0]
		n.puts = n.puts[1:]
		n.stepMachine(&workcore.Input{Kind: workcore.InPut, Task: t, Key: n.world.key(t.Weight, n.world.Now().Sub(0).Seconds())})
		if errors.Is(n.out.Err, workcore.ErrFull) {
			n.puts = append([]*workcore.Task{t}, n.puts...)
			return
		}
	}
}

// kill ends a node, which leaves the roster after a time.
func (w *world) kill(n *node) {
	if w.ended {
		return
	}
	w.result.Killed++
	n.stopAll()
	n.dead = true
	w.After(w.set.Kills.Silence, func() {
		w.roster = slices.DeleteFunc(slices.Clone(w.roster), func(p workcore.Peer) bool { return p == n.peer })
		roster := w.roster
		for _, other := range w.nodes {
			w.After(w.set.Network.Cost, func() {
				other.setDataRoster(roster)
				other.stepMachine(&workcore.Input{Kind: workcore.InRoster, Roster: roster})
			})
		}
	})
}

// withdraw has a node take no work for a time. If it is withdrawn already, that ends later.
func (w *world) withdraw(n *node) {
	if n.dead || w.ended {
		return
	}
	w.result.Withdrawn++
	n.withdrawals++
	n.stepMachine(&workcore.Input{Kind: workcore.InWithdraw})
	if w.set.Withdrawals.For == 0 {
		return
	}
	w.After(w.set.Withdrawals.For, func() {
		if n.withdrawals--; n.withdrawals == 0 {
			n.stepMachine(&workcore.Input{Kind: workcore.InWithdraw, Active: true})
		}
	})
}

// stepMachine makes a step of the machine and carries out what it asks for.
func (n *node) stepMachine(in *workcore.Input) {
	w := n.world
	if n.dead || w.ended {
		return
	}
	switch in.Kind { //nolint:exhaustive // As a process does.
	case workcore.InTick, workcore.InFrame:
		n.tellItems()
	}
	n.machine.Step(w.Now(), in, &n.out)
	out := &n.out
	if out.Err != nil && !errors.Is(out.Err, workcore.ErrFull) {
		w.addFault("%s: %v", n.peer.Name, out.Err)
	}
	for i := range out.Frames {
		n.send(&out.Frames[i])
	}
	for _, i := range out.Stops {
		n.stopSlot(i)
	}
	for _, y := range out.Yields {
		n.slots[y.Slot].part, n.slots[y.Slot].save = y.Items, true
		n.awaitYield(y.Slot)
	}
	for _, i := range out.Recorded {
		n.goOn(i)
	}
	for i := range out.Results {
		n.record(&out.Results[i])
	}
	if at := out.Wake; at < clocksync.MaxInstant && (n.wake <= w.Now() || at < n.wake) {
		n.wake = at
		w.After(at.Sub(w.Now()), func() {
			if n.wake == at {
				n.wake = clocksync.MaxInstant
				n.stepMachine(&workcore.Input{Kind: workcore.InTick})
			}
		})
	}
	runs, results := slices.Clone(out.Runs), len(out.Results)
	n.queued = out.Told.Queued
	for i := range runs {
		n.start(&runs[i])
	}
	n.noteState()
	n.planData()
	if results > 0 && len(n.puts) > 0 {
		w.After(0, n.putTasks)
	}
}

// send puts a frame on its way.
func (n *node) send(f *workcore.Frame) {
	w := n.world
	bytes := len(f.Append(nil))
	w.result.Messages++
	w.result.Bytes += bytes
	if f.Parcel != nil && len(f.Parcel.Leases) > 0 {
		w.result.Parcels++
		w.result.Moved += len(f.Parcel.Leases)
	}
	to, frame := w.nodes[w.places[f.To.Name]], f.Kept()
	n.scheduleArrival(to, bytes, func() {
		if w.bend == nil || w.bend(&frame, to) {
			to.stepMachine(&workcore.Input{Kind: workcore.InFrame, Frame: &frame})
		}
	})
}

// scheduleArrival has something happen once bytes have come to a node, if they come.
func (n *node) scheduleArrival(to *node, bytes int, do func()) {
	w, net := n.world, &n.world.set.Network
	travel := func() time.Duration {
		if w.links != nil && n != to {
			return w.links.arrivalOf(w.Now(), n.place, to.place, bytes).Sub(w.Now())
		}
		cost, all := net.linkTimes(n.place, to.place, bytes)
		return cost + all
	}
	for _, d := range net.drawDelays(w.World, travel) {
		at := max(w.Now().Add(d), n.last[to.place]) // Frames between two members stay in order.
		n.last[to.place] = at
		w.After(at.Sub(w.Now()), do)
	}
}

// drawDelays draws how long the copies of a frame take that arrive, each of which travels for a time.
func (n *Network) drawDelays(w *sim.World, travel func() time.Duration) (list []time.Duration) {
	copies := 1
	if n.Double > 0 && w.Rand.Float64() < n.Double {
		copies = 2
	}
	for range copies {
		d := travel()
		if n.Jitter > 0 {
			d += w.Between(0, n.Jitter)
		}
		if n.Loss > 0 && w.Rand.Float64() < n.Loss {
			continue
		}
		list = append(list, d)
	}
	return list
}

// record counts the items of a result.
func (n *node) record(r *workcore.Result) {
	w := n.world
	if r.Fate > workcore.Done {
		w.failed = fmt.Errorf("seed %d: task %s is %v after %v: %s: raise work.losses, or kill fewer nodes", w.set.Seed, r.ID, r.Fate, w.Now().Sub(0), r.Error)
		w.ended = true
		return
	}
	low, high := spanOf(r.Value)
	for i := low; i < high; i++ {
		if w.counts[i]++; w.counts[i] > 1 {
			w.result.Twice++
			w.addFault("item %d of task %s is recorded %d times", i+1, r.ID, w.counts[i])
			continue
		}
		w.left--
	}
	if w.left == 0 {
		w.end()
	}
}

func (w *world) end() {
	w.ended = true
	w.result.Time = w.Now().Sub(0)
	for _, n := range w.nodes {
		if !n.dead {
			n.stopAll()
		}
	}
}

// start runs the function of a task.
func (n *node) start(r *workcore.Run) {
	s := &n.slots[r.Slot]
	low, high := spanOf(r.Task.Body)
	kind, entry, _ := strings.Cut(r.Task.Func, "/")
	var number int
	_, _ = fmt.Sscan(entry, &number) // As draw wrote it.
	if list := n.runs; len(list) > 0 && !slices.Contains(list, number+1) {
		n.world.addFault("%s got task %s, and cannot run its function", n.peer.Name, r.Task.ID)
	}
	*s = slot{runs: true, bag: kind == Bag, remote: r.Account != n.peer, event: s.event + 1, low: low, at: low, high: high, since: n.world.Now(), yield: n.world.yields[number], reads: r.Task.Reads}
	n.awaitEnd(r.Slot)
	if s.bag {
		s.told = high - low
		n.stepMachine(&workcore.Input{Kind: workcore.InItems, Slot: r.Slot, Items: s.told})
	}
}

// after has something happen in a slot at an instant, unless something else comes before.
func (n *node) after(i int, at clocksync.Instant, do func()) {
	if at == clocksync.MaxInstant {
		return
	}
	event := n.slots[i].event
	n.world.After(at.Sub(n.world.Now()), func() {
		if !n.dead && !n.world.ended && n.slots[i].event == event {
			do()
		}
	})
}

// awaitEnd waits for the end of the function.
func (n *node) awaitEnd(i int) {
	s := &n.slots[i]
	n.after(i, n.speed.endOfWork(s.since, n.world.workOf(s.at, s.high)), func() {
		n.spend(s, s.high)
		result := span(s.low, s.high, 0)
		*s = slot{event: s.event + 1}
		n.stepMachine(&workcore.Input{Kind: workcore.InDone, Slot: i, Step: &workcore.Step{Record: workcore.Record{Fate: workcore.Done, Result: result}}})
	})
}

// spend counts the time in which a slot has worked up to item at.
func (n *node) spend(s *slot, at int) {
	n.busy += n.world.Now().Sub(s.since)
	n.world.result.Done += n.world.workOf(s.at, at)
	s.at, s.since = at, n.world.Now()
}

// nextYield is when a bag yields next, and before which item.
func (n *node) nextYield(s *slot) (at clocksync.Instant, item int) {
	w := n.world
	work := n.speed.workBetween(s.since, s.since.Add(s.yield)) * (1 - 1e-9)
	item = s.at + 1 + sort.Search(s.high-s.at-1, func(i int) bool { return w.workOf(s.at, s.at+1+i) >= work })
	return n.speed.endOfWork(s.since, w.workOf(s.at, item)), item
}

// advance brings a bag to its last yield.
func (n *node) advance(s *slot) {
	for s.runs && s.bag && !s.waits && s.at < s.high {
		at, item := n.nextYield(s)
		if at > n.world.Now() || item == s.high {
			return
		}
		n.busy += at.Sub(s.since)
		n.world.result.Done += n.world.workOf(s.at, item)
		s.at, s.since = item, at
	}
}

// tellItems tells the machine how much the bags had at their last yields.
func (n *node) tellItems() {
	for i := range n.slots {
		s := &n.slots[i]
		if !s.runs || !s.bag || s.waits {
			continue
		}
		if n.advance(s); s.high-s.at != s.told {
			s.told = s.high - s.at
			n.stepMachine(&workcore.Input{Kind: workcore.InItems, Slot: i, Items: s.told})
		}
	}
}

// saveBags has the bags of other members saved, as a process does.
func (n *node) saveBags() {
	if n.dead || n.world.ended {
		return
	}
	for i := range n.slots {
		if s := &n.slots[i]; s.runs && s.bag && s.remote {
			s.save = true
			n.awaitYield(i)
		}
	}
	n.world.After(savePause, n.saveBags)
}

// awaitYield waits for the next yield of a bag that has something to do there.
func (n *node) awaitYield(i int) {
	s := &n.slots[i]
	if !s.runs || !s.bag || s.waits || s.part == 0 && !s.save {
		return
	}
	n.advance(s)
	at, item := n.nextYield(s)
	if item == s.high {
		return // The function returns before.
	}
	n.after(i, at, func() {
		if s.waits || s.at >= item || s.part == 0 && !s.save {
			return
		}
		n.spend(s, item)
		n.yield(i)
	})
}

// yield records what is done, and gives a part away.
func (n *node) yield(i int) {
	s, w := &n.slots[i], n.world
	r := workcore.Record{Fate: workcore.Kept, Result: span(s.low, s.at, 0)}
	task, bytes := w.entryOf(s.at)
	if part := min(s.part, s.high-s.at-1); part > 0 {
		w.parts++
		r.Children = []workcore.Task{{ID: fmt.Sprintf("%s~%d", n.peer.Name, w.parts), Func: task, Body: span(s.high-part, s.high, bytes), Part: true}}
		s.high -= part
	}
	r.Rest = span(s.at, s.high, bytes)
	s.low, s.part, s.save, s.waits, s.told = s.at, 0, false, true, s.high-s.at
	s.event++
	n.stepMachine(&workcore.Input{Kind: workcore.InYield, Slot: i, Step: &workcore.Step{Record: r}, Items: s.told})
}

// entryOf is the function of an item, and the bytes of its tasks.
func (w *world) entryOf(item int) (task string, bytes int) {
	for i := range w.set.Tasks {
		t := &w.set.Tasks[i]
		n := t.Count
		if t.Kind == Bag {
			n *= t.Items
		}
		if item < n {
			return functionName(t.Kind, i), t.Bytes
		}
		item -= n
	}
	panic("worksim: an item of no task")
}

// goOn continues a bag whose record counts.
func (n *node) goOn(i int) {
	s := &n.slots[i]
	s.waits, s.since = false, n.world.Now()
	s.event++
	n.awaitEnd(i)
	n.awaitYield(i)
}

// halt ends what a slot does, and counts what it has done.
func (n *node) halt(s *slot) {
	if !s.runs {
		return
	}
	if n.advance(s); !s.waits {
		n.busy += n.world.Now().Sub(s.since)
		n.world.result.Done += min(n.speed.workBetween(s.since, n.world.Now()), n.world.workOf(s.at, s.high))
	}
	*s = slot{event: s.event + 1}
}

// stopSlot has a function return at once: its task is not this node's any more.
func (n *node) stopSlot(i int) {
	n.halt(&n.slots[i])
	n.world.After(0, func() {
		n.stepMachine(&workcore.Input{Kind: workcore.InDone, Slot: i, Step: &workcore.Step{Record: workcore.Record{Fate: workcore.Failed, Error: "stopped"}}})
	})
}

func (n *node) stopAll() {
	for i := range n.slots {
		n.halt(&n.slots[i])
	}
	n.ended = n.world.Now()
	n.lane.endLane(n.ended)
}

package workcore

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// The times of a space.
const (
	pulse    = 10 * time.Millisecond // a step of the world
	quiet    = 800 * time.Millisecond
	troubles = 8 * time.Second  // until the faults cease
	patience = 60 * time.Second // until there has to be an end after that
	phases   = 2
)

// node is a computer of a space: one life of a member after the other.
type node struct {
	peer    Peer
	machine *Member
	out     Output
	slots   []work
	speed   float64
	asleep  clocksync.Instant // until when it is stopped
	cut     clocksync.Instant // until when no frame passes
	heard   clocksync.Instant // when the synchronizer last heard of it
	drains  bool              // it was asked to drain
	away    bool              // it was asked to take no work
	dead    bool              // it is gone, and perhaps not yet dropped
	puts    int               // tasks that its program is yet to put in this phase
	first   int               // of them at its begin
	later   int               // the number of a task that others wait for and that is yet to be put; -1: none
	phase   uint64            // that the program is in
	told    Told
	lost    map[Peer]int
	counted int
	order   []func(*node) // what the synchronizer has told it, in order
	kept    []Parted      // of a mutant
	orderAt clocksync.Instant
}

// work is a function that runs: the numbers from low to at are done and not recorded.
type work struct {
	runs, stops, waits bool
	kind               string
	try                int
	low, at, high      uint64
	credit             float64
	part               int
}

// program is what is known of a task that a program puts, by "peer phase ID"; the task may be put later.
type program struct {
	low, high uint64
	kind      string
	put       bool
	fails     bool     // for good, or a task that it runs after does
	after     []string // keys of programs
	next      []string // those that run after it
}

// flight is a frame on its way.
type flight struct {
	at    clocksync.Instant
	frame Frame
}

// drop is a life that left the roster, and who had to hear of its tasks.
type drop struct {
	peer Peer
	open int
	by   []Peer
}

// space is a world of members. Each task is a stretch of numbers; a result is the stretch that was
// done. The judge counts numbers, and reads no account.
type space struct {
	*rand.Rand
	now                                                                clocksync.Instant
	nodes                                                              []*node
	roster                                                             []Peer
	flights                                                            []flight
	phase                                                              uint64
	number                                                             uint64 // the next one
	names                                                              int
	owner                                                              map[uint64]Peer // by number: the member that put it
	inPhase                                                            map[uint64]uint64
	counts                                                             map[uint64]int
	failing                                                            map[string]bool // "peer phase ID" of tasks that have to fail
	programs                                                           map[string]*program
	waiting, waited                                                    int // tasks with After, and how many of them have begun
	drops                                                              []drop
	faults                                                             []string
	loss                                                               float64
	frozen                                                             bool
	ended                                                              bool
	calm                                                               bool // nothing dies, no frame is lost, and frames stay in order
	withdraws                                                          bool // members are withdrawn, and return
	withdrawals                                                        int
	anyLife                                                            bool // of a mutant: frames reach the life that is there
	strategy                                                           func() local.Local
	topology                                                           local.Topology
	alter                                                              func(*Frame) bool // of a mutant; false drops it
	after                                                              func(*node)       // of a mutant, after a step
	before                                                             func(*node, *Input)
	arrive                                                             func(*node, *Frame)
	kills, drained, moves, parts, sent, done, flaky, failed, cancelled int
}

func newSpace(seed uint64) *space {
	w := &space{
		Rand: rand.New(rand.NewPCG(seed, 2)), phase: 1, owner: map[uint64]Peer{}, inPhase: map[uint64]uint64{}, counts: map[uint64]int{}, failing: map[string]bool{}, programs: map[string]*program{},
		alter: func(*Frame) bool { return true }, after: func(*node) {}, before: func(*node, *Input) {}, arrive: func(*node, *Frame) {},
	}
	w.loss = []float64{0, 0.02, 0.2}[w.IntN(3)]
	if w.IntN(8) == 0 {
		w.calm, w.loss = true, 0
	}
	w.topology = local.Topology(local.Topologies[w.IntN(2)])
	c := []local.Config{{}, {Kind: local.Chunk}, {Kind: local.Chunk, Cut: "fac2"}, {Share: 1, Again: 20 * time.Millisecond}}[w.IntN(4)]
	w.strategy = func() local.Local {
		l, err := local.New(c)
		if err != nil {
			panic(err)
		}
		return l
	}
	return w
}

func (w *space) fault(format string, args ...any) {
	if len(w.faults) < 20 {
		w.faults = append(w.faults, fmt.Sprintf("%v: ", w.now.Sub(0))+fmt.Sprintf(format, args...))
	}
}

// begin begins a life of a node.
func (w *space) begin(n *node, name string, life uint64) {
	slots := 1 + w.IntN(2)
	*n = node{
		peer: Peer{name, life}, slots: make([]work, slots), speed: 0.5 + 3*w.Float64(), heard: w.now, lost: map[Peer]int{}, phase: w.phase,
		machine: NewMember(Options{Self: Peer{name, life}, Phase: w.phase, Slots: slots, Strategy: w.strategy(), Topology: w.topology, Limits: Limits{Losses: 1 << 30}}),
	}
	if n.puts = w.IntN(4) * w.IntN(8); w.IntN(5) == 0 {
		n.puts = 70
	}
	n.first, n.later = n.puts, -1
	w.roster = append(w.roster, n.peer)
	w.newRoster()
}

func (w *space) byPeer(p Peer) *node {
	for _, n := range w.nodes {
		if n.peer == p && !n.dead {
			return n
		}
	}
	return nil
}

func (w *space) byName(name string) *node {
	for _, n := range w.nodes {
		if n.peer.Name == name && !n.dead {
			return n
		}
	}
	return nil
}

// newRoster tells all members of the roster; a member that is cut off hears of it later.
func (w *space) newRoster() {
	slices.SortFunc(w.roster, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	roster := slices.Clone(w.roster)
	w.tellAll(func(n *node) { w.step(n, &Input{Kind: InRoster, Roster: roster}) })
}

func (w *space) tellAll(what func(*node)) {
	for _, n := range w.nodes {
		if !n.dead {
			n.order = append(n.order, what)
			n.orderAt = w.now.Add(time.Duration(w.IntN(100)) * time.Millisecond)
		}
	}
}

func (w *space) step(n *node, in *Input) {
	w.before(n, in)
	n.machine.Step(w.now, in, &n.out)
	w.after(n)
	out := &n.out
	n.told = out.Told
	if out.Err != nil {
		w.fault("%v: %v", n.peer, out.Err)
	}
	for _, f := range out.Frames {
		w.send(f)
	}
	for _, i := range out.Stops {
		n.slots[i].stops = true
	}
	for _, i := range out.Recorded {
		n.slots[i].waits = false
	}
	for _, y := range out.Yields {
		if n.slots[y.Slot].part = y.Items; y.Items == 0 {
			n.slots[y.Slot].part = -1 // It is to be saved alone.
		}
	}
	for _, l := range out.Lost {
		n.lost[l.Peer] = l.Open
	}
	w.judge(n, out.Results)
	runs := slices.Clone(out.Runs)
	if out.Over { // It hears that it is out, and comes back.
		w.begin(n, n.peer.Name, n.peer.Life+1)
		return
	}
	for _, r := range runs {
		low, high := bounds(r.Task.Body)
		if n.slots[r.Slot].runs {
			w.fault("%v: slot %d runs two tasks", n.peer, r.Slot)
		}
		w.judgeBegin(n, &r)
		n.slots[r.Slot] = work{runs: true, kind: r.Task.Func, try: n.machine.slots[r.Slot].Lease.Try, low: low, at: low, high: high}
		if r.Task.Func == "bag" {
			w.step(n, &Input{Kind: InItems, Slot: r.Slot, Items: int(high - low)}) //nolint:gosec // Small.
		}
	}
}

// send puts a copy of a frame on its way, or two, or none.
func (w *space) send(f Frame) {
	w.sent++
	if !w.alter(&f) {
		return
	}
	f = f.Kept()
	if f.Parcel != nil && len(f.Parcel.Leases) > 0 {
		w.moves++
	}
	if err := f.Check(); err != nil {
		w.fault("a frame that may not be sent: %v", err)
	}
	for copies := 1; copies > 0; copies-- {
		if w.Float64() < w.loss {
			continue
		}
		delay := time.Duration(w.IntN(30)) * time.Millisecond
		if w.calm {
			delay = 20 * time.Millisecond
		}
		if w.loss > 0 && w.IntN(20) == 0 {
			delay = time.Duration(w.IntN(4000)) * time.Millisecond
		}
		if w.loss > 0 && w.IntN(10) == 0 && copies == 1 {
			copies++
		}
		w.flights = append(w.flights, flight{w.now.Add(delay), f})
	}
}

// judge counts the numbers of results.
func (w *space) judge(n *node, results []Result) {
	for _, r := range results {
		key := fmt.Sprint(n.peer, " ", n.machine.phase, " ", r.ID)
		switch {
		case r.Fate == Failed && w.failing[key]:
			delete(w.failing, key)
			w.failed++
		case r.Fate > Done:
			w.fault("%v: task %q is %v: %s", n.peer, r.ID, r.Fate, r.Error)
		default:
			low, high := bounds(r.Value)
			for k := low; k < high; k++ {
				if w.counts[k]++; w.counts[k] > 1 {
					w.fault("%v: number %d is recorded twice, with %q", n.peer, k, r.ID)
				}
				if w.owner[k] != n.peer || w.inPhase[k] != n.machine.phase {
					w.fault("%v: number %d of %v in phase %d counts in phase %d", n.peer, k, w.owner[k], w.inPhase[k], n.machine.phase)
				}
				n.counted++
			}
		}
	}
}

// judgeBegin: no task begins before those are done that it runs after, nor if one of them has failed.
func (w *space) judgeBegin(n *node, r *Run) {
	p := w.programs[key(r.Account, n.machine.phase, r.Task.ID)]
	if p == nil || len(p.after) == 0 {
		return
	}
	w.waited++
	for _, of := range p.after {
		before := w.programs[of]
		if before == nil || !before.put || before.fails {
			w.fault("%v: task %q begins, and %s has failed, or was not put", n.peer, r.Task.ID, of)
			return
		}
		for k := before.low; k < before.high; k++ {
			if w.counts[k] == 0 {
				w.fault("%v: task %q begins, and number %d of %s is not recorded", n.peer, r.Task.ID, k, of)
				return
			}
		}
	}
}

func key(p Peer, phase uint64, id string) string { return fmt.Sprint(p, " ", phase, " ", id) }

func (w *space) programOf(key string) *program {
	if w.programs[key] == nil {
		w.programs[key] = &program{}
	}
	return w.programs[key]
}

// doom notes that a task has to fail, and all that run after it.
func (w *space) doom(n *node, id string) {
	for list := []string{key(n.peer, n.phase, id)}; len(list) > 0; list = list[1:] {
		p := w.programOf(list[0])
		if p.fails {
			continue
		}
		if p.fails = true; !p.put {
			continue
		}
		if p.kind == "flaky" {
			w.flaky--
		}
		for k := p.low; k < p.high; k++ {
			w.owner[k] = Peer{} // None of its numbers may count.
		}
		w.failing[list[0]] = true
		list = append(list, p.next...)
	}
}

// drawAfter draws what a task runs after: tasks that were put, and some that come later.
func (w *space) drawAfter(n *node, id string, after *Task) {
	if n.first == 0 || w.IntN(3) > 0 {
		return
	}
	self := key(n.peer, n.phase, id)
	for range 1 + w.IntN(3) {
		other := n.puts + 1 + w.IntN(max(1, n.first-n.puts-1))
		if w.IntN(4) == 0 && n.puts > 0 && n.later < 0 {
			n.later = w.IntN(n.puts) // One at a time, which runs after none: so there is no circle.
			other = n.later
		}
		if of := key(n.peer, n.phase, fmt.Sprint("t", other)); other < n.first {
			after.After = append(after.After, fmt.Sprint("t", other))
			w.programOf(self).after, w.programOf(of).next = append(w.programOf(self).after, of), append(w.programOf(of).next, self)
		}
	}
	if len(after.After) > 0 {
		w.waiting++
	}
}

// program puts the remaining tasks, and settles then.
func (w *space) program(n *node) {
	if n.drains && n.later < 0 {
		n.puts = 0
	}
	if n.told.Drained { // It leaves; others have all that it had.
		n.dead = true
		w.drained++
		for k, owner := range w.owner {
			if owner == n.peer && w.inPhase[k] == n.phase && w.counts[k] == 0 {
				w.fault("%v has drained, and a task that it has put is not done", n.peer)
				break
			}
		}
		if i := slices.Index(w.roster, n.peer); i >= 0 {
			w.roster = slices.Delete(w.roster, i, i+1)
			w.newRoster()
		}
		return
	}
	if n.told.Phase != n.phase {
		n.phase = n.told.Phase
		if n.puts = w.IntN(12); n.drains {
			n.puts = 0
		}
		n.first, n.later = n.puts, -1
		w.step(n, &Input{Kind: InSettled, Settled: false})
	}
	switch {
	case w.IntN(3) > 0:
	case n.puts > 0:
		n.puts--
		count, kind := uint64(1), "one"
		switch w.IntN(6) {
		case 0:
			kind, count = "bag", 1+w.Uint64N(120)
		case 1:
			count = 1 + w.Uint64N(10)
		case 2:
			kind = "flaky"
			w.flaky++
		default:
		}
		id := fmt.Sprint("t", n.puts) // The same in each phase, and in each life.
		fails := w.IntN(12) == 0
		if fails {
			if kind == "flaky" {
				w.flaky--
			}
			kind, count = "bad", 0
		}
		for k := w.number; k < w.number+count; k++ {
			w.owner[k], w.inPhase[k] = n.peer, n.phase
		}
		task := Task{ID: id, Func: kind, Body: span(w.number, w.number+count)}
		if n.later == n.puts {
			n.later = -1
		} else {
			w.drawAfter(n, id, &task)
		}
		p := w.programOf(key(n.peer, n.phase, id))
		fails = fails || p.fails || slices.ContainsFunc(p.after, func(of string) bool { return w.programs[of].fails })
		if p.low, p.high, p.kind, p.put, p.fails = w.number, w.number+count, kind, true, false; fails {
			w.doom(n, id)
		}
		w.number += count
		w.step(n, &Input{Kind: InPut, Task: &task, Key: float64(w.IntN(3))})
		if kind == "one" && !w.calm {
			w.maybeCancel(n, id, w.number-count)
		}
	case !n.told.Settled:
		w.step(n, &Input{Kind: InSettled, Settled: true})
	}
}

// maybeCancel cancels a task that was just put, perhaps. None of its numbers may count then.
func (w *space) maybeCancel(n *node, id string, low uint64) {
	if w.IntN(20) > 0 {
		return
	}
	n.order = append(n.order, func(n *node) {
		if n.machine.accounts.own.account.findTask(id) == nil || n.machine.phase != w.inPhase[low] || w.owner[low] != n.peer {
			return
		}
		w.doom(n, id)
		w.cancelled++
		w.step(n, &Input{Kind: InCancel, ID: id})
	})
	n.orderAt = w.now.Add(time.Duration(w.IntN(200)) * time.Millisecond)
}

// run lets the functions of a node work for a pulse.
func (w *space) run(n *node) {
	life := n.peer
	for i := 0; i < len(n.slots) && n.peer == life; i++ {
		s := &n.slots[i]
		if !s.runs || s.waits && !s.stops || w.frozen && s.part == 0 {
			continue
		}
		if s.credit += n.speed / 3; w.frozen {
			s.credit = 0
		}
		for s.credit >= 1 && s.at < s.high {
			s.credit--
			if s.kind != "flaky" {
				w.done++
			}
			s.at++
		}
		found := span(s.low, s.at)
		switch {
		case s.stops && w.IntN(4) > 0:
		case s.stops || s.at == s.high:
			r := Record{Fate: Done, Result: found}
			if s.kind == "bad" || s.kind == "flaky" && s.try < 2 {
				r = Record{Fate: Failed, Error: "no luck"}
			}
			*s = work{}
			w.step(n, &Input{Kind: InDone, Slot: i, Step: &Step{Record: r}})
		case s.kind == "bag" && (s.part != 0 || w.IntN(30) == 0):
			r := Record{Fate: Kept, Result: found}
			if part := min(uint64(max(0, s.part)), s.high-s.at-1); part > 0 { //nolint:gosec // Above 0.
				w.names++
				w.parts++
				r.Children = []Task{{ID: fmt.Sprintf("%v/%d", n.peer, w.names), Func: "bag", Body: span(s.high-part, s.high), Part: true}}
				s.high -= part
			}
			s.low, s.part, s.waits, r.Rest = s.at, 0, true, span(s.at, s.high)
			w.step(n, &Input{Kind: InYield, Slot: i, Step: &Step{Record: r}, Items: int(s.high - s.at)}) //nolint:gosec // Small.
		default:
		}
	}
}

// trouble kills, stops and cuts off nodes, and lets one join.
func (w *space) trouble() {
	n := w.nodes[w.IntN(len(w.nodes))]
	switch dice := w.IntN(400); {
	case n.dead:
	case dice < 2:
		n.dead = true
		w.kills++
	case dice < 4:
		n.asleep = w.now.Add(time.Duration(w.IntN(2500)) * time.Millisecond)
	case dice < 6:
		n.cut = w.now.Add(time.Duration(w.IntN(2500)) * time.Millisecond)
	case dice < 10 && n != w.nodes[0]: // A member has to do it all.
		n.drains = true
		w.step(n, &Input{Kind: InDrain})
	case dice < 30 && dice >= 11 && w.withdraws && !n.drains:
		if n.away = !n.away; n.away {
			w.withdrawals++
		}
		w.step(n, &Input{Kind: InWithdraw, Active: !n.away})
	case dice < 11 && len(w.nodes) < 8:
		w.nodes = append(w.nodes, &node{})
		w.begin(w.nodes[len(w.nodes)-1], fmt.Sprint("n", len(w.nodes)-1), 1)
	default:
	}
}

// synchronizer drops silent members, lets the dead come back, and declares the end.
func (w *space) synchronizer() {
	for _, n := range w.nodes {
		reached := !n.dead && n.asleep <= w.now && n.cut <= w.now
		if reached {
			n.heard = w.now
		}
		if i := slices.Index(w.roster, n.peer); i >= 0 && w.now.Sub(n.heard) > quiet {
			w.roster = slices.Delete(w.roster, i, i+1)
			w.drops = append(w.drops, drop{n.peer, n.told.Open, slices.Clone(w.roster)})
			w.newRoster()
			if !n.dead {
				roster := slices.Clone(w.roster)
				n.order = append(n.order, func(n *node) { w.step(n, &Input{Kind: InRoster, Roster: roster}) })
			}
		} else if i < 0 && n.dead && w.IntN(50) == 0 {
			w.begin(n, n.peer.Name, n.peer.Life+1)
		}
	}
	for _, p := range w.roster {
		if n := w.byPeer(p); n == nil || !n.told.Idle || !n.told.Settled || n.told.Phase != w.phase || n.puts > 0 {
			return
		}
	}
	w.judgeEnd()
	phase := w.phase
	w.phase++
	w.tellAll(func(n *node) { w.step(n, &Input{Kind: InEnd, Phase: phase}) })
	w.ended = w.phase > phases
}

// judgeEnd: whatever a member of the roster has put is done once, and failed if it has to.
func (w *space) judgeEnd() {
	for k := range w.number {
		if slices.Contains(w.roster, w.owner[k]) && w.counts[k] != 1 {
			w.fault("phase %d ended, and number %d of %v is recorded %d times", w.phase, k, w.owner[k], w.counts[k])
		}
	}
	for key := range w.failing {
		if slices.ContainsFunc(w.roster, func(p Peer) bool { return strings.HasPrefix(key, p.String()+" ") }) {
			w.fault("phase %d ended, and task %s has not failed", w.phase, key)
		}
	}
}

func (w *space) pulse() {
	w.now = w.now.Add(pulse)
	var due []flight
	w.flights = slices.DeleteFunc(w.flights, func(f flight) bool {
		if f.at <= w.now {
			due = append(due, f)
		}
		return f.at <= w.now
	})
	for _, f := range due {
		from, to := w.byPeer(f.frame.From), w.byPeer(f.frame.To)
		if w.anyLife {
			to = w.byName(f.frame.To.Name)
		}
		switch {
		case to == nil || to.cut > w.now || from != nil && from.cut > w.now:
		case to.asleep > w.now:
			w.flights = append(w.flights, flight{to.asleep, f.frame})
		default:
			frame := f.frame
			w.arrive(to, &frame)
			w.step(to, &Input{Kind: InFrame, Frame: &frame})
		}
	}
	for i := 0; i < len(w.nodes); i++ { // Nodes may join.
		n := w.nodes[i]
		if n.dead || n.asleep > w.now {
			continue
		}
		for len(n.order) > 0 && n.orderAt <= w.now && n.cut <= w.now {
			what := n.order[0]
			n.order = n.order[1:]
			what(n)
		}
		if n.out.Wake <= w.now {
			w.step(n, &Input{Kind: InTick})
			if n.out.Wake <= w.now {
				w.fault("%v wakes at %v, which is over", n.peer, n.out.Wake)
			}
		}
		w.run(n)
		if !w.frozen && !w.ended {
			w.program(n)
		}
	}
	if !w.frozen {
		w.synchronizer()
	}
}

func (w *space) live() {
	for range 2 + w.IntN(5) {
		w.nodes = append(w.nodes, &node{})
		w.begin(w.nodes[len(w.nodes)-1], fmt.Sprint("n", len(w.nodes)-1), 1)
	}
	for w.now < clocksync.Instant(troubles) && !w.ended {
		if !w.calm {
			w.trouble()
		}
		w.pulse()
	}
	w.loss = min(w.loss, 0.02)
	if freeze := w.IntN(3) == 0; freeze && !w.ended { // No task ends: moves cease.
		for range 300 {
			w.pulse() // Everything dropped is back.
		}
		w.loss, w.frozen = 0, true
		for range 1200 {
			w.pulse()
		}
		moves := w.moves
		for range 300 {
			w.pulse()
		}
		if w.moves > moves {
			w.fault("%d moves while no task ends", w.moves-moves)
		}
		w.frozen = false
	}
	limit := w.now.Add(patience)
	if w.withdraws { // Few members do all.
		limit = limit.Add(3 * patience)
	}
	for !w.ended && w.now < limit {
		w.pulse()
	}
	if !w.ended {
		w.fault("phase %d does not end", w.phase)
		for _, n := range w.nodes {
			w.fault("%v: %+v", n.peer, n.told)
		}
	}
	for range 20 {
		w.pulse()
	}
	if n := w.again(); w.calm && n > 0 {
		w.fault("%d numbers of %d are done again, and nothing was lost", n, len(w.counts))
	}
	for _, d := range w.drops {
		for _, p := range d.by {
			if n := w.byPeer(p); n != nil && slices.Contains(w.roster, p) && len(n.order) == 0 {
				if _, is := n.lost[d.peer]; d.open > 0 && !is {
					w.fault("%v was not told that %d tasks of %v are lost", p, d.open, d.peer)
				}
			}
		}
	}
}

// again is how many numbers were done again.
func (w *space) again() int { return w.done - len(w.counts) + w.flaky }

// TestSpaces: whatever is put is done once, no end comes early, and no task is lost without a word.
func TestSpaces(t *testing.T) {
	n := testcount.Of(t, "WORK", 200)
	waiting, waited := 0, 0
	all, redone, drained, kills, moves, parts, drops, sent, failed, length := 0, 0, 0, 0, 0, 0, 0, 0, 0, time.Duration(0)
	for seed := range uint64(n) { //nolint:gosec // Above 0.
		w := newSpace(seed)
		w.live()
		if len(w.faults) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.faults, "\n"))
		}
		all, redone = all+len(w.counts), redone+max(0, w.again())
		drained += w.drained
		waiting, waited = waiting+w.waiting, waited+w.waited
		kills, moves, parts, drops, sent, failed, length = kills+w.kills, moves+w.moves, parts+w.parts, drops+len(w.drops), sent+w.sent, failed+w.failed, length+w.now.Sub(0)
	}
	t.Logf("%d spaces, %v: %d kills, %d drained, %d drops, %d parcels, %d parts, %d frames, %d tasks failed, %d numbers of %d done again", n, length, kills, drained, drops, moves, parts, sent, failed, redone, all)
	t.Logf("%d tasks ran after others, and %d of them began", waiting, waited)
	if waiting < n || waited < n/2 {
		t.Errorf("%d tasks ran after others, and %d of them began: too little was tried", waiting, waited)
	}
	if kills < n/2 || drained < n/8 || parts < n/4 || moves < n {
		t.Errorf("%d kills, %d drained, %d parcels, %d parts: too little was tried", kills, drained, moves, parts)
	}
}

// TestOffers: the same with strategies that offer tasks to each other.
func TestOffers(t *testing.T) {
	for _, kind := range offering {
		moves := 0
		for seed := range uint64(testcount.Of(t, "WORK", 200)) / 5 { //nolint:gosec // Above 0.
			w := newSpace(seed)
			w.strategy = func() local.Local {
				c := local.Config{Kind: kind}
				if kind == local.Links {
					c.Links = "n0(u=(L<1),o=(L>=3))[1/2]#n1(u=(L<1))[1/2], n1(o=(L>=2))[1/2]#n2, n2(o=(L>=2))[1/2]#n3(o=(L>=2))[1], n3(o=(L>=4))[1/2]#n0"
				}
				l, err := local.New(c)
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			w.live()
			if len(w.faults) > 0 {
				t.Fatalf("%s, seed %d: %s", kind, seed, strings.Join(w.faults, "\n"))
			}
			moves += w.moves
		}
		if moves < 100 {
			t.Errorf("%s: %d parcels: too little was tried", kind, moves)
		}
	}
}

var offering = []string{local.Sender, local.Diffusion, local.Links, local.Tree}

// greedy asks always and gives whatever waits.
type greedy struct{}

func (greedy) Look(now clocksync.Instant, v *local.View, to []local.Demand) ([]local.Demand, clocksync.Instant) {
	if len(v.Neighbours) > 0 {
		to = append(to, local.Demand{Member: v.Neighbours[0].Name})
	}
	return to, now.Add(100 * time.Millisecond)
}

func (greedy) Answer(_ clocksync.Instant, v *local.View, _ local.Demand) local.Share {
	return local.Share{Tasks: min(1, v.Waiting)}
}

// TestSpaceMutants: the judge of TestSpaces notices a machine that is wrong.
func TestSpaceMutants(t *testing.T) {
	for name, bend := range map[string]func(*space){
		"a record is sent once": func(w *space) {
			w.after = func(n *node) {
				for i := range n.machine.records {
					n.machine.records[i].again = clocksync.MaxInstant
				}
			}
		},
		"a record without a verdict is given up": func(w *space) {
			w.after = func(n *node) { n.machine.records = nil }
		},
		"holds are not told": func(w *space) {
			w.alter = func(f *Frame) bool { return f.Holds == nil }
		},
		"holds are told without leases": func(w *space) {
			w.alter = func(f *Frame) bool {
				if f.Holds != nil {
					h := *f.Holds
					h.List, f.Holds = nil, &h
				}
				return true
			}
		},
		"a lost member keeps its tasks": func(w *space) {
			w.before = func(n *node, in *Input) {
				if in.Kind == InRoster {
					clear(n.machine.accounts.own.held)
				}
			}
		},
		"leases of a lost account stay": func(w *space) {
			w.before = func(n *node, in *Input) {
				if in.Kind == InRoster {
					n.kept = slices.Clone(n.machine.waiting)
				}
			}
			w.after = func(n *node) {
				n.machine.waiting = append(n.machine.waiting, n.kept...)
				n.kept = nil
			}
		},
		"idle without a look at the account": func(w *space) {
			w.after = func(n *node) {
				n.out.Told.Idle = n.out.Told.Queued == 0 && n.out.Told.Running == 0 && len(n.machine.records) == 0
			}
		},
		"idle without a look at what waits": func(w *space) {
			w.after = func(n *node) { n.out.Told.Idle = n.machine.accounts.own.Waiting() == 0 && n.out.Told.Running == 0 }
		},
		"frames of another phase count": func(w *space) {
			w.arrive = func(n *node, f *Frame) { f.Phase = n.machine.phase }
		},
		"frames of another life count": func(w *space) {
			w.anyLife = true
			w.arrive = func(n *node, f *Frame) {
				f.To = n.peer
				if i := slices.IndexFunc(n.machine.peers, func(p peer) bool { return p.Name == f.From.Name }); i >= 0 {
					f.From = n.machine.peers[i].Peer
				}
			}
		},
		"a record travels without its children": func(w *space) {
			w.alter = func(f *Frame) bool {
				if f.Step != nil {
					s := *f.Step
					s.Record.Children, f.Step = nil, &s
				}
				return true
			}
		},
		"a record travels without what it builds on": func(w *space) {
			w.arrive = func(n *node, f *Frame) {
				if f.Step != nil {
					s := *f.Step
					_, s.Record.On, _ = n.machine.accounts.own.Account().Find(s.Record.ID)
					f.Step = &s
				}
			}
		},
		"a copy of a failed run counts": func(w *space) {
			w.arrive = func(n *node, f *Frame) {
				if f.Step != nil && n.machine.accounts.own.account.findTask(f.Step.Record.ID) != nil {
					s := *f.Step
					s.Try = n.machine.accounts.own.account.findTask(s.Record.ID).lease.failed
					f.Step = &s
				}
			}
		},
		"a record that does not count is answered as one that does": func(w *space) {
			w.alter = func(f *Frame) bool {
				if n := w.byPeer(f.From); f.Verdict != nil && f.Verdict.Outcome == Stale && n != nil {
					v := *f.Verdict
					_, v.Seq, _ = n.machine.accounts.own.Account().Find(v.ID)
					v.Outcome, f.Verdict = Counted, &v
				}
				return true
			}
		},
		"a member counts as drained at once": func(w *space) {
			w.after = func(n *node) { n.out.Told.Drained = n.machine.drains }
		},
		"a lost account is not told": func(w *space) {
			w.after = func(n *node) { n.out.Lost = nil }
		},
		"demands are never given up": func(w *space) {
			w.after = func(n *node) {
				for i := range n.machine.peers {
					n.machine.peers[i].deadline = clocksync.MaxInstant
				}
			}
		},
		"a task that waits for others is handed out": func(w *space) {
			w.after = func(n *node) {
				a := n.machine.accounts.own.account
				for _, id := range a.Open() {
					if o := a.findTask(id); o.needs > 0 {
						o.needs = 0
						n.machine.accounts.own.requeueTask(o)
					}
				}
			}
		},
		"what runs after a bag does not wait for its parts": func(w *space) {
			w.before = func(_ *node, in *Input) {
				if in.Kind == InYield {
					for i := range in.Step.Record.Children {
						in.Step.Record.Children[i].Part = false
					}
				}
			}
		},
		"what runs after a task that has failed is not told": func(w *space) {
			w.before = func(n *node, _ *Input) {
				a := n.machine.accounts.own.account
				for id := range a.awaited {
					if o := a.findTask(id); o != nil && o.task.Func == "bad" {
						delete(a.awaited, id)
					}
				}
			}
		},
		"what runs after a task that has failed runs": func(w *space) {
			w.before = func(n *node, _ *Input) {
				a := n.machine.accounts.own.account
				for _, id := range a.Open() {
					for k, of := range a.findTask(id).task.After {
						if o := a.findTask(of); o != nil && o.task.Func == "bad" && o.last == 0 {
							a.findTask(id).task.After[k] = "none"
							a.awaited[of].by = nil
							if a.findTask(id).needs--; a.findTask(id).needs == 0 {
								n.machine.accounts.own.requeueTask(a.findTask(id))
							}
						}
					}
				}
			}
		},
		"a strategy whose moves do not end": func(w *space) {
			w.strategy = func() local.Local { return greedy{} }
		},
	} {
		noticed(t, name, 8000, func(seed uint64) []string {
			w := newSpace(seed)
			bend(w)
			return faultsOf(w.live, &w.faults)
		})
	}
}

// faultsOf runs a world, and returns its faults. A panic is one.
func faultsOf(live func(), faults *[]string) (list []string) {
	defer func() {
		if r := recover(); r != nil {
			list = append(*faults, fmt.Sprintf("panic: %v", r))
		}
	}()
	live()
	return *faults
}

// noticed fails the test if none of so many worlds has a fault.
func noticed(t *testing.T, name string, worlds uint64, faults func(seed uint64) []string) {
	t.Helper()
	for seed := range worlds {
		if list := faults(seed); len(list) > 0 {
			t.Logf("%s: noticed in world %d: %s", name, seed, list[0])
			return
		}
	}
	t.Errorf("nobody noticed: %s", name)
}

// TestSameOutputs: a space that is lived twice has the same frames, byte for byte.
func TestSameOutputs(t *testing.T) {
	for seed := range uint64(10) {
		var sums [2]uint64
		for i := range sums {
			w, hash := newSpace(seed), fnv.New64a()
			w.after = func(n *node) {
				for _, f := range n.out.Frames {
					_, _ = fmt.Fprint(hash, w.now, f.From, f.To, f.Phase, f.Demand, f.Parcel, f.Step, f.Verdict, f.Holds, "\n")
				}
				_, _ = fmt.Fprint(hash, n.out.Runs, n.out.Stops, n.out.Results, n.out.Lost, n.out.Told, n.out.Wake)
			}
			w.live()
			sums[i] = hash.Sum64()
		}
		if sums[0] != sums[1] {
			t.Errorf("seed %d: the outputs differ from one life to the other", seed)
		}
	}
}

// TestSpaceEfficiency: 8 members of the speeds 1 to 8 share what one of them puts. The bound is the
// work by all speeds.
func TestSpaceEfficiency(t *testing.T) {
	const all = 40_000
	for what, size := range map[string]uint64{"tasks": 10, "bag": all} {
		w := newSpace(1)
		w.calm, w.loss = true, 0
		w.strategy = func() local.Local {
			l, _ := local.New(local.Config{})
			return l
		}
		speeds := 0.0
		for i := range 8 {
			w.nodes = append(w.nodes, &node{})
			n := w.nodes[i]
			w.begin(n, fmt.Sprint("n", i), 1)
			n.puts, n.slots, n.speed = 0, n.slots[:1], float64(i+1)
			n.machine.slots, n.machine.opts.Slots = n.machine.slots[:1], 1
			speeds += n.speed / 3
		}
		w.pulse()
		for low := uint64(0); low < all; low += size {
			kind := "one"
			if size == all {
				kind = "bag"
			}
			for k := low; k < low+size; k++ {
				w.owner[k], w.inPhase[k] = w.nodes[0].peer, 1
			}
			w.step(w.nodes[0], &Input{Kind: InPut, Task: &Task{ID: fmt.Sprint("t", low), Func: kind, Body: span(low, low+size)}})
		}
		w.number = all
		start := w.now
		for w.phase == 1 {
			w.pulse()
		}
		efficiency := all / speeds * pulse.Seconds() / w.now.Sub(start).Seconds()
		t.Logf("%s: %.3f of the bound, %d parcels, %d parts, %d frames", what, efficiency, w.moves, w.parts, w.sent)
		if len(w.faults) > 0 || efficiency < 0.8 {
			t.Errorf("%s: %.3f of the bound %v", what, efficiency, w.faults)
		}
	}
}

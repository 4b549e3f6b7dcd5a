package worksim

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	partition "github.com/gopegasus/pegasus/balance/span"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/loopcore"
	"github.com/gopegasus/pegasus/internal/sim"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// LoopResult is what came of a run of loops.
type LoopResult struct {
	Seed       uint64        // of the run
	Nodes      int           // of all loops
	Time       time.Duration // of the run
	Efficiency float64       // rows of iterations that are over, by those that all nodes could do in the time (ADM: parallel by sequential speed)
	Available  float64       // the mean part of the speed of all nodes that was there
	Messages   int           // frames that were sent
	Bytes      int           // of them
	Withdrawn  int           // how often a node left a loop since its owner came
	Longest    time.Duration // from a withdrawal until the node did no more work
	Assigned   int           // how often a node went from one loop to another
	Loops      []LoopFigures // by loop
	Faults     []string      // what must never happen
}

// LoopFigures are those of one loop.
type LoopFigures struct {
	Weight     float64 // of the scenario
	Iterations int     // that are over
	Rows       float64 // of them all
	Moved      int     // rows that came to a node which did not have them in the iteration before
	Redone     int     // rows that were done again
}

// loopWorld is one run.
type loopWorld struct {
	*sim.World
	set    *LoopScenario
	nodes  []*owned
	places map[string]int
	result LoopResult
	bend   func(*owned, *loopPart) // of a mutant: before a partial result is given
}

// owned is a simulated computer. It does rows of one loop at a time.
type owned struct {
	world   *loopWorld
	place   int
	peer    workcore.Peer
	base    float64     // rows a second without the owner
	owner   bool        // the owner is there
	away    bool        // the node has noticed that, and does no rows
	program int         // the loop that it works for; -1: none yet
	parts   []*loopPart // by loop
	runs    *loopPart   // that does rows
	last    []clocksync.Instant
	since   clocksync.Instant // of could
	could   float64           // rows that it could do until then
}

// loopPart is the program of a loop at a node, as the package work runs it.
type loopPart struct {
	node   *owned
	loop   int
	core   *loopcore.Loop
	takes  bool // it is to do rows
	state  int
	number int             // of its iteration
	pos    int             // rows done of what it has
	did    []workcore.Span // them
	spent  time.Duration   // on them
	told   bool            // the machine knows pos
	wake   clocksync.Instant

	run   []workcore.Span   // rows that it does one after the other
	done  float64           // of run
	at    clocksync.Instant // of done
	began clocksync.Instant // with run
	event uint64            // the number of the event that counts
	asked clocksync.Instant // when it was withdrawn while it did rows; 0: it was not
}

// The states of a part.
const (
	partWaits = iota // for an iteration
	partRows         // it does rows, or waits for more
	partSent         // it has given its partial result
)

// partial is the partial result of a part: the rows that it has done.
type partial struct {
	Number int
	Rows   []workcore.Span
}

// RunLoops simulates loops with the seed of their scenario.
func RunLoops(s *LoopScenario, stop func() error) (*LoopResult, error) { return runLoops(s, stop, nil) }

func runLoops(s *LoopScenario, stop func() error, bend func(*owned, *loopPart)) (*LoopResult, error) {
	w := &loopWorld{World: sim.New(s.Seed), set: s, places: map[string]int{}, bend: bend}
	if err := w.build(); err != nil {
		return nil, err
	}
	end := clocksync.Instant(0).Add(s.Time)
	for until := clocksync.Instant(0); until < end; {
		if until = min(end, until.Add(s.Time/64)); stop != nil {
			if err := stop(); err != nil {
				return nil, err
			}
		}
		w.Run(until)
	}
	return w.finish(), nil
}

// build makes the nodes, and has their owners come and go.
func (w *loopWorld) build() error {
	var roster []workcore.Peer
	for i := range w.set.Nodes {
		o := &w.set.Nodes[i]
		for range o.Count {
			n := &owned{world: w, place: len(w.nodes), base: o.Speed, program: -1, last: make([]clocksync.Instant, w.set.countNodes())}
			n.peer = workcore.Peer{Name: fmt.Sprintf("n%04d", n.place+1), Life: 1}
			w.places[n.peer.Name] = n.place
			w.nodes, roster = append(w.nodes, n), append(roster, n.peer)
			for k, at := range o.Owner {
				if at == 0 { // The node begins without rows.
					n.owner, n.away = true, true
					continue
				}
				w.After(at, func() { n.setOwner(k%2 == 0) })
			}
			if n.isHome() {
				n.program, n.away = n.place, false
			}
		}
	}
	for i, program := range w.assigned() {
		w.nodes[i].program = program
	}
	for _, n := range w.nodes {
		for i, l := range w.set.Loops {
			core, err := loopcore.New(loopcore.Options{Name: fmt.Sprintf("loop%d", i+1), Self: n.peer, Home: n.place == i, Total: l.Rows})
			if err != nil {
				return err
			}
			p := &loopPart{node: n, loop: i, core: core, wake: clocksync.MaxInstant}
			if p.takes = n.program == i && !n.away; !p.takes {
				core.GiveBack()
			}
			n.parts = append(n.parts, p)
		}
		w.After(0, func() {
			for _, p := range n.parts {
				p.core.TakeRoster(w.Now(), roster)
				p.look()
			}
		})
	}
	for _, l := range w.set.Loops {
		w.result.Loops = append(w.result.Loops, LoopFigures{Weight: l.Weight})
	}
	return nil
}

func (w *loopWorld) fault(format string, args ...any) {
	if len(w.result.Faults) < 10 {
		w.result.Faults = append(w.result.Faults, fmt.Sprintf("at %v: ", w.Now().Sub(0))+fmt.Sprintf(format, args...))
	}
}

// assigned returns for which loop each node is to work; -1: for none.
func (w *loopWorld) assigned() []int {
	workers, weights := make([]partition.Worker, len(w.nodes)), make([]float64, len(w.set.Loops))
	for i, n := range w.nodes {
		if workers[i] = (partition.Worker{Speed: n.base, Program: n.program, Fixed: n.isHome()}); n.away {
			workers[i].Speed = 0
		}
	}
	for i, l := range w.set.Loops {
		weights[i] = l.Weight
	}
	of, err := partition.Arbitrate(workers, weights)
	if err != nil { // Not with values that were checked.
		panic("worksim: " + err.Error())
	}
	return of
}

// arbitrate has the nodes hear for which loop they are to work. A node that is away keeps its loop until it is back.
func (w *loopWorld) arbitrate() {
	for i, program := range w.assigned() {
		if n := w.nodes[i]; program >= 0 {
			w.After(w.set.Network.Cost, func() { n.setProgram(program) })
		}
	}
}

// isHome reports whether the node is the home of a loop.
func (n *owned) isHome() bool { return n.place < len(n.world.set.Loops) }

// rate is how many rows a second the node does.
func (n *owned) rate() float64 {
	if n.owner {
		return n.base * n.world.set.Owners.Left
	}
	return n.base
}

// count counts what the node could do until now. A node whose owner has gone could do rows before it notices that.
func (n *owned) count() {
	if now := n.world.Now(); !n.away || !n.owner {
		n.could += n.rate() * now.Sub(n.since).Seconds()
	}
	n.since = n.world.Now()
}

// setOwner has the owner come or go. The node notices that when it looks next.
func (n *owned) setOwner(there bool) {
	n.count()
	if n.runs != nil {
		n.runs.advance()
	}
	if n.owner = there; n.runs != nil {
		n.runs.awaitEnd()
	}
	check := n.world.set.Owners.Check
	n.world.After(check-n.world.Now().Sub(0)%check, n.look)
}

// look has the node notice whether its owner is there.
func (n *owned) look() {
	if n.away == n.owner || n.isHome() {
		return
	}
	n.count()
	if n.away = n.owner; n.away {
		n.world.result.Withdrawn++
	}
	n.setTakes()
	n.world.arbitrate()
}

// setProgram has the node work for a loop.
func (n *owned) setProgram(program int) {
	if n.program == program {
		return
	}
	if n.program >= 0 {
		n.world.result.Assigned++
	}
	n.program = program
	n.setTakes()
}

// setTakes has each part of the node take rows, or give them back.
func (n *owned) setTakes() {
	for _, p := range n.parts {
		takes := !n.away && n.program == p.loop
		if takes == p.takes {
			continue
		}
		p.takes = takes
		switch {
		case takes:
			p.core.TakeBack()
		case n.runs != p:
			p.tell()
			p.core.GiveBack()
		}
		if n.runs == p { // It ends the row that it does.
			if p.asked = 0; !takes {
				p.asked = n.world.Now()
			}
			p.advance()
			p.awaitEnd()
		}
	}
	n.lookParts()
}

func (n *owned) lookParts() {
	for _, p := range n.parts {
		p.look()
	}
}

// look has the program do what it can, and sends what its machine has to send.
func (p *loopPart) look() {
	for p.step() {
	}
	w := p.node.world
	for _, f := range p.core.Frames(w.Now(), nil) {
		p.send(&f)
	}
	if at := p.core.Wake(); at < clocksync.MaxInstant && (p.wake <= w.Now() || at < p.wake) {
		p.wake = max(at, w.Now())
		w.After(p.wake.Sub(w.Now()), func() {
			if p.wake <= w.Now() {
				p.wake = clocksync.MaxInstant
				p.look()
			}
		})
	}
}

// step makes one step of the program, and reports whether there may be another one.
func (p *loopPart) step() bool {
	w, home := p.node.world, p.node.place == p.loop
	if why, ended := p.core.Ended(); ended {
		if p.state >= 0 {
			w.fault("%s: loop %d has ended: %s", p.node.peer.Name, p.loop+1, why)
		}
		p.state = -1
		return false
	}
	switch p.state {
	case partWaits:
		number, _, begun := p.core.Begun()
		switch {
		case begun:
			p.state, p.number, p.pos, p.did, p.spent, p.told = partRows, number, 0, nil, 0, false
			return true
		case home && len(p.core.Missing()) == 0:
			if err := p.core.Open(w.Now(), nil); err != nil {
				w.fault("loop %d: %v", p.loop+1, err)
			}
			return true
		}
	case partRows:
		return p.stepRows()
	case partSent:
		if home {
			return p.reduce()
		}
		if _, ok := p.core.Value(p.number); ok {
			p.state = partWaits
			return true
		}
	}
	return false
}

func (p *loopPart) stepRows() bool {
	n, w := p.node, p.node.world
	list, closed := p.core.Assigned()
	rest := spansFrom(list, p.pos)
	switch {
	case n.runs == p:
	case len(rest) > 0 && p.takes:
		if n.runs == nil { // Else it does so once that has ended.
			n.runs, p.run, p.done, p.at, p.began, p.asked = p, rest, 0, w.Now(), w.Now(), 0
			p.awaitEnd()
		}
	case !p.told:
		p.tell()
		if !p.takes {
			p.core.GiveBack()
		}
		return true
	case closed:
		if w.bend != nil {
			w.bend(n, p)
		}
		value, err := json.Marshal(partial{p.number, p.did})
		if err == nil {
			err = p.core.SetPartial(value, "rows")
		}
		if p.state = partSent; err != nil {
			w.fault("%s: %v", n.peer.Name, err)
		}
		return true
	}
	return false
}

// tell has the machine know which rows are done.
func (p *loopPart) tell() {
	if p.state != partRows {
		return
	}
	speed := 0.0
	if p.spent > 0 {
		speed = float64(p.pos) / p.spent.Seconds()
	}
	p.core.SetDone(p.pos, speed)
	p.told = true
}

// reduce ends an iteration at the home once all partial results are there. Each row has to be in one of them.
func (p *loopPart) reduce() bool {
	w := p.node.world
	parts, complete := p.core.Parts()
	if !complete {
		return false
	}
	var all []workcore.Span
	for _, o := range parts {
		var v partial
		if err := json.Unmarshal(o.Value, &v); err != nil || v.Number != p.number {
			w.fault("loop %d, iteration %d: member %q has the partial result %.80s", p.loop+1, p.number, o.Member, o.Value)
		}
		all = append(all, v.Rows...)
	}
	slices.SortFunc(all, func(a, b workcore.Span) int { return a.Low - b.Low })
	next, total := 0, w.set.Loops[p.loop].Rows
	for _, s := range append(all, workcore.Span{Low: total, High: total}) {
		if s.Low != next {
			w.fault("loop %d, iteration %d: rows %d to %d are in no partial result, or in two", p.loop+1, p.number, min(s.Low, next), max(s.Low, next)-1)
		}
		next = s.High
	}
	f := &w.result.Loops[p.loop]
	f.Iterations++
	f.Rows += float64(total)
	if err := p.core.Reduced(w.Now(), nil); err != nil {
		w.fault("loop %d: %v", p.loop+1, err)
	}
	p.state = partWaits
	return true
}

// spansFrom returns the rows of a list without its first n.
func spansFrom(list []workcore.Span, n int) (rest []workcore.Span) {
	for _, s := range list {
		if n < s.Len() {
			rest = append(rest, workcore.Span{Low: s.Low + n, High: s.High})
		}
		n = max(0, n-s.Len())
	}
	return rest
}

// advance counts the rows that were done until now.
func (p *loopPart) advance() {
	now := p.node.world.Now()
	p.done += p.node.rate() * now.Sub(p.at).Seconds()
	p.at = now
}

// rounding is the part of a row that does not count.
const rounding = 1e-6

// awaitEnd waits for the end of the rows, or of the row that the node does if its part is to give them back.
func (p *loopPart) awaitEnd() {
	p.event++
	rate := p.node.rate()
	if rate == 0 {
		return
	}
	end := float64(partition.Total(p.run))
	if !p.takes {
		end = min(end, math.Ceil(p.done-rounding))
	}
	w, event := p.node.world, p.event
	w.After(time.Duration(math.Ceil((end-p.done)/rate*float64(time.Second))), func() {
		if p.event == event {
			p.advance()
			p.halt(int(math.Round(end)))
		}
	})
}

// halt has the node do no more rows of a run than it has done.
func (p *loopPart) halt(rows int) {
	n, now := p.node, p.node.world.Now()
	p.event++
	p.pos, p.spent, p.told, n.runs = p.pos+rows, p.spent+now.Sub(p.began), false, nil
	for _, s := range p.run {
		if k := min(rows, s.Len()); k > 0 {
			p.did = append(p.did, workcore.Span{Low: s.Low, High: s.Low + k})
			rows -= k
		}
	}
	if p.asked > 0 {
		n.world.result.Longest = max(n.world.result.Longest, now.Sub(p.asked))
		p.asked = 0
	}
	n.lookParts()
}

// send puts a frame on its way.
func (p *loopPart) send(f *workcore.Frame) {
	n, w := p.node, p.node.world
	bytes := len(f.Append(nil))
	w.result.Messages++
	w.result.Bytes += bytes
	to, frame := w.nodes[w.places[f.To.Name]], *f.Loop
	frame.Spans = slices.Clone(frame.Spans)
	net := &w.set.Network
	travel := func() time.Duration { return net.Cost + time.Duration(bytes)*net.PerByte }
	for _, d := range net.drawDelays(w.World, travel) {
		at := max(w.Now().Add(d), n.last[to.place]) // Frames between two members stay in order.
		n.last[to.place] = at
		w.After(at.Sub(w.Now()), func() {
			o := to.parts[p.loop]
			o.core.TakeFrame(w.Now(), n.peer, &frame)
			o.look()
		})
	}
}

// finish fills in what follows from the rest.
func (w *loopWorld) finish() *LoopResult {
	r := &w.result
	r.Seed, r.Nodes, r.Time = w.set.Seed, len(w.nodes), w.set.Time
	rows, could, all := 0.0, 0.0, 0.0
	for _, n := range w.nodes {
		n.count()
		could += n.could
		all += n.base * w.set.Time.Seconds()
	}
	for i := range r.Loops {
		report := w.nodes[i].parts[i].core.Report()
		r.Loops[i].Moved, r.Loops[i].Redone = report.Moved, report.Redone
		rows += r.Loops[i].Rows
	}
	r.Efficiency, r.Available = rows/could, could/all
	return r
}

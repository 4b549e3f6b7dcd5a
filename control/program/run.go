package program

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/predicates"
)

// state is where a construct that has been started stands.
type state uint8

const (
	deciding state = iota // a switch waits for verdicts
	running               // something inside it runs; a block has been started
	queued                // a block waits for a node
	stopping              // its inside is ending; then it ends by its cause
	instead               // its else runs in its place
	ended                 // its parent has to be told
)

// frame is one construct that has been started and not been forgotten.
type frame struct {
	node, parent int32
	index        int32 // which of the parent's kids or replicas
	state        state
	cause        Outcome // of stopping, then its outcome
	elsed        bool    // its else has been started
	inside       chain   // what has begun inside it, oldest first
	live         int32   // how many are inside it
	waits        int32   // its first waiter
	timer        int32   // its place among the timers, -1 for none
	due          clocksync.Instant
	seq          uint64  // its place in the order in which constructs began
	round        uint64  // loops: the step in which the last iteration began
	iteration    int     // loops: the iteration begun last, counted from 1
	passed       verdict // the newest that let it, or its inside, continue
	by           int32   // the predicate of passed, -1 for none
	reason       string
	result       string   // also the last iteration's
	parts        []string // Par: results by index
	values       []string // as a scope: results that references use

	// Blocks.
	id    ID
	host  int32   // -1 before it is placed
	tried []int32 // hosts where it failed
}

// verdict is the last one on a predicate.
type verdict struct {
	truth    predicates.Truth
	decision control.Decision
	at       uint64 // the step that took it
}

// Run is one execution of a compiled program, see the package's documentation.
type Run struct {
	compiled *Compiled
	out      *Output
	now      clocksync.Instant

	frames []frame
	free   []int32
	agenda []int32 // ended frames whose parents have to be told
	timers []int32 // a heap
	blocks map[uint64]int32

	verdicts []verdict
	epochs   []control.Decision // the newest of each synchronizer
	beside   []link             // of each frame in the chain of its parent
	onHost   []link             // and in that of its host, or of what waits for its processor
	waiters  []waiter
	waiting  []link
	unused   int32   // the first free waiter
	lists    []chain // the waiters of each predicate
	woken    []int32 // scratch

	hosts  []host
	byName map[string]int32
	procs  []proc

	leaving         int32 // the host that this step is the loss of, -1 for none
	begun, finished bool
	steps, begins   uint64
	instances       uint64
	taken           taken
	queued          int  // blocks that wait for a node
	freed           bool // a node has more free than when blocks were placed last
}

// taken is the value made of an input for the blocks of a construct.
type taken struct {
	by                *node
	input, given, why string
}

// NewRun makes a run that has not begun.
func NewRun(c *Compiled) *Run {
	r := &Run{
		compiled: c, now: clocksync.MinInstant, blocks: map[uint64]int32{}, byName: map[string]int32{}, unused: -1,
		verdicts: make([]verdict, len(c.predicates)), epochs: make([]control.Decision, len(c.syncs)),
		lists: make([]chain, len(c.predicates)), procs: make([]proc, len(c.procs)),
	}
	for i := range r.lists {
		r.lists[i] = none
	}
	for i := range r.procs {
		r.procs[i] = proc{want: &c.procs[i], queue: none}
	}
	return r
}

// Finished reports whether the run has ended.
func (r *Run) Finished() bool { return r.finished }

// Step takes one input. Instants do not go back: an earlier instant counts as the one before.
// First everything due by now happens, then the input. Step starts or reports nothing more on a
// node that the input loses, and nothing passes by a verdict of an epoch that the input ends.
// The output is reset and filled.
func (r *Run) Step(now clocksync.Instant, in *Input, out *Output) {
	out.reset()
	r.out, r.now = out, max(r.now, now)
	r.steps++
	if r.leaving = -1; in.Kind == InLeft && !r.finished {
		r.removeNode(in.Node.Name)
	}
	if in.Kind == InEpoch {
		r.epoch(in)
	}
	for !r.finished && len(r.timers) > 0 && r.frames[r.timers[0]].due <= r.now {
		f := r.timers[0]
		r.fail(f, r.late(f))
		r.settleEnded()
	}
	if r.finished && in.Kind != InTick {
		r.refuseInput(in, "the run has ended")
	} else {
		r.input(in)
	}
	r.settleEnded()
	r.placeWaiting()
	if len(r.timers) > 0 {
		out.Wake = r.frames[r.timers[0]].due
	}
	r.out = nil
}

// late says that the deadline of a construct has passed, and what waited in it. The construct
// around it names the block that failed, and no other construct.
func (r *Run) late(f int32) string {
	n := &r.compiled.nodes[r.frames[f].node]
	text := "its deadline of " + n.limit.String() + " has passed"
	if n.kind != KindDo {
		text = "the deadline of " + n.limit.String() + " of " + r.subject(f) + " has passed"
	}
	switch w := r.oldestWaiting(f); w {
	case -1:
		return text
	case f:
		return text + " while it waited for " + r.waitsFor(w)
	default:
		return text + " while " + r.subject(w) + " waited for " + r.waitsFor(w)
	}
}

// subject names a construct for people.
func (r *Run) subject(f int32) string {
	n := &r.compiled.nodes[r.frames[f].node]
	var text strings.Builder
	if n.label == "" {
		text.WriteString("the " + n.kind.String() + " at " + n.path)
	} else {
		text.WriteString(n.kind.String() + " " + n.label)
	}
	for _, i := range r.appendReplicas(nil, f) {
		text.WriteString("[" + strconv.Itoa(int(i)) + "]")
	}
	return text.String()
}

func (r *Run) input(in *Input) {
	switch in.Kind {
	case InTick:
	case InBegin:
		if r.begun {
			r.refuseInput(in, "the run has begun before")
			return
		}
		r.begun = true
		r.start(0, -1, 0)
	case InVerdict:
		r.verdict(in)
	case InEpoch:
		if !r.epoch(in) {
			r.refuseInput(in, "a newer epoch than that of "+in.Decision.String()+" has begun")
		}
	case InDone, InFailed:
		r.block(in)
	case InJoined:
		r.joinNode(in)
	case InLeft:
		r.giveUpNode(in)
	case InCancel:
		if !r.begun {
			r.refuseInput(in, "the run has not begun")
			return
		}
		r.frames[0].reason = in.Reason // The first frame is the body's.
		r.stop(0, Canceled)
	default:
		r.refuseInput(in, "there is no such input")
	}
}

func (r *Run) refuseInput(in *Input, why string) {
	r.out.Actions = append(r.out.Actions, Action{Kind: ActRefuse, Reason: in.Kind.String() + ": " + why, Block: in.Block, Node: in.Node.Name})
}

// addAction adds an action about a frame.
func (r *Run) addAction(kind ActKind, f int32) *Action {
	at := len(r.out.replicas)
	r.out.replicas = r.appendReplicas(r.out.replicas, f)
	replicas := r.out.replicas[at:len(r.out.replicas):len(r.out.replicas)]
	r.out.Actions = append(r.out.Actions, Action{Kind: kind, Construct: int(r.frames[f].node), Replicas: replicas})
	return &r.out.Actions[len(r.out.Actions)-1]
}

// appendReplicas appends which replica of each replicated Par around it a frame is, from
// the outside in.
func (r *Run) appendReplicas(list []int32, f int32) []int32 {
	at := len(list)
	for g := f; g >= 0; g = r.frames[g].parent {
		if p := r.frames[g].parent; p >= 0 && r.compiled.nodes[r.frames[p].node].times > 0 && !r.compiled.nodes[r.frames[g].node].handed {
			list = append(list, r.frames[g].index)
		}
	}
	slices.Reverse(list[at:])
	return list
}

// start begins a construct. Whatever ends at once is put on the agenda, so that
// this goes no deeper than the program is nested.
func (r *Run) start(node, parent, index int32) {
	f := r.allocFrame()
	n := &r.compiled.nodes[node]
	x := &r.frames[f]
	r.begins++
	x.node, x.parent, x.index, x.state, x.seq = node, parent, index, running, r.begins
	if parent >= 0 {
		p := &r.frames[parent]
		p.inside.pushLink(r.beside, f)
		p.live++
	}
	if n.limit > 0 {
		r.setTimer(f, r.now.Add(n.limit))
	}
	switch n.kind {
	case KindSeq:
		r.start(n.kids[0], f, 0)
	case KindPar:
		count := max(len(n.kids), int(n.times))
		if n.need {
			x.parts = append(x.parts[:0], make([]string, count)...)
		}
		for _, q := range n.conds {
			r.listWaiting(f, q)
		}
		for i := range int32(count) {
			r.start(n.kids[min(int(i), len(n.kids)-1)], f, i)
		}
	case KindIf, KindCase:
		r.decide(f)
	case KindWhile, KindUntil:
		input, why := r.resolveInput(f, n)
		if why != "" {
			r.fail(f, why)
			return
		}
		x.result = input
		if n.kind == KindUntil {
			r.again(f)
			return
		}
		r.decide(f)
	case KindDo:
		for _, q := range n.async {
			r.listWaiting(f, q)
		}
		r.attemptBlock(f)
	}
}

// again runs a loop's body once more.
func (r *Run) again(f int32) {
	x := &r.frames[f]
	x.state, x.round = running, r.steps
	x.iteration++
	r.start(r.compiled.nodes[x.node].kids[0], f, 0)
}

// truthOf is the known value of a predicate: a verdict of an earlier epoch says nothing.
func (r *Run) truthOf(q int32) predicates.Truth {
	v, newest := &r.verdicts[q], &r.epochs[r.compiled.syncOf[q]]
	if v.decision.Term != newest.Term || v.decision.Epoch != newest.Epoch {
		return predicates.Unknown
	}
	return v.truth
}

// decide lets a switch take a branch, or wait for verdicts.
func (r *Run) decide(f int32) {
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	r.unlistFrame(f)
	x.state = deciding
	branch := Otherwise
	by := n.conds[len(n.conds)-1]
	for i, q := range n.conds {
		truth := r.truthOf(q)
		if truth == predicates.Unknown {
			for _, q := range n.conds[:i+1] {
				r.listWaiting(f, q)
			}
			return
		}
		if truth == predicates.True {
			branch, by = i, q
			break
		}
	}
	loop := n.kind == KindWhile || n.kind == KindUntil
	on := branch >= 0 == (n.kind != KindUntil)
	if loop && on && x.round == r.steps {
		// The last iteration took no time. The next would be the same until some
		// verdict in it changes.
		for _, q := range n.inside {
			r.listWaiting(f, q)
		}
		return
	}
	a := r.addAction(ActPass, f)
	a.Predicate, a.Decision, a.Branch = r.compiled.names[by], r.verdicts[by].decision, branch
	if x.state = running; x.passed.at <= r.verdicts[by].at {
		x.passed = r.verdicts[by]
	}
	switch {
	case loop && on:
		a.Iteration = x.iteration + 1
		r.again(f)
	case loop:
		r.end(f, Done)
	case branch >= 0:
		r.start(n.kids[branch], f, int32(branch))
	case len(n.kids) > len(n.conds):
		r.start(n.kids[len(n.conds)], f, int32(len(n.conds)))
	default:
		r.end(f, Done)
	}
}

// epoch notes an epoch that has begun, unless a newer epoch has.
func (r *Run) epoch(in *Input) bool {
	i := slices.Index(r.compiled.syncs, in.Decision.Synchronizer)
	return i < 0 || r.newer(i, in.Decision)
}

// newer notes the epoch of a decision, unless a newer one has begun.
func (r *Run) newer(sync int, d control.Decision) bool {
	newest := &r.epochs[sync]
	if d.Term < newest.Term || d.Term == newest.Term && d.Epoch < newest.Epoch {
		return false
	}
	*newest = d
	return true
}

// verdict takes one verdict and wakes who waits for it.
func (r *Run) verdict(in *Input) {
	q, ok := r.compiled.byName[in.Predicate]
	d := in.Decision
	switch {
	case !ok:
		r.refuseInput(in, "the program does not read "+in.Predicate)
		return
	case d.Synchronizer != r.compiled.predicates[q].Synchronizer || d.Number == 0:
		r.refuseInput(in, "the decision "+d.String()+" is not of the synchronizer of "+in.Predicate)
		return
	}
	if !r.newer(int(r.compiled.syncOf[q]), d) {
		r.refuseInput(in, "a newer epoch than that of "+d.String()+" has begun")
		return
	}
	if old := &r.verdicts[q]; old.truth == in.Truth && old.decision == d {
		return
	}
	r.verdicts[q] = verdict{in.Truth, d, r.steps}
	r.woken = r.woken[:0]
	for w := r.lists[q].first; w >= 0; w = r.waiting[w].next {
		r.woken = append(r.woken, r.waiters[w].frame)
	}
	// Frames are given back only by settle, so that none of these is another one
	// by the time it is reached.
	for _, f := range r.woken {
		x := &r.frames[f]
		n := &r.compiled.nodes[x.node]
		switch {
		case x.state == deciding:
			r.decide(f)
		case in.Truth != predicates.True || x.state != running:
		case n.kind == KindDo:
			a := r.addAction(ActSignal, f)
			a.Block, a.Node, a.Predicate, a.Decision = x.id, r.hosts[x.host].Name, in.Predicate, d
		case n.kind == KindPar:
			x.passed, x.by = r.verdicts[q], q
			r.stop(f, Done)
		}
	}
}

// fail ends a construct as failed, after its inside.
func (r *Run) fail(f int32, reason string) {
	x := &r.frames[f]
	if x.state == stopping && x.cause == Done {
		x.cause, x.reason = Failed, reason // Its JOIN waited for the cancelled.
		r.clearTimer(f)
		return
	}
	if x.state != stopping && x.state != ended {
		x.reason = reason
		r.stop(f, Failed)
	}
}

// stop ends the inside of a construct and then, for a cause, the construct. A cancellation goes
// before another cause, so that no else is run.
func (r *Run) stop(f int32, cause Outcome) {
	x := &r.frames[f]
	if x.state == ended {
		return
	}
	if x.state == stopping || cause == Canceled {
		if cause == Canceled {
			x.cause = Canceled
			r.clearTimer(f)
		}
		if x.state == stopping {
			return
		}
	}
	was := x.state
	x.state, x.cause = stopping, cause
	if cause != Done {
		r.clearTimer(f)
	}
	r.unlistFrame(f)
	if r.compiled.nodes[x.node].kind == KindDo && was != instead {
		if was == queued {
			r.dequeueBlock(f)
			r.concludeConstruct(f)
			return
		}
		if r.hosts[x.host].present {
			a := r.addAction(ActCancel, f)
			a.Block, a.Node, a.Reason = x.id, r.hosts[x.host].Name, x.reason
		}
		return
	}
	for c := x.inside.first; c >= 0; c = r.beside[c].next {
		if k := &r.frames[c]; k.state != stopping && k.state != ended {
			k.reason = r.frames[f].reason
		}
		r.stop(c, Canceled)
	}
	if r.frames[f].live == 0 {
		r.concludeConstruct(f)
	}
}

// concludeConstruct ends a construct that was to stop and has nothing inside any more.
func (r *Run) concludeConstruct(f int32) {
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	switch {
	case x.cause == Failed && n.els >= 0 && !x.elsed:
		x.elsed, x.state, x.passed = true, instead, verdict{}
		r.clearTimer(f)
		r.unlistFrame(f)
		r.start(n.els, f, 0)
	case x.cause == Done:
		r.pass(f)
	default:
		r.end(f, x.cause)
	}
}

// pass lets a JOIN pass.
func (r *Run) pass(f int32) {
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	a := r.addAction(ActPass, f)
	a.Decision = x.passed.decision
	if x.by >= 0 {
		a.Predicate = r.compiled.names[x.by]
	}
	if n.need {
		x.result = n.compose(x.parts)
	}
	r.end(f, Done)
}

// compose puts the results of branches together.
func (n *node) compose(parts []string) string {
	var b strings.Builder
	open, shut := "[", "]"
	if n.times == 0 {
		open, shut = "{", "}"
	}
	b.WriteString(open)
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.times == 0 {
			b.WriteString(n.names[i] + ":")
		}
		if part == "" {
			part = "null"
		}
		b.WriteString(part)
	}
	b.WriteString(shut)
	return b.String()
}

// end puts a construct on the agenda, for its parent to be told.
func (r *Run) end(f int32, outcome Outcome) {
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	x.state, x.cause = ended, outcome
	r.clearTimer(f)
	r.unlistFrame(f)
	a := r.addAction(ActEnd, f)
	a.Outcome, a.Reason, a.Block = outcome, x.reason, x.id
	if outcome == Done {
		a.Reason = ""
	}
	if outcome == Done && n.slot >= 0 {
		g := f
		for r.frames[g].node != n.scope {
			g = r.frames[g].parent
		}
		s := &r.frames[g]
		if len(s.values) == 0 {
			s.values = append(s.values, make([]string, r.compiled.nodes[n.scope].slots)...)
		}
		s.values[n.slot] = x.result
	}
	r.agenda = append(r.agenda, f)
}

// settleEnded tells parents which frames have ended, until nothing is left to tell.
func (r *Run) settleEnded() {
	for i := 0; i < len(r.agenda); i++ {
		r.told(r.agenda[i])
	}
	r.agenda = r.agenda[:0]
}

// told lets a parent continue after something inside it has ended.
func (r *Run) told(c int32) {
	child := &r.frames[c]
	f, outcome, reason, result, index, handed := child.parent, child.cause, child.reason, child.result, child.index, r.compiled.nodes[child.node].handed
	if f < 0 {
		r.finish(c)
		return
	}
	if outcome == Failed && r.compiled.nodes[child.node].kind == KindDo {
		reason = r.subject(c) + ": " + reason
	}
	if p := &r.frames[f]; outcome == Done && child.passed.at >= p.passed.at && p.state != stopping {
		p.passed = child.passed
	}
	r.frames[f].inside.removeLink(r.beside, c)
	r.releaseFrame(c)
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	x.live--
	if outcome == Done && !handed && n.need && n.kind == KindPar {
		x.parts[index] = result
	}
	switch {
	case x.state == stopping:
		if x.live == 0 {
			r.concludeConstruct(f)
		}
	case outcome != Done:
		r.fail(f, reason)
	case handed:
		x.result = result
		r.end(f, Done)
	case n.kind == KindSeq && int(index)+1 < len(n.kids):
		r.start(n.kids[index+1], f, index+1)
	case n.kind == KindPar:
		if x.live == 0 {
			x.by = -1
			r.pass(f)
		}
	case n.kind == KindWhile || n.kind == KindUntil:
		x.result = result
		r.decide(f)
	default:
		x.result = result
		r.end(f, Done)
	}
}

// finish ends the run.
func (r *Run) finish(f int32) {
	x := &r.frames[f]
	r.finished = true
	a := r.addAction(ActFinish, f)
	if a.Outcome = x.cause; x.cause != Done {
		a.Reason = x.reason
		return
	}
	if ref := r.compiled.result; ref.kind == refResult && ref.node == 0 {
		a.Result = x.result
	} else if ref.kind == refResult {
		a.Result = x.values[r.compiled.nodes[ref.node].slot]
	}
}

// resolveInput finds the input of a block or loop, or says why there is none.
func (r *Run) resolveInput(f int32, n *node) (input, why string) {
	switch input = n.input; n.from.kind {
	case refNone:
	case refResult:
		from := &r.compiled.nodes[n.from.node]
		g := r.frames[f].parent
		for r.frames[g].node != from.scope {
			g = r.frames[g].parent
		}
		if input = r.frames[g].values[from.slot]; input == "" {
			input = "null"
		}
	case refPrevious:
		g := r.frames[f].parent
		for r.frames[g].node != n.from.node {
			g = r.frames[g].parent
		}
		if input = r.frames[g].result; input == "" {
			input = "null"
		}
	}
	if n.takes != nil && input != "" {
		if input, why = r.take(n, input); why != "" {
			return "", why
		}
	}
	if len(input) > MaxInputBytes {
		return "", fmt.Sprintf("an input of %d bytes, and at most %d are handed on: let blocks result in references", len(input), MaxInputBytes)
	}
	return input, ""
}

// take makes an input fit what a block takes. The last one is kept, for replicas that
// are given the same.
func (r *Run) take(n *node, input string) (given, why string) {
	if t := &r.taken; t.by != n || t.input != input {
		t.by, t.input = n, input
		if t.given, t.why = n.takes.takeValue(input); t.why != "" {
			t.why = "what it is given does not fit its declared input: " + t.why
		}
	}
	return r.taken.given, r.taken.why
}

// block takes what a node says of a block.
func (r *Run) block(in *Input) {
	f, ok := r.blocks[in.Block.Instance]
	if !ok || r.frames[f].id != in.Block {
		r.refuseInput(in, "block "+in.Block.String()+" has ended, or was given up, or never started")
		return
	}
	switch {
	case in.Kind == InFailed:
		r.leaveNode(f)
		r.attemptFailed(f, in.Reason)
	case in.Decision.Number == 0:
		r.refuseInput(in, "block "+in.Block.String()+" ended by no decision")
	default:
		r.done(f, in)
	}
}

// joining reports whether a JOIN waits for the blocks that it has cancelled. It takes the
// results of blocks that ended before the cancellation reached them: one of them may be why its
// predicate is true.
func (r *Run) joining(f int32) bool {
	if f < 0 {
		return false
	}
	x := &r.frames[f]
	return r.compiled.nodes[x.node].kind == KindPar && x.state == stopping && x.cause == Done
}

// misfit says why a result that is read does not fit its block; empty if it fits. Null fits
// every block: a block that a predicate cancels may have nothing to tell.
func (r *Run) misfit(n *node, result string) string {
	if !n.need || result == "" || len(result) > MaxResultBytes {
		return ""
	}
	if !json.Valid([]byte(result)) {
		return "its result is not JSON"
	}
	output := r.compiled.program.Blocks[n.block].Output
	if output.Base == None || output.Base == Any {
		return ""
	}
	if why := misfitText(output, result, true); why != "" {
		return "its result does not fit its declared output: " + why
	}
	return ""
}

// done ends a block with its result.
func (r *Run) done(f int32, in *Input) {
	x := &r.frames[f]
	r.leaveNode(f)
	n := &r.compiled.nodes[x.node]
	switch why := r.misfit(n, in.Result); {
	case len(in.Result) > MaxResultBytes:
		r.attemptFailed(f, fmt.Sprintf("its result has %d bytes, at most %d are taken: let it result in a reference", len(in.Result), MaxResultBytes))
		return
	case why != "":
		r.attemptFailed(f, why)
		return
	case n.need:
		x.result = in.Result
	}
	x.passed = verdict{decision: in.Decision, at: r.steps}
	// It may have ended before the cancellation reached it.
	if x.state == stopping && !r.joining(x.parent) {
		r.concludeConstruct(f)
		return
	}
	r.end(f, Done)
}

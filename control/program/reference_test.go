package program_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/predicates"
)

// reference interprets a compiled program by looking at the whole tree again after every
// input, until nothing changes. It knows nothing of nodes: whatever is to start
// starts at once.
type reference struct {
	compiled *program.Compiled
	root     *instance
	now      clocksync.Instant
	step     int
	truth    map[string]predicates.Truth
	by       map[string]control.Decision
	events   []string
	serial   int
}

// instance is a construct that has begun, and all that has begun inside it.
type instance struct {
	n        int
	info     program.Info
	parent   *instance
	replicas string
	kids     map[int]*instance
	els      *instance
	serial   int
	due      clocksync.Instant

	outcome  program.Outcome // 0: it continues
	cause    program.Outcome // 0: it is not told to end
	decided  bool
	parked   bool
	round    int // loops: the step of the last iteration
	started  bool
	told     bool // a block was told to end
	attempt  int
	ended    bool // the attempt has ended
	failed   bool // and failed
	input    string
	result   string
	previous string
	by       string // the predicate that a JOIN passes by
	decision control.Decision
}

func (r *reference) say(x *instance, format string, args ...any) {
	r.events = append(r.events, fmt.Sprintf("%d%s ", x.n, x.replicas)+fmt.Sprintf(format, args...))
}

func (r *reference) begin(n int, parent *instance, replica int) *instance {
	r.serial++
	x := &instance{n: n, info: r.compiled.Info(n), parent: parent, kids: map[int]*instance{}, serial: r.serial, due: clocksync.MaxInstant}
	if parent != nil {
		x.replicas = parent.replicas
		if replica >= 0 {
			x.replicas += fmt.Sprintf("[%d]", replica)
		}
	}
	if x.info.Limit > 0 {
		x.due = r.now.Add(x.info.Limit)
	}
	x.input = r.resolve(x)
	x.previous = x.input
	return x
}

// resolve finds the newest result of that name that is near.
func (r *reference) resolve(x *instance) string {
	name, what, ok := strings.Cut(x.info.From, ".")
	if !ok {
		return x.info.Input
	}
	for at := x.parent; at != nil; at = at.parent {
		if what == "previous" {
			if at.info.Name == name {
				return null(at.previous)
			}
			continue
		}
		if found := at.find(name); found != nil {
			return null(found.result)
		}
	}
	return "nothing of that name"
}

func null(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

func (x *instance) find(name string) *instance {
	if x.info.Name == name && x.outcome == program.Done {
		return x
	}
	for _, kid := range x.kids {
		if found := kid.find(name); found != nil {
			return found
		}
	}
	return nil
}

// newest keeps the decision that was handed in last.
func (x *instance) newest(d control.Decision) {
	if d.Number > x.decision.Number {
		x.decision = d
	}
}

// each visits the tree from the top.
func (x *instance) each(visit func(*instance)) {
	if x == nil {
		return
	}
	visit(x)
	for i := range 100 {
		if kid := x.kids[i]; kid != nil {
			kid.each(visit)
		}
	}
	x.els.each(visit)
}

func (x *instance) running() bool { return x.outcome == 0 && x.cause == 0 && x.els == nil }

// input does what one input does and evaluates the tree.
func (r *reference) input(now clocksync.Instant, in *program.Input, who *instance) {
	r.events, r.now = nil, now
	r.step++
	r.root.each(func(x *instance) {
		if in.Kind == program.InLeft && x.started && !x.ended && slices.Contains(in.Node.Labels, key(x)) {
			x.told = true // Nobody is there to be told.
		}
	})
	for {
		var first *instance
		r.root.each(func(x *instance) {
			if x.outcome == 0 && x.due <= now && (first == nil || x.due < first.due) {
				first = x
			}
		})
		if first == nil {
			break
		}
		first.due = clocksync.MaxInstant
		if first.cause == 0 || first.cause == program.Done {
			first.cause = program.Failed
		}
		r.evaluate()
	}
	switch in.Kind {
	case program.InBegin:
		r.root = r.begin(0, nil, -1)
	case program.InVerdict:
		r.verdict(in)
	case program.InDone:
		who.ended, who.result, who.decision = true, in.Result, in.Decision
	case program.InFailed:
		who.ended, who.failed = true, true
	case program.InLeft:
		// One after another, as each may end what others are for.
		var lost []*instance
		r.root.each(func(x *instance) {
			if x.started && !x.ended && slices.Contains(in.Node.Labels, key(x)) {
				lost = append(lost, x)
			}
		})
		slices.SortFunc(lost, func(a, b *instance) int {
			return slices.Index(in.Node.Labels, key(a)) - slices.Index(in.Node.Labels, key(b))
		})
		for _, x := range lost {
			x.ended, x.failed = true, true
			r.evaluate()
		}
	case program.InCancel:
		r.root.cause = program.Canceled
	}
	r.evaluate()
}

func key(x *instance) string { return fmt.Sprintf("%d%s", x.n, x.replicas) }

func (r *reference) verdict(in *program.Input) {
	if d, old := in.Decision, r.by[in.Predicate]; d.Epoch > old.Epoch {
		for p := range r.truth {
			if strings.HasPrefix(p, d.Synchronizer+".") && r.by[p].Epoch < d.Epoch {
				r.truth[p] = predicates.Unknown
			}
		}
	}
	r.truth[in.Predicate], r.by[in.Predicate] = in.Truth, in.Decision
	r.root.each(func(x *instance) {
		for up := x.parent; up != nil; up = up.parent {
			if up.cause != 0 {
				return // It is about to be told to end.
			}
		}
		if x.parked {
			x.each2(r.compiled, func(q string) { x.parked = x.parked && q != in.Predicate })
		}
		if in.Truth != predicates.True || !x.running() {
			return
		}
		if slices.Contains(x.info.Async, in.Predicate) && x.started && !x.ended {
			r.say(x, "signal %s %v", in.Predicate, in.Decision)
		}
		if x.info.Kind == program.KindPar && slices.Contains(x.info.Reads, in.Predicate) {
			x.cause, x.by, x.decision = program.Done, in.Predicate, in.Decision
		}
	})
}

// each2 visits the predicates of all switches in a construct.
func (x *instance) each2(compiled *program.Compiled, visit func(string)) {
	var walk func(n int)
	walk = func(n int) {
		info := compiled.Info(n)
		for _, q := range info.Reads {
			visit(q)
		}
		for _, kid := range info.Kids {
			walk(kid)
		}
		if info.Else >= 0 {
			walk(info.Else)
		}
	}
	walk(x.n)
}

func (r *reference) evaluate() {
	for {
		before := fmt.Sprint(len(r.events), r.serial)
		if r.root == nil || r.root.outcome != 0 {
			return
		}
		r.look(r.root)
		if r.root.outcome != 0 {
			result := ""
			if r.root.outcome == program.Done && r.compiled.Program().Result != "" {
				result = r.root.result
			}
			r.say(r.root, "finish %v %s", r.root.outcome, result)
		}
		if before == fmt.Sprint(len(r.events), r.serial) {
			return
		}
	}
}

func (r *reference) end(x *instance, outcome program.Outcome) {
	x.outcome = outcome
	r.say(x, "end %v", outcome)
}

// look brings one construct and all inside it one step forward.
func (r *reference) look(x *instance) {
	if x.outcome != 0 {
		return
	}
	inside := make([]*instance, 0, len(x.kids)+1)
	for i := range 100 {
		if kid := x.kids[i]; kid != nil {
			inside = append(inside, kid)
		}
	}
	if x.els != nil {
		inside = append(inside, x.els)
	}
	if x.cause == 0 || x.cause == program.Done {
		for _, kid := range inside {
			if kid.outcome == program.Failed && x.cause == 0 && (x.els == nil || kid == x.els) {
				x.cause = program.Failed
			}
		}
	}
	if x.cause != 0 {
		r.stop(x, inside)
		return
	}
	for _, kid := range inside {
		r.look(kid)
	}
	if x.els != nil {
		if x.els.outcome == program.Done {
			x.result = x.els.result
			x.newest(x.els.decision)
			r.end(x, program.Done)
		}
		return
	}
	switch x.info.Kind {
	case program.KindSeq:
		r.seq(x)
	case program.KindPar:
		r.par(x)
	case program.KindIf, program.KindCase:
		if x.decided {
			r.only(x)
		} else if branch, ok := r.choose(x); ok {
			r.take(x, branch)
		}
	case program.KindWhile, program.KindUntil:
		r.loop(x)
	case program.KindDo:
		r.do(x)
	}
}

func (r *reference) stop(x *instance, inside []*instance) {
	open := x.info.Kind == program.KindDo && x.started && !x.ended && x.els == nil
	if open && !x.told {
		r.say(x, "cancel %d", x.attempt)
		x.told = true
	}
	for _, kid := range inside {
		if kid.outcome == 0 {
			kid.cause = program.Canceled
			r.look(kid)
			open = open || kid.outcome == 0
		}
	}
	switch {
	case open:
	case x.cause == program.Failed && x.info.Else >= 0 && x.els == nil:
		x.cause, x.due, x.decision, x.els = 0, clocksync.MaxInstant, control.Decision{}, r.begin(x.info.Else, x, -1)
	case x.cause == program.Done:
		r.join(x)
	case x.info.Kind == program.KindDo && x.ended && !x.failed && x.els == nil && x.parent != nil && x.parent.info.Kind == program.KindPar && x.parent.cause == program.Done:
		r.end(x, program.Done) // Before the JOIN's cancellation reached it.
	default:
		r.end(x, x.cause)
	}
}

func (r *reference) seq(x *instance) {
	for i, n := range x.info.Kids {
		if x.kids[i] == nil {
			x.kids[i] = r.begin(n, x, -1)
			return
		}
		if x.kids[i].outcome != program.Done {
			return
		}
		x.result = x.kids[i].result
		x.newest(x.kids[i].decision)
	}
	r.end(x, program.Done)
}

func (r *reference) par(x *instance) {
	count := max(x.info.Times, len(x.info.Kids))
	ended := true
	for i := range count {
		if x.kids[i] == nil && x.info.Times > 0 {
			x.kids[i] = r.begin(x.info.Kids[0], x, i)
		} else if x.kids[i] == nil {
			x.kids[i] = r.begin(x.info.Kids[i], x, -1)
		}
		ended = ended && x.kids[i].outcome == program.Done
	}
	if ended {
		r.join(x)
	}
}

func (r *reference) join(x *instance) {
	var parts []string
	for i := range len(x.kids) {
		part := "null"
		if x.kids[i].outcome == program.Done {
			part = null(x.kids[i].result)
		}
		if x.info.Times == 0 {
			part = fmt.Sprintf("%q:%s", x.kids[i].info.Name, part)
		}
		parts = append(parts, part)
	}
	brackets := "{}"
	if x.info.Times > 0 {
		brackets = "[]"
	}
	x.result = brackets[:1] + strings.Join(parts, ",") + brackets[1:]
	for _, kid := range x.kids {
		if x.by == "" {
			x.newest(kid.decision)
		}
	}
	r.say(x, "pass %s 0 %v", x.by, x.decision)
	r.end(x, program.Done)
}

// choose evaluates a switch; ok is false if it has to wait.
func (r *reference) choose(x *instance) (branch int, ok bool) {
	for i, q := range x.info.Reads {
		switch r.truth[q] {
		case predicates.True:
			return i, true
		case predicates.Unknown:
			return 0, false
		}
	}
	return program.Otherwise, true
}

func (r *reference) passed(x *instance, branch int) {
	q := x.info.Reads[len(x.info.Reads)-1]
	if branch >= 0 {
		q = x.info.Reads[branch]
	}
	x.newest(r.by[q])
	r.say(x, "pass %s %d %v", q, branch, r.by[q])
}

func (r *reference) take(x *instance, branch int) {
	x.decided = true
	r.passed(x, branch)
	if branch < 0 {
		branch = len(x.info.Reads)
	}
	if branch < len(x.info.Kids) {
		x.kids[branch] = r.begin(x.info.Kids[branch], x, -1)
		return
	}
	r.end(x, program.Done)
}

func (r *reference) only(x *instance) {
	for _, kid := range x.kids {
		if kid.outcome == program.Done {
			x.result = kid.result
			x.newest(kid.decision)
			r.end(x, program.Done)
		}
	}
}

func (r *reference) loop(x *instance) {
	until := x.info.Kind == program.KindUntil
	body := x.kids[0]
	switch {
	case body == nil && until && !x.decided:
		x.decided, x.round = true, r.step
		x.kids[0] = r.begin(x.info.Kids[0], x, -1)
		return
	case body != nil && body.outcome != program.Done:
		return
	case body != nil:
		x.previous = body.result
		x.newest(body.decision)
		delete(x.kids, 0)
	}
	branch, ok := r.choose(x)
	if x.parked || !ok {
		return
	}
	if again := branch == 0 != until; again {
		if x.round == r.step {
			x.parked = true
			return
		}
		r.passed(x, branch)
		x.round = r.step
		x.kids[0] = r.begin(x.info.Kids[0], x, -1)
		return
	}
	x.result = x.previous
	r.passed(x, branch)
	r.end(x, program.Done)
}

func (r *reference) do(x *instance) {
	switch {
	case !x.started || x.ended && x.failed && x.attempt <= x.info.Retry:
		x.started, x.ended, x.failed, x.told = true, false, false, false
		x.attempt++
		r.say(x, "start %d with %s", x.attempt, x.input)
	case x.ended && x.failed:
		x.cause = program.Failed
		r.stop(x, nil)
	case x.ended:
		r.end(x, program.Done)
	}
}

// line gives an action in the reference's words.
func line(a *program.Action) string {
	who := who(a)
	switch a.Kind {
	case program.ActStart:
		return fmt.Sprintf("%s start %d with %s", who, a.Block.Attempt, a.Input)
	case program.ActCancel:
		return fmt.Sprintf("%s cancel %d", who, a.Block.Attempt)
	case program.ActPass:
		return fmt.Sprintf("%s pass %s %d %v", who, a.Predicate, a.Branch, a.Decision)
	case program.ActSignal:
		return fmt.Sprintf("%s signal %s %v", who, a.Predicate, a.Decision)
	case program.ActEnd:
		return fmt.Sprintf("%s end %v", who, a.Outcome)
	case program.ActFinish:
		return fmt.Sprintf("%s finish %v %s", who, a.Outcome, a.Result)
	}
	return who + " refuse " + a.Reason
}

// draft draws random programs.
type draft struct {
	t     *rapid.T
	names int
	limit int
}

func (d *draft) name() string {
	d.names++
	return fmt.Sprintf("c%d", d.names)
}

var switches = []string{"s.p", "s.q", "u.r"}

// construct draws a construct. visible names what it can refer to. It reports
// whether it always has a result.
func (d *draft) construct(depth int, visible []string, replicated bool) (program.Construct, string, bool) {
	name := d.name()
	var limit time.Duration
	if !replicated && rapid.IntRange(0, 5).Draw(d.t, "deadline") == 0 {
		d.limit++
		limit = time.Duration(rapid.IntRange(1, 20).Draw(d.t, "ms"))*time.Millisecond + time.Duration(d.limit)
	}
	kind := program.Kind(rapid.IntRange(0, 6).Draw(d.t, "kind"))
	if depth == 0 {
		kind = program.KindDo
	}
	var els program.Construct
	result := true
	if kind != program.KindIf && kind != program.KindCase && depth > 0 && rapid.IntRange(0, 3).Draw(d.t, "else") == 0 {
		els, _, result = d.construct(depth-1, visible, replicated)
	}
	on := func() string { return rapid.SampledFrom(switches).Draw(d.t, "predicate") }
	from := ""
	if len(visible) > 0 && rapid.Bool().Draw(d.t, "refers") {
		from = rapid.SampledFrom(visible).Draw(d.t, "from")
	}
	var ok bool
	switch kind {
	case program.KindSeq:
		x := program.Seq{Name: name, Deadline: limit, Else: els}
		visible = slices.Clone(visible)
		for range rapid.IntRange(1, 3).Draw(d.t, "of") {
			kid, label, has := d.construct(depth-1, visible, replicated)
			if ok = has; has {
				visible = append(visible, label+".result")
			}
			x.Of = append(x.Of, kid)
		}
		return x, name, ok && result
	case program.KindPar:
		x := program.Par{Name: name, Deadline: limit, Else: els}
		if rapid.IntRange(0, 2).Draw(d.t, "join") == 0 {
			x.Join = on()
		}
		if rapid.Bool().Draw(d.t, "replicated") {
			x.Times = rapid.IntRange(1, 3).Draw(d.t, "times")
			kid, _, _ := d.construct(depth-1, visible, true)
			x.Of = []program.Construct{kid}
			return x, name, result
		}
		for range rapid.IntRange(1, 3).Draw(d.t, "of") {
			kid, _, _ := d.construct(depth-1, visible, replicated)
			x.Of = append(x.Of, kid)
		}
		return x, name, result
	case program.KindIf:
		x := program.If{Name: name, Deadline: limit, When: on()}
		x.Then, _, ok = d.construct(depth-1, visible, replicated)
		if rapid.Bool().Draw(d.t, "otherwise") {
			x.Else, _, result = d.construct(depth-1, visible, replicated)
			return x, name, ok && result
		}
		return x, name, false
	case program.KindCase:
		x := program.Case{Name: name, Deadline: limit}
		for _, q := range switches[:rapid.IntRange(1, 3).Draw(d.t, "branches")] {
			kid, _, _ := d.construct(depth-1, visible, replicated)
			x.Of = append(x.Of, program.When{When: q, Then: kid})
		}
		return x, name, false
	case program.KindWhile:
		x := program.While{Name: name, Deadline: limit, Else: els, When: on(), From: from}
		x.Do, _, ok = d.body(name, depth, visible, replicated, from)
		return x, name, ok && result && from != ""
	case program.KindUntil:
		x := program.DoUntil{Name: name, Deadline: limit, Else: els, Until: on(), From: from}
		x.Do, _, ok = d.body(name, depth, visible, replicated, from)
		return x, name, ok && result
	}
	x := program.Do{Name: name, Block: "b", From: from, Deadline: limit, Else: els, Retry: rapid.IntRange(0, 2).Draw(d.t, "retry")}
	if rapid.Bool().Draw(d.t, "async") {
		x.Async = []string{rapid.SampledFrom([]string{"s.p", "s.q"}).Draw(d.t, "under")}
	}
	return x, name, result
}

func (d *draft) body(name string, depth int, visible []string, replicated bool, from string) (program.Construct, string, bool) {
	if from != "" {
		visible = append(slices.Clone(visible), name+".previous")
	}
	kid, label, ok := d.construct(depth-1, visible, replicated)
	return kid, label, ok
}

var refEnv = &program.Env{Predicates: []program.Predicate{
	{Synchronizer: "s", Name: "p", Signals: true}, {Synchronizer: "s", Name: "q", Signals: true}, {Synchronizer: "u", Name: "r"},
}}

// drawPlan draws a program and compiles it.
func drawPlan(t *rapid.T) *program.Compiled {
	d := &draft{t: t}
	anything := program.Type{Base: program.Any}
	p := &program.Program{Name: "drawn", Blocks: []program.Block{{Name: "b", Input: anything, Output: anything}}}
	var name string
	var ok bool
	if p.Body, name, ok = d.construct(4, nil, false); ok {
		p.Result = name + ".result"
	}
	compiled, err := program.Compile(p, refEnv)
	if err != nil {
		bad, ok := errors.AsType[*program.Error](err)
		if !ok {
			t.Fatal(err)
		}
		for _, f := range bad.Faults {
			// A loop may not hand on what its body does not always have.
			if !strings.Contains(f.Message, "missing") {
				t.Fatal(err)
			}
		}
		t.Skip("a loop without a result")
	}
	return compiled
}

// TestRunAgrees plays random events in random programs against the reference.
func TestRunAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawPlan(t))
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			if w.event(); w.run.Finished() {
				break
			}
		}
		w.drain()
	})
}

// timed is an input and when it came.
type timed struct {
	now clocksync.Instant
	in  program.Input
}

// world has a run and its reference side by side.
type world struct {
	t        *rapid.T
	run      *program.Run
	ref      *reference
	out      program.Output
	now      clocksync.Instant
	number   uint64
	epoch    uint64
	inputs   []timed
	live     []program.Action // blocks that run
	nodes    map[string]bool
	canceled bool
}

func newWorld(t *rapid.T, compiled *program.Compiled) *world {
	w := &world{
		t: t, run: program.NewRun(compiled), epoch: 1, nodes: map[string]bool{},
		ref: &reference{compiled: compiled, truth: map[string]predicates.Truth{}, by: map[string]control.Decision{}},
	}
	for _, n := range []string{"n0", "n1", "n2"} {
		w.step(&program.Input{Kind: program.InJoined, Node: program.Node{Name: n, Cores: 2}})
		w.nodes[n] = true
	}
	w.step(&program.Input{Kind: program.InBegin})
	return w
}

func (w *world) decision(sync string) control.Decision {
	w.number++
	return control.Decision{Synchronizer: sync, Term: 1, Epoch: w.epoch, Number: w.number}
}

// event draws one event that can happen.
func (w *world) event() {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 4).Draw(w.t, "after")) * time.Millisecond)
	what := rapid.IntRange(0, 30).Draw(w.t, "what")
	switch {
	case what < 9:
		q := rapid.SampledFrom(switches).Draw(w.t, "predicate")
		if !slices.Contains(w.ref.compiled.Predicates(), q) {
			w.step(&program.Input{})
			return
		}
		truth := rapid.SampledFrom([]predicates.Truth{predicates.True, predicates.True, predicates.False, predicates.False, predicates.Unknown}).Draw(w.t, "truth")
		w.step(&program.Input{Kind: program.InVerdict, Predicate: q, Truth: truth, Decision: w.decision(q[:1])})
	case what == 9:
		w.epoch++
	case what == 10 && !w.canceled && rapid.IntRange(0, 4).Draw(w.t, "cancel") == 0:
		w.step(&program.Input{Kind: program.InCancel, Reason: "by hand"})
		w.canceled = true
	case what == 11:
		n := rapid.SampledFrom([]string{"n1", "n2"}).Draw(w.t, "node")
		in := &program.Input{Kind: program.InJoined, Node: program.Node{Name: n, Cores: 2}}
		if w.nodes[n] {
			in = &program.Input{Kind: program.InLeft, Node: program.Node{Name: n}}
		}
		w.nodes[n] = !w.nodes[n]
		w.step(in)
	case what == 12:
		w.rebuild()
	case len(w.live) == 0:
		w.step(&program.Input{})
	default:
		w.end(rapid.IntRange(0, len(w.live)-1).Draw(w.t, "block"), what < 17)
	}
}

func (w *world) end(i int, fails bool) {
	in := &program.Input{Kind: program.InFailed, Block: w.live[i].Block, Reason: "broken"}
	if !fails {
		in.Kind, in.Reason, in.Result, in.Decision = program.InDone, "", fmt.Sprintf(`"r%d"`, w.number), w.decision("s")
	}
	w.step(in)
}

// rebuild continues with a run that was handed the same inputs.
func (w *world) rebuild() {
	w.run = program.NewRun(w.ref.compiled)
	for i := range w.inputs {
		w.run.Step(w.inputs[i].now, &w.inputs[i].in, &w.out)
	}
}

func who(a *program.Action) string {
	var b strings.Builder
	fmt.Fprint(&b, a.Construct)
	for _, i := range a.Replicas {
		fmt.Fprintf(&b, "[%d]", i)
	}
	return b.String()
}

func (w *world) step(in *program.Input) {
	w.t.Helper()
	w.inputs = append(w.inputs, timed{w.now, *in})
	w.run.Step(w.now, in, &w.out)
	told := *in
	var about *instance
	find := func(key string) (found *instance) {
		w.ref.root.each(func(x *instance) {
			if x.outcome == 0 && key == fmt.Sprintf("%d%s", x.n, x.replicas) {
				found = x
			}
		})
		return found
	}
	switch in.Kind {
	case program.InDone, program.InFailed:
		i := slices.IndexFunc(w.live, func(a program.Action) bool { return a.Block == in.Block })
		if about = find(who(&w.live[i])); about == nil {
			w.t.Fatalf("the reference has no %s", who(&w.live[i]))
		}
	case program.InLeft:
		// The reference is told of blocks, in the order in which they began.
		told.Node.Labels = nil
		for _, a := range w.live {
			if a.Node == in.Node.Name {
				told.Node.Labels = append(told.Node.Labels, who(&a))
			}
		}
	}
	w.ref.input(w.now, &told, about)
	got := []string{}
	for i := range w.out.Actions {
		a := &w.out.Actions[i]
		if a.Kind == program.ActRefuse && w.ref.root.outcome != 0 {
			continue // A deadline ended the run just before.
		}
		got = append(got, line(a))
		w.check(a)
	}
	if in.Kind == program.InDone || in.Kind == program.InFailed {
		w.live = slices.DeleteFunc(w.live, func(a program.Action) bool { return a.Block == in.Block })
	}
	if in.Kind == program.InLeft {
		w.live = slices.DeleteFunc(w.live, func(a program.Action) bool { return a.Node == in.Node.Name })
	}
	want := slices.Clone(w.ref.events)
	ordered := fmt.Sprint(got, "\n", want, "\n", w.ref.compiled.Text())
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("step %d, %v %+v (-reference +run):\n%s\n%s", len(w.inputs), w.now, in, diff, ordered)
	}
}

// check holds each action against what must always be so.
func (w *world) check(a *program.Action) {
	switch a.Kind {
	case program.ActStart:
		if w.canceled {
			w.t.Fatalf("a start after the cancellation: %s", line(a))
		}
		kept := *a
		kept.Replicas = slices.Clone(a.Replicas)
		w.live = append(w.live, kept)
	case program.ActPass:
		if a.Decision.Number == 0 {
			w.t.Fatalf("passed without a decision: %s", line(a))
		}
	case program.ActRefuse:
		w.t.Fatalf("refused: %s", a.Reason)
	}
}

// drain lets everything end: every block that was started ends.
func (w *world) drain() {
	for range 10_000 {
		if w.run.Finished() {
			if left := w.run.Blocks(); len(left) > 0 || w.out.Wake != clocksync.MaxInstant {
				w.t.Fatalf("the run has ended and left %v, wake at %v", left, w.out.Wake)
			}
			return
		}
		if !w.canceled {
			w.step(&program.Input{Kind: program.InCancel})
			w.canceled = true
			continue
		}
		if len(w.live) == 0 {
			w.t.Fatal("the run waits for nothing")
		}
		w.end(0, true)
	}
	w.t.Fatal("the run does not end")
}

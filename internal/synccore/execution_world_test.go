package synccore_test

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/executor"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

const fieldHeader = `synchronizers:
  s:
    members: {group: g, count: 2, min: 1}
    silence: {after: 1s, then: drop}
    state: {x: {type: int, default: 0}, y: int}
    predicates:
      one: {when: "any(members, .x == 1)"}
      two: {when: "sum(members, .x) > 2"}
      three: {when: "any(members, .y == 1)"}
`

// TestExecutionsInWorlds runs random programs on random processors: frames are lost,
// doubled and late, processors are cut off, end and come back, bodies are late and
// repeated, and the machine is rebuilt from its journal. Whatever happens,
//
//   - no run begins twice (begin of proc sees to that),
//   - no block begins again after a restart or takeover while it runs on a processor that obeys
//     an earlier term and was not given up,
//   - the result is that of a naive interpreter that takes the same branches,
//   - a switch passes by a verdict of the current epoch that said so,
//   - the journal leads to the same outputs, though what was not synced of it is lost
//     when the machine is rebuilt,
//   - once the trouble is over the program ends, or does when it is cancelled.
func TestExecutionsInWorlds(t *testing.T) {
	outcomes := map[program.Outcome]int{}
	restarts, lost, torn, takeovers := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newField(t)
		w.run()
		w.check()
		outcomes[w.finish.Outcome]++
		restarts += w.restarts
		lost += w.lost
		torn += w.torn
		takeovers += w.takeovers
	})
	t.Logf("outcomes %v, %d restarts, %d of them with a part of the journal, %d takeovers, %d runs lost", outcomes, restarts, torn, takeovers, lost)
	if torn == 0 || takeovers == 0 || lost == 0 || outcomes[program.Done] == 0 {
		t.Error("something has not happened")
	}
}

// TestExecutionMutants: faults of runs are noticed.
func TestExecutionMutants(t *testing.T) {
	for name, bend := range map[string]func(w *field){
		"a body is answered for before it is on the disk": func(w *field) {
			w.lazy = func(in *synccore.Input) bool { return in.Kind == synccore.InBody }
		},
		"a start goes to two processors": func(w *field) {
			w.alter = func(_ *synccore.Input, out *synccore.Output) {
				for _, m := range slices.Clone(out.Signals) {
					for _, p := range w.procs {
						if s := &m.Msg.Signals[0]; s.Name == wire.StartSignal && p.name != m.To && !p.dead {
							other := *s
							other.Target, other.Entry = p.name, p.entry
							m.Msg.Incarnation = p.core.Incarnation()
							m.To, m.Msg.Signals = p.name, []control.Signal{other}
							out.Signals = append(out.Signals, m)
							return
						}
					}
				}
			}
		},
		"a result is that of another run": func(w *field) {
			w.alters = func(b *plan.Body) {
				if b.Kind == wire.BodyResult {
					b.Text += "0"
				}
			}
		},
		"a result is lost": func(w *field) {
			n := 0
			w.alters = func(b *plan.Body) {
				if n++; n%3 == 0 {
					b.Run += 1 << 20
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 200 {
				if why := noticed(bend, seed); why != "" {
					t.Logf("seed %d: %.200s", seed, strings.ReplaceAll(why, "\n", " "))
					return
				}
			}
			t.Error("it outlives 200 worlds")
		})
	}
}

// noticed runs a world that is bent, and tells the faults noticed.
func noticed(bend func(*field), seed int) (why string) {
	rapid.Custom(func(t *rapid.T) bool {
		defer func() {
			if p := recover(); fmt.Sprintf("%T", p) == "rapid.stopTest" { // else it was no world
				why = fmt.Sprint(p)
			} else if p != nil {
				panic(p)
			}
		}()
		w := newField(t)
		bend(w)
		w.run()
		w.check()
		return true
	}).Example(seed)
	return why
}

// field is a fleet in a world of its own.
type field struct {
	*fleet
	t         *rapid.T
	events    events
	count     int
	bad       bool
	cut       map[string]bool
	taken     map[uint64]bool            // runs whose body was answered for
	verdicts  map[string]monitor.Verdict // the newest of each predicate in the epoch
	log       []monitor.ProgramEvent
	finish    *monitor.ProgramEvent
	epoch     uint64
	restarts  int
	torn      int
	takeovers int
	lost      int
	places    map[uint64]string // of runs, in the program
	gone      []uint64          // runs that were given up
	since     clocksync.Instant // when this life has begun
	known     int               // events of the program that the standby knows of
	alters    func(*plan.Body)  // a mutant; may be nil
}

func newField(t *rapid.T) *field {
	d := &sketch{t: t}
	body := d.construct(3, nil)
	text := fieldHeader + "program:\n  name: test\n  blocks: {b: {input: any, output: any}}\n  result: " + d.first + ".result\n  body: " + body + "\n"
	f, err := newFleet(t, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	w := &field{fleet: f, t: t, cut: map[string]bool{}, verdicts: map[string]monitor.Verdict{}, taken: map[uint64]bool{}, places: map[uint64]string{}, bad: true}
	f.carry, f.observe, f.began, f.left = w.network, w.note, w.work, w.stop
	return w
}

func (w *field) between(from, to int, what string) int {
	return rapid.IntRange(from, to).Draw(w.t, what)
}

func (w *field) odds(n int, what string) bool { return w.between(0, n-1, what) == 0 }

func (w *field) later(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now.Add(d), w.count, do})
}

// network loses, doubles and delays.
func (w *field) network(p *proc, deliver func()) {
	copies, delay := 1, 1
	if w.bad {
		if w.cut[p.name] {
			return
		}
		switch w.between(0, 19, "frame") {
		case 0:
			copies = 0
		case 1:
			copies = 2
		case 2:
			delay = w.between(2, 60, "late")
		}
	}
	for range copies {
		w.later(time.Duration(delay)*time.Millisecond, deliver)
	}
}

// work has a block report, and end some time later.
func (w *field) work(p *proc) {
	mine := p.last
	if q := w.twice(p); q != nil {
		w.t.Fatalf("run %d begins on %s in term %d, and run %d of the same block is on %s, which obeys term %d", mine.run, p.process(), w.term, q.last.run, q.process(), q.term)
	}
	w.later(time.Duration(w.between(1, 80, "works"))*time.Millisecond, func() {
		if p.dead || !p.runs || p.last.run != mine.run {
			return
		}
		if what := w.between(0, 5, "reports"); what < 3 {
			p.set("x", scgs.IntValue(int64(what)))
		} else {
			p.set("y", scgs.IntValue(int64(what-3)))
		}
		p.flush()
		w.later(time.Duration(w.between(1, 40, "ends"))*time.Millisecond, func() {
			if p.dead || !p.runs || p.last.run != mine.run {
				return
			}
			if p.told || w.bad && w.odds(8, "fails") {
				p.end(wire.PhaseFailed, wire.BodyFailure, "broken")
			} else {
				p.end(wire.PhaseDone, wire.BodyResult, computed(p.last.block, p.input))
			}
			w.hand(p, p.body)
			p.flush()
		})
	})
}

// computed is what a block makes of its input.
func computed(block, input string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(block + input)) // A hash takes everything.
	return strconv.Itoa(int(h.Sum32()))
}

// stop ends a block that has to end, now or when it gets to it.
func (w *field) stop(p *proc) {
	if w.odds(3, "polite") {
		return
	}
	p.end(wire.PhaseCanceled, 0, "")
	p.flush()
}

// hand hands over a body again and again until the machine has taken or refused it, or
// the processor has begun something else.
func (w *field) hand(p *proc, b *plan.Body) {
	delay := 1
	if w.bad {
		delay = w.between(1, 60, "body")
	}
	w.later(time.Duration(delay)*time.Millisecond, func() {
		if p.dead || p.runs || p.body != b {
			return
		}
		if w.bad && w.cut[p.name] {
			w.hand(p, b)
			return
		}
		body := b
		if w.alters != nil {
			other := *b
			w.alters(&other)
			body = &other
		}
		w.step(synccore.Input{Kind: synccore.InBody, From: p.name, Body: body})
		if w.bad && w.odds(4, "unanswered") {
			w.hand(p, b)
		} else if w.out.Refused == "" {
			w.taken[b.Run] = true
		}
	})
}

// note keeps what a step has told, and holds each switch against the verdicts.
func (w *field) note() {
	o := &w.out
	before := maps.Clone(w.verdicts)
	again := w.epoch != w.core.Epoch() // An event of one may also tell who left without having been in any.
	if w.epoch = w.core.Epoch(); again {
		w.verdicts = map[string]monitor.Verdict{}
	}
	told := slices.Clone(o.Verdicts)
	for _, v := range o.Verdicts {
		if v.Epoch == w.core.Epoch() {
			w.verdicts[v.Predicate] = v
		}
	}
	gone := false
	for _, e := range o.Program {
		switch e.Kind {
		case monitor.ProgramStart:
			w.places[e.Run] = fmt.Sprint(e.Path, e.Replicas)
		case monitor.ProgramFail:
			w.gone = append(w.gone, e.Run)
		case monitor.ProgramLost:
			gone = true
			w.lost++
			w.gone = append(w.gone, e.Run)
		case monitor.ProgramRefuse:
			w.t.Fatalf("refused: %s\n%s%+v", e.Reason, w.story(), o.Program)
		case monitor.ProgramPass:
			if e.Predicate != "" {
				w.passed(&e, before, told, gone && again)
			}
		case monitor.ProgramFinish:
			if w.finish != nil && (w.finish.Outcome != e.Outcome || w.finish.Result != e.Result) {
				w.t.Fatalf("finished with %v, %q, and before with %v, %q", e.Outcome, e.Result, w.finish.Outcome, w.finish.Result)
			}
			kept := e
			w.finish = &kept
		}
		w.log = append(w.log, e)
	}
	w.tail = append(w.tail, tail{w.record, len(w.log)})
	if o.Refused != "" && !strings.Contains(o.Refused, "run ") {
		w.t.Fatalf("a body is refused: %s", o.Refused)
	}
}

// passed holds a switch against what was known: a verdict that stood before the step,
// unless an epoch has ended since, or one of the step.
func (w *field) passed(e *monitor.ProgramEvent, before map[string]monitor.Verdict, told []monitor.Verdict, again bool) {
	if e.Construct == program.KindPar.String() {
		return // It passes when all inside has ended, by a decision from before.
	}
	_, name, _ := strings.Cut(e.Predicate, ".")
	want := predicates.False
	if e.Branch >= 0 {
		want = predicates.True
	}
	if e.Decision.Term != w.term {
		w.t.Fatalf("%s passed in term %d", programLine(e), w.term)
	}
	if again && e.Decision.Epoch != w.core.Epoch() {
		w.t.Fatalf("%s passed after epoch %d has begun", programLine(e), w.core.Epoch())
	}
	stood := before[name]
	if stood.Truth == want && stood.Epoch == e.Decision.Epoch {
		return
	}
	for _, v := range told {
		if v.Predicate == name && v.Truth == want && v.Epoch == e.Decision.Epoch {
			return
		}
	}
	w.t.Fatalf("%s passed, and what stood was %+v, and is told %+v", programLine(e), stood, told)
}

// run lets trouble happen, and then none.
func (w *field) run() {
	for _, name := range []string{"a", "b", "c"} {
		w.join(name)
	}
	const step = 2 * time.Millisecond
	for turn := range 4000 {
		if w.finish != nil {
			break
		}
		switch {
		case turn < 400 && turn%10 == 0:
			w.trouble()
		case turn == 400:
			w.bad = false
			clear(w.cut)
			for _, p := range w.procs {
				if w.proc(p.name).dead {
					w.join(p.name)
				}
			}
		case turn == 2400:
			w.step(synccore.Input{Kind: synccore.InCancel, Reason: "it takes too long"})
		}
		w.pass(step)
	}
	if w.finish == nil {
		w.t.Fatalf("the program does not end: %+v\n%s", w.core.Status(w.now).Program, compiled(w.plan).Text())
	}
	w.replayed()
}

// pass lets time pass.
func (w *field) pass(d time.Duration) {
	for end := w.now.Add(d); w.now < end; {
		next := end
		if len(w.events) > 0 {
			next = min(next, w.events[0].at)
		}
		w.now = max(w.now, next)
		for len(w.events) > 0 && w.events[0].at <= w.now {
			heap.Pop(&w.events).(event).do()
		}
	}
	if w.wake <= w.now {
		w.step(synccore.Input{Kind: synccore.InTick})
	}
	for _, p := range w.procs {
		if p.due() <= w.now {
			p.flush()
		}
	}
}

// trouble is what may happen to processors and the machine.
func (w *field) trouble() {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "who")
	p := w.proc(name)
	switch w.between(0, 19, "trouble") {
	case 17:
		w.attach()
		w.known = -1
	case 18:
		if w.stand != nil && !w.stand.deaf && w.odds(4, "deaf") {
			w.stand.deaf, w.known = true, len(w.log)
		}
	case 19:
		if w.stand != nil && w.restarts < 4 {
			w.restarts++
			w.takeovers++
			clear(w.verdicts)
			if w.known >= 0 {
				w.log = w.log[:min(w.known, len(w.log))]
			}
			w.since = w.now
			clear(w.taken) // What that one has answered for is in its journal. This one's has what it was told of it.
			w.takeover()
		}
	case 0:
		p.dead = true
	case 1:
		w.join(name)
	case 2, 3:
		w.cut[name] = true
		d := time.Duration(w.between(10, 1500, "for")) * time.Millisecond
		w.later(d, func() { w.cut[name] = false })
	case 4:
		if w.restarts < 4 && w.record.inputs > 0 {
			w.restarts++
			clear(w.verdicts)
			if w.odds(2, "torn") {
				if n := w.tear(func(n int) int { return w.between(0, n-1, "left") }); n >= 0 {
					w.log, w.torn = w.log[:n], w.torn+1
					for _, run := range slices.Sorted(maps.Keys(w.taken)) {
						if !strings.Contains(string(w.record.text), fmt.Sprintf(`"run":%d,"kind"`, run)) {
							w.t.Fatalf("what run %d has come to was answered for, and the journal lacks it", run)
						}
					}
				}
			}
			w.since, w.stand = w.now, nil
			w.restart()
		}
	case 16:
		if w.record.inputs > 0 {
			w.raise()
		}
	case 5:
		w.pass(1200 * time.Millisecond)
	case 6: // A copy of a signal that is over.
		if p.last.run > 0 && !p.runs {
			b := plan.Body{Program: p.last.program, Run: p.last.run, Kind: wire.BodyResult, Text: "13"}
			if _, ok := w.core.RunInput(p.name, b.Program, b.Run); !ok {
				w.step(synccore.Input{Kind: synccore.InBody, From: name, Body: &b})
			}
		}
	}
}

// check compares the result with a naive interpreter's.
func (w *field) check() {
	n := &naive{field: w, at: map[string]int{}, next: map[string]int{}}
	for i := range compiled(w.plan).Constructs() {
		n.at[compiled(w.plan).Info(i).Path] = i
	}
	value, outcome := n.construct(0, "", map[string]string{}, len(w.log))
	if outcome != w.finish.Outcome {
		w.t.Fatalf("%v, want %v\n%s", w.finish.Outcome, outcome, w.story())
	}
	if outcome == program.Done && value != w.finish.Result {
		w.t.Fatalf("result %q, want %q\n%s", w.finish.Result, value, w.story())
	}
}

func (w *field) story() string {
	var b strings.Builder
	b.WriteString(compiled(w.plan).Text())
	for i := range w.log {
		b.WriteString(programLine(&w.log[i]) + "\n")
	}
	return b.String()
}

// naive interprets a program from the top, by recursion: which branch was taken, and
// what has failed or was cancelled, it takes from the log, and every value it computes
// itself.
type naive struct {
	*field
	at   map[string]int // constructs by path
	next map[string]int // where to continue in the log, by kind of event and construct
}

// pop is the next event of a kind about a construct, before the place limit in the log.
func (n *naive) pop(kind monitor.ProgramKind, construct int, replicas string, limit int) (*monitor.ProgramEvent, int) {
	key := fmt.Sprint(kind, construct, replicas)
	for i := n.next[key]; i < limit; i++ {
		e := &n.log[i]
		if e.Kind == kind && n.at[e.Path] == construct && fmt.Sprint(e.Replicas) == "["+strings.TrimSpace(replicas)+"]" {
			n.next[key] = i + 1
			return e, i
		}
	}
	return nil, 0
}

// construct gives the result of a construct that has ended before a place in the log.
func (n *naive) construct(i int, replicas string, known map[string]string, limit int) (string, program.Outcome) {
	info := compiled(n.plan).Info(i)
	end, at := n.pop(monitor.ProgramEnd, i, replicas, limit)
	if end == nil {
		n.t.Fatalf("%s has no end\n%s", info.Path, n.story())
	}
	if end.Outcome != program.Done {
		n.skip(i, replicas, at)
		return "", end.Outcome
	}
	value, ok := n.inside(info, i, replicas, known, at)
	if !ok { // Then its else has run.
		n.skipInside(info, replicas, at)
		if info.Else < 0 {
			n.t.Fatalf("%s is done, and what is inside is not\n%s", info.Path, n.story())
		}
		value, end.Outcome = n.construct(info.Else, replicas, known, at)
		if end.Outcome != program.Done {
			n.t.Fatalf("%s is done, and its else is not\n%s", info.Path, n.story())
		}
	}
	return value, program.Done
}

// skip leaves out the events of a construct up to a place: it did not come to its end.
func (n *naive) skip(i int, replicas string, limit int) {
	info := compiled(n.plan).Info(i)
	for e, _ := n.pop(monitor.ProgramPass, i, replicas, limit); e != nil; {
		e, _ = n.pop(monitor.ProgramPass, i, replicas, limit)
	}
	n.skipInside(info, replicas, limit)
	if info.Else >= 0 {
		n.skipAll(info.Else, replicas, limit)
	}
}

func (n *naive) skipInside(info program.Info, replicas string, limit int) {
	for _, kid := range info.Kids {
		for r := range max(info.Times, 1) {
			inner := replicas
			if info.Times > 0 {
				inner += fmt.Sprintf(" %d", r)
			}
			n.skipAll(kid, inner, limit)
		}
	}
}

func (n *naive) skipAll(i int, replicas string, limit int) {
	for e, _ := n.pop(monitor.ProgramEnd, i, replicas, limit); e != nil; {
		e, _ = n.pop(monitor.ProgramEnd, i, replicas, limit)
	}
	n.skip(i, replicas, limit)
}

// inside gives the result of the inside of a construct; ok is false if that is not done.
func (n *naive) inside(info program.Info, i int, replicas string, known map[string]string, limit int) (value string, ok bool) {
	switch info.Kind {
	case program.KindDo:
		// An else has run if it has ended before, and has not been told of before.
		if info.Else >= 0 && n.ended(info.Else, replicas, limit) {
			return "", false
		}
		return computed("b", input(info, known)), true
	case program.KindSeq:
		for _, kid := range info.Kids {
			if !n.ended(kid, replicas, limit) {
				return "", false
			}
			var outcome program.Outcome
			if value, outcome = n.construct(kid, replicas, known, limit); outcome != program.Done {
				return "", false
			}
			known = with(known, compiled(n.plan).Info(kid).Name+".result", value)
		}
		return value, true
	case program.KindPar:
		return n.par(info, i, replicas, known, limit)
	case program.KindIf, program.KindCase:
		e, _ := n.pop(monitor.ProgramPass, i, replicas, limit)
		branch := e.Branch
		if branch < 0 {
			branch = len(info.Reads)
		}
		if branch >= len(info.Kids) {
			return "", true
		}
		value, outcome := n.construct(info.Kids[branch], replicas, known, limit)
		return value, outcome == program.Done
	}
	return n.loop(info, i, replicas, known, limit)
}

// ended reports whether a construct has ended before a place, and was not told of yet.
func (n *naive) ended(i int, replicas string, limit int) bool {
	key := fmt.Sprint(monitor.ProgramEnd, i, replicas)
	before := n.next[key]
	e, _ := n.pop(monitor.ProgramEnd, i, replicas, limit)
	n.next[key] = before
	return e != nil
}

func (n *naive) par(info program.Info, i int, replicas string, known map[string]string, limit int) (string, bool) {
	e, _ := n.pop(monitor.ProgramPass, i, replicas, limit)
	if e == nil {
		return "", false
	}
	var parts []string
	for b := range max(info.Times, len(info.Kids)) {
		kid, inner := info.Kids[min(b, len(info.Kids)-1)], replicas
		if info.Times > 0 {
			inner += fmt.Sprintf(" %d", b)
		}
		value, outcome := n.construct(kid, inner, known, limit)
		if outcome != program.Done && e.Predicate == "" {
			n.t.Fatalf("%s passed, and a branch is %v\n%s", info.Path, outcome, n.story())
		}
		if outcome != program.Done || value == "" {
			value = "null"
		}
		if info.Times == 0 {
			value = strconv.Quote(compiled(n.plan).Info(kid).Name) + ":" + value
		}
		parts = append(parts, value)
	}
	if info.Times > 0 {
		return "[" + strings.Join(parts, ",") + "]", true
	}
	return "{" + strings.Join(parts, ",") + "}", true
}

func (n *naive) loop(info program.Info, i int, replicas string, known map[string]string, limit int) (string, bool) {
	value := input(info, known)
	until := info.Kind == program.KindUntil
	for first := true; ; first = false {
		if !until || !first {
			e, _ := n.pop(monitor.ProgramPass, i, replicas, limit)
			if e == nil {
				return "", false
			}
			if e.Branch >= 0 == until {
				return value, true
			}
		}
		if !n.ended(info.Kids[0], replicas, limit) {
			return "", false
		}
		var outcome program.Outcome
		if value, outcome = n.construct(info.Kids[0], replicas, with(known, info.Name+".previous", value), limit); outcome != program.Done {
			return "", false
		}
	}
}

func input(info program.Info, known map[string]string) string {
	if info.From == "" {
		if info.Input == "" {
			return "null"
		}
		return info.Input
	}
	if v := known[info.From]; v != "" {
		return v
	}
	return "null"
}

func with(known map[string]string, name, value string) map[string]string {
	next := map[string]string{name: value}
	for k, v := range known {
		if k != name {
			next[k] = v
		}
	}
	return next
}

// sketch draws the text of random programs that compile and always have a result.
type sketch struct {
	t     *rapid.T
	names int
	first string
}

func (d *sketch) construct(depth int, visible []string) string {
	d.names++
	name := fmt.Sprintf("c%d", d.names)
	if d.first == "" {
		d.first = name
	}
	kind := program.Kind(rapid.IntRange(0, 6).Draw(d.t, "kind"))
	if depth == 0 {
		kind = program.KindDo
	}
	from := `input: "x"`
	if len(visible) > 0 && rapid.Bool().Draw(d.t, "refers") {
		from = "from: " + rapid.SampledFrom(visible).Draw(d.t, "from")
	}
	rest := ", name: " + name
	if depth > 0 && rapid.IntRange(0, 4).Draw(d.t, "deadline") == 0 {
		rest += fmt.Sprintf(", deadline: %dms", rapid.IntRange(30, 900).Draw(d.t, "ms"))
	}
	if kind != program.KindIf && kind != program.KindCase && depth > 0 && rapid.IntRange(0, 2).Draw(d.t, "else") == 0 {
		rest += ", else: " + d.construct(depth-1, visible)
	}
	on := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(d.t, "predicate")
	switch kind {
	case program.KindSeq:
		var of []string
		for range rapid.IntRange(1, 3).Draw(d.t, "of") {
			label := fmt.Sprintf("c%d.result", d.names+1)
			of = append(of, d.construct(depth-1, visible))
			visible = append(slices.Clone(visible), label)
		}
		return "{seq: [" + strings.Join(of, ", ") + "]" + rest + "}"
	case program.KindPar:
		if rapid.IntRange(0, 2).Draw(d.t, "join") == 0 {
			rest += ", join: " + on
		}
		if rapid.Bool().Draw(d.t, "replicated") {
			return fmt.Sprintf("{par: %s, times: %d%s}", d.construct(depth-1, visible), rapid.IntRange(1, 3).Draw(d.t, "times"), rest)
		}
		return "{par: [" + d.construct(depth-1, visible) + ", " + d.construct(depth-1, visible) + "]" + rest + "}"
	case program.KindIf:
		return "{if: " + on + ", then: " + d.construct(depth-1, visible) + ", else: " + d.construct(depth-1, visible) + rest + "}"
	case program.KindCase:
		return "{case: [{when: one, then: " + d.construct(depth-1, visible) + "}, {when: " + rapid.SampledFrom([]string{"two", "three"}).Draw(d.t, "second") + ", then: " +
			d.construct(depth-1, visible) + "}], else: " + d.construct(depth-1, visible) + rest + "}"
	case program.KindWhile, program.KindUntil:
		// The last of the body is a block, whose result is of any type.
		visible = append(slices.Clone(visible), name+".previous")
		d.names++
		last := fmt.Sprintf("{do: b, from: %s.previous, name: c%d, retry: 3}", name, d.names)
		return fmt.Sprintf("{%v: %s, do: {seq: [%s, %s], name: %sb}, %s%s}", kind, on, d.construct(depth-1, visible), last, name, from, rest)
	default:
		return fmt.Sprintf("{do: b, %s, retry: %d%s}", from, rapid.IntRange(0, 3).Draw(d.t, "retry"), rest)
	}
}

// compiled is the program of a level.
func compiled(level *plan.Level) *program.Compiled {
	return level.Program.(executor.Program).Compiled //nolint:forcetypeassert // There is no other.
}

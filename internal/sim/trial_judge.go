package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// reference is what a judge knows of a predicate beside its text.
type reference struct {
	// holds is what the predicate comes to on the known states of a witness of so many
	// members.
	holds func(rows [][]scgs.Value, members int) bool
	// local is the condition on a member, of a predicate that finds runs: the witness names the
	// first state of each.
	local func(row []scgs.Value) bool
	// hold is how long the states certainly held together.
	hold time.Duration
	// always is set if it is true at all times, and fires on every global state.
	always bool
}

// breach is a promise that was broken.
type breach struct {
	judge byte
	text  string
}

// judges know true time, all true states and all effects.
type judges struct {
	breaches  []breach
	effects   map[effectKey]int
	truly     map[signalKey]int     // effects, whoever had them
	posted    map[signalKey]*letter // ever
	origins   map[uint64]origin     // of terms that continue another one
	content   bool                  // judge C is
	lastFired clocksync.Instant
	entered   map[string]clocksync.Instant           // when members entered an epoch last
	became    map[control.Decision]clocksync.Instant // since when its predicate has been true for long enough
	firings   map[firingKey][]control.Decision       // those that had their effect, one of each term
	numbers   map[string]int                         // of the texts of predicates
	accepted  map[string]uint64                      // the incarnation that a synchronizer has accepted last, by member
	witness   map[control.Decision]string            // as it truly was
	ofRuns    map[control.Decision]int               // of runs: the how-manieth firing on them in its term
	ran       map[ranKey]uint64                      // the number of the first firing of a predicate that fires once in a run
	earliest  map[string]clocksync.Instant           // firing of a predicate
	finals    []letter                               // whose fate is to be compared with the truth
}

// tenure is what one term of the synchronizer has promised.
type tenure struct {
	sent     map[signalKey]*mailed
	inEpoch  map[string]uint64 // since which step
	reported map[lifeKey]*reports
	steps    uint64
	here     map[string]uint64  // the incarnation of each member that has been welcomed, and is not gone
	onRuns   map[string]int     // firings, by their witness
	tooOld   bool               // a report was refused since its stamp was
	gaps     uint64             // that its machine had counted before
	known    map[lifeKey]uint64 // the newest reports of the term that it continues
	level    *plan.Level
	rules    map[string]reference // the predicates of that
	texts    map[string]*text     // the predicates that are judged by their texts
	fired    map[string]*firings  // by predicate and text
	joins    map[string][]uint64  // the epochs in which a member joined
	begun    clocksync.Instant    // when the epoch began
}

// origin is the term that another one continues: signals of decisions up to a number belong to
// that term.
type origin struct{ term, last uint64 }

// mailed is a signal that a term has sent, or continues.
type mailed struct {
	*letter
	at    uint64 // step of the tenure; 0: it continues the signal
	done  uint64 // the step at which it had its fate
	fates int
	maybe bool // it continues the signal, if it has received it
}

type effectKey struct {
	signalKey
	incarnation uint64
}

// firingKey is the same firing, whatever term it was made in.
type firingKey struct {
	predicate, name, target string
	entry, incarnation      uint64
	witness                 string
}

type lifeKey struct {
	member      string
	incarnation uint64
}

// letter is a signal and its fate.
type letter struct {
	key    signalKey
	fate   control.Fate
	fates  int       // of all terms
	taken  uint64    // the life of the target that has it; 0: none has
	later  [2]uint64 // the last term after that in which its fate was recorded, and the term of the copy
	again  bool      // a later term has sent it as its own: each copy may be refused for a reason of its own
	before int       // effects of its key before it was sent
	firing uint32    // of its cause
	entry  uint64    // that it was decided on
	life   uint64    // of the target
}

// decidedOn says which entry a signal was decided on.
func (l *letter) decidedOn() string {
	if l == nil {
		return "none: it was never sent"
	}
	return fmt.Sprintf("entry %d of life %d", l.entry, l.life)
}

// reports are the reports of an incarnation that have come to a synchronizer in one term: the
// step at which the first copy of each came, 0 if none has; and the last that came while the
// synchronizer took the incarnation in.
type reports struct {
	first, last uint64
	since       uint64 // the step at which the first came while it took the incarnation in; 0: none did
	steps       []uint64
}

func (j *judges) beginTrial() {
	j.posted = map[signalKey]*letter{}
	j.effects, j.truly = map[effectKey]int{}, map[signalKey]int{}
	j.numbers, j.origins, j.accepted = map[string]int{}, map[uint64]origin{}, map[string]uint64{}
	j.firings, j.witness, j.ofRuns = map[firingKey][]control.Decision{}, map[control.Decision]string{}, map[control.Decision]int{}
	j.ran, j.earliest = map[ranKey]uint64{}, map[string]clocksync.Instant{}
	j.lastFired, j.became = clocksync.MinInstant, map[control.Decision]clocksync.Instant{}
	j.entered = map[string]clocksync.Instant{}
}

func (t *trial) addBreach(judge byte, format string, args ...any) {
	t.breaches = append(t.breaches, breach{judge, fmt.Sprintf("at %v: ", time.Duration(t.now)) + fmt.Sprintf(format, args...)})
}

// termBegun begins what only one term of the synchronizer has promised.
func (l *leader) termBegun() {
	l.tenure = tenure{
		sent: map[signalKey]*mailed{}, reported: map[lifeKey]*reports{}, inEpoch: map[string]uint64{}, here: map[string]uint64{}, onRuns: map[string]int{},
		level: l.t.level, rules: l.t.rules, texts: l.t.texts[l.t.level], fired: map[string]*firings{}, joins: map[string][]uint64{},
	}
}

// termOver counts what the synchronizer takes with it.
func (l *leader) termOver() {
	l.t.Gaps += int(l.askQuestion(synccore.Question{Counts: true}).Counts.Gaps - l.gaps) //nolint:gosec // Few.
}

// first is a decision as it was first made: a term that continues another one sends its signals
// as its own.
func (t *trial) first(d control.Decision) control.Decision {
	d.Epoch, d.Number = 0, d.Number&(1<<40-1)
	for {
		o, on := t.origins[d.Term]
		if !on || d.Number > o.last {
			return d
		}
		d.Term = o.term
	}
}

// key tells signals apart.
func (t *trial) key(s *control.Signal) signalKey {
	return signalKey{t.first(s.Decision), s.Name, s.Target}
}

// hadEffect reports whether a signal has taken effect since it was sent, or the same firing has
// under another decision.
func (t *trial) hadEffect(s *control.Signal, l *letter) bool {
	if t.truly[l.key] > l.before {
		return true
	}
	for life := range t.findActor(s.Target).life {
		made := t.firings[firingKey{s.Predicate, s.Name, s.Target, s.Entry, life + 1, t.firing(s.Decision, max(l.firing, s.Cause.Number()))}]
		if slices.ContainsFunc(made, func(d control.Decision) bool { return d.Term != l.key.decision.Term }) {
			t.Repeated++
			return true
		}
	}
	return false
}

// firing names the firing of a decision, in whatever term: its witness as it truly was, and
// its number, which of runs no later term needs to know.
func (t *trial) firing(d control.Decision, number uint32) string {
	if d = t.first(d); t.ofRuns[d] > 0 {
		return t.witness[d]
	}
	return fmt.Sprintf("%s#%d", t.witness[d], number)
}

// noteTaken notes the members that have a signal.
func (t *trial) noteTaken(a *actor, fresh []control.Outcome) {
	for i := range fresh {
		if l := t.posted[t.key(fresh[i].Signal)]; l != nil {
			l.taken = a.life
		}
	}
}

// fateOf judges a fate that a term records: of a signal that it has sent, or continues.
func (t *trial) fateOf(by *leader, f *monitor.Fate) {
	key := t.key(f.Signal)
	m := by.sent[key]
	if f.Earlier || m == nil && f.Signal.Decision.Term != by.term {
		t.earlierFate(by, key, f)
		return
	}
	if m == nil {
		m = &mailed{at: by.steps, letter: &letter{key: key}}
		by.sent[key] = m
	}
	if m.fates++; m.fates > 1 {
		t.addBreach('F', "%s %s to %s has the fate %v, and had %v", key.decision, key.name, key.target, f.Fate, m.fate)
	}
	if key.decision.Term != by.term || m.letter.fates > 0 {
		t.agrees(m.letter, f)
	}
	m.done, m.letter.fates, m.fate = by.steps, m.letter.fates+1, f.Fate
	if f.Fate == control.Applied && !t.hadEffect(f.Signal, m.letter) {
		t.addBreach('F', "%s %s to %s has the fate applied, and was not", key.decision, key.name, key.target)
	}
	t.finals = append(t.finals, *m.letter)
}

// contradicts reports whether a fate differs from the recorded fate.
func (l *letter) contradicts(f control.Fate) bool {
	if l.fate == control.OldEpoch {
		return false // It was the fate of a copy: the next term may send it again.
	}
	if l.again && l.fate != control.Applied && f != control.Applied && f != control.Unconfirmed {
		return false
	}
	return l.fates > 0 && l.fate != f && l.fate != control.Unconfirmed
}

// agrees judges a second fate that another term has recorded without knowing of the first: who
// knows what became of the signal says the same.
func (t *trial) agrees(l *letter, f *monitor.Fate) {
	switch {
	case l.fates == 0:
		t.FatesLate++
	case l.contradicts(f.Fate) && f.Fate != control.Unconfirmed:
		t.addBreach('F', "%s %s to %s has the fate %v in a later term, and had %v", l.key.decision, l.key.name, l.key.target, f.Fate, l.fate)
	default:
		t.FatesAgain++
	}
}

// earlierFate judges a fate that is recorded in a later term than its decision: once in each at
// the most, and as before. An unconfirmed fate may be known by now.
func (t *trial) earlierFate(by *leader, key signalKey, f *monitor.Fate) {
	l := t.posted[key]
	switch {
	case l == nil || !f.Earlier:
		t.addBreach('F', "%s %s to %s has the fate %v, and was never sent", key.decision, key.name, key.target, f.Fate)
		return
	case l.later == [2]uint64{by.term, f.Signal.Decision.Term}:
		t.addBreach('F', "%s %s to %s has the fate %v in a later term, and had %v there", key.decision, key.name, key.target, f.Fate, l.fate)
	case l.contradicts(f.Fate) && f.Fate != control.Unconfirmed: // The term before may have known more.
		t.addBreach('F', "%s %s to %s has the fate %v in a later term, and had %v", key.decision, key.name, key.target, f.Fate, l.fate)
	case f.Fate == control.Applied && !t.hadEffect(f.Signal, l):
		t.addBreach('F', "%s %s to %s has the fate applied in a later term, and was not", key.decision, key.name, key.target)
	case l.fates > 0:
		t.FatesAgain++
	default:
		t.FatesLate++
	}
	l.fates, l.fate, l.later = max(l.fates, 1), f.Fate, [2]uint64{by.term, f.Signal.Decision.Term}
	t.finals = append(t.finals, *l)
}

// judgeStep judges what a step of the synchronizer tells.
func (t *trial) judgeStep(l *leader, out *synccore.Output) {
	l.steps++
	t.Rejected += len(out.Rejected)
	for i := range out.Rejected {
		l.tooOld = l.tooOld || strings.Contains(out.Rejected[i].Detail, "older than the stamps of its clock domain")
	}
	for i := range out.Epochs {
		t.Epochs++
		e := &out.Epochs[i]
		l.begun = t.now
		for _, name := range e.Joined {
			l.joins[name] = append(l.joins[name], e.Epoch)
		}
		for j := range e.Dropped {
			delete(l.here, e.Dropped[j].Name)
		}
		for name := range l.inEpoch {
			if !slices.Contains(e.Members, name) || slices.Contains(e.Joined, name) {
				delete(l.inEpoch, name)
			}
		}
		for _, name := range e.Joined {
			t.entered[name] = t.now
		}
		for _, name := range e.Members {
			if l.inEpoch[name] == 0 {
				l.inEpoch[name] = l.steps
			}
		}
	}
	for i := range out.Welcomes {
		if w := &out.Welcomes[i].Msg; w.Accepted {
			t.accepted[w.Member] = w.Incarnation
			l.here[w.Member] = w.Incarnation
		}
	}
	for i := range out.Verdicts {
		if v := &out.Verdicts[i]; v.Fired {
			t.Firings++
			t.Fired[v.Predicate]++
			if v.Partial {
				t.Partial++
			}
			if l.rules[v.Predicate].always {
				t.lastFired = t.now
			}
			t.noteTrace('v', v.Decision.Number, []byte(v.Predicate))
			t.judgeVerdict(l, v)
		}
	}
	for i := range out.Signals {
		for j := range out.Signals[i].Msg.Signals {
			s := &out.Signals[i].Msg.Signals[j]
			key := t.key(s)
			if m := l.sent[key]; m != nil && m.at == 0 {
				m.maybe, m.again = false, true
			}
			if l.sent[key] == nil {
				t.Sent++
				l.sent[key] = &mailed{at: l.steps, letter: &letter{key: key, before: t.truly[key], firing: s.Cause.Number(), entry: s.Entry, life: t.findActor(out.Signals[i].To).lives[out.Signals[i].Msg.Incarnation]}}
				t.posted[key] = l.sent[key].letter
			}
		}
	}
	for i := range out.Fates {
		f := &out.Fates[i]
		t.noteTrace('f', uint64(f.Fate), []byte(f.Signal.Name))
		t.Fates++
		t.Ended[f.Fate.String()]++
		if f.Fate == control.Unconfirmed {
			t.Unconfirmed++
		}
		t.fateOf(l, f)
	}
}

// acceptedBy has the incarnations that a synchronizer knows: a synchronizer that continues in
// place of another may not have received the last ones.
func (t *trial) acceptedBy(l *leader) map[string]uint64 {
	if len(t.origins) == 0 {
		return t.accepted
	}
	known := map[string]uint64{}
	status := l.askQuestion(synccore.Question{Status: true}).Status
	for i := range status.Members {
		known[status.Members[i].Name] = status.Members[i].Incarnation
	}
	return known
}

// judgeVerdict is judge S: at one instant of true time, and for as long as the predicate
// says, every member was in its state of the witness, and on those states the predicate
// is true.
func (t *trial) judgeVerdict(l *leader, v *monitor.Verdict) {
	ref := l.rules[v.Predicate]
	text, local := l.texts[v.Predicate], ref.local
	if text != nil {
		ref.hold = text.Hold
	}
	from, to := clocksync.MinInstant, clocksync.MaxInstant
	var rows [][]scgs.Value
	var heads []byte
	ofRuns := v.Modality != "" && (text != nil || local != nil)
	accepted := t.acceptedBy(l)
	for i := range v.Witness {
		p := &v.Witness[i]
		if p.State.Unknown {
			continue
		}
		if text != nil {
			local = text.localCondition(t.memberOf(p.Name))
		}
		s, ok := t.trueState(p, local != nil && v.Modality != "")
		if !ok {
			t.addBreach('S', "%s fired on the state %s of %s, which it never had: %s", v.Predicate, rowText(p.Fields, p.Row), p.Name, t.hadThen(p, s))
			return
		}
		if local != nil && v.Modality != "" && v.Modality != scgs.Possibly.String() && !local(s.row) {
			t.addBreach('S', "%s fired on the state %s of %s, and its condition was false on that: %s", v.Predicate, rowText(t.level.State, s.row), p.Name, l.conditionOf(v.Predicate))
			return
		}
		if ofRuns {
			heads = fmt.Appendf(heads, "%s.%d from %d ", p.Name, accepted[p.Name], t.runOf(p.Name, s, local))
		} else {
			heads = fmt.Appendf(heads, "%s.%d:%d@%d ", p.Name, accepted[p.Name], p.State.Seq, s.began)
		}
		rows = append(rows, s.row)
		if local != nil && v.Modality != "" {
			s = t.longer(p.Name, s, local)
		}
		from, to = max(from, s.from), min(to, s.to)
	}
	heads = strconv.AppendInt(heads, int64(t.text(l.level, v.Predicate)), 10)
	if t.witness[t.first(v.Decision)] = string(heads); ofRuns {
		l.onRuns[string(heads)]++
		t.ofRuns[t.first(v.Decision)] = l.onRuns[string(heads)]
	}
	if v.Modality == "" && len(rows) > 0 {
		t.judgeSpan(v, from, to)
	}
	if text != nil {
		if t.judgeText(l, text, v, rows, from, to); v.Modality == "" {
			ref.hold = 0 // It may have begun before the witness.
		}
	}
	switch hold := ref.hold - ref.hold/1000; {
	case v.Truth != predicates.True:
		t.addBreach('S', "%s fired and is %v", v.Predicate, v.Truth)
	case v.Modality == scgs.Possibly.String():
	case len(rows) > 0 && (from >= to || to.Sub(from) < hold):
		t.addBreach('S', "%s fired, and its states never held together for %v: %s: %s", v.Predicate, ref.hold, togetherText(from, to), witnessText(v))
	}
	if ref.holds != nil && !ref.holds(rows, len(v.Witness)) {
		t.addBreach('S', "%s fired, and its condition is false on its witness: %s: %s", v.Predicate, l.conditionOf(v.Predicate), witnessText(v))
	}
}

// text numbers the texts of predicates: a predicate with another text is another one.
func (t *trial) text(level *plan.Level, predicate string) int {
	i := slices.IndexFunc(level.Rules, func(r *plan.Rule) bool { return r.Name == predicate })
	if i < 0 {
		t.addBreach('S', "%s fired, and the present configuration has no such predicate", predicate)
		return 0
	}
	text := level.Rules[i].Text
	if t.numbers[text] == 0 {
		t.numbers[text] = len(t.numbers) + 1
	}
	return t.numbers[text]
}

// judgeSpan is the part of judge S that looks at what a verdict says of when its states held:
// certainly no longer than they truly did, from one instant to another, and possibly no less.
func (t *trial) judgeSpan(v *monitor.Verdict, from, to clocksync.Instant) {
	certainFrom, certainTo, ok := v.Span.CoreFrom, v.Span.CoreTo, v.Span.HasCore
	if m := t.domains[v.Span.Domain]; v.Span.SameClock && m != nil {
		certainFrom, ok = m.trueTime(v.Span.MonoFrom)
		certainTo, _ = m.trueTime(v.Span.MonoTo)
	}
	if ok && (certainFrom < from || certainTo > to) {
		t.addBreach('S', "%s fired, and its states certainly held %s, but truly %s: %s", v.Predicate, spanText(certainFrom, certainTo), spanText(from, to), witnessText(v))
	}
	if !v.Partial && !v.Span.SameClock && (v.Span.EnvelopeFrom > from || v.Span.EnvelopeTo < to && to != clocksync.MaxInstant) {
		t.addBreach('S', "%s fired, and its states held %s at the most, but truly %s: %s", v.Predicate, spanText(v.Span.EnvelopeFrom, v.Span.EnvelopeTo), spanText(from, to), witnessText(v))
	}
}

// trueState is the state that a member truly was in at the stamp of a witness, from then
// on. It has the values of the witness, unless that is of a run.
func (t *trial) trueState(p *monitor.Part, run bool) (s stretch, ok bool) {
	m := t.domains[p.State.Start.Domain]
	a := t.findActor(p.Name)
	if m == nil || a == nil {
		return s, false
	}
	at, ok := m.trueTime(p.State.Start.Mono)
	if !ok {
		return s, false
	}
	i, found := slices.BinarySearchFunc(a.truth, at, func(s stretch, at clocksync.Instant) int { return cmp.Compare(s.from, at) })
	if !found {
		i--
	}
	if i < 0 || at >= a.truth[i].to {
		return s, false
	}
	s = a.truth[i]
	s.began, s.from = s.from, max(s.from, at)
	return s, run || slices.EqualFunc(s.row, p.Row, func(a, b scgs.Value) bool { return a.String() == b.String() })
}

// hadThen says which state a member truly had at the stamp of a witness.
func (t *trial) hadThen(p *monitor.Part, had stretch) string {
	at := "at no reading of its clock"
	if m := t.domains[p.State.Start.Domain]; m != nil {
		if when, ok := m.trueTime(p.State.Start.Mono); ok {
			at = "at " + time.Duration(when).String()
		}
	}
	if had.row == nil {
		return at + " it had none"
	}
	return at + " it had " + rowText(t.level.State, had.row)
}

// longer is for how long a condition of a member continued to hold.
func (t *trial) longer(name string, s stretch, local func([]scgs.Value) bool) stretch {
	a := t.findActor(name)
	if !local(s.row) {
		s.to = s.from
		return s
	}
	i, _ := slices.BinarySearchFunc(a.truth, s.to, func(s stretch, at clocksync.Instant) int { return cmp.Compare(s.from, at) })
	for ; i < len(a.truth) && a.truth[i].from == s.to && local(a.truth[i].row); i++ {
		s.to = a.truth[i].to
	}
	return s
}

// runOf is when the run of a member began that a state is in.
func (t *trial) runOf(name string, s stretch, local func([]scgs.Value) bool) clocksync.Instant {
	a := t.findActor(name)
	i, _ := slices.BinarySearchFunc(a.truth, s.began, func(s stretch, at clocksync.Instant) int { return cmp.Compare(s.from, at) })
	for i > 0 && a.truth[i-1].to == a.truth[i].from && local(a.truth[i-1].row) {
		i--
	}
	return a.truth[i].from
}

func (t *trial) findActor(name string) *actor {
	p := t.names[name]
	if p == nil {
		return nil
	}
	for _, a := range p.actors {
		if a.name == name {
			return a
		}
	}
	return nil
}

// judgeEffect is judge A: a handler begins, or a region is left.
func (t *trial) judgeEffect(a *actor, s *control.Signal) {
	t.Applied++
	key := t.key(s)
	t.noteTrace('e', s.Entry, []byte(s.Name))
	t.truly[key]++
	once := effectKey{key, a.core.Incarnation()}
	once.incarnation = a.life // A member that was dropped and comes back has its entries still.
	if t.effects[once]++; t.effects[once] > 1 {
		t.addBreach('A', "%s %s was applied twice in entry %d of %s", s.Decision, s.Name, s.Entry, a.name)
	}
	if l := t.posted[key]; l == nil || l.entry != s.Entry || l.life != a.life {
		t.addBreach('A', "%s %s was applied in entry %d of life %d of %s, and was decided on %s", s.Decision, s.Name, s.Entry, a.life, a.name, l.decidedOn())
	}
	if s.Target != a.name {
		t.addBreach('A', "%s %s to %s was applied by %s", s.Decision, s.Name, s.Target, a.name)
	}
	// The same firing under a later term is another decision, and takes effect once, too. On runs
	// it is the first one of that term.
	t.noteReaction(s)
	l := t.posted[key]
	if t.witness[key.decision] == "" || l == nil {
		return // It is none of a predicate.
	}
	firing := firingKey{s.Predicate, s.Name, s.Target, s.Entry, a.life, t.firing(s.Decision, l.firing)}
	made := t.firings[firing]
	if len(made) > 0 && made[0].Term != key.decision.Term && t.ofRuns[key.decision] <= 1 {
		t.addBreach('A', "%s %s was applied in entry %d of %s, and so was the same firing %s of another term", s.Decision, s.Name, s.Entry, a.name, made[0])
	}
	if !slices.ContainsFunc(made, func(d control.Decision) bool { return d.Term == key.decision.Term }) {
		t.firings[firing] = append(made, key.decision)
	}
}

// toldOf notes which reports a member sends.
func (t *trial) toldOf(a *actor, b *wire.Batch) {
	if n := len(b.Reports); n > 0 {
		a.told[b.Incarnation] = max(a.told[b.Incarnation], b.Reports[n-1].Seq)
	}
}

// judgeNumbers looks whether each state of a member that continues to live had a number, by the
// newest number sent: the loss of a state without a number would be noticed by nobody.
func (t *trial) judgeNumbers(a *actor) {
	if newest := a.told[a.core.Incarnation()]; a.alive && t.content && newest < a.sets {
		t.addBreach('G', "%d states of %s have no number", a.sets-newest, a.name)
	}
}

// noteDelivered notes which reports come to the synchronizer.
func (l *leader) noteDelivered(b *wire.Batch) {
	if len(b.Reports) == 0 {
		return
	}
	key := lifeKey{b.Member, b.Incarnation}
	r := l.reported[key]
	if r == nil {
		r = &reports{first: b.Reports[0].Seq}
		l.reported[key] = r
	}
	for i := range b.Reports {
		seq := b.Reports[i].Seq
		if l.here[b.Member] == b.Incarnation {
			r.last, r.since = max(r.last, seq), cmp.Or(r.since, l.steps+1)
		}
		if seq < r.first {
			r.steps = slices.Insert(r.steps, 0, make([]uint64, r.first-seq)...)
			r.first = seq
		}
		for uint64(len(r.steps)) <= seq-r.first {
			r.steps = append(r.steps, 0)
		}
		if r.steps[seq-r.first] == 0 {
			r.steps[seq-r.first] = l.steps + 1 // The step that it comes to.
		}
	}
}

// notThere is said of members that are there and take no part.
const notThere = " not there for the synchronizer"

// judgeSame is judge C: what differs between the truth and what the synchronizer says; empty
// if nothing does. If nothing does but that members are put off, wait is how long at most,
// as is said.
func (t *trial) judgeSame() (differs string, wait time.Duration) {
	if !t.leader.leads {
		return "nobody leads", 0
	}
	status := t.leader.askQuestion(synccore.Question{Status: true}).Status
	if status.Epoch == 0 {
		return "there is no epoch", 0
	}
	if status.State == nil || !status.State.InForce {
		return "there is no current global state", 0
	}
	alive := 0
	for _, p := range t.all {
		alive += len(p.actors)
	}
	for i := range status.Members {
		m := &status.Members[i]
		a := t.findActor(m.Name)
		if m.Standing == monitor.Gone && a == nil {
			continue
		}
		alive--
		switch {
		case a == nil || !a.alive:
			return fmt.Sprintf("%s is %s, and is not there", m.Name, m.Standing), 0
		case m.Standing != monitor.InEpoch:
			differs = strings.TrimSuffix(fmt.Sprintf("%s has begun %d states and is%s, it is %s: %s", m.Name, a.sets, notThere, m.Standing, m.Why), ": ")
			_, said, _ := strings.Cut(m.Why, " is admitted again in ")
			d, err := time.ParseDuration(said)
			if err != nil {
				return differs, 0
			}
			wait = max(wait, d)
			continue
		case m.Incarnation != a.core.Incarnation():
			return fmt.Sprintf("%s is incarnation %d, and %d is known", m.Name, a.core.Incarnation(), m.Incarnation), 0
		case m.Unknown || m.Behind > 0:
			return fmt.Sprintf("the state of %s is unknown, %d reports are kept behind a gap", m.Name, m.Behind), 0
		}
		want := monitor.NewValues(t.level.State, a.truth[len(a.truth)-1].row)
		if fmt.Sprint(m.State) != fmt.Sprint(want) {
			return fmt.Sprintf("the state of %s is %v, and %v is known", m.Name, want, m.State), 0
		}
	}
	if alive != 0 {
		return fmt.Sprintf("%d members are%s", alive, notThere), 0
	}
	return differs, wait
}

// isUnsettled reports whether a signal of this term has no fate, or the target has it.
func (t *trial) isUnsettled() bool {
	for _, l := range t.leader.sent {
		if l.fates == 0 && !l.maybe {
			return true
		}
	}
	for _, l := range t.posted {
		if l.fates == 0 && l.taken > 0 && !t.noEnd(l) {
			return true
		}
	}
	return t.leader.askQuestion(synccore.Question{Figures: true}).Figures.Waiting > 0
}

// noEnd reports whether both ends of a signal were killed.
func (t *trial) noEnd(l *letter) bool {
	a := t.findActor(l.key.target)
	m := t.leader.sent[l.key]
	return (m == nil || m.maybe) && (a.life != l.taken || !a.alive)
}

// judgeEnd judges what remains in the end.
func (t *trial) judgeEnd() {
	a := t.leader.askQuestion(synccore.Question{Counts: true, Figures: true, Status: true})
	t.Gaps += int(a.Counts.Gaps - t.leader.gaps) //nolint:gosec // Few.
	t.Global += a.Counts.Global
	for name, ref := range t.leader.rules {
		if ref.always && t.content && t.lastFired < clocksync.Instant(t.time) {
			t.addBreach('C', "%s is always true, and has not fired since the faults ended", name)
		}
	}
	for key, l := range t.leader.sent {
		if l.fates == 0 && !l.maybe {
			t.addBreach('F', "%s %s to %s has no fate in the end", key.decision, key.name, key.target)
		}
	}
	for _, l := range t.posted {
		if l.fates == 0 && l.taken > 0 {
			if t.noEnd(l) {
				t.FatesLost++
				continue
			}
			t.addBreach('F', "%s %s to %s has no fate in the end, though its target has it", l.key.decision, l.key.name, l.key.target)
		}
	}
	for i := range t.finals {
		l := &t.finals[i]
		if last := t.posted[l.key]; l.fate == control.OldEpoch && last != nil && (last.fate == control.Applied || last.fate == control.Unconfirmed) {
			continue // A copy that a later term has sent, and may have had no answer for.
		}
		if l.fate != control.Applied && l.fate != control.Unconfirmed && t.truly[l.key] > 0 {
			t.addBreach('F', "%s %s to %s has the fate %v, and was applied", l.key.decision, l.key.name, l.key.target, l.fate)
		}
	}
	if a.Figures.Waiting > 0 {
		t.addBreach('L', "%d signals wait in the outbox in the end", a.Figures.Waiting)
	}
	for i := range a.Status.Members {
		if m := &a.Status.Members[i]; m.Behind > 1024 || m.Pending > 1024 {
			t.addBreach('L', "of %s %d reports are kept behind a gap, and %d states wait", m.Name, m.Behind, m.Pending)
		}
	}
	for _, p := range t.all {
		for _, a := range p.actors {
			t.judgeNumbers(a)
		}
	}
	lost := t.leader.lost()
	if t.leader.tooOld {
		lost = min(lost, 1) // Reports refused between two gaps make one gap of them.
	}
	lost += t.leader.lostBetween()
	if uint64(lost) > a.Counts.Gaps { //nolint:gosec // Few.
		t.addBreach('G', "reports of %d lives of members were lost between two that came, and %d gaps were counted", lost, a.Counts.Gaps)
	}
	slices.SortFunc(t.breaches, func(a, b breach) int { return cmp.Compare(a.text, b.text) })
}

// lost counts the members of which a gap must have been seen in this term: there are reports of
// which no copy has come, between others that have, and the member was in the epoch by then and
// still is. How many gaps they make is for the synchronizer: a report that comes behind a gap
// that it has given up is part of that gap.
func (l *leader) lost() (n int) {
	for key, r := range l.reported {
		a := l.t.findActor(key.member)
		since := l.inEpoch[key.member]
		if since == 0 || a == nil || a.core.Incarnation() != key.incarnation {
			continue
		}
		// What comes behind a range must all have come while it was in the epoch.
		least := make([]uint64, len(r.steps)+1)
		least[len(r.steps)] = ^uint64(0)
		for i := len(r.steps) - 1; i >= 0; i-- {
			least[i] = least[i+1]
			if r.steps[i] > 0 {
				least[i] = min(least[i], r.steps[i])
			}
		}
		for i := 1; i < len(r.steps); i++ {
			if r.steps[i] == 0 && r.steps[i-1] > 0 && r.first+uint64(i) > l.known[key] && least[i] != ^uint64(0) && least[i] > since {
				n++
				break
			}
		}
	}
	return n
}

// lostBetween counts the members whose reports were lost between two incarnations of the same
// life that have come: their numbers continue.
func (l *leader) lostBetween() (n int) {
	for key, r := range l.reported {
		a := l.t.findActor(key.member)
		if l.inEpoch[key.member] == 0 || a == nil || a.core.Incarnation() != key.incarnation {
			continue
		}
		last, other := uint64(0), uint64(0) // the newest incarnation of another life: the numbers are compared with its
		for incarnation, life := range a.lives {
			if incarnation < key.incarnation && life != a.life {
				other = max(other, incarnation)
			}
		}
		for incarnation, life := range a.lives {
			earlier := lifeKey{key.member, incarnation}
			if before := l.reported[earlier]; before != nil && incarnation > other && incarnation < key.incarnation && life == a.life {
				last = max(last, before.last, l.known[earlier])
			}
		}
		if last > 0 && r.first > last+1 {
			n++
		}
	}
	return n
}

// bent are ways in which the machines are made wrong, to see that a judge notices.
type bent struct {
	stamp     func(*clocksync.Stamp)
	set       func(*actor, []scgs.Value)
	signals   func(*actor, *agentcore.Input)
	agentIn   func(*actor, *agentcore.Input) bool
	agentOut  func(*actor, *agentcore.Input, *agentcore.Output)
	bundle    func(*node, *wire.Bundle)
	ask       func(*node, *wire.Probe) bool
	leaderIn  func(*leader, *synccore.Input) bool
	leaderOut func(*leader, *synccore.Input, *synccore.Output)
	answer    func(*synccore.Answer)
	term      func(life uint64) uint64
	stampLast bool
}

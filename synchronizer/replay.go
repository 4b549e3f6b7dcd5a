package synchronizer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// ReplayOptions say what a replay tells. The zero value only compares.
type ReplayOptions struct {
	// Begin is called when the journal's header was read, before all others.
	Begin func(*Replayed)
	// Observe is called with every event of the recorded run, at the wall clock's
	// time of the recording host.
	Observe func(at time.Time, e monitor.Event)
	// State is called with each state of a member, when its end is known, or at the end of the journal. It slows down a
	// replay.
	State func(*monitor.MemberState)
	// Predicates are those written in Go that the recorded run had in its Options;
	// without them its outputs are others. They judge for Changed, too.
	Predicates []Predicate
	// Changed is a configuration to judge the recorded inputs by as well, from
	// their beginning on; reloads in the journal leave it alone. It has to have the
	// recorded synchronizer, or another one alone, whose declared state is part of
	// the recorded one.
	Changed *Config
	// Until ends the replay before the first input after it, by the wall clock of the recording host; zero: at the end of
	// the journal. Then Complete is false.
	Until time.Time
	// Inspect is called at the end, and may ask where the synchronizer stood then.
	Inspect func(*Inspection)
	// Differ is called where Changed comes to another verdict than the recorded
	// configuration, and where both come to the same again. Both judge the recorded
	// inputs: members did what the recorded signals made them do.
	Differ func(Difference)
}

// Replayed tells what a replay came to.
type Replayed struct {
	Synchronizer string    // its name
	Pegasus      string    // the version that recorded; empty if not known
	Started      time.Time // of the recording
	Inputs       uint64    // that were stepped
	Decisions    uint64    // firings, and plans with moves
	// FirstDifference is the line of the first input whose outputs are not those
	// that were recorded; 0 if all are.
	FirstDifference int
	// Complete is true if the journal goes to the end of the run. Otherwise Why
	// tells what its end is.
	Complete bool
	Why      string // see Complete
	// NotJudged are the predicates that depend on redacted fields, whose values no
	// journal has, by name. They are unknown and have no effect. If there are any, all
	// others are judged, and outputs are not compared: FirstDifference is 0.
	NotJudged []NotJudged
	// Differences counts the other verdicts that Differ received.
	Differences uint64
}

// NotJudged is a predicate that a replay cannot judge.
type NotJudged struct {
	Predicate string // its name
	Reason    string // which redacted field it depends on, and how
}

// Difference is a place where the verdicts of two configurations part, or meet again.
type Difference struct {
	At        time.Time // by the wall clock of the recording host
	Line      int       // of the journal
	Epoch     uint64    // of the changed configuration
	Predicate string    // its name
	Recorded  Judgment  // by the recorded configuration
	Changed   Judgment  // by the changed one
}

// Judgment is what a predicate has come to.
type Judgment struct {
	Absent bool             // the configuration has no such predicate
	Judged bool             // it has come to a verdict
	Truth  predicates.Truth // if it is Judged
	Fired  bool             // on this very input
}

// String is such as "true, fired".
func (s Judgment) String() string {
	switch {
	case s.Absent:
		return "absent"
	case !s.Judged:
		return "none yet"
	case s.Fired:
		return s.Truth.String() + ", fired"
	}
	return s.Truth.String()
}

// Replay steps a fresh synchronizer through a journal, as [Options].Journal has it, and
// compares its outputs with the recorded outputs. It sends nothing and needs no server. The
// error is about the journal or Changed; other outputs are no error. Replay reads r on another goroutine, which ends
// before Replay returns. The goroutine reads some lines more than the replay needs.
func Replay(r io.Reader, opt ReplayOptions) (*Replayed, error) {
	ahead := &readAhead{in: r}
	j, err := journal.Read(ahead)
	if err != nil {
		return nil, err
	}
	ahead.journal = j
	if j.Level, err = opt.with(j.Level); err != nil {
		return nil, err
	}
	p := &replay{opt: opt, journal: j, judgments: map[string]*judgments{}}
	if j.Level, err = p.recorded(j.Level); err != nil {
		return nil, err
	}
	p.core = synccore.New(j.Level, j.Header.Options)
	p.result.Synchronizer, p.result.Pegasus, p.result.Started = j.Level.Name, j.Header.Pegasus, time.Unix(0, j.Header.Started)
	p.began, p.since, p.last = p.result.Started, j.Header.Now, j.Header.Now
	p.predicates = j.Level.Predicates()
	if opt.State != nil {
		p.states = &stateLog{opt: j.Header.Options, schema: j.Level.State, members: map[string]*loggedMember{}, emit: p.emitState}
	}
	if opt.Changed != nil {
		if err := p.change(); err != nil {
			return nil, err
		}
	}
	if opt.Begin != nil {
		opt.Begin(&p.result)
	}
	if err := p.run(ahead); err != nil {
		return nil, err
	}
	if p.states != nil {
		p.states.finishStates(true)
	}
	if opt.Inspect != nil {
		opt.Inspect(&Inspection{replay: p})
	}
	return &p.result, nil
}

// Inspection is a synchronizer at an instant of a recorded run. It must not be used after [ReplayOptions].Inspect has
// returned.
type Inspection struct{ replay *replay }

// At is the instant, by the wall clock of the recording host.
func (i *Inspection) At() time.Time { return i.replay.at(i.replay.last) }

// Status is the result of [Synchronizer.Status] at that point, without what no journal has: the
// tenant, standbys, and dropped messages.
func (i *Inspection) Status() monitor.Status { return i.ask(synccore.Question{Status: true}).Status }

// Why is what [Synchronizer.Why] would have told. It fails with [ErrNoPredicate].
func (i *Inspection) Why(predicate string) (monitor.Explanation, error) {
	answer := i.ask(synccore.Question{Explain: predicate})
	if answer.Explanation == nil {
		return monitor.Explanation{}, noPredicate(i.replay.result.Synchronizer, predicate, i.replay.predicates)
	}
	return *answer.Explanation, nil
}

func (i *Inspection) ask(q synccore.Question) synccore.Answer {
	i.replay.core.Step(i.replay.last, &synccore.Input{Kind: synccore.InAsk, Ask: &q}, &i.replay.out)
	return i.replay.out.Answer
}

// replay is a replay under way.
type replay struct {
	opt     ReplayOptions
	journal *journal.Reader // during run, the other goroutine's
	line    int             // of the journal
	core    *synccore.Core
	out     synccore.Output
	digest  journal.Digest
	result  Replayed

	// The wall clock's time at an instant of the run, or of the run that continues it.
	began time.Time
	since clocksync.Instant
	last  clocksync.Instant // of the last input, or of the time at which the replay ends

	predicates []string  // of the current level
	states     *stateLog // nil: nobody asks for them

	changed      *synccore.Core // nil without a changed configuration
	changedOut   synccore.Output
	changedEpoch uint64 // the current one
	columns      []int  // of the recorded rows, for each field of the changed state
	batch        wire.Batch
	judgments    map[string]*judgments
}

// judgments are the two verdicts on a predicate, the recorded one first.
type judgments struct {
	name string
	now  [2]Judgment
	told [2]bool // on this input
}

// with is the plan with the predicates written in Go. A Judge that panics counts as
// unknown, as it did in the run.
func (o *ReplayOptions) with(plan *plan.Level) (*plan.Level, error) {
	plan, err := plan.With(compilePredicates(o.Predicates, func(string, any) {}))
	if err != nil {
		return nil, fmt.Errorf("ReplayOptions.Predicates: %w", err)
	}
	return plan, nil
}

// recorded is the level without the predicates that the journal lacks values for.
func (p *replay) recorded(level *plan.Level) (*plan.Level, error) {
	level, list, err := level.Recorded(p.journal.Level.State)
	for _, u := range list {
		if !p.notJudged(u.Predicate) {
			p.result.NotJudged = append(p.result.NotJudged, NotJudged(u))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("replay of %q: %w", p.journal.Level.Name, err)
	}
	return level, nil
}

func (p *replay) notJudged(predicate string) bool {
	return slices.ContainsFunc(p.result.NotJudged, func(n NotJudged) bool { return n.Predicate == predicate })
}

func (p *replay) run(ahead *readAhead) error {
	ahead.begin()
	defer ahead.end()
	for {
		rec, err := ahead.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if rec.Input.Kind == synccore.InLevel {
			if rec.Input.Level, err = p.opt.with(rec.Input.Level); err != nil {
				return err
			}
			if rec.Input.Level, err = p.recorded(rec.Input.Level); err != nil {
				return err
			}
			p.predicates = rec.Input.Level.Predicates()
		}
		p.line = ahead.line
		if p.states != nil && rec.Input.Kind == synccore.InRestart {
			p.states.noteInput(rec.Now, &rec.Input) // By the clock of the life before.
		}
		p.restart(rec)
		if until := p.opt.Until; !until.IsZero() && p.at(rec.Now).After(until) {
			p.last = max(p.last, p.since.Add(until.Sub(p.began)))
			p.result.Why = "the journal was replayed until " + until.Format(time.RFC3339Nano)
			return nil
		}
		p.last = rec.Now
		p.result.Inputs++
		if p.states != nil && rec.Input.Kind != synccore.InRestart {
			p.states.noteInput(rec.Now, &rec.Input)
		}
		p.step(rec)
	}
	switch j := p.journal; {
	case j.Stopped != "":
		p.result.Why = "the journal was ended before the run: " + j.Stopped
	case j.Cut:
		p.result.Why = "the last line was not written to its end: the process was ended"
	case !j.Ended:
		p.result.Why = "there is no last line that ends it: the process was ended, or still runs"
	default:
		p.result.Complete = true
	}
	return nil
}

// restart notes the clock of a process that carries the run on.
func (p *replay) restart(rec *journal.Record) {
	r := rec.Input.Restart
	if r == nil {
		return
	}
	began := r.Began
	if began == 0 { // Of a version whose term was the time at which it began.
		began = int64(r.Term) //nolint:gosec // As then.
	}
	p.began, p.since, p.last = time.Unix(0, began), rec.Now, rec.Now
}

func (p *replay) step(rec *journal.Record) {
	p.core.Step(rec.Now, &rec.Input, &p.out)
	p.digest.Add(&p.out)
	if !rec.Broken && p.digest.Sum() != rec.Out && p.result.FirstDifference == 0 && len(p.result.NotJudged) == 0 {
		p.result.FirstDifference = p.line
	}
	at := p.at(rec.Now)
	for i := range p.out.Verdicts {
		if p.out.Verdicts[i].Fired {
			p.result.Decisions++
		}
	}
	for i := range p.out.Plans {
		if p.out.Plans[i].Decision.Number > 0 {
			p.result.Decisions++
		}
	}
	if p.opt.Observe != nil {
		eventsOf(&p.out, func(e monitor.Event) { p.opt.Observe(at, e) })
	}
	if p.changed == nil {
		return
	}
	in := p.mapped(&rec.Input)
	if rec.Input.Kind == synccore.InLevel {
		in = synccore.Input{Kind: synccore.InTick} // The changed configuration stays active.
	}
	p.changed.Step(rec.Now, &in, &p.changedOut)
	p.compare(at)
}

// at is the wall clock's time of an instant of the recorded run.
func (p *replay) at(now clocksync.Instant) time.Time {
	return p.began.Add(now.Sub(p.since))
}

// emitState hands a state of a member to State. Times before the journal, or before the life of
// its process, count from its start.
func (p *replay) emitState(s memberState) {
	times := func(r monitor.Range) [2]time.Time {
		from := max(r.From, p.since)
		return [2]time.Time{p.at(from), p.at(max(r.To, from))}
	}
	p.opt.State(&monitor.MemberState{
		Synchronizer: p.result.Synchronizer, Member: s.member, Host: s.host, Start: times(s.start), End: times(s.end), Open: s.open, State: s.state,
	})
}

// change prepares the changed configuration.
func (p *replay) change() error {
	plan, err := p.opt.Changed.planOf(p.journal.Level.Name)
	if err != nil {
		if plan, err = p.opt.Changed.planOf(""); err != nil {
			return fmt.Errorf("the journal is of synchronizer %q: %w", p.journal.Level.Name, err)
		}
	}
	if plan, err = p.opt.with(plan); err != nil {
		return err
	}
	if p.columns, err = columns(p.journal.Level.State, plan.State); err != nil {
		return err
	}
	if plan, err = p.recorded(plan); err != nil {
		return err
	}
	p.changed = synccore.New(plan, p.journal.Header.Options)
	for side, list := range [][]string{p.journal.Level.Predicates(), plan.Predicates()} {
		for _, name := range list {
			s := p.judgments[name]
			if s == nil {
				s = &judgments{name: name, now: [2]Judgment{{Absent: true}, {Absent: true}}}
				p.judgments[name] = s
			}
			s.now[side].Absent = false
		}
	}
	return nil
}

// columns finds each field of a state in the recorded one.
func columns(recorded, changed scgs.Schema) ([]int, error) {
	var faults []error
	list := make([]int, len(changed))
	for i, f := range changed {
		list[i] = recorded.Index(f.Name)
		switch {
		case list[i] < 0:
			faults = append(faults, fmt.Errorf("field %q is not in the recorded states, which have %s: leave it out to replay", f.Name, names(recorded)))
		case recorded[list[i]].Type != f.Type:
			faults = append(faults, fmt.Errorf("field %q is of type %v, and was recorded as %v", f.Name, f.Type, recorded[list[i]].Type))
		default:
			for _, w := range recorded[list[i]].Words {
				if !slices.Contains(f.Words, w) {
					faults = append(faults, fmt.Errorf("field %q lacks the word %q, which the recorded states may have", f.Name, w))
				}
			}
		}
	}
	return list, errors.Join(faults...)
}

func names(s scgs.Schema) string {
	list := make([]string, len(s))
	for i, f := range s {
		list[i] = f.Name
	}
	return strings.Join(list, ", ")
}

// mapped is a recorded input as the changed configuration declares it.
func (p *replay) mapped(in *synccore.Input) synccore.Input {
	out := *in
	switch {
	case in.Hello != nil:
		h := *in.Hello
		h.Typed, h.Schema, h.Threads = false, nil, false // What it said then was right.
		out.Hello = &h
	case in.Batch != nil:
		p.batch = *in.Batch
		p.batch.Reports = slices.Clone(in.Batch.Reports)
		for i := range p.batch.Reports {
			r := &p.batch.Reports[i]
			if r.End {
				continue
			}
			row := make([]scgs.Value, len(p.columns))
			for k, column := range p.columns {
				row[k] = r.Row[column]
			}
			r.Row = row
		}
		out.Batch = &p.batch
	}
	return out
}

// compare tells where the verdicts on one input differ.
func (p *replay) compare(at time.Time) {
	var told []*judgments
	for i := range p.changedOut.Epochs {
		p.changedEpoch = p.changedOut.Epochs[i].Epoch
	}
	for side, out := range []*synccore.Output{&p.out, &p.changedOut} {
		for i := range out.Verdicts {
			v := &out.Verdicts[i]
			s := p.judgments[v.Predicate]
			if s == nil { // A reload has brought it.
				s = &judgments{name: v.Predicate}
				s.now[1].Absent = true
				p.judgments[v.Predicate] = s
			}
			if s.told == [2]bool{} {
				told = append(told, s)
			}
			s.told[side] = true
			s.now[side] = Judgment{Judged: true, Truth: v.Truth, Fired: v.Fired || s.now[side].Fired}
		}
	}
	for _, s := range told {
		if !p.notJudged(s.name) && (s.told[0] != s.told[1] || s.now[0] != s.now[1]) {
			if s.now[0] != s.now[1] {
				p.result.Differences++
			}
			if p.opt.Differ != nil {
				p.opt.Differ(Difference{at, p.line, p.changedEpoch, s.name, s.now[0], s.now[1]})
			}
		}
		s.told, s.now[0].Fired, s.now[1].Fired = [2]bool{}, false, false
	}
}

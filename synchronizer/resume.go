package synchronizer

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// JournalFile is a journal that is read and carried on, such as an *os.File that is
// open for both.
type JournalFile interface {
	io.ReadWriteSeeker
	Truncate(size int64) error
}

// CancelProgram ends the program that the synchronizer runs: blocks are cancelled,
// and when all have ended, so has the program, as cancelled, for the reason. It does
// not wait for that, and fails with [ErrEnded]. It must not be called by the observer.
func (s *Synchronizer) CancelProgram(reason string) error {
	if s.level.Program == nil {
		return fmt.Errorf("synchronizer %q runs no program to cancel", s.name)
	}
	if !s.leads.Load() {
		return fmt.Errorf("cancel: %w", s.beats.standsBy(s.name))
	}
	select {
	case s.calls <- func(l *loop) {
		l.input = synccore.Input{Kind: synccore.InCancel, Reason: reason}
		l.stepCore(l.opt.now())
	}:
		return nil
	case <-s.done:
		return fmt.Errorf("synchronizer %q: cancel: %w", s.name, ErrEnded)
	}
}

// resumed is the machine of an earlier life as its journal left it.
type resumed struct {
	core      *synccore.Core
	level     *plan.Level // that is followed, after all reloads
	journal   *journal.Reader
	digest    journal.Digest
	reference clocksync.Domain // the clock of its instants
	timeline  clocksync.Timeline
	now       clocksync.Instant // of the last input
	last      int               // its line
}

// restamp notes the clock that a life begins with.
func (t *resumed) restamp(o *synccore.Options) {
	o2 := o.Resolved()
	t.reference, t.timeline = o2.Reference, o2.Timeline
}

var errAnotherProgram = errors.New("the journal is of another program or configuration, or the file was changed since: resume the configuration that was active last, or start again")

// resumeJournal steps a machine through the journal of an earlier life, and leaves the file so
// that more can be written.
func (s *Synchronizer) resumeJournal(f JournalFile, level *plan.Level) (*resumed, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	j, err := journal.Read(f)
	switch {
	case err != nil:
		return nil, err
	case (level.Program == nil) != (j.Level.Program == nil), j.Level.Name != level.Name:
		return nil, errAnotherProgram
	}
	if j.Level, err = s.addPredicates(j.Level); err != nil {
		return nil, err
	}
	if err := resumable(j.Level); err != nil {
		return nil, err
	}
	t := &resumed{core: synccore.New(j.Level, j.Header.Options), level: j.Level, journal: j}
	t.restamp(&j.Header.Options)
	var rec journal.Record
	var out synccore.Output
	for {
		err := j.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch in := &rec.Input; in.Kind { //nolint:exhaustive // Nothing is noted of the others.
		case synccore.InLevel:
			if in.Level, err = s.addPredicates(in.Level); err != nil {
				return nil, err
			}
			if err := resumable(in.Level); err != nil {
				return nil, fmt.Errorf("line %d: %w", j.Line(), err)
			}
		case synccore.InRestart:
			t.restamp(in.Restart)
		case synccore.InTimeline:
			t.timeline = in.Timeline
		}
		if err := stepped(t.core, &rec, &out); err != nil {
			return nil, fmt.Errorf("line %d: %w", j.Line(), err)
		}
		t.now, t.last = rec.Now, j.Line()
		t.digest.Add(&out)
		if len(out.Reloads) > 0 {
			t.level = rec.Input.Level
		}
		if !rec.Broken && t.digest.Sum() != rec.Out {
			return nil, fmt.Errorf("line %d: this version of pegasus gives other outputs than the version that wrote the journal, %s: use that version", j.Line(), strconv.Quote(j.Header.Pegasus))
		}
	}
	if j.Stopped != "" {
		return nil, fmt.Errorf("the journal was ended before the run: %s: what came after is not known, so start again", j.Stopped)
	}
	if err := s.store.checkResumable(j); err != nil {
		return nil, err
	}
	if t.level.Source.Hash() != level.Source.Hash() { // After all reloads.
		return nil, errAnotherProgram
	}
	if now := s.opt.now(); t.reference == s.clock.Domain() && t.now > now { // Lines of before could not follow.
		return nil, fmt.Errorf("line %d: now is %v, and the clock of this machine is at %v: the file was changed, or is of another machine: start again", t.last, t.now, now)
	}
	if err := f.Truncate(j.Good()); err != nil {
		return nil, err
	}
	_, err = f.Seek(j.Good(), io.SeekStart)
	return t, err
}

// resumable is an error if the level cannot continue from a journal, which has no values of
// redacted fields.
func resumable(level *plan.Level) error {
	_, list, err := level.Recorded(level.State)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("predicate %s cannot be judged: %s", list[0].Predicate, list[0].Reason)
	}
	if err != nil {
		return fmt.Errorf("the journal does not tell how the run stood: %w: start without --resume", err)
	}
	return nil
}

// runsOf is what the runs of the lives before a term have numbers below.
func runsOf(term uint64) uint64 { return term % (1 << 30) << 32 }

// newProgram names an execution. It travels as an int64.
func newProgram() uint64 { return randomNonce()>>2 | 1 }

// stepped steps a core on a line that was read. One on which it fails was not written by a core
// that came to the same before, or by another version.
func stepped(core *synccore.Core, rec *journal.Record, out *synccore.Output) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the synchronizer cannot take this input, and fails with %.200q: the file was changed, or shows a fault of this version: start again without it", fmt.Sprint(cause))
		}
	}()
	core.Step(rec.Now, &rec.Input, out)
	return refusedKept(&rec.Input, out)
}

// refusedKept is an error if what another machine has in mind was refused.
func refusedKept(in *synccore.Input, out *synccore.Output) error {
	if in.Kind == synccore.InKept && len(out.Rejected) > 0 {
		return errors.New(out.Rejected[0].Detail)
	}
	return nil
}

// goOn are the inputs by which the machine of a journal continues in a term. It logs what
// begins again.
func (s *Synchronizer) goOn(t *resumed, term uint64, options *synccore.Options) []synccore.Input {
	again := *options
	again.Began, again.Runs, again.Hold = s.opt.wall(), runsOf(term), plan.HoldKnown
	restart := synccore.Input{Kind: synccore.InRestart, Restart: &again}
	ready, _ := t.core.Follows()
	switch {
	case t.level.Program != nil:
		return []synccore.Input{restart}
	case !ready:
		s.opt.Logger.Warn("the journal ends before the point to continue from: all begins again", "term", term)
		return []synccore.Input{restart}
	case t.reference != s.clock.Domain():
		s.opt.Logger.Warn("memory and cooldowns of the journal continue; hold times, edges and prev begin again", "term", term, "cause", "the machine was started again since, or the journal is of another one")
		return []synccore.Input{restart, {Kind: synccore.InKept, Kept: t.core.Kept()}}
	}
	s.opt.Logger.Info("the run continues where the journal ends", "term", term)
	s.timeline = t.timeline
	return []synccore.Input{{Kind: synccore.InTerm, Term: term}}
}

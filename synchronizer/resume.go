package synchronizer

import (
	"errors"
	"fmt"
	"io"
	"strconv"

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
	select {
	case s.calls <- func(l *loop) {
		l.input = synccore.Input{Kind: synccore.InCancel, Reason: reason}
		l.step(l.opt.now())
	}:
		return nil
	case <-s.done:
		return fmt.Errorf("synchronizer %q: cancel: %w", s.name, ErrEnded)
	}
}

// resumed is the machine of an earlier life as its journal left it.
type resumed struct {
	core    *synccore.Core
	level   *plan.Level // that is followed, after all reloads
	journal *journal.Reader
	digest  journal.Digest
}

var errAnotherProgram = errors.New("the journal is of another program, or the file was changed since: resume the text that was in force last, or start again")

// resume steps a machine through the journal of a program, and leaves the file so
// that more can be written.
func resume(f JournalFile, plan *plan.Level) (*resumed, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	j, err := journal.Read(f)
	switch {
	case err != nil:
		return nil, err
	case plan.Program == nil || j.Level.Program == nil:
		return nil, errors.New("only a program can be resumed: start again without Resume")
	case j.Level.Name != plan.Name:
		return nil, errAnotherProgram
	}
	t := &resumed{core: synccore.New(j.Level, j.Header.Options), level: j.Level, journal: j}
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
		t.core.Step(rec.Now, &rec.Input, &out)
		t.digest.Add(&out)
		if len(out.Reloads) > 0 {
			t.level = rec.Input.Level
		}
		if !rec.Broken && t.digest.Sum() != rec.Out {
			return nil, fmt.Errorf("line %d: this version of pegasus comes to other outputs than the one that wrote it, %s: use that one", j.Line(), strconv.Quote(j.Header.Pegasus))
		}
	}
	if j.Stopped != "" {
		return nil, fmt.Errorf("the journal was ended before the run: %s: what came after is not known, so start again", j.Stopped)
	}
	if t.level.Source.Hash() != plan.Source.Hash() { // After all reloads.
		return nil, errAnotherProgram
	}
	if err := f.Truncate(j.Good()); err != nil {
		return nil, err
	}
	_, err = f.Seek(j.Good(), io.SeekStart)
	return t, err
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gopegasus/pegasus/synchronizer"
)

// journals are the files of run --journal, one a synchronizer.
type journals struct {
	dir    string // empty: none
	resume string // the file that is to be carried on instead
	limit  int64  // bytes of each
	start  time.Time
	files  []*os.File
}

var errLocked = errors.New("a run that has not ended writes this journal: end that first")

// add sets the options of a synchronizer so that it has a journal.
func (j *journals) add(opt *synchronizer.Options) error {
	if j.resume != "" {
		return j.takeUp(opt)
	}
	if j.dir == "" {
		return nil
	}
	f, err := synchronizer.CreateJournal(j.dir, opt.Name, j.start)
	if err != nil {
		return err
	}
	j.files = append(j.files, f)
	if err := lockJournal(f); err != nil {
		return fmt.Errorf("journal %s: %w", f.Name(), err)
	}
	opt.Journal, opt.JournalLimit = f, j.limit
	return nil
}

// takeUp opens a journal that is to be carried on.
func (j *journals) takeUp(opt *synchronizer.Options) error {
	f, err := os.OpenFile(filepath.Clean(j.resume), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	j.files = append(j.files, f)
	opt.Resume, opt.JournalLimit = f, j.limit
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file: give the journal of a run")
	}
	if err == nil {
		err = lockJournal(f)
	}
	if err != nil {
		return fmt.Errorf("resume %s: %w", f.Name(), err)
	}
	return nil
}

// close closes the files, after the synchronizers have ended. It removes the empty
// file of a synchronizer that never ran.
func (j *journals) close() error {
	var errs []error
	for _, f := range j.files {
		info, err := f.Stat()
		unlockJournal(f)
		errs = append(errs, err, f.Close())
		if err == nil && info.Size() == 0 && j.resume == "" {
			errs = append(errs, os.Remove(f.Name()))
		}
	}
	return errors.Join(errs...)
}

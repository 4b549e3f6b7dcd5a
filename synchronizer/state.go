package synchronizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// stored is the file of a synchronizer in Options.State.
type stored struct {
	Tenant       string `json:"tenant"`
	Group        string `json:"group"`
	Synchronizer string `json:"synchronizer"`
	Term         uint64 `json:"term"`             // of the last life that has begun; 0: none has
	Spoilt       uint64 `json:"spoilt,omitempty"` // up to this term journals do not say how they have ended
	// Params are the parameters that were set while it ran.
	Params []keptParam `json:"params,omitempty"`
}

// store keeps the term of a synchronizer from one life to the next. A nil one keeps
// nothing.
type store struct {
	dir, path string
	is        stored // with the term that was read last
}

// maxStored bounds the file, which has some hundred bytes beside the parameters.
const maxStored = 4096 + config.MaxParams*(scgs.MaxNameBytes+2*scgs.MaxTextBytes)

// openStore makes the directory if need be and reads its file, so that a damaged file is found
// before anything begins.
func openStore(dir string, subjects wire.Subjects, synchronizer string) (*store, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // Nothing is kept.
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state: %w: give another directory, or none", err)
	}
	st := &store{dir: dir, is: stored{Tenant: subjects.Tenant, Group: subjects.Group, Synchronizer: synchronizer}}
	// No name of a device, and no two files with the same name: a token has no dot.
	st.path = filepath.Join(dir, strings.Join([]string{"synchronizer", subjects.Tenant, subjects.Group, synchronizer, "json"}, "."))
	return st, st.read()
}

// term is the term that was read last.
func (st *store) term() uint64 {
	if st == nil {
		return 0
	}
	return st.is.Term
}

func (st *store) read() error {
	info, err := os.Stat(st.path)
	var text []byte
	if err == nil && info.Mode().IsRegular() { // A pipe or a device may never end.
		text, err = readMost(st.path, maxStored)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		st.is.Term = 0
		return nil
	case err != nil:
		return fmt.Errorf("state: %w: make it readable, or give another directory", err)
	case !info.Mode().IsRegular():
		err = errors.New("the path is no regular file")
	default:
		err = st.parse(text)
	}
	if err != nil {
		return fmt.Errorf("state: %s is damaged: %w: put back a copy of it, or remove it while members run, which tell the term that they know", st.path, err)
	}
	return nil
}

// readMost reads a file up to a byte more than it may have.
func readMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most+1))
}

func (st *store) parse(text []byte) error {
	if len(text) > maxStored {
		return fmt.Errorf("the file has more than %d bytes, and no synchronizer writes so many", maxStored)
	}
	var found stored
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	switch want := st.is; {
	case found.Tenant != want.Tenant || found.Group != want.Group || found.Synchronizer != want.Synchronizer: // As on a file system to which two names are one.
		return fmt.Errorf("the file belongs to synchronizer %q of group %q and tenant %q", found.Synchronizer, found.Group, found.Tenant)
	case found.Term == 0 || found.Term >= control.MaxTerm:
		return fmt.Errorf("term %d is none that it could have written", found.Term)
	}
	if err := checkParams(found.Params); err != nil {
		return err
	}
	st.is = found
	return nil
}

// advanceTerm returns a term above the stored term and above the floor, and stores it first: the
// caller uses only a term that is on disk.
func (st *store) advanceTerm(floor uint64) (term uint64, err error) {
	if floor = max(floor, st.term()); floor >= control.MaxTerm-1 {
		return 0, fmt.Errorf("term %d is the last term that members accept: give the synchronizer another name", floor)
	}
	if st == nil {
		return floor + 1, nil
	}
	err = st.changeContent(func(next *stored) { next.Term = max(next.Term, floor) + 1 })
	return st.is.Term, err
}

// changeContent puts another content in the file.
func (st *store) changeContent(how func(next *stored)) error {
	dir, err := lockDir(st.dir)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	defer unlockDir(dir)
	if err := st.read(); err != nil { // Another process may have been here.
		return err
	}
	next := st.is
	how(&next)
	if err := st.write(&next); err != nil {
		return fmt.Errorf("state: the term cannot be stored: %w: make room and let this user write to %s, or give another directory", err, st.dir)
	}
	st.is = next
	return syncDir(dir)
}

// spoilJournal notes that the journal of this life does not say how it has ended. It is called beside the owner of
// the store.
func (s *Synchronizer) spoilJournal() error {
	st, err := openStore(s.opt.State, s.subjects, s.name)
	term := max(s.term.Load(), s.told.Load()) // A standby has none of its own.
	switch {
	case err != nil:
		return err
	case st == nil || term == 0:
		return errors.New("there is no directory for the state to note it in, or no term yet")
	}
	return st.changeContent(func(next *stored) { next.Term, next.Spoilt = max(next.Term, term), max(next.Spoilt, term) })
}

// checkResumable refuses a journal that is known not to be whole.
func (st *store) checkResumable(j *journal.Reader) error {
	if st != nil && j.Term() <= st.is.Spoilt {
		return fmt.Errorf("the journal could not be written on in term %d, and could not say so: what came after is not known, so start again", st.is.Spoilt)
	}
	return nil
}

// write puts a whole file in place of the old one.
func (st *store) write(next *stored) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(st.dir, filepath.Base(st.path)+".*.new") // Its own, should two write at once.
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), st.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

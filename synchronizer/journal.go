package synchronizer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// JournalSuffix ends the names of the files that [CreateJournal] makes.
const JournalSuffix = ".journal.jsonl"

// CreateJournal makes a file for [Options].Journal, in a directory that it makes if need be:
// DIR/START-NAME.journal.jsonl. START is an instant of UTC, so names sort by time and the names
// of a run begin alike. It never writes to an existing file. Files and directory are for this
// user only: a journal holds the states that the members reported.
func CreateJournal(dir, synchronizer string, start time.Time) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w: give another directory", err)
	}
	name := start.UTC().Format("20060102T150405.000000Z") + "-" + synchronizer + JournalSuffix
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w: give another directory", err)
	}
	return f, nil
}

const (
	// DefaultJournalLimit is the bytes of a journal whose limit is not given.
	DefaultJournalLimit = 1 << 30
	// MinJournalLimit is the least that a journal can be limited to: a header with
	// a configuration of the greatest size, and some lines.
	MinJournalLimit = 4 << 20

	journalQueue    = 16 << 20 // bytes that may wait for the writer
	journalChunk    = 256 << 10
	journalEvery    = time.Second // what waits is written at least so often
	journalPatience = time.Second // of the end of a run for a writer that takes nothing
)

// JournalStats tell what became of a journal.
type JournalStats struct {
	Inputs uint64 // handed to the writer
	Lost   uint64 // inputs that came after the journal had ended
	Bytes  uint64 // of all lines so far, written or waiting
	Err    error  // why it has ended before the run; nil if it has not
}

// recorder records the inputs of a core. The owner of the core adds lines, and a
// goroutine writes them: a writer that is slow or fails ends the journal and never
// holds up the run. The nil journal records nothing.
type recorder struct {
	w     io.Writer
	file  namedFile // w, if its name led to it at the beginning; nil: it has no name
	log   *slog.Logger
	limit uint64

	line   []byte // of the input that is being stepped; the owner's
	open   bool   // it waits for its end
	digest journal.Digest
	level  *plan.Level // of the last input
	silent bool        // a replay cannot make the outputs again, so it has no digest: they depend on redacted values

	writing sync.Mutex // before mu; held while w is written to
	chunk   []byte     // guarded by writing
	// unsynced is set if the system was given something that may not be on the disk. Guarded
	// by writing, as is what follows.
	unsynced bool
	size     int64        // written so far
	ends     []lineEnd    // the last ones
	spoil    func() error // notes elsewhere that the journal does not say how it has ended

	mu      sync.Mutex
	waiting []byte
	stats   JournalStats

	kick chan struct{} // capacity 1: much is waiting
	quit chan struct{}
	done chan struct{}
}

// lineEnd is where a line ends that was written whole.
type lineEnd struct {
	at     int64
	inputs uint64 // so far
}

// newRecorder begins the journal of a core with its header, or continues the journal
// from which the core was resumed.
func newRecorder(level *plan.Level, core synccore.Options, opt *Options, from *resumed, now clocksync.Instant) *recorder {
	j := &recorder{
		w: opt.Journal, log: opt.Logger, limit: uint64(opt.JournalLimit), //nolint:gosec // Start has checked it.
		kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), spoil: opt.spoil,
	}
	switch {
	case from != nil:
		j.w, j.digest = opt.Resume, from.digest
		j.stats.Inputs, j.stats.Bytes = from.journal.Inputs, uint64(from.journal.Good()) //nolint:gosec // A size.
		j.size, j.ends = from.journal.Good(), []lineEnd{{from.journal.Good(), from.journal.Inputs}}
	case opt.Journal == nil:
		return nil
	default:
		h := journal.NewHeader(level, core)
		h.Pegasus, h.Started, h.Now = release(), source.WallNano(), now
		j.add(journal.AppendHeader(nil, &h))
	}
	if f, ok := j.w.(namedFile); ok && missing(f) == nil {
		j.file = f
	}
	go j.write()
	return j
}

// release is the version of this module in the program, empty if it is not known.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == "github.com/gopegasus/pegasus" {
			return m.Version
		}
	}
	return ""
}

// beginInput notes an input before the core is stepped with it, so that an input that makes the core
// panic is in the journal.
func (j *recorder) beginInput(level *plan.Level, now clocksync.Instant, in *synccore.Input) {
	if j == nil {
		return
	}
	if ended := j.journalStats().Err; ended != nil {
		j.lose(ended)
		return
	}
	if j.level != level {
		_, list, err := level.Recorded(level.State)
		j.level, j.silent = level, j.silent || len(list) > 0 || err != nil
	}
	line, err := journal.AppendInput(j.line[:0], level.State, now, journal.Hidden(level, in))
	if err != nil {
		j.lose(err)
		return
	}
	j.line, j.open = line, true
}

// endInput notes what the step came to.
func (j *recorder) endInput(out *synccore.Output) {
	if j == nil || !j.open {
		return
	}
	j.open = false
	if out.Ignored {
		return
	}
	if !j.silent {
		j.digest.Add(out)
	}
	j.line = journal.AppendOutput(j.line, &j.digest)
	j.input()
}

// input hands a finished line to the writer.
func (j *recorder) input() {
	if err := j.room(len(j.line)); err != nil {
		j.lose(err)
		return
	}
	j.mu.Lock()
	j.stats.Inputs++
	j.mu.Unlock()
	j.add(j.line)
}

// lastLine is more than the line takes that ends a journal.
const lastLine = 1 << 10

func (j *recorder) room(n int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.stats.Err != nil:
		return j.stats.Err
	case n > journal.MaxLine:
		return fmt.Errorf("an input takes a line of %d bytes, and at most %d are read again", n, journal.MaxLine)
	case j.stats.Bytes+uint64(n)+lastLine > j.limit: //nolint:gosec // A length.
		return fmt.Errorf("the limit of %d bytes is reached", j.limit)
	case len(j.waiting)+n > journalQueue:
		return fmt.Errorf("the writer is too slow: %d bytes wait for it", len(j.waiting))
	}
	return nil
}

// lose counts an input that is not in the journal, which has ended before the run, at
// the latest now: with a line that says why.
func (j *recorder) lose(why error) {
	j.mu.Lock()
	j.stats.Lost++
	j.mu.Unlock()
	if j.give(why) {
		j.add(journal.AppendEnd(nil, j.journalStats().Inputs, why.Error()))
	}
}

func (j *recorder) add(line []byte) {
	j.mu.Lock()
	j.waiting = append(j.waiting, line...)
	j.stats.Bytes += uint64(len(line))
	much := len(j.waiting) >= journalChunk
	j.mu.Unlock()
	if much {
		select {
		case j.kick <- struct{}{}:
		default:
		}
	}
}

// give notes why the journal has ended, and tells it the first time.
func (j *recorder) give(why error) (first bool) {
	j.mu.Lock()
	if first = j.stats.Err == nil; first {
		j.stats.Err = why
	}
	j.mu.Unlock()
	if first {
		j.log.Error("the journal has ended; the run continues without it", "cause", why)
	}
	return first
}

// write is the goroutine that writes.
func (j *recorder) write() {
	defer close(j.done)
	tick := time.NewTicker(journalEvery)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
			j.look()
		case <-j.kick:
		case <-j.quit:
			last = true
		}
		j.flush()
	}
}

// namedFile is a file of the system.
type namedFile interface {
	Name() string
	Stat() (os.FileInfo, error)
}

// missing says that the name of a file no longer leads to it. What cannot be found out counts for nothing.
func missing(f namedFile) error {
	is, err := f.Stat()
	if err != nil {
		return nil //nolint:nilerr // The next write tells.
	}
	switch named, err := os.Stat(f.Name()); {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s was removed or moved during the run: restart the run to record it again", f.Name())
	case err == nil && !os.SameFile(is, named):
		return fmt.Errorf("%s is another file now: restart the run to record it again", f.Name())
	}
	return nil
}

// look ends a journal whose file was removed: later lines would be lost after the run.
func (j *recorder) look() {
	if j.file == nil || j.journalStats().Err != nil {
		return
	}
	if err := missing(j.file); err != nil {
		j.writing.Lock()
		defer j.writing.Unlock()
		j.fails(err)
	}
}

// flush writes what waits. After a failure nothing more is written.
func (j *recorder) flush() {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	j.chunk, j.waiting = j.waiting, j.chunk[:0]
	j.mu.Unlock()
	if len(j.chunk) == 0 {
		return
	}
	j.unsynced = true
	n, err := j.w.Write(j.chunk)
	if j.wrote(j.chunk[:n]); err != nil {
		j.fails(err)
	}
}

// wrote notes the last ends of lines: enough that the line which ends a journal takes no more than
// those behind the first of them.
func (j *recorder) wrote(text []byte) {
	at := j.size
	j.size += int64(len(text))
	for line := range bytes.Lines(text) {
		if at += int64(len(line)); line[len(line)-1] != '\n' {
			break
		}
		inputs := uint64(0) // Of the header.
		if n := len(j.ends); n > 0 {
			inputs = j.ends[n-1].inputs + 1
		}
		j.ends = append(j.ends, lineEnd{at, inputs})
	}
	keep := 0
	for keep+1 < len(j.ends) && j.ends[keep+1].at <= j.size-lastLine {
		keep++
	}
	j.ends = slices.Delete(j.ends, 0, keep)
}

// fails ends a journal that cannot be written any more with a line that says so, or has the end
// noted elsewhere. Else it would look like the journal of a killed process, and be resumed.
func (j *recorder) fails(why error) {
	j.give(why)
	w := j.w
	j.w = io.Discard
	err := j.shorten(w, why)
	if err == nil || j.spoil == nil {
		return
	}
	if noted := j.spoil(); noted != nil {
		j.log.Error("the journal does not say that it has ended before the run: do not resume it", "cause", errors.Join(err, noted))
	}
}

// shorten leaves out as many whole lines as make room for the last one.
func (j *recorder) shorten(w io.Writer, why error) error {
	f, ok := w.(interface {
		io.Seeker
		Truncate(size int64) error
	})
	if !ok {
		return errors.New("the destination of the journal cannot be shortened")
	}
	if is, err := f.Seek(0, io.SeekEnd); err != nil || is != j.size {
		return fmt.Errorf("%d bytes were written to it, and it has %d: %w", j.size, is, cmp.Or(err, io.ErrShortWrite))
	}
	for i, end := range slices.Backward(j.ends) {
		lost := j.journalStats().Inputs - end.inputs
		line := journal.AppendEnd(nil, end.inputs, fmt.Sprintf("%.256s; %d inputs were lost by then", why.Error(), lost))
		if err := f.Truncate(end.at); err != nil {
			return err
		}
		_, err := f.Seek(end.at, io.SeekStart)
		if err == nil {
			_, err = w.Write(line)
		}
		if s, ok := w.(interface{ Sync() error }); ok && err == nil {
			err = s.Sync()
		}
		if err == nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.stats.Inputs, j.stats.Lost, j.stats.Bytes = end.inputs, j.stats.Lost+lost, uint64(end.at)+uint64(len(line)) //nolint:gosec // Sizes.
			return nil
		} else if i == 0 {
			return err
		}
	}
	return f.Truncate(0) // Not even the first line was written: nothing can be resumed.
}

// writeAhead writes the waiting lines before any action that rests on them: a program's inputs must
// not be forgotten when it continues. Before a block is started they are on the disk.
func (j *recorder) writeAhead(in *synccore.Input, out *synccore.Output) {
	if j == nil {
		return
	}
	if in.Kind == synccore.InBody || len(out.Program) > 0 || len(out.Signals) > 0 {
		j.flush()
	}
	if len(out.Signals) > 0 {
		j.syncJournal()
	}
}

// syncJournal has the system put on the disk what it has been given since the last time, if the
// writer is a file.
func (j *recorder) syncJournal() {
	if j == nil {
		return
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if f, ok := j.w.(interface{ Sync() error }); ok && j.unsynced {
		j.unsynced = false
		if err := f.Sync(); err != nil {
			j.fails(fmt.Errorf("sync: %w", err))
		}
	}
}

// closeJournal writes what waits, unless the writer takes nothing. The input of a step
// that panicked is the last one.
func (j *recorder) closeJournal() {
	if j == nil {
		return
	}
	stopped := ""
	if j.open {
		j.open, stopped = false, "the step of the last input did not end: the process panicked"
		j.line = journal.AppendBroken(j.line)
		j.input()
	}
	if j.journalStats().Err == nil {
		j.add(journal.AppendEnd(nil, j.journalStats().Inputs, stopped))
	}
	close(j.quit)
	select {
	case <-j.done:
	case <-time.After(journalPatience):
		j.give(errors.New("the writer took nothing at the end of the run"))
	}
}

func (j *recorder) journalStats() JournalStats {
	if j == nil {
		return JournalStats{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

func (j *recorder) readiness() Readiness {
	stats := j.journalStats()
	part := Readiness{"journal", true, fmt.Sprintf("%d inputs in %d bytes", stats.Inputs, stats.Bytes)}
	if stats.Err != nil {
		part.Detail = fmt.Sprintf("ended after %d inputs: %v; %d are lost", stats.Inputs, stats.Err, stats.Lost)
	}
	return part
}

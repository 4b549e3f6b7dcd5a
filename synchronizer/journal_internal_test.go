package synchronizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
)

// disk counts how often it is synchronized.
type disk struct {
	bytes.Buffer

	syncs int
}

func (d *disk) Sync() error { d.syncs++; return nil }

// TestSyncedBeforeAStart: a step is on the disk before its signals go out, and before what it
// has taken is acknowledged; nothing else waits for the disk, and nothing twice.
func TestSyncedBeforeAStart(t *testing.T) {
	cfg, err := ParseConfig("test.yaml", []byte("synchronizers:\n  gsync:\n    members: {group: g}\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	j := newRecorder(cfg.plans[0], synccore.Options{Term: 1}, &Options{Journal: d, JournalLimit: MinJournalLimit, Logger: slog.New(slog.DiscardHandler)}, nil, 1)
	defer j.closeJournal()
	body, signals := &synccore.Input{Kind: synccore.InBody}, &synccore.Output{Signals: make([]wire.Addressed[wire.Signals], 1)}
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { j.writeAhead(body, &synccore.Output{}) }, 0},
		{j.syncJournal, 1},
		{j.syncJournal, 1},
		{func() { j.writeAhead(&synccore.Input{Kind: synccore.InTick}, signals) }, 2},
		{func() { j.writeAhead(body, signals) }, 3},
	} {
		if i != 2 { // Then nothing is written that was not there.
			j.add([]byte("a line\n"))
			j.flush()
		}
		if step.do(); d.syncs != step.want {
			t.Errorf("step %d: synchronized %d times, want %d", i, d.syncs, step.want)
		}
	}
}

// TestAStepThatPanics: the input of a step that did not end is the last one of the
// journal, so that it can be stepped again.
func TestAStepThatPanics(t *testing.T) {
	cfg, err := ParseConfig("test.yaml", []byte("synchronizers:\n  gsync:\n    members: {group: g}\n"))
	if err != nil {
		t.Fatal(err)
	}
	core := synccore.New(cfg.plans[0], synccore.Options{Term: 1})
	var text bytes.Buffer
	var out synccore.Output
	j := newRecorder(cfg.plans[0], synccore.Options{Term: 1}, &Options{Journal: &text, JournalLimit: MinJournalLimit, Logger: slog.New(slog.DiscardHandler)}, nil, 1)
	tick := &synccore.Input{Kind: synccore.InTick}
	j.beginInput(cfg.plans[0], 2, tick)
	core.Step(2, tick, &out)
	j.endInput(&out)
	j.beginInput(cfg.plans[0], 3, tick)
	j.closeJournal()
	r, err := Replay(&text, ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const why = "the journal was ended before the run: the step of the last input did not end: the process panicked"
	if r.Inputs != 2 || r.Complete || r.Why != why || r.FirstDifference != 0 {
		t.Errorf("%+v", r)
	}
}

// fullFile is a file on a disk that has room for so many bytes.
type fullFile struct {
	*os.File

	room     int64
	stubborn bool // it cannot be shortened
}

func (f *fullFile) Write(p []byte) (int, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	n, err := f.File.Write(p[:max(0, min(int64(len(p)), f.room-at))])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *fullFile) Truncate(size int64) error {
	if f.stubborn {
		return syscall.EIO
	}
	return f.File.Truncate(size)
}

func newFullFile(t *testing.T, room int64) *fullFile {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &fullFile{File: f, room: room}
}

// TestFullDisk: wherever the disk is full, the last line of the journal says that it was stopped, and how many
// inputs were lost.
func TestFullDisk(t *testing.T) {
	cfg, err := ParseConfig("test.yaml", []byte("synchronizers:\n  gsync:\n    members: {group: g}\n"))
	if err != nil {
		t.Fatal(err)
	}
	level, last := cfg.plans[0], 0
	for room := int64(0); room < 4000; room += 13 {
		f := newFullFile(t, room)
		noted := 0
		j := newRecorder(level, synccore.Options{Term: 1}, &Options{Journal: f, JournalLimit: MinJournalLimit, Logger: slog.New(slog.DiscardHandler), spoil: func() error { noted++; return nil }}, nil, 1)
		core, inputs := synccore.New(level, synccore.Options{Term: 1}), uint64(0)
		var out synccore.Output
		for j.journalStats().Err == nil && inputs < 200 {
			inputs++
			tick := &synccore.Input{Kind: synccore.InTick}
			j.beginInput(level, clocksync.Instant(inputs), tick)
			core.Step(clocksync.Instant(inputs), tick, &out)
			if j.endInput(&out); inputs%7 == 0 {
				j.flush()
			}
		}
		j.beginInput(level, clocksync.Instant(inputs+1), &synccore.Input{Kind: synccore.InTick}) // It is lost.
		j.closeJournal()
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		header := bytes.IndexByte(text, '\n') + 1
		if header == 0 {
			if len(text) > 0 {
				t.Fatalf("room for %d bytes: %s", room, text)
			}
			continue
		}
		r, err := Replay(bytes.NewReader(text), ReplayOptions{})
		switch {
		case err != nil:
			t.Fatalf("room for %d bytes: %v", room, err)
		case room-int64(header) < 100 && noted > 0: // There is none for a line.
		case noted > 0 || r.Complete || !strings.HasSuffix(r.Why, fmt.Sprintf("no space left on device; %d inputs were lost by then", inputs-r.Inputs)):
			t.Fatalf("room for %d bytes, %d of %d inputs, noted %d times: %s", room, r.Inputs, inputs, noted, r.Why)
		}
		if stats := j.journalStats(); noted == 0 && (stats.Inputs != r.Inputs || stats.Lost != inputs+1-stats.Inputs) {
			t.Fatalf("room for %d bytes: %+v of %d", room, stats, inputs)
		}
		last = int(r.Inputs)
	}
	if last < 10 {
		t.Errorf("the largest has %d inputs", last)
	}
}

// TestFullDiskIsNotResumed: a journal that could not be ended is refused, by its own text or by the note beside it.
func TestFullDiskIsNotResumed(t *testing.T) {
	t.Parallel()
	for _, stubborn := range []bool{false, true} {
		w, state := newWarm(t), t.TempDir()
		f := newFullFile(t, 6000)
		f.stubborn = stubborn
		s, _, log := w.run(warmConfig, Options{Journal: f, State: state})
		m := w.join("a")
		n := 0
		testwait.Until(t, "a full disk", func() bool {
			n++
			w.set(m, warmState{N: n})
			return s.Stats().Journal.Err != nil
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		f.room, f.stubborn = 1<<20, false
		cfg, err := ParseConfig("test.yaml", []byte(warmConfig))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), w.url, cfg, Options{Resume: f, State: state})
		want := "the journal was ended before the run: no space left on device; "
		if stubborn {
			want = fmt.Sprintf("resume: the journal could not be written on in term %d, and could not say so: what came after is not known, so start again", s.term.Load())
		}
		if err == nil || !strings.Contains(err.Error(), want) || log.has("do not resume it") {
			t.Errorf("stubborn %t: %v; %s", stubborn, err, log.string())
		}
	}
}

// TestJournalThatIsRemoved: a journal whose file or directory is removed, or which another file stands in the
// place of, ends within seconds; a journal that cannot be found by its name continues.
func TestJournalThatIsRemoved(t *testing.T) {
	cfg, err := ParseConfig("test.yaml", []byte("synchronizers:\n  gsync:\n    members: {group: g}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		take func(path string) error
		want string
	}{
		"file":      {os.Remove, "was removed or moved during the run: restart the run to record it again"},
		"directory": {func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, "was removed or moved during the run: restart the run to record it again"},
		"a file in place of the directory": {func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Rename(dir, dir+".old"), os.WriteFile(dir, nil, 0o600))
		}, "was removed or moved during the run: restart the run to record it again"},
		"moved": {func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		}, "is another file now: restart the run to record it again"},
		"unnamed": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := CreateJournal(filepath.Join(t.TempDir(), "j"), "gsync", time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			path := f.Name()
			take := c.take
			if take == nil { // Its name leads nowhere from the beginning, like a pipe's.
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				take = func(string) error { return nil }
			}
			var log bytes.Buffer
			j := newRecorder(cfg.plans[0], synccore.Options{Term: 1}, &Options{Journal: f, JournalLimit: MinJournalLimit, Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil, 1)
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				testwait.Until(t, "the end of the journal", func() bool { return j.journalStats().Err != nil })
			} else {
				j.look()
			}
			j.closeJournal()
			switch err := j.journalStats().Err; {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err.Error() != path+" "+c.want || !strings.Contains(log.String(), "the journal has ended; the run continues without it")):
				t.Errorf("%v, %s", err, log.String())
			}
		})
	}
}

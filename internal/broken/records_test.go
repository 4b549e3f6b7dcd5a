//go:build broken && linux

package broken

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// clock is a reading of the one clock of the machine, in ns, that is not the framework's.
func clock() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// The kinds of records. A member writes those up to kindLeave, a synchronizer the others.
const (
	kindSet   = "set"   // is about to set a state
	kindDid   = "did"   // has set it
	kindBegin = "begin" // a handler begins
	kindEnd   = "end"   // it is about to return
	kindEnter = "enter" // a region was entered
	kindLeave = "leave" // it is about to be left
	kindFired = "fired" // a predicate
	kindFate  = "fate"  // of a signal
	kindShown = "shown" // what the synchronizer shows
	kindTotal = "total" // the last one of a synchronizer that ends in order
	kindCount = "count" // what a member has counted, when it ends in order
	kindLog   = "log"   // of any process
	kindRate  = "rate"  // of a block
)

// record is a line that a process writes.
type record struct {
	Kind string `json:"k"`
	At   int64  `json:"t"`           // by clock
	By   string `json:"m,omitempty"` // the member

	State   *state   `json:"s,omitempty"`
	Handled *handled `json:"h,omitempty"`
	Firing  *firing  `json:"f,omitempty"`
	Shown   *shown   `json:"w,omitempty"`

	Text  string  `json:"text,omitempty"`
	Count float64 `json:"count,omitempty"` // units of work in a second
	CPU   float64 `json:"cpu,omitempty"`   // seconds for one
}

// state is what a member tells. Serial is of this state alone, in all lives.
type state struct {
	Serial int64  `json:"serial" pegasus:"serial"`
	Phase  string `json:"phase" pegasus:"phase"`
	Lit    bool   `json:"lit" pegasus:"lit"`
}

// handled is a signal in an entry of a region, and what became of it.
type handled struct {
	Region    string `json:"region,omitempty"`
	Entry     int    `json:"entry,omitempty"` // as the member counts, or as the synchronizer does
	Name      string `json:"name,omitempty"`
	Predicate string `json:"predicate,omitempty"`
	Decision  number `json:"decision,omitzero"`
	Target    string `json:"target,omitempty"`
	Fate      string `json:"fate,omitempty"`
}

// number names a decision.
type number struct{ Term, Epoch, Number uint64 }

// firing is on what a predicate has fired.
type firing struct {
	Rule     string  `json:"rule"`
	Made     number  `json:"made"`
	Modality string  `json:"modality,omitempty"`
	Held     int64   `json:"held"` // ns that it certainly held
	Over     int64   `json:"over,omitempty"`
	Witness  []share `json:"witness"`
}

// share is one member's part of a witness, or of the shown state.
type share struct {
	Member  string `json:"m"`
	Unknown bool   `json:"unknown,omitempty"`
	Absent  string `json:"absent,omitempty"` // its standing, if it does not take part
	Why     string `json:"why,omitempty"`    // it does not
	Began   int64  `json:"began,omitempty"`  // the stamp of it, or of the first state of its run, on the same clock
	state
}

// shown is what a synchronizer shows.
type shown struct {
	Term     uint64            `json:"term"`
	Epoch    uint64            `json:"epoch"`
	InForce  bool              `json:"force"`
	Waiting  int               `json:"waiting"`
	Members  []share           `json:"members"`
	Standbys int               `json:"standbys"`
	Counters map[string]uint64 `json:"counters,omitempty"`
}

// writer writes records so that they outlive the process.
type writer struct {
	mu   sync.Mutex
	file *os.File
}

func (w *writer) put(r *record) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// Write records a line of the log of slog, of which only the message counts.
func (w *writer) Write(line []byte) (int, error) {
	w.put(&record{Kind: kindLog, At: clock(), Text: string(bytes.TrimSpace(line))})
	return len(line), nil
}

// tail reads what a process has written so far.
type tail struct {
	file *os.File
	read *bufio.Reader
	part []byte
}

func follow(path string) (*tail, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &tail{file: file, read: bufio.NewReader(file)}, nil
}

// more gives every record that is whole by now.
func (t *tail) more(take func(*record)) error {
	for {
		line, err := t.read.ReadBytes('\n')
		t.part = append(t.part, line...)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r := &record{}
		if err := json.Unmarshal(t.part, r); err != nil {
			return err
		}
		t.part = t.part[:0]
		take(r)
	}
}

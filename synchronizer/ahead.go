package synchronizer

import (
	"errors"
	"io"

	"github.com/gopegasus/pegasus/internal/journal"
)

const (
	aheadRecords = 256 // in a chunk
	aheadChunks  = 3   // one is filled, one is replayed, one waits
)

// readAhead reads the records of a journal on its own goroutine, so that a second processor decodes lines while the first
// one steps the core. A chunk has at most one long line and the lines that fit in the buffer of the journal.Reader.
type readAhead struct {
	in      io.Reader
	journal *journal.Reader

	full  chan *readRecords // in order; closed at the end
	empty chan *readRecords
	stop  chan struct{}

	// Of the goroutine.
	filling *readRecords
	spare   journal.Record

	// Of the replay.
	chunk *readRecords
	used  int // of chunk
	line  int // of the last record
}

type readRecords struct {
	list  [aheadRecords]journal.Record
	lines [aheadRecords]int
	n     int
	err   error // after these
}

var errReadNoMore = errors.New("the replay has ended")

// Read hands over all records before it reads: a reader may take long.
func (a *readAhead) Read(p []byte) (int, error) {
	if a.filling != nil && !a.handOver() {
		return 0, errReadNoMore
	}
	return a.in.Read(p)
}

// begin starts the goroutine. The header of the journal was read.
func (a *readAhead) begin() {
	a.full, a.empty, a.stop = make(chan *readRecords, aheadChunks), make(chan *readRecords, aheadChunks), make(chan struct{})
	for range aheadChunks - 1 {
		a.empty <- &readRecords{}
	}
	a.filling = &readRecords{}
	go a.fill()
}

// end waits for the goroutine.
func (a *readAhead) end() {
	close(a.stop)
	for range a.full { // Nobody needs them.
	}
}

func (a *readAhead) fill() {
	defer close(a.full)
	for {
		err := a.journal.Next(&a.spare)
		c := a.filling
		if err != nil {
			c.err = err
			a.full <- c // There is room for all chunks.
			return
		}
		c.list[c.n], a.spare = a.spare, c.list[c.n]
		c.lines[c.n] = a.journal.Line()
		if c.n++; c.n == aheadRecords && !a.handOver() {
			return
		}
	}
}

// handOver hands the records to the replay and waits for an empty chunk. It reports false if the replay has ended.
func (a *readAhead) handOver() bool {
	if a.filling.n == 0 {
		return true
	}
	a.full <- a.filling
	select {
	case a.filling = <-a.empty:
		return true
	case <-a.stop:
		return false
	}
}

// next returns the next record, which holds until the next call, or the error of [journal.Reader.Next].
func (a *readAhead) next() (*journal.Record, error) {
	for a.chunk == nil || a.used == a.chunk.n {
		if a.chunk != nil {
			if a.chunk.err != nil {
				return nil, a.chunk.err
			}
			a.chunk.n = 0
			a.empty <- a.chunk
		}
		a.chunk, a.used = <-a.full, 0
	}
	a.used++
	a.line = a.chunk.lines[a.used-1]
	return &a.chunk.list[a.used-1], nil
}

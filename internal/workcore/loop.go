package workcore

import (
	"fmt"
	"math"

	partition "github.com/gopegasus/pegasus/balance/span"
)

// Limits of a loop.
const (
	MaxRows  = math.MaxInt32 // of an iteration
	MaxSpans = 512           // that a member has in one iteration
)

// Span is the rows from Low to High-1 of a loop.
type Span = partition.Interval

// LoopFrame is the message of a loop's member to the other side: its whole present state, so a later version
// replaces an earlier one. The home sends the member's share of an iteration, and the member its finished work.
type LoopFrame struct {
	Name    string // of the loop
	Home    bool   // the sender is the home of the loop
	Version uint64 // rises with each change of the sender's message to the receiver
	Heard   uint64 // the last version of the receiver that the sender has
	Asks    bool   // the sender waits to hear that this version has arrived
	Number  int    // the iteration, from 1; 0: the sender is in none yet

	// Of the home:
	Spans []Span // all that the member has in the iteration; more may follow
	Close bool   // no more follows: the member sends its partial result
	Ended bool   // the loop is over
	Error string // why, if it has failed

	// Of a member:
	Total  int     // rows, as its program says
	Done   int     // rows of its spans, in their order, that are done
	Gives  bool    // it gives back all that is not done, and takes no part in later iterations while it says so
	Out    bool    // it has left the loop
	Speed  float64 // rows a second, as measured; 0: not yet
	Has    bool    // Value is its partial result
	Result string  // the type of its partial result

	// Value is what the home carries into the iteration, or, with Has, the reduced value of it. Of a member it is
	// the partial result.
	Value []byte
}

// Check returns an error if no member of a loop sends such a frame.
func (f *LoopFrame) Check() error {
	n := 0
	for _, s := range f.Spans {
		if s.Low < 0 || s.High <= s.Low || s.High > MaxRows {
			return fmt.Errorf("loop %.40q: rows %d to %d are no span", f.Name, s.Low, s.High)
		}
		n += s.Len()
	}
	switch {
	case f.Name == "" || len(f.Name) > MaxID:
		return fmt.Errorf("loop %.40q: a name has 1 to %d bytes", f.Name, MaxID)
	case len(f.Spans) > MaxSpans || n > MaxRows:
		return fmt.Errorf("loop %q: %d spans with %d rows: at most %d with %d are allowed", f.Name, len(f.Spans), n, MaxSpans, MaxRows)
	case !(f.Speed >= 0 && f.Speed <= math.MaxFloat64):
		return fmt.Errorf("loop %q: the speed %v: 0 or more rows a second are allowed", f.Name, f.Speed)
	case f.Number < 0 || f.Total < 0 || f.Done < 0:
		return fmt.Errorf("loop %q: iteration %d of %d rows, %d done: none of them may be negative", f.Name, f.Number, f.Total, f.Done)
	case len(f.Value) > MaxBody || len(f.Error) > MaxError || len(f.Result) > MaxError:
		return fmt.Errorf("loop %q: a value of %d bytes, and at most %d are allowed", f.Name, len(f.Value), MaxBody)
	}
	return nil
}

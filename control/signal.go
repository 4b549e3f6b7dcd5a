package control

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/scgs"
)

// Kind is what a signal does to the region it reaches.
type Kind uint8

// The kinds of signals.
const (
	Activate Kind = iota + 1 // interrupt, run the handler, resume
	Cancel                   // leave the region, run its cancel handler, continue after it
)

// String gives the word that configuration files use.
func (k Kind) String() string {
	switch k {
	case Activate:
		return "activate"
	case Cancel:
		return "cancel"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Decision identifies a firing of a predicate. Number counts the decisions of a synchronizer in
// a term, and a term is one life of a synchronizer: later lives have larger terms. All signals
// of a firing share its Decision.
type Decision struct {
	Synchronizer string `json:"synchronizer"` // its name
	Term         uint64 `json:"term"`         // higher in every later life of the synchronizer
	Epoch        uint64 `json:"epoch"`        // in which it was made
	Number       uint64 `json:"number"`       // from 1, over all predicates
}

// NoControl stands for the decision where there was none, since a member has cancelled its
// region itself for want of control.
const NoControl = "no control"

// String gives the decision as "synchronizer/epoch/number", or [NoControl]: then it lacks
// either the synchronizer or the number.
func (d Decision) String() string {
	if (d.Synchronizer == "") != (d.Number == 0) {
		return NoControl
	}
	return d.Synchronizer + "/" + strconv.FormatUint(d.Epoch, 10) + "/" + strconv.FormatUint(d.Number, 10)
}

// Cause names a firing by what it rests on, so that it is known again from one term of
// its synchronizer to the next: a synchronizer that lost its memory makes the same firing
// again, and gives it another [Decision].
type Cause struct {
	Source  uint64 `json:"source"`  // a hash of what has fired, by name and text; 0: there is no cause
	Witness uint64 `json:"witness"` // a sum over the members' states it fired on, each by member, incarnation and number; see OfRuns
	Firing  uint32 `json:"firing"`  // a number that no other one of that source on that witness has, from 1; see PerhapsMade
}

// The marks in the Firing of a cause on runs.
const (
	// PerhapsMade: it is the first one of its term on them, and none of them certainly began in
	// that term. An earlier term may have made it, under whatever number.
	PerhapsMade = 1 << 31
	// Vague: it is not known where each of them began, so that another term may give them
	// another witness.
	Vague = 1 << 30
	// Renewed: an earlier term has made it, and the signal was under way when that ended. It may be
	// on anything, not on runs alone.
	Renewed = 1 << 29
)

// OfRuns is the witness of runs. Its upper half names the members alone, its lower half the first
// known state of each.
func OfRuns(members, states uint64) uint64 {
	return members&^math.MaxUint32 | states&math.MaxUint32
}

// Number is the Firing without marks.
func (c Cause) Number() uint32 { return c.Firing &^ (PerhapsMade | Vague | Renewed) }

// Plain is the cause without the marks [PerhapsMade] and [Renewed].
func (c Cause) Plain() Cause {
	c.Firing &^= PerhapsMade | Renewed
	return c
}

// Perhaps reports whether a firing may be the firing of another cause, which an earlier term
// has made.
func (c Cause) Perhaps(made Cause) bool {
	return c.Firing&PerhapsMade != 0 && c.Source == made.Source && c.Witness>>32 == made.Witness>>32 &&
		(c.Witness == made.Witness || (c.Firing|made.Firing)&Vague != 0)
}

// The limits of a signal.
const (
	MaxData      = 32   // data of one signal
	MaxDataBytes = 4096 // bytes of a signal's data, names and texts included
)

// Datum is one named value that a signal carries.
type Datum struct {
	Name  string     // by which handlers and from_parent read it
	Value scgs.Value // of a type that is no list
}

// Signal is a message from a decision to one region of a single participant. It does not change
// after it was made.
type Signal struct {
	Decision  Decision      // the firing that made it
	Name      string        // selects the handler
	Predicate string        // that fired
	Kind      Kind          // Activate or Cancel
	Target    string        // the member or thread
	Region    string        // that it goes to
	Entry     uint64        // the entry of the region it was decided on
	TTL       time.Duration // after that it expires; counted by sender and receiver each from when they first hold it
	Data      []Datum       // at most [MaxData] and [MaxDataBytes]
	Cause     Cause         // of the decision, if the target can read it
	Over      bool          // a state that the decision rests on was known to have ended by then; see Hello.Over in package wire
	Trace     Trace         // of the decision, if that is traced
}

// Lookup returns the value of the datum of that name; Invalid if there is none.
func (s *Signal) Lookup(name string) scgs.Value {
	for _, d := range s.Data {
		if d.Name == name {
			return d.Value
		}
	}
	return scgs.Value{}
}

// CheckData refuses data that exceed the limits of a signal.
func CheckData(data []Datum) error {
	if len(data) > MaxData {
		return fmt.Errorf("signal: %d data, at most %d fit in a signal", len(data), MaxData)
	}
	size := 0
	for _, d := range data {
		size += len(d.Name) + len(d.Value.Text()) + 9
	}
	if size > MaxDataBytes {
		return fmt.Errorf("signal: %d bytes of data, at most %d fit in a signal: send a reference and fetch the body", size, MaxDataBytes)
	}
	return nil
}

// Fate is what became of a signal.
type Fate uint8

// The fates. All but [Waiting] are final.
const (
	Waiting     Fate = iota + 1 // received, waits for the region's next check or for its handler to return
	Applied                     // its handler has returned
	Duplicate                   // this participant has applied the decision before
	OldEpoch                    // decided in an epoch or term that a newer one has fenced off
	NoSuchEntry                 // the region entry it was decided on is over, or never was
	Expired                     // its time ran out before it took effect
	Refused                     // the region has no handler of that name, or too many signals waited
	Unconfirmed                 // the sender gave up before an answer came, or the target no longer knows
)

// Fates lists every fate in order, for tables of counters.
var Fates = []Fate{Waiting, Applied, Duplicate, OldEpoch, NoSuchEntry, Expired, Refused, Unconfirmed}

var fateNames = [...]string{"none", "waiting", "applied", "duplicate", "old-epoch", "no-such-entry", "expired", "refused", "unconfirmed"}

// String gives the fate's word, as logs and tables show it.
func (f Fate) String() string {
	if int(f) < len(fateNames) {
		return fateNames[f]
	}
	return "fate(" + strconv.Itoa(int(f)) + ")"
}

// Final reports whether nothing more will happen to the signal.
func (f Fate) Final() bool { return f > Waiting && int(f) < len(fateNames) }

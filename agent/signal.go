package agent

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Signal is the argument of a handler: which predicate fired, and the data that go with it. It
// does not change.
type Signal struct {
	Name      string           // selects the handler
	Predicate string           // that fired
	Kind      control.Kind     // activate or cancel
	Region    string           // that it was sent into
	Decision  control.Decision // the same for all signals of a firing
	Data      []control.Datum  // as the configuration declares them
	// Over is true if the synchronizer knew, when it decided, that a state of the witness had ended. The condition
	// held, and holds no more. False does not mean that the condition still holds: a state may have ended later, or
	// the synchronizer may not have known its end. Signals between threads, and older synchronizers, never set it.
	Over bool
}

func signalOf(s *control.Signal) Signal {
	return Signal{Name: s.Name, Predicate: s.Predicate, Kind: s.Kind, Region: s.Region, Decision: s.Decision, Data: s.Data, Over: s.Over}
}

// Lookup returns the datum of that name; ok is false if there is none.
func (s Signal) Lookup(name string) (value scgs.Value, ok bool) {
	for _, d := range s.Data {
		if d.Name == name {
			return d.Value, true
		}
	}
	return scgs.Value{}, false
}

// Int returns an int datum, 0 if there is none of that name and type; so do
// Float (an int or duration counts as a float), Text (of a string or enum),
// Bool and Duration with their zero values.
func (s Signal) Int(name string) int64 {
	v, _ := s.Lookup(name)
	if v.Type() != scgs.Int {
		return 0
	}
	return v.Int()
}

// Float returns a float datum.
func (s Signal) Float(name string) float64 {
	v, _ := s.Lookup(name)
	return v.Float()
}

// Text returns a string or enum datum.
func (s Signal) Text(name string) string {
	v, _ := s.Lookup(name)
	return v.Text()
}

// Bool returns a bool datum.
func (s Signal) Bool(name string) bool {
	v, _ := s.Lookup(name)
	return v.Bool()
}

// Duration returns a duration datum.
func (s Signal) Duration(name string) time.Duration {
	v, _ := s.Lookup(name)
	return v.Duration()
}

// Canceled is the cause of a cancelled region: context.Cause gives it for the
// context of the region's work, [Region.Check] and [Region.Wait] return it, and
// Region does if no handler was declared for the signal. Of a region that was cancelled for
// want of control ([OnControlLoss]) Name and Predicate are empty, and the Decision is
// [control.NoControl].
// Find it with errors.As.
type Canceled struct {
	Signal
}

// Error names the region, the predicate and the decision.
func (c *Canceled) Error() string {
	if c.Decision.Synchronizer == "" {
		return fmt.Sprintf("agent: region %q was cancelled: nobody has controlled its member for %v", c.Region, c.Duration(wire.DatumAfter))
	}
	return fmt.Sprintf("agent: region %q was cancelled: predicate %q held (decision %v)", c.Region, c.Predicate, c.Decision)
}

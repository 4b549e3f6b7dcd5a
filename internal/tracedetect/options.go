package tracedetect

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// Participant is a member of the set.
type Participant struct {
	Name string // as lines have it
	// Domain is the clock domain of its first line, empty if not known before.
	// A known one saves O(members).
	Domain clocksync.Domain
}

// Options say what to find.
type Options struct {
	// Participants are in ascending order of their names, each once.
	Participants []Participant
	// K is the number of atLeast(k, Where), or 0, and then Modality says what to
	// look for.
	K        int
	Modality scgs.Modality // Inst by default
	// Where is the condition on a participant's state, read as state.x; for all
	// but Inst.
	Where string
	// When is the condition on the members that a global state must satisfy to
	// be emitted, or empty.
	When string
	// Schema has the fields that the conditions can read. Without it they are
	// those that the conditions read, and their types are those of their first
	// values.
	Schema scgs.Schema
	// Final emits a global state when all its states have ended, or at the end;
	// of those of atLeast the maximal ones, at the end.
	Final bool
	// Epochs continues without members that have left.
	Epochs bool
	// Note, if there is one, gets each line of a member that counts, and the row of a state. Both last for the call.
	Note func(member int, l *tracefile.Line, fields scgs.Schema, row []scgs.Value)
}

// runs reports whether members are in runs and not in single states.
func (o *Options) runs() bool { return o.K > 0 || o.Modality != scgs.Inst }

// State is a global state, or a set of atLeast.
type State struct {
	Epoch uint64 // 0 without Options.Epochs
	Parts []Part // in order of members
	// HasCore tells whether all of them certainly held together in Core.
	HasCore bool
	Core    clocksync.Interval // reference time; only if HasCore
	// Envelope is where they can have held: its ends are infinite where they are
	// not known, Latest also if no state has ended.
	Envelope clocksync.Interval
	Grows    bool // of atLeast: the set contains one emitted before
}

// Part is a member's share in a State.
type Part struct {
	Member      int    // in Options.Participants
	Incarnation uint64 // of the participant
	First, Last uint64 // the same, but for runs
	Open        bool   // its end is not known
}

// pending is beyond the number of states that can wait: what is found must not
// depend on how far the participants' lines are apart.
const pending = 1 << 24

// New returns a Core that has read nothing. Emit is called from within Line and
// Finish; its State lasts for the call. The error says what is wrong with a
// condition.
func New(o Options, emit func(*State)) (*Core, error) {
	c := &Core{o: o, emit: emit, index: make(map[string]scgs.Member, len(o.Participants))}
	if err := c.compile(); err != nil {
		return nil, err
	}
	for i, p := range o.Participants {
		if i > 0 && o.Participants[i-1].Name >= p.Name {
			panic(fmt.Sprintf("tracedetect: participant %q after %q", p.Name, o.Participants[i-1].Name))
		}
		c.index[p.Name] = scgs.Member(i)
		c.members = append(c.members, newMember(p))
	}
	c.now = make([]scgs.Ref, len(c.members))
	c.shown = make([]scgs.Ref, len(c.members))
	c.records = make([]record, 1)
	limits := scgs.Options{MaxPending: pending, Modality: o.Modality, Ends: o.Final}
	if o.K > 0 {
		c.sets = scgs.NewThreshold(o.K, limits)
		c.in = c.sets
	} else {
		c.detector = scgs.NewDetector(limits)
		c.in = c.detector
	}
	return c, nil
}

// join makes the participants members of the detector. Those whose domains are
// not known are on the clock of the first line until they are heard: on another
// one they would keep states without bounds from being compared by readings.
func (c *Core) join(domain clocksync.Domain) {
	specs := make([]scgs.Spec, len(c.members))
	for i := range c.members {
		if c.members[i].domain == "" {
			c.members[i].move(domain)
		}
		specs[i].Domain = c.members[i].domain
	}
	c.in.Epoch(1, nil, specs)
	c.joined = true
}

// compile finds the fields that the conditions read and compiles them.
func (c *Core) compile() error {
	schema := c.o.Schema
	if schema == nil {
		for _, name := range fieldsRead(c.o.Where, c.o.When) {
			schema = append(schema, scgs.Field{Name: name})
		}
	}
	if len(schema) > scgs.MaxFields {
		return fmt.Errorf("the conditions read %d fields, at most %d are allowed", len(schema), scgs.MaxFields)
	}
	c.columns = tracefile.NewColumns(schema)
	c.row = make([]scgs.Value, len(schema))
	if c.o.runs() {
		c.where = &condition{name: "where", source: c.o.Where, prefix: local}
	}
	if c.o.When != "" {
		c.when = &condition{name: "when", source: c.o.When, members: len(c.o.Participants)}
	}
	return c.learn()
}

// learn compiles the conditions for what is known of the types.
func (c *Core) learn() error {
	for _, cond := range []*condition{c.where, c.when} {
		if cond == nil {
			continue
		}
		if err := cond.compile(slices.Clone(c.columns.Schema())); err != nil {
			return err
		}
	}
	return nil
}

// Fields returns the fields that the scanner of the lines is to be made for.
func (c *Core) Fields() []string {
	var names []string
	for _, f := range c.columns.Schema() {
		names = append(names, f.Name)
	}
	return names
}

package monitor

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Event is a value that an observer receives: an [Epoch], a [Verdict], a [Fate], a [Rejection],
// a [Clock], a [ProgramEvent], a [Plan] or a [Reload]. It may be kept.
type Event interface {
	// Line is the event as people and programs read it, without time and synchronizer.
	Line() Line
}

// Verdict tells what a predicate came to when that changed or when it fired.
type Verdict struct {
	Predicate string           // its name
	Truth     predicates.Truth // what it comes to
	Reason    string           // why it is unknown
	Fired     bool             // it made a decision
	Decision  control.Decision // if it fired
	// Suppressed is how many firings the cooldown has kept back since the last one, if
	// it fired or is kept back now.
	Suppressed uint64
	Silent     bool   `digest:"-"` // it fired, and its predicate only sets variables of memory
	Epoch      uint64 // of the global state
	Index      uint64 // of the global state within the epoch, or of the runs that Modality names
	Partial    bool   // some member's state was unknown
	// Modality is empty for a global state. A predicate's own detector finds runs: sequences of
	// states in which a member's local condition stayed true. "atleast" stands for runs of so
	// many members, "each" for a run of a single member, "definitely" or "possibly" for runs of
	// all.
	Modality string
	Span     scgs.Span // when the witness held
	// If it fired: the states that held together, of runs the first one's number and
	// the newest one's values, and the widest bound of their stamps, 0 if one clock
	// ordered them.
	Witness []Part
	Bound   time.Duration // see Witness
	// What the bound rests on, by name, joined by "+"; empty if one clock ordered
	// the states.
	Sources string
	// EndedAgo is how long ago the first state of the witness had ended when the predicate fired, by its
	// member's newest report. It is 0 up to a heartbeat and two seconds, which is how long it may take to
	// hear from all members.
	EndedAgo time.Duration `digest:"Over"`
	// Heard is when the newest report that the global state rests on was taken in, on
	// the clock of Step; MinInstant where the verdict follows from something else: the
	// end of a hold time, a signal from above.
	Heard clocksync.Instant
}

// Part is one member's state in a witness.
type Part struct {
	Name   string       // of the member
	Fields scgs.Schema  // what the values of Row are
	Row    []scgs.Value // empty if its state is unknown
	State  scgs.Part    // with its stamps
	// Outside is set if the predicate is one of a group of members, and the member is in
	// another group: its state held at the same time and had no part in the verdict. Lines
	// and explanations leave it out.
	Outside bool `digest:"-"`
}

// String gives the member with its state, as "w1 (phase=idle load=0.5)".
func (p *Part) String() string {
	w := WitnessLine{Member: p.Name, Unknown: p.State.Unknown}
	for i, v := range p.Row {
		w.State = append(w.State, Named{p.Fields[i].Name, p.Fields[i].Show(v)})
	}
	return w.String()
}

// Epoch says that a new set of members is active. Dropped names the members that left it, and
// why.
type Epoch struct {
	Epoch   uint64    `json:"epoch"`   // 0: there are too few members, nothing is decided
	Members []string  `json:"members"` // by name, in order
	Joined  []string  `json:"joined"`  // the new members among them
	Dropped []Dropped `json:"-"`       // each has a line of its own
}

// Dropped is a member that is no longer part of the epoch.
type Dropped struct {
	Name   string `json:"member"` // its own
	Reason string `json:"reason"` // "left" or "silent for 3s" or "came back as a new incarnation"
}

// Clock tells that the bound of a member's clock is as good as it was no longer,
// or again: its status is another one.
type Clock struct {
	Name    string            // of the member
	Quality clocksync.Quality // of its stamps from now on
}

// Fate tells what became of a signal.
type Fate struct {
	Signal *control.Signal // must not be changed
	Fate   control.Fate    // what became of it
	Detail string          // more about it; mostly empty
	Hint   string          `digest:"-"` // what the configuration may have wrong, for people; mostly empty
	Group  string          // of the target, if that is another one
	// Earlier is set if an earlier term has decided on the signal, which its target has told
	// now, without its data: that term may have recorded the same.
	Earlier bool
}

// Rejection is an input that was refused.
type Rejection struct {
	From   string       `json:"from"`                   // who sent it: a member, or what there was in its place
	Reason RejectReason `json:"-" digest:"Class"`       // in one word, for counting
	Detail string       `json:"reason" digest:"Reason"` // the reason in full
}

// Reload says that a changed configuration is active, and what has changed. In a [Line] it may
// also say that a configuration was refused, and why.
type Reload struct {
	Accepted bool     `json:"accepted"`                // in a [Line]: the configuration is active
	Config   string   `json:"configuration,omitempty"` // the name of the file
	Changes  []string `json:"changes,omitzero"`        // the differences, a text each
	Reason   string   `json:"reason,omitempty"`        // why it was refused; empty for an active configuration
}

// RejectReason says in one word why an input was refused, for counting.
type RejectReason uint8

// The reject reasons. RejectFrame, RejectVersion, RejectSchema, RejectSend and RejectReply come
// from the code that decodes and encodes for a [Core].
const (
	RejectValue    RejectReason = iota // an expression of the configuration has no value where one is needed
	RejectFrame                        // what came is no frame, or not one for this subject
	RejectVersion                      // a frame of another version
	RejectSchema                       // reports with other fields than the declared ones
	RejectSend                         // a message does not fit a frame
	RejectSender                       // a frame under another name than its subject's, or of no known incarnation
	RejectReplaced                     // a newer incarnation has taken over the name
	RejectFull                         // one member too many
	RejectState                        // the type of a program's state does not match, or it has undeclared threads
	RejectTimeline                     // stamps of another timeline, or of none
	RejectReport                       // a value, or a stamp alone
	RejectOrder                        // a number or stamp that does not fit those before it
	RejectTarget                       // nobody is known to whom a signal could go
	RejectReply                        // a question whose answer would not go to an inbox
	rejectReasons
)

// RejectReasons lists every reject reason in order, for tables of counters.
var RejectReasons = func() (all [rejectReasons]RejectReason) {
	for i := range all {
		all[i] = RejectReason(i)
	}
	return all
}()

// String gives the word of a reject reason in logs and metrics.
func (r RejectReason) String() string {
	return [...]string{
		"value", "frame", "version", "schema", "send", "sender", "replaced", "full", "state", "timeline", "report", "order", "target", "reply", "none",
	}[min(r, rejectReasons)]
}

package monitor

import "time"

// Status is the state of a synchronizer at one instant, between two inputs. It is the output of
// `pegasus status --json`. All durations are in seconds; ages count up to the moment the
// question was answered.
type Status struct {
	Synchronizer string `json:"synchronizer"` // its name
	Group        string `json:"group"`        // whose members it has
	Term         uint64 `json:"term"`         // of this life of the synchronizer; a later one has a greater term
	Epoch        uint64 `json:"epoch"`        // 0: there are too few members, nothing is decided
	// Awaited is how many members there must be: for the first epoch, or for any
	// later one.
	Awaited int `json:"awaited"`
	// State is the newest global state; nil before the first one of the epoch.
	State      *StateStatus      `json:"state"`
	Members    []MemberStatus    `json:"members"`    // in the order of their names
	Predicates []PredicateStatus `json:"predicates"` // in the order of their names
	Memory     Values            `json:"memory"`     // its variables, in the order of their declaration
	// Params are the parameters of the configuration, in the order of their declaration;
	// left out if there are none.
	Params []ParamStatus `json:"params,omitempty"`
	// Waiting is the number of signals without a final fate.
	Waiting int `json:"waiting_signals"`
	// Groups are the other groups that signals go to, in the order of their names;
	// left out if there are none.
	Groups []GroupStatus `json:"groups,omitempty"`
	// Program is nil if the synchronizer runs none.
	Program *ProgramStatus `json:"program,omitempty"`
	// Balance is nil if no loads are moved.
	Balance *BalanceStatus `json:"balance,omitempty"`

	// Leader is this process, such as `process 7 on "host"`; empty if nobody stands by.
	Leader string `json:"leader,omitempty"`
	// Standbys are the processes that would take over if this one ended, such as
	// `process 8 on "host", warm, 0 messages behind`.
	Standbys []string `json:"standbys,omitempty"`

	// Shed are the members and multiplexers whose messages were dropped unread, because the
	// synchronizer fell behind: the 32 that have lost most, in falling order.
	Shed []ShedStatus `json:"shed,omitempty"`

	// Denied are subjects that the NATS server has refused to this synchronizer, by name: 32 at most. They are known only
	// of a connection that the synchronizer has made itself.
	Denied []DeniedStatus `json:"denied,omitempty"`

	// Tenant is the tenant of the run.
	Tenant string `json:"tenant,omitzero"`
	// Time is when the question was answered, by the wall clock of the synchronizer's process.
	Time time.Time `json:"time,omitzero"`
	// Config tells texts of configurations apart: 16 hexadecimal digits of a hash.
	Config string `json:"config,omitzero"`
	// Counters count since the start, by name; Fates the signals, by fate.
	Counters map[string]uint64 `json:"counters,omitzero"`
	Fates    map[string]uint64 `json:"fates,omitzero"` // the same, of signals
}

// DeniedStatus is a subject that the server has refused.
type DeniedStatus struct {
	Publish bool    `json:"publish"`     // else to subscribe
	Subject string  `json:"subject"`     // with its wildcards
	Ago     float64 `json:"ago_seconds"` // since it was refused last
}

// ParamStatus is a parameter of the configuration.
type ParamStatus struct {
	Name    string `json:"name"`            // as params.NAME reads it
	Value   string `json:"value"`           // the active value, as a file writes it
	Default string `json:"default"`         // of the file
	Range   string `json:"range,omitempty"` // which values it takes; empty: all of its type
	Type    string `json:"type"`            // such as float
	Set     bool   `json:"set,omitempty"`   // it was set while the synchronizer ran
}

// ShedStatus is how many messages of a sender were shed unread, and why.
type ShedStatus struct {
	From string `json:"from"`           // the member or multiplexer; of another group behind GROUP/
	Full uint64 `json:"full,omitempty"` // it had more than its share of the full inbox
	Old  uint64 `json:"old,omitempty"`  // they had waited for too long
}

// GroupStatus is the knowledge about another group.
type GroupStatus struct {
	Group   string        `json:"group"`   // its name
	Max     int           `json:"max"`     // members that are listened to
	Members []HeardMember `json:"members"` // in the order of their names
}

// HeardMember is a member of another group: its newest incarnation, how many seconds
// ago it was heard (what it says again is noted every half second), and its open
// regions.
type HeardMember struct {
	Name        string   `json:"name"`          // its own
	Incarnation uint64   `json:"incarnation"`   // of its newest life
	Heard       float64  `json:"heard_seconds"` // how long ago
	Regions     []string `json:"regions"`       // open ones
}

// StateStatus is a global state without the states of its members.
type StateStatus struct {
	Epoch   uint64 `json:"epoch"`   // that it is of
	Index   uint64 `json:"state"`   // from 1 within the epoch
	Partial bool   `json:"partial"` // some member's state is unknown
	// InForce is false if a state of it has ended and what follows is not certain
	// yet.
	InForce bool `json:"in_force"`
	// Held is for how long it certainly held so far, as far as that was looked up. If InForce
	// is false, it may be 0.
	Held float64 `json:"held_seconds"`
	// SameClock is true if one clock orders all its states and measures Held.
	SameClock bool `json:"same_clock"`
}

// Standing says whether a member takes part.
type Standing string

// The standings. Their JSON is the word.
const (
	InEpoch Standing = "in"      // it is in the epoch
	Ready   Standing = "ready"   // it waits for the next epoch
	NoState Standing = "mute"    // it has joined, and has no state
	Gone    Standing = "gone"    // it has left or was dropped
	Leaving Standing = "leaving" // it is gone, and the epoch with it is not over yet
)

// MemberStatus is the knowledge about a member.
type MemberStatus struct {
	Name        string   `json:"name"`          // its own
	Host        string   `json:"host"`          // that it says it is on
	Incarnation uint64   `json:"incarnation"`   // of its newest life
	Standing    Standing `json:"standing"`      // whether it takes part
	Why         string   `json:"why,omitempty"` // it is gone, or is put off
	// Heard is how long ago it was last heard, and Silent whether that is longer
	// than twice the time in which it should have shown itself.
	Heard  float64     `json:"heard_seconds"`
	Silent bool        `json:"silent"` // see Heard
	Clock  ClockStatus `json:"clock"`  // of its stamps
	// Seq is the number of its newest report, Pending how many states the detector
	// keeps of it: the one it looks at and those after it.
	Seq     uint64 `json:"seq"`
	Pending int    `json:"pending"` // see Seq
	// Behind is how many reports are kept back because one before them is missing,
	// and Gap since when that is asked for; 0 without a gap.
	Behind int     `json:"behind"`
	Gap    float64 `json:"gap_seconds"` // see Behind
	// Gaps is how many gaps could not be filled, through all its lives, and Lost how many
	// reports were in them: what they said is unknown.
	Gaps uint64 `json:"gaps,omitempty"`
	Lost uint64 `json:"lost,omitempty"` // see Gaps
	// Unknown is set if nothing is known of its state at present. State is the one
	// that the detector looks at, or, outside the epoch, the newest.
	Unknown bool   `json:"unknown"`
	State   Values `json:"state"` // see Unknown
	// Began bounds when State began and Ended when it ended, in nanoseconds after the answer: both are negative or 0. They
	// are nil unless the member is in the epoch and its state is known. While the state is Open, Ended is its newest
	// evidence. Report is the number of the report that began it.
	Began   *Range   `json:"began,omitempty"`
	Ended   *Range   `json:"ended,omitempty"`        // see Began
	Open    bool     `json:"open,omitempty"`         // see Began
	Report  uint64   `json:"state_report,omitempty"` // see Began
	Regions []string `json:"regions"`                // open ones
}

// ClockStatus is what the stamps of a member rest on.
type ClockStatus struct {
	// Status is "exact" for the clock that all are compared by, "local" for one
	// that has no bound and needs none where all members share it, else a word of
	// [clocksync.Status].
	Status string `json:"status"`
	Source string `json:"source"` // of the bound; several are joined by "+"
	Domain string `json:"domain"` // the clock that is read
	// Bound is the half width of its newest stamp; nil if that is infinite or there
	// is no stamp.
	Bound *float64 `json:"bound_seconds"`
}

// PredicateStatus is where a predicate stands in the epoch.
type PredicateStatus struct {
	Name   string `json:"name"`             // its own
	Truth  string `json:"truth"`            // "unknown" before it was judged
	Reason string `json:"reason,omitempty"` // why it is unknown
	// Since is how long it has come to that; nil if it was not judged in this
	// epoch.
	Since *float64 `json:"since_seconds"`
	Armed bool     `json:"armed"` // it fires when it is true next
	Hold  *Hold    `json:"hold"`  // nil unless its hold time runs
	Fired uint64   `json:"fired"` // since the start
	// Decision is the last one and Ago its age; empty before the first.
	Decision string  `json:"decision,omitempty"`
	Ago      float64 `json:"decision_seconds,omitempty"` // since that decision
	// Notes say which of its signals have no effect, and why: no member has ever entered the
	// region, or a member has refused the newest one.
	Notes []string `json:"notes,omitempty"`
}

// Hold is a hold time that runs.
type Hold struct {
	// Certain is for how long the predicate has certainly been true so far, Wanted
	// for how long it has to be.
	Certain float64 `json:"certain_seconds"`
	Wanted  float64 `json:"wanted_seconds"` // see Certain
}

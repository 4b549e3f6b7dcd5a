package monitor

// Explanation says why a predicate fired last, its present value, and the missing inputs.
// Durations are in seconds; ages count up to the question.
type Explanation struct {
	Synchronizer string `json:"synchronizer"` // its name
	PredicateStatus
	When  string       `json:"when"`        // its text
	For   float64      `json:"for_seconds"` // its hold time
	Every bool         `json:"every"`       // it fires on each global state
	Epoch uint64       `json:"epoch"`       // 0: there are too few members
	State *StateStatus `json:"state"`       // as in [Status]
	// Parts are the parts of the text on the newest global state, outermost first; empty before
	// the first of the epoch.
	Parts []Condition `json:"parts"`
	// Missing is what keeps it from firing, or from the next verdict, at this
	// moment.
	Missing []Missing `json:"missing"`
	// Last is the newest decision, nil before the first.
	Last *LastDecision `json:"last_decision"`
	// Balance is there in the explanation of the section balance alone, under the name
	// [BalanceName]: it has the last plan in place of a decision.
	Balance *BalanceStatus `json:"balance,omitempty"`
	// Groups are the explanations for each group of members, if Name is a predicate with by;
	// beside them only Synchronizer and Name are set.
	Groups []Explanation `json:"groups,omitempty"`
}

// Condition is a part of a predicate's text; see [predicates.Part].
type Condition struct {
	Depth  int    `json:"depth"`            // how many parts it is inside of
	Text   string `json:"text"`             // as it was written
	Low    any    `json:"low"`              // the value, or its lower bound; nil if nothing is known
	High   any    `json:"high"`             // the value, or its upper bound
	Reason string `json:"reason,omitempty"` // why nothing more is known
	// For these members the condition of a function over a group holds, does not,
	// or may: at most 16 of each are named, and all counted.
	True    *Some `json:"true,omitempty"`
	False   *Some `json:"false,omitempty"`   // see True
	Unknown *Some `json:"unknown,omitempty"` // see True
}

// Some names the first members of a list.
type Some struct {
	Count int      `json:"count"` // of all
	Names []string `json:"names"` // the first of them
}

// Missing is one thing that a predicate lacks.
type Missing struct {
	// Kind is one of these words:
	//
	//	condition  the condition is not true
	//	members    too few members for an epoch
	//	state      a member has no state
	//	silent     a member is silent
	//	gone       a member is gone
	//	report     a report is lost and was requested again
	//	evidence   no evidence yet that a state still holds
	//	unknown    nothing is known of a member
	//	clock      a member's clock has no bound
	//	hold       the hold time runs
	//	runs       the predicate's own detector has found nothing new
	//	aside      the section balance leaves a member alone
	//	rests      a member's last order had no effect
	//	cooldown   the cooldown runs
	//	target     no member is known in the group that receives the signal
	//	work       a member keeps a phase of the section work from ending
	//	region     no member has ever entered the region that the signal names
	//	refused    a member has refused the signal
	//	armed      it has fired, and has not been false since, or its until not true
	Kind   string `json:"kind"`
	Member string `json:"member,omitempty"` // that it is about, if it is about one
	Text   string `json:"text"`             // in words
	// Since is its age, nil where that is not known: of evidence how long it has been
	// asked for, of a hold time how much of it is over.
	Since *float64 `json:"since_seconds"`
}

// LastDecision is a decision and the global state that it was made on. Its ranges
// count from the instant from which all states certainly held together, or, if
// there is none, may have.
type LastDecision struct {
	ID  string  `json:"decision"`    // that the signals have
	Ago float64 `json:"ago_seconds"` // since it was made
	// Inherited says that an earlier process made the decision, and this process took over. The
	// fields that follow are not known here.
	Inherited bool    `json:"inherited,omitempty"`
	Epoch     uint64  `json:"epoch"`         // of the global state
	Modality  string  `json:"modality"`      // inst, atleast, each, definitely or possibly; see [Verdict]
	Index     uint64  `json:"state"`         // its number in the epoch
	Partial   bool    `json:"partial"`       // some member's state was unknown
	Held      float64 `json:"held_seconds"`  // for how long it certainly held
	SameClock bool    `json:"same_clock"`    // one clock orders its states
	Bound     float64 `json:"bound_seconds"` // the widest that it rests on, 0 by the same clock
	Sources   string  `json:"bound_sources"` // what the bound rests on, joined by "+"
	Core      *Range  `json:"core"`          // nil: there is none
	Envelope  Range   `json:"envelope"`      // when the states may have held together
	// Witness are the states that held together, at most 64; LeftOut counts the others. The
	// state that began last and the state that ended first are among them.
	Witness []WitnessState `json:"witness"`
	LeftOut int            `json:"left_out"` // see Witness
}

// WitnessState is one member's state in a witness. By the same clock its ends are
// exact.
type WitnessState struct {
	Member  string `json:"member"`  // its name
	Seq     uint64 `json:"seq"`     // the number of its report
	Unknown bool   `json:"unknown"` // nothing is known of it
	Open    bool   `json:"open"`    // End is the newest evidence at the time
	Start   Range  `json:"start"`   // when it began
	End     Range  `json:"end"`     // when it ended
	State   Values `json:"state"`   // in the order of the declaration
}

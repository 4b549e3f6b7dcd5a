package monitor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/scgs"
)

// Line is an event as `pegasus run --json` prints it and as watchers receive it: a JSON object
// with its keys and the keys of its Body, sorted. A decoded line encodes to the keys that it
// came with, known or not.
type Line struct {
	Event        string    `json:"event"`                  // its word, such as "fired"
	Time         time.Time `json:"time"`                   // by the wall clock of who tells it
	Synchronizer string    `json:"synchronizer,omitempty"` // its name
	Body         Body      `json:"-"`                      // nil after decoding an event that is not known here

	decoded []byte
}

// Body is what a [Line] tells: an *[Epoch], *[Dropped], *[VerdictLine], *[SignalLine],
// *[ClockLine], *[PlanLine], *[ProgramLine], *[Rejection], *[Reload] or *[Skipped].
type Body interface{ text(event string) string }

// programWords are the words of events of a program, by their kinds.
var programWords = [...]string{
	"", "start", "cancel", "pass", "signalled", "end", "lost-block", "finish", "program-refused", "fail", "perhaps-twice",
}

var bodies = map[string]func() Body{
	"epoch":   func() Body { return &Epoch{} },
	"lost":    func() Body { return &Dropped{} },
	"verdict": func() Body { return &VerdictLine{} },
	"fired":   func() Body { return &VerdictLine{Firing: &Firing{}} },
	"signal":  func() Body { return &SignalLine{} },
	"clock":   func() Body { return &ClockLine{} },
	"plan":    func() Body { return &PlanLine{} },
	"refused": func() Body { return &Rejection{} },
	"reload":  func() Body { return &Reload{} },
	"skipped": func() Body { return &Skipped{} },
}

// String is the text for people, without time and name. Parts of it may come from
// members, with any characters.
func (l *Line) String() string {
	if l.Body == nil {
		return l.Event // A newer synchronizer may know more.
	}
	return l.Body.text(l.Event)
}

type plainLine Line

// MarshalJSON implements json.Marshaler.
func (l *Line) MarshalJSON() ([]byte, error) {
	if l.decoded != nil {
		return l.decoded, nil
	}
	head := plainLine(*l)
	head.Time = l.Time.UTC()
	var keys map[string]json.RawMessage // Encoding sorts them.
	for _, part := range []any{&head, l.Body} {
		if part == nil {
			continue // A line without a body has its own keys alone.
		}
		text, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(text, &keys)
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(keys)
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Line) UnmarshalJSON(text []byte) error {
	*l = Line{decoded: bytes.Clone(text)}
	if err := json.Unmarshal(text, (*plainLine)(l)); err != nil {
		return err
	}
	switch body := bodies[l.Event]; {
	case l.Event == "":
		return errors.New("the line has no event")
	case body != nil:
		l.Body = body()
	case slices.Contains(programWords[1:], l.Event):
		l.Body = &ProgramLine{}
	default:
		return nil
	}
	return json.Unmarshal(text, l.Body)
}

// Skipped counts events that came too fast for the reader.
type Skipped struct {
	Lines uint64 `json:"lines"` // that are missing here
}

// Line is the line of the count.
func (s Skipped) Line() Line { return Line{Event: "skipped", Body: &s} }

// Line implements [Event]. The members that are gone have lines of their own.
func (e Epoch) Line() Line {
	e.Members, e.Joined = list(e.Members), list(e.Joined)
	return Line{Event: "epoch", Body: &e}
}

// Line is a line beside the line of the epoch.
func (d Dropped) Line() Line { return Line{Event: "lost", Body: &d} }

// Line implements [Event].
func (r Rejection) Line() Line { return Line{Event: "refused", Body: &r} }

// Line implements [Event].
func (r Reload) Line() Line {
	if r.Accepted = r.Reason == ""; r.Accepted {
		r.Changes = list(r.Changes)
	}
	return Line{Event: "reload", Body: &r}
}

// list makes the empty list of nil, where JSON would have null.
func list(names []string) []string { return append([]string{}, names...) }

// VerdictLine is a [Verdict].
type VerdictLine struct {
	Predicate  string `json:"predicate"`            // its name
	Truth      string `json:"truth"`                // a word of [predicates.Truth]
	Reason     string `json:"reason,omitempty"`     // why it is unknown
	Suppressed uint64 `json:"suppressed,omitempty"` // firings that the cooldown has kept back
	Epoch      uint64 `json:"epoch"`                // of the global state
	State      uint64 `json:"state"`                // its number in the epoch
	Partial    bool   `json:"partial"`              // some member's state was unknown

	*Firing // nil if it has not fired
}

// Firing is on what a predicate has fired.
type Firing struct {
	Decision  string        `json:"decision"`      // of the firing
	Modality  string        `json:"modality"`      // inst, atleast, each, definitely or possibly; see [Verdict]
	Held      float64       `json:"held_seconds"`  // for how long the witness certainly held together
	SameClock bool          `json:"same_clock"`    // one clock orders its states
	Bound     float64       `json:"bound_seconds"` // the widest of their stamps, 0 by the same clock
	Sources   string        `json:"bound_sources"` // what the bound rests on, joined by "+"
	Witness   []WitnessLine `json:"witness"`       // the states that held together
	// EndedAgo is how long ago the first of them had ended, if that is long; see [Verdict].
	EndedAgo float64 `json:"ended_ago_seconds,omitempty"`
	Silent   bool    `json:"silent,omitempty"` // its predicate only sets variables of memory
	// WitnessLeftOut counts states that Witness has no room for; watchers receive 64.
	WitnessLeftOut int `json:"witness_left_out,omitempty"`
}

// WitnessLine is one member's state in a witness.
type WitnessLine struct {
	Member  string `json:"member"`  // its name
	State   Values `json:"state"`   // in the order of the declaration
	Unknown bool   `json:"unknown"` // nothing is known of its state

	text string // with the types of the values, which JSON lacks; empty if it was decoded
}

// Line implements [Event].
func (v Verdict) Line() Line {
	b := &VerdictLine{
		Predicate: v.Predicate, Truth: v.Truth.String(), Reason: v.Reason, Suppressed: v.Suppressed,
		Epoch: v.Epoch, State: v.Index, Partial: v.Partial,
	}
	if !v.Fired {
		return Line{Event: "verdict", Body: b}
	}
	b.Firing = &Firing{
		Decision: v.Decision.String(), Modality: cmp.Or(v.Modality, scgs.Inst.String()), Held: v.Span.Certain().Seconds(), SameClock: v.Span.SameClock,
		Bound: v.Bound.Seconds(), Sources: v.Sources, EndedAgo: v.EndedAgo.Seconds(), Silent: v.Silent, Witness: make([]WitnessLine, 0, len(v.Witness)),
	}
	for i := range v.Witness {
		if p := &v.Witness[i]; !p.Outside {
			b.Witness = append(b.Witness, WitnessLine{p.Name, NewValues(p.Fields, p.Row), p.State.Unknown, p.String()})
		}
	}
	return Line{Event: "fired", Body: b}
}

// SignalLine is the [Fate] of a signal.
type SignalLine struct {
	Signal    string `json:"signal"`          // its name
	Predicate string `json:"predicate"`       // that sent it
	Kind      string `json:"kind"`            // a word of [control.Kind]
	Region    string `json:"region"`          // that it is for
	Target    string `json:"target"`          // the member
	Group     string `json:"group,omitempty"` // of the target, if it is another one
	Decision  string `json:"decision"`        // that it was sent by
	Term      uint64 `json:"term,omitempty"`  // of the decision, if it is an earlier one
	Fate      string `json:"fate"`            // a word of [control.Fate]
	Detail    string `json:"detail"`          // what there is to say of the fate; mostly empty
}

// Line implements [Event].
func (f Fate) Line() Line {
	s := f.Signal
	var term uint64
	if f.Earlier {
		term = s.Decision.Term
	}
	detail := f.Detail
	switch {
	case detail == "":
		detail = f.Hint
	case f.Hint != "":
		detail += "; " + f.Hint
	}
	return Line{Event: "signal", Body: &SignalLine{
		s.Name, s.Predicate, s.Kind.String(), s.Region, s.Target, f.Group, s.Decision.String(), term, f.Fate.String(), detail,
	}}
}

// ClockLine is a [Clock].
type ClockLine struct {
	Member     string `json:"member"`     // its name
	Status     string `json:"status"`     // a word of [clocksync.Status]
	Source     string `json:"source"`     // of the bound; several are joined by "+"
	Timeline   string `json:"timeline"`   // of its stamps
	Assumed    bool   `json:"assumed"`    // the bound rests on an operator's word
	Unverified bool   `json:"unverified"` // it rests on one server
}

// Line implements [Event].
func (c Clock) Line() Line {
	q := c.Quality
	return Line{Event: "clock", Body: &ClockLine{c.Name, q.Status.String(), q.Source, string(q.Timeline), q.Assumed, q.Unverified}}
}

// PlanLine is a [Plan].
type PlanLine struct {
	PlanStatus
	*PlanCut // nil if all is there
}

// PlanCut counts what watchers are not told of a large plan.
type PlanCut struct {
	NodesLeftOut int `json:"nodes_left_out"` // members beyond Nodes
	MovesLeftOut int `json:"moves_left_out"` // moves beyond Moves
}

// Line implements [Event].
func (p Plan) Line() Line { return Line{Event: "plan", Body: &PlanLine{PlanStatus: p.Status()}} }

// ProgramLine is a [ProgramEvent]. What does not apply is empty and has no key.
type ProgramLine struct {
	Path      string  `json:"path,omitempty"`      // of the construct
	Construct string  `json:"construct,omitempty"` // its kind
	Name      string  `json:"name,omitempty"`      // of the construct, or of its block
	Replicas  []int32 `json:"replicas,omitempty"`  // which replica, outermost first
	Block     string  `json:"block,omitempty"`     // a [control.BlockID]
	Run       uint64  `json:"run,omitempty"`       // that is started
	Processor string  `json:"processor,omitempty"` // where the block is
	Predicate string  `json:"predicate,omitempty"` // that passed, or has signalled
	Branch    *int    `json:"branch,omitempty"`    // of a construct that has passed
	Iteration int     `json:"iteration,omitempty"` // of a loop that continues: the iteration that begins, from 1
	Decision  string  `json:"decision,omitempty"`  // that it rests on
	Outcome   string  `json:"outcome,omitempty"`   // a word of [control.BlockOutcome]
	Result    string  `json:"result,omitempty"`    // JSON
	// ResultBytes is the length of a result that is left out; watchers receive 4 KiB.
	ResultBytes int    `json:"result_bytes,omitempty"`
	Reason      string `json:"reason,omitempty"` // why it happened
}

// Line implements [Event].
func (e ProgramEvent) Line() Line {
	b := &ProgramLine{
		Path: e.Path, Construct: e.Construct, Name: e.Name, Replicas: e.Replicas, Run: e.Run,
		Processor: e.Processor, Predicate: e.Predicate, Iteration: e.Iteration, Result: e.Result, Reason: e.Reason,
	}
	if e.Block.Instance > 0 {
		b.Block = e.Block.String()
	}
	if e.Decision.Number > 0 {
		b.Decision = e.Decision.String()
	}
	if e.Kind == ProgramPass {
		b.Branch = &e.Branch
	}
	if e.Outcome != 0 {
		b.Outcome = e.Outcome.String()
	}
	return Line{Event: programWords[e.Kind], Body: b}
}

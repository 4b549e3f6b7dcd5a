package wire

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/scgs"
)

// The limits of frames. A frame that exceeds one is refused whole.
const (
	MaxFrameBytes = 60 << 10                        // fits a server's payload limit of 64 KiB
	MaxReports    = 1024                            // reports of a batch
	MaxRegions    = 256                             // open regions of a member
	MaxSignals    = 256                             // signals of a frame
	MaxTokenBytes = 64                              // names of members, groups, synchronizers, regions and signals
	MaxHostBytes  = 255                             // host names, clock domains, timelines, source names
	MaxReasonByte = 1024                            // texts of refusals
	MaxSection    = 48 << 10                        // the configuration sections below a synchronizer
	MaxWork       = 16 << 10                        // the configuration section work
	MaxPiece      = 48 << 10                        // of a body in one frame
	MaxBody       = 1 << 20                         // the input or the outcome of a block
	MaxFates      = 128                             // of a hello
	MaxAims       = 256                             // of a welcome
	MaxParts      = 1024                            // frames of a bundle, and as many of Alive and of the members on a piece of a roster
	MaxListed     = 65_536                          // members on a roster
	MaxPart       = MaxFrameBytes - 3*MaxTokenBytes // of a frame in a bundle: the bundle's own bytes fit beside it
	maxSender     = 2*MaxTokenBytes + 3             // names of multiplexers
	// MaxIncarnation is above all incarnations: the wall clock in ns is below it until 2116.
	MaxIncarnation = 1 << 62
)

// Hello asks a synchronizer to take the sender as a member. It is repeated
// until a [Welcome] answers it.
type Hello struct {
	Member      string            // the name, unique in the group
	Incarnation uint64            // larger after every restart or return of the member
	Host        string            // for people and predicates (.host)
	Domain      clocksync.Domain  // of all its stamps
	Quality     clocksync.Quality // what its stamps rest on at the time
	Typed       bool              // Schema is the program's state type; else it has none yet
	Schema      scgs.Schema       // the fields the program will report
	Threads     bool              // the member's state is the summary of its threads
	Multiplexer string            // that speaks for it from now on, see [Bundle]; empty: it does itself
	Leader      string            // the synchronizer of its group that has taken it in last; empty: none has
	Term        uint64            // of that, which the member is fenced by; 0: none
	Causes      bool              // it takes signals that have a [control.Cause], says what became of one also after its time, and keeps that until it is recorded
	Life        uint64            // the first incarnation that was taken in of the process, where a synchronizer with a section work asks; 0: it is this one
	Fates       []control.Fated   // of the signals of Leader into regions that are open, newest first; at most [MaxFates], and as fit the frame
	Same        Same              // the open state, if it has begun again
	Process     uint64            // the number of its process on its host, for people; 0: not known, as of releases before. It takes a Welcome that is Replaced
	Asks        bool              // it wants the Aims in the Welcome
	Had         uint64            // the number of the newest decision that it has had a signal of, if it is about to leave: it wants Untold in the Welcome; 0: it does not
	Over        bool              // it takes signals that are Over
	Common      bool              // it answers a Probe of its clock domain
}

// Same says that a state is one which the member has told of before, and which has begun again only since
// its clock rests on something else: what fires on it fires on the same state, see [control.Cause].
type Same struct {
	Seq         uint64 `json:"seq"`         // of the report that begins it, in the incarnation of the hello; 0: none has begun again
	Incarnation uint64 `json:"incarnation"` // in which it began first
	Of          uint64 `json:"of"`          // the Seq that it had there
}

// Welcome answers a Hello, and is sent unasked when a synchronizer wants its
// members to introduce themselves again (Accepted and Refused both false).
type Welcome struct {
	Synchronizer string             // who answers
	Term         uint64             // of the synchronizer
	Epoch        uint64             // the current one, 0 before the first
	Member       string             // the synchronizer that is answered
	Incarnation  uint64             // of the Hello it answers
	Accepted     bool               // it is a member, and may report
	Refused      bool               // it is not, for Reason
	Reason       string             // why refused
	Schema       scgs.Schema        // the declared state: reports carry its fields in this order
	Section      []byte             // the configuration of the synchronizers below, empty if there are none
	SectionHash  uint64             // of Section
	Heartbeat    int64              // ns between heartbeats of a member that has nothing to say
	NextSeq      uint64             // the Seq that the member's next report must have; in a refusal the highest incarnation known, if the sender may go above it, else 0
	Domain       clocksync.Domain   // whose readings are the reference time; empty if there is none
	Timeline     clocksync.Timeline // of the Hello it accepts; of a refusal, the one to measure by, if any
	Work         uint64             // hash of the section work, which [Peers] have; 0: there is none
	Aims         []Aim              // of a Hello that Asks: what the configuration's signals to the group name; at most [MaxAims], and as fit the frame
	Replaced     bool               // Refused because another process has joined under that name; only to who takes it, see Hello
	Untold       uint64             // how many signals of decisions up to the Had of the Hello may not have reached other members yet
}

// Aim is what a signal of the configuration names in a member.
type Aim struct {
	Signal string       // selects the handler
	Kind   control.Kind // Cancel needs no handler
	Region string       // that it goes to
}

// Report is one event of a member: the start of a local state, or an explicit
// end after which the member has no state.
type Report struct {
	Seq uint64          // counts the member's reports from 1, and continues in the next incarnation of its process; an End takes a Seq of its own, so that a lost End shows
	End bool            // the member has no state from At on
	At  clocksync.Stamp // when the state began, or the last one ended
	Row []scgs.Value    // the fields of the declared schema; empty for an End
}

// Evidence says that the state Seq, open when it was taken, still held at At.
type Evidence struct {
	Seq uint64          // of the report that began the state
	At  clocksync.Stamp // read while the state held
}

// Region tells which entry of a region is the current one, and during which
// state it began.
type Region struct {
	Name  string `json:"name"`  // unique among the member's open regions
	Entry uint64 `json:"entry"` // the number of this entry, from 1
	Since uint64 `json:"since"` // the Seq of the state that was current when the region was entered, 0 if there was none
}

// Batch carries what a member has to say since its last batch. Its reports are
// in the order of their Seq. Regions lists every region open at the end of the
// batch, so that a lost batch is repaired by the next. A batch without reports
// and with Evidence is a heartbeat or the answer to a probe.
type Batch struct {
	Member      string   // who reports
	Incarnation uint64   // of the member
	Schema      uint64   // hash of the schema the rows are encoded with
	Again       bool     // answers a Resend
	Leaving     bool     // the member leaves after this batch
	Reports     []Report // at most [MaxReports]
	Regions     []Region // at most [MaxRegions]
	Evidence    Evidence // Seq 0: none
	// Tagged says that Quality is there: what the stamps rest on by now, where that
	// is not what the Hello said. Its Timeline is the Hello's and not sent.
	Tagged  bool
	Quality clocksync.Quality // only if Tagged
	Trace   control.Trace     // of the sending of these reports, if that is traced

	values []scgs.Value // of the rows that were decoded, one row after another
}

// Ping asks for the time of the reference clock.
type Ping struct {
	Member string // who asks
}

// Pong answers a [Ping]: the reference time when it had arrived and when the
// answer was sent. Both are exact where the answer comes from the root.
type Pong struct {
	Timeline          clocksync.Timeline // of the times
	Arrived, Departed clocksync.Interval // reference time
	Drift             float64            // how many parts per million the reference clock may run fast or slow
}

// Gone answers a [Resend] for states the ring no longer holds: everything below
// First is lost.
type Gone struct {
	Member      string `json:"member"`      // whose ring it is
	Incarnation uint64 `json:"incarnation"` // of the member
	First       uint64 `json:"first"`       // the Seq of the oldest report that is left
}

// Probe asks a member for evidence that its open state Seq holds at a reading
// above AfterMono of its own clock and an earliest time above AfterTime
// (MinInstant: no matter). The member answers with a [Batch] as soon as that is
// so, or at once if the state has changed.
//
// With Seq 0 it asks a multiplexer for evidence of all its members, whatever their
// states and incarnations, and [Held] answers. Incarnation is then the version of the
// [Roster] that the sender has taken in; if the multiplexer has another one, or it is 0,
// that comes first.
//
// With a Domain, on the Announce subject, it asks each member of that clock domain whose [Hello] has Common,
// and for which no multiplexer speaks. Each answers for its open state, whatever its number.
type Probe struct {
	Incarnation uint64            // of the member; with Seq 0 the version of a roster; 0 with a Domain
	Seq         uint64            // of the open state
	AfterMono   clocksync.Instant // a reading of the member's clock
	AfterTime   clocksync.Instant // reference time
	Domain      clocksync.Domain  // of all that are asked; empty: one member, or one multiplexer
}

// Resend asks for the reports From to To once more.
type Resend struct {
	Incarnation uint64 // of the member
	From, To    uint64 // the Seqs of the first and the last report
}

// Signals carries decisions to one member. Fence is the sender's term and epoch:
// the member refuses signals of older ones from then on.
type Signals struct {
	Synchronizer string           // the sender
	Term         uint64           // of the sender
	Epoch        uint64           // of the sender
	Incarnation  uint64           // of the member the signals are meant for
	Signals      []control.Signal // at most [MaxSignals]
	Recorded     []Receipt        // in a frame without signals: what need not be answered again; at most [MaxSignals]
}

// Receipt says that the fate of a signal to the member is recorded.
type Receipt struct {
	Term, Number uint64 // of the decision, by the sender of the frame
	Name         string // of the signal
}

// Answer tells the fate of a signal.
type Answer struct {
	Decision control.Decision `json:"decision"`         // with Name and Target it identifies the signal
	Name     string           `json:"name"`             // of the signal
	Target   string           `json:"target"`           // the member or thread it was for
	Fate     control.Fate     `json:"fate"`             // Waiting, or a final one
	Detail   string           `json:"detail,omitempty"` // why refused
	Kind     control.Kind     `json:"kind,omitempty"`   // 0, unless the decision is of an earlier term than the answered one; so are these:

	Predicate string `json:"predicate,omitempty"` // of the signal
	Region    string `json:"region,omitempty"`    // of the signal
	Entry     uint64 `json:"entry,omitempty"`     // of the signal
}

// Ack answers Signals.
type Ack struct {
	Member      string   `json:"member"`      // who answers
	Incarnation uint64   `json:"incarnation"` // of the member
	Answers     []Answer `json:"answers"`     // at most [MaxSignals]
}

// BodyKind is what a body is.
type BodyKind uint8

// The kinds of bodies.
const (
	BodyInput   BodyKind = iota + 1 // what a block is given, JSON
	BodyResult                      // what it has come to, JSON
	BodyFailure                     // why it failed, text
)

// Body carries a piece of a block's input or outcome between the processor that
// runs it and the synchronizer that runs the program. It is a request and its
// answer. A request for an input has no Piece and the Offset of the next one; the
// answer has that piece. A request that brings an outcome has a piece at its Offset;
// the answer has none and, as Offset, how many bytes are there by now. An answer
// with a Reason refuses the request for good.
type Body struct {
	Member  string   // the processor
	Program uint64   // names one execution of a program
	Run     uint64   // names one start of a block in it
	Kind    BodyKind // what it is a piece of
	Size    uint64   // of the whole body
	Offset  uint64   // of the piece
	Piece   []byte   // at most [MaxPiece] bytes
	Reason  string   // why the request is refused; empty if it is not
}

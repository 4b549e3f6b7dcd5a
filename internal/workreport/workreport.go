// Package workreport has the values in which a member tells people how its space stands.
package workreport

import "slices"

// Report is how a space stands at one member, for people who ask.
type Report struct {
	Member  string     `json:"member"`  // its name
	Phase   uint64     `json:"phase"`   // from 1
	Idle    bool       `json:"idle"`    // no task that it has put is open, and it has none of another
	Settled bool       `json:"settled"` // its program puts no task now
	Awaits  bool       `json:"awaits"`  // its program waits for the end of the phase
	Drains  bool       `json:"drains"`  // it is to have no task any more
	Slots   int        `json:"slots"`   // how many tasks it runs at a time
	Open    int        `json:"open"`    // tasks that it has put and that are not done
	Blocked int        `json:"blocked"` // of them, those that wait for other tasks
	Missing int        `json:"missing"` // IDs that those wait for and that no task has
	Queued  int        `json:"queued"`  // tasks that wait there
	Running int        `json:"running"` // tasks that run there
	Stuck   int        `json:"stuck"`   // functions that do not return though they have to
	Put     uint64     `json:"put"`     // tasks that it has put so far
	Moved   uint64     `json:"moved"`   // tasks that came there from other members
	Given   uint64     `json:"given"`   // how often a task of its account came to another member
	Redone  uint64     `json:"redone"`  // tasks of its account that were taken back from a member that was lost
	Mail    Mail       `json:"mail"`    // messages to objects
	Dropped uint64     `json:"dropped"` // messages to other members that found the queue full
	Holders []Holding  `json:"holders"` // who has tasks that it has put, by name; itself too
	Log     *LogReport `json:"log"`     // null: the tasks lie in the process alone

	Withdrawal *Withdrawal `json:"withdrawal"` // null: it takes work
	Loops      []Loop      `json:"loops"`      // that it takes part in, by name; the first ones if there are many
	Calls      []Calls     `json:"calls"`      // of functions that it serves or has called, by name; the first ones if there are many

	// Waiting are objects of its account whose messages wait, since none of the members that they are bound to is in the group.
	Waiting     []Bound `json:"waiting"`      // by name, 16 at most
	WaitingMore int     `json:"waiting_more"` // others
}

// Calls are how the calls of one function stand at a member.
type Calls struct {
	Name    string `json:"name"`    // of the function
	Open    int    `json:"open"`    // calls of the member without an outcome
	Waiting int    `json:"waiting"` // calls that wait at the member for a slot
	Running int    `json:"running"` // calls that run at the member
	Lost    uint64 `json:"lost"`    // times that a server was lost with a call of the member
	Full    uint64 `json:"full"`    // times that a server refused a call of the member
	Busy    uint64 `json:"busy"`    // times that a server at its upper water mark had a call of the member wait

	Held    int     `json:"held"`    // calls of the member that wait there for a server
	Served  uint64  `json:"served"`  // calls that have ended at the member
	Seconds float64 `json:"seconds"` // that these have run
}

// MaxCalls bounds the functions of a report.
const MaxCalls = 32

func (c *Calls) plausible() bool {
	return len(c.Name) <= maxName && min(c.Open, c.Waiting, c.Running, c.Held) >= 0 && c.Seconds >= 0
}

// Bound is an object that is bound to members.
type Bound struct {
	Object  string   `json:"object"`  // its name
	Members []string `json:"members"` // 16 of them at most
}

func (b *Bound) plausible() bool {
	return len(b.Object) <= maxName && len(b.Members) <= MaxStaying && !slices.ContainsFunc(b.Members, func(name string) bool { return len(name) > maxName })
}

// Loop is how a member stands in a loop. The figures of the home are 0 at the other members.
type Loop struct {
	Name      string `json:"name"`      // of the loop
	Home      bool   `json:"home"`      // the member is its home
	Rows      int    `json:"rows"`      // of an iteration
	Iteration int    `json:"iteration"` // that runs, from 1; 0: none yet

	Moved      int     `json:"moved"`      // of the home: rows that came to a member which did not have them before
	Released   int     `json:"released"`   // of the home: of these, rows of members that were withdrawn, have left or were lost
	Redone     int     `json:"redone"`     // of the home: rows of lost members that others have got
	Efficiency float64 `json:"efficiency"` // of the home: of the last iteration, the rows by those that the members could do meanwhile; 0: not known
	Overall    float64 `json:"overall"`    // of the home: the same of all iterations
	Speeds     []Speed `json:"speeds"`     // of the home: of the members, by name; null: none is known

	Withdrawals int      `json:"withdrawals"` // of another member: how often it was asked to give its rows back
	Withdrawing float64  `json:"withdrawing"` // of another member: the longest time from such a request until it did no more work, in seconds
	Used        *float64 `json:"used"`        // of another member: part of all cores that its process has used since; null: not known
}

// Speed is how fast a member is in a loop.
type Speed struct {
	Member string  `json:"member"` // its name
	Rows   float64 `json:"rows"`   // a second
}

// MaxLoops bounds the loops of a report.
const MaxLoops = 16

func (l *Loop) plausible() bool {
	least := min(l.Rows, l.Iteration, l.Moved, l.Released, l.Redone, l.Withdrawals)
	slowest := min(l.Efficiency, l.Overall, l.Withdrawing)
	for _, s := range l.Speeds {
		slowest = min(slowest, s.Rows)
	}
	if l.Used != nil {
		slowest = min(slowest, *l.Used)
	}
	return len(l.Name) <= maxName && len(l.Speeds) <= MaxHolders && least >= 0 && slowest >= 0
}

// Withdrawal is how a member stands that takes no work.
type Withdrawal struct {
	Seconds float64  `json:"seconds"` // since it was withdrawn
	Alone   bool     `json:"alone"`   // none of its neighbours takes work, so it works on
	Stay    int      `json:"stay"`    // objects that ran there last and stay: they are pinned, or bound to members
	Objects []string `json:"objects"` // their names, some of them if there are many
}

// MaxStaying bounds the objects of a withdrawal, those that wait, and the members that one is bound to.
const MaxStaying = 16

// maxName is how many bytes the name of an object in a report has at most.
const maxName = 1024

func (w *Withdrawal) plausible() bool {
	return w == nil || w.Seconds >= 0 && w.Stay >= len(w.Objects) && len(w.Objects) <= MaxStaying && !slices.ContainsFunc(w.Objects, func(id string) bool { return len(id) > maxName })
}

// Mail counts messages to objects by what they cost (ALDY, section 4.1: the classes of objects).
type Mail struct {
	Local      uint64 `json:"local"`      // messages to objects of the member's own account: they cost no frame
	Directed   uint64 `json:"directed"`   // posts to the member that has the account of the object, with one message or several
	Undirected uint64 `json:"undirected"` // questions to all members which of them has the account
}

// LogReport is how the log of a space stands, as one member sees it.
type LogReport struct {
	Stream    string   `json:"stream"`    // its name
	Messages  uint64   `json:"messages"`  // that it has, as was last asked, some seconds ago
	Bytes     uint64   `json:"bytes"`     // that it has
	Unwritten int      `json:"unwritten"` // appends that are on their way
	Stalled   bool     `json:"stalled"`   // the log does not take messages now
	Fault     string   `json:"fault"`     // why no phase can end now, or tasks of members that are gone cannot be found; empty: nothing
	Accounts  []string `json:"accounts"`  // of members that are gone, which this one has taken over
}

// MaxStream is how many bytes the name of a stream has at most.
const MaxStream = 255

// MaxHolders bounds the holders of a report: those with most tasks.
const MaxHolders = 64

// Plausible reports whether a member can have said that of itself. Nobody vouches for a message: it only keeps
// nonsense away.
func (r *Report) Plausible(member string) bool {
	least := min(r.Open, r.Blocked, r.Missing, r.Queued, r.Running, r.Stuck)
	for _, h := range r.Holders {
		least = min(least, h.Tasks, h.Runs)
	}
	if l := r.Log; l != nil && (len(l.Stream) > MaxStream || l.Unwritten < 0 || len(l.Accounts) > MaxHolders) {
		return false
	}
	if len(r.Waiting) > MaxStaying || r.WaitingMore < 0 || slices.ContainsFunc(r.Waiting, func(b Bound) bool { return !b.plausible() }) ||
		len(r.Loops) > MaxLoops || slices.ContainsFunc(r.Loops, func(l Loop) bool { return !l.plausible() }) ||
		len(r.Calls) > MaxCalls || slices.ContainsFunc(r.Calls, func(c Calls) bool { return !c.plausible() }) {
		return false
	}
	return r.Withdrawal.plausible() && r.Member == member && r.Phase > 0 && r.Slots > 0 && least >= 0 && r.Blocked <= r.Open && len(r.Holders) <= MaxHolders
}

// Holding is what another member has of the tasks that this one has put.
type Holding struct {
	Member string `json:"member"` // its name
	Tasks  int    `json:"tasks"`  // that it has
	Runs   int    `json:"runs"`   // of them run
}

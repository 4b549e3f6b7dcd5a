package callcore

import (
	"maps"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Bounds of a member, and the pace of messages.
const (
	MaxOpen      = 1024      // calls of a function that a member has open
	MaxOpenBytes = 256 << 20 // of arguments beyond which no further call is made
	MaxHeld      = 4096      // calls that a server has, with answers that are not taken
	MaxHeldBytes = 256 << 20 // of their arguments and results
	maxDone      = 4096      // calls of an origin of which a server knows that they are done

	sendAgain = 300 * time.Millisecond // first pause before a message is sent again
	sendLast  = 5 * time.Second        // longest pause
	ackPause  = 50 * time.Millisecond  // how long an acknowledgement waits for a message that makes it needless, or that it goes with
	maxOwed   = 16                     // acknowledgements to a member that wait
	lateBytes = 64 << 10               // a result above it is acknowledged at once
	pollPause = 2 * time.Second
	findAgain = 100 * time.Millisecond
	findLast  = 2 * time.Second
)

// Style says when a member sends its next call.
type Style uint8

// The styles.
const (
	Async  Style = iota // at once
	Sync                // after the answer; the shell waits, and the core sends at once
	Demand              // while fewer than High calls, of all callers, are at the server
)

// Rule is what the configuration says about the calls of a function.
type Rule struct {
	Style     Style                 // when a call is sent
	Low, High int                   // water marks of Demand; 0: open
	Ratio     []int                 // shares of Replicas; nil: the server with the fewest calls is next
	Replicas  []string              // members that serve it; nil: all
	Retry     int                   // servers that may be lost with a call, from 1
	Batch     int                   // calls that go to a server together, from 1
	Linger    time.Duration         // how long a call waits for others of its batch
	Order     func(Waiting) float64 // the waiting call with the smallest value runs next; nil: the first
}

// Waiting is a call that waits at a server, and the state of the server.
type Waiting struct {
	Size        int     // bytes of the argument
	Weight, Loc float64 // as the caller says
	Age         float64 // seconds since the server has it
	Number      int     // rises from call to call of the server
	Head        float64 // Loc of the call that ran last
	Dir         float64 // sign of the last change of Head: 1 or -1
}

// Options of a [Machine].
type Options struct {
	Self   Peer              // this member
	First  uint64            // numbers of calls are above it: a later machine of the same life needs a greater one
	Served []string          // functions that this member serves
	Slots  int               // calls of a function that run at a time
	Rule   func(string) Rule // of a function
}

// Run is a call that the shell has to run.
type Run struct {
	ID     uint64 // for [Machine.Ended]
	Name   string // of the function
	Body   []byte // the argument
	Depth  int    // calls within calls
	Origin Peer   // the member that made the call
}

// Outcome is what a call has come to.
type Outcome struct {
	Number uint64 // of the call
	Body   []byte // the result
	Server string // that has answered, or was lost last
	Fault  Fault  // why there is none; None: there is one
	Tries  int    // servers that have had it
	Text   string // of a Fault Failed
	Name   string // of the function
}

// Fault says why a call has no result.
type Fault uint8

// The faults.
const (
	None     Fault = iota
	Failed         // the function has returned an error
	Lost           // all servers that had it are lost
	Overfull       // all servers refuse it
)

// Output is what the shell has to carry out.
type Output struct {
	Messages []Message // to send
	Runs     []Run     // to begin
	Stops    []uint64  // runs whose result is not needed
	Outcomes []Outcome // to tell
}

// Machine is a member's part in calls. It is not safe for concurrent use.
type Machine struct {
	opt    Options
	now    clocksync.Instant
	out    Output
	inside []Message // to this member itself
	peers  map[Peer]bool
	wake   clocksync.Instant // nothing is due before it

	// As a caller:
	number    uint64
	calls     map[uint64]*call
	openBytes int // of their arguments
	clients   map[string]*client
	functions []*client         // the same, sorted by name
	serves    map[Peer][]string // what others have told
	untold    int               // peers that have not told it
	version   uint64            // rises with serves, peers and away
	found     clocksync.Instant // when they are asked again
	pause     time.Duration
	grace     clocksync.Instant // until then a call waits for all members to tell what they serve
	linger    map[Peer]*batch
	owed      map[Peer]*batch // acknowledgements of answers, which go with the next message or when they are due

	// As a server:
	servers map[string]*server
	served  []string // their names, sorted
	items   map[itemKey]*item
	runs    map[uint64]*item
	bytes   int
	arrived int
	lastRun uint64
	away    bool
	done    map[Peer]*doneSet
}

// batch is messages to one member that wait for others.
type batch struct {
	messages []Message
	due      clocksync.Instant
}

// New makes a machine.
func New(o Options) *Machine {
	m := &Machine{
		opt: o, number: o.First, peers: map[Peer]bool{}, calls: map[uint64]*call{}, clients: map[string]*client{}, serves: map[Peer][]string{},
		found: clocksync.MaxInstant, wake: clocksync.MaxInstant, linger: map[Peer]*batch{}, owed: map[Peer]*batch{}, servers: map[string]*server{}, items: map[itemKey]*item{}, runs: map[uint64]*item{},
		done: map[Peer]*doneSet{}, version: 1,
	}
	for _, name := range o.Served {
		m.servers[name] = &server{rule: o.Rule(name), dir: 1, wishes: map[Peer]*wish{}}
	}
	m.served = slices.Sorted(maps.Keys(m.servers))
	return m
}

// Output returns the actions to carry out since the last call. It is the caller's.
func (m *Machine) Output() Output {
	for _, one := range m.out.Messages {
		m.sendOwed(one.To)
	}
	out := m.out
	m.out = Output{}
	return out
}

// owe sends an acknowledgement of an answer later, with another message if there is one.
func (m *Machine) owe(out Message, bytes int) {
	if out.To == m.opt.Self || bytes > lateBytes {
		m.sendMessage(out)
		return
	}
	out.From = m.opt.Self
	b := m.owed[out.To]
	if b == nil {
		b = &batch{due: m.after(ackPause)}
		m.owed[out.To] = b
	}
	if b.messages = append(b.messages, out); len(b.messages) >= maxOwed {
		m.sendOwed(out.To)
	}
}

func (m *Machine) sendOwed(p Peer) {
	if b := m.owed[p]; b != nil {
		m.out.Messages = append(m.out.Messages, b.messages...)
		delete(m.owed, p)
	}
}

// TakeRoster follows the members of the group. What a member had that is missing is lost.
func (m *Machine) TakeRoster(now clocksync.Instant, peers []Peer) {
	m.now = now
	before, here := m.peers, map[Peer]bool{}
	for _, p := range peers {
		here[p] = true
	}
	m.peers = here
	cut := !here[m.opt.Self] // The others forget what they had of this member.
	for p := range before {
		if !here[p] {
			delete(m.serves, p)
			delete(m.linger, p)
			delete(m.owed, p)
			delete(m.done, p)
			m.forgetMarks(p)
		}
	}
	m.changeKnown()
	for _, it := range m.sortedItems() {
		switch {
		case !here[it.key.origin] && it.key.origin != m.opt.Self:
			m.dropItem(it)
		case it.state == forwarded && !here[it.to] && it.to != m.opt.Self:
			m.forwardResult(it)
		}
	}
	for _, c := range m.sortedCalls() {
		if c.at != (Peer{}) && c.at != m.opt.Self && (cut || !here[c.at]) {
			m.restartCall(c, !cut)
		}
	}
	for _, p := range peers {
		if before[p] || p == m.opt.Self {
			continue
		}
		if len(m.servers) > 0 {
			m.tellServed(p)
		}
	}
	m.pause, m.found, m.grace = findAgain, m.after(0), m.after(findAgain)
	m.settleOwn()
}

// Take takes a message of a member of the roster.
func (m *Machine) Take(now clocksync.Instant, in *Message) {
	m.now = now
	if in.To == m.opt.Self && m.peers[in.From] {
		m.takeMessage(in)
	}
	m.settleOwn()
}

func (m *Machine) takeMessage(in *Message) {
	switch in.Kind {
	case Find:
		m.tellServed(in.From)
	case Serves:
		m.serves[in.From] = slices.Clone(in.Names)
		m.changeKnown()
	case Ask:
		m.takeAsk(in)
	case Got:
		m.takeGot(in)
	case Full:
		m.takeFull(in)
	case Answer:
		m.takeAnswer(in)
	case Moved:
		m.takeMoved(in)
	case Done:
		m.takeDone(in)
	case Poll:
		m.takePoll(in)
	case Gone:
		m.takeGone(in)
	case Busy:
		m.takeBusy(in)
	case Free:
		m.takeFree(in)
	case Pass:
		m.takePass(in)
	}
}

// Tick does the actions that are due.
func (m *Machine) Tick(now clocksync.Instant) {
	m.now = now
	if now >= m.found {
		m.findServers()
	}
	for _, c := range m.sortedCalls() {
		if c.again <= now && c.at != (Peer{}) {
			m.repeatCall(c)
		}
	}
	for _, it := range m.sortedItems() {
		switch {
		case it.again > now:
		case it.state == answered || it.state == forwarded:
			m.repeatItem(it)
		default:
			m.sendGot(it)
		}
	}
	for _, p := range sortedPeers(m.owed) {
		if m.owed[p].due <= now {
			m.sendOwed(p)
		}
	}
	for _, p := range sortedPeers(m.linger) {
		if m.linger[p].due <= now {
			m.sendWaiting(p)
		}
	}
	m.endPlaces()
	m.retryRefused()
	m.settleOwn()
	m.wake = m.nextWake()
}

// Wake is when Tick may have something to do.
func (m *Machine) Wake() clocksync.Instant { return m.wake }

// after is the instant at the end of a pause, when Tick is needed.
func (m *Machine) after(pause time.Duration) clocksync.Instant {
	t := m.now.Add(pause)
	m.wake = min(m.wake, t)
	return t
}

// nextWake is when something is due.
func (m *Machine) nextWake() clocksync.Instant {
	wake := m.found
	if m.now < m.grace {
		wake = min(wake, m.grace)
	}
	for _, c := range m.calls {
		if c.at != (Peer{}) {
			wake = min(wake, c.again)
		}
	}
	for _, it := range m.items {
		wake = min(wake, it.again)
	}
	for _, b := range m.linger {
		wake = min(wake, b.due)
	}
	for _, b := range m.owed {
		wake = min(wake, b.due)
	}
	return m.wakeMarks(wake)
}

// sendMessage sends a message. One to this member itself is taken before the step ends.
func (m *Machine) sendMessage(out Message) {
	out.From = m.opt.Self
	if out.To == m.opt.Self {
		m.inside = append(m.inside, out)
		return
	}
	m.out.Messages = append(m.out.Messages, out)
}

// settleOwn takes the messages of this member to itself, and starts what can run.
func (m *Machine) settleOwn() {
	for {
		for len(m.inside) > 0 {
			in := m.inside[0]
			m.inside = m.inside[1:]
			m.takeMessage(&in)
		}
		m.startRuns()
		m.grantPlaces()
		m.dispatchAll()
		if len(m.inside) == 0 {
			return
		}
	}
}

// longer is the pause after one more message without an answer.
func longer(pause time.Duration) time.Duration { return min(2*pause, sendLast) }

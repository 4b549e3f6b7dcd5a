package datacore

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

const (
	// resend is how long a member waits for an answer before it sends again, if answers came in time so far.
	resend = 250 * time.Millisecond
	// maxPatience is how long it waits at most.
	maxPatience = 4 * time.Second
	// ahead is how many entries may wait for a confirmation.
	ahead = 4 * maxEntries
)

// Options make a [Member].
type Options struct {
	Self    Peer   // this life of the member
	Phase   uint64 // that the space is in, from 1
	Cache   int    // bytes of data that were fetched; at least 1
	Classes int    // how many classes of tasks the member works on at a time; 0: any number
	Store   Peer   // fetched from if no other one has the data, and in the roster; the zero Peer: none
	Piece   int    // bytes of each piece but the last one of data, the same for all members; 0: [PieceBytes], the most
}

// Send is a message for another member.
type Send struct {
	To      Peer    // that gets it
	Message Message // that is sent
}

// Output is what a call of a [Member] asks for. The member appends to it.
type Output struct {
	Sends   []Send   // in this order
	Written []string // names that are known from here on: tasks that wait for them may be given out
	// Changed: other tasks may be ready than before.
	Changed bool
	// Hopeless: all members are at rest, so no data are written any more in this phase.
	Hopeless bool
}

// Counts are figures of a member since its beginning.
type Counts struct {
	Fetched uint64 // data that came here
	Bytes   uint64 // of these
	Served  uint64 // pieces that went to other members
	Evicted uint64 // data that were dropped to make room
	Damaged uint64 // data whose digest differed from what their writer had announced
	Refused uint64 // messages that were damaged, too large, or not what was asked for
	Stray   uint64 // messages of another phase, or of a life that is not in the roster
}

// Member is the machine of one member. It is not safe for concurrent use.
type Member struct {
	opts   Options
	phase  uint64
	roster []Peer // the others
	peers  map[Peer]*peer
	data   map[string]*datum
	log    []logged          // what this member has, in the order of the sequences
	seq    uint64            // of the last entry
	listed int               // names in log
	due    clocksync.Instant // before it, sendLists has nothing to send to anyone
	cached int               // bytes that were fetched, and of fetches
	used   uint64            // rises with each use of data
	open   []*fetch          // in the order in which they began
	plan   []*datum          // that tasks here read, the most urgent first
	active map[string]bool
	key    []byte // memory of Ready
	counts Counts
	rest   rest
	// patience is how long the member waits for an answer: longer if answers come twice, since it asked again too soon.
	patience time.Duration
}

// peer is what this member knows of another one.
type peer struct {
	heard     uint64 // its list is here up to this sequence
	confirmed uint64 // it has the list of this member up to here
	sent      uint64 // and was sent it up to here
	again     clocksync.Instant
	names     int // that it has announced
}

// logged is a place in the list. It counts if the datum has the same sequence.
type logged struct {
	seq uint64
	of  *datum
}

// datum is what is known of one name.
type datum struct {
	name     string
	size     int
	digest   Digest
	known    bool // size and digest are
	copies   map[Peer]State
	bad      map[Peer]bool // members whose copy has another digest than they say
	conflict string        // why no copy can be used
	data     []byte
	here     bool
	own      bool // it is kept until the phase ends
	state    State
	seq      uint64 // of the entry; 0: none
	used     uint64
	needed   bool
	fetch    *fetch
	search   *search // nil: no search has begun since a member was known that has them
}

// NewMember makes a member that knows no other one.
func NewMember(opts Options) *Member {
	if opts.Piece == 0 {
		opts.Piece = PieceBytes
	}
	m := &Member{opts: opts, phase: opts.Phase, peers: map[Peer]*peer{}, patience: resend}
	m.reset()
	return m
}

func (m *Member) reset() {
	m.data, m.active = map[string]*datum{}, map[string]bool{}
	m.log, m.seq, m.listed, m.cached, m.open, m.plan = nil, 0, 0, 0, nil, nil
	for p := range m.peers {
		m.peers[p] = &peer{}
	}
	m.rest = rest{turns: m.rest.turns + 1, round: m.rest.round}
	m.due = clocksync.MinInstant
}

// EndPhase drops all data and begins the phase.
func (m *Member) EndPhase(phase uint64) {
	m.phase = phase
	m.reset()
}

// Counts are the figures so far.
func (m *Member) Counts() Counts { return m.counts }

// Cached is how many bytes of the cache are taken.
func (m *Member) Cached() int { return m.cached }

func (m *Member) datumOf(name string) *datum {
	d := m.data[name]
	if d == nil {
		d = &datum{name: name, copies: map[Peer]State{}, bad: map[Peer]bool{}}
		m.data[name] = d
	}
	return d
}

// Check returns the error with which Write refuses data.
func (m *Member) Check(name string, size int, digest Digest) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("data %.40q: the name has %d bytes: give it one of 1 to %d", name, len(name), MaxName)
	}
	if size > MaxSize {
		return fmt.Errorf("data %q: they have %d bytes, and at most %d are allowed: write them in parts", name, size, MaxSize)
	}
	d := m.data[name]
	switch {
	case d != nil && d.conflict != "":
		return fmt.Errorf("%s", d.conflict)
	case d != nil && d.known && (d.digest != digest || d.size != size):
		return fmt.Errorf("data %q: they are written already, with the digest %x, and now with %x: give other bytes another name", name, d.digest[:8], digest[:8])
	case (d == nil || d.seq == 0) && m.listed == MaxNames:
		return fmt.Errorf("data %q: this member has %d names in this phase, and no more are allowed: write larger data", name, MaxNames)
	}
	return nil
}

// Write takes data that the program writes. It keeps them, and they must not change. The same data may be written again.
func (m *Member) Write(now clocksync.Instant, name string, data []byte, digest Digest, out *Output) error {
	if err := m.Check(name, len(data), digest); err != nil {
		return err
	}
	d := m.datumOf(name)
	if d.own {
		return nil
	}
	m.rest.turns++
	d.size, d.digest = len(data), digest
	if d.fetch != nil {
		m.endFetch(d.fetch)
	} else if d.here {
		m.cached -= d.size
	}
	d.data, d.here, d.own = data, true, true
	m.appendEntry(d, Wrote)
	m.learn(d, out)
	out.Changed = true
	m.sendLists(now, out)
	return nil
}

// learn notes that a name is known.
func (m *Member) learn(d *datum, out *Output) {
	if !d.known {
		d.known = true
		out.Written = append(out.Written, d.name)
	}
}

// appendEntry puts an entry at the end of the list of this member.
func (m *Member) appendEntry(d *datum, state State) {
	if d.seq == 0 {
		m.listed++
	}
	m.seq++
	m.due = clocksync.MinInstant
	d.seq, d.state = m.seq, state
	m.log = append(m.log, logged{m.seq, d})
	if len(m.log) > 2*m.listed+maxEntries {
		m.log = slices.DeleteFunc(m.log, func(l logged) bool { return l.of.seq != l.seq })
	}
}

// SetRoster takes the members of the group. What members had that are missing is lost.
func (m *Member) SetRoster(now clocksync.Instant, roster []Peer, out *Output) {
	m.roster = slices.DeleteFunc(slices.Clone(roster), func(p Peer) bool { return p == m.opts.Self })
	for p := range m.peers {
		if !slices.Contains(m.roster, p) {
			delete(m.peers, p)
		}
	}
	for _, p := range m.roster {
		if m.peers[p] == nil {
			m.peers[p] = &peer{}
		}
	}
	for _, d := range m.data {
		for p := range d.copies {
			if m.peers[p] == nil {
				delete(d.copies, p)
			}
		}
	}
	for _, d := range m.sortedCopies() {
		m.inheritData(d)
	}
	for _, f := range slices.Clone(m.open) {
		if m.peers[f.from] == nil {
			m.askNext(now, f, out)
		}
	}
	out.Changed = true
	m.rest.turns++
	m.due = clocksync.MinInstant
	m.fillFetches(now, out)
	m.sendLists(now, out)
}

// sortedCopies returns all data that are here and are not own, by name.
func (m *Member) sortedCopies() (list []*datum) {
	for _, d := range m.data {
		if d.here && !d.own {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *datum) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return list
}

// inheritData makes this member keep data until the phase ends if their writer is lost and it is the first that has them.
func (m *Member) inheritData(d *datum) {
	if !d.here || d.own {
		return
	}
	for p, state := range d.copies {
		if state == Wrote || state == Holds && p.Name < m.opts.Self.Name {
			return
		}
	}
	d.own = true
	m.cached -= d.size
	m.appendEntry(d, Wrote)
}

// sendLists sends each other member what it was not sent of the list. With nothing due it takes the same time in any group.
func (m *Member) sendLists(now clocksync.Instant, out *Output) {
	if now < m.due {
		return
	}
	m.due = clocksync.MaxInstant
	for _, to := range m.roster {
		m.sendList(now, to, m.peers[to], out)
	}
}

// sendList sends one member what it was not sent of the list.
func (m *Member) sendList(now clocksync.Instant, to Peer, p *peer, out *Output) {
	if p.sent > p.confirmed && now >= p.again {
		p.sent = p.confirmed
	}
	for p.sent < m.seq && p.sent < p.confirmed+ahead {
		message := Message{Kind: Have, After: p.sent}
		from, _ := slices.BinarySearchFunc(m.log, p.sent+1, func(l logged, seq uint64) int {
			if l.seq < seq {
				return -1
			}
			return 1
		})
		p.sent = m.seq
		for _, l := range m.log[from:] {
			if l.of.seq != l.seq {
				continue
			}
			if message.Entries = append(message.Entries, Entry{l.of.name, l.of.state, l.of.size, l.of.digest}); len(message.Entries) == maxEntries {
				p.sent = l.seq
				break
			}
		}
		message.Upto = p.sent
		p.again = now.Add(m.patience)
		m.sendMessage(to, message, out)
	}
	if p.sent > p.confirmed {
		m.due = min(m.due, p.again)
	}
}

// slowDown notes that an answer came twice.
func (m *Member) slowDown() { m.patience = min(m.patience+m.patience/4, maxPatience) }

// speedUp notes that an answer came once.
func (m *Member) speedUp() { m.patience -= (m.patience - resend) / 64 }

func (m *Member) sendMessage(to Peer, message Message, out *Output) {
	message.Life, message.Phase = m.opts.Self.Life, m.phase
	out.Sends = append(out.Sends, Send{to, message})
}

// Take takes a message of another member. It keeps nothing of it.
func (m *Member) Take(now clocksync.Instant, from string, message *Message, out *Output) {
	peer := Peer{from, message.Life}
	p := m.peers[peer]
	if p == nil || message.Phase != m.phase {
		m.counts.Stray++
		return
	}
	switch message.Kind {
	case Have:
		m.takeList(now, peer, p, message, out)
	case Heard:
		if message.Upto > m.seq {
			m.counts.Refused++
			return
		}
		if message.Upto <= p.confirmed {
			m.slowDown()
		} else {
			m.speedUp()
		}
		p.confirmed = max(p.confirmed, message.Upto)
		p.sent = max(p.sent, p.confirmed)
		m.sendList(now, peer, p, out)
		m.sendLists(now, out)
	case Want:
		m.serve(peer, message, out)
	case Piece, Gone:
		m.takePiece(now, peer, message, out)
	case Find:
		m.answerFind(peer, message, out)
	case Found:
		m.takeFound(now, peer, p, &message.Entries[0], out)
	case Ask, Answer:
		m.takeRest(peer, message, out)
	}
}

// takeList takes a part of the list of another member.
func (m *Member) takeList(now clocksync.Instant, from Peer, p *peer, message *Message, out *Output) {
	if message.After <= p.heard && message.Upto > p.heard {
		for i := range message.Entries {
			if !m.takeEntry(from, p, &message.Entries[i], out) {
				m.counts.Refused++
			}
		}
		p.heard = message.Upto
		m.rest.turns++
		m.fillFetches(now, out)
		m.sendLists(now, out)
	}
	m.sendMessage(from, Message{Kind: Heard, Upto: p.heard}, out)
}

func (m *Member) takeEntry(from Peer, p *peer, e *Entry, out *Output) bool {
	d := m.data[e.Name]
	if d == nil || d.copies[from] == 0 {
		if e.State == Dropped {
			return true
		}
		if p.names++; p.names > MaxNames {
			return false
		}
		d = m.datumOf(e.Name)
	}
	if e.State == Dropped {
		delete(d.copies, from)
		p.names--
		m.inheritData(d)
		out.Changed = true
		return true
	}
	// Another copy of data that no task here needs changes nothing, unless there was a fault.
	out.Changed = out.Changed || !d.known || d.needed || d.search != nil || len(d.bad) > 0 || d.digest != e.Digest
	if d.known && (d.digest != e.Digest || d.size != e.Size) {
		d.conflict = fmt.Sprintf("data %q: two members have written them, with the digests %x and %x: let one member write them, or give them two names", d.name, d.digest[:8], e.Digest[:8])
		if d.fetch != nil {
			m.endFetch(d.fetch)
		}
		return true
	}
	d.size, d.digest, d.copies[from], d.search = e.Size, e.Digest, e.State, nil
	m.learn(d, out)
	return true
}

// serve sends pieces of data that are here.
func (m *Member) serve(to Peer, want *Message, out *Output) {
	d := m.data[want.Name]
	if d == nil || !d.here || d.digest != want.Digest {
		m.sendMessage(to, Message{Kind: Gone, Name: want.Name}, out)
		return
	}
	size := m.opts.Piece
	if want.At%size != 0 || want.At >= len(d.data) {
		m.counts.Refused++
		return
	}
	for at := want.At; at < len(d.data) && at < want.At+want.Count*size; at += size {
		m.counts.Served++
		m.sendMessage(to, Message{Kind: Piece, Name: want.Name, At: at, Data: d.data[at:min(at+size, len(d.data))]}, out)
	}
}

// Tick sends again what was not answered in time.
func (m *Member) Tick(now clocksync.Instant, out *Output) {
	m.sendLists(now, out)
	m.repeatFetches(now, out)
	m.askRest(now, out)
}

// Wake is when Tick has something to do.
func (m *Member) Wake() clocksync.Instant {
	at := min(m.wakeRest(), m.due)
	for _, f := range m.open {
		at = min(at, f.again)
	}
	for _, d := range m.plan {
		if d.search != nil && !d.here && !m.isNowhere(d) {
			at = min(at, d.search.again)
		}
	}
	return at
}

// Get returns data that are here. They are shared, and must not change.
func (m *Member) Get(name string) (data []byte, here bool) {
	d := m.data[name]
	if d == nil || !d.here {
		return nil, false
	}
	m.used++
	d.used = m.used
	return d.data, true
}

// Missing is how many of the names another member does not have, as far as its list is here.
func (m *Member) Missing(at Peer, names []string) (n int) {
	for _, name := range names {
		if d := m.data[name]; d == nil || d.copies[at] == Dropped {
			n++
		}
	}
	return n
}

// Size is the size of data that are written; false: they are not known here.
func (m *Member) Size(name string) (size int, known bool) {
	d := m.data[name]
	if d == nil || !d.known {
		return 0, false
	}
	return d.size, true
}

// TooLarge says why a task that reads these names can never run; empty: as far as the sizes are known it can.
func (m *Member) TooLarge(reads []string) string {
	sum := 0
	for _, name := range reads {
		n, _ := m.Size(name)
		sum += n
	}
	if sum <= m.opts.Cache {
		return ""
	}
	return fmt.Sprintf("data %q: they have %d bytes together, and data.cache allows %d: raise data.cache, or let the task read less", reads, sum, m.opts.Cache)
}

package callcore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// itemKey names one stage of a call.
type itemKey struct {
	origin Peer
	number uint64
	stage  int
}

type itemState uint8

const (
	waiting itemState = iota
	running
	answered  // until the origin has the answer
	forwarded // until the origin knows where the next stage is
)

// item is one stage of a call at its server.
type item struct {
	key     itemKey
	try     int
	depth   int
	stages  []Stage
	body    []byte // the argument, and then the result
	failed  bool
	state   itemState
	run     uint64
	passive bool // its function waits for something
	since   clocksync.Instant
	begun   clocksync.Instant // of its run
	arrival int
	to      Peer              // of a forwarded one: the server of the next stage; zero: none is known
	got     bool              // that server has it
	again   clocksync.Instant // when the answer is sent again or, before the end of the run, the Got
	pause   time.Duration
}

// server is one function that this member serves.
type server struct {
	rule    Rule
	queue   []*item
	running int // that do not wait for something
	served  uint64
	spent   time.Duration // of the calls that were served
	head    float64
	dir     float64

	// With water marks:
	wishes map[Peer]*wish
	line   []Peer // callers that want places
	kept   int    // places that are kept for callers
}

// doneSet is what a server remembers of calls that are done: a late copy must not run again.
type doneSet struct {
	tries map[itemKey]int
	order []itemKey
}

func (d *doneSet) add(k itemKey, try int) {
	if _, known := d.tries[k]; !known {
		if d.order = append(d.order, k); len(d.order) > maxDone {
			delete(d.tries, d.order[0])
			d.order = d.order[1:]
		}
	}
	d.tries[k] = max(try, d.tries[k])
}

func (d *doneSet) has(k itemKey, try int) bool {
	if d == nil {
		return false
	}
	done, known := d.tries[k]
	return known && try <= done
}

// Held is how many calls this member has as a server, and the bytes of their arguments and results.
func (m *Machine) Held() (calls, bytes int) { return len(m.items), m.bytes }

// SetAway says whether this member takes no more calls. It serves those that it has.
func (m *Machine) SetAway(now clocksync.Instant, away bool) {
	m.now = now
	if m.away != away {
		m.away = away
		m.changeKnown()
		for _, p := range sortedPeers(m.peers) {
			if p != m.opt.Self {
				m.tellServed(p)
			}
		}
	}
	m.settleOwn()
}

// GiveUp returns the last messages of this member: it serves nothing more, and has forgotten the calls of others.
func (m *Machine) GiveUp(now clocksync.Instant) []Message {
	m.SetAway(now, true)
	for _, it := range m.sortedItems() {
		if k := it.key; k.origin != m.opt.Self {
			m.sendMessage(Message{Kind: Gone, To: k.origin, Origin: k.origin, Number: k.number, Try: it.try, Stage: k.stage})
		}
	}
	return m.Output().Messages
}

// tellServed tells a member which functions this one serves.
func (m *Machine) tellServed(to Peer) {
	out := Message{Kind: Serves, To: to}
	if !m.away {
		out.Names = m.opt.Served
	}
	m.sendMessage(out)
}

// takeAsk takes a call. A copy of a call that is here is not run again.
func (m *Machine) takeAsk(in *Message) {
	key := itemKey{in.Origin, in.Number, in.Stage}
	s := m.servers[in.Stages[in.Stage].Name]
	back := Message{Kind: Got, To: in.From, Origin: in.Origin, Number: in.Number, Try: in.Try, Stage: in.Stage}
	switch it := m.items[key]; {
	case !m.peers[in.Origin]:
		return
	case m.done[in.Origin].has(key, in.Try):
		m.sendMessage(back)
		return
	case s == nil, m.away && it == nil:
		m.tellServed(in.From)
		back.Kind = Gone
		m.sendMessage(back)
		return
	case it != nil && it.try > in.Try:
		return
	case it != nil && it.try == in.Try:
		m.sendMessage(back)
		m.moreStages(it, in)
		if it.state == answered {
			m.repeatItem(it)
		}
		return
	case it != nil:
		m.dropItem(it)
	}
	if !s.takePlace(in) {
		back.Kind, back.Load = Busy, s.load()
		m.sendMessage(back)
		return
	}
	if len(m.items) >= MaxHeld || m.bytes > 0 && m.bytes+len(in.Body) > MaxHeldBytes {
		back.Kind = Full
		m.sendMessage(back)
		return
	}
	m.arrived++
	it := &item{key: key, try: in.Try, depth: in.Depth, stages: in.Stages, body: in.Body, since: m.now, arrival: m.arrived}
	m.items[key] = it
	m.bytes += len(it.body)
	s.queue = append(s.queue, it)
	if in.From == in.Origin && len(in.Stages) == 1 && !in.Marked {
		it.again = m.after(ackPause) // The answer often comes sooner, and says as much.
		return
	}
	it.again, back.Load = clocksync.MaxInstant, s.load()
	m.sendMessage(back)
}

// sendGot tells the origin of a call that this member has it.
func (m *Machine) sendGot(it *item) {
	it.again = clocksync.MaxInstant
	m.sendMessage(Message{
		Kind: Got, To: it.key.origin, Origin: it.key.origin, Number: it.key.number, Try: it.try, Stage: it.key.stage,
		Load: m.servers[it.stages[it.key.stage].Name].load(),
	})
}

func (m *Machine) moreStages(it *item, in *Message) {
	if len(in.Stages) > len(it.stages) {
		it.stages = in.Stages
	}
}

// startRuns runs the calls that wait, as far as slots are free.
func (m *Machine) startRuns() {
	for _, name := range m.served {
		s := m.servers[name]
		for len(s.queue) > 0 && s.running < m.opt.Slots {
			it := m.pickNext(s)
			m.lastRun++
			it.state, it.run, it.begun = running, m.lastRun, m.now
			m.runs[it.run] = it
			s.running++
			if loc := it.stages[it.key.stage].Loc; loc != s.head {
				s.dir = float64(cmp.Compare(loc, s.head))
				s.head = loc
			}
			m.out.Runs = append(m.out.Runs, Run{it.run, name, it.body, it.depth, it.key.origin})
		}
	}
}

// pickNext takes the call with the smallest value out of the queue; of equal ones the first.
func (m *Machine) pickNext(s *server) *item {
	best := 0
	if s.rule.Order != nil {
		least := 0.0
		for i, it := range s.queue {
			stage := &it.stages[it.key.stage]
			v := s.rule.Order(Waiting{
				Size: len(it.body), Weight: stage.Weight, Loc: stage.Loc, Age: m.now.Sub(it.since).Seconds(), Number: it.arrival, Head: s.head, Dir: s.dir,
			})
			if i == 0 || v < least {
				best, least = i, v
			}
		}
	}
	it := s.queue[best]
	s.queue = slices.Delete(s.queue, best, best+1)
	return it
}

// Ended takes the result of a run, or the text of its error.
func (m *Machine) Ended(now clocksync.Instant, run uint64, failed bool, body []byte) {
	m.now = now
	it := m.runs[run]
	if it == nil {
		return // It was stopped.
	}
	m.freeRun(it)
	s := m.servers[it.stages[it.key.stage].Name]
	s.served++
	s.spent += m.now.Sub(it.begun)
	m.bytes += len(body) - len(it.body)
	it.body, it.failed = body, failed
	if !failed && it.key.stage+1 < len(it.stages) {
		it.state = forwarded
		m.forwardResult(it)
	} else {
		it.state = answered
		it.pause = sendAgain / 2
		m.repeatItem(it)
	}
	m.settleOwn()
}

// SetPassive says whether the function of a run waits for something: its slot is free meanwhile.
func (m *Machine) SetPassive(now clocksync.Instant, run uint64, passive bool) {
	m.now = now
	if it := m.runs[run]; it != nil && it.passive != passive {
		it.passive = passive
		s := m.servers[it.stages[it.key.stage].Name]
		if s.running++; passive {
			s.running -= 2
		}
	}
	m.settleOwn()
}

func (m *Machine) freeRun(it *item) {
	delete(m.runs, it.run)
	if !it.passive {
		m.servers[it.stages[it.key.stage].Name].running--
	}
}

// dropItem forgets a stage of a call.
func (m *Machine) dropItem(it *item) {
	switch it.state {
	case waiting:
		s := m.servers[it.stages[it.key.stage].Name]
		s.queue = slices.DeleteFunc(s.queue, func(o *item) bool { return o == it })
	case running:
		m.freeRun(it)
		m.out.Stops = append(m.out.Stops, it.run)
	case answered, forwarded:
	}
	m.bytes -= len(it.body)
	delete(m.items, it.key)
}

// repeatItem sends an answer, or where the next stage is, or the next stage.
func (m *Machine) repeatItem(it *item) {
	it.pause = longer(it.pause)
	it.again = m.after(it.pause)
	out := Message{To: it.key.origin, Origin: it.key.origin, Number: it.key.number, Try: it.try, Stage: it.key.stage}
	switch {
	case it.state == answered:
		out.Kind, out.Failed, out.Body, out.Load = Answer, it.failed, it.body, m.servers[it.stages[it.key.stage].Name].load()
	case it.got:
		out.Kind, out.Stage, out.At = Moved, it.key.stage+1, it.to
	case it.to == (Peer{}):
		m.forwardResult(it)
		return
	default:
		out.Kind, out.To, out.Stage, out.Depth, out.Stages, out.Body = Ask, it.to, it.key.stage+1, it.depth, it.stages, it.body
	}
	m.sendMessage(out)
}

// forwardResult chooses a server for the next stage, and sends it the result.
func (m *Machine) forwardResult(it *item) {
	name := it.stages[it.key.stage+1].Name
	k := m.client(name)
	it.to, it.got, it.pause = Peer{}, false, sendAgain/2
	if m.untold > 0 {
		m.askMembers()
	}
	if p, ok := k.chooseServer(m.now, m.candidates(k), false); ok {
		it.to = p
		m.repeatItem(it)
		return
	}
	it.again = m.after(sendAgain)
	m.askMembers()
}

// forwardGot notes that the server of the next stage has it.
func (m *Machine) forwardGot(in *Message) {
	it := m.items[itemKey{in.Origin, in.Number, in.Stage - 1}]
	if it != nil && it.state == forwarded && it.to == in.From && it.try == in.Try && !it.got {
		it.got, it.pause = true, sendAgain/2
		m.repeatItem(it)
	}
}

// takeDone forgets what the origin needs no more.
func (m *Machine) takeDone(in *Message) {
	key := itemKey{in.Origin, in.Number, in.Stage}
	if in.From != in.Origin {
		return
	}
	d := m.done[in.Origin]
	if d == nil {
		d = &doneSet{tries: map[itemKey]int{}}
		m.done[in.Origin] = d
	}
	d.add(key, in.Try)
	if it := m.items[key]; it != nil && it.try <= in.Try {
		m.dropItem(it)
	}
}

// takePoll tells the origin how a call stands.
func (m *Machine) takePoll(in *Message) {
	it := m.items[itemKey{in.Origin, in.Number, in.Stage}]
	switch {
	case in.From != in.Origin:
	case it == nil || it.try < in.Try:
		m.sendMessage(Message{Kind: Gone, To: in.From, Origin: in.Origin, Number: in.Number, Try: in.Try, Stage: in.Stage})
	case it.try > in.Try:
	case it.state == answered || it.state == forwarded && it.got:
		m.repeatItem(it)
	default:
		m.moreStages(it, in)
	}
}

func (m *Machine) sortedItems() []*item {
	list := slices.Collect(maps.Values(m.items))
	slices.SortFunc(list, func(a, b *item) int { return cmp.Compare(a.arrival, b.arrival) })
	return list
}

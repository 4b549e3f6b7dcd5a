package callcore

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// call is an open call of this member.
type call struct {
	number uint64
	stages []Stage
	depth  int
	base   int    // the stage that the call begins again with
	body   []byte // its argument
	try    int
	lost   int    // servers that were lost with it
	last   string // the name of the last one
	stage  int
	at     Peer // the server; zero: it waits here
	load   Peer // the server whose count has the call; zero: none
	got    bool // the server has it
	full   map[Peer]bool
	again  clocksync.Instant
	pause  time.Duration
	more   int // calls behind it that wait for a place at its server
}

// client is what a member knows of the calls of a function.
type client struct {
	name    string // of the function
	rule    Rule
	servers []Peer // candidates, as of version
	version uint64 // of the knowledge about members
	open    int
	waiting []*call
	at      map[Peer]int // calls that this member has sent there
	credit  map[string]int
	turn    string // the server that was chosen last
	lost    uint64 // times that a server was lost with a call
	full    uint64 // times that a server refused a call
	busy    uint64 // times that a server at its upper mark did

	refused map[Peer]*refusal // servers at their upper mark
	told    map[Peer]toldLoad // with water marks
}

// Faults of the methods of a [Machine].
var (
	ErrTooMany = errors.New("too many calls of the function are open")
	ErrTooDeep = errors.New("calls are nested too deep")
	ErrEnded   = errors.New("the call has ended, or its result goes to another function already")
	ErrTooLong = errors.New("the chain has too many functions")
)

// HasRoom reports whether a call of a function can be made now.
func (m *Machine) HasRoom(name string) bool {
	return m.client(name).open < MaxOpen && m.openBytes < MaxOpenBytes
}

// Open is how many calls of this member have no outcome yet, and the bytes of their arguments.
func (m *Machine) Open() (calls, bytes int) { return len(m.calls), m.openBytes }

// StyleOf is the style of the calls of a function.
func (m *Machine) StyleOf(name string) Style { return m.client(name).rule.Style }

// Call makes a call, and returns its number. Body must not be changed afterwards. Depth is the depth of the call
// whose function makes this one, and 1 more.
func (m *Machine) Call(now clocksync.Instant, stage Stage, depth int, body []byte) (uint64, error) {
	m.now = now
	k := m.client(stage.Name)
	switch {
	case depth > MaxDepth:
		return 0, ErrTooDeep
	case !m.HasRoom(stage.Name):
		return 0, ErrTooMany
	}
	if m.untold > 0 {
		m.askMembers()
	}
	m.number++
	c := &call{number: m.number, stages: []Stage{stage}, depth: depth, body: body}
	m.calls[c.number] = c
	k.open++
	m.openBytes += len(body)
	k.waiting = append(k.waiting, c)
	if m.settleOwn(); k.waits() {
		m.askMembers()
	}
	return c.number, nil
}

// Then adds a function to an open call. The result of the call goes to it from server to server, and the outcome of
// the call is the outcome of the added function.
func (m *Machine) Then(now clocksync.Instant, number uint64, stage Stage) error {
	m.now = now
	c := m.calls[number]
	switch {
	case c == nil:
		return ErrEnded
	case len(c.stages) >= MaxStages:
		return ErrTooLong
	}
	c.stages = append(slices.Clip(c.stages), stage)
	if !m.extend(c) && c.at != (Peer{}) { // Its server learns of the function now.
		m.sendMessage(m.poll(c))
	}
	m.settleOwn()
	return nil
}

// extend changes the stages of a call that still lingers in a batch, and reports whether it does.
func (m *Machine) extend(c *call) bool {
	b := m.linger[c.at]
	if b == nil {
		return false
	}
	i := slices.IndexFunc(b.messages, func(out Message) bool { return out.Number == c.number && out.Try == c.try })
	if i >= 0 {
		b.messages[i].Stages = c.stages
	}
	return i >= 0
}

// client is the state of the calls of a function.
func (m *Machine) client(name string) *client {
	k := m.clients[name]
	if k == nil {
		k = &client{name: name, rule: m.opt.Rule(name), at: map[Peer]int{}, credit: map[string]int{}, refused: map[Peer]*refusal{}, told: map[Peer]toldLoad{}}
		m.clients[name] = k
		at, _ := slices.BinarySearchFunc(m.functions, name, func(o *client, name string) int { return cmp.Compare(o.name, name) })
		m.functions = slices.Insert(m.functions, at, k)
	}
	return k
}

// Known lists the members that serve a function, as far as this member knows, sorted.
func (m *Machine) Known(name string) (names []string) {
	for _, p := range m.candidates(m.client(name)) {
		names = append(names, p.Name)
	}
	return names
}

// candidates are the servers of a function, sorted by name. The list must not be changed.
func (m *Machine) candidates(k *client) []Peer {
	if k.version == m.version {
		return k.servers
	}
	k.servers, k.version = nil, m.version
	allowed := func(p Peer) bool { return k.rule.Replicas == nil || slices.Contains(k.rule.Replicas, p.Name) }
	for p, names := range m.serves {
		if m.peers[p] && allowed(p) && slices.Contains(names, k.name) {
			k.servers = append(k.servers, p)
		}
	}
	if m.servers[k.name] != nil && !m.away && allowed(m.opt.Self) {
		k.servers = append(k.servers, m.opt.Self)
	}
	slices.SortFunc(k.servers, comparePeers)
	return k.servers
}

// changeKnown notes a change of the peers, of their functions, or of away.
func (m *Machine) changeKnown() {
	m.version++
	m.untold = 0
	for p := range m.peers {
		if _, told := m.serves[p]; !told && p != m.opt.Self {
			m.untold++
		}
	}
}

// waits reports whether calls of the function wait for a server.
func (k *client) waits() bool { return len(k.waiting) > 0 }

// dispatchAll sends what waits.
func (m *Machine) dispatchAll() {
	for _, k := range m.functions {
		m.dispatch(k)
	}
	m.returnPlaces()
}

// dispatch sends the waiting calls of a function, as far as servers take them.
func (m *Machine) dispatch(k *client) {
	if !k.waits() || m.now < m.grace && m.untold > 0 {
		return
	}
	list := m.candidates(k)
	if len(list) == 0 {
		return
	}
	kept := k.waiting[:0]
	for i, c := range k.waiting {
		open := list
		if len(c.full) > 0 {
			open = slices.DeleteFunc(slices.Clone(list), func(p Peer) bool { return c.full[p] })
		}
		if len(open) == 0 {
			m.end(c, Outcome{Fault: Overfull, Server: c.last})
			continue
		}
		p, ok := k.chooseServer(m.now, open, true)
		if !ok && len(c.full) == 0 { // Those behind it have no more choice.
			kept = append(kept, k.waiting[i:]...)
			break
		}
		if !ok {
			kept = append(kept, c)
			continue
		}
		c.more = 0
		if r := k.refused[p]; r != nil {
			r.places--
			c.more = len(kept) + len(k.waiting) - i - 1
		}
		m.sendCall(k, c, p)
	}
	clear(k.waiting[len(kept):])
	k.waiting = kept
}

// chooseServer chooses a server. Marked: below its upper water mark.
func (k *client) chooseServer(now clocksync.Instant, list []Peer, marked bool) (Peer, bool) {
	if k.rule.Ratio != nil {
		return k.chooseByRatio(list)
	}
	if marked && k.rule.isMarked() {
		list = slices.DeleteFunc(slices.Clone(list), func(p Peer) bool { return !k.canSend(p) })
	}
	if len(list) == 0 {
		return Peer{}, false
	}
	// Servers below the lower mark come first, as they have the fewest. Of equal ones it is the turn of the next.
	best := slices.MinFunc(list, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(k.loadOf(a, now), k.loadOf(b, now)), cmp.Compare(k.passed(a), k.passed(b)), comparePeers(a, b))
	})
	k.turn = best.Name
	return best, true
}

// passed is 1 for those whose turn of this round was.
func (k *client) passed(p Peer) int {
	if p.Name <= k.turn {
		return 1
	}
	return 0
}

// chooseByRatio is a weighted round robin: each server gains its share, and the one with the most pays for all.
func (k *client) chooseByRatio(list []Peer) (best Peer, ok bool) {
	total := 0
	for _, p := range list {
		share := k.rule.Ratio[slices.Index(k.rule.Replicas, p.Name)]
		if share == 0 {
			continue
		}
		total += share
		if k.credit[p.Name] += share; !ok || k.credit[p.Name] > k.credit[best.Name] {
			best, ok = p, true
		}
	}
	if ok {
		k.credit[best.Name] -= total
	}
	return best, ok
}

func (m *Machine) sendCall(k *client, c *call, p Peer) {
	c.at, c.load, c.got, c.pause, c.again = p, p, false, sendAgain, m.after(sendAgain+k.rule.Linger)
	k.at[p]++
	if told, ok := k.told[p]; ok {
		told.calls++
		k.told[p] = told
	}
	if p == m.opt.Self || k.rule.Batch <= 1 {
		m.sendMessage(m.ask(c))
		return
	}
	b := m.linger[p]
	if b == nil {
		b = &batch{due: m.after(k.rule.Linger)}
		m.linger[p] = b
	}
	if b.messages = append(b.messages, m.ask(c)); len(b.messages) >= k.rule.Batch {
		m.sendWaiting(p)
	}
}

func (m *Machine) sendWaiting(p Peer) {
	for _, out := range m.linger[p].messages {
		if c := m.calls[out.Number]; c != nil && c.at == p && c.try == out.Try {
			m.sendMessage(out)
		}
	}
	delete(m.linger, p)
}

func (m *Machine) ask(c *call) Message {
	return Message{
		Kind: Ask, To: c.at, Origin: m.opt.Self, Number: c.number, Try: c.try, Stage: c.stage, Depth: c.depth, Stages: c.stages, Body: c.body,
		Marked: m.client(c.stages[c.stage].Name).rule.isMarked(), Load: c.more,
	}
}

func (m *Machine) poll(c *call) Message {
	return Message{Kind: Poll, To: c.at, Origin: m.opt.Self, Number: c.number, Try: c.try, Stage: c.stage, Stages: c.stages}
}

// repeatCall sends a call again, or asks about it.
func (m *Machine) repeatCall(c *call) {
	if c.got {
		c.again = m.after(pollPause)
		m.sendMessage(m.poll(c))
		return
	}
	c.pause = longer(c.pause)
	c.again = m.after(c.pause)
	m.sendMessage(m.ask(c))
}

// askMembers has the members asked that have not told what they serve.
func (m *Machine) askMembers() {
	if m.found == clocksync.MaxInstant {
		m.found, m.pause, m.grace = m.after(0), findAgain, m.after(findAgain)
	}
}

// findServers asks the members that have not told what they serve. While calls wait it also asks those that serve
// nothing: the message that a member serves again may have been lost.
func (m *Machine) findServers() {
	m.found = clocksync.MaxInstant
	if len(m.functions) == 0 {
		return
	}
	waits := slices.ContainsFunc(m.functions, (*client).waits)
	for _, p := range sortedPeers(m.peers) {
		if names, told := m.serves[p]; p != m.opt.Self && (!told || waits && len(names) == 0) {
			m.sendMessage(Message{Kind: Find, To: p})
			m.found = m.after(m.pause)
		}
	}
	m.pause = min(2*max(m.pause, findAgain), findLast)
}

// uncountCall takes a call from the count of its server.
func (m *Machine) uncountCall(c *call) {
	if c.load == (Peer{}) {
		return
	}
	at := m.client(c.stages[c.base].Name).at
	if at[c.load]--; at[c.load] <= 0 {
		delete(at, c.load)
	}
	c.load = Peer{}
}

// restartCall begins a call again, or gives it up. Counted: its server is lost.
func (m *Machine) restartCall(c *call, counted bool) {
	m.uncountCall(c)
	k := m.client(c.stages[c.base].Name)
	if counted {
		c.last = c.at.Name
		k.lost++
		if c.lost++; c.lost >= max(k.rule.Retry, 1) {
			m.end(c, Outcome{Fault: Lost, Server: c.last})
			return
		}
	}
	c.try++
	c.stage, c.at, c.got, c.full = c.base, Peer{}, false, nil
	m.requeueCall(k, c)
}

// requeueCall puts a call back among those that wait.
func (m *Machine) requeueCall(k *client, c *call) {
	m.askMembers()
	k.waiting = append(k.waiting, c)
	slices.SortFunc(k.waiting, func(a, b *call) int { return cmp.Compare(a.number, b.number) })
}

// end ends a call with its outcome.
func (m *Machine) end(c *call, o Outcome) {
	m.uncountCall(c)
	o.Number, o.Tries, o.Name = c.number, c.try+1, c.stages[c.stage].Name
	m.out.Outcomes = append(m.out.Outcomes, o)
	delete(m.calls, c.number)
	m.client(c.stages[0].Name).open--
	m.openBytes -= len(c.body)
}

func (m *Machine) takeGot(in *Message) {
	m.forwardGot(in)
	if in.Origin != m.opt.Self {
		return
	}
	if c := m.calls[in.Number]; c != nil && c.try == in.Try && c.stage == in.Stage && c.at == in.From && !c.got {
		c.got, c.again = true, m.after(pollPause)
		m.client(c.stages[c.base].Name).noteLoad(in, m.now)
		if len(c.stages) > 1 { // It may not have all of them.
			m.sendMessage(m.poll(c))
		}
	}
}

// takeFull has a call go to another server.
func (m *Machine) takeFull(in *Message) {
	if it := m.items[itemKey{in.Origin, in.Number, in.Stage - 1}]; it != nil && it.state == forwarded && it.to == in.From && it.try == in.Try {
		it.again = m.after(sendLast) // It stays here until there is a place.
	}
	c := m.calls[in.Number]
	if in.Origin != m.opt.Self || c == nil || c.try != in.Try || c.stage != in.Stage || c.at != in.From || c.got {
		return
	}
	m.uncountCall(c)
	if c.full == nil {
		c.full = map[Peer]bool{}
	}
	c.full[in.From], c.last, c.at = true, in.From.Name, Peer{}
	k := m.client(c.stages[c.base].Name)
	k.full++
	m.requeueCall(k, c)
}

// takeAnswer takes an answer once. A server that sends it again learns that it is done.
func (m *Machine) takeAnswer(in *Message) {
	if in.Origin != m.opt.Self {
		return
	}
	m.owe(Message{Kind: Done, To: in.From, Origin: in.Origin, Number: in.Number, Try: in.Try, Stage: in.Stage}, len(in.Body))
	c := m.calls[in.Number]
	if c == nil || c.try != in.Try || in.Stage < c.stage || in.Stage >= len(c.stages) || c.at == (Peer{}) {
		return
	}
	if c.at != in.From || c.stage != in.Stage {
		m.sendMessage(Message{Kind: Done, To: c.at, Origin: in.Origin, Number: in.Number, Try: c.try, Stage: c.stage})
	}
	m.client(c.stages[in.Stage].Name).noteLoad(in, m.now)
	switch c.stage = in.Stage; {
	case in.Failed:
		m.end(c, Outcome{Fault: Failed, Text: string(in.Body), Server: in.From.Name})
	case in.Stage+1 == len(c.stages):
		m.end(c, Outcome{Body: in.Body, Server: in.From.Name})
	default: // The server did not know of the next function.
		m.uncountCall(c)
		m.openBytes += len(in.Body) - len(c.body)
		c.base, c.stage, c.body, c.at, c.got, c.full = in.Stage+1, in.Stage+1, in.Body, Peer{}, false, nil
		m.requeueCall(m.client(c.stages[c.base].Name), c)
	}
}

// takeMoved follows a call to the server of its next stage.
func (m *Machine) takeMoved(in *Message) {
	if in.Origin != m.opt.Self {
		return
	}
	m.sendMessage(Message{Kind: Done, To: in.From, Origin: in.Origin, Number: in.Number, Try: in.Try, Stage: in.Stage - 1})
	c := m.calls[in.Number]
	if c == nil || c.try != in.Try || in.Stage <= c.stage || in.Stage >= len(c.stages) || c.at == (Peer{}) {
		return
	}
	m.uncountCall(c)
	c.stage, c.at, c.got, c.again = in.Stage, in.At, true, m.after(pollPause)
	if !m.peers[c.at] && c.at != m.opt.Self {
		m.restartCall(c, true)
	}
}

// takeGone has a call begin again that its server does not know.
func (m *Machine) takeGone(in *Message) {
	if it := m.items[itemKey{in.Origin, in.Number, in.Stage - 1}]; it != nil && it.state == forwarded && it.to == in.From && it.try == in.Try && !it.got {
		m.forwardResult(it)
	}
	c := m.calls[in.Number]
	if in.Origin == m.opt.Self && c != nil && c.try == in.Try && c.stage == in.Stage && c.at == in.From {
		m.restartCall(c, c.got) // A server that has not had it is not lost.
	}
}

func (m *Machine) sortedCalls() []*call {
	list := slices.Collect(maps.Values(m.calls))
	slices.SortFunc(list, func(a, b *call) int { return cmp.Compare(a.number, b.number) })
	return list
}

func comparePeers(a, b Peer) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Life, b.Life))
}

func sortedPeers[V any](of map[Peer]V) []Peer {
	return slices.SortedFunc(maps.Keys(of), comparePeers)
}

package callcore

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Water marks count the calls of all callers. A server at its upper mark answers an Ask with a Busy, and puts the caller
// in line. Once a call ends, the server keeps the place for the first caller in line and sends it a Free. The caller
// answers with an Ask, or with a Pass if it has no call left. A place whose Free is lost is kept for sendAgain only, and
// the caller tries one call after each pause. Callers of releases before send no marked Ask, and are never refused.

// refusal is what a caller keeps of a server that has refused a call at its upper mark.
type refusal struct {
	places int               // calls that may be sent there now
	again  clocksync.Instant // when one call is tried without a Free
	pause  time.Duration
}

// toldLoad is the load of a server as it told it last.
type toldLoad struct {
	calls int
	at    clocksync.Instant
}

// wish is what a server keeps of a caller that it has refused.
type wish struct {
	wanted int               // calls that wait at the caller for a place
	places int               // places that are kept for it
	until  clocksync.Instant // when the kept places end
}

// load is how many calls of all callers wait or run here. A call that waits for another one has no slot, and no place.
func (s *server) load() int { return len(s.queue) + s.running }

// isMarked reports whether the calls of a function wait for places.
func (r *Rule) isMarked() bool { return r.Style == Demand && r.High > 0 }

// takePlace reports whether a call can stay at the server. If it cannot, its caller is in line.
func (s *server) takePlace(in *Message) bool {
	if !in.Marked || !s.rule.isMarked() || in.From != in.Origin {
		return true
	}
	w := s.wishes[in.Origin]
	own, wanted, more := 0, 0, min(in.Load, MaxOpen)
	if w != nil {
		own, wanted = w.places, w.wanted
	}
	taken := s.load()+s.kept-own < s.rule.High
	switch {
	case !taken:
		more++
	case own > 0:
		w.places--
		s.kept--
	}
	s.setWanted(in.Origin, max(wanted, more)) // A Pass lowers it.
	return taken
}

// setWanted puts a caller in line for places, or takes it out of the line.
func (s *server) setWanted(p Peer, wanted int) {
	w := s.wishes[p]
	if w == nil {
		if wanted == 0 {
			return
		}
		w = &wish{}
		s.wishes[p] = w
	}
	switch {
	case wanted > 0 && w.wanted == 0:
		s.line = append(s.line, p)
	case wanted == 0 && w.wanted > 0:
		s.line = slices.DeleteFunc(s.line, func(o Peer) bool { return o == p })
	}
	if w.wanted = wanted; wanted+w.places == 0 {
		delete(s.wishes, p)
	}
}

// dropPlaces frees the places that are kept for a caller.
func (s *server) dropPlaces(p Peer) {
	if w := s.wishes[p]; w != nil {
		s.kept -= w.places
		w.places = 0
		s.setWanted(p, w.wanted)
	}
}

// forgetCaller takes a caller out of the line, and frees its places.
func (s *server) forgetCaller(p Peer) {
	s.dropPlaces(p)
	s.setWanted(p, 0)
}

// grantPlaces keeps the free places of each function for the callers in line, one by one, and tells them.
func (m *Machine) grantPlaces() {
	for _, name := range m.served {
		if s := m.servers[name]; len(s.line) > 0 && !m.away {
			m.grantPlacesOf(name, s)
		}
	}
}

func (m *Machine) grantPlacesOf(name string, s *server) {
	granted := map[Peer]int{}
	for len(s.line) > 0 && s.load()+s.kept < s.rule.High {
		p := s.line[0]
		s.line = s.line[1:]
		w := s.wishes[p]
		w.places++
		s.kept++
		if w.wanted--; w.wanted > 0 {
			s.line = append(s.line, p)
		}
		w.until = m.after(sendAgain)
		granted[p]++
	}
	for _, p := range sortedPeers(granted) {
		m.sendMessage(Message{Kind: Free, To: p, Origin: p, Load: granted[p], Names: []string{name}})
	}
}

// endPlaces frees the places whose callers have sent nothing.
func (m *Machine) endPlaces() {
	for _, name := range m.served {
		s := m.servers[name]
		for _, p := range sortedPeers(s.wishes) {
			if w := s.wishes[p]; w.places > 0 && w.until <= m.now {
				s.dropPlaces(p)
			}
		}
	}
}

// takePass frees the places that a caller does not need.
func (m *Machine) takePass(in *Message) {
	for _, name := range in.Names {
		if s := m.servers[name]; s != nil {
			s.forgetCaller(in.From)
		}
	}
}

// takeBusy has a call wait until the server has a place, or go to another server.
func (m *Machine) takeBusy(in *Message) {
	c := m.calls[in.Number]
	if in.Origin != m.opt.Self || c == nil || c.try != in.Try || c.stage != in.Stage || c.at != in.From || c.got {
		return
	}
	m.uncountCall(c)
	c.at = Peer{}
	k := m.client(c.stages[c.base].Name)
	k.noteLoad(in, m.now)
	k.busy++
	if k.refused[in.From] == nil {
		k.refused[in.From] = &refusal{again: m.after(sendAgain), pause: sendAgain}
	}
	m.requeueCall(k, c)
}

// takeFree has calls go to a server that keeps places for them.
func (m *Machine) takeFree(in *Message) {
	for _, name := range in.Names {
		var r *refusal
		if k := m.clients[name]; k != nil {
			r = k.refused[in.From]
		}
		if r == nil {
			m.sendMessage(Message{Kind: Pass, To: in.From, Origin: m.opt.Self, Names: []string{name}})
			continue
		}
		r.places, r.pause, r.again = min(in.Load, MaxOpen), sendAgain, m.after(sendAgain)
	}
}

// returnPlaces gives the places back that no call has taken.
func (m *Machine) returnPlaces() {
	for _, k := range m.functions {
		if len(k.refused) == 0 {
			continue
		}
		for _, p := range sortedPeers(k.refused) {
			r := k.refused[p]
			if r.places > 0 {
				r.places = 0
				m.sendMessage(Message{Kind: Pass, To: p, Origin: m.opt.Self, Names: []string{k.name}})
			}
			if len(k.waiting) == 0 {
				delete(k.refused, p)
			}
		}
	}
}

// retryRefused has one call tried at each server that has sent no Free for a while.
func (m *Machine) retryRefused() {
	for _, k := range m.functions {
		for _, r := range k.refused {
			if r.again <= m.now {
				r.places, r.pause = 1, longer(r.pause)
				r.again = m.after(r.pause)
			}
		}
	}
}

// forgetMarks forgets what a lost member had to do with water marks.
func (m *Machine) forgetMarks(p Peer) {
	for _, k := range m.functions {
		delete(k.refused, p)
		delete(k.told, p)
	}
	for _, s := range m.servers {
		s.forgetCaller(p)
	}
}

// wakeMarks is when a place ends, or a call is tried at a server that has refused one.
func (m *Machine) wakeMarks(wake clocksync.Instant) clocksync.Instant {
	for _, k := range m.functions {
		for _, r := range k.refused {
			wake = min(wake, r.again)
		}
	}
	for _, s := range m.servers {
		for _, w := range s.wishes {
			if w.places > 0 {
				wake = min(wake, w.until)
			}
		}
	}
	return wake
}

// noteLoad keeps the load that a server tells.
func (k *client) noteLoad(in *Message, now clocksync.Instant) {
	if k.rule.Style == Demand && in.Load > 0 {
		k.told[in.From] = toldLoad{min(in.Load, MaxHeld), now}
	}
}

// loadOf is how many calls a server has, as far as this member knows.
func (k *client) loadOf(p Peer, now clocksync.Instant) int {
	if told, ok := k.told[p]; ok && now.Sub(told.at) < pollPause {
		return max(k.at[p], told.calls)
	}
	return k.at[p]
}

// canSend reports whether a call may go to a server below its upper mark.
func (k *client) canSend(p Peer) bool {
	if r := k.refused[p]; r != nil {
		return r.places > 0
	}
	return k.at[p] < k.rule.High
}

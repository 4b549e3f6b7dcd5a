package datacore

import "github.com/gopegasus/pegasus/clocksync"

// rest finds out that no member writes data any more. It asks all others twice. If all are at rest both times, and none
// has worked in between, there was an instant at which all were at rest.
type rest struct {
	rests  bool   // this member is at rest
	waits  bool   // tasks of this member wait for data
	turns  uint64 // how often this member was not at rest
	round  uint64 // the number of the last question
	again  clocksync.Instant
	heard  map[Peer]uint64 // answers to it: turns
	before map[Peer]uint64 // answers of all to the question before; nil: they were not all at rest
	own    uint64          // turns of this member at the first question
}

// SetRest tells whether this member is at rest: its program waits for the end of the phase, and no task of it or of
// another member is here that may run. Waits: tasks of its account wait for data that are not written.
func (m *Member) SetRest(now clocksync.Instant, rests, waits bool, out *Output) {
	r := &m.rest
	if !rests {
		r.turns++
	}
	began := rests && waits && (!r.rests || !r.waits)
	if r.rests, r.waits = rests, waits; began {
		r.before, r.heard, r.again = nil, nil, now.Add(resend)
	}
	m.askRest(now, out)
}

// confirmed reports whether all others have the list of this member.
func (m *Member) confirmed() bool {
	for _, p := range m.peers {
		if p.confirmed < m.seq {
			return false
		}
	}
	return true
}

func (m *Member) askRest(now clocksync.Instant, out *Output) {
	r := &m.rest
	if !r.rests || !r.waits || now < r.again {
		return
	}
	r.round++
	r.again, r.heard = now.Add(resend), map[Peer]uint64{}
	if r.before == nil {
		r.own = r.turns
	}
	if !m.confirmed() {
		r.before = nil
		return
	}
	for _, p := range m.roster {
		m.sendMessage(p, Message{Kind: Ask, Round: r.round}, out)
	}
	m.judgeRest(out)
}

func (m *Member) wakeRest() clocksync.Instant {
	if m.rest.rests && m.rest.waits {
		return m.rest.again
	}
	return clocksync.MaxInstant
}

func (m *Member) takeRest(from Peer, message *Message, out *Output) {
	r := &m.rest
	if message.Kind == Ask {
		m.sendMessage(from, Message{Kind: Answer, Round: message.Round, Turns: r.turns, Rests: r.rests && m.confirmed()}, out)
		return
	}
	if message.Round != r.round || r.heard == nil {
		return
	}
	if !message.Rests {
		r.before, r.heard = nil, nil
		return
	}
	r.heard[from] = message.Turns
	m.judgeRest(out)
}

// judgeRest looks whether all others have answered.
func (m *Member) judgeRest(out *Output) {
	r := &m.rest
	if len(r.heard) < len(m.roster) {
		return
	}
	same := r.before != nil && r.own == r.turns
	for p, turns := range r.heard {
		before, asked := r.before[p]
		same = same && asked && before == turns
	}
	if r.before, r.heard = r.heard, nil; same {
		r.before = nil
		out.Hopeless = true
	} else {
		r.own = r.turns
	}
}

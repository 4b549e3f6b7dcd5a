package datacore

import "github.com/gopegasus/pegasus/clocksync"

// search is for data that tasks here read, and that no member has as far as this one knows. The lists of others may be
// late, so it asks all of them.
type search struct {
	again clocksync.Instant
	none  map[Peer]bool // members that do not have the data
}

// isNowhere reports whether all other members have said that they do not have data.
func (m *Member) isNowhere(d *datum) bool {
	if d.search == nil || len(d.copies) > 0 {
		return false
	}
	for _, p := range m.roster {
		if !d.search.none[p] {
			return false
		}
	}
	return true
}

// searchFor asks all others for data, if that is due.
func (m *Member) searchFor(now clocksync.Instant, d *datum, out *Output) {
	if d.here || d.conflict != "" || len(d.copies) > 0 || m.isNowhere(d) {
		return
	}
	if d.search == nil {
		d.search = &search{now, map[Peer]bool{}}
	}
	if now < d.search.again {
		return
	}
	d.search.again = now.Add(resend)
	for _, p := range m.roster {
		if !d.search.none[p] {
			m.sendMessage(p, Message{Kind: Find, Name: d.name}, out)
		}
	}
	out.Changed = out.Changed || len(m.roster) == 0
}

// noteLacks records that a member does not have data.
func (m *Member) noteLacks(d *datum, from Peer) {
	if d.copies[from] != Dropped {
		delete(d.copies, from)
		m.peers[from].names--
	}
}

// answerFind tells a member whether the data are here. While they are on their way here there is no answer yet.
func (m *Member) answerFind(from Peer, message *Message, out *Output) {
	e := Entry{Name: message.Name}
	if d := m.data[message.Name]; d != nil {
		m.noteLacks(d, from)
		if d.fetch != nil && !d.fetch.idle {
			return
		}
		if d.here {
			e.State, e.Size, e.Digest = d.state, d.size, d.digest
		}
	}
	m.sendMessage(from, Message{Kind: Found, Entries: []Entry{e}}, out)
}

func (m *Member) takeFound(now clocksync.Instant, from Peer, p *peer, e *Entry, out *Output) {
	d := m.data[e.Name]
	if d == nil || d.search == nil {
		return // It is late.
	}
	if e.State != Dropped {
		if !m.takeEntry(from, p, e, out) {
			m.counts.Refused++
		}
		m.fillFetches(now, out)
		return
	}
	d.search.none[from] = true
	out.Changed = out.Changed || m.isNowhere(d)
}

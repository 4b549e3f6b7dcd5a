package datacore

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

const (
	// maxFetches is how many data are fetched at a time.
	maxFetches = 4
	// giveUp is after how many requests without a piece another member is asked.
	giveUp = 5
	// maxDamaged is after how many pieces of a wrong place or length the copy of a member counts as damaged.
	maxDamaged = 3
)

// fetch is data on their way here.
type fetch struct {
	of    *datum
	from  Peer
	data  []byte // nil: no piece is here
	has   []bool // by piece
	wrong int    // pieces of this member with a wrong place or length
	at    int    // the first piece that is missing
	asked int    // pieces up to here were asked for
	tries int    // since the last piece
	idle  bool   // a member has not answered since the last piece
	again clocksync.Instant
	tried map[Peer]bool // members that did not answer
	sum   hash.Hash     // of the pieces before at
}

// Plan takes what the tasks here read: those that run, and those that wait, the next one first. Each list of names is
// sorted. The member fetches data for the first classes that fit into the cache.
func (m *Member) Plan(now clocksync.Instant, running, waiting [][]string, out *Output) {
	before := len(m.active)
	old := m.active
	m.active = make(map[string]bool, before)
	for _, d := range m.plan {
		d.needed = false
	}
	m.plan = m.plan[:0]
	bytes := 0
	for _, reads := range running {
		if key := m.classOf(reads); !m.active[string(key)] {
			m.active[string(key)] = true
			bytes += m.need(reads)
		}
	}
	for _, reads := range waiting {
		if m.active[string(m.classOf(reads))] || m.Fault(reads) != "" {
			continue
		}
		if m.opts.Classes > 0 && len(m.active) >= m.opts.Classes || bytes+m.missing(reads) > m.opts.Cache {
			break
		}
		m.active[string(m.classOf(reads))] = true
		bytes += m.need(reads)
	}
	for _, f := range slices.Clone(m.open) {
		if !f.of.needed {
			m.endFetch(f)
		}
	}
	m.fillFetches(now, out)
	m.sendLists(now, out)
	if len(m.active) != before {
		out.Changed = true
		return
	}
	for key := range m.active {
		out.Changed = out.Changed || !old[key]
	}
}

// classOf is the class of the tasks that read these names. It is overwritten by the next call.
func (m *Member) classOf(reads []string) []byte {
	m.key = m.key[:0]
	for _, name := range reads {
		m.key = append(append(m.key, byte(len(name))), name...)
	}
	return m.key
}

// missing is how many bytes of the cache the names take that no task before reads.
func (m *Member) missing(reads []string) (bytes int) {
	for _, name := range reads {
		if d := m.data[name]; d != nil && !d.own && !d.needed {
			bytes += d.size
		}
	}
	return bytes
}

// need marks names as read by a task here, and returns how many bytes of the cache they take.
func (m *Member) need(reads []string) int {
	bytes := m.missing(reads)
	for _, name := range reads {
		if d := m.datumOf(name); !d.needed {
			m.used++
			d.needed, d.used = true, m.used
			m.plan = append(m.plan, d)
		}
	}
	return bytes
}

// Ready reports whether a task that reads these names may start: all of them are here, or one of them never will be.
func (m *Member) Ready(reads []string) bool {
	if m.active[string(m.classOf(reads))] {
		here := true
		for _, name := range reads {
			d := m.data[name]
			here = here && d != nil && d.here && d.conflict == ""
		}
		if here {
			return true
		}
	}
	return m.Fault(reads) != ""
}

// Fault says why a task that reads these names cannot run; empty: it can, once they are here.
func (m *Member) Fault(reads []string) string {
	for _, name := range reads {
		if d := m.data[name]; d != nil {
			if why := m.faultOf(d); why != "" {
				return why
			}
		}
	}
	sum := 0
	for _, name := range reads {
		if d := m.data[name]; d != nil && !d.own {
			sum += d.size
		}
	}
	if sum > m.opts.Cache {
		return m.TooLarge(reads)
	}
	return ""
}

func (m *Member) faultOf(d *datum) string {
	switch {
	case d.conflict != "":
		return d.conflict
	case d.here:
		return ""
	case m.isNowhere(d):
		return fmt.Sprintf("data %q: no member that has them is left: write them again, and put the tasks that read them again", d.name)
	}
	for p := range d.copies {
		if !d.bad[p] {
			return ""
		}
	}
	if len(d.copies) == 0 {
		return ""
	}
	return fmt.Sprintf("data %q: what the members that have them send has another digest than %x: write them again under another name", d.name, d.digest[:8])
}

// fillFetches begins fetches of data that tasks here read.
func (m *Member) fillFetches(now clocksync.Instant, out *Output) {
	for _, d := range m.plan {
		if m.searchFor(now, d, out); len(m.open) == maxFetches {
			continue
		}
		if d.here || len(d.copies) == 0 || d.fetch != nil || !d.known || m.faultOf(d) != "" {
			continue
		}
		if d.seq == 0 && m.listed == MaxNames || !m.makeRoom(d.size) {
			continue
		}
		m.cached += d.size
		d.fetch = &fetch{of: d, has: make([]bool, (d.size+m.opts.Piece-1)/m.opts.Piece), tried: map[Peer]bool{}, sum: sha256.New()}
		m.open = append(m.open, d.fetch)
		if d.size == 0 {
			m.finishFetch(d.fetch, out)
			continue
		}
		m.askNext(now, d.fetch, out)
	}
}

// makeRoom drops data that no task here reads, the least recently used first, until bytes fit into the cache.
func (m *Member) makeRoom(bytes int) bool {
	if m.cached+bytes <= m.opts.Cache {
		return true
	}
	list := m.sortedCopies()
	slices.SortStableFunc(list, func(a, b *datum) int {
		if a.used < b.used {
			return -1
		}
		return 1
	})
	for _, d := range list {
		if m.cached+bytes <= m.opts.Cache {
			break
		}
		if !d.needed {
			m.cached -= d.size
			d.data, d.here = nil, false
			m.counts.Evicted++
			m.appendEntry(d, Dropped)
		}
	}
	return m.cached+bytes <= m.opts.Cache
}

// endFetch forgets a fetch.
func (m *Member) endFetch(f *fetch) {
	m.cached -= f.of.size
	f.of.fetch = nil
	m.open = slices.DeleteFunc(m.open, func(o *fetch) bool { return o == f })
}

// askNext asks the next member for data. With none left that has them the fetch ends.
func (m *Member) askNext(now clocksync.Instant, f *fetch, out *Output) {
	from, ok := m.holder(f)
	if !ok && len(f.tried) > 0 {
		clear(f.tried)
		from, ok = m.holder(f)
	}
	if !ok {
		m.endFetch(f)
		out.Changed = true
		return
	}
	f.from, f.asked, f.tries, f.wrong = from, f.at, 0, 0
	m.ask(now, f, out)
}

// holder is the member to fetch from: of those that have the data, the one with the fewest fetches of this member, and the store last. Which
// of several it is differs from member to member.
func (m *Member) holder(f *fetch) (best Peer, ok bool) {
	least, rank := 0, uint64(0)
	for _, p := range m.roster {
		if f.of.copies[p] == Dropped || f.of.bad[p] || f.tried[p] {
			continue
		}
		load := 0
		if p == m.opts.Store {
			load = maxFetches // More than any other one has.
		}
		for _, o := range m.open {
			if o != f && o.from == p {
				load++
			}
		}
		h := fnv.New64a()
		for _, text := range []string{m.opts.Self.Name, p.Name, f.of.name} {
			_, _ = h.Write(append([]byte(text), 0))
		}
		if r := h.Sum64(); !ok || load < least || load == least && r < rank {
			best, least, rank, ok = p, load, r, true
		}
	}
	return best, ok
}

// ask asks for the next pieces that were not asked for.
func (m *Member) ask(now clocksync.Instant, f *fetch, out *Output) {
	first := max(f.at, f.asked)
	f.asked = min(f.at+window, len(f.has))
	f.again = now.Add(min(m.patience<<f.tries, maxPatience))
	if first < f.asked {
		m.sendMessage(f.from, Message{Kind: Want, Name: f.of.name, Digest: f.of.digest, At: first * m.opts.Piece, Count: f.asked - first}, out)
	}
}

// takePiece takes what a member answers that was asked for data.
func (m *Member) takePiece(now clocksync.Instant, from Peer, message *Message, out *Output) {
	d := m.data[message.Name]
	if d == nil || d.fetch == nil || d.fetch.from != from {
		if message.Kind == Piece {
			m.slowDown()
		}
		return // It is late.
	}
	f := d.fetch
	if message.Kind == Gone { // Its list says so soon.
		m.noteLacks(d, from)
		m.askNext(now, f, out)
		m.fillFetches(now, out)
		return
	}
	place := message.At / m.opts.Piece
	switch {
	case message.At%m.opts.Piece != 0 || message.At >= d.size || len(message.Data) != min(m.opts.Piece, d.size-message.At):
		m.counts.Refused++
		if f.wrong++; f.wrong >= maxDamaged {
			m.counts.Damaged++
			d.bad[from] = true
			m.askNext(now, f, out)
			m.fillFetches(now, out)
		}
		return
	case f.has[place]:
		m.slowDown()
		return
	}
	m.speedUp()
	if f.data == nil {
		f.data = make([]byte, d.size)
	}
	copy(f.data[message.At:], message.Data)
	for f.has[place] = true; f.at < len(f.has) && f.has[f.at]; f.at++ {
		_, _ = f.sum.Write(f.data[f.at*m.opts.Piece : min((f.at+1)*m.opts.Piece, d.size)])
	}
	f.tries, f.idle, f.again = 0, false, now.Add(m.patience)
	switch {
	case f.at == len(f.has):
		m.finishFetch(f, out)
		m.fillFetches(now, out)
		m.sendLists(now, out)
	case f.asked-f.at <= window/2:
		m.ask(now, f, out)
	}
}

// finishFetch checks the digest of data that are here whole.
func (m *Member) finishFetch(f *fetch, out *Output) {
	d := f.of
	m.endFetch(f)
	out.Changed = true
	if Digest(f.sum.Sum(nil)) != d.digest {
		m.counts.Damaged++
		d.bad[f.from] = true // Another member may send the same data whole.
		return
	}
	m.cached += d.size
	d.data, d.here = f.data, true
	m.counts.Fetched++
	m.counts.Bytes += uint64(d.size) //nolint:gosec // It is not negative.
	m.appendEntry(d, Holds)
	m.inheritData(d)
}

func (m *Member) repeatFetches(now clocksync.Instant, out *Output) {
	for _, f := range slices.Clone(m.open) {
		if f.again > now {
			continue
		}
		if f.tries++; f.tries < giveUp {
			f.asked = f.at
			m.ask(now, f, out)
			continue
		}
		f.tried[f.from], f.idle = true, true
		m.askNext(now, f, out)
	}
	m.fillFetches(now, out)
}

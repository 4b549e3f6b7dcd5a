package agentcore

import "github.com/gopegasus/pegasus/internal/wire"

// Roster puts together what a synchronizer with a section work tells of its members. The zero
// Roster has been told nothing.
type Roster struct {
	synchronizer  string
	term, version uint64 // of the roster being put together, or whole
	whole         bool
	next          wire.Peers // being put together

	// Told is the newest roster that is whole; Epoch 0: there was none.
	Told wire.Peers
	// Section is the newest section, as JSON, and Hash the hash of its text; 0: there is none.
	Section []byte
	Hash    uint64
}

// Take takes a frame, and reports what it has changed, and whether something is missing: then
// the member has to say hello, which is answered with all there is.
func (r *Roster) Take(p *wire.Peers) (roster, section, lacks bool) {
	same := p.Synchronizer == r.synchronizer
	if same && (p.Term < r.term || p.Term == r.term && p.Version < r.version) {
		return false, false, false
	}
	if !same || p.Term != r.term || p.Version != r.version {
		r.synchronizer, r.term, r.version, r.whole = p.Synchronizer, p.Term, p.Version, false
		r.next = *p
		r.next.Section, r.next.Peers = nil, make([]wire.Peer, 0, len(p.Peers))
	}
	if len(p.Section) > 0 && p.SectionHash != r.Hash {
		r.Section, r.Hash, section = p.Section, p.SectionHash, true
	}
	if p.SectionHash == 0 && r.Hash != 0 {
		r.Section, r.Hash, section = nil, 0, true
	}
	got := uint64(len(r.next.Peers))
	if !r.whole && p.First <= got {
		if n := uint64(len(p.Peers)); p.First+n > got { // Else it is a copy.
			r.next.Peers = append(r.next.Peers, p.Peers[got-p.First:]...)
		}
		if r.whole = uint64(len(r.next.Peers)) == r.next.Total; r.whole && p.Epoch > 0 {
			r.Told, roster = r.next, true
		}
	}
	piece := len(p.Peers) > 0 && p.First+uint64(len(p.Peers)) < p.Total // Others follow it.
	return roster, section, p.SectionHash != r.Hash || !r.whole && (!piece || p.First > got)
}

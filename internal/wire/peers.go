package wire

// Peers names the members of the epoch, to members whose synchronizer has a section work: in as
// many frames as it takes, each with the peers from First on. A frame without any, while Total is
// above First, has no piece of the roster and says which one is current.
type Peers struct {
	Synchronizer string // the sender
	Term         uint64 // of the sender
	Version      uint64 // of the roster: in a term, a later one is greater; at least 1
	Member       string // the receiver; empty: all members of the group
	Epoch        uint64 // that the roster is of
	Phase        uint64 // that the members are in, at least 1
	SectionHash  uint64 // of the section work; 0: there is none any more
	Section      []byte // as JSON, only with First 0; empty: the receiver has it, or asks
	Total        uint64 // how many peers there are, at most [MaxListed]
	First        uint64 // of the peers in this frame, by its place in the roster, from 0
	Peers        []Peer // by name
}

// Peer is one life of a member: of a single process, also if that was dropped and came back.
type Peer struct {
	Name string // of the member
	Life uint64 // the first incarnation of that process
}

// layout of Peers returns how many of them the frame holds.
func (m *Peers) layout(c *coder) int {
	c.codeToken("synchronizer", &m.Synchronizer)
	c.codeUint("term", &m.Term)
	c.codeUint("version", &m.Version)
	c.needTrue(m.Version > 0, "version", "the version is 0: versions count from 1")
	c.codeText("member", &m.Member, MaxTokenBytes)
	c.needTrue(m.Member == "" || isToken(m.Member), "member", tokenRule)
	c.codeUint("epoch", &m.Epoch)
	c.codeUint("phase", &m.Phase)
	c.needTrue(m.Phase > 0, "phase", "the phase is 0: phases count from 1")
	c.codeUint("total", &m.Total)
	c.needTrue(m.Total <= MaxListed, "total", "the total is above 65536")
	c.codeUint("first", &m.First)
	c.codeUint("section hash", &m.SectionHash)
	c.codeBlob("section", &m.Section, MaxWork)
	c.needTrue(len(m.Section) == 0 || m.First == 0 && m.SectionHash > 0, "section", "the section has no hash, or is not with the first peers")
	n := 0
	if c.writing {
		n = c.fitItems("peers", len(m.Peers), MaxListed, MaxFrameBytes-MaxPart, func(i int) { c.peer(&m.Peers[i]) })
	} else {
		list(c, "peers", &m.Peers, MaxListed, 2, c.peer)
		n = len(m.Peers)
	}
	c.needTrue(m.First <= m.Total && uint64(len(m.Peers)) <= m.Total-m.First, "peers", "the peers end behind the roster")
	for i := 1; i < n; i++ {
		c.needTrue(m.Peers[i-1].Name < m.Peers[i].Name, "peers", "the peers are not in the order of their names")
	}
	return n
}

func (c *coder) peer(p *Peer) {
	c.codeToken("name", &p.Name)
	c.codeUint("life", &p.Life)
	c.needTrue(p.Life < MaxIncarnation, "life", "the life is 2^62 or more")
}

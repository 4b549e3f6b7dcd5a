package program

import (
	"cmp"
	"fmt"
	"slices"
)

// host is a node that was there at some time.
type host struct {
	Node
	present  bool
	load     int // cores in use, one at least for each block
	reserved int // of these, by blocks whose processor reserves
	blocks   chain
}

// proc is a logical processor.
type proc struct {
	want   *Processor
	bound  []int32 // hosts
	mapped bool    // as many nodes as it wants have been there
	queue  chain   // blocks that wait for a node
}

func (p *proc) fitsHost(h *host) bool {
	return h.present && h.Cores >= p.want.Cores && !slices.ContainsFunc(p.want.Labels, func(l string) bool {
		return !slices.Contains(h.Labels, l)
	})
}

func (p *proc) full() bool { return p.want.Count > 0 && len(p.bound) >= p.want.Count }

// can reports whether the code of a block on a node has threads exactly if the block
// has.
func (h *host) can(b *Block) bool { return slices.Contains(h.Threaded, b.Name) == (b.Threads > 0) }

// attemptBlock starts a block once more, or lets it wait for a node.
func (r *Run) attemptBlock(f int32) {
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	if x.id.Instance == 0 {
		r.instances++
		x.id.Instance = r.instances
		if _, why := r.resolveInput(f, n); why != "" {
			r.giveUp(f, why)
			return
		}
	}
	x.id.Attempt++
	if why := r.unable(f); why != "" {
		r.giveUp(f, why)
		return
	}
	p := &r.procs[n.proc]
	if p.queue == none {
		if on := r.choose(f); on >= 0 {
			r.put(f, on)
			return
		}
	}
	x.state = queued
	p.queue.pushLink(r.onHost, f)
	r.queued++
}

// giveUp ends a block as failed. It is on no node and does not wait for one.
func (r *Run) giveUp(f int32, why string) {
	x := &r.frames[f]
	x.state, x.cause, x.reason = stopping, Failed, why
	r.concludeConstruct(f)
}

// unable says why none of the nodes that a block's processor is mapped to can run
// it; it is empty if one can, or there is none.
func (r *Run) unable(f int32) string {
	n := &r.compiled.nodes[r.frames[f].node]
	b, p := &r.compiled.program.Blocks[n.block], &r.procs[n.proc]
	if !p.mapped || len(p.bound) == 0 {
		return ""
	}
	for _, h := range p.bound {
		if r.hosts[h].can(b) {
			return ""
		}
	}
	where := "node " + r.hosts[p.bound[0]].Name
	if more := len(p.bound) - 1; more > 0 {
		where += fmt.Sprintf(" and %d more", more)
	}
	if b.Threads > 0 {
		return fmt.Sprintf("block %q has %d threads, and its code on %s has none: an executable cannot have them, and a Go node needs agent.ThreadBlock; keep it off other nodes by a label", b.Name, b.Threads, where)
	}
	return fmt.Sprintf("block %q has no threads, and its code on %s is for threads: declare threads: N for it", b.Name, where)
}

// Waiting is how many blocks wait for a node.
func (r *Run) Waiting() int { return r.queued }

// dequeueBlock takes out a block that waits for a node.
func (r *Run) dequeueBlock(f int32) {
	r.procs[r.compiled.nodes[r.frames[f].node].proc].queue.removeLink(r.onHost, f)
	r.queued--
}

// tried is 2 for a node on which a block has failed, 1 for another part of what such a
// node is a part of, and 0 for others.
func (r *Run) tried(x *frame, h int32) int {
	most, of := 0, r.hosts[h].Of
	for _, t := range x.tried {
		if t == h {
			return 2
		}
		if of != "" && r.hosts[t].Of == of {
			most = 1
		}
	}
	return most
}

// choose finds the least loaded node of a block's processor, one on which it has
// failed only if there is no other, and -1 if none is free.
func (r *Run) choose(f int32) int32 {
	x := &r.frames[f]
	p := &r.procs[r.compiled.nodes[x.node].proc]
	best, again := int32(-1), 0
	if !p.mapped {
		return best
	}
	for _, h := range p.bound {
		a := &r.hosts[h]
		if p.want.Cores > a.Cores-a.reserved || a.Alone && a.load > 0 || !a.can(&r.compiled.program.Blocks[r.compiled.nodes[x.node].block]) {
			continue
		}
		tried := r.tried(x, h)
		if best >= 0 {
			b := &r.hosts[best]
			if tried > again || tried == again && a.load*b.Cores >= b.load*a.Cores {
				continue
			}
		}
		best, again = h, tried
	}
	return best
}

// put starts a block on a node.
func (r *Run) put(f, on int32) {
	x := &r.frames[f]
	p, h := &r.procs[r.compiled.nodes[x.node].proc], &r.hosts[on]
	h.load += max(1, p.want.Cores)
	h.reserved += p.want.Cores
	x.state, x.host = running, on
	h.blocks.pushLink(r.onHost, f)
	r.blocks[x.id.Instance] = f
	input, _ := r.resolveInput(f, &r.compiled.nodes[x.node])
	a := r.addAction(ActStart, f)
	a.Block, a.Node, a.Input = x.id, r.hosts[x.host].Name, input
}

// leaveNode takes a block off its node.
func (r *Run) leaveNode(f int32) {
	x := &r.frames[f]
	h, p := &r.hosts[x.host], &r.procs[r.compiled.nodes[x.node].proc]
	h.load -= max(1, p.want.Cores)
	h.reserved -= p.want.Cores
	h.blocks.removeLink(r.onHost, f)
	delete(r.blocks, x.id.Instance)
	r.freed = true
}

// attemptFailed tries a block again, or ends it as failed. It is off its node.
func (r *Run) attemptFailed(f int32, reason string) {
	x := &r.frames[f]
	n := &r.compiled.nodes[x.node]
	switch {
	case x.state == stopping:
		r.concludeConstruct(f)
	case x.id.Attempt <= uint32(n.retry):
		if !slices.Contains(x.tried, x.host) {
			x.tried = append(x.tried, x.host)
		}
		r.attemptBlock(f)
	default:
		r.giveUp(f, reason)
	}
}

// placeWaiting starts what waits for nodes, if some may have become free. What waits
// for one processor is served in order.
func (r *Run) placeWaiting() {
	for r.freed {
		r.freed = false
		for i := range r.procs {
			for p := &r.procs[i]; p.queue != none; {
				f := p.queue.first
				if why := r.unable(f); why != "" {
					r.dequeueBlock(f)
					r.giveUp(f, why)
					r.settleEnded()
					continue
				}
				on := r.choose(f)
				if on < 0 {
					break
				}
				r.dequeueBlock(f)
				r.put(f, on)
			}
		}
	}
}

func (r *Run) joinNode(in *Input) {
	h, known := r.byName[in.Node.Name]
	switch {
	case in.Node.Name == "" || in.Node.Cores < 1:
		r.refuseInput(in, "a node has a name and at least one core")
		return
	case known && r.hosts[h].present:
		r.refuseInput(in, "the node is here already")
		return
	case !known:
		h = int32(len(r.hosts))
		r.byName[in.Node.Name] = h
		r.hosts = append(r.hosts, host{blocks: none})
	}
	x := &r.hosts[h]
	x.Node, x.present = in.Node, true
	x.Labels, x.Threaded = slices.Clone(in.Node.Labels), slices.Clone(in.Node.Threaded)
	for i := range r.procs {
		r.bind(&r.procs[i], h)
	}
	r.freed = true
}

func (r *Run) bind(p *proc, h int32) {
	if p.full() || !p.fitsHost(&r.hosts[h]) || slices.Contains(p.bound, h) {
		return
	}
	p.bound = append(p.bound, h)
	p.mapped = p.mapped || len(p.bound) >= max(1, p.want.Count)
}

// removeNode takes a node that is lost from the processors.
func (r *Run) removeNode(name string) {
	h, known := r.byName[name]
	if !known || !r.hosts[h].present {
		return
	}
	r.leaving, r.hosts[h].present = h, false
	for i := range r.procs {
		p := &r.procs[i]
		at := slices.Index(p.bound, h)
		if at < 0 {
			continue
		}
		p.bound = slices.Delete(p.bound, at, at+1)
		for spare := range r.hosts {
			r.bind(p, int32(spare))
		}
	}
}

// giveUpNode gives up what runs on the node that is lost.
func (r *Run) giveUpNode(in *Input) {
	h := r.leaving
	if h < 0 {
		r.refuseInput(in, "the node is not here")
		return
	}
	reason := "its node " + in.Node.Name + " was lost"
	for f := r.hosts[h].blocks.first; f >= 0; f = r.hosts[h].blocks.first {
		r.leaveNode(f)
		r.attemptFailed(f, reason)
		r.settleEnded() // What that ends is not tried again elsewhere.
	}
	r.freed = true
}

// BlockStatus is what a block of a run is doing.
type BlockStatus struct {
	Construct int    // its number, see [Compiled.Info]
	Block     ID     // the attempt that runs or waits
	Node      string // empty: it waits for one
	Stopping  bool   // it was asked to end and has not yet
}

// Blocks lists the blocks that have begun and not ended, in the order of their
// instances.
func (r *Run) Blocks() []BlockStatus {
	var list []BlockStatus
	for i := range r.frames {
		x := &r.frames[i]
		if x.node < 0 || r.compiled.nodes[x.node].kind != KindDo || x.state != running && x.state != queued && x.state != stopping {
			continue
		}
		s := BlockStatus{Construct: int(x.node), Block: x.id, Stopping: x.state == stopping}
		if x.state != queued {
			s.Node = r.hosts[x.host].Name
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b BlockStatus) int { return cmp.Compare(a.Block.Instance, b.Block.Instance) })
	return list
}

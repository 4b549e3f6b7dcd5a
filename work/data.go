package work

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/datacore"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/worklog"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// spaceData is the part of a space that moves data. The lock of the space guards it.
type spaceData struct {
	machine *datacore.Member
	out     datacore.Output
	waiting [][]string // memory of planData
	running [][]string
	stream  *dataStream // nil: the store is memory
}

func newSpaceData(s *Space) *spaceData {
	d, options := &spaceData{}, datacore.Options{Self: datacore.Peer(s.link.Self()), Phase: s.phase, Cache: s.section.Data.Cache << 20, Classes: s.section.Data.Classes}
	if s.logs != nil {
		d.stream = newDataStream(s)
		options.Phase, options.Piece, options.Store = d.stream.phase, worklog.PartBytes, streamPeer
	}
	d.machine = datacore.NewMember(options)
	return d
}

func (d *spaceData) missingCounter() func(workcore.Peer, []string) int {
	return func(at workcore.Peer, reads []string) int { return d.machine.Missing(datacore.Peer(at), reads) }
}

// Reads names data that a task reads. The task waits until all of them are written ([Space.Write]), by any member and also
// after this put, and runs where they are: a member that gets the task fetches them first. At most 64 names. Data that no
// member has any more, or that two members have written differently, fail the task.
func Reads(names ...string) PutOption {
	return func(t *workcore.Task) error {
		t.Reads = append(t.Reads, names...)
		slices.Sort(t.Reads)
		t.Reads = slices.Compact(t.Reads)
		return nil
	}
}

// Write writes data under a name, for the tasks of all members in this phase. The space keeps the bytes and shares them
// with functions, so they must not change. The same bytes may be written again; other bytes under the name are an error that
// tells both digests. The name has 1 to 128 bytes, and the data have at most 256 MiB. At the end of the phase all
// data are dropped. In a function it takes effect at once, whatever becomes of the task. With store: jetstream it returns once the
// stream of the space has the data: they outlive all members. It waits while the stream takes nothing, and while it has three
// quarters of log.most.
func (s *Space) Write(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("work: write data %q: %w", name, context.Cause(ctx))
	}
	if err := s.writeData(ctx, name, data); err != nil {
		return err
	}
	if s.trace != nil {
		s.trace.write(s, &workreport.TraceLine{Data: name, Bytes: len(data)}, s.link.Now())
	}
	return nil
}

// writeData gives data to the machine.
func (s *Space) writeData(ctx context.Context, name string, data []byte) error {
	digest := sha256.Sum256(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("work: write data %q: %w", name, s.err)
	}
	if s.data.stream != nil {
		if err := storeData(ctx, s, name, data, digest); err != nil {
			return err
		}
	}
	if err := s.data.machine.Write(s.link.Now(), name, data, digest, &s.data.out); err != nil {
		return fmt.Errorf("work: write: %w", err)
	}
	s.carryData()
	s.tell(s.link.Now())
	return nil
}

// storeData writes data to the stream. The lock is held, and is free meanwhile.
func storeData(ctx context.Context, s *Space, name string, data []byte, digest datacore.Digest) error {
	if err := s.data.machine.Check(name, len(data), digest); err != nil {
		return fmt.Errorf("work: write: %w", err)
	}
	if err := s.wait(ctx, &waiter{ready: func() bool { return !s.logs.isFull() }}); err != nil {
		return fmt.Errorf("work: write data %q: the log is three quarters full: raise log.most, or have tasks done: %w", name, err)
	}
	phase := s.data.stream.phase
	s.logs.handed += uint64(len(data))
	s.mu.Unlock()
	err := s.logs.log.WriteData(ctx, phase, name, data, digest)
	s.mu.Lock()
	s.logs.written += uint64(len(data))
	switch {
	case err != nil:
		return fmt.Errorf("work: write: %w", err)
	case s.err != nil:
		return fmt.Errorf("work: write data %q: %w", name, s.err)
	case phase != s.data.stream.phase:
		return fmt.Errorf("work: write data %q: the phase has ended meanwhile: write them before all members wait for its end", name)
	}
	return nil
}

// Read returns data that the task of the function reads: one of the names of its [Reads]. The bytes are shared with other
// functions of this member, and must not change. They stay after the function.
func Read(ctx context.Context, name string) ([]byte, error) {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return nil, fmt.Errorf("work: read data %q: the context does not belong to a function that a space runs: call Read in the function, with its ctx", name)
	}
	data, ok := r.reads[name]
	if !ok {
		return nil, fmt.Errorf("work: read data %q: task %q reads %q: name it in work.Reads of the put", name, r.id, r.names)
	}
	return data, nil
}

// Flush waits for the end of the phase as [Space.Wait] does, and all data are dropped. Once all members wait and only tasks
// are left whose data no member has written, these fail, and its error names the data.
func (s *Space) Flush(ctx context.Context) error { return s.Wait(ctx) }

// checkReads refuses a task whose data can never be here.
func (s *Space) checkReads(t *workcore.Task) error {
	if len(t.Reads) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.data.machine.TooLarge(t.Reads); why != "" {
		return fmt.Errorf("work: put task %q: %s", t.ID, why)
	}
	return nil
}

// bindData gives a run the data of its task. The lock is held.
func (s *Space) bindData(r *run, reads []string) {
	if len(reads) == 0 {
		return
	}
	if r.lacks = s.data.machine.Fault(reads); r.lacks != "" {
		return
	}
	r.names, r.reads = reads, map[string][]byte{}
	for _, name := range reads {
		r.reads[name], _ = s.data.machine.Get(name)
	}
}

// planData has the data fetched that tasks here read. The lock is held.
func (s *Space) planData() {
	d := s.data
	if s.err != nil {
		return
	}
	t := &s.out.Told
	if s.machine.Reads() {
		d.running = d.running[:0]
		for _, r := range s.runs {
			if r != nil && len(r.names) > 0 {
				d.running = append(d.running, r.names)
			}
		}
		d.waiting = s.machine.Waiting(d.waiting[:0])
		d.machine.Plan(s.now, d.running, d.waiting, &d.out)
	}
	rests := t.Settled && t.Open == t.Blocked && t.Queued == 0 && t.Running == 0
	d.machine.SetRest(s.now, rests, t.Blocked > 0 && s.machine.Unwritten() > 0, &d.out)
	s.carryData()
}

// carryData carries out what the machine of the data asks for. The lock is held.
func (s *Space) carryData() {
	out := s.data.out
	s.data.out = datacore.Output{}
	if d := s.data.stream; d != nil {
		out.Sends = slices.DeleteFunc(out.Sends, func(m datacore.Send) bool {
			if m.To == streamPeer {
				d.takeMessages(&m.Message)
			}
			return m.To == streamPeer
		})
	}
	if len(out.Sends) > 0 {
		s.sender.sendData(out.Sends)
		s.wakeLoop() // The loop looks when to send again.
	}
	if out.Changed {
		s.wake = clocksync.MinInstant // Another task may be ready.
		s.wakeLoop()
	}
	for _, name := range out.Written {
		if s.err == nil {
			_ = s.step(&workcore.Input{Kind: workcore.InWritten, ID: name}) // It is never refused.
		}
	}
	if out.Hopeless && s.err == nil {
		_ = s.step(&workcore.Input{Kind: workcore.InUnwritten}) // It is never refused.
	}
}

func (s *Space) tickData(now clocksync.Instant) {
	if s.err == nil && now >= s.data.machine.Wake() {
		s.data.machine.Tick(now, &s.data.out)
		s.carryData()
	}
}

func (s *Space) takeDataRoster(r *link.Roster) {
	peers := make([]datacore.Peer, len(r.Peers))
	for i, p := range r.Peers {
		peers[i] = datacore.Peer(p)
	}
	if s.data.stream != nil {
		peers = append(peers, streamPeer)
		s.data.stream.announceNames() // A member that has left may have written what it did not tell.
	}
	s.data.machine.SetRoster(s.link.Now(), peers, &s.data.out)
	s.carryData()
}

// endData drops the data of a phase. With a log and void they stay, since open tasks continue in the next phase.
func (s *Space) endData(void bool) {
	if s.data.stream != nil && void {
		return
	}
	s.data.machine.EndPhase(s.phase)
	if s.data.stream != nil {
		s.data.stream.endPhase(s.phase)
	}
}

// takeData takes a message about data of another member.
func (s *Space) takeData(from string, data []byte) error {
	m, err := datacore.Read(data)
	if err != nil {
		return err
	}
	s.data.machine.Take(s.link.Now(), from, &m, &s.data.out)
	s.carryData()
	return nil
}

package work

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/datacore"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// spaceData is the part of a space that moves data. The lock of the space guards it.
type spaceData struct {
	machine *datacore.Member
	out     datacore.Output
	waiting [][]string // memory of planData
	running [][]string
}

// newSpaceData makes it; nil: the store is not memory, and has no data.
func newSpaceData(s *Space) *spaceData {
	if s.logs != nil {
		return nil
	}
	return &spaceData{machine: datacore.NewMember(datacore.Options{Self: datacore.Peer(s.link.Self()), Phase: s.phase, Cache: s.section.Data.Cache << 20, Classes: s.section.Data.Classes})}
}

func (d *spaceData) readiness() func([]string) bool {
	if d == nil {
		return nil
	}
	return d.machine.Ready
}

// missing returns nil where there are no data.
func (d *spaceData) missing() func(workcore.Peer, []string) int {
	if d == nil {
		return nil
	}
	return func(at workcore.Peer, reads []string) int { return d.machine.Missing(datacore.Peer(at), reads) }
}

func (d *spaceData) wake() clocksync.Instant {
	if d == nil {
		return clocksync.MaxInstant
	}
	return d.machine.Wake()
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

var errDataStore = errors.New("with store: jetstream there are no data that tasks read: use store: memory, or an object store of your own")

// Write writes data under a name, for the tasks of all members in this phase. The space keeps the bytes and shares them
// with functions, so they must not change. The same bytes may be written again; other bytes under the name are an error that
// tells both digests. The name has 1 to 128 bytes, and the data have at most 256 MiB. At the end of the phase all
// data are dropped. It needs store: memory. In a function it takes effect at once, whatever becomes of the task.
func (s *Space) Write(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("work: write data %q: %w", name, context.Cause(ctx))
	}
	digest := sha256.Sum256(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return fmt.Errorf("work: write data %q: %w", name, s.err)
	case s.data == nil:
		return fmt.Errorf("work: write data %q: %w", name, errDataStore)
	}
	if err := s.data.machine.Write(s.link.Now(), name, data, digest, &s.data.out); err != nil {
		return fmt.Errorf("work: write: %w", err)
	}
	s.carryData()
	s.tell(s.link.Now())
	return nil
}

// Read returns data that the task of the function reads: one of the names of its [Reads]. The bytes are shared with other
// functions of this member, and must not change. They stay after the function.
func Read(ctx context.Context, name string) ([]byte, error) {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return nil, fmt.Errorf("work: read data %q: the context is not that of a function that a space runs: call Read in the function, with its ctx", name)
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
	if s.data == nil {
		return fmt.Errorf("work: put task %q: %w", t.ID, errDataStore)
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
	if s.data == nil {
		r.lacks = errDataStore.Error()
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
	if d == nil || s.err != nil {
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
	if len(out.Sends) > 0 {
		s.sender.sendData(out.Sends)
		s.look() // The loop looks when to send again.
	}
	if out.Changed {
		s.wake = clocksync.MinInstant // Another task may be ready.
		s.look()
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
	if s.data != nil && s.err == nil && now >= s.data.machine.Wake() {
		s.data.machine.Tick(now, &s.data.out)
		s.carryData()
	}
}

func (s *Space) takeDataRoster(r *link.Roster) {
	if s.data == nil {
		return
	}
	peers := make([]datacore.Peer, len(r.Peers))
	for i, p := range r.Peers {
		peers[i] = datacore.Peer(p)
	}
	s.data.machine.SetRoster(s.link.Now(), peers, &s.data.out)
	s.carryData()
}

func (s *Space) endData() {
	if s.data != nil {
		s.data.machine.EndPhase(s.phase)
	}
}

// takeData takes a message about data of another member.
func (s *Space) takeData(from string, data []byte) error {
	if s.data == nil {
		return errDataStore
	}
	m, err := datacore.Read(data)
	if err != nil {
		return err
	}
	s.data.machine.Take(s.link.Now(), from, &m, &s.data.out)
	s.carryData()
	return nil
}

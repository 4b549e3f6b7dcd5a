package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/reading"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// processor is a member that runs blocks, one at a time. Its goroutine waits in a
// region for the signal that starts the next one.
type processor struct {
	node  *Node
	index int
	cpus  []int // nil: the process's
	m     *Member

	unwatch func() // of NodeConfig.Observe

	// Used by its goroutine only.
	next *Run
	last Run // that has begun, or ended
	// Hands over what the last one has come to, until it was taken.
	stopDelivery context.CancelFunc
	delivery     sync.WaitGroup

	// Guarded by the lock of the member.
	current *Run
	row     []scgs.Value           // the state to report
	reading *reading.Reading       // nil: nothing is observed
	levels  map[string]*plan.Level // above the threads of the program's blocks that have some
	checked scgs.Schema            // the last declared state that was looked at ...
	is      bool                   // ... and whether it is one of processors
}

// checkAdmission checks that the group is one of processors, and that its program's blocks
// with threads fit the code that is here for them.
func (p *processor) checkAdmission() error {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	declared := p.m.core.Codec().Schema()
	if !wire.IsProcessor(declared) {
		return fmt.Errorf("synchronizer %q runs no program on group %q: its members are no processors", p.m.core.Synchronizer(), p.m.cfg.Group)
	}
	p.row = gostate.Defaults(declared)
	p.m.accepted = p.admittedAgain
	own := p.own()
	own[4] = scgs.StringValue(p.node.cfg.Name)
	own[5], _ = wordList(wire.FieldLabels, p.node.cfg.Labels)
	own[6] = scgs.IntValue(int64(p.node.cfg.Cores))
	if p.node.cfg.Observe != nil && !slices.ContainsFunc(p.declaredBlocks(), gostate.Observable) {
		p.m.log.Warn("nothing that is observed can be told: the state declares none of these fields as a float", "member", p.m.cfg.Name, "fields", reading.Fields())
	}
	own[7], _ = wordList(wire.FieldThreaded, p.node.threaded)
	if err := p.learn(); err != nil {
		return fmt.Errorf("synchronizer %q: %w", p.m.core.Synchronizer(), err)
	}
	for _, name := range p.node.threaded {
		if err := p.fits(name); err != nil {
			return err
		}
	}
	return nil
}

// learn takes over what threads the program's blocks have. The lock is held.
func (p *processor) learn() (err error) {
	p.levels, err = plan.FromBlocks(p.m.blocks)
	return err
}

// fits compares the state that the code of a block declares for its threads with the
// declaration of the program. The lock is held.
func (p *processor) fits(block string) error {
	plan := p.levels[block]
	if plan == nil {
		return nil
	}
	var hello wire.Hello
	for _, o := range p.node.blocks[block].opts {
		if err := o(&hello); err != nil {
			return fmt.Errorf("block %q: %w", block, err)
		}
	}
	if !hello.Typed {
		return nil
	}
	if err := plan.State.Match(hello.Schema); err != nil {
		return fmt.Errorf("block %q: its threads do not fit the thread-level synchronizer %q of the program: %w", block, plan.Name, err)
	}
	return nil
}

// admittedAgain follows a synchronizer that declares another state for blocks: the
// state of another program. The lock is held.
func (p *processor) admittedAgain() {
	declared := p.m.core.Codec().Schema()
	if err := p.learn(); err != nil {
		p.m.log.Error("the threads of the program's blocks cannot be run here", "member", p.m.cfg.Name, "error", err)
	}
	if _, open := p.m.core.Start(); open {
		return // It continues with its present state.
	}
	if !wire.IsProcessor(declared) {
		p.m.log.Error("the synchronizer runs no program any more, so this processor has no part in it", "member", p.m.cfg.Name)
		return
	}
	row := gostate.Defaults(declared)
	copy(row[len(row)-wire.ProcessorFields:], p.own())
	p.row = row
	p.fillRow()
	if err := p.tellRow(); err != nil {
		p.m.log.Error("the processor cannot tell its state", "member", p.m.cfg.Name, "error", err)
	}
}

// own is the part of the row that the processor sets, as [wire.ProcessorSchema]
// has it.
func (p *processor) own() []scgs.Value { return p.row[len(p.row)-wire.ProcessorFields:] }

// tellRow begins the state that is in the row. The lock is held.
func (p *processor) tellRow() error {
	m := p.m
	if m.closed {
		return ErrClosed
	}
	if declared := m.core.Codec().Schema(); len(declared) != len(p.row) || !p.isProcessor(declared) {
		return errors.New("agent: the synchronizer declares another state since: join the node again")
	}
	return m.setRow(p.row)
}

// isProcessor is [wire.IsProcessor], which costs more than the rest of a report. The
// lock is held.
func (p *processor) isProcessor(declared scgs.Schema) bool {
	if !gostate.SameSchema(p.checked, declared) {
		p.checked, p.is = declared, wire.IsProcessor(declared)
	}
	return p.is
}

// enterPhase tells that the processor has gone over to another phase, of a run if there
// is one. The fields of blocks stay as they are.
func (p *processor) enterPhase(phase string, r *Run) error {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	own := p.own()
	own[0] = scgs.EnumValue(phase)
	if phase == wire.PhaseRunning {
		own[1] = scgs.StringValue(r.block)
		own[2] = scgs.IntValue(int64(r.program)) //nolint:gosec // It came as one.
		own[3] = scgs.IntValue(int64(r.run))     //nolint:gosec // It came as one.
	}
	return p.tellRow()
}

// setBlocks begins a state in which fill has replaced fields of blocks.
func (p *processor) setBlocks(r *Run, fill func(declared scgs.Schema, row []scgs.Value) error) error {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.current != r {
		return errEnded
	}
	row := slices.Clone(p.row)
	if err := fill(p.declaredBlocks(), row); err != nil {
		return err
	}
	return p.setRow(row)
}

// declaredBlocks is what the configuration declares for blocks. The lock is held.
func (p *processor) declaredBlocks() scgs.Schema {
	schema := p.m.core.Codec().Schema()
	return schema[:len(schema)-wire.ProcessorFields]
}

var errEnded = errors.New("agent: the run of the block has ended")

// setRow begins the state of a row. A refused state changes nothing.
func (p *processor) setRow(row []scgs.Value) error {
	before := p.row
	p.row = row
	err := p.tellRow()
	if err != nil {
		p.row = before
	}
	return err
}

// runProcessor is the goroutine of the processor.
func (p *processor) runProcessor() {
	whole := false
	defer func() {
		if !whole {
			p.node.running.Go(p.runProcessor) // A block has ended the goroutine.
		}
	}()
	defer p.pinThread()()
	for {
		err := p.m.Region(p.node.ctx, wire.ProcessorRegion, p.serve, OnActivate(wire.StartSignal, p.accept))
		if _, canceled := errors.AsType[*Canceled](err); !canceled {
			break
		}
		p.m.log.Warn("a predicate has cancelled the region of a processor, and the processor continues; let the predicate cancel the region of a block", "member", p.m.cfg.Name, "cause", err)
	}
	p.endDelivery()
	whole = true
}

// serve runs the started blocks, one after the other.
func (p *processor) serve(ctx context.Context, r *Region) error {
	if p.last.run == 0 {
		if err := p.enterPhase(wire.PhaseIdle, nil); err != nil {
			return err
		}
	}
	for {
		if err := r.Wait(ctx); err != nil {
			return err
		}
		if r := p.next; r != nil {
			p.next = nil
			p.do(ctx, r)
		}
	}
}

// accept takes a start. Of a run that was started before it is a copy: a program
// repeats a start until it sees the run, and its runs have rising numbers.
func (p *processor) accept(_ context.Context, s Signal) error {
	next := &Run{
		p: p, program: uint64(s.Int(wire.DatumProgram)), run: uint64(s.Int(wire.DatumRun)), //nolint:gosec // They count from 1.
		block: s.Text(wire.DatumBlock), size: uint64(s.Int(wire.DatumSize)), //nolint:gosec // Likewise.
	}
	for text := s.Text(wire.DatumReplica); text != ""; {
		var one string
		one, text, _ = strings.Cut(text, ".")
		n, _ := strconv.Atoi(one)
		next.replicas = append(next.replicas, n)
	}
	if input, ok := s.Lookup(wire.DatumInput); ok {
		next.input = []byte(input.Text())
	}
	if next.program != p.last.program || next.run > p.last.run {
		p.next = next
	}
	return nil
}

// do carries out one run to its end.
func (p *processor) do(ctx context.Context, r *Run) {
	p.endDelivery()
	p.last = Run{program: r.program, run: r.run}
	code := p.node.blocks[r.block]
	if code == nil {
		code = &BlockCode{name: r.block, run: func(context.Context, *Run, []byte) ([]byte, error) {
			return nil, fmt.Errorf("node %q has no block %q: start it with one, or give the block a label that only nodes with it have", p.node.cfg.Name, r.block)
		}}
	}
	p.become(r)
	out := outcome{wire.PhaseFailed, wire.BodyFailure, fmt.Appendf(nil, "block %q ended its goroutine without returning", r.block)}
	defer func() { p.ended(ctx, r, out) }() // Also then.
	out = runBlock(ctx, r, code)
}

// ended tells what a run has come to.
func (p *processor) ended(ctx context.Context, r *Run, out outcome) {
	p.become(nil)
	if ctx.Err() != nil {
		return // The node is closed: nobody waits for this.
	}
	if out.kind != 0 {
		p.deliver(r, out) //nolint:contextcheck // It continues beside the next wait, until the node is closed.
	}
	if err := p.enterPhase(out.phase, r); err != nil {
		p.m.log.Warn("the end of a block cannot be told", "member", p.m.cfg.Name, "block", r.block, "error", err)
	}
}

func (p *processor) become(r *Run) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.current = r
}

// deliver hands over what a run has come to, until it was taken.
func (p *processor) deliver(r *Run, out outcome) {
	ctx, cancel := context.WithCancel(p.node.ctx)
	p.stopDelivery = cancel
	b := wire.Body{Member: p.m.cfg.Name, Program: r.program, Run: r.run, Kind: out.kind, Size: uint64(len(out.body))}
	wait := time.Duration(0)
	if len(out.body) <= wire.ShortResult {
		b.Piece = out.body
		if frame, err := wire.AppendBody(nil, &b); err == nil {
			p.m.queueFrame(frame)
			wait = bodyCopy
		}
	}
	p.delivery.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		_ = p.exchange(ctx, &b, func(answer *wire.Body) (more bool) {
			b.Offset = min(answer.Offset, b.Size)
			return b.Offset < b.Size
		}, out.body)
	})
}

func (p *processor) endDelivery() {
	p.stopDelivery()
	p.delivery.Wait()
}

// fetchInput returns the input of a run.
func (p *processor) fetchInput(ctx context.Context, r *Run) ([]byte, error) {
	if r.input != nil {
		return r.input, nil
	}
	input := make([]byte, 0, min(r.size, MaxBody))
	b := wire.Body{Program: r.program, Run: r.run, Kind: wire.BodyInput, Size: r.size}
	err := p.exchange(ctx, &b, func(answer *wire.Body) (more bool) {
		if answer.Offset == b.Offset {
			input = append(input, answer.Piece...)
		}
		b.Offset = uint64(len(input))
		return b.Offset < b.Size
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("block %q: its input cannot be fetched: %w", r.block, err)
	}
	return input, nil
}

// How long an answer of the synchronizer is waited for, and how long until the
// next attempt.
const (
	bodyTimeout = 2 * time.Second
	bodyCopy    = 250 * time.Millisecond // until a signal that rode along is handed over again: it may be lost
	bodyPause   = 20 * time.Millisecond
	bodyPauses  = time.Second // the longest
)

// exchange sends a body, or asks for one, piece by piece, until taken says that
// there is no more, the synchronizer refuses it, or the context ends. While nobody
// answers it tries again.
func (p *processor) exchange(ctx context.Context, b *wire.Body, taken func(*wire.Body) (more bool), bytes []byte) error {
	b.Member = p.m.cfg.Name
	pause := bodyPause
	for {
		b.Piece = bytes[min(b.Offset, uint64(len(bytes))):]
		b.Piece = b.Piece[:min(len(b.Piece), wire.MaxPiece)]
		answer, err := p.request(ctx, b)
		switch {
		case err == nil && answer.Reason != "":
			return errors.New(answer.Reason)
		case err == nil:
			if !taken(answer) {
				return nil
			}
			pause = bodyPause
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
			pause = min(2*pause, bodyPauses)
		}
	}
}

func (p *processor) request(ctx context.Context, b *wire.Body) (*wire.Body, error) {
	frame, err := wire.AppendBody(nil, b)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, bodyTimeout)
	defer cancel()
	if frame, err = p.node.data.Request(ctx, p.m.subjects.Data(p.m.cfg.Name), frame); err != nil {
		return nil, err
	}
	answer, err := wire.DecodeBody(frame)
	if err == nil && (answer.Program != b.Program || answer.Run != b.Run || answer.Kind != b.Kind) {
		err = errors.New("the answer is of another run")
	}
	return &answer, err
}

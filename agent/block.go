package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// MaxBody is how many bytes the JSON of a block's input or result may have. A
// larger result makes the block fail: hand over a reference, such as a path.
const MaxBody = wire.MaxBody

// BlockCode is code that the programs of a group can run on the processors of a
// node; [Block] and [ThreadBlock] make it.
type BlockCode struct {
	name     string
	threaded bool
	opts     []ThreadOption
	run      func(ctx context.Context, r *Run, input []byte) ([]byte, error)
}

// Name is what programs call the block.
func (c BlockCode) Name() string { return c.name }

// Block names a function as a block (PEGASUS paper, section 2.2). Its input and
// result travel as JSON, as encoding/json has them: a key of the input that In lacks
// is left out, since what fits a program's type may have more. A result of more than
// [MaxBody] bytes is refused. Use json.RawMessage to take or leave them as they are.
//
// The function runs inside a region of the block's name, whose context ends when
// the program cancels the block, or when a predicate sends that region a
// cancellation. What it returns then counts as follows: for the program the block
// is cancelled, whatever that is; under a predicate's cancellation it is done, with
// the result if the error is nil, and with null otherwise. Without a cancellation an
// error, a panic or runtime.Goexit makes it fail, with that as the reason.
//
// The function may be run by several processors of a node at once.
func Block[In, Out any](name string, fn func(ctx context.Context, r *Run, input In) (Out, error)) BlockCode {
	return BlockCode{name: name, run: func(ctx context.Context, r *Run, input []byte) ([]byte, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("block %q: its input is no %T: %w", name, in, err)
		}
		out, err := fn(ctx, r, in)
		if err != nil {
			return nil, err
		}
		result, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("block %q: its result has no JSON: %w", name, err)
		}
		return result, nil
	}}
}

// Run is one run of a block on a processor. Its methods may be called from any
// goroutine until the block's function has returned.
type Run struct {
	p *processor

	// What its start signal says.
	program, run uint64
	block        string
	replicas     []int
	size         uint64
	input        []byte // nil: it is to be fetched
}

// Block is the name of the block.
func (r *Run) Block() string { return r.block }

// Number names the run among all of its program's execution.
func (r *Run) Number() uint64 { return r.run }

// Replicas are the numbers of this replica, from 0, in each replicated Par around the
// block, from the outside in: empty if there is none.
func (r *Run) Replicas() []int { return slices.Clone(r.replicas) }

// Processor is the name of the processor that runs the block.
func (r *Run) Processor() string { return r.p.m.cfg.Name }

// CPUs are the cores that the processor has for itself, by the numbers of the system, to
// run processes of the block on; nil if it has none. It has some with
// [NodeConfig.Pin], and on a node of several processors that together offer all cores
// which this process may use, unless that is [NodeConfig.Unbound]. Linux only.
func (r *Run) CPUs() []int { return slices.Clone(r.p.cpus) }

// Set begins a new state of the processor now, as [Member.Set] does for a member:
// with the fields of the struct, which the group's state declares for blocks. The
// other fields stay as they are, and all stay when the block has ended, until a later
// block sets them. A field that nobody has set yet has its default, or is unknown.
func (r *Run) Set(state any) error {
	return r.p.setBlocks(r, func(declared scgs.Schema, row []scgs.Value) error {
		return gostate.Fill(declared, row, state)
	})
}

// SetJSON is Set with a JSON object for the state, whose keys are the names of the
// fields; durations are texts such as "1.5s".
func (r *Run) SetJSON(object []byte) error {
	return r.p.setBlocks(r, func(declared scgs.Schema, row []scgs.Value) error { return gostate.FillJSON(declared, row, object) })
}

// Region runs work inside a region of the processor, for predicates that signal
// the block while it runs; see [Member.Region].
func (r *Run) Region(ctx context.Context, name string, work Work, opts ...RegionOption) error {
	return r.p.m.Region(ctx, name, work, opts...)
}

// outcome is how a run has ended.
type outcome struct {
	phase string
	kind  wire.BodyKind // 0: nothing is to be told
	body  []byte
}

// runBlock runs the code of a block and says how that ended. left is the region's
// cancellation, if there was one.
func runBlock(ctx context.Context, r *Run, code *BlockCode) outcome {
	var result []byte
	var failed error
	err := r.p.m.Region(ctx, r.block, func(ctx context.Context, _ *Region) error {
		if err := r.p.enterPhase(wire.PhaseRunning, r); err != nil {
			return err
		}
		input, err := r.p.fetchInput(ctx, r)
		if err == nil {
			result, err = guarded(ctx, r, code, input)
		}
		failed = err
		return err
	})
	if c, ok := errors.AsType[*Canceled](err); ok {
		switch {
		case c.Predicate == wire.ProgramSignals:
			return outcome{phase: wire.PhaseCanceled}
		case failed != nil:
			return outcome{wire.PhaseDone, wire.BodyResult, []byte("null")}
		}
		err = nil
	}
	if err == nil && len(result) > MaxBody {
		err = fmt.Errorf("block %q: its result has %d bytes of JSON, at most %d are handed over: give a reference to it instead", r.block, len(result), MaxBody)
	}
	if err != nil {
		return outcome{wire.PhaseFailed, wire.BodyFailure, reason(err)}
	}
	return outcome{wire.PhaseDone, wire.BodyResult, result}
}

// guarded makes a panic of a block its failure: other blocks of the process are
// none the worse for it.
func guarded(ctx context.Context, r *Run, code *BlockCode, input []byte) (result []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("block %q panicked: %v\n\n%s", r.block, v, debug.Stack())
		}
	}()
	return code.run(ctx, r, input)
}

// maxReason is more of a failure's text than anyone reads.
const maxReason = 4 << 10

func reason(err error) []byte {
	text := bytes.ToValidUTF8([]byte(err.Error()), []byte("?"))
	return bytes.ToValidUTF8(text[:min(len(text), maxReason)], nil)
}

package wire

import "github.com/gopegasus/pegasus/scgs"

// What a synchronizer that runs a program and the processors of its nodes have agreed on: the
// region that a processor is always in, the signals that go there and the data piggybacked on
// them.
const (
	ProcessorRegion = "processor" // a start goes there
	StartSignal     = "start"     // begin a block
	CancelSignal    = "cancel"    // leave a block: a cancellation of the region of the block's name
	ProgramSignals  = "program"   // stands for the predicate in both

	DatumProgram = "program"
	DatumRun     = "run"
	DatumBlock   = "block"
	DatumReplica = "replica" // its numbers among replicas, from the outside in, joined by dots
	DatumSize    = "size"    // of the input
	DatumInput   = "input"   // the whole of it, if it is short

	// ShortInput is how long an input may be to be piggybacked on the signal.
	ShortInput = 2 << 10
	// ShortResult is how long an outcome may be to be piggybacked on the reports.
	ShortResult = 4 << 10
)

// The phases of a processor.
const (
	PhaseIdle     = "idle"     // it has run nothing yet
	PhaseRunning  = "running"  // it runs the block of its fields block and run
	PhaseDone     = "done"     // that has ended, and has a result
	PhaseFailed   = "failed"   // likewise, and has a reason
	PhaseCanceled = "canceled" // the program has ended it
)

// The fields that the state of a processor has beside those that are declared for
// its blocks, in this order behind them.
const (
	FieldPhase    = "phase"
	FieldBlock    = "block"
	FieldProgram  = "program"
	FieldRun      = "run"
	FieldNode     = "node"
	FieldLabels   = "labels"
	FieldCores    = "cores"
	FieldThreaded = "threaded" // the blocks whose code there has threads

	ProcessorFields = 8
)

// ProcessorSchema is the declaration of these fields. Each has a default, so that
// what a block tells need not have it.
func ProcessorSchema() scgs.Schema {
	phases := []string{PhaseIdle, PhaseRunning, PhaseDone, PhaseFailed, PhaseCanceled}
	return scgs.Schema{
		{Name: FieldPhase, Type: scgs.Enum, Words: phases, Default: scgs.EnumValue(PhaseIdle)},
		{Name: FieldBlock, Type: scgs.String, Default: scgs.StringValue("")},
		{Name: FieldProgram, Type: scgs.Int, Default: scgs.IntValue(0)},
		{Name: FieldRun, Type: scgs.Int, Default: scgs.IntValue(0)},
		{Name: FieldNode, Type: scgs.String, Default: scgs.StringValue("")},
		{Name: FieldLabels, Type: scgs.ListOf(scgs.String), Default: scgs.ListValue(scgs.String)},
		{Name: FieldCores, Type: scgs.Int, Default: scgs.IntValue(0)},
		{Name: FieldThreaded, Type: scgs.ListOf(scgs.String), Default: scgs.ListValue(scgs.String)},
	}
}

// IsProcessor reports whether a declared state is the state of processors.
func IsProcessor(s scgs.Schema) bool {
	return len(s) >= ProcessorFields && s[len(s)-ProcessorFields:].Hash() == ProcessorSchema().Hash()
}

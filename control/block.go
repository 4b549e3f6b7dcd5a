package control

import "strconv"

// BlockID is one attempt at one block instance. Instances of a run count from 1 and
// are never used twice, attempts at one from 1.
type BlockID struct {
	Instance uint64 // from 1; a block in a loop is a new instance each time
	Attempt  uint32 // from 1
}

// String gives the instance, a dot and the attempt.
func (b BlockID) String() string {
	return strconv.FormatUint(b.Instance, 10) + "." + strconv.FormatUint(uint64(b.Attempt), 10)
}

// BlockOutcome is how a block, or another construct of a program, has ended.
type BlockOutcome uint8

// The outcomes.
const (
	BlockDone BlockOutcome = iota + 1
	BlockFailed
	BlockCanceled
)

// String gives the word of the outcome.
func (o BlockOutcome) String() string {
	return [...]string{"none", "done", "failed", "cancelled"}[o]
}

// Otherwise is the branch of a switch none of whose predicates is true: the else
// branch, or none.
const Otherwise = -1

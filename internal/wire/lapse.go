package wire

import (
	"encoding/json"
	"fmt"

	"github.com/gopegasus/pegasus/control"
)

// ControlLoss stands for the predicate and the signal where a member has cancelled one of its
// regions itself, for want of control.
const ControlLoss = "control-loss"

// DatumAfter is for how long it had been without, by which the region's handler reads it.
const DatumAfter = "after"

// Lapse is an answer to no signal: it tells the fate of a cancellation for want of control. Its
// decision has no number, unlike the decisions of signals, the entry for an epoch, and for a
// term the incarnation that the member had then, since another process counts entries from 1
// too; its name is the region's.
func Lapse(region string, entry uint64, member string, incarnation uint64, fate control.Fate, detail string) Answer {
	return Answer{Decision: control.Decision{Term: incarnation, Epoch: entry}, Name: region, Target: member, Fate: fate, Detail: detail}
}

// Lapse is the cancellation that the answer tells the fate of; nil if it answers a signal.
func (a *Answer) Lapse() *control.Signal {
	if a.Decision.Number > 0 {
		return nil
	}
	return &control.Signal{
		Decision: control.Decision{Synchronizer: a.Decision.Synchronizer}, Name: ControlLoss, Predicate: ControlLoss, Kind: control.Cancel,
		Target: a.Target, Region: a.Name, Entry: a.Decision.Epoch,
	}
}

// Lapse is the entry whose cancellation for want of control is recorded, of which the member
// learns by a receipt without a number; 0: it is the receipt of a signal.
func (r *Receipt) Lapse() uint64 {
	if r.Number > 0 {
		return 0
	}
	return r.Term
}

// Beat is what everybody reads of a beat, by which the process that leads as a synchronizer
// says so: JSON on [Subjects.Beat].
type Beat struct {
	Term    uint64 `json:"term"`              // it leads in
	Ends    bool   `json:"ends,omitempty"`    // it is the last one
	Standby bool   `json:"standby,omitempty"` // it does not lead, and stands by; Term does not count
}

// MaxBeatBytes bounds a beat that is read.
const MaxBeatBytes = 1024

// Leads reports whether whoever has sent it continues leading.
func (b *Beat) Leads() bool { return !b.Ends && !b.Standby }

// DecodeBeat reads a beat into a [Beat], or into what has more of it.
func DecodeBeat(text []byte, into any) error {
	if len(text) > MaxBeatBytes {
		return fmt.Errorf("a beat is longer than %d bytes", MaxBeatBytes)
	}
	return json.Unmarshal(text, into)
}

package wire

import (
	"errors"
	"strconv"
)

// Version is the first byte of every frame this package writes and reads.
const Version = 1

// Kind is the second byte of a frame and says which message it holds.
type Kind uint8

// The kinds of frames. Their numbers are part of the format.
const (
	KindHello Kind = iota + 1
	KindBatch
	KindGone
	KindAck
	KindWelcome
	KindProbe
	KindResend
	KindSignals
	KindPing
	KindPong
	KindBody
	KindBundle
	batchInColumns // in place of [KindBatch], unless it is one of releases before
	KindPeers
)

var kindNames = [...]string{"frame", "hello", "batch", "gone", "ack", "welcome", "probe", "resend", "signals", "ping", "pong", "body", "bundle", batchInColumns: "", KindPeers: "peers"}

// String gives the kind's word; "frame" for the zero Kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// The reasons a receiver acts on. Every other refusal is only counted.
var (
	// ErrVersion means that the sender speaks another version of the format.
	ErrVersion = errors.New("another version")
	// ErrSchema means that a batch was encoded with another schema than the
	// receiver's: a new [Hello] is needed before the member is understood.
	ErrSchema = errors.New("another schema")
)

// FrameError says why a frame was refused, on either side: an encoder refuses
// what a decoder would.
type FrameError struct {
	Kind   Kind   // what the frame is, 0 if that could not be told
	Field  string // where it is wrong, such as "reports[3].load"
	Reason string // the fault there
	Err    error  // ErrVersion, ErrSchema or nil
}

// Error gives "wire: kind: field: reason".
func (e *FrameError) Error() string {
	return "wire: " + e.Kind.String() + ": " + e.Field + ": " + e.Reason
}

// Unwrap returns Err, so that [errors.Is] finds the sentinels.
func (e *FrameError) Unwrap() error { return e.Err }

// KindOf returns the kind of a frame after a look at its size and its first two
// bytes. What follows them is left to the decoder of that kind.
func KindOf(frame []byte) (Kind, error) {
	kind, fault := kindOf(frame)
	if fault != nil {
		return 0, fault
	}
	return kind, nil
}

func kindOf(frame []byte) (Kind, *FrameError) {
	switch {
	case len(frame) > MaxFrameBytes:
		return 0, &FrameError{Field: "size", Reason: strconv.Itoa(len(frame)) + " bytes, at most " + strconv.Itoa(MaxFrameBytes) + " are read"}
	case len(frame) < 2:
		return 0, &FrameError{Field: "size", Reason: "the frame ends before its kind"}
	case frame[0] != Version:
		return 0, &FrameError{
			Field:  "version",
			Reason: strconv.Itoa(int(frame[0])) + ", this side speaks " + strconv.Itoa(Version) + ": run releases with the same major version",
			Err:    ErrVersion,
		}
	}
	switch kind := Kind(frame[1]); {
	case kind == batchInColumns:
		return KindBatch, nil
	case kind == 0 || int(kind) >= len(kindNames):
		return 0, &FrameError{Field: "kind", Reason: strconv.Itoa(int(kind)) + " is none that this side knows"}
	default:
		return kind, nil
	}
}

package source

import (
	"errors"
	"fmt"
)

// Reason says why a source gave no sample. Refusals are counted by it.
type Reason string

// The reasons.
const (
	Unavailable    Reason = "unavailable"    // not on this system, no such file, no daemon
	Unanswered     Reason = "unanswered"     // no answer in time
	Malformed      Reason = "malformed"      // truncated, oversized or not what it should be
	Mismatch       Reason = "mismatch"       // no answer to what was asked: another origin or sequence
	Denied         Reason = "denied"         // the server asks to be left alone or answers less often
	Unsynchronized Reason = "unsynchronized" // the server or daemon itself has no bound
	Implausible    Reason = "implausible"    // contradicts itself or causality
	Disturbed      Reason = "disturbed"      // the wall clock was set, or the machine slept, meanwhile
	Stale          Reason = "stale"          // too old
	Busy           Reason = "busy"           // being written each time it was read
	Failed         Reason = "failed"         // anything else
)

// Refusal is why one server of a source gave no sample.
type Refusal struct {
	Source string // "ntp", "chrony" and so on
	Server string // who was asked; empty if there is only one
	Reason Reason // the kind of failure
	Err    error  // the details
}

// Error names the source, the server and the fault.
func (r *Refusal) Error() string {
	if r.Server == "" {
		return fmt.Sprintf("source: %s: %v", r.Source, r.Err)
	}
	return fmt.Sprintf("source: %s %s: %v", r.Source, r.Server, r.Err)
}

// Unwrap gives the details.
func (r *Refusal) Unwrap() error { return r.Err }

// fault is a reason and its details, not yet the refusal of a certain server.
type fault struct {
	reason Reason
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func refuseServer(reason Reason, format string, args ...any) error {
	return &fault{reason, fmt.Errorf(format, args...)}
}

// refusalOf turns an error into the refusal of a server.
func refusalOf(source, server string, err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	r := &Refusal{Source: source, Server: server, Reason: Failed, Err: err}
	if f, ok := errors.AsType[*fault](err); ok {
		r.Reason = f.reason
	}
	return r
}

package synchronizer

import (
	"errors"
	"fmt"
)

// Errors that are found with errors.Is in what this package returns.
var (
	// ErrNotConnected is what Start fails with if there is no connection to the server:
	// none listens at the url, it turned the program away, or Options.Conn is closed.
	// Start a server, or correct the url or its credentials; what the error wraps says
	// which.
	ErrNotConnected = errors.New("there is no connection to the server")
	// ErrNameTaken is what Start fails with if a synchronizer of that name lives for the
	// tenant and the group, or for a group that signals go to; and [Synchronizer.Reload],
	// if they begin to go there. End that one, or use another name or another tenant.
	ErrNameTaken = errors.New("the name is taken")
	// ErrGroupTaken is what Start fails with, and [Synchronizer.Err] tells, if a synchronizer of
	// another name controls the group. End one of the two, or give one another group or tenant.
	ErrGroupTaken = errors.New("the group is taken")
	// ErrSuperseded is what [Synchronizer.Err] tells if another process leads as the same
	// synchronizer, in a later term: the members obey that one alone. The error says where
	// it runs. Run one of the two only.
	ErrSuperseded = errors.New("another process leads as this synchronizer")
	// ErrFellBehind is returned by [Synchronizer.Err] if this process fell 5 s behind its messages and
	// ended so that a standby could lead. Start this process again as the standby.
	ErrFellBehind = errors.New("the process fell behind")
	// ErrStandby is returned by the methods of a synchronizer while another process leads. The error
	// names that process: ask it.
	ErrStandby = errors.New("the process is a standby")
	// ErrEnded is the error of the methods of a synchronizer that was closed or has ended
	// without Close; [Synchronizer.Err] says why. Start another one.
	ErrEnded = errors.New("the synchronizer has ended")
	// ErrBusy is what [Synchronizer.Status] and [Synchronizer.Why] fail with if too many
	// questions wait for an answer. Ask again.
	ErrBusy = fmt.Errorf("%d questions wait already: ask again", maxQuestions)
	// ErrNoPredicate is what [Synchronizer.Why] fails with if there is no predicate of
	// that name. The error has the names that there are.
	ErrNoPredicate = errors.New("no such predicate")
)

// OptionsError is the error of Start if it refuses the Options, alone or with the
// configuration. It has done nothing then, and will fail again until they are changed. Find it with errors.As.
type OptionsError struct {
	Faults []error // all of them; each says what to do
}

// Error has a line for each fault.
func (e *OptionsError) Error() string { return errors.Join(e.Faults...).Error() }

// Unwrap returns the faults.
func (e *OptionsError) Unwrap() []error { return e.Faults }

package agent

import (
	"errors"
	"fmt"

	"github.com/gopegasus/pegasus/internal/gostate"
)

// Errors that are found with errors.Is in what this package returns.
var (
	// ErrClosed is the error of a member or thread after its Close, and the cause in the
	// regions that were open then. The program is over, or continues alone.
	ErrClosed = errors.New("agent: the member or thread was closed")
	// ErrNotConnected is what Join and JoinNode fail with if there is no connection to
	// the server: none listens at the url, it turned the program away, or the
	// connection of [WithConn] is closed. Start a server or correct the url; what the
	// error wraps says which.
	ErrNotConnected = errors.New("there is no connection to the server")
	// ErrNoSynchronizer is what Join and JoinNode fail with if nobody answered for the
	// group in time: none is started for it, on another server, or for another tenant.
	// Start one with `pegasus run`, and join again.
	ErrNoSynchronizer = errors.New("no synchronizer answered")
	// ErrReplaced is returned by [Member.Set], and once by [Region.Check] and [Region.Wait], after
	// another process has joined under the member's name. Set keeps the state. The states of this
	// process do not count until the other process has left or was given up; then Set returns nil
	// again. End this process, or give one of the two another name. The wrapping error names the
	// other process.
	ErrReplaced = errors.New("agent: another process has the name of this member")
	// ErrUndeclared is returned by Join if a signal of the configuration names a region or a handler
	// that Config.Regions lacks, and by Region if Config.Regions lacks the region. Correct the
	// configuration or Config.Regions. The wrapping error names both.
	ErrUndeclared = errors.New("region or handler not declared in Config.Regions")
	// ErrNameTaken is what Join fails with if a member of that name shares the connection
	// already. Close that first, or use another name.
	ErrNameTaken = errors.New("member name already used in this process")
)

// RefusedError is what Join, JoinNode and [Member.Thread] fail with if the synchronizer
// does not take the member or thread in. To join again as before is of no use: Reason
// says what to change. Find it with errors.As.
type RefusedError struct {
	Synchronizer string // as the configuration names it
	Member       string // or the thread
	Reason       string // in the synchronizer's words
}

// Error names the synchronizer and its reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused by synchronizer %q: %s", e.Synchronizer, e.Reason)
}

// StateError says that a struct cannot be a state, or is not the state that the configuration
// declares. Join returns it for Config.State, and Set for the state. Change the struct or the
// declaration, so that they have the same fields. Find it with errors.As.
//
// Its Type is the [reflect.Type] of the state, nil if the state was nil. Its Field is the
// name of the field at fault: in the struct, or in the declaration if the struct lacks the field.
// It is empty if the fault is the type itself. Its Reason says what failed and what to do.
type StateError = gostate.StateError

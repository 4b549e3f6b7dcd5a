package work

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// The errors that a program can tell apart.
var (
	// ErrDuplicateID is returned by [Space.Put] if another task of this phase has the ID.
	ErrDuplicateID = workcore.ErrDuplicateID
	// ErrClosed says that the space or its member was closed.
	ErrClosed = errors.New("the space is closed")
	// ErrDropped says that the member is not in the group any more: it was silent for too long, or another
	// process has its name. Its tasks are lost. Open the space again once it is back.
	ErrDropped = errors.New("the member is not in the group any more, and its tasks are lost")
	// ErrTaskGone is the cause of a function's context once the task was cancelled or another member has it.
	// What the function returns then is ignored.
	ErrTaskGone = errors.New("the task is not here any more: return")
)

// TaskError is a task that has failed for good.
type TaskError struct {
	ID       string // of the task
	Poisoned bool   // the members that ran it died, as often as losses allows
	Text     string // of the last error
}

// Error names the task and tells why.
func (e *TaskError) Error() string {
	if e.Poisoned {
		return fmt.Sprintf("work: task %q is poisoned: %s: look at what it does to a process, or raise losses", e.ID, e.Text)
	}
	return fmt.Sprintf("work: task %q has failed: %s", e.ID, e.Text)
}

// LostError tells of tasks that died with the members that had put them.
type LostError struct {
	Objects int      // that they had created
	Tasks   int      // how many were open, by what the members last told
	Members []string // that had put them
}

// Error tells how many and whose.
func (e *LostError) Error() string {
	what := fmt.Sprintf("%d tasks", e.Tasks)
	if e.Objects > 0 {
		what += fmt.Sprintf(" and %d objects", e.Objects)
	}
	return fmt.Sprintf("work: %s of %s are lost: with store: memory they die with the member that has put them; with lost: go on the others continue",
		what, strings.Join(e.Members, ", "))
}

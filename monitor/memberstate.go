package monitor

import "time"

// MemberState is a state of a member of a recorded run. Its times are by the wall clock of the recording host. It began
// and ended not before the first and not after the second of two times; at all times between them it certainly held.
type MemberState struct {
	Synchronizer string       // of the member
	Member, Host string       // the names of the member and of its machine
	Start        [2]time.Time // when it began
	End          [2]time.Time // when it ended; both are its newest evidence if that is not known
	Open         bool         // it had not ended when the run did
	State        Values       // in the order of the declaration
}

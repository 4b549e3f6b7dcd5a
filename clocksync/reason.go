package clocksync

// Reason says why a sample was refused.
type Reason uint8

// The reasons; Taken is the zero value and no refusal.
const (
	Taken          Reason = iota
	Malformed             // a required field is missing or the interval, drift or readings are none
	OtherTimeline         // it is of another timeline
	Unsynchronized        // the server says that it knows no time
	Void                  // a suspend, a slew, or a step of the wall clock that it rests on, came after From
	Outdated              // its server gave a later one already
	NearLeap              // it may lie within a second of a leap second
	TooMany               // there are MaxServers servers with usable samples already
	Reasons               // the number of reasons
)

// String is a short text in lower case.
func (r Reason) String() string {
	return labelOf(uint8(r), "taken", "malformed", "other timeline", "unsynchronized", "void", "outdated", "near a leap second", "too many servers")
}

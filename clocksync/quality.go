package clocksync

import "strconv"

// Quality tells what a Clock's bound rests on. It is shown beside every verdict
// that used the bound. It is comparable.
type Quality struct {
	// Source is the name of the source, as "system", "fixed" or "ntp"; several
	// are joined by "+".
	Source string `json:"source"`
	// Assumed is true when the bound rests on an operator's word and was not
	// measured.
	Assumed bool `json:"assumed,omitempty"`
	// Unverified is true when the bound rests on one server, so that none could
	// contradict it.
	Unverified bool `json:"unverified,omitempty"`
	// Timeline is the reference time of the stamps. Stamps of two timelines must
	// not be compared. Empty if there is no bound and never was.
	Timeline Timeline `json:"timeline,omitempty"`
	// Status says how good the bound is.
	Status Status `json:"status"`
	// Expires is the reading of the domain's clock at which the status ends if
	// nothing new is learned. MaxInstant: it does not.
	Expires Instant `json:"expires"`
}

// Status says whether a bound can be used and how good it is. The bound holds
// while it is Synchronized or Degraded, and is infinite otherwise.
type Status uint8

const (
	// Unknown is without a bound, for want of samples.
	Unknown Status = iota
	// Synchronized is with a bound that is within the limit and is being renewed.
	Synchronized
	// Degraded is with a bound that is above the limit, or that grows because too
	// few servers answer.
	Degraded
	// Untrusted is without a bound, since what was measured contradicts itself:
	// more servers are wrong than may be, or the clock is not what it is taken for.
	Untrusted
)

// String is the name in lower case.
func (s Status) String() string {
	return labelOf(uint8(s), "unknown", "synchronized", "degraded", "untrusted")
}

// labelOf is a name, or the number of what has none.
func labelOf(i uint8, names ...string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return strconv.Itoa(int(i))
}

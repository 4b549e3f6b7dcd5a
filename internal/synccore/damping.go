package synccore

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Each epoch begins the predicates and their hold times again. A member that comes and
// goes would so keep all of them from firing: it has to wait longer each time.
const (
	shortStay   = 5 * time.Second        // in the epochs, counts against a member
	freeStays   = 3                      // that cost nothing
	firstPutOff = 500 * time.Millisecond // after the next one; it doubles
	lastPutOff  = 4 * time.Second        // it grows to, or to twice the longest hold time
	mostPutOff  = time.Minute            // whatever that is
	staysKept   = 10 * time.Second       // after the time that it was put off for
)

// flighty is how a member comes and goes, through all its incarnations.
type flighty struct {
	entered clocksync.Instant // the epoch that it is in, or was
	stays   int               // short ones
	left    clocksync.Instant // after the last of them
}

// countStay counts a stay in the epochs that is over, if it was short. Stays of long ago do not
// count any more.
func (c *Core) countStay(m *member) {
	if c.now > c.admittedAt(m).Add(staysKept) || c.now.Sub(m.entered) >= shortStay {
		m.stays = 0
	}
	if c.now.Sub(m.entered) < shortStay {
		m.stays, m.left = m.stays+1, c.now
	}
}

// admittedAt is when a member may come back.
func (c *Core) admittedAt(m *member) clocksync.Instant {
	if m.stays <= freeStays || c.opt.Local {
		return m.left
	}
	longest := lastPutOff
	for _, r := range c.plan.Rules {
		longest = max(longest, min(2*r.Hold, mostPutOff))
	}
	return m.left.Add(min(firstPutOff<<min(m.stays-freeStays-1, 10), longest))
}

func (c *Core) putOffText(m *member, now clocksync.Instant) string {
	return fmt.Sprintf("the member came and went %d times, each within %v, and is admitted again in %v", m.stays, shortStay, rough(c.admittedAt(m).Sub(now).Seconds()))
}

// findEntering are the members that enter the next epoch beside the members that stay. A member
// that is put off does so only if there would be too few without it.
func (c *Core) findEntering(staying int) []*member {
	all := c.readyMembers()
	ready := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return c.admittedAt(m) > c.now })
	c.putOff = clocksync.MaxInstant
	if !c.makesEpoch(staying + len(ready)) {
		return all
	}
	if len(ready) < len(all) {
		for _, m := range all {
			if at := c.admittedAt(m); at > c.now {
				c.putOff = min(c.putOff, at)
			}
		}
	}
	return ready
}

package source

import (
	"crypto/rand"
	"os"
	"strconv"
	"sync"

	"github.com/gopegasus/pegasus/clocksync"
)

// systemDomain names the domain of the readings of this process. It is found
// out once: a process does not change its boot or its time namespace.
var systemDomain = sync.OnceValue(func() clocksync.Domain { return domainOf(bootID()) })

// domainOf claims to share the clock with no other process where the boot cannot be told.
func domainOf(boot string, err error) clocksync.Domain {
	if err != nil {
		return clocksync.Domain(processID())
	}
	return clocksync.Domain("boot-" + boot)
}

// processID is a name no other process has: the pid for people, random text
// because pids come again.
var processID = sync.OnceValue(func() string {
	return "process-" + strconv.Itoa(os.Getpid()) + "-" + rand.Text()
})

// OwnDomain returns the clock with the same readings in a domain that this process shares with
// no other: other processes compare its stamps by their intervals only.
// Clocks of the same domain share the new domain when a process wraps them, since their readings
// stay comparable.
func OwnDomain(c clocksync.Clock) clocksync.Clock {
	return ownClock{c, c.Domain() + clocksync.Domain("/"+processID())}
}

type ownClock struct {
	clocksync.Clock

	domain clocksync.Domain
}

func (c ownClock) Domain() clocksync.Domain { return c.domain }

func (c ownClock) Now() clocksync.Stamp {
	s := c.Clock.Now()
	s.Domain = c.domain
	return s
}

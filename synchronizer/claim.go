package synchronizer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// A group is controlled by one synchronizer. One of another name asks, before it leads, at a
// subject of the group where whoever leads answers. Two that were cut off from each other, or
// begin at once, hear each other's beats, and one of them ends.

// claim is a synchronizer of another name that leads the same group.
type claim struct {
	beat

	name string
	at   clocksync.Instant // when it was heard
}

// checkUncontrolled fails if another synchronizer controls the group. What does not answer, such as a
// process that stands still, gives way when its beats are heard again.
func (s *Synchronizer) checkUncontrolled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout/10)
	defer cancel()
	name, err := s.bus.Request(ctx, s.subjects.GroupControl(), nil)
	switch {
	case err == nil && string(name) != s.name: // Else it begins at the same time.
		return s.findController(string(name))
	case err == nil, errors.Is(err, bus.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}

// findController says who controls the group.
func (s *Synchronizer) findController(by string) error {
	return fmt.Errorf("%w: synchronizer %q already controls group %q of tenant %q: stop one of the two, or give one another group or another tenant", ErrGroupTaken, by, s.subjects.Group, s.opt.Tenant)
}

// hearClaim notes that a synchronizer of another name leads the group.
func (s *Synchronizer) hearClaim(m bus.Message) {
	name := strings.TrimPrefix(m.Subject, s.subjects.Beat(""))
	c := &claim{name: name, at: s.opt.now()}
	if name == s.name || wire.CheckToken("synchronizer", name) != nil || wire.DecodeBeat(m.Data, &c.beat) != nil || c.Standby {
		return
	}
	if before := s.claim.Load(); c.Ends {
		if before != nil && before.name == name {
			s.claim.CompareAndSwap(before, nil)
		}
		return
	}
	s.claim.Store(c)
}

// findRivalGroup looks whether another synchronizer leads the group. Of the two the synchronizer
// continues that has led longer without being cut off or standing still. If both began within a
// second, the larger random number decides.
func (l *loop) findRivalGroup(now clocksync.Instant) {
	c := l.claim.Load()
	if c == nil || now.Sub(c.at) > beatsGone {
		return
	}
	lead := c.Steady - now.Sub(l.steady)
	if lead > beatsGone || lead >= -beatsGone && c.Nonce > l.nonce {
		l.gives = c
		return
	}
	l.opt.Logger.Warn("another synchronizer claims the group, and is to end: stop it, or give it another group", telemetry.ClassKey, "claim", "group", l.subjects.Group, "by", c.name, "process", c.String())
}

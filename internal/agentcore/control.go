package agentcore

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// The times of a [Control].
const (
	// DefaultSilence is the default of a [Rule].
	DefaultSilence = 2 * time.Second
	// MinSilence and MaxSilence bound it: whoever leads says so every 250 ms.
	MinSilence = 500 * time.Millisecond
	MaxSilence = time.Hour

	controlTick  = 250 * time.Millisecond // between two looks, while there are rules
	pauseLimit   = time.Second            // a look that is later shows that the process stood still
	askAgain     = 100 * time.Millisecond // after a round trip that was not completed
	maxTermBeats = 1 << 62                // terms are below
)

// Rule is what becomes of a region while nobody controls its member.
type Rule struct {
	// Silence is how long nobody may have been heard; 0 stands for DefaultSilence.
	Silence time.Duration
	// CancelAfter is how long after control was lost the region is cancelled; 0: it is not.
	CancelAfter time.Duration
}

// Effect is what comes about at one rule.
type Effect struct {
	Rule  uint64 // its number
	Kind  EffectKind
	After time.Duration // of EffectCancel: the rule's
}

// EffectKind says what comes about.
type EffectKind uint8

// The kinds.
const (
	EffectLost   EffectKind = iota + 1 // control is lost
	EffectBack                         // it is back
	EffectCancel                       // the region is to be cancelled; once for each rule
)

// Control says whether the members of a connection are controlled, and what becomes of their
// regions while they are not. It is pure: each call gets the present instant on the local
// monotonic clock, and [Control.Turn] tells what has come about. It must not be used by two
// goroutines at once.
//
// Control is lost
//
//   - when the server is away;
//   - when who leads has said nothing for the rule's Silence. That counts only once a beat of
//     it was heard, which it sends unasked, and only up to the beginning of a round trip to
//     the server that was completed: then nothing is on the way, or waits, that was sent
//     before. So a process that stood still first takes what has come meanwhile.
//
// It is back when who leads is heard, and the server is there. The time without control is that
// in which the process ran: time between two looks that are more than a second apart counts for
// nothing.
type Control struct {
	leader string // that has taken a member in last
	term   uint64 // of that
	beats  bool   // it sends beats
	away   bool   // the server is
	unsaid bool   // it was, and who leads was not heard since
	owes   bool   // a region was cancelled, and who leads was not heard since
	asks   bool   // a round trip is in progress
	told   bool   // [Control.News] was that control is lost

	rules []ruled // by their numbers
	last  uint64  // the last number

	now     clocksync.Instant // of the last call
	heardAt clocksync.Instant // when who leads was heard last
	backAt  clocksync.Instant // when the server came back last
	owedAt  clocksync.Instant // when a region was cancelled last
	toldAt  clocksync.Instant // when control was lost, as reported

	ran   time.Duration // how long the process has run by now; all below is by this
	heard time.Duration // when who leads was heard last
	trip  time.Duration // the beginning of the last round trip that was completed
	asked time.Duration // the number of the one in progress
	askAt time.Duration // not before
}

type ruled struct {
	Rule

	number uint64
	lost   bool
	since  time.Duration // when it was lost, or the rule began
	over   bool          // the region was cancelled
}

// NewControl returns one without rules.
func NewControl() *Control {
	return &Control{now: clocksync.MinInstant, heardAt: clocksync.MinInstant, backAt: clocksync.MinInstant, owedAt: clocksync.MinInstant}
}

// advance lets time pass.
func (c *Control) advance(now clocksync.Instant) {
	if gap := now.Sub(c.now); gap > 0 {
		c.now = now
		if gap <= pauseLimit {
			c.ran += gap
		}
	}
}

// Accepted notes the synchronizer that has taken a member in.
func (c *Control) Accepted(now clocksync.Instant, synchronizer string, term uint64) {
	if synchronizer != c.leader {
		c.leader, c.term, c.beats = synchronizer, 0, false
	}
	c.term = max(c.term, term)
	c.Hear(now, now)
}

// Leader is the synchronizer that took a member in last, and whose beats count.
func (c *Control) Leader() string { return c.leader }

// Beat takes a beat of a process that is that synchronizer. A process that does not lead, or
// not any more, is not in control.
func (c *Control) Beat(now clocksync.Instant, term uint64, leads bool) {
	if !leads || term < c.term || term >= maxTermBeats {
		return
	}
	c.beats = true
	c.Hear(now, now)
}

// Hear takes note that who leads was heard at an instant that is not after now. The same one
// may be told again.
func (c *Control) Hear(now, at clocksync.Instant) {
	before := c.ran
	c.advance(now)
	if at <= c.heardAt {
		return
	}
	c.heardAt, c.heard = at, max(before, c.ran-now.Sub(at))
	if !c.away && at >= c.backAt {
		c.unsaid = false
	}
}

// Server takes note of whether the server is away.
func (c *Control) Server(now clocksync.Instant, away bool) {
	c.advance(now)
	if c.away && !away {
		c.backAt = now
	}
	c.away, c.unsaid = away, c.unsaid || away
}

// Enter begins a rule, and returns its number, from 1, and whether control is lost for it
// already. While there are no rules, a region of the caller counts as controlled.
func (c *Control) Enter(now clocksync.Instant, r Rule) (number uint64, lost bool) {
	c.advance(now)
	if r.Silence == 0 {
		r.Silence = DefaultSilence
	}
	if len(c.rules) == 0 {
		c.heard, c.trip, c.askAt, c.unsaid = c.ran, c.ran, c.ran, c.away
	}
	c.last++
	n := ruled{Rule: r, number: c.last, since: c.ran}
	n.lost = c.lost(&n)
	c.rules = append(c.rules, n)
	return n.number, n.lost
}

// Exit ends a rule.
func (c *Control) Exit(number uint64) {
	c.rules = slices.DeleteFunc(c.rules, func(r ruled) bool { return r.number == number })
}

// RoundTrip takes note that the round trip that was asked for is over: done if everything
// that had come to the server before was taken.
func (c *Control) RoundTrip(now clocksync.Instant, done bool) {
	c.advance(now)
	switch {
	case !c.asks: // The server was away since.
	case done:
		c.trip = max(c.trip, c.asked)
	default:
		c.askAt = c.ran + askAgain
	}
	c.asks = false
}

// lost reports whether control is lost for a rule.
func (c *Control) lost(r *ruled) bool {
	return c.away || c.unsaid || c.beats && c.trip-c.heard >= r.Silence
}

// Awaits reports whether something comes about as soon as who leads is heard.
func (c *Control) Awaits() bool { return c.owes || c.told || c.anyLost() }

func (c *Control) anyLost() bool {
	return slices.ContainsFunc(c.rules, func(r ruled) bool { return r.lost })
}

// News tells, after [Control.Turn] and [Control.Enter], once that control is lost for some
// rule, and once that it is back for all, and after how long. That nobody asks any more does
// not bring it back.
func (c *Control) News() (lost, back bool, after time.Duration) {
	switch is := c.anyLost(); {
	case is && !c.told:
		c.told, c.toldAt = true, c.now
		return true, false, 0
	case c.told && !is && !c.away && !c.unsaid && c.heardAt > c.toldAt:
		c.told = false
		return false, true, c.now.Sub(c.toldAt)
	}
	return false, false, 0
}

// Turn appends what has come about to dst, in the order in which the rules were begun. ask
// is set if a round trip is to be made, whose end [Control.RoundTrip] is to be told, told if
// control is back after regions were cancelled, and wake is when to look again.
func (c *Control) Turn(now clocksync.Instant, dst []Effect) (effects []Effect, ask, told bool, wake clocksync.Instant) {
	c.advance(now)
	wanted := false
	for i := range c.rules {
		r := &c.rules[i]
		switch lost := c.lost(r); {
		case lost && !r.lost:
			r.since = c.ran
			if !c.away && !c.unsaid {
				r.since = max(0, c.heard+r.Silence)
			}
			dst = append(dst, Effect{Rule: r.number, Kind: EffectLost})
			r.lost = true
		case !lost && r.lost:
			r.lost = false
			dst = append(dst, Effect{Rule: r.number, Kind: EffectBack})
		case !lost && c.beats && c.ran-c.heard >= r.Silence:
			wanted = true
		}
		if !r.lost || r.over || r.CancelAfter == 0 {
			continue
		}
		switch due := r.since + r.CancelAfter; {
		case c.ran < due:
		case c.away || c.trip >= due:
			r.over, c.owes, c.owedAt = true, true, now
			dst = append(dst, Effect{Rule: r.number, Kind: EffectCancel, After: r.CancelAfter})
		default:
			wanted = true
		}
	}
	if ask = wanted && !c.asks && !c.away && c.ran >= c.askAt; ask {
		c.asks, c.asked = true, c.ran
	}
	if told = c.owes && !c.away && !c.unsaid && c.heardAt > c.owedAt; told {
		c.owes = false
	}
	if wake = clocksync.MaxInstant; len(c.rules) > 0 {
		wake = now.Add(controlTick)
		for i := range c.rules {
			r := &c.rules[i]
			if r.lost && !r.over && r.CancelAfter > 0 && r.since+r.CancelAfter > c.ran {
				wake = min(wake, now.Add(r.since+r.CancelAfter-c.ran))
			}
			if !r.lost && c.heard+r.Silence > c.ran {
				wake = min(wake, now.Add(c.heard+r.Silence-c.ran))
			}
		}
	}
	return dst, ask, told, wake
}

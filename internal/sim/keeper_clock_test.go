package sim

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Keeper keeps the time of a host by asking time servers, and stamps by it. It
// is what the shell of a measured clock is around the same estimator.
type Keeper struct {
	// Taken, if not nil, is called for each sample that was taken.
	Taken func(clocksync.Sample)
	// Changed, if not nil, is called when the clocks of the host were found stepped or
	// suspended.
	Changed func(clocksync.Change)

	host      *Host
	estimator *clocksync.Estimator
	config    clocksync.Config
	every     time.Duration
	bound     clocksync.Bound
	monotone  clocksync.Monotone
	askers    []func()
}

// patience is how long a reply is waited for.
const patience = 2 * time.Second

// look is how often the clocks of the host are looked at.
const look = time.Second

// NewKeeper starts a keeper that asks each of its servers about every so often.
func NewKeeper(h *Host, c clocksync.Config, every time.Duration) (*Keeper, error) {
	e, err := clocksync.NewEstimator(c)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	k := &Keeper{host: h, estimator: e, config: c, every: every}
	k.refresh()
	h.After(look, k.look)
	return k, nil
}

// Ask makes the keeper ask a server from now on.
func (k *Keeper) Ask(name string, s TimeServer, out, back *Link) {
	ask := func() { k.ask(name, s, out, back) }
	k.askers = append(k.askers, ask)
	var again func()
	again = func() {
		ask()
		k.host.After(k.host.world.Between(k.every*3/4, k.every*5/4), again)
	}
	k.host.Do(again)
}

// ask is one exchange; the server thinks for a moment before it replies.
func (k *Keeper) ask(name string, s TimeServer, out, back *Link) {
	w := k.host.world
	sent := k.host.Mono()
	out.Send(func() {
		arrived := w.now
		w.After(w.Between(10*time.Microsecond, 100*time.Microsecond), func() {
			took, ok := back.Take()
			if !ok {
				return
			}
			a, d := s.Answer(Question{
				Sent: sent, Arrived: arrived, Departs: w.now, Received: w.now.Add(took),
				Offset: w.now.Add(-time.Duration(k.host.Mono())),
			})
			timeline := k.config.Timeline
			if s.Timeline != nil {
				timeline = s.Timeline()
			}
			w.After(took, func() {
				k.host.Do(func() {
					k.follow(timeline)
					k.reply(name, s.Claim, clocksync.Exchange{Sent: sent, Arrived: a, Departed: d, Received: k.host.Mono()})
				})
			})
		})
	})
}

func (k *Keeper) reply(name string, claim time.Duration, x clocksync.Exchange) {
	offset, ok := x.Offset(k.config.Drift)
	if !ok || x.Received.Sub(x.Sent) > patience {
		return
	}
	const granularity = 2 // Each of two readings is up to 1 ns behind.
	k.observe()
	s := clocksync.Sample{
		Source: "sim", Server: name, Timeline: k.config.Timeline,
		From: x.Sent, At: x.Received, Offset: offset.Widen(claim + granularity),
		Parts: clocksync.Parts{RoundTrip: x.RoundTrip(), RootDispersion: claim, Granularity: granularity},
	}
	r := k.estimator.Add(s)
	k.host.world.Note(name, int64(s.Offset.Earliest), int64(s.Offset.Latest), int64(r))
	if r == clocksync.Taken && k.Taken != nil {
		k.Taken(s)
	}
	k.refresh()
}

// follow starts over where the time of the server is another one.
func (k *Keeper) follow(t clocksync.Timeline) {
	if t == k.config.Timeline {
		return
	}
	k.config.Timeline = t
	e, err := clocksync.NewEstimator(k.config)
	if err != nil {
		panic(fmt.Sprintf("sim: a config that was good is no longer: %v", err))
	}
	k.estimator = e
	k.refresh()
}

func (k *Keeper) look() {
	k.observe()
	k.refresh()
	k.host.After(look, k.look)
}

// observe looks at the clocks, and asks all servers at once after a change.
func (k *Keeper) observe() {
	c := k.estimator.Observe(k.host.Observe())
	if c == clocksync.Unchanged {
		return
	}
	if k.Changed != nil {
		k.Changed(c)
	}
	for _, ask := range k.askers {
		ask()
	}
}

func (k *Keeper) refresh() { k.bound = k.estimator.Bound(k.host.Mono()) }

// Domain is the host's.
func (k *Keeper) Domain() clocksync.Domain { return k.host.Domain }

// Now reads the clock; its stamps never go back, which after a contradiction they
// cannot do and be true.
func (k *Keeper) Now() clocksync.Stamp {
	s, ok := k.monotone.Next(k.Read())
	if !ok {
		panic(fmt.Sprintf("sim: the clock of host %s went back to %v", k.host.Domain, s))
	}
	return s
}

// Read stamps by the last bound, if the wall clock did not move against the
// monotonic clock since it was made; reading the boot clock would cost too much.
func (k *Keeper) Read() clocksync.Stamp {
	o := clocksync.Observation{Mono: k.host.Mono(), Boot: clocksync.MinInstant, Wall: k.host.Wall()}
	s := clocksync.Stamp{Domain: k.host.Domain, Mono: o.Mono, Within: clocksync.Unbounded}
	if o.Change(k.bound.Seen) == clocksync.Unchanged {
		s.Within = k.bound.Within(o.Mono)
	}
	return s
}

// Quality is the quality of the last bound.
func (k *Keeper) Quality() clocksync.Quality { return k.bound.Quality }

// Diagnostics are the estimator's diagnostics.
func (k *Keeper) Diagnostics() clocksync.Diagnostics { return k.estimator.Diagnostics(k.host.Mono()) }

package clocksync

import "time"

// slewWatch compares the domain's clock with a clock that is never slewed. Each is taken to be
// right but for the drift, so they go apart by twice as much at most.
type slewWatch struct {
	since   Observation // Raw is 0: none yet
	slewing bool
}

// calm is how long the clocks must go together for a slew to be over, and how far
// apart the readings are at least that show a slow one.
const calm = time.Second

// lookForSlew reports whether a slew beyond the drift has begun or ended.
func (w *slewWatch) lookForSlew(o Observation, drift float64) bool {
	if o.Raw == 0 || w.since.Raw == 0 {
		w.since = o
		return false
	}
	passed := o.Mono.Sub(w.since.Mono)
	apart := (o.Raw.Sub(w.since.Raw) - passed).Abs()
	slewing := apart > o.Slack+w.since.Slack+growthOver(passed, 2*drift)
	if !slewing && passed < calm {
		return false
	}
	changed := slewing != w.slewing
	w.since, w.slewing = o, slewing
	return changed
}

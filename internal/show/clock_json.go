package show

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// JSON is the view as one line of JSON.
func (v *Clock) JSON() string {
	q := v.Bound.Quality
	servers := make([]fields, len(v.servers))
	for i := range v.servers {
		servers[i] = v.servers[i].fields()
	}
	taints := make([]fields, len(v.Taints))
	for i, t := range v.Taints {
		taints[i] = fields{
			"since_seconds": v.ago(t.From), "noticed_seconds": v.ago(t.Noticed), "until_seconds": v.ago(t.To),
			"past": t.Past, "slewed": t.Slewed, "outliers": list(t.Outliers),
		}
	}
	o := fields{
		"event": "clock", "time": v.wall.UTC().Format(time.RFC3339Nano), "status": q.Status.String(), "source": q.Source,
		"timeline": string(q.Timeline), "assumed": q.Assumed, "unverified": q.Unverified, "drift_ppm": v.drift,
		"bound_seconds": nil, "earliest_seconds": seconds(v.offset.Earliest), "latest_seconds": seconds(v.offset.Latest),
		"age_seconds": nil, "good_for_seconds": nil,
		"counted": v.Counted, "faults": v.Faults, "needed": v.Needed, "servers": servers, "taints": taints,
		"contradictions": v.Contradictions, "steps": v.Steps, "suspends": v.Suspends, "slews": v.Slews, "notes": list(v.notes),
	}
	if v.offset.Bounded() {
		o["bound_seconds"] = half(v.offset).Seconds()
	}
	if age, ok := v.Age(); ok {
		o["age_seconds"] = age.Seconds()
	}
	if q.Expires.Finite() {
		o["good_for_seconds"] = q.Expires.Sub(v.Now).Seconds()
	}
	return JSONLine(o)
}

// ago is how long before now a reading was; nil if it is none.
func (v *Clock) ago(t clocksync.Instant) any {
	if !t.Finite() {
		return nil
	}
	return v.Now.Sub(t).Seconds()
}

// seconds is an end of an offset; nil if it is infinite.
func seconds(t clocksync.Instant) any {
	if !t.Finite() {
		return nil
	}
	return time.Duration(t).Seconds()
}

func (s *serverView) fields() fields {
	p := s.Best.Parts
	o := fields{
		"name": s.name, "standing": s.Standing.String(), "why": s.why,
		"earliest_seconds": seconds(s.offset.Earliest), "latest_seconds": seconds(s.offset.Latest),
		"samples": s.Taken, "contradicted": s.Contradicted, "parts": nil,
	}
	if s.Standing != clocksync.Silent {
		o["parts"] = fields{
			"round_trip_seconds": p.RoundTrip.Seconds(), "root_delay_seconds": p.RootDelay.Seconds(),
			"root_dispersion_seconds": p.RootDispersion.Seconds(), "precision_seconds": p.Precision.Seconds(),
			"granularity_seconds": p.Granularity.Seconds(), "correction_seconds": p.Correction.Seconds(),
			"age_seconds": s.age.Seconds(), "drift_seconds": s.growth.Seconds(),
		}
	}
	return o
}

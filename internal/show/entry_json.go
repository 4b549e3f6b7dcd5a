package show

import (
	"time"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// JSON is the entry as one line of JSON.
func (e Entry) JSON() string {
	switch event := e.Event.(type) {
	case *monitor.Line: // As it came.
		return JSONLine(event)
	case monitor.Event: // A refusal as well.
		l := event.Line()
		l.Time, l.Synchronizer = e.At, e.From
		return JSONLine(&l)
	}
	o := e.Event.(interface{ fields() fields }).fields() //nolint:forcetypeassert // It is an entry of the command.
	o["time"] = e.At.UTC().Format(time.RFC3339Nano)
	if e.From != "" {
		o["synchronizer"] = e.From
	}
	return JSONLine(o)
}

func (w Watching) fields() fields {
	return fields{"event": "watching", "url": w.URL, "tenant": w.Tenant, "synchronizers": list(w.Names)}
}

func (s Standing) fields() fields { return fields{"event": "status", "status": s.Status} }

func (n Notice) fields() fields { return fields{"event": "notice", "text": string(n)} }

func (s Skipped) fields() fields { return fields{"event": "skipped", "lines": uint64(s)} }

func (r Ready) fields() fields {
	event := "ready"
	if r.Standby {
		event = "standby"
	}
	if r.Program != "" {
		return fields{"event": event, "url": r.URL, "tenant": r.Tenant, "program": r.Program, "synchronizer": r.Levels[0].Name, "group": r.Levels[0].Group}
	}
	synchronizers := make([]fields, len(r.Levels))
	for i, l := range r.Levels {
		synchronizers[i] = fields{"name": l.Name, "group": l.Group, "members": l.Count, "predicates": list(l.Predicates)}
	}
	o := fields{"event": event, "url": r.URL, "tenant": r.Tenant, "synchronizers": synchronizers}
	if r.HTTP != "" {
		o["http"] = r.HTTP
	}
	return o
}

func (s Stopped) fields() fields {
	fates := fields{}
	for f, n := range s.Fates {
		fates[f.String()] = n
	}
	o := fields{
		"event": "stopped", "frames": s.Frames, "malformed": s.Malformed, "refused": s.Rejected, "probes": s.Probes,
		"resends": s.Resends, "decisions": s.Decisions, "suppressed": s.Suppressed, "signals": s.Signals, "fates": fates, "dropped": s.Dropped,
	}
	if j := s.Journal; j.Bytes > 0 {
		o["journal"] = fields{"inputs": j.Inputs, "lost": j.Lost, "bytes": j.Bytes}
	}
	return o
}

func (r Replayed) fields() fields {
	o := fields{
		"event": "replayed", "file": r.File, "inputs": r.Inputs, "decisions": r.Decisions,
		"same": r.FirstDifference == 0, "complete": r.Complete, "recorded_by": r.Pegasus,
	}
	if len(r.NotJudged) > 0 {
		list := make([]fields, len(r.NotJudged))
		for i, n := range r.NotJudged {
			list[i] = fields{"predicate": n.Predicate, "reason": n.Reason}
		}
		o["same"], o["not_judged"] = nil, list
	}
	if r.FirstDifference > 0 {
		o["line"] = r.FirstDifference
	}
	if !r.Complete {
		o["why"] = r.Why
	}
	if r.Compared {
		o["differences"] = r.Differences
	}
	return o
}

func (d Difference) fields() fields {
	return fields{
		"event": "difference", "line": d.Line, "epoch": d.Epoch, "predicate": d.Predicate,
		"recorded": judgmentFields(d.Recorded), "changed": judgmentFields(d.Changed),
	}
}

// judgmentFields has null for the truth of what has come to none.
func judgmentFields(s synchronizer.Judgment) fields {
	o := fields{"absent": s.Absent, "truth": nil, "fired": s.Fired}
	if s.Judged {
		o["truth"] = s.Truth.String()
	}
	return o
}

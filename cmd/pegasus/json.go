package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
	"github.com/gopegasus/pegasus/synchronizer"
)

// fields is a JSON object; encoding sorts its keys, so equal entries give equal
// lines.
type fields map[string]any

// object gives an entry as one line of JSON.
func object(e entry) string {
	o := eventFields(e.event)
	o["time"] = e.at.UTC().Format(time.RFC3339Nano)
	if e.from != "" {
		o["synchronizer"] = e.from
	}
	line, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("pegasus: entry %v does not encode: %v", e, err))
	}
	return string(line) + "\n"
}

func eventFields(event any) fields {
	switch e := event.(type) {
	case ready:
		return readyFields(&e)
	case synchronizer.Epoch:
		return fields{"event": "epoch", "epoch": e.Epoch.Epoch, "members": list(e.Members), "joined": list(e.Joined)}
	case lost:
		return fields{"event": "lost", "member": e.member, "reason": e.reason}
	case synchronizer.Verdict:
		return verdictFields(&e)
	case synchronizer.Fate:
		s := e.Signal
		return fields{
			"event": "signal", "signal": s.Name, "predicate": s.Predicate, "kind": s.Kind.String(), "region": s.Region,
			"target": s.Target, "decision": s.Decision.String(), "fate": e.Fate.String(), "detail": e.Detail,
		}
	case synchronizer.Clock:
		q := e.Quality
		return fields{
			"event": "clock", "member": e.Name, "status": q.Status.String(), "source": q.Source,
			"timeline": string(q.Timeline), "assumed": q.Assumed, "unverified": q.Unverified,
		}
	case refusal:
		return fields{"event": "refused", "from": e.From, "reason": e.Reason}
	case notice:
		return fields{"event": "notice", "text": e.text}
	case programReady:
		return fields{"event": "ready", "url": e.url, "tenant": e.tenant, "program": e.program, "synchronizer": e.level.Name, "group": e.level.Group}
	case synchronizer.Program:
		return programFields(&e)
	case synchronizer.Reloaded:
		return fields{"event": "reload", "accepted": true, "configuration": e.Config, "changes": list(e.Changes)}
	case kept:
		return fields{"event": "reload", "accepted": false, "reason": oneLine(e.reason)}
	case difference:
		return differenceFields(&e)
	case replayed:
		return replayedFields(&e)
	case stopped:
		return stoppedFields(&e)
	case skipped:
		return fields{"event": "skipped", "lines": uint64(e)}
	}
	panic(fmt.Sprintf("pegasus: no JSON for %T", event))
}

func readyFields(r *ready) fields {
	synchronizers := make([]fields, len(r.levels))
	for i, l := range r.levels {
		synchronizers[i] = fields{"name": l.Name, "group": l.Group, "members": l.Count, "predicates": list(l.Predicates)}
	}
	return fields{"event": "ready", "url": r.url, "tenant": r.tenant, "synchronizers": synchronizers}
}

func verdictFields(v *synchronizer.Verdict) fields {
	o := fields{
		"event": "verdict", "predicate": v.Predicate, "truth": v.Truth.String(),
		"epoch": v.Epoch, "state": v.Index, "partial": v.Partial,
	}
	if v.Reason != "" {
		o["reason"] = v.Reason
	}
	if !v.Fired {
		return o
	}
	witness := make([]fields, len(v.Witness))
	for i := range v.Witness {
		witness[i] = partFields(&v.Witness[i])
	}
	o["event"], o["decision"], o["witness"] = "fired", v.Decision.String(), witness
	o["held_seconds"], o["same_clock"] = v.Span.Certain().Seconds(), v.Span.SameClock
	o["bound_seconds"], o["bound_sources"] = v.Bound.Seconds(), v.Sources
	return o
}

func partFields(p *synccore.Part) fields {
	state := make(fields, len(p.Row))
	for i, v := range p.Row {
		state[p.Fields[i].Name] = plain(v)
	}
	return fields{"member": p.Name, "unknown": p.State.Unknown, "state": state}
}

// plain gives a value as JSON has it: null for none, texts for durations and
// for the infinities.
func plain(v scgs.Value) any {
	if v.Type().IsList() {
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plain(v.At(i))
		}
		return list
	}
	if v.Type() == scgs.Duration || math.IsInf(v.Float(), 0) {
		return v.String()
	}
	return v.Any()
}

func stoppedFields(s *stopped) fields {
	fates := fields{}
	for f, n := range s.Fates {
		fates[f.String()] = n
	}
	o := fields{
		"event": "stopped", "frames": s.Frames, "malformed": s.Malformed, "refused": s.Rejected, "probes": s.Probes,
		"resends": s.Resends, "decisions": s.Decisions, "signals": s.Signals, "fates": fates, "dropped": s.Dropped,
	}
	if j := s.Journal; j.Bytes > 0 {
		o["journal"] = fields{"inputs": j.Inputs, "lost": j.Lost, "bytes": j.Bytes}
	}
	return o
}

// list makes the empty list of nil, where JSON would have null.
func list(names []string) []string { return append([]string{}, names...) }

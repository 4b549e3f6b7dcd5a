package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

// fields is a JSON object; encoding sorts its keys, so equal entries give equal
// lines.
type fields map[string]any

// object gives an entry as one line of JSON.
func object(e entry) string {
	switch event := e.event.(type) {
	case *monitor.Line: // As it came.
		return jsonLine(event)
	case monitor.Event: // A refusal as well.
		l := event.Line()
		l.Time, l.Synchronizer = e.at, e.from
		return jsonLine(&l)
	}
	o := eventFields(e.event)
	o["time"] = e.at.UTC().Format(time.RFC3339Nano)
	if e.from != "" {
		o["synchronizer"] = e.from
	}
	return jsonLine(o)
}

// jsonLine is a value as one line. What cannot be encoded is a fault of the program.
func jsonLine(v any) string {
	line, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("pegasus: %v does not encode: %v", v, err))
	}
	return string(line) + "\n"
}

func eventFields(event any) fields {
	switch e := event.(type) {
	case ready:
		return readyFields(&e)
	case watching:
		return fields{"event": "watching", "url": e.url, "tenant": e.tenant, "synchronizers": list(e.names)}
	case standing:
		return fields{"event": "status", "status": e.Status}
	case notice:
		return fields{"event": "notice", "text": e.text}
	case programReady:
		return fields{"event": "ready", "url": e.url, "tenant": e.tenant, "program": e.program, "synchronizer": e.level.Name, "group": e.level.Group}
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
	o := fields{"event": "ready", "url": r.url, "tenant": r.tenant, "synchronizers": synchronizers}
	if r.http != "" {
		o["http"] = r.http
	}
	return o
}

func stoppedFields(s *stopped) fields {
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

// list makes the empty list of nil, where JSON would have null.
func list(names []string) []string { return append([]string{}, names...) }

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
	o := e.event.(interface{ fields() fields }).fields() //nolint:forcetypeassert // It is an entry of the command.
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

func (w watching) fields() fields {
	return fields{"event": "watching", "url": w.url, "tenant": w.tenant, "synchronizers": list(w.names)}
}

func (s standing) fields() fields { return fields{"event": "status", "status": s.Status} }

func (n notice) fields() fields { return fields{"event": "notice", "text": n.text} }

func (s skipped) fields() fields { return fields{"event": "skipped", "lines": uint64(s)} }

func (r ready) fields() fields {
	if r.program != "" {
		return fields{"event": "ready", "url": r.url, "tenant": r.tenant, "program": r.program, "synchronizer": r.levels[0].Name, "group": r.levels[0].Group}
	}
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

func (s stopped) fields() fields {
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

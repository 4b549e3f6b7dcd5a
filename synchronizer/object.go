package synchronizer

import (
	"cmp"
	"fmt"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// Object gives an event as the JSON object that `pegasus run --json` prints of it,
// without its time and the name of the synchronizer. The members that an [Epoch]
// has lost are not in it.
func Object(event monitor.Event) map[string]any {
	switch e := event.(type) {
	case monitor.Epoch:
		return map[string]any{"event": "epoch", "epoch": e.Epoch, "members": list(e.Members), "joined": list(e.Joined)}
	case monitor.Verdict:
		return verdictObject(&e)
	case monitor.Fate:
		s := e.Signal
		o := map[string]any{
			"event": "signal", "signal": s.Name, "predicate": s.Predicate, "kind": s.Kind.String(), "region": s.Region,
			"target": s.Target, "decision": s.Decision.String(), "fate": e.Fate.String(), "detail": e.Detail,
		}
		if e.Group != "" {
			o["group"] = e.Group
		}
		return o
	case monitor.Clock:
		q := e.Quality
		return map[string]any{
			"event": "clock", "member": e.Name, "status": q.Status.String(), "source": q.Source,
			"timeline": string(q.Timeline), "assumed": q.Assumed, "unverified": q.Unverified,
		}
	case monitor.Reload:
		return map[string]any{"event": "reload", "accepted": true, "configuration": e.Config, "changes": list(e.Changes)}
	case monitor.ProgramEvent:
		return programObject(&e)
	case monitor.Plan:
		p := e.Status()
		return planObject(&p)
	case monitor.Rejection:
		return map[string]any{"event": "refused", "from": e.From, "reason": e.Reason}
	}
	panic(fmt.Sprintf("synchronizer: no JSON for %T", event))
}

func verdictObject(v *monitor.Verdict) map[string]any {
	o := map[string]any{
		"event": "verdict", "predicate": v.Predicate, "truth": v.Truth.String(),
		"epoch": v.Epoch, "state": v.Index, "partial": v.Partial,
	}
	if v.Reason != "" {
		o["reason"] = v.Reason
	}
	if v.Suppressed > 0 {
		o["suppressed"] = v.Suppressed
	}
	if !v.Fired {
		return o
	}
	o["modality"] = cmp.Or(v.Modality, scgs.Inst.String())
	witness := make([]map[string]any, len(v.Witness))
	for i := range v.Witness {
		p := &v.Witness[i]
		witness[i] = map[string]any{"member": p.Name, "unknown": p.State.Unknown, "state": monitor.NewValues(p.Fields, p.Row)}
	}
	o["event"], o["decision"], o["witness"] = "fired", v.Decision.String(), witness
	o["held_seconds"], o["same_clock"] = v.Span.Certain().Seconds(), v.Span.SameClock
	o["bound_seconds"], o["bound_sources"] = v.Bound.Seconds(), v.Sources
	return o
}

func planObject(p *monitor.PlanStatus) map[string]any {
	return map[string]any{
		"event": "plan", "decision": p.Decision, "epoch": p.Epoch, "state": p.Index, "partial": p.Partial,
		"strategy": p.Strategy, "verdict": p.Verdict,
		"longest_before_seconds": p.Before, "longest_after_seconds": p.After,
		"nodes": p.Nodes, "moves": p.Moves, "refused": p.Refused, "left_out": p.LeftOut,
	}
}

// list makes the empty list of nil, where JSON would have null.
func list(names []string) []string { return append([]string{}, names...) }

// resultShown is how many bytes of a result are part of an object.
const resultShown = 4 << 10

var programWords = map[monitor.ProgramKind]string{
	monitor.ProgramStart: "start", monitor.ProgramCancel: "cancel", monitor.ProgramPass: "pass", monitor.ProgramSignal: "signalled",
	monitor.ProgramEnd: "end", monitor.ProgramLost: "lost-block", monitor.ProgramFinish: "finish", monitor.ProgramRefuse: "program-refused",
	monitor.ProgramFail: "fail",
}

// programObject leaves out what does not apply, and results that are long.
func programObject(e *monitor.ProgramEvent) map[string]any {
	o := map[string]any{"event": programWords[e.Kind]}
	put := func(key, value string) {
		if value != "" {
			o[key] = value
		}
	}
	put("path", e.Path)
	put("construct", e.Construct)
	put("name", e.Name)
	put("processor", e.Processor)
	put("predicate", e.Predicate)
	put("reason", e.Reason)
	if len(e.Result) <= resultShown {
		put("result", e.Result)
	} else {
		o["result_bytes"] = len(e.Result)
	}
	if len(e.Replicas) > 0 {
		o["replicas"] = e.Replicas
	}
	if e.Block.Instance > 0 {
		o["block"] = e.Block.String()
	}
	if e.Run > 0 {
		o["run"] = e.Run
	}
	if e.Decision.Number > 0 {
		o["decision"] = e.Decision.String()
	}
	if e.Kind == monitor.ProgramPass {
		o["branch"] = e.Branch
	}
	if e.Outcome != 0 {
		o["outcome"] = e.Outcome.String()
	}
	return o
}

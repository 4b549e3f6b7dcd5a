package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/plan"
)

// maxLog bounds the records of an execution, in bytes. An execution that needs more is
// continued from its journal alone.
const maxLog = 32 << 20

// record is what leads another executor to where this one is: an input of the
// interpreter, or what has become of a run or a processor beside that.
type record struct {
	Now         clocksync.Instant `json:"now,omitempty"`
	In          *program.Input    `json:"in,omitempty"`
	Processor   string            `json:"processor,omitempty"`   // that has the Incarnation by now
	Incarnation uint64            `json:"incarnation,omitempty"` // also of In.Node, which has joined
	Numbers     uint64            `json:"numbers,omitempty"`     // runs have numbers above that from now on
	Behind      time.Duration     `json:"behind,omitempty"`      // of the interpreter's time, from now on
	Run         uint64            `json:"run,omitempty"`         // has come to Body, has the number Again by now, or else was sent its start
	Body        *plan.Body        `json:"body,omitempty"`        // see Run
	Again       uint64            `json:"again,omitempty"`       // see Run
}

// log is all records so far. Verdicts that have led to nothing wait: a later one on the same
// predicate takes their place.
type log struct {
	records []plan.Record
	bytes   int
	idle    []record
	full    bool // there were too many: none is kept any more
}

// Log implements [plan.Executor].
func (f *executor) Log(after int) (records []plan.Record, whole bool) {
	return f.log.records[min(after, len(f.log.records)):], !f.log.full
}

func (l *log) noteRecord(rec *record) {
	idle := l.idle
	l.idle = nil
	for i := range idle {
		l.add(&idle[i])
	}
	l.add(rec)
	if l.idle = idle[:0]; l.bytes > maxLog {
		*l = log{full: true}
	}
}

func (l *log) add(rec *record) {
	if l.full {
		return
	}
	text, err := json.Marshal(rec)
	if err != nil {
		panic(err) // It has nothing that could not be marshalled.
	}
	l.records, l.bytes = append(l.records, text), l.bytes+len(text)
}

// noteInput records an input of the interpreter and what that has made of it.
func (p *pass) noteInput(in *program.Input, made []program.Action) {
	l := &p.log
	rec := record{Now: p.now, In: in}
	if in.Kind == program.InJoined {
		rec.Incarnation = p.processors[in.Node.Name].incarnation
	}
	if in.Kind != program.InVerdict || slices.ContainsFunc(made, func(a program.Action) bool { return a.Kind != program.ActSignal }) {
		l.noteRecord(&rec)
		return
	}
	l.idle = slices.DeleteFunc(l.idle, func(r record) bool { return r.In.Predicate == in.Predicate })
	l.idle = append(l.idle, rec)
}

// Recall implements [plan.Executor].
func (f *executor) Recall(text plan.Record) error {
	var rec record
	if err := json.Unmarshal(text, &rec); err != nil {
		return err
	}
	if rec.In != nil {
		return f.recallInput(&rec)
	}
	r, q := f.runs[rec.Run], f.processors[rec.Processor]
	switch {
	case rec.Numbers > 0:
		f.numbers = rec.Numbers
	case rec.Behind != 0:
		f.behind = rec.Behind
	case rec.Processor != "" && q != nil:
		q.incarnation = rec.Incarnation
	case r == nil:
		return fmt.Errorf("a record of run %d, which there is not, on processor %q", rec.Run, rec.Processor)
	case rec.Body != nil:
		r.body = rec.Body
	case rec.Again > 0:
		f.numbers = rec.Again - 1
		f.renumberRun(r)
		return nil // That has recorded it.
	default:
		r.started = true
	}
	f.log.noteRecord(&rec)
	return nil
}

func (f *executor) recallInput(rec *record) error {
	in := rec.In
	p := pass{executor: f, now: rec.Now, out: &plan.ExecutorOutput{}}
	q, r := f.processors[in.Node.Name], f.byID[in.Block]
	switch in.Kind { //nolint:exhaustive // The others concern the interpreter alone.
	case program.InBegin:
		f.began = true
	case program.InJoined:
		f.processors[in.Node.Name] = &processor{name: in.Node.Name, node: in.Node.Of, incarnation: rec.Incarnation}
	case program.InLeft:
		if q == nil {
			return fmt.Errorf("a record of processor %q, which there is not", in.Node.Name)
		}
		p.loseProcessor(q, "")
		return nil
	case program.InDone, program.InFailed:
		if r == nil {
			return fmt.Errorf("a record of block %v, which does not run", in.Block)
		}
		p.endRun(r, in)
		return nil
	}
	p.stepInterpreter(in)
	return nil
}

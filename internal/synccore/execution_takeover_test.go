package synccore_test

import (
	"bytes"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// standby is a machine that receives the inputs of a fleet's and the records of its program, as
// lines of a journal, and records them.
type standby struct {
	f      *fleet
	core   *synccore.Core
	lines  *journal.Reader
	record recorder
	told   int  // records of the program
	deaf   bool // it receives nothing any more
}

// attach has a standby come now, late or again.
func (f *fleet) attach() {
	f.stand = &standby{f: f, core: synccore.New(f.plan, synccore.Options{Follows: true}), lines: journal.Follow(f.plan), record: recorder{on: true}}
	f.core.Retell(func(in *synccore.Input) { f.stand.step(f.now, in) })
	f.stand.records()
}

// follow has it step on an input of the other machine, and on what that has made of it.
func (s *standby) follow(now clocksync.Instant, in *synccore.Input, made *synccore.Kept) {
	if s == nil || s.deaf {
		return
	}
	s.step(now, in)
	if made != nil {
		s.step(now, &synccore.Input{Kind: synccore.InKept, Kept: made})
	}
	s.records()
}

func (s *standby) records() {
	r, whole := s.f.core.Records(s.told)
	if !whole {
		s.f.t.Fatal("there are too many records")
	}
	for _, text := range r {
		s.step(s.f.now, &synccore.Input{Kind: synccore.InProgram, Record: &synccore.Record{After: s.told, Step: text}})
		s.told++
	}
}

func (s *standby) step(now clocksync.Instant, in *synccore.Input) {
	line, err := journal.AppendInput(nil, s.f.plan.State, now, in)
	if err != nil {
		s.f.t.Fatal(err)
	}
	var rec journal.Record
	if err := s.lines.Take(bytes.TrimSuffix(journal.AppendBroken(line), []byte("\n")), &rec); err != nil {
		s.f.t.Fatalf("%v: %s", err, line)
	}
	var out synccore.Output
	s.record.step(s.f.t, s.core, rec.Now, &rec.Input, &out)
	if !s.core.Recalls() {
		s.f.t.Fatalf("it cannot go on with the program after %s: %v", line, out.Rejected)
	}
}

// takeover has the standby continue in the next term, in place of the machine.
func (f *fleet) takeover() {
	s := f.stand
	f.stand, f.tail = nil, nil
	f.core, f.record = s.core, s.record
	kept := s.core.KeptUpTo(s.core.Decisions())
	f.term++
	again := &synccore.Options{Term: f.term, Runs: f.term << 32, Hold: plan.HoldKnown}
	if s.deaf {
		again.Hold = plan.HoldSilence
	}
	f.step(synccore.Input{Kind: synccore.InRestart, Restart: again})
	f.step(synccore.Input{Kind: synccore.InKept, Kept: kept})
	f.call()
}

// twice returns the processor where a block runs that begins on another one as well, though
// nobody has given that up, and it obeys an earlier term. Nil if there is none.
func (w *field) twice(p *proc) *proc {
	place, ok := w.places[p.last.run]
	if !ok || w.now.Sub(w.since) > w.plan.Silence.After {
		return nil
	}
	for _, q := range w.procs {
		if q != p && !q.dead && q.runs && q.last.program == p.last.program && w.places[q.last.run] == place && q.term < w.term && !slices.Contains(w.gone, q.last.run) {
			return q
		}
	}
	return nil
}

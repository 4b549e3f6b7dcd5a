package synccore_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
)

// recorder writes the journal of a machine.
type recorder struct {
	on     bool
	text   []byte
	digest journal.Digest
	inputs uint64
}

func (r *recorder) step(t tester, core *synccore.Core, now clocksync.Instant, in *synccore.Input, out *synccore.Output) {
	t.Helper()
	if !r.on {
		core.Step(now, in, out)
		return
	}
	if r.inputs == 0 {
		h := journal.NewHeader(core.Level(), core.Made())
		h.Pegasus, h.Started, h.Now = "v1.2.3", 1_700_000_000_000_000_000, now
		r.text = journal.AppendHeader(nil, &h)
	}
	text, err := journal.AppendInput(r.text, core.Level().State, now, in)
	if err != nil {
		t.Fatal(err)
	}
	core.Step(now, in, out)
	r.inputs++
	r.digest.Add(out)
	r.text = journal.AppendOutput(text, &r.digest)
}

// replay steps a fresh machine through a journal, wants the same outputs, and records it again.
// Beside it steps a machine that has no shorter way for usual inputs.
func replay(t *testing.T, text []byte) (again recorder, j *journal.Reader) {
	t.Helper()
	j, err := journal.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	core, general := synccore.New(j.Level, j.Header.Options), synccore.New(j.Level, j.Header.Options)
	general.General()
	again.on = true
	var out, same synccore.Output
	var digest journal.Digest
	var rec journal.Record
	for {
		err := j.Next(&rec)
		if errors.Is(err, io.EOF) {
			return again, j
		}
		if err != nil {
			t.Fatal(err)
		}
		again.step(t, core, rec.Now, &rec.Input, &out)
		if sum := again.digest.Sum(); sum != rec.Out {
			t.Fatalf("line %d: the digest is %x, and was %x when it was recorded", j.Line(), sum, rec.Out)
		}
		if kept, want := core.Heads(); kept != want {
			t.Fatalf("line %d: the sum over the states in force is %x, and should be %x", j.Line(), kept, want)
		}
		general.Step(rec.Now, &rec.Input, &same)
		if digest.Add(&same); digest.Sum() != rec.Out {
			t.Fatalf("line %d: in the general way the output is another one: %s", j.Line(), cmp.Diff(same, out, cmp.AllowUnexported(scgs.Value{})))
		}
	}
}

// TestJournalOfWorlds replays what a synchronizer heard over a bad network, and
// records the replay: the two journals are equal byte for byte.
func TestJournalOfWorlds(t *testing.T) {
	for s := range uint64(1 + worlds(t)/4) {
		w := newWorld(t, 1000+s)
		w.record.on = true
		w.run()
		again, j := replay(t, w.record.text)
		if string(again.text) != string(w.record.text) {
			t.Fatalf("seed %d: the journal of the replay is another one:\n%s", 1000+s, cmp.Diff(string(w.record.text), string(again.text)))
		}
		if j.Inputs != w.record.inputs || j.Inputs < 1000 || j.Ended || j.Cut {
			t.Fatalf("%d inputs of %d, ended %t, cut %t", j.Inputs, w.record.inputs, j.Ended, j.Cut)
		}
	}
}

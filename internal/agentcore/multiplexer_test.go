package agentcore_test

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// newCarried is a member that is welcome and has told the state that began at 10.
func newCarried(t *testing.T, multiplexer string) (*machine, *agentcore.Output) {
	t.Helper()
	c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "n-0", Incarnation: 1, Domain: "d", Multiplexer: multiplexer}})
	c.OnWelcome(0, &wire.Welcome{Synchronizer: "s", Member: "n-0", Incarnation: 1, Accepted: true, Schema: scgs.Schema{{Name: "n", Type: scgs.Int}}})
	var out agentcore.Output
	begin(t, c, 10)
	if e := c.Evidence(11, stamp(11)); e.Seq != 0 {
		t.Fatalf("evidence %+v of a state that has not been told", e)
	}
	c.Flush(11, stamp(11), &out)
	return c, &out
}

func begin(t *testing.T, c *machine, at clocksync.Instant) {
	t.Helper()
	if err := c.Set(at, stamp(at), []scgs.Value{scgs.IntValue(int64(at))}); err != nil {
		t.Fatal(err)
	}
}

// TestEvidenceForAMultiplexer: there is evidence of the open state while the synchronizer
// has been sent all else; it answers probes, and it is no batch.
func TestEvidenceForAMultiplexer(t *testing.T) {
	c, out := newCarried(t, "n")
	c.OnProbe(12, &wire.Probe{Incarnation: 1, Seq: 1, AfterMono: 15, AfterTime: clocksync.MinInstant})
	if e := c.Evidence(14, stamp(14)); e.Seq != 1 || e.At != stamp(14) || c.Wake() != 16 {
		t.Errorf("%+v, and a reading may answer the probe at %v, want 16", e, c.Wake())
	}
	heartbeat := clocksync.Instant(11).Add(time.Second)
	if e := c.Evidence(16, stamp(16)); e.Seq != 1 || c.Wake() != heartbeat {
		t.Errorf("%+v, and the next batch is due at %v, want %v", e, c.Wake(), heartbeat)
	}
	begin(t, c, 20)
	if e := c.Evidence(21, stamp(21)); e.Seq != 0 {
		t.Errorf("evidence %+v of a state that has not been told", e)
	}
	c.Flush(21, stamp(21), out)
	if e := c.Evidence(21, stamp(20)); e.Seq != 0 { // a reading that is not above its start
		t.Errorf("evidence %+v of a state that begins then", e)
	}
	if e := c.Evidence(22, stamp(22)); e.Seq != 2 {
		t.Errorf("evidence %+v, want of state 2", e)
	}
	c.OnResend(23, &wire.Resend{Incarnation: 1, From: 1, To: 1})
	if e := c.Evidence(23, stamp(23)); e.Seq != 0 {
		t.Errorf("evidence %+v while reports are asked for again", e)
	}
	c.Flush(24, stamp(24), out)
	if err := c.End(25, stamp(25)); err != nil {
		t.Fatal(err)
	}
	c.Flush(25, stamp(25), out)
	if e := c.Evidence(26, stamp(26)); e.Seq != 0 {
		t.Errorf("evidence %+v of no state", e)
	}
	begin(t, c, 30)
	c.Recall(30)
	if e := c.Evidence(31, stamp(31)); e.Seq != 0 {
		t.Errorf("evidence %+v for nobody", e)
	}
}

// TestFatesBesideABatch: fates that are final go in one message with a batch; a member
// that speaks for itself would need one message more, and waits.
func TestFatesBesideABatch(t *testing.T) {
	for multiplexer, want := range map[string]int{"n": 1, "": 0} {
		c, out := newCarried(t, multiplexer)
		if _, err := c.Enter(11, "r", []control.Handler{{Name: "go"}}); err != nil {
			t.Fatal(err)
		}
		c.Flush(11, stamp(11), out)
		sig := control.Signal{
			Decision: control.Decision{Synchronizer: "s", Number: 1}, Name: "go", Predicate: "p", Kind: control.Activate,
			Target: "n-0", Region: "r", Entry: 1, TTL: time.Minute,
		}
		c.OnSignals(12, &wire.Signals{Synchronizer: "s", Incarnation: 1, Signals: []control.Signal{sig}})
		begin(t, c, 13)
		c.Flush(14, stamp(14), out)
		if len(out.Batches) != 1 || len(out.Acks) != 0 {
			t.Errorf("multiplexer %q: %d batches, and %d answers though the signal waits", multiplexer, len(out.Batches), len(out.Acks))
		}
		c.Finish(15, c.Next(15, 1, control.AtCheck), control.Applied)
		begin(t, c, 16)
		c.Flush(17, stamp(17), out)
		if len(out.Batches) != 1 || len(out.Acks) != want {
			t.Errorf("multiplexer %q: %d batches and %d answers, want %d with the batch", multiplexer, len(out.Batches), len(out.Acks), want)
		}
	}
}

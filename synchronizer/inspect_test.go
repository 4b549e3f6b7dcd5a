package synchronizer_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestInspect asks a recorded run where it stood: at the end, between two states of a member, and before all inputs.
func TestInspect(t *testing.T) {
	server := serve(t, 0)
	w := newWatch()
	var journal bytes.Buffer
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe, Journal: &journal})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	set(t, a, state{Idle: true})
	set(t, b, state{})
	_, _ = w.await(t, 0, "a verdict", func(e monitor.Event) bool { v, ok := e.(monitor.Verdict); return ok && v.Truth.String() == "false" })
	set(t, b, state{Idle: true})
	_, _ = w.await(t, 0, "a firing", func(e monitor.Event) bool { v, ok := e.(monitor.Verdict); return ok && v.Fired })
	live, err := s.Why(t.Context(), "all-idle")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var between time.Time // By the clock of the recording.
	if _, err := synchronizer.Replay(bytes.NewReader(journal.Bytes()), synchronizer.ReplayOptions{Observe: func(at time.Time, e monitor.Event) {
		if v, ok := e.(monitor.Verdict); ok && v.Truth.String() == "false" && between.IsZero() {
			between = at
		}
	}}); err != nil || between.IsZero() {
		t.Fatal(err)
	}
	var states []string
	if _, err := synchronizer.Replay(bytes.NewReader(journal.Bytes()), synchronizer.ReplayOptions{State: func(m *monitor.MemberState) {
		states = append(states, m.Member+" "+m.State.String())
		if m.Synchronizer != "gsync" || m.Host == "" || m.Start[1].Before(m.Start[0]) || m.End[0].Before(m.Start[0]) || time.Since(m.Start[0]) > time.Hour || m.Open != (len(states) > 1) {
			t.Errorf("%+v", m)
		}
	}}); err != nil || len(states) != 3 || states[0] != "b idle=false n=0" || states[1] != "a idle=true n=0" || states[2] != "b idle=true n=0" {
		t.Errorf("%q, %v", states, err)
	}
	inspect := func(until time.Time, look func(i *synchronizer.Inspection)) *synchronizer.Replayed {
		t.Helper()
		looked := 0
		got, err := synchronizer.Replay(bytes.NewReader(journal.Bytes()), synchronizer.ReplayOptions{Until: until, Inspect: func(i *synchronizer.Inspection) {
			looked++
			look(i)
		}})
		if err != nil || got.FirstDifference != 0 || looked != 1 {
			t.Fatalf("%+v, %v, looked %d times", got, err, looked)
		}
		return got
	}
	why := func(i *synchronizer.Inspection) monitor.Explanation {
		t.Helper()
		e, err := i.Why("all-idle")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	end := inspect(time.Time{}, func(i *synchronizer.Inspection) {
		if e := why(i); e.Truth != "true" || e.Fired != live.Fired || e.Last == nil || e.Last.ID != live.Last.ID {
			t.Errorf("at the end: %+v, and it was %+v", e, live)
		}
		if status := i.Status(); len(status.Members) != 2 || status.Epoch != 1 || !i.At().After(between) {
			t.Errorf("at the end, %v: %+v", i.At(), status)
		}
		if _, err := i.Why("all-idl"); !errors.Is(err, synchronizer.ErrNoPredicate) || !strings.Contains(err.Error(), `did you mean "all-idle"?`) {
			t.Error(err)
		}
	})
	middle := inspect(between, func(i *synchronizer.Inspection) {
		if e := why(i); e.Truth != "false" || e.Fired != 0 || !i.At().Equal(between) {
			t.Errorf("between, %v and asked for %v: %+v", i.At(), between, e)
		}
	})
	if middle.Complete || middle.Inputs >= end.Inputs || !end.Complete || !strings.HasPrefix(middle.Why, "the journal was replayed until 20") {
		t.Errorf("%+v, and to the end %+v", middle, end)
	}
	if before := inspect(time.Unix(1, 0), func(i *synchronizer.Inspection) {
		if status := i.Status(); status.Epoch != 0 || len(status.Members) != 0 {
			t.Errorf("before all inputs: %+v", status)
		}
	}); before.Inputs != 0 {
		t.Errorf("%d inputs before 1970", before.Inputs)
	}
}

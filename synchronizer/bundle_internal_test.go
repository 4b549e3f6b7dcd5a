package synchronizer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const carriedConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      high: {when: "sum(members, .n) > 1", signal: {kind: activate, region: r}}
`

// bundle is what the multiplexer n brings.
func (c *crowd) bundle(parts []wire.Part, alive ...wire.Alive) []byte {
	c.tb.Helper()
	frame, rest, err := wire.AppendBundle(nil, &wire.Bundle{Parts: parts, Alive: alive})
	if err != nil || !rest.Empty() {
		c.tb.Fatal(rest, err)
	}
	return frame
}

func (c *crowd) carried(name string) []byte {
	c.tb.Helper()
	frame, err := wire.AppendHello(nil, &wire.Hello{Member: name, Incarnation: 1, Host: "h", Domain: c.s.clock.Domain(), Multiplexer: "n"})
	if err != nil {
		c.tb.Fatal(err)
	}
	return frame
}

// TestBundle: what a multiplexer brings is stepped with part by part, nobody is probed
// before its end, and then the multiplexer is, once.
func TestBundle(t *testing.T) {
	c := newCrowd(t, carriedConfig, Options{})
	l, now := c.drive(), c.s.opt.now()
	rejected := ""
	l.opt.Observe = func(e monitor.Event) {
		if r, ok := e.(monitor.Rejection); ok {
			rejected += fmt.Sprintf("%v of %s: %s\n", r.Reason, r.From, r.Detail)
		}
	}
	take := func(frame []byte) { l.receiveFrame(&item{member: "n", frame: frame, at: now}) }

	take(c.bundle([]wire.Part{{Member: "n-0", Frame: c.carried("n-0")}, {Member: "n-1", Frame: c.carried("n-1")}}))
	first, second := c.batch("n-0", 1, now, 1), c.batch("n-1", 1, now.Add(2*time.Millisecond), 1)
	// The last part is refused, and what lacks is asked for all the same.
	take(c.bundle([]wire.Part{{Member: "n-0", Frame: first}, {Member: "n-1", Frame: second}, {Member: "n-1", Frame: c.carried("n-0")[:7]}}))
	l.tick()
	want := wire.Addressed[wire.Probe]{To: "n", Msg: wire.Probe{AfterMono: now.Add(2 * time.Millisecond), AfterTime: clocksync.MinInstant}}
	if len(l.output.Probes) != 1 || l.output.Probes[0] != want {
		t.Errorf("probes %+v, want %+v", l.output.Probes, want)
	}
	if !strings.Contains(rejected, "wire: hello") {
		t.Errorf("refused: %q", rejected)
	}

	rejected = ""
	take(c.bundle([]wire.Part{{Member: "m-0", Frame: first}}))
	if w := l.output.Welcomes; len(w) != 1 || w[0].To != "m-0" || w[0].Msg.Accepted {
		t.Errorf("a member that has not said who speaks for it is told %+v", w)
	}
	l.receiveFrame(&item{ack: true, member: "n", frame: c.bundle(nil), at: now})
	take(c.bundle(nil)[:4])
	if want := `frame of n: a bundle does not belong on this subject
frame of n: wire: bundle: parts: the frame ends inside it
`; rejected != want {
		t.Errorf("refused:\n%swant:\n%s", rejected, want)
	}

	alive := func(name string, seq uint64) wire.Alive {
		return wire.Alive{Member: name, Incarnation: 1, Evidence: wire.Evidence{Seq: seq, At: clocksync.Stamp{Mono: now.Add(5 * time.Millisecond), Within: clocksync.Unbounded}}}
	}
	take(c.bundle(nil, alive("n-0", 1), alive("n-1", 1)))
	if v := l.output.Verdicts; len(v) != 1 || !v[0].Fired {
		t.Errorf("with evidence of both: %+v", v)
	}
}

// TestSignalsOfOneMultiplexer: the signals of a step to members of the same multiplexer travel
// in one frame; a signal that is too long for that travels alone, and so do signals to others.
func TestSignalsOfOneMultiplexer(t *testing.T) {
	c := newCrowd(t, carriedConfig, Options{})
	l := c.drive()
	l.receiveFrame(&item{member: "n", frame: c.bundle([]wire.Part{{Member: "n-0", Frame: c.carried("n-0")}, {Member: "n-1", Frame: c.carried("n-1")}})})
	type sent struct{ subject, parts string }
	got := make(chan sent, 10)
	for _, member := range []string{"n", "n-0", "n-1", "w"} {
		if err := c.members.Subscribe(c.subjects.Signal(member), bus.Limits{}, func(m bus.Message) {
			var b wire.Bundle
			if err := wire.DecodeBundle(m.Data, &b); err != nil {
				got <- sent{member, "alone"}
				return
			}
			var names []string
			for _, p := range b.Parts {
				s, err := wire.DecodeSignals(p.Frame)
				names = append(names, fmt.Sprintf("%s(%d, %v)", p.Member, len(s.Signals), err))
			}
			got <- sent{member, strings.Join(names, "")}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.members.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	signals := func(to string, n, bytes int) wire.Addressed[wire.Signals] {
		s := control.Signal{
			Decision: control.Decision{Synchronizer: "gsync", Term: 1, Epoch: 1, Number: 1}, Name: "high", Predicate: "high", Kind: control.Activate,
			Target: to, Region: "r", Entry: 1, Data: []control.Datum{{Name: "x", Value: scgs.StringValue(strings.Repeat("x", bytes))}},
		}
		a := wire.Addressed[wire.Signals]{To: to, Msg: wire.Signals{Synchronizer: "gsync", Term: 1, Epoch: 1, Incarnation: 1}}
		for range n {
			a.Msg.Signals = append(a.Msg.Signals, s)
		}
		if strings.HasPrefix(to, "n-") {
			a.Via = "n"
		}
		return a
	}
	long := 3900 // of the data: 15 signals that fit a frame and no bundle
	for ; ; long++ {
		a := signals("n-0", 15, long)
		frame, n, err := wire.AppendSignals(nil, &a.Msg)
		if err != nil || n < 15 {
			t.Fatal(n, err)
		}
		if len(frame) > wire.MaxPart {
			break
		}
	}
	for i, want := range []struct {
		send []wire.Addressed[wire.Signals]
		got  []sent
	}{
		{
			[]wire.Addressed[wire.Signals]{signals("n-0", 1, 1), signals("w", 1, 1), signals("n-1", 2, 1)},
			[]sent{{"n", "n-0(1, <nil>)n-1(2, <nil>)"}, {"w", "alone"}},
		},
		{
			[]wire.Addressed[wire.Signals]{signals("n-0", 15, 3900), signals("n-1", 15, 3900)}, // 15 are below the limit, two times 15 are not
			[]sent{{"n", "n-0(15, <nil>)"}, {"n", "n-1(15, <nil>)"}},
		},
		{
			[]wire.Addressed[wire.Signals]{signals("n-1", 1, 1), signals("n-0", 15, long)},
			[]sent{{"n", "alone"}, {"n", "n-1(1, <nil>)"}}, // n hands it on to whom it is for
		},
	} {
		l.sendAll(want.send)
		var all []sent // Those on one subject are in order.
		for range want.got {
			all = append(all, <-got)
		}
		slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.subject, b.subject) })
		if !slices.Equal(all, want.got) {
			t.Errorf("step %d: %v, want %v", i, all, want.got)
		}
	}
}

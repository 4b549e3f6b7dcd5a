package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// fakeSource says that the clock is where the test wants it, if it says anything.
type fakeSource struct {
	name   string
	offset clocksync.Interval
	fault  string
	from   int32 // of its polls, the first that has a sample
	polls  *atomic.Int32
}

func fake(name string, earliest, latest time.Duration) fakeSource {
	return fakeSource{name: name, offset: clocksync.Interval{Earliest: clocksync.Instant(earliest), Latest: clocksync.Instant(latest)}, polls: new(atomic.Int32)}
}

func failing(name, fault string) fakeSource {
	s := fake(name, 0, 0)
	s.fault = fault
	return s
}

func (s fakeSource) Name() string         { return s.name }
func (s fakeSource) Servers() int         { return 1 }
func (s fakeSource) Every() time.Duration { return 10 * time.Millisecond }

func (s fakeSource) Sample(context.Context) ([]clocksync.Sample, error) {
	if n := s.polls.Add(1); s.fault != "" || n < s.from {
		return nil, &source.Refusal{Source: s.name, Server: "here", Reason: source.Unavailable, Err: errors.New(s.fault)}
	}
	now := source.System().Now().Mono
	return []clocksync.Sample{{Source: s.name, Server: "here", Timeline: clocksync.UTC, From: now, At: now, Offset: s.offset}}, nil
}

// executeClock runs the subcommand with other sources.
func executeClock(t *testing.T, sources clockSources, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := newClock(func(*clockFlags) (clockSources, error) { return sources, nil })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, errs bytes.Buffer
	cmd.SetArgs(append([]string{}, args...))
	cmd.SetOut(&out)
	code = report(&errs, cmd, cmd.ExecuteContext(t.Context()))
	return code, out.String(), errs.String()
}

func clockObject(t *testing.T, line string) (o struct {
	Status, Source string
	Bound          float64 `json:"bound_seconds"`
	Drift          float64 `json:"drift_ppm"`
	Faults         int
	Servers        []struct{ Name, Standing, Why string }
	Notes          []string
},
) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return o
}

func TestClockTakesTheFirstOfThisMachineThatAnswers(t *testing.T) {
	last := fake("c", 0, 1)
	sources := clockSources{local: []source.Source{failing("a", "not there"), fake("b", -time.Millisecond, time.Millisecond), last}}
	code, stdout, stderr := executeClock(t, sources, "--json")
	o := clockObject(t, stdout)
	if code != exitOK || stderr != "" || o.Status != "synchronized" || o.Source != "b" || o.Bound < 0.001 || o.Bound > 0.002 {
		t.Errorf("exit %d, stderr %q, %+v", code, stderr, o)
	}
	if len(o.Servers) != 2 || o.Servers[0].Name != "b here" || o.Servers[1].Name != "a here" || o.Servers[1].Why != "not there" {
		t.Errorf("%+v", o.Servers)
	}
	if last.polls.Load() != 0 {
		t.Error("a source after the first with a bound was asked")
	}
}

// TestClockDrift: without the flag the drift is the default of this machine.
func TestClockDrift(t *testing.T) {
	for args, want := range map[string]float64{"--json": source.DefaultDrift(), "--json --drift=70": 70} {
		code, stdout, stderr := executeClock(t, clockSources{named: []source.Source{fake("a", 0, 1)}}, strings.Fields(args)...)
		if o := clockObject(t, stdout); code != exitOK || stderr != "" || o.Drift != want {
			t.Errorf("%s: exit %d, stderr %q, drift %v, want %v", args, code, stderr, o.Drift, want)
		}
	}
}

func TestClockWithoutAnyBound(t *testing.T) {
	t.Parallel()
	sources := clockSources{local: []source.Source{failing("a", "not there"), failing("b", "not\x1b[2J synchronized")}}
	code, stdout, stderr := executeClock(t, sources, "--timeout", "500ms")
	want := `unknown: no bound can be claimed
votes     0 servers counted, 0 may be wrong, 0 must agree
a here is silent: not there
b here is silent: not` + "\uFFFD" + `[2J synchronized
nothing on this machine has a bound: run chronyd, or ask servers with --ntp HOST,HOST,HOST
`
	if code != exitFailure || stdout != want || stderr != "" {
		t.Errorf("exit %d, stderr %q,\n%s", code, stderr, stdout)
	}
	code, stdout, _ = executeClock(t, sources, "--timeout", "500ms", "--json")
	if o := clockObject(t, stdout); code != exitFailure || o.Status != "unknown" || len(o.Servers) != 2 {
		t.Errorf("exit %d, %+v", code, o)
	}
}

func TestClockClaimsNoBoundThatIsNone(t *testing.T) {
	one, other := fake("a", -time.Millisecond, time.Millisecond), fake("b", time.Second, 2*time.Second)
	for name, c := range map[string]struct {
		sources []source.Source
		args    string
		code    int
		status  string
	}{
		"contradiction":          {[]source.Source{one, other}, "--timeout 1s", exitFailure, "untrusted"},
		"one of three":           {[]source.Source{one, failing("b", "no"), failing("c", "no")}, "--timeout 1s", exitFailure, "unknown"},
		"none may be wrong":      {[]source.Source{one, failing("b", "no"), failing("c", "no")}, "--faults 0", exitOK, "synchronized"},
		"above the limit":        {[]source.Source{one}, "--limit 100us --timeout 1s", exitFailure, "degraded"},
		"within the limit":       {[]source.Source{one}, "--limit 10ms", exitOK, "synchronized"},
		"a liar among three":     {[]source.Source{one, other, fake("c", -2*time.Millisecond, 0)}, "", exitOK, "synchronized"},
		"a bound after a second": {[]source.Source{fakeSource{name: "a", offset: one.offset, from: 5, polls: new(atomic.Int32)}}, "", exitOK, "synchronized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Some wait for their time to be over.
			code, stdout, stderr := executeClock(t, clockSources{named: c.sources}, append(strings.Fields(c.args), "--json")...)
			if o := clockObject(t, stdout); code != c.code || stderr != "" || o.Status != c.status {
				t.Errorf("exit %d, stderr %q, %s", code, stderr, stdout)
			}
		})
	}
}

func TestClockFaultsOfTooFewServers(t *testing.T) {
	code, stdout, stderr := executeClock(t, clockSources{named: []source.Source{fake("a", 0, 1), fake("b", 0, 1)}}, "--faults", "1")
	if want := "faults 1: of 2 servers at most 0 may be wrong; configure more"; code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestClockWatch ends with the context, after a daemon has come up.
func TestClockWatch(t *testing.T) {
	late := fake("a", -time.Millisecond, time.Millisecond)
	late.from = 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(lineWriter, 1000)
	run := clockRun{
		flags:   &clockFlags{watch: true, asJSON: true, drift: clocksync.DefaultDrift},
		sources: clockSources{local: []source.Source{late}}, stdout: lines, every: 5 * time.Millisecond,
	}
	done := make(chan error, 1)
	go func() { done <- run.run(ctx) }()
	unknown, known := 0, 0
	for known < 3 {
		select {
		case line := <-lines:
			switch clockObject(t, line).Status {
			case "unknown":
				unknown++
			case "synchronized":
				known++
			}
		case <-time.After(patience):
			t.Fatal("no further line")
		}
	}
	cancel()
	if err := <-done; err != nil || unknown < 2 {
		t.Errorf("%v; %d views without a bound", err, unknown)
	}
}

// lineWriter passes each write on at once.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

func TestClockOutputThatCannotBeWritten(t *testing.T) {
	run := clockRun{flags: &clockFlags{timeout: time.Second}, sources: clockSources{named: []source.Source{fake("a", 0, 1)}}, stdout: brokenWriter{}}
	if err := run.run(t.Context()); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

// TestClockNeverAsksTheNetworkUnasked looks at what the command is made of.
func TestClockNeverAsksTheNetworkUnasked(t *testing.T) {
	all, err := openSources(&clockFlags{timeout: time.Second})
	if err != nil || len(all.named) != 0 {
		t.Fatalf("%v, %v", all.named, err)
	}
	var names []string
	for _, s := range all.local {
		names = append(names, s.Name())
	}
	if got := strings.Join(names, " "); got != "clockbound chrony kernel" {
		t.Errorf("the default is %s", got)
	}
	all, err = openSources(&clockFlags{timeout: time.Second, ntp: []string{"x"}, chrony: "local", clockBound: "/x", kernel: true, hasBound: true, bound: 1})
	if err != nil || len(all.named) != 5 || len(all.local) != 0 {
		t.Errorf("%d named, %d local, %v", len(all.named), len(all.local), err)
	}
}

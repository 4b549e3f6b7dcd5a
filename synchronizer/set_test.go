package synchronizer_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const limited = `
params:
  limit: {type: int, default: 100, min: 1, max: 1000}
  hold: {type: duration, default: 0s}
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 5s, then: drop}
    state: {idle: bool, n: int}
    predicates:
      over:
        when: sum(members, .n) > params.limit
        for: params.hold
        signal: []
      idle: {when: "all(members, .idle)", signal: []}
`

func param(t *testing.T, s *synchronizer.Synchronizer, name string) monitor.ParamStatus {
	t.Helper()
	status, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(status.Params, func(p monitor.ParamStatus) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no parameter %q in %+v", name, status.Params)
	}
	return status.Params[i]
}

// A parameter counts at once, stays over a reload and a restart, and replays.
func TestSet(t *testing.T) {
	server, w, dir := serve(t, 0), newWatch(), t.TempDir()
	var recorded bytes.Buffer // Written until Close.
	s := start(t, server.URL(), limited, synchronizer.Options{Observe: w.observe, Journal: &recorded, State: dir})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	set(t, a, state{N: 30, Idle: true})
	set(t, b, state{N: 40, Idle: true})
	_, next := w.await(t, 0, "firing", func(e monitor.Event) bool {
		v, ok := e.(monitor.Verdict)
		return ok && v.Predicate == "idle" && v.Fired
	})
	_, _ = w.await(t, 0, "verdict", func(e monitor.Event) bool { v, ok := e.(monitor.Verdict); return ok && v.Predicate == "over" })

	for _, bad := range []struct {
		values map[string]string
		reset  []string
		want   string
	}{
		{map[string]string{"limit": "5000"}, nil, `synchronizer "gsync": set: params.limit does not take 5000: use 1 to 1000`},
		{map[string]string{"limit": "many"}, nil, `synchronizer "gsync": set: params.limit: "many" is no value of limit: int`},
		{map[string]string{"limit": "50", "bound": "1"}, nil, `synchronizer "gsync": set: the configuration declares no parameter "bound": it has limit, hold`},
		{nil, []string{"bound"}, `synchronizer "gsync": set: the configuration declares no parameter "bound"`},
		{map[string]string{"hold": "-1s"}, nil, "a hold time cannot be negative"},
	} {
		if _, err := s.Set(synchronizer.Setting{Values: bad.values, Reset: bad.reset}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v %v: %v\nwant %s", bad.values, bad.reset, err, bad.want)
		}
	}
	if p := param(t, s, "limit"); p.Value != "100" || p.Set {
		t.Errorf("after refusals %+v", p)
	}

	changes, err := s.Set(synchronizer.Setting{Values: map[string]string{"limit": "60"}, By: "a test"})
	if err != nil || !slices.Equal(changes, []string{"params limit: from 100 to 60"}) {
		t.Fatalf("%q, %v", changes, err)
	}
	_, _ = w.await(t, next, "firing", func(e monitor.Event) bool {
		v, ok := e.(monitor.Verdict)
		return ok && v.Predicate == "over" && v.Fired
	})

	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(strings.Replace(limited, "default: 100", "default: 200", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if p := param(t, s, "limit"); p.Value != "60" || !p.Set || p.Default != "200" {
		t.Errorf("after the reload %+v", p)
	}
	narrow, err := synchronizer.ParseConfig("test.yaml", []byte(strings.Replace(limited, "min: 1,", "min: 90,", 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := `synchronizer "gsync": reload: a value stored by "pegasus set" is refused: params.limit does not take 60: use 90 to 1000: set it to another value, or take it back with "pegasus set --reset"`
	if err := s.Reload(narrow); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if fires := bytes.Count(recorded.Bytes(), []byte(`"live":true`)); fires == 0 {
		t.Error("the journal does not have what was set")
	}
	if r, err := synchronizer.Replay(bytes.NewReader(recorded.Bytes()), synchronizer.ReplayOptions{}); err != nil || r.FirstDifference != 0 {
		t.Errorf("replay: %+v, %v", r, err)
	}

	cfg, err = synchronizer.ParseConfig("test.yaml", []byte(limited), synchronizer.Set("limit", "777"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer // Read after Close.
	given, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{State: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if p := param(t, given, "limit"); p.Value != "60" || !p.Set {
		t.Errorf("with another value given, after the restart %+v", p)
	}
	if err := given.Close(); err != nil {
		t.Fatal(err)
	}
	if want := `level=WARN msg="a stored value overrides the one given now" param=limit value=60 given=777 undo="pegasus set --reset limit"`; strings.Count(log.String(), want) != 1 {
		t.Errorf("the log has no line %s\n%s", want, &log)
	}

	again := start(t, server.URL(), limited, synchronizer.Options{State: dir})
	if p := param(t, again, "limit"); p.Value != "60" || !p.Set {
		t.Errorf("after the restart %+v", p)
	}
	if _, err := again.Set(synchronizer.Setting{Reset: []string{"limit"}}); err != nil {
		t.Fatal(err)
	}
	if p := param(t, again, "limit"); p.Value != "100" || p.Set {
		t.Errorf("after it was taken back %+v", p)
	}
}

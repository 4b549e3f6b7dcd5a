package roles_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/ask"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/roles"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/worklog"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

const matrix = `
params:
  limit: {type: int, default: 100}
synchronizers:
  gsync:
    members: {group: g, count: 3}
    silence: {after: 5s, then: drop}
    state: {idle: bool, n: int}
    predicates:
      all-idle: {when: "all(members, .idle) and sum(members, .n) < params.limit", signal: {kind: activate, region: work}}
`

const shared = `
synchronizers:
  wsync:
    members: {group: w, count: 2}
    work: {slots: 1}
`

const durable = `
synchronizers:
  jsync:
    members: {group: j, count: {min: 1, max: 2}}
    silence: {after: 1s}
    work: {slots: 1, store: jetstream}
`

const stream = "pegasus+default+j"

const program = `
synchronizers:
  psync:
    members: {group: parts, count: 2}
    state: {error: float}
program:
  name: once
  processors: {p: {count: 2}}
  blocks:
    both: {group: parts, input: int, output: string}
  body: {par: {do: both, on: p, input: 3}, times: 2}
`

type state struct {
	Idle bool
	N    int
}

// TestRoles runs every role with its permissions and no others: the server refuses nothing.
func TestRoles(t *testing.T) {
	s := newSecured(t, map[string]roles.User{
		"gsync": {Role: roles.Synchronizer, Synchronizer: "gsync", Group: "g"},
		"wsync": {Role: roles.Synchronizer, Synchronizer: "wsync", Group: "w"},
		"psync": {Role: roles.Synchronizer, Synchronizer: "psync", Group: "parts"},
		"two":   {Role: roles.Member, Members: []string{"w1", "w2"}, Group: "g"},
		"w3":    {Role: roles.Member, Members: []string{"w3"}, Group: "g"},
		"a":     {Role: roles.Member, Members: []string{"a"}, Group: "w"},
		"b":     {Role: roles.Member, Members: []string{"b"}, Group: "w"},
		"jsync": {Role: roles.Synchronizer, Synchronizer: "jsync", Group: "j"},
		"ja":    {Role: roles.Member, Members: []string{"ja"}, Group: "j", Stream: stream},
		"jb":    {Role: roles.Member, Members: []string{"jb"}, Group: "j", Stream: stream},
		"jop":   {Role: roles.Operator, Group: "j", Stream: stream},
		"node":  {Role: roles.Node, Members: []string{"n"}, Processors: 2, Group: "parts"},
		"vic":   {Role: roles.Viewer, Group: "g"},
		"wvic":  {Role: roles.Viewer, Group: "w"},
		"op":    {Role: roles.Operator, Group: "g"},
	})
	t.Cleanup(func() {
		if v := s.logged(); v != "" {
			t.Errorf("the server has refused\n%s", v)
		}
	})
	t.Run("members, questions, takeover", s.control)
	t.Run("work", s.work)
	t.Run("work in JetStream", s.durable)
	t.Run("node", s.node)
}

func (s *secured) start(t *testing.T, word, text string, o synchronizer.Options) *synchronizer.Synchronizer {
	t.Helper()
	parse := synchronizer.ParseConfig
	if word == "psync" {
		parse = synchronizer.ParseProgram
	}
	cfg, err := parse("test.yaml", []byte(text))
	check(t, err)
	o.NATS = s.options(t, word)
	o.Reread = func() (*synchronizer.Config, error) { return cfg, nil }
	g, err := synchronizer.Start(t.Context(), s.url, cfg, o)
	check(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func (s *secured) control(t *testing.T) {
	first := s.start(t, "gsync", matrix, synchronizer.Options{State: t.TempDir()})
	second := s.start(t, "gsync", matrix, synchronizer.Options{Standby: true, State: t.TempDir()})
	two, third := agent.WithNATS(s.options(t, "two")...), agent.WithNATS(s.options(t, "w3")...)
	told := make(chan struct{}, 64)
	var members []*agent.Member
	for _, c := range []struct {
		name     string
		separate bool
		as       agent.Option
	}{{"w1", false, two}, {"w2", false, two}, {"w3", true, third}} {
		m, err := agent.Join(t.Context(), s.url, agent.Config{Group: "g", Name: c.name, SeparateClock: c.separate}, c.as)
		check(t, err)
		t.Cleanup(func() { _ = m.Close() })
		members = append(members, m)
	}
	for _, m := range members {
		go func() {
			_ = m.Region(t.Context(), "work", func(ctx context.Context, r *agent.Region) error {
				if err := m.Set(state{Idle: true, N: 1}); err != nil {
					return err
				}
				return r.Wait(ctx)
			}, agent.OnActivate("all-idle", func(context.Context, agent.Signal) error { told <- struct{}{}; return nil }), agent.OnControlLoss(agent.ControlLoss{Hold: true}))
		}()
	}
	for range members {
		<-told
	}
	testwait.Until(t, "the fates", func() bool { return first.Stats().Signals >= 3 })
	for _, word := range []string{"vic", "op"} {
		asker := ask.Asker{Bus: s.bus(t, word), Tenant: tenant, Person: s.users[word].name}
		check(t, asker.Bus.Subscribe(wire.Subjects{Tenant: tenant, Group: "*"}.Events("*"), bus.Limits{}, func(bus.Message) {}))
		all, err := asker.Present(t.Context())
		check(t, err)
		if len(all) != 1 {
			t.Fatalf("%s finds %v", word, all)
		}
		var status monitor.Status
		check(t, asker.Ask(t.Context(), all[0], wire.VerbStatus, "", &status))
		check(t, asker.Ask(t.Context(), all[0], wire.VerbWatch, "", &status))
		check(t, asker.Ask(t.Context(), all[0], wire.VerbWhy, "all-idle", &monitor.Explanation{}))
		if word == "op" {
			check(t, asker.Ask(t.Context(), all[0], wire.VerbSet, `{"values": {"limit": "90"}}`, &synchronizer.Changed{}))
			check(t, asker.Ask(t.Context(), all[0], wire.VerbReload, "", &synchronizer.Changed{}))
		}
	}
	check(t, first.Close())
	testwait.Until(t, "the takeover", func() bool { status, err := second.Status(t.Context()); return err == nil && len(status.Members) == 3 })
	for _, m := range members {
		check(t, m.Leave(t.Context()))
	}
}

// open opens the spaces of two members.
func (s *secured) open(t *testing.T, group string, names ...string) (spaces [2]*work.Space, members [2]*agent.Member) {
	t.Helper()
	double := work.Func("double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	errs := make(chan error, len(spaces))
	for i, name := range names {
		go func() {
			m, err := agent.Join(t.Context(), s.url, agent.Config{Group: group, Name: name}, agent.OwnConn(), agent.WithNATS(s.options(t, name)...))
			if err == nil {
				t.Cleanup(func() { _ = m.Close() })
				members[i] = m
				spaces[i], err = work.Open(t.Context(), m, double)
			}
			errs <- err
		}()
	}
	for range spaces {
		check(t, <-errs)
	}
	for _, space := range spaces {
		t.Cleanup(func() { _ = space.Close() })
	}
	return spaces, members
}

// farm puts eight tasks into a space and takes their results.
func farm(t *testing.T, space *work.Space) {
	t.Helper()
	for i := range 8 {
		check(t, space.Put(t.Context(), "double", i, work.ID("%d", i)))
	}
	results := 0
	for _, err := range work.Results[int](t.Context(), space, "double") {
		check(t, err)
		results++
	}
	if results != 8 {
		t.Errorf("%d results of 8 tasks", results)
	}
}

// durable ends two phases, has a member take over the tasks of another one, and removes the stream.
func (s *secured) durable(t *testing.T) {
	s.start(t, "jsync", durable, synchronizer.Options{})
	spaces, members := s.open(t, "j", "ja", "jb")
	go func() { _ = spaces[1].Serve(t.Context()) }()
	for range 2 {
		farm(t, spaces[0])
	}
	check(t, spaces[0].Put(t.Context(), "double", 1, work.ID("late")))
	check(t, spaces[0].Close())
	check(t, members[0].Leave(t.Context()))
	late := 0
	for r, err := range work.Results[int](t.Context(), spaces[1], "double", work.Of("ja")) {
		check(t, err)
		if r.ID == "late" {
			late++
		}
	}
	if late != 1 {
		t.Errorf("the task of the member that has left has %d results", late)
	}
	check(t, spaces[1].Close())
	nc, err := nats.Connect(s.url, s.options(t, "jop")...)
	check(t, err)
	defer nc.Close()
	if n, err := worklog.Remove(t.Context(), nc, stream); err != nil || n == 0 {
		t.Errorf("%d messages were removed: %v", n, err)
	}
}

func (s *secured) work(t *testing.T) {
	s.start(t, "wsync", shared, synchronizer.Options{})
	spaces, _ := s.open(t, "w", "a", "b")
	go func() { _ = spaces[1].Serve(t.Context()) }()
	farm(t, spaces[0])
	asker := ask.Asker{Bus: s.bus(t, "wvic"), Tenant: tenant}
	answers, silent, err := asker.Space(t.Context(), &monitor.Status{Synchronizer: "wsync", Group: "w", Members: []monitor.MemberStatus{{Name: "a", Standing: monitor.InEpoch}, {Name: "b", Standing: monitor.InEpoch}}})
	if err != nil || len(answers) != 2 || len(silent) != 0 {
		t.Errorf("%v, %v, %v", answers, silent, err)
	}
}

func (s *secured) node(t *testing.T) {
	ended := make(chan monitor.ProgramEvent, 64)
	s.start(t, "psync", program, synchronizer.Options{Observe: func(e monitor.Event) {
		if p, ok := e.(monitor.ProgramEvent); ok && p.Kind == monitor.ProgramFinish {
			ended <- p
		}
	}})
	n, err := agent.JoinNode(t.Context(), s.url, agent.NodeConfig{Group: "parts", Name: "n", Processors: 2, SeparateClock: true, NATS: s.options(t, "node")},
		agent.Block("both", func(_ context.Context, r *agent.Run, _ int) (string, error) {
			return strings.Repeat("x", 100_000), r.Set(struct{ Error float64 }{0})
		}))
	check(t, err)
	t.Cleanup(func() { _ = n.Close() })
	if p := <-ended; p.Outcome != control.BlockDone {
		t.Errorf("%+v", p)
	}
}

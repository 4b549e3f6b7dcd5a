package roles_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/roles"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestAttacks: with the key of one member, of somebody who may look, or of an operator, the server denies every
// subject that would be another's.
func TestAttacks(t *testing.T) {
	s := newSecured(t, map[string]roles.User{
		"gsync": {Role: roles.Synchronizer, Synchronizer: "gsync", Group: "g"},
		"w1":    {Role: roles.Member, Members: []string{"w1", "w2"}, Group: "g"},
		"thief": {Role: roles.Member, Members: []string{"w3"}, Group: "g"},
		"node":  {Role: roles.Node, Members: []string{"n"}, Processors: 2, Group: "g"},
		"vic":   {Role: roles.Viewer, Group: "g"},
		"op":    {Role: roles.Operator, Group: "g"},
	})
	const p = "pegasus.v1.default.g."
	inbox := "_INBOX." + s.users["gsync"].name
	vic, op := s.users["vic"].name, s.users["op"].name
	for word, attacks := range map[string]struct{ read, write []string }{
		"thief": {
			[]string{
				">", p + ">", p + "st.>", p + "st.w1", p + "sg.>", p + "sg.*", p + "sg.w1", p + "pr.*", p + "pr.w1", "_INBOX.>", inbox + ".>",
				p + "sg.p.*", p + "sg.p.*.*", p + "sg.p.w1.*", p + "pr.p.w1.*", p + "pr.p.>", p + "ctl", p + "ctl.>", p + "ctl.gsync.*", p + "ctl.gsync.set.*",
				p + "ev.gsync", p + "jn.gsync.*", p + "ak.gsync.*", p + "pg.*", p + "dt.*", "pegasus.v1.default.ctl", "pegasus.v1.*.g.sga",
				p + "wk.w1.*", p + "wk.*.*", p + "wa.*", "pegasus.v1.default.h.sga", "pegasus.v1.other.g.pr.w3", "$SYS.>",
			},
			[]string{
				p + "sg.w1", p + "sg.w3", p + "sg.p.w1.x", p + "pr.w1", p + "pr.p.w1.x", p + "sga", p + "st.w1", p + "st.p.w1.x", p + "st.p.x", p + "ak.gsync.w1",
				p + "pg.w1", inbox + ".x", p + "bt.gsync", p + "jn.gsync.all", p + "ev.gsync", p + "ctl", p + "ctl.gsync", p + "ctl.gsync.status", p + "ctl.gsync.set",
				p + "ctl.gsync.set." + op, p + "ctl.gsync.reload." + op, p + "ctl.gsync.set.-", p + "dt.w1", p + "wk.w1.w2", p + "wa.w1", p + "ws",
				"pegasus.v1.default.h.st.w3", "pegasus.v1.other.g.st.w3", "pegasus.v1.default.ctl", "$SYS.REQ.SERVER.PING",
			},
		},
		"node": {
			[]string{p + "sg.w1", p + "pr.n-0.x", p + "dt.*"},
			[]string{p + "st.w1", p + "st.n-2", p + "dt.w1", p + "st.p.n.x"},
		},
		"vic": {
			[]string{p + "st.>", p + "sg.w1", p + "jn.gsync.all", "_INBOX." + op + ".>"},
			[]string{p + "ctl.gsync.set", p + "ctl.gsync.set." + vic, p + "ctl.gsync.reload." + vic, p + "ctl.gsync.set." + op, p + "ctl.gsync", p + "sg.w1", p + "st.w1"},
		},
		"op": {
			[]string{p + "st.>", p + "ctl.gsync.set.*"},
			[]string{p + "ctl.gsync.set", p + "ctl.gsync.reload", p + "ctl.gsync.set." + vic, p + "ctl.gsync.reload.-", p + "sg.w1"},
		},
	} {
		nc, refused := s.denied(t, word)
		want := func(text string) {
			t.Helper()
			check(t, nc.Flush())
			select {
			case err := <-refused:
				if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text)) {
					t.Errorf("%s: got %v\nwant %s", word, err, text)
				}
			case <-time.After(patience):
				t.Errorf("%s: the server permits what has to give: %s", word, text)
			}
		}
		for _, subject := range attacks.read {
			sub, err := nc.SubscribeSync(subject)
			check(t, err)
			want(`Permissions Violation for Subscription to "` + subject + `"`)
			_ = sub.Unsubscribe() // The server has none.
		}
		for _, subject := range attacks.write {
			check(t, nc.Publish(subject, []byte("x")))
			want(`Permissions Violation for Publish to "` + subject + `"`)
		}
		t.Logf("%s: %d reads and %d writes denied", word, len(attacks.read), len(attacks.write))
	}
}

const attacked = `
synchronizers:
  gsync:
    members: {group: g, count: {min: 1, max: 8}}
    silence: {after: 5s}
    state: {n: int}
`

// TestForgedParts: what a member says on subjects of its own about others changes nothing, and is counted.
func TestForgedParts(t *testing.T) {
	s := newSecured(t, map[string]roles.User{
		"gsync": {Role: roles.Synchronizer, Synchronizer: "gsync", Group: "g"},
		"w1":    {Role: roles.Member, Members: []string{"w1"}, Group: "g"},
		"thief": {Role: roles.Member, Members: []string{"w3"}, Group: "g"},
	})
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(attacked))
	check(t, err)
	options := s.options(t, "gsync")
	g, err := synchronizer.Start(t.Context(), s.url, cfg, synchronizer.Options{NATS: options})
	check(t, err)
	t.Cleanup(func() { _ = g.Close() })
	m, err := agent.Join(t.Context(), s.url, agent.Config{Group: "g", Name: "w1"}, agent.WithNATS(s.options(t, "w1")...))
	check(t, err)
	t.Cleanup(func() { _ = m.Close() })
	check(t, m.Set(struct{ N int }{7}))
	testwait.Until(t, "the member", func() bool { return g.Stats().Reports > 0 })
	status, err := g.Status(t.Context())
	check(t, err)
	before := status.Members[0]

	nc, refused := s.denied(t, "thief")
	subjects := wire.Subjects{Tenant: tenant, Group: "g"}
	frame := func(b []byte, err error) []byte { check(t, err); return b }
	hello := func(member, multiplexer string) []byte {
		return frame(wire.AppendHello(nil, &wire.Hello{Member: member, Incarnation: wire.MaxIncarnation - 1, Host: "h", Domain: "d", Multiplexer: multiplexer}))
	}
	own := wire.MultiplexerName("w3", "x")
	bundle := func(member string, part []byte) []byte {
		b, _, err := wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{{Member: member, Frame: part}}})
		return frame(b, err)
	}
	gone := frame(wire.AppendGone(nil, &wire.Gone{Member: "w1", Incarnation: wire.MaxIncarnation - 1, First: 1}))
	codec := wire.NewBatchCodec(scgs.Schema{{Name: "n", Type: scgs.Int}})
	leaving, _, err := codec.Append(nil, &wire.Batch{Member: "w1", Incarnation: wire.MaxIncarnation - 1, Schema: codec.Hash(), Leaving: true})
	check(t, err)
	evidence, _, err := wire.AppendBundle(nil, &wire.Bundle{Alive: []wire.Alive{{Member: "w1", Incarnation: before.Incarnation, Evidence: wire.Evidence{Seq: 1, At: clocksync.Stamp{Mono: 1}}}}})
	check(t, err)
	roster, _, err := wire.AppendBundle(nil, &wire.Bundle{Roster: wire.Roster{Version: 1, Total: 1, Listed: []wire.Listed{{Member: "w1", Incarnation: before.Incarnation}}}})
	check(t, err)
	for _, c := range []struct {
		what, subject string
		data          []byte
	}{
		{"a hello of another", subjects.State("w3"), hello("w1", "")},
		{"a hello of another by a multiplexer", subjects.State(own), bundle("w1", hello("w1", own))},
		{"another that leaves", subjects.State("w3"), leaving},
		{"a multiplexer on which another leaves", subjects.State(own), bundle("w1", leaving)},
		{"lost reports of another", subjects.State("w3"), gone},
		{"a multiplexer that brings lost reports of another", subjects.State(own), bundle("w1", gone)},
		{"a multiplexer of no group", subjects.State(own), bundle("nobody", gone)},
		{"evidence of another", subjects.State(own), evidence},
		{"a multiplexer of no group, again", subjects.State(own), bundle("nobody", gone)},
		{"a roster of another", subjects.State(own), roster},
		{"a roster of another, again", subjects.State(own), roster},
		{"a multiplexer that is another's", subjects.State(own), bundle("w3", gone)},
		{"no frame", subjects.State(own), []byte("x")},
		{"a part that is no frame", subjects.State(own), bundle("w1", []byte{1, 2})},
	} {
		was := g.Stats()
		check(t, nc.Publish(c.subject, c.data))
		testwait.Until(t, c.what, func() bool { return g.Stats().Frames > was.Frames })
		if now := g.Stats(); now.Rejected+now.Malformed == was.Rejected+was.Malformed {
			t.Errorf("%s is not counted", c.what)
		}
	}
	status, err = g.Status(t.Context())
	check(t, err)
	if len(status.Members) != 1 || status.Members[0].Incarnation != before.Incarnation || status.Members[0].Standing != before.Standing {
		t.Errorf("members are %+v, and w1 was %+v", status.Members, before)
	}
	select {
	case err := <-refused:
		t.Errorf("these subjects are its own: %v", err)
	default:
	}
}

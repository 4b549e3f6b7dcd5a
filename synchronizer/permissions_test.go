package synchronizer_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestDocumentedPermissions runs a group on a server with the configuration of
// docs/operations.md: members that share a connection, one with a clock that is measured,
// signals, a question and the events of a watch. The server refuses nothing.
func TestDocumentedPermissions(t *testing.T) {
	doc, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```hocon\n")
	conf, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/operations.md has no configuration of a server")
	}
	file := filepath.Join(t.TempDir(), "server.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.NoSigs, options.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	natsd, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	go natsd.Start()
	t.Cleanup(natsd.Shutdown)
	if !natsd.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	as := func(user string) string {
		return strings.Replace(natsd.ClientURL(), "nats://", "nats://"+user+":secret@", 1)
	}
	refused := make(chan error, 64)
	conn := func(user string) *nats.Conn {
		nc, err := nats.Connect(as(user), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	config := strings.Replace(strings.Replace(pair, "group: g", "group: workers", 1), "count: 2", "count: 3", 1)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), "", cfg, synchronizer.Options{Conn: conn("gsync")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	workers := conn("w")
	var members []*agent.Member
	join := func(name string, separate bool, nc *nats.Conn) {
		m, err := agent.Join(t.Context(), "", agent.Config{Group: "workers", Name: name, SeparateClock: separate}, agent.WithConn(nc))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		members = append(members, m)
	}
	join("w1", false, workers)
	join("w2", false, workers)
	join("w3", true, conn("w3"))
	ops := conn("ops")
	if _, err := ops.Subscribe("pegasus.v1.default.workers.ev.gsync", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"pegasus.v1.default.ctl", "pegasus.v1.default.workers.ctl.gsync.status", "pegasus.v1.default.workers.ctl.gsync.watch", "pegasus.v1.default.workers.ctl.gsync.why"} {
		if _, err := ops.Request(subject, []byte("all-idle"), patience); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
	told := make(chan struct{}, 3)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, m := range members {
		go func() {
			_ = m.Region(ctx, "work", func(ctx context.Context, r *agent.Region) error {
				if err := m.Set(state{Idle: true, N: 1}); err != nil {
					return err
				}
				return r.Wait(ctx)
			}, agent.OnActivate("all-idle", func(context.Context, agent.Signal) error { told <- struct{}{}; return nil }),
				agent.OnControlLoss(agent.ControlLoss{Hold: true}))
		}()
	}
	for range members {
		select {
		case <-told:
		case err := <-refused:
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatal("no signal came")
		}
	}
	testwait.Until(t, "fates", func() bool { return s.Stats().Signals >= 3 })
	select {
	case err := <-refused:
		t.Error(err)
	default:
	}
}

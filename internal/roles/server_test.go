package roles_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/roles"
)

const (
	patience = 30 * time.Second
	tenant   = "default"
)

// secured is a server whose users have the permissions of their roles.
type secured struct {
	url   string
	users map[string]user // by the word that the test calls them

	mu         sync.Mutex
	violations []string // that the server has logged
}

type user struct{ name, file string } // the public key, and the file of the seed

// newSecured starts a server with users by nkey, from the configuration that "pegasus keys permissions" prints.
func newSecured(t *testing.T, users map[string]roles.User) *secured {
	t.Helper()
	s, dir := &secured{users: map[string]user{}}, t.TempDir()
	var conf strings.Builder
	conf.WriteString("authorization { users = [\n")
	for word, u := range users {
		pair, err := nkeys.CreateUser()
		check(t, err)
		public, err := pair.PublicKey()
		check(t, err)
		seed, err := pair.Seed()
		check(t, err)
		file := filepath.Join(dir, word+".nk")
		check(t, os.WriteFile(file, seed, 0o600))
		s.users[word] = user{public, file}
		u.Name, u.Tenant = public, tenant
		p, err := u.Permissions()
		check(t, err)
		conf.WriteString(p.Conf(public))
	}
	conf.WriteString("] }\n")
	file := filepath.Join(dir, "server.conf")
	check(t, os.WriteFile(file, []byte(conf.String()), 0o600))
	options, err := server.ProcessConfigFile(file)
	check(t, err)
	options.Host, options.Port, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true
	options.JetStream, options.StoreDir = true, t.TempDir()
	n, err := server.NewServer(options)
	check(t, err)
	n.SetLogger(s, false, false)
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	s.url = n.ClientURL()
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Errorf takes the server's log.
func (s *secured) Errorf(format string, v ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := fmt.Sprintf(format, v...); strings.Contains(line, "iolation") {
		s.violations = append(s.violations, line)
	}
}
func (s *secured) Noticef(string, ...any)    {}
func (s *secured) Warnf(f string, v ...any)  { s.Errorf(f, v...) }
func (s *secured) Fatalf(f string, v ...any) { s.Errorf(f, v...) }
func (s *secured) Debugf(string, ...any)     {}
func (s *secured) Tracef(string, ...any)     {}
func (s *secured) logged() (violations string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.violations, "\n")
}

// options are those for a user, as the product makes them of a file.
func (s *secured) options(t *testing.T, word string) []nats.Option {
	t.Helper()
	at, err := connect.Settings{URL: s.url, Nkey: s.users[word].file}.Resolve(connect.Settings{})
	check(t, err)
	if at.Person() != s.users[word].name {
		t.Fatalf("%s is called %q", word, at.Person())
	}
	options, err := at.Options()
	check(t, err)
	return options
}

// bus is a connection of a user.
func (s *secured) bus(t *testing.T, word string) *bus.Bus {
	t.Helper()
	b, err := bus.Dial(t.Context(), s.url, bus.Options{Extra: s.options(t, word)})
	check(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// denied is a connection of a user, and what the server refuses it.
func (s *secured) denied(t *testing.T, word string) (*nats.Conn, chan error) {
	t.Helper()
	refused := make(chan error, 64)
	nc, err := nats.Connect(s.url, append(s.options(t, word), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))...)
	check(t, err)
	t.Cleanup(nc.Close)
	return nc, refused
}

package keys_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/roles"
	"github.com/gopegasus/pegasus/internal/testwait"
)

const patience = 20 * time.Second

var group = keys.Config{Tenant: "default", Group: "g"} //nolint:gochecknoglobals // Constant.

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a new directory.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	check(t, keys.Init(dir, group, time.Now()))
	return dir
}

func add(t *testing.T, dir string, u roles.User, lifetime time.Duration) string {
	t.Helper()
	file, err := keys.Add(dir, u, lifetime, time.Now())
	check(t, err)
	return file
}

// options are those of server.conf.
func options(t *testing.T, dir string) *server.Options {
	t.Helper()
	o, err := server.ProcessConfigFile(filepath.Join(dir, "server.conf"))
	check(t, err)
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	return o
}

func serve(t *testing.T, dir string) *server.Server {
	t.Helper()
	return start(t, options(t, dir))
}

func start(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	check(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

// reload has the server take the account from the directory again.
func reload(t *testing.T, s *server.Server, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "server.conf"))
	check(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n}\n"), "\n  ")
	id, token, _ := strings.Cut(lines[len(lines)-1], ": ")
	claims, err := jwt.DecodeAccountClaims(token)
	check(t, err)
	check(t, s.AccountResolver().Store(id, token))
	account, err := s.LookupAccount(id)
	check(t, err)
	s.UpdateAccountClaims(account, claims)
}

// client is a connection, and whether it was closed.
type client struct {
	*nats.Conn

	closed chan struct{}
}

func connect(t *testing.T, s *server.Server, creds, name string) *client {
	t.Helper()
	c := &client{closed: make(chan struct{})}
	var err error
	c.Conn, err = nats.Connect(s.ClientURL(), nats.UserCredentials(creds), nats.CustomInboxPrefix("_INBOX."+name), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }))
	check(t, err)
	t.Cleanup(c.Close)
	return c
}

// may reports whether the server lets the client publish.
func (c *client) may(t *testing.T, subject string) bool {
	t.Helper()
	check(t, c.Publish(subject, nil))
	check(t, c.Flush())
	err := c.LastError() // It is set before the flush returns.
	return err == nil || !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), `"`+subject+`"`)
}

func (c *client) ends(t *testing.T) {
	t.Helper()
	select {
	case <-c.closed:
	case <-time.After(patience):
		t.Error("the connection goes on")
	}
}

// TestRoles: each user may publish what its role needs, and not what another user of its role needs. Names keep their case.
func TestRoles(t *testing.T) {
	dir := made(t)
	const p = "pegasus.v1.default.g."
	s := serve(t, dir)
	for _, c := range []struct {
		user       roles.User
		may, other []string
	}{
		{roles.User{Role: roles.Member, Name: "W1"}, []string{p + "st.W1", p + "ak.gsync.W1"}, []string{p + "st.w1", p + "st.w2", p + "sg.W1", p + "ctl.gsync.set.W1"}},
		{roles.User{Role: roles.Member, Name: "two", Members: []string{"a", "b"}}, []string{p + "st.a", p + "st.b"}, []string{p + "st.two", p + "st.c"}},
		{roles.User{Role: roles.Node, Name: "n", Processors: 2}, []string{p + "st.n", p + "st.n-0", p + "st.n-1"}, []string{p + "st.n-2", p + "st.m", "pegasus.v1.default.h.st.n"}},
		{roles.User{Role: roles.Synchronizer, Name: "gsync"}, []string{p + "sg.W1", p + "ev.gsync"}, []string{p + "ev.other", p + "st.W1", "pegasus.v1.default.h.sga"}},
		{roles.User{Role: roles.Synchronizer, Name: "up", Others: []string{"h"}}, []string{"pegasus.v1.default.h.sga"}, []string{"pegasus.v1.default.i.sga"}},
		{roles.User{Role: roles.Viewer, Name: "vic"}, []string{p + "ctl.gsync.status"}, []string{p + "ctl.gsync.set.vic"}},
		{roles.User{Role: roles.Operator, Name: "op"}, []string{p + "ctl.gsync.set.op"}, []string{p + "ctl.gsync.set.vic"}},
	} {
		conn := connect(t, s, add(t, dir, c.user, 0), c.user.Name)
		for _, subject := range c.may {
			if !conn.may(t, subject) {
				t.Errorf("%s %s: %s is refused", c.user.Role, c.user.Name, subject)
			}
		}
		for _, subject := range c.other {
			if conn.may(t, subject) {
				t.Errorf("%s %s: %s is permitted", c.user.Role, c.user.Name, subject)
			}
		}
	}
}

// TestRotationAndRevocation: a renewed user has two keys that both work, and a revoked one none, on a live connection too.
func TestRotationAndRevocation(t *testing.T) {
	dir := made(t)
	s := serve(t, dir) // It knows no user by name: adding one needs no reload.
	old := filepath.Join(t.TempDir(), "old.creds")
	check(t, os.Rename(add(t, dir, roles.User{Role: roles.Member, Name: "w1"}, 0), old))
	first := connect(t, s, old, "w1")
	fresh := add(t, dir, roles.User{Role: roles.Member, Name: "w1"}, time.Hour)
	second, other := connect(t, s, fresh, "w1"), connect(t, s, add(t, dir, roles.User{Role: roles.Member, Name: "w2"}, 0), "w2")
	reload(t, s, dir)
	for _, c := range []*client{first, second, other} {
		check(t, c.Flush())
	}
	copied, err := os.ReadFile(fresh)
	check(t, err)
	check(t, keys.Revoke(dir, "w1", time.Now()))
	reload(t, s, dir)
	first.ends(t)
	second.ends(t)
	check(t, other.Flush())
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the credentials file is there: %v", err)
	}
	check(t, os.WriteFile(fresh, copied, 0o600))
	for _, file := range []string{old, fresh} {
		if nc, err := nats.Connect(s.ClientURL(), nats.UserCredentials(file)); !errors.Is(err, nats.ErrAuthorization) {
			nc.Close()
			t.Errorf("a revoked key: %v", err)
		}
	}
	want := `keys: user "w1" was revoked: give another name`
	if _, err := keys.Add(dir, roles.User{Role: roles.Member, Name: "w1"}, 0, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	want = `keys: user "w3": ` + dir + ` has no such user: it has w1, w2`
	if err := keys.Revoke(dir, "w3", time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestExpiry: the server ends the connection when the credential expires.
func TestExpiry(t *testing.T) {
	dir := made(t)
	c := connect(t, serve(t, dir), add(t, dir, roles.User{Role: roles.Viewer, Name: "vic"}, 3*time.Second), "vic")
	check(t, c.Flush())
	c.ends(t)
}

func TestList(t *testing.T) {
	dir, start, day := made(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 24*time.Hour
	for name, lifetime := range map[string]time.Duration{"short": 15 * day, "long": 100 * day, "gone": 15 * day, "ever": 0} {
		_, err := keys.Add(dir, roles.User{Role: roles.Viewer, Name: name}, lifetime, start)
		check(t, err)
	}
	check(t, keys.Revoke(dir, "gone", start))
	for at, want := range map[time.Duration]string{
		day - 1: "", day: `user "short": its credential expires at 2026-01-16T00:00:00Z: add it again before`,
		15 * day: `user "short": its credential expired at 2026-01-16T00:00:00Z: add it again`,
	} {
		l, err := keys.List(dir, start.Add(at))
		if err != nil || len(l.Users) != 4 || l.Group != "g" || strings.Join(l.Warnings, "; ") != want {
			t.Errorf("after %v: %d users, %q, %v, want %q", at, len(l.Users), l.Warnings, err, want)
		}
	}
}

// TestRefusedUsers: no name becomes a wildcard, a path or the processor of a node, and nothing is written for it.
func TestRefusedUsers(t *testing.T) {
	dir := made(t)
	add(t, dir, roles.User{Role: roles.Viewer, Name: "vic"}, 0)
	before, err := os.ReadDir(dir)
	check(t, err)
	for _, u := range []roles.User{
		{Role: roles.Member, Name: "*"},
		{Role: roles.Member, Name: ">"},
		{Role: roles.Member, Name: "a.b"},
		{Role: roles.Member, Name: ""},
		{Role: roles.Member, Name: "../x"},
		{Role: roles.Member, Name: "{{name()}}"},
		{Role: roles.Member, Name: "w", Members: []string{"*"}},
		{Role: roles.Member, Name: "n-0"},
		{Role: roles.Member, Name: "w", Members: []string{"n-12"}},
		{Role: roles.Node, Name: "n"},
		{Role: roles.Node, Name: "n", Processors: 1 << 20},
		{Role: "root", Name: "w"},
		{Role: roles.Operator, Name: "vic"},
		{Role: roles.Synchronizer, Name: "s", Synchronizer: "other"},
		{Role: roles.Synchronizer, Name: "s", Others: []string{">"}},
	} {
		if _, err := keys.Add(dir, u, 0, time.Now()); err == nil || !strings.HasPrefix(err.Error(), "keys: ") {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("%d files, and before %d: %v", len(after), len(before), err)
	}
}

func TestDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no modes of files")
	}
	dir := made(t)
	add(t, dir, roles.User{Role: roles.Viewer, Name: "vic"}, 0)
	files, err := os.ReadDir(dir)
	check(t, err)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	want := "keys: directory " + dir + ": it is not empty: give a new one, as keys are not replaced"
	if err := keys.Init(dir, group, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	check(t, os.WriteFile(filepath.Join(dir, "role-viewer.nk"), []byte("SU"), 0o600))
	want = "keys: file " + filepath.Join(dir, "role-viewer.nk") + ": it has no seed: restore it from a copy"
	if _, err := keys.Add(dir, roles.User{Role: roles.Viewer, Name: "vi"}, 0, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	check(t, os.Chmod(dir, 0o750)) //nolint:gosec // This is what is refused.
	want = "keys: directory " + dir + ": its mode is 0750, so other users can open it: run chmod 700 " + dir
	if _, err := keys.List(dir, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if err := keys.Init(filepath.Join(t.TempDir(), "k"), keys.Config{Tenant: "de.fault", Group: "g"}, time.Now()); err == nil || !strings.HasPrefix(err.Error(), "keys: tenant ") {
		t.Error(err)
	}
}

// TestNATSServerReloads: a nats-server that reads server.conf again, as on its signal, cuts a revoked user off and no other.
func TestNATSServerReloads(t *testing.T) {
	dir := made(t)
	file := filepath.Join(dir, "own.conf")
	check(t, os.WriteFile(file, []byte("include ./server.conf\nlisten: \"127.0.0.1:-1\"\n"), 0o600))
	o, err := server.ProcessConfigFile(file)
	check(t, err)
	o.NoSigs, o.NoLog = true, true
	s := start(t, o)
	first, second := connect(t, s, add(t, dir, roles.User{Role: roles.Member, Name: "w1"}, 0), "w1"), connect(t, s, add(t, dir, roles.User{Role: roles.Member, Name: "w2"}, 0), "w2")
	check(t, s.Reload())
	check(t, errors.Join(first.Flush(), second.Flush()))
	issued := time.Now().Unix() // A JWT has the second of its issue.
	testwait.Until(t, "the next second", func() bool { return time.Now().Unix() > issued })
	check(t, keys.Revoke(dir, "w1", time.Now()))
	check(t, s.Reload())
	first.ends(t)
	check(t, second.Flush())
}

package keys_test

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/roles"
)

// TestServerOfItsOwn: a nats-server whose file includes server.conf serves TLS, cuts off a revoked user on a reload, and
// keeps what it has if the file is broken.
func TestServerOfItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	check(t, keys.Init(dir, "default", "g", []string{"nats.example", "127.0.0.2"}, time.Now()))
	creds, other := add(t, dir, roles.User{Role: roles.Member, Name: "w1"}, 0), add(t, dir, roles.User{Role: roles.Member, Name: "w2"}, 0)
	file := filepath.Join(filepath.Dir(dir), "nats.conf")
	check(t, os.WriteFile(file, []byte("listen: \"127.0.0.1:-1\"\ninclude keys/server.conf\n"), 0o600))
	o, err := server.ProcessConfigFile(file)
	check(t, err)
	o.NoSigs, o.NoLog = true, true
	if o.MaxControlLine != keys.MaxControlLine || o.MaxConn != 16384 || o.AuthTimeout != 5 || o.TLSTimeout != 5 || o.TLSConfig == nil {
		t.Errorf("control line %d, %d connections, timeouts %v and %v, TLS %v", o.MaxControlLine, o.MaxConn, o.AuthTimeout, o.TLSTimeout, o.TLSConfig != nil)
	}
	s, err := server.NewServer(o)
	check(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	trust := nats.RootCAs(filepath.Join(dir, "ca.pem"))
	if nc, err := nats.Connect(s.ClientURL(), nats.UserCredentials(creds)); err == nil {
		nc.Close()
		t.Error("the certificate is trusted without its authority")
	}
	connected := func(creds, name string) *client {
		c := &client{closed: make(chan struct{})}
		c.Conn, err = nats.Connect(s.ClientURL(), nats.UserCredentials(creds), nats.CustomInboxPrefix("_INBOX."+name), trust, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }))
		check(t, err)
		t.Cleanup(c.Close)
		return c
	}
	first, second := connected(creds, "w1"), connected(other, "w2")
	check(t, keys.Revoke(dir, "w1", time.Now()))
	conf := filepath.Join(dir, "server.conf")
	good, err := os.ReadFile(conf)
	check(t, err)
	check(t, os.WriteFile(conf, good[:len(good)/2], 0o600))
	if err := s.Reload(); err == nil {
		t.Error("half a file is reloaded")
	}
	check(t, first.Flush())
	check(t, os.WriteFile(conf, good, 0o600))
	check(t, s.Reload())
	first.ends(t)
	check(t, second.Flush())
}

// TestCertificate is for the hosts and for loopback, and for no others.
func TestCertificate(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "keys"), time.Now()
	check(t, keys.Init(dir, "default", "g", []string{"nats.example", "192.0.2.7", "2001:db8::1"}, now))
	from, err := keys.ReadServer(dir)
	check(t, err)
	authority, err := os.ReadFile(from.CA)
	check(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("the authority cannot be read")
	}
	for host, good := range map[string]bool{
		"nats.example": true, "192.0.2.7": true, "2001:db8::1": true, "localhost": true, "127.0.0.1": true, "::1": true,
		"example": false, "a.nats.example": false, "192.0.2.8": false,
	} {
		_, err := from.TLS.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: now})
		if (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
	end := from.TLS.Leaf.NotAfter
	for at, want := range map[time.Time]string{
		end.Add(-15 * 24 * time.Hour): "",
		end.Add(-13 * 24 * time.Hour): "the certificate " + filepath.Join(dir, "server.pem") + " ends at " + end.UTC().Format(time.RFC3339) + ": make a new directory, or replace it",
	} {
		if _, warnings, err := keys.List(dir, at); err != nil || strings.Join(warnings, "; ") != want {
			t.Errorf("%q, %v, want %q", warnings, err, want)
		}
	}
	check(t, os.WriteFile(filepath.Join(dir, "server-key.pem"), nil, 0o600))
	want := "keys: certificate " + filepath.Join(dir, "server.pem") + " with the key " + filepath.Join(dir, "server-key.pem") + ": restore both from a copy: "
	if _, err := keys.ReadServer(dir); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for _, host := range []string{"", "a:1", "a b", "*", "nats://a", strings.Repeat("a", 254)} {
		if err := keys.Init(filepath.Join(t.TempDir(), "k"), "default", "g", []string{host}, now); err == nil || !strings.HasPrefix(err.Error(), "keys: host ") {
			t.Errorf("%q: %v", host, err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, file := range []string{"ca.pem", "server.pem", "server-key.pem"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// TestStream: a user with a stream may make it and write to it, and one without may not. No user may use another stream.
func TestStream(t *testing.T) {
	dir := made(t)
	with := add(t, dir, roles.User{Role: roles.Member, Name: "w1", Stream: "pegasus+default+g"}, 0)
	without := add(t, dir, roles.User{Role: roles.Member, Name: "w2"}, 0)
	o := options(t, dir)
	o.JetStream, o.StoreDir = true, t.TempDir()
	s, err := server.NewServer(o)
	check(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	c := connect(t, s, with, "w1")
	js, err := jetstream.New(c.Conn)
	check(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "pegasus+default+g", Subjects: []string{"pegasus+default+g.>"}})
	check(t, err)
	_, err = js.Publish(t.Context(), "pegasus+default+g.w1", []byte("a"))
	check(t, err)
	d := connect(t, s, without, "w2")
	for _, subject := range []string{"$JS.API.STREAM.CREATE.pegasus+default+g", "$JS.API.STREAM.DELETE.pegasus+default+g", "$JS.API.STREAM.INFO.pegasus+default+g", "pegasus+default+g.w2", "$SYS.REQ.SERVER.PING"} {
		if d.may(t, subject) {
			t.Errorf("w2: %s is permitted", subject)
		}
	}
	for _, subject := range []string{"$JS.API.STREAM.CREATE.other", "$JS.API.STREAM.DELETE.pegasus+default+g", "other.w1", "$JS.API.STREAM.LIST"} {
		if c.may(t, subject) {
			t.Errorf("w1: %s is permitted", subject)
		}
	}
}

// TestRenewal keeps what a user has unless it is given, and the lifetime.
func TestRenewal(t *testing.T) {
	dir, start := made(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	renew := func(at time.Time, u roles.User, lifetime time.Duration) keys.User {
		_, err := keys.Add(dir, u, lifetime, at)
		check(t, err)
		users, _, err := keys.List(dir, start)
		check(t, err)
		return users[len(users)-1]
	}
	for _, c := range []struct {
		first, again roles.User
		want         string
	}{
		{roles.User{Role: roles.Member, Name: "pair", Members: []string{"a", "b"}, Stream: "s"}, roles.User{}, "member:a member:b stream:s"},
		{roles.User{Role: roles.Member, Name: "other", Members: []string{"a", "b"}, Stream: "s"}, roles.User{Members: []string{"c"}}, "member:c"},
		{roles.User{Role: roles.Node, Name: "n", Members: []string{"node"}, Processors: 2}, roles.User{}, "node:node processor:node-0 processor:node-1"},
		{roles.User{Role: roles.Synchronizer, Name: "gsync", Others: []string{"h", "i"}}, roles.User{}, "other:h other:i"},
	} {
		renew(start, c.first, 10*time.Hour)
		c.again.Role, c.again.Name = c.first.Role, c.first.Name
		u := renew(start.Add(time.Hour), c.again, 0)
		if got := strings.Join(u.Tags, " "); got != c.want || len(u.Public) != 2 || !u.Expires.Equal(start.Add(11*time.Hour)) {
			t.Errorf("%+v\nwant %s", u, c.want)
		}
	}
	for name, want := range map[string]string{
		"gsync": "",
		"none":  "keys: directory " + dir + ": it has no credential for the synchronizer none: run pegasus keys add " + dir + " synchronizer none",
		"pair":  `keys: user "pair" has the role member, and a synchronizer is called so: give one of them another name`,
	} {
		file, err := keys.Credential(dir, name)
		if want == "" && (err != nil || file != filepath.Join(dir, name+".creds")) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s, %v, want %s", file, err, want)
		}
	}
	check(t, keys.Revoke(dir, "gsync", start))
	want := `keys: user "gsync" was revoked, and a synchronizer is called so: give the synchronizer another name, and add that`
	if _, err := keys.Credential(dir, "gsync"); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err := keys.ReadServer(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestConcurrentChanges: a user is in the list, or its add has failed.
func TestConcurrentChanges(t *testing.T) {
	dir := made(t)
	var wg sync.WaitGroup
	results := make([]error, 20)
	for i := range results {
		wg.Go(func() {
			_, results[i] = keys.Add(dir, roles.User{Role: roles.Viewer, Name: "v" + strconv.Itoa(i)}, 0, time.Now())
		})
	}
	wg.Wait()
	users, _, err := keys.List(dir, time.Now())
	check(t, err)
	refused := "keys: directory " + dir + ": another command changes it, or has been killed: try again, or remove " + filepath.Join(dir, ".lock")
	added := 0
	for i, err := range results {
		there := slices.ContainsFunc(users, func(u keys.User) bool { return u.Name == "v"+strconv.Itoa(i) })
		if there != (err == nil) || err != nil && err.Error() != refused {
			t.Errorf("v%d: in the list %v, %v", i, there, err)
		}
		if err == nil {
			added++
		}
	}
	if added == 0 {
		t.Error("none was added")
	}
	check(t, os.WriteFile(filepath.Join(dir, ".lock"), nil, 0o600))
	if err := keys.Revoke(dir, "v1", time.Now()); err == nil || err.Error() != refused {
		t.Errorf("got %v\nwant %s", err, refused)
	}
}

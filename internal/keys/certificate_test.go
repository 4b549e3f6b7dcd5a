package keys_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/roles"
)

// TestCertificate: server.conf is that of a server that clients verify with ca.pem, at the hosts that were given and no others.
func TestCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	c := group
	c.TLS, c.Hosts = true, []string{"nats.example", "127.0.0.2"}
	check(t, keys.Init(dir, c, time.Now()))
	vic := add(t, dir, roles.User{Role: roles.Viewer, Name: "vic"}, 0)
	t.Chdir(dir) // The paths in server.conf are relative.
	o, err := server.ProcessConfigFile("server.conf")
	check(t, err)
	if o.TLSConfig == nil || o.MaxControlLine != 65536 || o.MaxConn != 16384 || o.AuthTimeout != 5 {
		t.Errorf("server.conf: TLS %v, line %d, connections %d, time %v", o.TLSConfig != nil, o.MaxControlLine, o.MaxConn, o.AuthTimeout)
	}
	o.Host, o.Port, o.NoSigs, o.NoLog = "0.0.0.0", server.RANDOM_PORT, true, true
	s := start(t, o)
	_, port, err := net.SplitHostPort(s.Addr().String())
	check(t, err)
	for host, want := range map[string]bool{"127.0.0.1": true, "127.0.0.2": true, "127.0.0.3": false} {
		nc, err := nats.Connect("tls://"+host+":"+port, nats.UserCredentials(vic), nats.RootCAs("ca.pem"), nats.CustomInboxPrefix("_INBOX.vic"))
		if (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
		nc.Close()
	}
	if nc, err := nats.Connect("tls://127.0.0.1:"+port, nats.UserCredentials(vic)); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		nc.Close()
		t.Errorf("without the authority: %v", err)
	}
	pair, err := tls.LoadX509KeyPair("server.pem", "server-key.pem")
	check(t, err)
	check(t, pair.Leaf.VerifyHostname("nats.example"))
	if err := pair.Leaf.VerifyHostname("other.example"); err == nil {
		t.Error("other.example is in the certificate")
	}
	if pair.Leaf.IsCA || slices.Contains(pair.Leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		t.Error("the certificate is that of an authority, or of a client")
	}
	files, err := os.ReadDir(".")
	check(t, err)
	for _, f := range files {
		if text, err := os.ReadFile(f.Name()); err != nil || f.Name() != "server-key.pem" && strings.Contains(string(text), "PRIVATE KEY") {
			t.Errorf("%s has the key of a certificate: %v", f.Name(), err)
		}
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

// TestCertificateExpires: the list warns of it, and says which file is broken.
func TestCertificateExpires(t *testing.T) {
	dir, at := filepath.Join(t.TempDir(), "keys"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := group
	c.TLS = true
	check(t, keys.Init(dir, c, at))
	end := at.Add(10 * 365 * 24 * time.Hour)
	for now, want := range map[time.Time]string{
		end.Add(-15 * 24 * time.Hour): "",
		end.Add(-13 * 24 * time.Hour): "file ca.pem: the certificate expires at 2035-12-30T00:00:00Z: replace it before; file server.pem: the certificate expires at 2035-12-30T00:00:00Z: replace it before",
		end:                           "file ca.pem: the certificate expired at 2035-12-30T00:00:00Z: replace it; file server.pem: the certificate expired at 2035-12-30T00:00:00Z: replace it",
	} {
		if l, err := keys.List(dir, now); err != nil || strings.Join(l.Warnings, "; ") != want {
			t.Errorf("at %v: %q, %v", now, l.Warnings, err)
		}
	}
	file := filepath.Join(dir, "server.pem")
	check(t, os.WriteFile(file, []byte("no"), 0o600))
	want := "keys: file " + file + ": it has no certificate in PEM: restore it from a copy"
	if _, err := keys.List(dir, at); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	check(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}), 0o600))
	if _, err := keys.List(dir, at); err == nil || !strings.HasPrefix(err.Error(), "keys: file "+file+": restore it from a copy: x509: ") {
		t.Error(err)
	}
}

func TestRefusedHosts(t *testing.T) {
	for host, want := range map[string]string{
		"0.0.0.0":                `keys: host "0.0.0.0": no client connects to this address: give the name or the address that clients use`,
		"nats://h":               `keys: host "nats://h": it is no name and no address: give it without scheme and port`,
		"h:4222":                 `keys: host "h:4222": it is no name and no address: give it without scheme and port`,
		"":                       `keys: host "": it is no name and no address: give it without scheme and port`,
		"a..b":                   `keys: host "a..b": it is no name and no address: give it without scheme and port`,
		strings.Repeat("x", 200): `keys: host "` + strings.Repeat("x", 60) + `": it is no name and no address: give it without scheme and port`,
	} {
		dir := filepath.Join(t.TempDir(), "keys")
		if err := keys.Init(dir, keys.Config{Tenant: "t", Group: "g", TLS: true, Hosts: []string{host}}, time.Now()); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the directory was made", host)
		}
	}
	want := "keys: hosts are for the certificate of the server: leave them out, or ask for TLS"
	if err := keys.Init(t.TempDir(), keys.Config{Tenant: "t", Group: "g", Hosts: []string{"h"}}, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestRenewed: a user that is renewed without members, processors, groups and stream keeps them.
func TestRenewed(t *testing.T) {
	dir := made(t)
	for _, u := range []roles.User{
		{Role: roles.Member, Name: "two", Members: []string{"a", "B"}, Stream: "pegasus+default+g"},
		{Role: roles.Node, Name: "n", Processors: 3},
		{Role: roles.Synchronizer, Name: "gsync", Others: []string{"h"}},
	} {
		add(t, dir, u, 0)
		before, err := keys.List(dir, time.Now())
		check(t, err)
		add(t, dir, roles.User{Role: u.Role, Name: u.Name}, 0)
		after, err := keys.List(dir, time.Now())
		check(t, err)
		i := len(before.Users) - 1
		if got, want := after.Users[i], before.Users[i]; len(after.Users) != i+1 || !slices.Equal(got.Tags, want.Tags) || len(got.Public) != 2 {
			t.Errorf("%s: got %+v, want %+v", u.Name, got, want)
		}
	}
	add(t, dir, roles.User{Role: roles.Member, Name: "two", Members: []string{"c"}}, 0)
	if l, err := keys.List(dir, time.Now()); err != nil || !slices.Equal(l.Users[0].Tags, []string{"member:c"}) {
		t.Errorf("%+v, %v", l.Users, err)
	}
}

// TestStreamTag: a user has the subjects of its own stream, and without one those of none.
func TestStreamTag(t *testing.T) {
	dir := made(t)
	s := serve(t, dir)
	for name, c := range map[string]struct {
		user roles.User
		may  bool
	}{
		"with": {roles.User{Role: roles.Member, Stream: "pegasus+default+g"}, true}, "without": {roles.User{Role: roles.Member}, false},
		"op": {roles.User{Role: roles.Operator, Stream: "pegasus+default+g"}, true},
	} {
		c.user.Name = name
		conn := connect(t, s, add(t, dir, c.user, 0), name)
		if conn.may(t, "$JS.API.STREAM.INFO.pegasus+default+g") != c.may || conn.may(t, "$JS.API.STREAM.INFO.other") {
			t.Errorf("%s: want %v and no other stream", name, c.may)
		}
	}
}

// TestLock: two commands do not change the list of users at once.
func TestLock(t *testing.T) {
	dir := made(t)
	file := filepath.Join(dir, "users.lock")
	check(t, os.WriteFile(file, nil, 0o600))
	want := "keys: directory " + dir + ": another command changes it: wait for its end; if none runs, remove " + file
	if _, err := keys.Add(dir, roles.User{Role: roles.Viewer, Name: "vic"}, 0, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if err := keys.Revoke(dir, "vic", time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	check(t, os.Remove(file))
	add(t, dir, roles.User{Role: roles.Viewer, Name: "vic"}, 0)
}

// TestLargeUsers: what a server would refuse to a user is refused here, and the largest that is not refused connects.
func TestLargeUsers(t *testing.T) {
	dir := made(t)
	s := serve(t, dir)
	want := `keys: user "n": its members, processors or other groups need 4097 subjects, and a server permits 4096: give some of them to another user`
	if _, err := keys.Add(dir, roles.User{Role: roles.Node, Name: "n", Processors: 1024}, 0, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if c := connect(t, s, add(t, dir, roles.User{Role: roles.Node, Name: "n", Processors: 1023}, 0), "n"); !c.may(t, "pegasus.v1.default.g.st.n-1022") {
		t.Error("the last processor is refused")
	}
	var names []string
	for i := range 650 {
		names = append(names, fmt.Sprintf("%s%03dx", strings.Repeat("m", 60), i))
	}
	_, err := keys.Add(dir, roles.User{Role: roles.Member, Name: "w", Members: names}, 0, time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), `keys: user "w": its JWT has `) || !strings.HasSuffix(err.Error(), " bytes, and a server takes 64512: give it fewer or shorter names") {
		t.Error(err)
	}
	connect(t, s, add(t, dir, roles.User{Role: roles.Member, Name: "w", Members: names[:600]}, 0), "w")
}

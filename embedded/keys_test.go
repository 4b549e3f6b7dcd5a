package embedded_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/roles"
)

const keysPatience = 20 * time.Second

// keysDir is a directory of a group with TLS, or without.
func keysDir(t *testing.T, secured bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	if err := keys.Init(dir, keys.Config{Tenant: "default", Group: "g", TLS: secured}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func addUser(t *testing.T, dir string, u roles.User) string {
	t.Helper()
	file, err := keys.Add(dir, u, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func startKeys(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestKeysAdmitUsers: those of the directory, also on an address of all networks, and nobody else; each to its subjects.
func TestKeysAdmitUsers(t *testing.T) {
	dir := keysDir(t, true)
	s := startKeys(t, embedded.Options{Keys: dir, Host: "0.0.0.0"})
	ca := nats.RootCAs(filepath.Join(dir, "ca.pem"))
	w1 := addUser(t, dir, roles.User{Role: roles.Member, Name: "w1"}) // The server need not read anything again.
	nc, err := nats.Connect(s.URL(), nats.UserCredentials(w1), ca, nats.CustomInboxPrefix("_INBOX.w1"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := errors.Join(nc.Publish("pegasus.v1.default.g.st.w1", nil), nc.Flush()); err != nil || nc.LastError() != nil {
		t.Errorf("its own subject: %v, %v", err, nc.LastError())
	}
	if err := errors.Join(nc.Publish("pegasus.v1.default.g.st.w2", nil), nc.Flush()); err != nil || !errors.Is(nc.LastError(), nats.ErrPermissionViolation) {
		t.Errorf("that of another member: %v, %v", err, nc.LastError())
	}
	stranger := keysDir(t, false)
	for name, options := range map[string][]nats.Option{
		"nothing":                       {ca},
		"a user of another directory":   {ca, nats.UserCredentials(addUser(t, stranger, roles.User{Role: roles.Member, Name: "w1"}))},
		"a password":                    {ca, nats.UserInfo("a", "b")},
		"no authority":                  {nats.UserCredentials(w1)},
		"the authority of another one":  {nats.UserCredentials(w1), nats.RootCAs(filepath.Join(keysDir(t, true), "ca.pem"))},
		"a version of TLS that is weak": {nats.UserCredentials(w1), ca, nats.Secure(&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})}, //nolint:gosec // It is refused.
	} {
		if nc, err := nats.Connect(s.URL(), options...); err == nil {
			nc.Close()
			t.Errorf("%s: admitted", name)
		}
	}
}

// TestReloadKeys: a revoked user is cut off, a new certificate is shown, and what is broken changes nothing.
func TestReloadKeys(t *testing.T) {
	dir := keysDir(t, true)
	s := startKeys(t, embedded.Options{Keys: dir})
	w1, w2 := addUser(t, dir, roles.User{Role: roles.Member, Name: "w1"}), addUser(t, dir, roles.User{Role: roles.Member, Name: "w2"})
	ca := nats.RootCAs(filepath.Join(dir, "ca.pem"))
	cut := make(chan struct{})
	one, err := nats.Connect(s.URL(), nats.UserCredentials(w1), ca, nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ClosedHandler(func(*nats.Conn) { close(cut) }))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := nats.Connect(s.URL(), nats.UserCredentials(w2), ca, nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	kept := filepath.Join(t.TempDir(), "w1.creds") // Revoke removes the file in the directory.
	copyFile(t, w1, kept)
	older, err := os.ReadFile(filepath.Join(dir, "server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(dir, "w1", time.Now()); err != nil {
		t.Fatal(err)
	}
	fresh := keysDir(t, true)
	copyFile(t, filepath.Join(fresh, "server.pem"), filepath.Join(dir, "server.pem"))
	copyFile(t, filepath.Join(fresh, "server-key.pem"), filepath.Join(dir, "server-key.pem"))
	refused := func(want string) {
		t.Helper()
		if err := s.ReloadKeys(); err == nil || !strings.HasPrefix(err.Error(), "embedded: keys: "+want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	refused("certificate " + dir + "/server.pem: clients that have " + dir + "/ca.pem refuse it: copy ca.pem, server.pem and server-key.pem from one directory: x509: ")
	writeText(t, filepath.Join(dir, "ca.pem"), "x")
	refused("certificate " + dir + "/server.pem: authority: " + dir + "/ca.pem has no certificate in PEM: copy it again from the directory that pegasus keys has made")
	for _, name := range []string{"ca.pem", "server.pem", "server-key.pem"} {
		copyFile(t, filepath.Join(fresh, name), filepath.Join(dir, name))
	}
	conf := filepath.Join(dir, "server.conf")
	right, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(filepath.Join(keysDir(t, false), "server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(fresh, "server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(text []byte) int { return strings.LastIndex(string(text), "\n  ") } // The line of the account.
	const again = "write it again with pegasus keys"
	for want, text := range map[string]string{
		"keys: file " + conf + ": it lacks an operator, a system account or an account: " + again:                                                         "",
		"keys: file " + conf + ": " + again + ": config is invalid":                                                                                       "{]",
		"keys: file " + conf + ": operator: " + again + ": ":                                                                                              strings.Replace(string(right), "operator: e", "operator: x", 1),
		"keys: file " + conf + ": account: " + again + ": ":                                                                                               string(right[:len(right)-8]) + "\n}\n",
		"keys: file " + conf + ": the operator has not signed the account: " + again:                                                                      string(right[:at(right)]) + string(other[at(other):]),
		"keys: directory " + dir + ": it has another operator or account than at the start, or TLS is on in one of the two only: start the server again":  string(other),
		"keys: directory " + dir + ": it has another operator or account than at the start, or TLS is on in one of the two only: start the server again ": string(plain),
		"keys: certificate of " + conf + ": copy none.pem and server-key.pem beside it: open ":                                                            strings.Replace(string(right), "server.pem", "none.pem", 1),
	} {
		writeText(t, conf, text)
		if err := s.ReloadKeys(); err == nil || !strings.HasPrefix(err.Error(), "embedded: "+strings.TrimSpace(want)) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if err := errors.Join(one.Flush(), two.Flush()); err != nil {
		t.Fatalf("a broken directory: %v", err)
	}
	writeText(t, conf, string(right))
	if err := s.ReloadKeys(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cut:
	case <-time.After(keysPatience):
		t.Error("the revoked user is still connected")
	}
	if err := two.Flush(); err != nil {
		t.Errorf("the other user: %v", err)
	}
	writeText(t, conf, string(older))
	refused("file " + conf + ": it is older than what the server has, and would admit revoked keys again (1): copy it again from the directory in which pegasus keys revoked them")
	ca = nats.RootCAs(filepath.Join(dir, "ca.pem"))
	if _, err := nats.Connect(s.URL(), nats.UserCredentials(kept), ca); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("the revoked user connects again: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(fresh, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	nc, err := nats.Connect(s.URL(), nats.UserCredentials(w2), nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	if err != nil {
		t.Fatalf("with the new certificate: %v", err)
	}
	nc.Close()
	want := "embedded: keys: the server was started without Options.Keys: there is nothing to read again"
	if err := startKeys(t, embedded.Options{}).ReloadKeys(); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, to, string(text))
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKeysRefused: what contradicts the directory, and a host that its certificate lacks.
func TestKeysRefused(t *testing.T) {
	dir := keysDir(t, true)
	const both = "keys say which users a server that listens admits, and with which certificate; leave out a token, a user, open, TLS and in process"
	for want, o := range map[string]embedded.Options{
		both:          {Token: "t"},
		both + " ":    {Open: true},
		both + "  ":   {InProcess: true},
		both + "   ":  {TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
		both + "    ": {Username: "u", Password: "p"},
		"keys: file " + dir + "/none/server.conf: copy it from the directory that pegasus keys has made: open ":                                         {Keys: dir + "/none"},
		"keys: certificate " + dir + "/server.pem: clients refuse it at 127.0.0.3: make the keys with pegasus keys init --tls --host 127.0.0.3: x509: ": {Host: "127.0.0.3"},
	} {
		if o.Keys == "" {
			o.Keys = dir
		}
		s, err := embedded.Start(o)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "embedded: "+strings.TrimSpace(want)) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestKeysAndJetStream: a member has its own stream.
func TestKeysAndJetStream(t *testing.T) {
	dir := keysDir(t, false)
	s := startKeys(t, embedded.Options{Keys: dir, JetStream: t.TempDir()})
	w1 := addUser(t, dir, roles.User{Role: roles.Member, Name: "w1", Stream: "pegasus+default+g"})
	nc, err := nats.Connect(s.URL(), nats.UserCredentials(w1), nats.CustomInboxPrefix("_INBOX.w1"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream(nats.MaxWait(keysPatience))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: "pegasus+default+g", Subjects: []string{"pegasus+default+g.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish("pegasus+default+g.w1", []byte("x")); err != nil {
		t.Error(err)
	}
}

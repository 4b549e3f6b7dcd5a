package embedded_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
)

// keysIn has this test note keys in a directory of its own, and returns the file of a server.
func keysIn(t *testing.T) (dir string, file func(*embedded.Server) string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	dir = filepath.Join(dir, "pegasus")
	return dir, func(s *embedded.Server) string { return filepath.Join(dir, fmt.Sprintf("key-%d.nk", s.Port())) }
}

func denied(t *testing.T, what string, s *embedded.Server, opts ...nats.Option) {
	t.Helper()
	nc, err := nats.Connect(s.URL(), opts...)
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("%s: %v", what, err)
	}
}

// TestKey: the key file is for this user alone, and only a signature of the nonce of the connection by its key is
// admitted.
func TestKey(t *testing.T) {
	dir, fileOf := keysIn(t)
	s := start(t, embedded.Options{})
	file := fileOf(s)
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, file: 0o600} {
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && info.Mode() != want {
			t.Fatalf("%s: %v, %v, want %v", path, info, err, want)
		}
	}
	if err := dial(t, s.URL()).Flush(); err != nil {
		t.Error(err)
	}
	byFile, err := nats.NkeyOptionFromSeed(file) // As the nats CLI does with --nkey.
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL(), byFile)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	seed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	signed := func(sign func([]byte) ([]byte, error)) nats.Option { return nats.Nkey(public, sign) }
	denied(t, "nothing", s)
	denied(t, "a token", s, nats.Token(string(seed)))
	denied(t, "a user", s, nats.UserInfo(public, string(seed)))
	denied(t, "another key", s, signed(other.Sign))
	denied(t, "no signature", s, signed(func([]byte) ([]byte, error) { return nil, nil }))
	denied(t, "a signature of nothing", s, signed(func([]byte) ([]byte, error) { return pair.Sign(nil) }))
	var first []byte // A signature that was heard is of no use in another connection.
	once := signed(func(nonce []byte) (_ []byte, err error) {
		first, err = pair.Sign(nonce)
		return first, err
	})
	if nc, err = nats.Connect(s.URL(), once); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	denied(t, "an old signature", s, signed(func([]byte) ([]byte, error) { return first, nil }))
	for _, sig := range []string{"!", "AAAA", strings.Repeat("A", 86), strings.Repeat("=", 1_000)} {
		if got := raw(t, s, `CONNECT {"jwt":"x","sig":"`+sig+`"}`+"\r\nPING\r\n"); !strings.Contains(got, "Authorization Violation") {
			t.Errorf("the signature %.10s: %q", sig, got)
		}
	}
	if err := dial(t, s.URL()).Flush(); err != nil { // It continues.
		t.Error(err)
	}
	s.Close()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRefusedText says what a client without the key lacks.
func TestRefusedText(t *testing.T) {
	_, fileOf := keysIn(t)
	s := start(t, embedded.Options{})
	if err := os.Remove(fileOf(s)); err != nil {
		t.Fatal(err)
	}
	want := "bus: connect to NATS at " + s.URL() + ": nats: Authorization Violation; check the user and password, token, key or credentials file; "
	const remedy = "use --creds, --nkey, --user or --token-file, or set NATS_CREDS or another variable of docs/connecting.md"
	got := func() string {
		server, err := connect.Settings{URL: s.URL()}.Resolve(connect.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := bus.Dial(t.Context(), s.URL(), bus.Options{Extra: testnats.Options(t, s.URL())})
		if err == nil {
			return fmt.Sprint("connected: ", b.Close())
		}
		return server.Explain(err).Error()
	}
	if w := want + "none was given, and the key file " + fileOf(s) + " of the port does not exist: start the server as this user, or " + remedy; got() != w {
		t.Errorf("got %s\nwant %s", got(), w)
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fileOf(s), seed, 0o600); err != nil {
		t.Fatal(err)
	}
	if w := want + "the server refused the key in " + fileOf(s) + ", which a server of this user noted for the port: another server listens there now: " + remedy; got() != w {
		t.Errorf("got %s\nwant %s", got(), w)
	}
	s.Close()
	if now, err := os.ReadFile(fileOf(s)); err != nil || !bytes.Equal(now, seed) {
		t.Errorf("the key of another server was removed: %v", err)
	}
}

// TestStaleKey: a key that a server before has left is passed over by a server without keys, and replaced by one
// with.
func TestStaleKey(t *testing.T) {
	_, fileOf := keysIn(t)
	stale := []byte("SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4\n")
	first := start(t, embedded.Options{})
	first.Close()
	if err := os.WriteFile(fileOf(first), stale, 0o600); err != nil {
		t.Fatal(err)
	}
	open := start(t, embedded.Options{Port: first.Port(), Open: true})
	if err := dial(t, open.URL()).Flush(); err != nil {
		t.Error(err)
	}
	open.Close()
	for _, text := range [][]byte{stale, []byte("no key"), {}} {
		if err := os.WriteFile(fileOf(first), text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := start(t, embedded.Options{Port: first.Port()})
		if err := dial(t, s.URL()).Flush(); err != nil {
			t.Error(err)
		}
		s.Close()
	}
}

// TestKeyOfTheOneThatListens: a server that cannot start leaves the key of the server that has the port.
func TestKeyOfTheOneThatListens(t *testing.T) {
	_, fileOf := keysIn(t)
	s := start(t, embedded.Options{})
	before, err := os.ReadFile(fileOf(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []embedded.Options{{Port: s.Port()}, {Port: s.Port(), Open: true}, {Port: s.Port(), Token: "t"}} {
		if second, err := embedded.Start(o); err == nil {
			second.Close()
			t.Error("two servers have one port")
		}
		if now, err := os.ReadFile(fileOf(s)); err != nil || !bytes.Equal(now, before) {
			t.Errorf("the key was changed: %v", err)
		}
	}
	if err := dial(t, s.URL()).Flush(); err != nil {
		t.Error(err)
	}
}

// TestKeyDirectory refuses a directory that others can open or own.
func TestKeyDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no modes of files")
	}
	dir, _ := keysIn(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		s, err := embedded.Start(embedded.Options{})
		if err == nil {
			s.Close()
		}
		want = "embedded: " + want + "; or set Options.Open, so that any user of this machine can connect"
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
		start(t, embedded.Options{Open: true}).Close()
		start(t, embedded.Options{InProcess: true}).Close()
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // This is what is refused.
		t.Fatal(err)
	}
	check("key directory " + dir + ": its mode is 0755, so other users can open it: run chmod 700 " + dir)
	if os.Geteuid() != 0 {
		return // Only root can give files away.
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	check("key directory " + dir + ": another user owns it: remove it, or set XDG_RUNTIME_DIR to a directory of this user")
}

// TestNoKeyDirectory: a user without any directory.
func TestNoKeyDirectory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have other variables")
	}
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, "")
	}
	s, err := embedded.Start(embedded.Options{Port: 1})
	if err == nil {
		s.Close()
	}
	s, err = embedded.Start(embedded.Options{})
	if err == nil {
		s.Close()
	}
	want := ": set XDG_RUNTIME_DIR to a directory of this user: neither $XDG_CACHE_HOME nor $HOME are defined; or set Options.Open, so that any user of this machine can connect"
	if err == nil || !strings.HasPrefix(err.Error(), "embedded: key file of port ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v\nwant ...%s", err, want)
	}
}

// TestOpen takes anybody, and says so once.
func TestOpen(t *testing.T) {
	dir, _ := keysIn(t)
	var out bytes.Buffer
	s := start(t, embedded.Options{Open: true, Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	s.Close()
	if n := strings.Count(out.String(), "Any user of this machine can connect: no key is asked for"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a server without keys has noted something: %v", err)
	}
}

// TestInProcessConnOfKeyed: a connection through memory needs no key.
func TestInProcessConnOfKeyed(t *testing.T) {
	s := start(t, embedded.Options{})
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

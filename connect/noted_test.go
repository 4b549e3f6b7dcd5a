package connect_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
)

func serve(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// enter connects with settings and no environment.
func enter(t *testing.T, given connect.Settings) error {
	t.Helper()
	server, err := given.Resolve(connect.Settings{})
	if err != nil {
		return err
	}
	return dial(t, server)
}

// TestNotedKey is used for each way to write the address, and not beside credentials or for several servers.
func TestNotedKey(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	s := serve(t, embedded.Options{})
	port := strconv.Itoa(s.Port())
	for _, url := range []string{s.URL(), "127.0.0.1:" + port, "localhost:" + port, "nats://localhost:" + port} {
		if err := enter(t, connect.Settings{URL: url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	t.Setenv("NATS_URL", s.URL())
	if server, _, err := connect.To("", nil); err != nil || dial(t, server) != nil || server.Identity() != "" || server.Person() != "" {
		t.Errorf("by the environment: %v", err)
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]connect.Settings{
		"credentials have precedence": {URL: s.URL(), TokenFile: token},
		"a user in the URL":           {URL: "nats://u:p@127.0.0.1:" + port},
		"several servers":             {URL: s.URL() + "," + s.URL()},
	} {
		if err := enter(t, given); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, options, _ := connect.To(s.URL(), []nats.Option{}); len(options) != 0 {
		t.Error("options that were given are not all")
	}
}

// TestNotedKeyOfOthers is refused before anything is dialled.
func TestNotedKeyOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no modes of files")
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	s := serve(t, embedded.Options{})
	file := filepath.Join(dir, "pegasus", fmt.Sprintf("key-%d.nk", s.Port()))
	if err := os.Chmod(file, 0o666); err != nil { //nolint:gosec // This is what is refused.
		t.Fatal(err)
	}
	want := "connect: key file " + file + ": its mode is 0666, so other users can open it: remove it, and start the server again"
	if err := enter(t, connect.Settings{URL: s.URL()}); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chmod(file, 0o600), os.Chown(file, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		if err := enter(t, connect.Settings{URL: s.URL()}); err == nil || err.Error() != "connect: key file "+file+": another user owns it: remove it" {
			t.Error(err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := enter(t, connect.Settings{URL: s.URL()}); !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "the key file "+file+" of the port does not exist") {
		t.Error(err)
	}
}

// TestNotedForURL has a file for one server on loopback.
func TestNotedForURL(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	none, err := connect.Settings{URL: "nats://10.0.0.1:4222"}.Resolve(connect.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{
		"nats://127.0.0.1": true, "tls://localhost:1": true, "[::1]:4222": true,
		"nats://host:4222": false, "ws://127.0.0.1:80": false, "127.0.0.1:x": false, "nats://127.0.0.1:99999999999999999999": false,
	} {
		s, err := connect.Settings{URL: url}.Resolve(connect.Settings{})
		if err != nil {
			t.Error(err)
		}
		s.URL, s.From = none.URL, none.From
		if got := s != none; got != want {
			t.Errorf("%s: has a key: %v", url, got)
		}
	}
}

package main

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// TestRunAdmitsItsUser: commands and programs of this user connect to the server of a run, and a client without
// the key does not.
func TestRunAdmitsItsUser(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	run := launch(t, "run", goodConfig)
	at := run.url()
	run.line("gsync awaits")
	if nc, err := nats.Connect(at); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("without the key: %v", err)
	}
	for _, args := range [][]string{{"status"}, {"status", "--nats", at}, {"set"}} {
		if code, stdout, stderr := execute(t, args...); code != exitOK || !strings.Contains(stdout, "gsync") || stderr != "" {
			t.Errorf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "pegasus", "key-"+u.Port()+".nk")
	if seed, err := loopkey.Read(file); err != nil || seed == nil {
		t.Fatalf("%s: %v", file, err)
	}
	away := file + ".away"
	if err := os.Rename(file, away); err != nil {
		t.Fatal(err)
	}
	want := "; none was given, and the key file " + file + " of the port does not exist: start the server as this user, or use --creds, "
	if code, _, stderr := execute(t, "status", "--nats", at); code != exitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s\nwant ...%s", code, stderr, want)
	}
	if err := os.Rename(away, file); err != nil {
		t.Fatal(err)
	}
	if stop := run.seen; strings.Contains(strings.Join(stop, "\n"), "SU") {
		t.Errorf("the run shows a seed: %q", stop)
	}
	run.stop()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key is still there: %v", err)
	}
}

// TestRunOpen warns once, and takes a client without a key. NATS_URL does not count.
func TestRunOpen(t *testing.T) {
	t.Setenv("NATS_URL", "nats://127.0.0.1:1")
	const (
		warning = "pegasus: --open: any user of this machine can connect to the server inside this process; leave it out to admit only programs of this user\n"
		unused  = "pegasus: NATS_URL is not used: --listen, --jetstream, --keys and --open start a server inside this process; leave them out to use the server of NATS_URL\n"
	)
	for _, args := range [][]string{{"run", goodConfig}, {"program", "run", securedProgram(t)}} {
		run := launch(t, append(args, "--open")...)
		nc, err := nats.Connect(run.url())
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		run.line("awaits")
		run.cancel()
		if _, stderr := run.exit(); strings.Count(stderr, warning) != 1 || strings.Count(stderr, unused) != 1 {
			t.Errorf("%v: stderr %q", args, stderr)
		}
	}
}

func TestOpenRefused(t *testing.T) {
	password := writeFile(t, t.TempDir(), "password", "p\n")
	const want = "--open lets any user of this machine connect to a server inside this process: leave out --nats, --user and --password-file, or --open"
	for _, flags := range [][]string{{"--nats", "nats://127.0.0.1:1"}, {"--user", "u", "--password-file", password}} {
		code, _, stderr := execute(t, append([]string{"run", goodConfig, "--open"}, flags...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %s", flags, code, stderr)
		}
	}
	code, _, stderr := execute(t, "run", goodConfig, "--open", "--listen", "0.0.0.0:0")
	if want := "--listen 0.0.0.0:0: other machines can reach it, so it needs --keys DIR, or --user NAME and --password-file FILE; or listen on 127.0.0.1"; code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
	t.Setenv("XDG_RUNTIME_DIR", password)
	code, _, stderr = execute(t, "run", goodConfig)
	if want := "embedded: key directory " + filepath.Join(password, "pegasus") + ": set XDG_RUNTIME_DIR to a directory of this user: "; code != exitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

//go:build system && linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestClockAsksChronyd asks a chronyd of our own, which leaves the clock of this
// machine alone (-x), as a server; as a daemon it follows nobody.
func TestClockAsksChronyd(t *testing.T) {
	path, err := exec.LookPath("chronyd")
	if err != nil {
		path = "/usr/sbin/chronyd"
	}
	dir := t.TempDir()
	serve, command := freeUDP(t), freeUDP(t)
	config := filepath.Join(dir, "chrony.conf")
	lines := fmt.Sprintf("local stratum 1\nport %s\ncmdport %s\nbindaddress 127.0.0.1\nbindcmdaddress 127.0.0.1\nbindcmdaddress /\nallow\npidfile %s\n",
		serve, command, filepath.Join(dir, "pid"))
	if err := os.WriteFile(config, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	run := exec.CommandContext(ctx, path, "-x", "-d", "-u", "root", "-f", config)
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	if err := run.Start(); err != nil {
		t.Fatalf("this test needs chronyd in the PATH; .ci/run unpacks one: %v", err)
	}
	defer func() { cancel(); _ = run.Wait() }()

	code, stdout, stderr := execute(t, "clock", "--ntp", "127.0.0.1:"+serve, "--timeout", patience.String(), "--json")
	if o := clockObject(t, stdout); code != exitOK || o.Status != "synchronized" || o.Source != "ntp" || o.Bound <= 0 || o.Bound > 0.1 {
		t.Errorf("exit %d, stderr %q, %+v", code, stderr, o)
	}
	code, stdout, _ = execute(t, "clock", "--chrony", "127.0.0.1:"+command, "--timeout", "2s", "--json")
	const want = "chronyd follows only itself (7F7F0101): give it a server or a reference clock"
	if o := clockObject(t, stdout); code != exitFailure || o.Status != "unknown" || len(o.Servers) != 1 || o.Servers[0].Why != want {
		t.Errorf("exit %d, %+v", code, o)
	}
}

// freeUDP is a port of loopback that nobody has.
func freeUDP(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // Closed at once.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, port, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

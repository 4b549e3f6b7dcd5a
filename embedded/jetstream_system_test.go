//go:build system && linux

package embedded_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/embedded"
)

// disk is a file system of a size, of root's.
func disk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount: %v: this test needs root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestJetStreamSmallDisk(t *testing.T) {
	dir := filepath.Join(disk(t, "8m"), "js")
	s, err := embedded.Start(embedded.Options{JetStream: dir})
	if err == nil {
		s.Close()
	}
	want := "embedded: JetStream directory " + dir + " has no room: the server may write 6291456 bytes there, three quarters of the free space, and needs 16777216: free some, or give a directory on another disk"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestJetStreamFullDisk fills the disk while the server runs.
func TestJetStreamFullDisk(t *testing.T) {
	dir := filepath.Join(disk(t, "40m"), "js")
	told := make(chan error, 100)
	s := start(t, embedded.Options{JetStream: dir, OnExhausted: func(err error) { told <- err }})
	js := streams(t, s)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 2000 {
		if _, err = js.Publish(t.Context(), "s.x", make([]byte, 60<<10), jetstream.WithRetryAttempts(0)); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("the disk took more than it has")
	}
	if !errors.As(err, new(*jetstream.APIError)) {
		t.Error(err)
	}
	select {
	case err := <-told:
		if want := "embedded: JetStream of the NATS server in this process takes no more messages, as " + dir + " has no room left: free some, and start again: "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	case <-time.After(patience):
		t.Error("nothing was told")
	}
	s.Close()
}

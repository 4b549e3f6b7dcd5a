package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// leastRoom is how many bytes JetStream must be allowed to write at the start. Below it the first
// streams would have to be refused.
const leastRoom = 16 << 20

var errInUse = errors.New("another server in this or another process uses it: end that, or give another directory")

// openStore creates the directory of JetStream where it does not exist, and locks it until
// [closeStore]. It returns nil for a server without JetStream. nats-server itself locks nothing.
func openStore(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // There is no directory.
	}
	if err := os.MkdirAll(dir, 0o700); errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("embedded: JetStream directory %s: there is a file where a directory has to be: give another directory, or move the file: %w", dir, err)
	} else if err != nil {
		return nil, fmt.Errorf("embedded: JetStream directory %s cannot be created: give a directory that this user may write to: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "pegasus.lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // The caller names it.
	if err != nil {
		return nil, fmt.Errorf("embedded: JetStream directory %s cannot be written to: give a directory that this user may write to: %w", dir, err)
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: JetStream directory %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// closeStore lets another server use the directory. The file stays: to remove it could let two servers
// lock two files of that name.
func closeStore(f *os.File) {
	if f == nil {
		return
	}
	unlock(f)
	_ = f.Close() // Nothing was written to it. A second close does nothing.
}

// checkRoom refuses a directory in which JetStream may write less than leastRoom. The server allows itself
// three quarters of what is free and of what its streams have.
func checkRoom(dir string, ns *server.Server) error {
	cfg := ns.JetStreamConfig()
	if cfg == nil || !ns.JetStreamEnabled() {
		return nil // There is none, or it has failed, which is told.
	}
	used, err := ns.Jsz(nil)
	if err != nil {
		return fmt.Errorf("embedded: JetStream in %s does not say how much it has written: %w", dir, err)
	}
	return room(dir, cfg.MaxStore, used.Store)
}

func room(dir string, most int64, used uint64) error {
	if left := most - int64(used); left < leastRoom { //nolint:gosec // Bytes of a disk.
		return fmt.Errorf("embedded: JetStream directory %s has no room: the server may write %d bytes there, three quarters of the free space, and needs %d: free some, or give a directory on another disk",
			dir, max(left, 0), leastRoom)
	}
	return nil
}

// Beginnings of lines of nats-server, which reports these in no other way.
const (
	cannotStart = "Can't start JetStream: "
	outOfRoom   = "JetStream out of "                                  // The disk is full: JetStream stops.
	atLimit     = "JetStream file resource limits exceeded for server" // It refuses messages; told every 10 s.
)

// startError tells why the server did not start JetStream, if that is what the line says.
func startError(dir, fatal string) error {
	reason, ok := strings.CutPrefix(fatal, cannotStart)
	if !ok {
		return nil
	}
	return fmt.Errorf("embedded: JetStream cannot start in %s: %s: make the directory readable and writable for this user, or give another one", dir, reason)
}

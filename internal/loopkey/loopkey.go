// Package loopkey keeps the key of a NATS server on loopback in a file that only the user of the server can
// read. The server writes the file when it starts, and clients of the same user read it whenever they connect.
package loopkey

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// maxKey bounds a key file, in bytes.
const maxKey = 1 << 10

// Dir is the directory of the key files and of the notes of runs: pegasus in $XDG_RUNTIME_DIR, or
// pegasus/runs in the cache directory of this user. It need not exist.
func Dir() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "pegasus"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "pegasus", "runs"), nil
}

// File is the path of the key file of the server at a port.
func File(port int) (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", fmt.Errorf("key file of port %d: set XDG_RUNTIME_DIR to a directory of this user: %w", port, err)
	}
	return filepath.Join(dir, "key-"+strconv.Itoa(port)+".nk"), nil
}

// IsLoopback reports whether only this machine can reach the host. A name other
// than localhost is not looked up: what it resolves to may change.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Read returns the seed in a key file, or nil if there is no file that this user can reach. It refuses a
// file or a directory that other users own or can open.
func Read(file string) ([]byte, error) {
	dir, name := filepath.Dir(file), filepath.Base(file)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil //nolint:nilnil // No server of this user has noted a key.
	}
	defer root.Close() //nolint:errcheck // It was only read.
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil //nolint:nilnil // As above.
	}
	if err := checkDir(root); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // To open another one may block.
		return nil, fmt.Errorf("key file %s: it is no regular file: remove it", file)
	}
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // The server has just ended.
	}
	if err != nil {
		return nil, fmt.Errorf("key file %s: remove it: %w", file, err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	info, err = f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("key file %s: remove it: %w", file, err)
	case !isOwn(info):
		return nil, fmt.Errorf("key file %s: another user owns it: remove it", file)
	case isShared(info):
		return nil, fmt.Errorf("key file %s: its mode is %#o, so other users can open it: remove it, and start the server again", file, info.Mode().Perm())
	}
	seed, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, fmt.Errorf("key file %s: remove it: %w", file, err)
	}
	return seed, nil
}

func checkDir(root *os.Root) error {
	info, err := root.Stat(".")
	switch {
	case err != nil:
		return fmt.Errorf("key directory %s: %w", root.Name(), err)
	case !isOwn(info):
		return fmt.Errorf("key directory %s: another user owns it: remove it, or set XDG_RUNTIME_DIR to a directory of this user", root.Name())
	case isShared(info):
		return fmt.Errorf("key directory %s: its mode is %#o, so other users can open it: run chmod 700 %[1]s", root.Name(), info.Mode().Perm())
	}
	return nil
}

// Note is a key file that a server has written.
type Note struct {
	file           string
	seed, previous []byte // previous is what the file had before, or nil
}

// Write writes the key file of the server at a port. Clients see the whole file or the previous one. It creates
// the directory, and refuses one that other users own or can open.
func Write(port int, seed []byte) (*Note, error) {
	file, err := File(port)
	if err != nil {
		return nil, err
	}
	n := &Note{file: file, seed: seed}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("key directory %s: set XDG_RUNTIME_DIR to a directory of this user: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("key directory %s: set XDG_RUNTIME_DIR to a directory of this user: %w", dir, err)
	}
	defer root.Close() //nolint:errcheck // Nothing is left to write.
	if err := checkDir(root); err != nil {
		return nil, err
	}
	n.previous, _ = Read(file) // A file that cannot be used is replaced.
	if err := n.replace(root, seed); err != nil {
		return nil, err
	}
	return n, nil
}

// replace renames a new file over the one that is there.
func (n *Note) replace(root *os.Root, seed []byte) error {
	name := filepath.Base(n.file)
	fresh := fmt.Sprintf("%s.%d.new", name, os.Getpid())
	_ = root.Remove(fresh) // A process with this number may have been killed.
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("key file %s: %w", n.file, err)
	}
	_, err = f.Write(seed)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(fresh, name)
	}
	if err != nil {
		return fmt.Errorf("key file %s: %w", n.file, errors.Join(err, root.Remove(fresh)))
	}
	return nil
}

// Remove removes the file, unless another server has replaced it.
func (n *Note) Remove() { n.end(nil) }

// Undo restores the file to what it was before [Write], unless another server has replaced it.
func (n *Note) Undo() { n.end(n.previous) }

func (n *Note) end(previous []byte) {
	if now, err := Read(n.file); err != nil || !bytes.Equal(now, n.seed) {
		return
	}
	if previous == nil {
		_ = os.Remove(n.file) // The next server at the port replaces it.
		return
	}
	if root, err := os.OpenRoot(filepath.Dir(n.file)); err == nil {
		_ = n.replace(root, previous) // As above.
		_ = root.Close()
	}
}

package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/nats-io/nkeys"
)

// checkDir refuses a directory that other users can open.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("keys: directory %s: make it with init: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("keys: directory %s: it is a file: give a directory", dir)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0: // There the profile of a user is kept from others.
		return fmt.Errorf("keys: directory %s: its mode is %#o, so other users can open it: run chmod 700 %[1]s", dir, info.Mode().Perm())
	}
	return nil
}

// write writes a file that a reader sees whole or not at all.
func write(dir, name string, text []byte) error {
	file := filepath.Join(dir, name)
	f, err := os.CreateTemp(dir, ".new-*") // Its mode is 0600.
	if err != nil {
		return fmt.Errorf("keys: file %s: %w", file, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("keys: file %s: %w", file, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// lock keeps other commands from changing the directory until unlock: the later one would lose the user of the first.
func lock(dir string) (unlock func(), err error) {
	file := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // The caller names the directory.
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keys: directory %s: another command changes it, or has been killed: try again, or remove %s", dir, file)
	}
	if err != nil {
		return nil, fmt.Errorf("keys: directory %s: %w", dir, err)
	}
	return func() { _ = errors.Join(f.Close(), os.Remove(file)) }, nil
}

func readPair(dir, name string) (nkeys.KeyPair, error) {
	file := filepath.Join(dir, name)
	seed, err := os.ReadFile(file) //nolint:gosec // The caller names the directory.
	if err != nil {
		return nil, fmt.Errorf("keys: file %s: restore it from a copy: %w", file, err)
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return nil, fmt.Errorf("keys: file %s: it has no seed: restore it from a copy", file)
	}
	return pair, nil
}

func load(dir string) (*group, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, usersFile)
	text, err := os.ReadFile(file) //nolint:gosec // The caller names the directory.
	if err != nil {
		return nil, fmt.Errorf("keys: file %s: make the directory with init: %w", file, err)
	}
	g := &group{}
	if err := json.Unmarshal(text, g); err != nil {
		return nil, fmt.Errorf("keys: file %s: restore it from a copy: %w", file, err)
	}
	return g, nil
}

// loadToChange is load for a caller that changes the directory. Other changes are refused until unlock.
func loadToChange(dir string) (g *group, unlock func(), err error) {
	if err := checkDir(dir); err != nil {
		return nil, nil, err
	}
	if unlock, err = lock(dir); err != nil {
		return nil, nil, err
	}
	if g, err = load(dir); err != nil {
		unlock()
		return nil, nil, err
	}
	return g, unlock, nil
}

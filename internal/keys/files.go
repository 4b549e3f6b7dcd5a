package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	case info.Mode().Perm()&0o077 != 0:
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

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

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/internal/roles"
)

// checkDir refuses a directory that other users can open.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("keys: directory %s: make it with init: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("keys: directory %s: it is a file: give a directory", dir)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows": // That has no modes of files.
		return fmt.Errorf("keys: directory %s: its mode is %#o, so other users can open it: run chmod 700 %[1]s", dir, info.Mode().Perm())
	}
	return nil
}

// lock keeps other processes from changing the list of users, until the returned function is called.
func lock(dir string) (unlock func(), err error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // The caller names the directory.
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("keys: directory %s: another command changes it: wait for its end; if none runs, remove %s", dir, file)
	case err != nil:
		return nil, fmt.Errorf("keys: file %s: %w", file, err)
	}
	_ = f.Close()                              // It stays empty.
	return func() { _ = os.Remove(file) }, nil // Else the next command says what to remove.
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

// save writes the list of users, and the configuration of the server that follows from it.
func save(dir string, g *group) error {
	conf, err := serverConf(dir, g)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return errors.Join(write(dir, usersFile, append(text, '\n')), write(dir, serverFile, conf))
}

// serverConf is the configuration of a nats-server that trusts the operator and knows the account.
func serverConf(dir string, g *group) ([]byte, error) {
	pairs, ids := map[string]nkeys.KeyPair{}, map[string]string{}
	for _, file := range []string{operatorFile, systemFile, accountFile} {
		pair, err := readPair(dir, file)
		if err != nil {
			return nil, err
		}
		if ids[file], err = pair.PublicKey(); err != nil {
			return nil, fmt.Errorf("keys: file %s: %w", file, err)
		}
		pairs[file] = pair
	}
	operator, accountID := pairs[operatorFile], ids[accountFile]
	// These two are signed once: a running nats-server refuses another JWT of its operator.
	if g.Operator == "" {
		trusted := jwt.NewOperatorClaims(ids[operatorFile])
		trusted.Name, trusted.SystemAccount = "pegasus", ids[systemFile]
		system := jwt.NewAccountClaims(ids[systemFile])
		system.Name = "system"
		trust, err := trusted.Encode(operator)
		if err != nil {
			return nil, fmt.Errorf("keys: operator: %w", err)
		}
		token, err := system.Encode(operator)
		if err != nil {
			return nil, fmt.Errorf("keys: system account: %w", err)
		}
		g.Operator, g.System = trust, token
	}
	claims := jwt.NewAccountClaims(accountID)
	claims.Name = g.Tenant + "-" + g.Group
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit,
	}
	for _, name := range roles.Names() {
		role := roles.Role(name)
		pair, err := readPair(dir, roleFile(role))
		if err != nil {
			return nil, err
		}
		scope := jwt.NewUserScope()
		if scope.Key, err = pair.PublicKey(); err != nil {
			return nil, fmt.Errorf("keys: file %s: %w", roleFile(role), err)
		}
		p, err := roles.Template(role, g.Tenant, g.Group)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		scope.Role = name
		scope.Template.Pub.Allow, scope.Template.Sub.Allow = p.Publish, p.Subscribe
		claims.SigningKeys.AddScopedSigner(scope)
	}
	for _, u := range g.Users {
		for _, public := range u.Public {
			if !u.Revoked.IsZero() {
				claims.RevokeAt(public, u.Revoked)
			}
		}
	}
	token, err := claims.Encode(operator)
	if err != nil {
		return nil, fmt.Errorf("keys: account: %w", err)
	}
	certificate := ""
	if g.TLS {
		certificate = fmt.Sprintf("tls: {cert_file: %q, key_file: %q, timeout: 5}\n", certFile, keyFile)
	}
	return fmt.Appendf(nil, confText, certificate, g.Operator, ids[systemFile], ids[systemFile], g.System, accountID, token), nil
}

// confText is a configuration of nats-server. A client of a secured server sends its JWT in one line, so that is long.
const confText = `# pegasus keys has written this file, and writes it again for each user. Include it
# in a file with further settings. Its paths are relative: start nats-server in its directory.
max_control_line: 65536
max_connections: 16384
authorization: {timeout: 5}
%soperator: %s
system_account: %s
resolver: MEMORY
resolver_preload: {
  %s: %s
  %s: %s
}
`

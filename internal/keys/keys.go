// Package keys keeps the operator, the account and the users of a secured group in a directory: their keys, and the
// configuration of the NATS server that trusts them. The time is an argument; only the JWT library
// stamps when it encodes a JWT.
package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/internal/roles"
)

// Files of a directory. Each role has the key role-ROLE.nk, and each user NAME.creds.
const (
	operatorFile = "operator.nk"
	accountFile  = "account.nk"
	systemFile   = "system.nk"
	usersFile    = "users.json"
	lockFile     = ".lock"
	serverFile   = "server.conf"
)

const credsSuffix = ".creds"

// expiresSoon is how long before its end a credential is reported.
const expiresSoon = 14 * 24 * time.Hour

// User is a user for whom a credentials file was written.
type User struct {
	Name    string     `json:"name"`             // of the JWT
	Role    roles.Role `json:"role"`             // whose key signed it
	Tags    []string   `json:"tags,omitempty"`   // member:NAME and so on
	Public  []string   `json:"public"`           // keys, the newest last
	Issued  time.Time  `json:"issued"`           // the newest
	Expires time.Time  `json:"expires,omitzero"` // zero: never
	Revoked time.Time  `json:"revoked,omitzero"` // zero: not
}

// group is the file of users.
type group struct {
	Tenant string `json:"tenant"`
	Group  string `json:"group"`
	Users  []User `json:"users"`
}

// Init makes the directory with new keys, for the users of a group. A directory that has files is refused. With hosts it makes
// the certificate of a server too, which clients reach by these names or addresses.
func Init(dir, tenant, name string, hosts []string, now time.Time) error {
	for _, role := range roles.Names() {
		if _, err := roles.Template(roles.Role(role), tenant, name); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	for _, host := range hosts {
		if err := checkHost(host); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keys: directory %s: give one that this user may write to: %w", dir, err)
	}
	if err := checkDir(dir); err != nil {
		return err
	}
	switch files, err := os.ReadDir(dir); {
	case err != nil:
		return fmt.Errorf("keys: directory %s: %w", dir, err)
	case len(files) > 0:
		return fmt.Errorf("keys: directory %s: it is not empty: give a new one, as keys are not replaced", dir)
	}
	pairs := map[string]func() (nkeys.KeyPair, error){operatorFile: nkeys.CreateOperator, accountFile: nkeys.CreateAccount, systemFile: nkeys.CreateAccount}
	for _, role := range roles.Names() {
		pairs[roleFile(roles.Role(role))] = nkeys.CreateAccount
	}
	for file, create := range pairs {
		pair, err := create()
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		seed, err := pair.Seed()
		if err != nil {
			return fmt.Errorf("keys: %w", err)
		}
		if err := write(dir, file, append(slices.Clone(seed), '\n')); err != nil {
			return err
		}
		pair.Wipe()
	}
	if len(hosts) > 0 {
		if err := writeCertificates(dir, hosts, now); err != nil {
			return err
		}
	}
	return save(dir, &group{Tenant: tenant, Group: name})
}

func roleFile(role roles.Role) string { return "role-" + string(role) + ".nk" }

// Add writes the credentials file of a user, and returns its path. A user that exists is renewed: it has a new key, and
// the old one stays valid until it expires or the user is revoked. A lifetime of 0 is without end, or that of the key before.
// A user that is renewed keeps its members, processors, other groups and stream if none of them is given.
func Add(dir string, u roles.User, lifetime time.Duration, now time.Time) (file string, err error) {
	g, unlock, err := loadToChange(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	u.Tenant, u.Group = g.Tenant, g.Group
	i := slices.IndexFunc(g.Users, func(o User) bool { return o.Name == u.Name })
	if i >= 0 && g.Users[i].Role == u.Role && len(u.Members) == 0 && u.Processors == 0 && len(u.Others) == 0 && u.Stream == "" {
		g.Users[i].fill(&u)
	}
	if _, err := u.Permissions(); err != nil { // It checks the names.
		return "", fmt.Errorf("keys: %w", err)
	}
	if lifetime < 0 || u.Synchronizer != "" && u.Synchronizer != u.Name {
		return "", fmt.Errorf("keys: user %q: a synchronizer is called as its user, and a lifetime is at least 0", u.Name)
	}
	signer, err := readPair(dir, roleFile(u.Role))
	if err != nil {
		return "", err
	}
	account, err := readPair(dir, accountFile)
	if err != nil {
		return "", err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", fmt.Errorf("keys: %w", err)
	}
	defer pair.Wipe()
	if i < 0 {
		i, g.Users = len(g.Users), append(g.Users, User{Name: u.Name, Role: u.Role})
	}
	o := &g.Users[i]
	switch {
	case o.Role != u.Role:
		return "", fmt.Errorf("keys: user %q has the role %s: give another name, or that role", u.Name, o.Role)
	case !o.Revoked.IsZero():
		return "", fmt.Errorf("keys: user %q was revoked: give another name", u.Name)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return "", fmt.Errorf("keys: %w", err)
	}
	if lifetime == 0 && !o.Expires.IsZero() {
		lifetime = o.Expires.Sub(o.Issued)
	}
	o.Public, o.Tags, o.Issued, o.Expires = append(o.Public, public), tags(&u), now, time.Time{}
	claims := jwt.NewUserClaims(public)
	claims.Name, claims.Tags = u.Name, o.Tags // Tags.Add would make them lower case.
	if claims.IssuerAccount, err = account.PublicKey(); err != nil {
		return "", fmt.Errorf("keys: %w", err)
	}
	if lifetime > 0 {
		o.Expires = now.Add(lifetime)
		claims.Expires = o.Expires.Unix()
	}
	claims.SetScoped(true)
	token, err := claims.Encode(signer)
	if err != nil {
		return "", fmt.Errorf("keys: user %q: %w", u.Name, err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", fmt.Errorf("keys: %w", err)
	}
	creds, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return "", fmt.Errorf("keys: user %q: %w", u.Name, err)
	}
	// The list has the key first: a key that is not in it cannot be revoked.
	if err := save(dir, g); err != nil {
		return "", err
	}
	return filepath.Join(dir, u.Name+credsSuffix), write(dir, u.Name+credsSuffix, creds)
}

// tags are what the templates of the role have of a user.
func tags(u *roles.User) (list jwt.TagList) {
	members := u.Members
	if len(members) == 0 {
		members = []string{u.Name}
	}
	switch u.Role {
	case roles.Member:
		for _, m := range members {
			list = append(list, "member:"+m)
		}
	case roles.Node:
		list = append(list, "node:"+members[0])
		for i := range u.Processors {
			list = append(list, fmt.Sprintf("processor:%s-%d", members[0], i))
		}
	case roles.Synchronizer:
		for _, g := range u.Others {
			list = append(list, "other:"+g)
		}
	case roles.Viewer, roles.Operator:
	}
	if u.Stream != "" {
		list = append(list, "stream:"+u.Stream)
	}
	return list
}

// fill sets the fields of a user that the tags came from.
func (o *User) fill(u *roles.User) {
	for _, tag := range o.Tags {
		switch key, value, _ := strings.Cut(tag, ":"); key {
		case "member", "node":
			u.Members = append(u.Members, value)
		case "processor":
			u.Processors++
		case "other":
			u.Others = append(u.Others, value)
		case "stream":
			u.Stream = value
		}
	}
}

// Revoke has the server refuse all keys of a user, once it has read its configuration again. The credentials file is removed.
func Revoke(dir, name string, now time.Time) error {
	g, unlock, err := loadToChange(dir)
	if err != nil {
		return err
	}
	defer unlock()
	i := slices.IndexFunc(g.Users, func(u User) bool { return u.Name == name })
	if i < 0 {
		var names []string
		for _, u := range g.Users {
			names = append(names, u.Name)
		}
		return fmt.Errorf("keys: user %q: %s has no such user: it has %s", name, dir, strings.Join(names, ", "))
	}
	g.Users[i].Revoked = now
	if err := save(dir, g); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, name+credsSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keys: user %q: %w", name, err)
	}
	return nil
}

// List returns the users, and a warning for each whose credential has expired or does so within 14 days. So does the certificate of
// the server.
func List(dir string, now time.Time) (users []User, warnings []string, err error) {
	g, err := load(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range g.Users {
		left := u.Expires.Sub(now)
		switch {
		case u.Expires.IsZero() || !u.Revoked.IsZero() || left > expiresSoon:
		case left <= 0:
			warnings = append(warnings, fmt.Sprintf("user %q: its credential expired at %s: add it again", u.Name, u.Expires.UTC().Format(time.RFC3339)))
		default:
			warnings = append(warnings, fmt.Sprintf("user %q: its credential expires at %s: add it again before", u.Name, u.Expires.UTC().Format(time.RFC3339)))
		}
	}
	certificate, err := readCertificate(dir)
	if err != nil {
		return nil, nil, err
	}
	if certificate != nil && certificate.Leaf.NotAfter.Sub(now) <= expiresSoon {
		warnings = append(warnings, fmt.Sprintf("the certificate %s ends at %s: make a new directory, or replace it", filepath.Join(dir, certFile), certificate.Leaf.NotAfter.UTC().Format(time.RFC3339)))
	}
	return g.Users, warnings, nil
}

// Credential is the file for a synchronizer of this name, that is in the directory.
func Credential(dir, synchronizer string) (file string, err error) {
	g, err := load(dir)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(g.Users, func(u User) bool { return u.Name == synchronizer })
	switch {
	case i < 0:
		return "", fmt.Errorf("keys: directory %s: it has no credential for the synchronizer %s: run pegasus keys add %[1]s synchronizer %[2]s", dir, synchronizer)
	case g.Users[i].Role != roles.Synchronizer:
		return "", fmt.Errorf("keys: user %q has the role %s, and a synchronizer is called so: give one of them another name", synchronizer, g.Users[i].Role)
	case !g.Users[i].Revoked.IsZero():
		return "", fmt.Errorf("keys: user %q was revoked, and a synchronizer is called so: give the synchronizer another name, and add that", synchronizer)
	}
	return filepath.Join(dir, synchronizer+credsSuffix), nil
}

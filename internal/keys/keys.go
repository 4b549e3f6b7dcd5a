// Package keys keeps the operator, the account and the users of a secured group in a directory: their keys, and the
// configuration of the NATS server that trusts them. The time is an argument; only the JWT library
// stamps when it encodes a JWT.
package keys

import (
	"cmp"
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
	lockFile     = "users.lock" // while the list of users is changed
	operatorFile = "operator.nk"
	accountFile  = "account.nk"
	systemFile   = "system.nk" // an account without users, which JetStream needs
	usersFile    = "users.json"
	serverFile   = "server.conf"
)

// What a server takes of a user: the subjects of a template that is filled in, and the bytes of a JWT, which is sent in one
// line together with up to 1 KiB more.
const (
	maxSubjects = 4096
	maxToken    = 63 << 10
)

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
	Tenant string `json:"tenant"`        // of all users
	Group  string `json:"group"`         // of all users
	TLS    bool   `json:"tls,omitempty"` // the server has a certificate
	Users  []User `json:"users"`         // by name

	Operator string `json:"operator"` // its JWT, which is no secret
	System   string `json:"system"`   // the JWT of the account of the server itself
}

// Config is what a directory is made for.
type Config struct {
	Tenant, Group string   // of the users
	TLS           bool     // make a certificate for the server
	Hosts         []string // names and addresses in the certificate, besides those of loopback
}

// Init makes the directory with new keys, for the users of a group. A directory that has files is refused.
func Init(dir string, c Config, now time.Time) error {
	if err := c.checkHosts(); err != nil {
		return err
	}
	for _, role := range roles.Names() {
		if _, err := roles.Template(roles.Role(role), c.Tenant, c.Group); err != nil {
			return fmt.Errorf("keys: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keys: directory %s: give a directory that this user may write to: %w", dir, err)
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
	if c.TLS {
		if err := writeCertificate(dir, &c, now); err != nil {
			return err
		}
	}
	return save(dir, &group{Tenant: c.Tenant, Group: c.Group, TLS: c.TLS})
}

func roleFile(role roles.Role) string { return "role-" + string(role) + ".nk" }

// Add writes the credentials file of a user, and returns its path. A user that exists is renewed: it has a new key, and
// the old one stays valid until it expires or the user is revoked. A user that is renewed keeps its members, processors,
// other groups and stream if none of these is given. A lifetime of 0 is without end.
func Add(dir string, u roles.User, lifetime time.Duration, now time.Time) (file string, err error) {
	unlock, err := lock(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	g, err := load(dir)
	if err != nil {
		return "", err
	}
	u.Tenant, u.Group = g.Tenant, g.Group
	i := slices.IndexFunc(g.Users, func(o User) bool { return o.Name == u.Name })
	if i >= 0 && g.Users[i].Role == u.Role && len(u.Members)+len(u.Others)+u.Processors == 0 && u.Stream == "" {
		g.Users[i].restore(&u)
	}
	switch p, err := u.Permissions(); { // It checks the names.
	case err != nil:
		return "", fmt.Errorf("keys: %w", err)
	case max(len(p.Publish), len(p.Subscribe)) > maxSubjects:
		return "", fmt.Errorf("keys: user %q: its members, processors or other groups need %d subjects, and a server permits %d: give some of them to another user", u.Name, max(len(p.Publish), len(p.Subscribe)), maxSubjects)
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
	if len(token) > maxToken {
		return "", fmt.Errorf("keys: user %q: its JWT has %d bytes, and a server takes %d: give it fewer or shorter names", u.Name, len(token), maxToken)
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
	return filepath.Join(dir, u.Name+".creds"), write(dir, u.Name+".creds", creds)
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

// restore gives a user what its tags say.
func (o *User) restore(u *roles.User) {
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
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := load(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(g.Users, func(u User) bool { return u.Name == name })
	if i < 0 {
		names := []string{}
		for _, u := range g.Users {
			names = append(names, u.Name)
		}
		return fmt.Errorf("keys: user %q: %s has no such user: it has %s", name, dir, cmp.Or(strings.Join(names, ", "), "none"))
	}
	g.Users[i].Revoked = now
	if err := save(dir, g); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, name+".creds")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keys: user %q: %w", name, err)
	}
	return nil
}

// Listing are the users of a directory.
type Listing struct {
	Tenant   string   `json:"tenant"`   // of all
	Group    string   `json:"group"`    // of all
	Users    []User   `json:"users"`    // in the order in which they were added
	Warnings []string `json:"warnings"` // one for each credential or certificate that has expired or does so within 14 days
}

// List returns the users, and what expires.
func List(dir string, now time.Time) (l Listing, err error) {
	g, err := load(dir)
	if err != nil {
		return l, err
	}
	l = Listing{g.Tenant, g.Group, append([]User{}, g.Users...), []string{}}
	for _, u := range g.Users {
		if !u.Expires.IsZero() && u.Revoked.IsZero() {
			l.warn(fmt.Sprintf("user %q: its credential", u.Name), "add it again", u.Expires, now)
		}
	}
	if !g.TLS {
		return l, nil
	}
	for _, name := range []string{caFile, certFile} {
		c, err := readCertificate(dir, name)
		if err != nil {
			return l, err
		}
		l.warn("file "+name+": the certificate", "replace it", c.NotAfter, now)
	}
	return l, nil
}

// warn adds a warning if the end is near or has come.
func (l *Listing) warn(what, remedy string, end, now time.Time) {
	switch left, at := end.Sub(now), end.UTC().Format(time.RFC3339); {
	case left <= 0:
		l.Warnings = append(l.Warnings, what+" expired at "+at+": "+remedy)
	case left <= expiresSoon:
		l.Warnings = append(l.Warnings, what+" expires at "+at+": "+remedy+" before")
	}
}

package keys

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/internal/roles"
)

// Limits of the server.
const (
	MaxControlLine = 65536 // bytes; the JWT of a node with 1,024 processors fits
	maxConnections = 16384
	authSeconds    = 5 // for a client to authenticate, and for a TLS handshake
)

// Server is what a NATS server takes from the directory.
type Server struct {
	Tenant, Group string           // that the users are for
	Operator      string           // JWT
	Account       string           // JWT of the account of the group
	System        string           // JWT of the account of the server itself, which JetStream needs
	TLS           *tls.Certificate // nil: without TLS
	CA            string           // file of the authority; empty without TLS
}

// ReadServer reads the directory.
func ReadServer(dir string) (*Server, error) {
	g, err := load(dir)
	if err != nil {
		return nil, err
	}
	return newServer(dir, g)
}

func newServer(dir string, g *group) (*Server, error) {
	operator, _, err := readKey(dir, operatorFile)
	if err != nil {
		return nil, err
	}
	defer operator.Wipe()
	s := &Server{Tenant: g.Tenant, Group: g.Group}
	if s.TLS, err = readCertificate(dir); err != nil {
		return nil, err
	}
	if s.TLS != nil {
		s.CA = filepath.Join(dir, caFile)
	}
	operatorID, err := operator.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("keys: file %s: %w", operatorFile, err)
	}
	_, systemID, err := readKey(dir, systemFile)
	if err != nil {
		return nil, err
	}
	trusted := jwt.NewOperatorClaims(operatorID)
	trusted.Name, trusted.SystemAccount = "pegasus", systemID
	system := jwt.NewAccountClaims(systemID)
	system.Name = "system"
	account, err := accountClaims(dir, g)
	if err != nil {
		return nil, err
	}
	for _, one := range []struct {
		claims jwt.Claims
		token  *string
	}{{trusted, &s.Operator}, {system, &s.System}, {account, &s.Account}} {
		if *one.token, err = one.claims.Encode(operator); err != nil {
			return nil, fmt.Errorf("keys: %s: %w", one.claims.Claims().Name, err)
		}
	}
	return s, nil
}

// accountClaims are the account of the group: a signing key for each role, and the revoked keys.
func accountClaims(dir string, g *group) (*jwt.AccountClaims, error) {
	_, id, err := readKey(dir, accountFile)
	if err != nil {
		return nil, err
	}
	claims := jwt.NewAccountClaims(id)
	claims.Name = g.Tenant + "-" + g.Group
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit,
		MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
	}
	for _, name := range roles.Names() {
		role := roles.Role(name)
		scope := jwt.NewUserScope()
		if _, scope.Key, err = readKey(dir, roleFile(role)); err != nil {
			return nil, err
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
	return claims, nil
}

// readKey returns a pair of the directory, and its public key.
func readKey(dir, name string) (nkeys.KeyPair, string, error) {
	pair, err := readPair(dir, name)
	if err != nil {
		return nil, "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, "", fmt.Errorf("keys: file %s: %w", filepath.Join(dir, name), err)
	}
	return pair, public, nil
}

// save writes the list of users, and the configuration of the server that follows from it.
func save(dir string, g *group) error {
	s, err := newServer(dir, g)
	if err != nil {
		return err
	}
	conf, err := s.conf(dir)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return errors.Join(write(dir, usersFile, append(text, '\n')), write(dir, serverFile, conf))
}

// conf is the configuration of a nats-server that trusts the operator and knows the accounts. It names the files of TLS by
// absolute paths.
func (s *Server) conf(dir string) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "max_control_line: %d\nmax_connections: %d\nauthorization: { timeout: %d }\n", MaxControlLine, maxConnections, authSeconds)
	if s.TLS != nil {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("keys: directory %s: %w", dir, err)
		}
		fmt.Fprintf(&b, "tls: { cert_file: %s, key_file: %s, timeout: %d }\n", strconv.Quote(filepath.Join(absolute, certFile)), strconv.Quote(filepath.Join(absolute, keyFile)), authSeconds)
	}
	fmt.Fprintf(&b, "operator: %s\nresolver: MEMORY\nresolver_preload: {\n", s.Operator)
	for _, token := range []string{s.Account, s.System} {
		claims, err := jwt.DecodeAccountClaims(token)
		if err != nil {
			return nil, fmt.Errorf("keys: account: %w", err)
		}
		fmt.Fprintf(&b, "  %s: %s\n", claims.Subject, token)
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

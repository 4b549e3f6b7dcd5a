package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats-server/v2/server"
)

// keysFile is the file of a directory of keys that says which operator and account the server trusts.
const keysFile = "server.conf"

// authorityFile is the file of a directory of keys by which clients verify the server.
const authorityFile = "ca.pem"

// What the server takes of a client whose JWT has many tags: bytes in a line, and seconds until it has signed.
const (
	keysControlLine = 64 << 10
	keysTimeout     = 5
)

// trust is what a directory of keys says.
type trust struct {
	operator    *jwt.OperatorClaims
	account     *jwt.AccountClaims
	token       string           // of the account
	system      string           // the account of the server itself
	systemToken string           // of it
	certificate *tls.Certificate // nil: no TLS
}

// keyring is the trust of a running server, which reads its directory again.
type keyring struct {
	dir, host   string
	resolver    *server.MemAccResolver
	certificate atomic.Pointer[tls.Certificate]

	mu  sync.Mutex // one reload at a time
	now *trust     // what the server has
}

// readTrust reads a directory. It refuses what the server could not use, so that nothing is changed by halves.
func readTrust(dir, host string) (*trust, error) {
	file := filepath.Join(dir, keysFile)
	text, err := os.ReadFile(file) //nolint:gosec // The caller names the directory.
	if err != nil {
		return nil, fmt.Errorf("embedded: keys: file %s: copy it from the directory that pegasus keys has made: %w", file, err)
	}
	all, err := conf.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("embedded: keys: file %s: write it again with pegasus keys: %w", file, err)
	}
	operator, _ := all["operator"].(string)
	preload, _ := all["resolver_preload"].(map[string]any)
	var id, token string
	system, _ := all["system_account"].(string)
	systemToken, _ := preload[system].(string)
	for name, text := range preload {
		if name != system {
			id = name
			token, _ = text.(string)
		}
	}
	if operator == "" || systemToken == "" || len(preload) != 2 {
		return nil, fmt.Errorf("embedded: keys: file %s: it lacks an operator, a system account or an account: write it again with pegasus keys", file)
	}
	t := &trust{token: token, system: system, systemToken: systemToken}
	if t.operator, err = jwt.DecodeOperatorClaims(operator); err != nil {
		return nil, fmt.Errorf("embedded: keys: file %s: operator: write it again with pegasus keys: %w", file, err)
	}
	if t.account, err = jwt.DecodeAccountClaims(token); err != nil {
		return nil, fmt.Errorf("embedded: keys: file %s: account: write it again with pegasus keys: %w", file, err)
	}
	if t.account.Subject != id || t.account.Issuer != t.operator.Subject {
		return nil, fmt.Errorf("embedded: keys: file %s: the operator has not signed the account: write it again with pegasus keys", file)
	}
	section, secured := all["tls"].(map[string]any)
	if !secured {
		return t, nil
	}
	cert, _ := section["cert_file"].(string)
	key, _ := section["key_file"].(string)
	pair, err := tls.LoadX509KeyPair(fileOf(dir, cert), fileOf(dir, key))
	if err != nil {
		return nil, fmt.Errorf("embedded: keys: certificate of %s: copy %s and %s beside it: %w", file, cert, key, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			return nil, fmt.Errorf("embedded: keys: certificate %s: clients refuse it at %s: make the keys with pegasus keys init --tls --host %[2]s: %[3]w", fileOf(dir, cert), host, err)
		}
	}
	if err := checkAuthority(filepath.Join(dir, authorityFile), &pair); err != nil {
		return nil, fmt.Errorf("embedded: keys: certificate %s: %w", fileOf(dir, cert), err)
	}
	t.certificate = &pair
	return t, nil
}

// checkAuthority refuses a certificate that the authority in a file has not signed: each client that has the file would
// refuse it. A directory without the file is not checked. An expired certificate passes, so that a user can still be revoked.
func checkAuthority(file string, pair *tls.Certificate) error {
	text, err := os.ReadFile(file) //nolint:gosec // The caller names the directory.
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("authority: make %s readable, or remove it: %w", file, err)
	}
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
	if !o.Roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("authority: %s has no certificate in PEM: copy it again from the directory that pegasus keys has made", file)
	}
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil { // Without it the verification fails.
			o.Intermediates.AddCert(c)
		}
	}
	_, err = pair.Leaf.Verify(o)
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); err == nil || ok && invalid.Reason == x509.Expired {
		return nil
	}
	return fmt.Errorf("clients that have %s refuse it: copy ca.pem, server.pem and server-key.pem from one directory: %w", file, err)
}

// unrevoked returns how many revocations of before are missing now, or cover fewer keys. pegasus keys never removes a
// revocation, so a list that lacks one is an older copy.
func unrevoked(before, now jwt.RevocationList) int {
	n := 0
	for key, until := range before {
		if now[key] < until {
			n++
		}
	}
	return n
}

// fileOf is a path that is relative to the directory.
func fileOf(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// newKeyring has the server trust a directory.
func newKeyring(o *Options, so *server.Options) (*keyring, error) {
	t, err := readTrust(o.Keys, o.Host)
	if err != nil {
		return nil, err
	}
	k := &keyring{dir: o.Keys, host: o.Host, resolver: &server.MemAccResolver{}, now: t}
	if err := errors.Join(k.resolver.Store(t.system, t.systemToken), k.resolver.Store(t.account.Subject, t.token)); err != nil {
		return nil, fmt.Errorf("embedded: keys: %w", err)
	}
	so.TrustedOperators, so.AccountResolver = []*jwt.OperatorClaims{t.operator}, k.resolver
	so.MaxControlLine, so.AuthTimeout = keysControlLine, keysTimeout
	so.NoSystemAccount, so.SystemAccount = false, t.system // JetStream of an account needs it.
	if t.certificate != nil {
		k.certificate.Store(t.certificate)
		so.TLS, so.TLSTimeout = true, keysTimeout
		so.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate.Load(), nil },
		}
	}
	return k, nil
}

// ReloadKeys reads the directory [Options.Keys] again. Users that were revoked are cut off, and new connections see the new
// certificate. If the directory is broken, belongs to another operator, lacks a revocation that the server has, or has a
// certificate that its ca.pem does not verify, ReloadKeys changes nothing and returns an error. It fails on a server without Keys.
func (s *Server) ReloadKeys() error {
	k := s.keys
	if k == nil {
		return errors.New("embedded: keys: the server was started without Options.Keys: there is nothing to read again")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t, err := readTrust(k.dir, k.host)
	if err != nil {
		return err
	}
	if t.operator.Subject != k.now.operator.Subject || t.system != k.now.system || t.account.Subject != k.now.account.Subject || (t.certificate == nil) != (k.now.certificate == nil) {
		return fmt.Errorf("embedded: keys: directory %s: it has another operator or account than at the start, or TLS is on in one of the two only: start the server again", k.dir)
	}
	if n := unrevoked(k.now.account.Revocations, t.account.Revocations); n > 0 {
		return fmt.Errorf("embedded: keys: file %s: it is older than what the server has, and would admit revoked keys again (%d): copy it again from the directory in which pegasus keys revoked them", filepath.Join(k.dir, keysFile), n)
	}
	account, err := s.nats.LookupAccount(t.account.Subject)
	if err != nil {
		return fmt.Errorf("embedded: keys: account of %s: %w", k.dir, err)
	}
	if err := k.resolver.Store(t.account.Subject, t.token); err != nil {
		return fmt.Errorf("embedded: keys: %w", err)
	}
	s.nats.UpdateAccountClaims(account, t.account)
	k.certificate.Store(t.certificate)
	k.now = t
	return nil
}

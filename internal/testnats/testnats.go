// Package testnats starts NATS servers for tests: one that wants credentials of a kind ([Start]), and a cluster
// of three processes with JetStream ([StartCluster]).
package testnats

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Kinds are those of Start.
func Kinds() []string {
	return []string{"password", "token", "nkey", "creds", "tls", "client certificate", "creds over tls"}
}

// Server is a server that wants credentials.
type Server struct {
	URL   string            // Where it listens, without credentials.
	Flags []string          // Of pegasus, that give the credentials.
	Env   map[string]string // That does so.

	t       testing.TB
	dir     string
	options server.Options
	server  *server.Server
	renew   func(expires int64) // Of creds.
}

// Connections is how many clients are connected.
func (s *Server) Connections() int { return s.server.NumClients() }

// Attempts is how many connections there have been, refused ones too.
func (s *Server) Attempts() uint64 {
	s.t.Helper()
	v, err := s.server.Varz(nil)
	check(s.t, err)
	return v.TotalConnections
}

// Secret is the password and the token.
const Secret = "s3cr:e/t,@"

// Start runs a server of a kind until the test ends.
func Start(tb testing.TB, kind string) *Server {
	tb.Helper()
	s := &Server{t: tb, dir: tb.TempDir(), Env: map[string]string{}, options: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: 64 << 10,
	}}
	switch kind {
	case "password":
		s.options.Username, s.options.Password = "jo", Secret
		s.Flags = []string{"--user", "jo", "--password-file", s.File("password", []byte(Secret+"\n"))}
		s.Env["NATS_USER"], s.Env["NATS_PASSWORD"] = "jo", Secret
	case "token":
		s.options.Authorization = Secret
		s.Flags = []string{"--token-file", s.File("token", []byte(Secret+"\n"))}
		s.Env["NATS_TOKEN"] = Secret
	case "nkey":
		key, public, seed := newKey(tb, nkeys.CreateUser)
		key.Wipe()
		s.options.Nkeys = []*server.NkeyUser{{Nkey: public}}
		s.give("--nkey", "NATS_NKEY", s.File("user.nk", seed))
	case "creds":
		s.operator()
	case "tls":
		s.tls(false)
	case "client certificate":
		s.tls(true)
	case "creds over tls":
		s.operator()
		s.tls(false)
	default:
		tb.Fatalf("no kind of server: %s", kind)
	}
	n, err := server.NewServer(&s.options)
	check(tb, err)
	s.server = n
	n.Start()
	tb.Cleanup(func() {
		n.Shutdown()
		n.WaitForShutdown()
	})
	if !n.ReadyForConnections(time.Minute) {
		tb.Fatal("the server did not start")
	}
	s.URL = "nats://" + n.Addr().String()
	return s
}

// Setenv sets the variables of the server for the test.
func (s *Server) Setenv(t *testing.T) {
	t.Helper()
	for name, value := range s.Env {
		t.Setenv(name, value)
	}
}

// File writes a file of the test.
func (s *Server) File(name string, text []byte) string {
	s.t.Helper()
	name = filepath.Join(s.dir, name)
	check(s.t, os.WriteFile(name, text, 0o600))
	return name
}

func (s *Server) give(flag, variable, file string) {
	s.Flags, s.Env[variable] = append(s.Flags, flag, file), file
}

// operator has the server want JWTs, and makes the credentials file of a user.
func (s *Server) operator() {
	s.t.Helper()
	operator, operatorID, _ := newKey(s.t, nkeys.CreateOperator)
	account, accountID, _ := newKey(s.t, nkeys.CreateAccount)
	_, userID, seed := newKey(s.t, nkeys.CreateUser)
	of, err := jwt.NewAccountClaims(accountID).Encode(operator)
	check(s.t, err)
	trusted, resolver := jwt.NewOperatorClaims(operatorID), &server.MemAccResolver{}
	_, err = trusted.Encode(operator)
	check(s.t, err)
	check(s.t, resolver.Store(accountID, of))
	s.options.TrustedOperators, s.options.AccountResolver = []*jwt.OperatorClaims{trusted}, resolver
	s.renew = func(expires int64) {
		claims := jwt.NewUserClaims(userID)
		claims.Expires = expires
		user, err := claims.Encode(account)
		check(s.t, err)
		creds, err := jwt.FormatUserConfig(user, seed)
		check(s.t, err)
		s.File("user.creds", creds)
	}
	s.renew(0)
	s.give("--creds", "NATS_CREDS", filepath.Join(s.dir, "user.creds"))
}

// Renew writes the credentials file of the user again, with a JWT that expires then; 0: never.
func (s *Server) Renew(expires time.Time) {
	s.t.Helper()
	seconds := int64(0)
	if !expires.IsZero() {
		seconds = expires.Unix()
	}
	s.renew(seconds)
}

func newKey(tb testing.TB, create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string, seed []byte) {
	tb.Helper()
	key, err := create()
	check(tb, err)
	public, err = key.PublicKey()
	check(tb, err)
	seed, err = key.Seed()
	check(tb, err)
	return key, public, append([]byte{}, seed...)
}

// tls has the server show a certificate of an authority of its own, and want one of clients.
func (s *Server) tls(clients bool) {
	s.t.Helper()
	ca := certificate(s.t, "authority", nil)
	of := certificate(s.t, "server", &ca)
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.Leaf)
	s.options.TLS, s.options.TLSTimeout = true, 60
	s.options.TLSConfig = &tls.Config{Certificates: []tls.Certificate{of}, ClientCAs: trusted, MinVersion: tls.VersionTLS12}
	s.give("--tlsca", "NATS_CA", s.File("ca.pem", certificatePEM(&ca)))
	if !clients {
		return
	}
	s.options.TLSVerify, s.options.TLSConfig.ClientAuth = true, tls.RequireAndVerifyClientCert
	client := certificate(s.t, "client", &ca)
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	check(s.t, err)
	s.give("--tlscert", "NATS_CERT", s.File("client.pem", certificatePEM(&client)))
	s.give("--tlskey", "NATS_KEY", s.File("client-key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

func certificatePEM(c *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw})
}

// certificate is one that an authority has signed, or that of an authority.
func certificate(tb testing.TB, name string, by *tls.Certificate) tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(tb, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(tb, err)
	now := time.Now() //nolint:forbidigo // Certificates are valid for a time of the wall clock.
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	c := tls.Certificate{PrivateKey: key}
	issuer, signer := template, any(key)
	if by == nil {
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	} else {
		issuer, signer = by.Leaf, by.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, signer)
	check(tb, err)
	c.Certificate = [][]byte{raw}
	c.Leaf, err = x509.ParseCertificate(raw)
	check(tb, err)
	return c
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Files of the certificate. The key of the authority is not kept: nobody can make another certificate with it.
const (
	caFile   = "ca.pem"
	certFile = "server.pem"
	keyFile  = "server-key.pem"
)

// validity is how long the certificates hold. They are valid from an hour before, for hosts whose clocks are behind.
const (
	validity  = 10 * 365 * 24 * time.Hour
	tolerated = time.Hour
)

// hostName is a name of DNS, which may begin with a wildcard.
var hostName = regexp.MustCompile(`^(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)

// maxName bounds a name of DNS, in bytes.
const maxName = 253

func (c *Config) checkHosts() error {
	if len(c.Hosts) > 0 && !c.TLS {
		return errors.New("keys: hosts are for the certificate of the server: leave them out, or ask for TLS")
	}
	for _, h := range c.Hosts {
		switch ip := net.ParseIP(h); {
		case ip != nil && ip.IsUnspecified():
			return fmt.Errorf("keys: host %q: no client connects to this address: give the name or the address that clients use", h)
		case ip == nil && (len(h) > maxName || !hostName.MatchString(h)):
			return fmt.Errorf("keys: host %.60q: it is no name and no address: give it without scheme and port", h)
		}
	}
	return nil
}

// writeCertificate writes a new authority, and a certificate of it for the hosts.
func writeCertificate(dir string, c *Config, now time.Time) error {
	authority, err := newCertificate("Pegasus authority of "+c.Tenant+"-"+c.Group, now)
	if err != nil {
		return err
	}
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authority.MaxPathLenZero = true
	server, err := newCertificate("Pegasus server of "+c.Tenant+"-"+c.Group, now)
	if err != nil {
		return err
	}
	server.KeyUsage, server.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, h := range c.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, h)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("keys: key of the authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("keys: key of the certificate: %w", err)
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	if err != nil {
		return fmt.Errorf("keys: authority: %w", err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("keys: certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("keys: key of the certificate: %w", err)
	}
	for _, f := range []struct {
		name, kind string
		bytes      []byte
	}{{caFile, "CERTIFICATE", ca}, {certFile, "CERTIFICATE", cert}, {keyFile, "PRIVATE KEY", secret}} {
		if err := write(dir, f.name, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.bytes})); err != nil {
			return err
		}
	}
	return nil
}

// newCertificate is one that is to be filled in. Its number is random.
func newCertificate(name string, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("keys: number of a certificate: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-tolerated), NotAfter: now.Add(validity)}, nil
}

// readCertificate is the first certificate of a file.
func readCertificate(dir, name string) (*x509.Certificate, error) {
	file := filepath.Join(dir, name)
	text, err := os.ReadFile(file) //nolint:gosec // The caller names the directory.
	if err != nil {
		return nil, fmt.Errorf("keys: file %s: restore it from a copy: %w", file, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("keys: file %s: it has no certificate in PEM: restore it from a copy", file)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("keys: file %s: restore it from a copy: %w", file, err)
	}
	return c, nil
}

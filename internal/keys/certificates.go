package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files of TLS.
const (
	caFile   = "ca.pem"
	certFile = "server.pem"
	keyFile  = "server-key.pem"
)

// certificateYears is how long a certificate is valid. The key of the authority is not kept, so nobody can issue another one.
const certificateYears = 10

// checkHost refuses what is neither a name nor an address.
func checkHost(host string) error {
	if net.ParseIP(host) != nil {
		return nil
	}
	if host == "" || len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") != "" {
		return fmt.Errorf("keys: host %q: give a name or an IP address without a port, such as nats.example", host)
	}
	return nil
}

// writeCertificates makes an authority and the certificate of a server, for the hosts and for loopback.
func writeCertificates(dir string, hosts []string, now time.Time) error {
	from, until := now.Add(-time.Hour), now.AddDate(certificateYears, 0, 0) // Clocks of clients may be behind.
	authority := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Pegasus " + filepath.Base(dir)}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Pegasus NATS server"}, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, host)
		}
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	if err != nil {
		return fmt.Errorf("keys: authority: %w", err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, signer)
	if err != nil {
		return fmt.Errorf("keys: certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("keys: certificate: %w", err)
	}
	return errors.Join(
		write(dir, caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})),
		write(dir, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		write(dir, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	)
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails.
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b[:])
}

// readCertificate returns the certificate of the server with its key; nil if the directory has none of both.
func readCertificate(dir string) (*tls.Certificate, error) {
	file := filepath.Join(dir, certFile)
	_, missing := os.Stat(file)
	_, keyless := os.Stat(filepath.Join(dir, keyFile))
	if errors.Is(missing, fs.ErrNotExist) && errors.Is(keyless, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // There is none.
	}
	pair, err := tls.LoadX509KeyPair(file, filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("keys: certificate %s with the key %s: restore both from a copy: %w", file, filepath.Join(dir, keyFile), err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("keys: certificate %s: %w", file, err)
		}
	}
	return &pair, nil
}

package connect

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// Options are those for nats.Connect. All files are read, so that a fault is told before
// anything is dialled. They are never nil.
func (s *Server) Options() ([]nats.Option, error) {
	who, err := s.identify()
	if err != nil {
		return nil, fmt.Errorf("connect: %s: %w", s.Identity(), err)
	}
	if s.ca.text != "" {
		text, err := readFile(s.ca.text)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = errors.New("the file has no certificate in PEM: give that of the authority")
		}
		if err != nil {
			return nil, fmt.Errorf("connect: the authority %s of %s: %w", s.ca.text, s.ca.from, err)
		}
		who = append(who, nats.RootCAs(s.ca.text))
	}
	if s.cert.text != "" {
		if _, err := tls.LoadX509KeyPair(s.cert.text, s.key.text); err != nil {
			return nil, fmt.Errorf("connect: the client certificate %s of %s with the key %s: %w", s.cert.text, s.cert.from, s.key.text, err)
		}
		who = append(who, nats.ClientCert(s.cert.text, s.key.text))
	}
	if s.inboxPrefix != "" {
		who = append(who, nats.CustomInboxPrefix(s.inboxPrefix))
	}
	if s.tlsFirst {
		who = append(who, nats.TLSHandshakeFirst())
	}
	return who, nil
}

// identify returns the option that says who connects.
func (s *Server) identify() ([]nats.Option, error) {
	file := s.who.text
	switch s.who.kind {
	case "creds":
		text, err := readFile(file)
		if err == nil && (!bytes.Contains(text, []byte("-BEGIN NATS USER JWT-")) || !bytes.Contains(text, []byte("-BEGIN USER NKEY SEED-"))) {
			err = errors.New("the file lacks the JWT or the seed of a user: give a file that `nsc generate creds` has written")
		}
		return []nats.Option{nats.UserCredentials(file)}, err
	case "nkey":
		_, err := readFile(file)
		if err != nil {
			return nil, err
		}
		option, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			err = errors.New("the file has no seed of a user: its line begins with SU")
		}
		return []nats.Option{option}, err
	case "user":
		return []nats.Option{nats.UserInfo(s.who.text, s.who.second)}, nil
	case "user and password file":
		_, err := readLine("password", s.who.second)
		return []nats.Option{nats.UserInfoHandler(func() (string, string) {
			password, _ := readLine("password", s.who.second) // A server refuses an empty one.
			return s.who.text, password
		})}, err
	case "token":
		return []nats.Option{nats.Token(s.who.text)}, nil
	case "token file":
		_, err := readLine("token", file)
		return []nats.Option{nats.TokenHandler(func() string {
			token, _ := readLine("token", file)
			return token
		})}, err
	case "user_jwt":
		return []nats.Option{nats.UserJWTAndSeed(s.who.text, s.who.second)}, nil
	}
	return []nats.Option{}, nil
}

// readLine returns the first line of a file.
func readLine(what, file string) (string, error) {
	text, err := readFile(file)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("the first line of %s is empty: write the %s there", file, what)
	}
	return line, nil
}

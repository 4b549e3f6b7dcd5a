package connect

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// Options are the options for nats.Connect. All files are read, so that a fault is reported
// before dialling. They are never nil.
func (s *Server) Options() ([]nats.Option, error) {
	who, err := s.identify()
	switch {
	case err != nil && s.who.kind == noted:
		return nil, fmt.Errorf("connect: %w", err)
	case err != nil:
		return nil, fmt.Errorf("connect: %s: %w", s.Identity(), err)
	}
	if s.ca.text != "" {
		text, err := readFile(s.ca.text)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = errors.New("the file has no certificate in PEM: give the certificate of the authority")
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
	if prefix := s.inbox(); prefix != "" {
		who = append(who, nats.CustomInboxPrefix(prefix))
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
			err = errors.New("the file lacks the JWT or the seed of a user: give a file that `pegasus keys add` or `nsc generate creds` has written")
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
	case noted:
		_, err := loopkey.Read(file)
		return []nats.Option{signWithNoted(file)}, err
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

// Person is the name that the credential has in permissions: that in a JWT, the public key of an nkey, or the user.
// It is empty without one, if a file cannot be read, and for a name that cannot be one token of a subject.
func (s *Server) Person() string {
	name := ""
	switch s.who.kind {
	case "creds", "nkey":
		text, _ := readFile(s.who.text) // Options says what is wrong with it.
		if s.who.kind == "creds" {
			name, _ = nkeys.ParseDecoratedJWT(text)
			name = nameOf(name)
		} else if pair, err := nkeys.ParseDecoratedNKey(text); err == nil {
			name, _ = pair.PublicKey() // It has one.
		}
	case "user_jwt":
		name = nameOf(s.who.text)
	case "user", "user and password file":
		name = s.who.text
	case "url":
		first, _, _ := strings.Cut(s.URL, ",")
		if u, err := url.Parse(first); err == nil {
			if _, user := u.User.Password(); user { // Else it is a token.
				name = u.User.Username()
			}
		}
	}
	if strings.Trim(name, tokenBytes) != "" || len(name) > maxToken {
		return ""
	}
	return name
}

// What a token of a subject has in Pegasus.
const (
	tokenBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	maxToken   = 64
)

// nameOf is the name in a JWT.
func nameOf(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	claims, _, _ := strings.Cut(rest, ".")
	var is struct{ Name string }
	if text, err := base64.RawURLEncoding.DecodeString(claims); err != nil || json.Unmarshal(text, &is) != nil {
		return "" // The server will say what is wrong.
	}
	return is.Name
}

// inbox is the prefix of the subjects on which answers come. That of a context overrides the one of the
// credential: _INBOX.<Person>, so that permissions can keep others from listening. Empty: that of nats.go.
func (s *Server) inbox() string {
	if s.inboxPrefix.text == "" {
		if person := s.Person(); person != "" {
			return nats.InboxPrefix + person
		}
	}
	return s.inboxPrefix.text
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

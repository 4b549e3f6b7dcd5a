package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

// server is the NATS server a run uses: one elsewhere, or one to start here.
type server struct {
	url      string // of the one elsewhere, else empty
	options  embedded.Options
	identity *url.Userinfo // nil: no credentials
}

// address is a server's URL to connect with, and the one to show.
type address struct{ secret, shown string }

// server checks the flags that run and program run have in common, and reads those
// that say which server to use. An address that other machines can reach needs
// credentials.
func (f *runFlags) server() (*server, error) {
	if err := wire.CheckToken("tenant", f.tenant); err != nil {
		return nil, err
	}
	if least := int64(synchronizer.MinJournalLimit >> 20); f.journalLimit < least || f.journalLimit > maxJournal {
		return nil, fmt.Errorf("--journal-limit %d: use %d to %d, in MiB", f.journalLimit, least, maxJournal)
	}
	if f.nats != "" && f.listen != "" {
		return nil, errors.New("--nats is a server elsewhere and --listen one inside this process: use one of them")
	}
	s := &server{url: f.nats}
	identity, err := f.identity()
	if err != nil {
		return nil, err
	}
	if s.identity = identity; identity != nil {
		s.options.Username = identity.Username()
		s.options.Password, _ = identity.Password()
	}
	if f.listen == "" {
		return s, nil
	}
	if s.options.Host, s.options.Port, err = splitAddress("listen", f.listen, "127.0.0.1:4222"); err != nil {
		return nil, err
	}
	ip := net.ParseIP(s.options.Host)
	if local := s.options.Host == "localhost" || ip != nil && ip.IsLoopback(); !local && identity == nil {
		return nil, fmt.Errorf("--listen %s: other machines can reach it, so it needs --user NAME and --password-file FILE; or listen on 127.0.0.1", f.listen)
	}
	return s, nil
}

// login are the flags of those who show or want credentials.
type login struct{ user, passwordFile string }

// identity reads user and password, nil without the flags.
func (l *login) identity() (*url.Userinfo, error) {
	if (l.user == "") != (l.passwordFile == "") {
		return nil, errors.New("--user and --password-file belong together: give both or neither")
	}
	if l.user == "" {
		return nil, nil //nolint:nilnil // No credentials are no fault.
	}
	raw, err := os.ReadFile(l.passwordFile)
	if err != nil {
		return nil, fail(fmt.Errorf("password: %w", err))
	}
	password, _, _ := strings.Cut(string(raw), "\n")
	password = strings.TrimSuffix(password, "\r")
	if password == "" {
		return nil, fail(fmt.Errorf("password: the first line of %s is empty: write the password there", l.passwordFile))
	}
	return url.UserPassword(l.user, password), nil
}

// start returns the server's address and what ends the server.
func (s *server) start() (address, func(), error) {
	if s.url != "" {
		if s.identity != nil {
			s.url = withUser(s.url, s.identity)
		}
		return address{s.url, withUser(s.url, nil)}, func() {}, nil
	}
	here, err := embedded.Start(s.options)
	if err != nil {
		return address{}, nil, err
	}
	return address{withUser(here.URL(), s.identity), here.URL()}, here.Close, nil
}

// withUser puts credentials into the URLs of a list, or takes them out. What is
// no URL stays as it is without an @: connecting refuses it.
func withUser(servers string, user *url.Userinfo) string {
	list := strings.Split(servers, ",")
	for i, one := range list {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		scheme, rest, _ := strings.Cut(one, "://")
		rest = rest[strings.LastIndexByte(rest, '@')+1:]
		if user != nil {
			// A comma would end the URL in the list.
			rest = strings.ReplaceAll(user.String(), ",", "%2C") + "@" + rest
		}
		list[i] = scheme + "://" + rest
	}
	return strings.Join(list, ",")
}

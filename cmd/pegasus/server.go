package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

// server is the NATS server a run uses: one elsewhere, or one to start here.
type server struct {
	address

	embedded embedded.Options // of the one to start
}

// server checks the flags that run and program run have in common, and reads those
// that say which server to use. An address that other machines can reach needs
// credentials.
func (f *runFlags) server(stderr io.Writer) (*server, error) {
	if err := wire.CheckToken("tenant", f.tenant); err != nil {
		return nil, err
	}
	if least := int64(synchronizer.MinJournalLimit >> 20); f.journalLimit < least || f.journalLimit > maxJournal {
		return nil, fmt.Errorf("--journal-limit %d: use %d to %d, in MiB", f.journalLimit, least, maxJournal)
	}
	if f.URL != "" && f.listen != "" {
		return nil, errors.New("--nats is a server elsewhere and --listen one inside this process: use one of them")
	}
	if f.listen == "" {
		at, err := f.find(connect.FromEnv(), stderr)
		if err != nil || at.URL != "" {
			return &server{address: at}, err
		}
	}
	return f.here()
}

// here is the server inside this process.
func (f *runFlags) here() (*server, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if (f.Settings != connect.Settings{User: f.User, PasswordFile: f.PasswordFile}) {
		return nil, errors.New("the server inside this process takes --user and --password-file alone: give the other credentials together with --nats")
	}
	s := &server{address: address{own: true}}
	var err error
	if s.embedded.Username, s.embedded.Password, err = f.identity(); err != nil {
		return nil, err
	}
	if f.listen == "" {
		return s, nil
	}
	if s.embedded.Host, s.embedded.Port, err = splitAddress("listen", f.listen, "127.0.0.1:4222"); err != nil {
		return nil, err
	}
	ip := net.ParseIP(s.embedded.Host)
	if local := s.embedded.Host == "localhost" || ip != nil && ip.IsLoopback(); !local && f.User == "" {
		return nil, fmt.Errorf("--listen %s: other machines can reach it, so it needs --user NAME and --password-file FILE; or listen on 127.0.0.1", f.listen)
	}
	return s, nil
}

// identity reads user and password, which are empty without the flags.
func (f *runFlags) identity() (user, password string, err error) {
	if f.User == "" {
		return "", "", nil
	}
	raw, err := os.ReadFile(f.PasswordFile)
	if err != nil {
		return "", "", fail(fmt.Errorf("password: %w", err))
	}
	password, _, _ = strings.Cut(string(raw), "\n")
	password = strings.TrimSuffix(password, "\r")
	if password == "" {
		return "", "", fail(fmt.Errorf("password: the first line of %s is empty: write the password there", f.PasswordFile))
	}
	return f.User, password, nil
}

// start returns the server's address and what ends the server.
func (s *server) start() (address, func(), error) {
	if !s.own {
		return s.address, func() {}, nil
	}
	here, err := embedded.Start(s.embedded)
	if err != nil {
		return address{}, nil, err
	}
	a := address{own: true}
	a.Server, err = connect.Settings{URL: here.URL(), User: s.embedded.Username, Password: s.embedded.Password}.Resolve(connect.Settings{})
	if err == nil {
		a.options, err = a.Options()
	}
	if err != nil {
		here.Close()
		return address{}, nil, err
	}
	return a, here.Close, nil
}

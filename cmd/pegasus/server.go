package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/loopkey"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

// connection are the flags of every command that connects to a NATS server.
type connection struct{ connect.Settings }

// add declares the flags, with the usage texts of two of them.
func (c *connection) add(cmd *cobra.Command, url, user string) {
	flags := cmd.Flags()
	flags.StringVar(&c.URL, "nats", "", url)
	flags.StringVar(&c.User, "user", "", user)
	flags.StringVar(&c.PasswordFile, "password-file", "", "`FILE` with the password that goes with --user")
	flags.StringVar(&c.Creds, "creds", "", "credentials `FILE` for the server (default NATS_CREDS)")
	flags.StringVar(&c.Nkey, "nkey", "", "`FILE` with the seed of a user for the server (default NATS_NKEY)")
	flags.StringVar(&c.TokenFile, "token-file", "", "`FILE` with the token for the server (default the token in NATS_TOKEN)")
	flags.StringVar(&c.CA, "tlsca", "", "PEM `FILE` with the authority of the server's certificate (default NATS_CA, or the authorities of the system)")
	flags.StringVar(&c.Cert, "tlscert", "", "PEM `FILE` with the certificate to show to the server (default NATS_CERT)")
	flags.StringVar(&c.Key, "tlskey", "", "PEM `FILE` with the key of --tlscert (default NATS_KEY)")
	flags.StringVar(&c.Context, "context", "", "`NAME` or file of a context of the nats CLI (default NATS_CONTEXT, or none)")
	for _, flag := range []string{"nats", "user"} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions); err != nil {
			panic(fmt.Sprintf("pegasus: completion of %s --%s: %v", cmd.Name(), flag, err))
		}
	}
}

// address is a server and the options to connect to it.
type address struct {
	connect.Server

	options []nats.Option
	own     bool // it runs in this process, or in the process of a run
}

// shown is the URL without credentials.
func (a *address) shown() string { return connect.WithoutUser(a.URL) }

// secured reports whether members put a user into the URL.
func (a *address) secured() bool { return a.UsesUser() }

// check refuses flags that make no sense together.
func (c *connection) check() error {
	if (c.User == "") != (c.PasswordFile == "") {
		return errors.New("--user and --password-file belong together: give both or neither")
	}
	return nil
}

// find finds the server, if one is named anywhere, and what to connect to it with.
func (c *connection) find(environment connect.Settings, stderr io.Writer) (a address, err error) {
	if err := c.check(); err != nil {
		return a, err
	}
	if strings.Contains(c.URL, "@") {
		_, _ = fmt.Fprintln(stderr, "pegasus: the list of processes shows the user, password or token of --nats: use --user with --password-file, --token-file, --creds, or NATS_URL")
	}
	if a.Server, err = c.Resolve(environment); err == nil && a.URL != "" {
		a.options, err = a.Options()
	}
	return a, fail(err)
}

// server is the NATS server a run uses: one elsewhere, or one to start here.
type server struct {
	address

	embedded embedded.Options // of the one to start
	reread   func() error     // reads --keys again; nil without
}

// server checks the flags that run and program run have in common, and reads those
// that say which server to use. An address that other machines can reach needs
// credentials.
func (f *runFlags) server(stderr io.Writer) (s *server, err error) {
	if err := wire.CheckToken("tenant", f.tenant); err != nil {
		return nil, err
	}
	if least := int64(synchronizer.MinJournalLimit >> 20); f.journalLimit < least || f.journalLimit > maxJournal {
		return nil, fmt.Errorf("--journal-limit %d: use %d to %d, in MiB", f.journalLimit, least, maxJournal)
	}
	if f.URL != "" && f.listen != "" {
		return nil, errors.New("--nats is a server elsewhere and --listen one inside this process: use one of them")
	}
	if f.URL != "" && f.streams() {
		return nil, errors.New("--nats is a server elsewhere and --jetstream is for one inside this process: use one of them")
	}
	if err := f.checkKeys(); err != nil {
		return nil, err
	}
	if f.open && (f.URL != "" || f.User != "") {
		return nil, errors.New("--open lets any user of this machine connect to a server inside this process: leave out --nats, --user and --password-file, or --open")
	}
	environment := connect.FromEnv()
	if f.listen == "" && !f.streams() && !f.open && f.keys == "" {
		at, err := f.find(environment, stderr)
		if err != nil || at.URL != "" {
			return &server{address: at}, err
		}
	} else if environment.URL != "" {
		defer func() {
			if err == nil {
				_, _ = fmt.Fprintln(stderr, "pegasus: NATS_URL is not used: --listen, --jetstream, --keys and --open start a server inside this process; leave them out to use the server of NATS_URL")
			}
		}()
	}
	if s, err = f.here(); err == nil && f.open {
		_, _ = fmt.Fprintln(stderr, "pegasus: --open: any user of this machine can connect to the server inside this process; leave it out to admit only programs of this user")
	}
	return s, err
}

// checkKeys refuses what does not go with --keys.
func (f *runFlags) checkKeys() error {
	switch {
	case f.keys == "":
		return nil
	case f.URL != "":
		return errors.New("--nats is a server elsewhere and --keys is for one inside this process: use one of them; --creds says who connects to a server elsewhere")
	case f.open || f.User != "":
		return errors.New("--keys says which users the server inside this process admits: leave out --open, --user and --password-file")
	}
	return nil
}

// streams reports whether --jetstream is given.
func (f *runFlags) streams() bool { return f.jetstream != nil && f.jetstream.Changed }

// here is the server inside this process.
func (f *runFlags) here() (*server, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if (f.Settings != connect.Settings{User: f.User, PasswordFile: f.PasswordFile}) {
		return nil, errors.New("the server inside this process takes --user and --password-file alone: give the other credentials together with --nats")
	}
	s := &server{address: address{own: true}, embedded: embedded.Options{Open: f.open, Keys: f.keys}}
	if f.streams() {
		if s.embedded.JetStream = f.jetstream.Value.String(); s.embedded.JetStream == "" {
			return nil, errors.New("--jetstream is empty: give it a directory, or leave it out for a server without JetStream")
		}
	}
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
	if !loopkey.IsLoopback(s.embedded.Host) && f.User == "" && f.keys == "" {
		return nil, fmt.Errorf("--listen %s: other machines can reach it, so it needs --keys DIR, or --user NAME and --password-file FILE; or listen on 127.0.0.1", f.listen)
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

// start returns the server's address and what ends the server. What a server inside this process has to
// tell comes in the feed. With --keys the levels connect with the credentials of their synchronizer.
func (s *server) start(f *feed, levels []synchronizer.Level) (address, func(), error) {
	if !s.own {
		return s.address, func() {}, nil
	}
	as := connect.Settings{User: s.embedded.Username, Password: s.embedded.Password}
	if s.embedded.Keys != "" {
		var err error
		if as, err = credentials(s.embedded.Keys, levels); err != nil {
			return address{}, nil, err
		}
	}
	s.embedded.OnExhausted = func(err error) {
		f.put(show.Entry{At: time.Now(), Event: show.Notice(strings.TrimPrefix(err.Error(), "embedded: "))})
	}
	here, err := embedded.Start(s.embedded)
	if err != nil {
		return address{}, nil, err
	}
	a := address{own: true}
	as.URL = here.URL()
	a.Server, err = as.Resolve(connect.Settings{})
	if err == nil {
		a.options, err = a.Options()
	}
	if err != nil {
		here.Close()
		return address{}, nil, err
	}
	if s.embedded.Keys != "" {
		s.reread = here.ReloadKeys
	}
	return a, here.Close, nil
}

// credentials are the files with which a run connects to its own server: the files of its only synchronizer.
func credentials(dir string, levels []synchronizer.Level) (as connect.Settings, err error) {
	if len(levels) != 1 {
		return as, fmt.Errorf("--keys %s has the users of a single group, and %s are to run: choose one with --name", dir, show.Count(len(levels), "synchronizer"))
	}
	name := levels[0].Name
	as.Creds = filepath.Join(dir, name+".creds")
	if _, err := os.Stat(as.Creds); err != nil {
		return as, fmt.Errorf("--keys %s: credentials of the synchronizer: write them with pegasus keys add %[1]s synchronizer %s: %w", dir, name, err)
	}
	if ca := filepath.Join(dir, "ca.pem"); fileExists(ca) {
		as.CA = ca
	}
	return as, nil
}

func fileExists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

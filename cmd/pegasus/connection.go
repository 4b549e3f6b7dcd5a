package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/connect"
)

// connection are the flags of every command that connects to a NATS server.
type connection struct{ connect.Settings }

// add declares them, with what two of them mean there.
func (c *connection) add(cmd *cobra.Command, url, user string) {
	flags := cmd.Flags()
	flags.StringVar(&c.URL, "nats", "", url)
	flags.StringVar(&c.User, "user", "", user)
	flags.StringVar(&c.PasswordFile, "password-file", "", "`FILE` with the password that goes with --user")
	flags.StringVar(&c.Creds, "creds", "", "credentials `FILE` for the server (default NATS_CREDS)")
	flags.StringVar(&c.Nkey, "nkey", "", "`FILE` with the seed of a user for the server (default NATS_NKEY)")
	flags.StringVar(&c.TokenFile, "token-file", "", "`FILE` with the token for the server (default the token in NATS_TOKEN)")
	flags.StringVar(&c.CA, "tlsca", "", "PEM `FILE` with the authority of the server's certificate (default NATS_CA, or those of the system)")
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
	own     bool // it runs in this process, or in that of a run
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

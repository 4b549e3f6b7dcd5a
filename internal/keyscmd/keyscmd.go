// Package keyscmd is the command "pegasus keys": it reads the flags, calls packages keys and roles, and prints what they
// have done.
package keyscmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/roles"
)

const help = `keys makes and keeps the keys of a group on a NATS server. With them each member,
node, synchronizer and person may use the subjects of its role, and no others.

"pegasus run --keys DIR" and a nats-server with DIR/server.conf admit those users
alone. docs/security.md leads from nothing to a second host.`

const permissionsHelp = `permissions prints the subjects that a user of a NATS server needs for a role:
member, node, synchronizer, viewer (status, why and watch) or operator (set and
reload as well). It connects to nothing and makes no key.

NAME is the name of the credential: that in the JWT, the public key of the nkey,
or the user. Answers come below _INBOX.NAME. A member, node or synchronizer is
called so too, unless a flag names it.

Exit codes: 0 printed, 1 failure, 2 wrong usage.`

const permissionsExample = `  pegasus keys permissions synchronizer gsync --group workers
  pegasus keys permissions member w --member w1 --member w2 --group workers --nats-conf
  pegasus keys permissions member w1 --group workers --stream pegasus+default+workers
  pegasus keys permissions node n --processors 4 --group workers --nsc`

// New returns the command. It hands the error of whatever fails with a right command line to fail, which marks it; the
// command returns that.
func New(fail func(error) error, now func() time.Time) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make and keep the keys of a group",
		Long:  help,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s takes no arguments, and %q is one", cmd.Name(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return fail(cmd.Help()) },
	}
	cmd.AddCommand(newInit(fail, now), newAdd(fail, now), newRevoke(fail, now), newList(fail, now), newPermissions(fail))
	return cmd
}

func newPermissions(fail func(error) error) *cobra.Command {
	var u roles.User
	var conf, nsc bool
	cmd := &cobra.Command{
		Use:     "permissions ROLE NAME",
		Short:   "Print the subjects of a user",
		Long:    permissionsHelp,
		Example: permissionsExample,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return roles.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 2:
				return errors.New("permissions takes a role and a name: pegasus keys permissions member w1 --group workers")
			case u.Group == "":
				return errors.New("--group is missing: the subjects of each role name one")
			case conf && nsc:
				return errors.New("--nats-conf and --nsc are two forms: use one of them")
			}
			u.Role, u.Name = roles.Role(args[0]), args[1]
			p, err := u.Permissions()
			if err != nil {
				return err
			}
			text := p.Text()
			switch {
			case conf:
				text = p.Conf(u.Name)
			case nsc:
				text = p.Nsc(u.Name)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return fail(err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&u.Tenant, "tenant", "default", "`NAME` of the tenant")
	flags.StringVar(&u.Group, "group", "", "`NAME` of the group")
	flags.StringArrayVar(&u.Members, "member", nil, "`NAME` of a member, once for each that shares a process, or of the node (default NAME of the credential)")
	flags.IntVar(&u.Processors, "processors", 0, "`NUMBER` of processors of a node")
	flags.StringVar(&u.Synchronizer, "synchronizer", "", "`NAME` of the synchronizer (default NAME of the credential)")
	flags.StringArrayVar(&u.Others, "other", nil, "`GROUP` to which signals of the synchronizer go, once for each")
	flags.StringVar(&u.Stream, "stream", "", "`NAME` of the stream of a member or an operator with store: jetstream (default log.stream, or pegasus+TENANT+GROUP)")
	flags.BoolVar(&conf, "nats-conf", false, "print a user for the list users of a nats-server")
	flags.BoolVar(&nsc, "nsc", false, "print a command of nsc, for a server with an operator")
	return cmd
}

const initHelp = `init makes a directory with the keys of a group: of an operator, of an account
and of each role, and server.conf for a NATS server that trusts them. With --tls it
also makes a certificate for the server, and ca.pem for its clients.

Whoever has the directory can act as every user. Keep it on the machine of an
administrator, and copy only what a host needs. docs/security.md says which files.

Exit codes: 0 made, 1 failure (a directory that is not empty), 2 wrong usage.`

const initExample = `  pegasus keys init keys --group workers
  pegasus keys init keys --group workers --tls --host nats.example --host 192.0.2.7`

const addHelp = `add writes NAME.creds, the credentials file of a user: of a member, node,
synchronizer, viewer (status, why and watch) or operator (set and reload as well).
The server admits the user at once; it need not be reloaded.

For a NAME that exists add writes a new key. The old one stays valid until it
expires or the user is revoked. The user keeps its members, processors, other groups
and stream if none of these flags is given.

A synchronizer is called as its user. "pegasus run --keys DIR" uses the credentials
file with the name of the synchronizer.

Exit codes: 0 written, 1 failure, 2 wrong usage.`

const addExample = `  pegasus keys add keys synchronizer gsync
  pegasus keys add keys member w1 --expires 720h
  pegasus keys add keys member w --member a --member b --stream pegasus+default+workers
  pegasus keys add keys node n --processors 4`

const revokeHelp = `revoke refuses all keys of a user, and removes its credentials file. It writes
server.conf again; the server cuts the connections of the user when it reads that.
The name cannot be used again.

Exit codes: 0 revoked, 1 failure, 2 wrong usage.`

const listHelp = `list shows the users of a directory. It warns on stderr of each credential and
certificate that has expired, or does so within 14 days.

Exit codes: 0 listed, with warnings too; 1 failure, 2 wrong usage.`

// arguments refuses other numbers of arguments than those of the usage.
func arguments(number int, what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != number {
			return fmt.Errorf("%s takes %s: %s %s", cmd.Name(), what, cmd.CommandPath(), example)
		}
		return nil
	}
}

// complete completes a directory, and then what follows.
func complete(then ...[]string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return nil, cobra.ShellCompDirectiveFilterDirs
		case len(args) <= len(then):
			return then[len(args)-1], cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func newInit(fail func(error) error, now func() time.Time) *cobra.Command {
	var c keys.Config
	cmd := &cobra.Command{
		Use:               "init DIR",
		Short:             "Make a directory with the keys of a group",
		Long:              initHelp,
		Example:           initExample,
		Args:              arguments(1, "a directory", "keys --group workers"),
		ValidArgsFunction: complete(),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case c.Group == "":
				return errors.New("--group is missing: the subjects of each role name one")
			case len(c.Hosts) > 0 && !c.TLS:
				return errors.New("--host is for the certificate of the server: give --tls too")
			}
			if err := keys.Init(args[0], c, now()); err != nil {
				return fail(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "made %s for group %q of tenant %q: add users with pegasus keys add\n", args[0], c.Group, c.Tenant)
			return fail(err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Tenant, "tenant", "default", "`NAME` of the tenant")
	flags.StringVar(&c.Group, "group", "", "`NAME` of the group")
	flags.BoolVar(&c.TLS, "tls", false, "make a certificate for the server, which is valid for ten years")
	flags.StringArrayVar(&c.Hosts, "host", nil, "`NAME` or address of the server in its certificate, once for each; loopback addresses are always in it")
	return cmd
}

func newAdd(fail func(error) error, now func() time.Time) *cobra.Command {
	var u roles.User
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use:               "add DIR ROLE NAME",
		Short:             "Write the credentials file of a user, or renew it",
		Long:              addHelp,
		Example:           addExample,
		Args:              arguments(3, "a directory, a role and a name", "keys member w1"),
		ValidArgsFunction: complete(roles.Names()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("expires") && lifetime < time.Second {
				return fmt.Errorf("--expires %v: give at least 1s, or leave it out for a credential without end", lifetime)
			}
			if !slices.Contains(roles.Names(), args[1]) {
				return fmt.Errorf("role %q: use one of %s", args[1], strings.Join(roles.Names(), ", "))
			}
			u.Role, u.Name = roles.Role(args[1]), args[2]
			file, err := keys.Add(args[0], u, lifetime, now())
			if err != nil {
				return fail(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", file)
			return fail(err)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&u.Members, "member", nil, "`NAME` of a member, once for each that shares a process, or of the node (default NAME of the user)")
	flags.IntVar(&u.Processors, "processors", 0, "`NUMBER` of processors of a node")
	flags.StringArrayVar(&u.Others, "other", nil, "`GROUP` to which signals of the synchronizer go, once for each")
	flags.StringVar(&u.Stream, "stream", "", "`NAME` of the stream of a member or an operator with store: jetstream (default log.stream, or pegasus+TENANT+GROUP)")
	flags.DurationVar(&lifetime, "expires", 0, "`DURATION` until the credential expires, such as 720h (default it does not)")
	return cmd
}

func newRevoke(fail func(error) error, now func() time.Time) *cobra.Command {
	return &cobra.Command{
		Use:               "revoke DIR NAME",
		Short:             "Refuse all keys of a user",
		Long:              revokeHelp,
		Example:           "  pegasus keys revoke keys w1",
		Args:              arguments(2, "a directory and a name", "keys w1"),
		ValidArgsFunction: complete(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keys.Revoke(args[0], args[1], now()); err != nil {
				return fail(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), `revoked %s in %s: the server refuses it once it has read that again:
  of pegasus run --keys: copy the file into its directory if that is another one, and run pegasus reload
    as an operator, or send the process SIGHUP
  a nats-server: copy the file to its host, and run nats-server --signal reload there
`, args[1], filepath.Join(args[0], "server.conf"))
			return fail(err)
		},
	}
}

func newList(fail func(error) error, now func() time.Time) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:               "list DIR",
		Short:             "Show the users, and what expires soon",
		Long:              listHelp,
		Example:           "  pegasus keys list keys\n  pegasus keys list keys --json | jq '.warnings[]'",
		Args:              arguments(1, "a directory", "keys"),
		ValidArgsFunction: complete(),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := keys.List(args[0], now())
			if err != nil {
				return fail(err)
			}
			if asJSON {
				text, err := json.Marshal(l)
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
				}
				return fail(err)
			}
			for _, w := range l.Warnings {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "pegasus: "+w)
			}
			return fail(writeUsers(cmd.OutOrStdout(), l.Users))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with the warnings")
	return cmd
}

// writeUsers writes a table.
func writeUsers(out io.Writer, users []keys.User) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tROLE\tEXPIRES\tFOR")
	for i := range users {
		u := &users[i]
		expires := "never"
		switch {
		case !u.Revoked.IsZero():
			expires = "revoked"
		case !u.Expires.IsZero():
			expires = u.Expires.UTC().Format(time.RFC3339)
		}
		tags := slices.Clone(u.Tags)
		for i := range tags {
			tags[i] = strings.Replace(tags[i], ":", " ", 1)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.Name, u.Role, expires, cmp.Or(strings.Join(tags, ", "), "-"))
	}
	return w.Flush() // It has the errors of all writes.
}

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/roles"
	"github.com/gopegasus/pegasus/internal/show"
)

const keysHelp = `keys keeps the users of a NATS server: a directory of keys, and a credentials file for
each user that permits the subjects of its role and no others. docs/security.md shows
how to set up a group on several hosts.`

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

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make and revoke the keys of a group",
		Long:  keysHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return fail(cmd.Help()) },
	}
	cmd.AddCommand(newKeysInit(), newKeysAdd(), newKeysRevoke(), newKeysList(), newPermissions())
	return cmd
}

func newPermissions() *cobra.Command {
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
	flags.StringVar(&u.Stream, "stream", "", "`NAME` of the stream of a member or an operator, with store: jetstream in the section work (pegasus+TENANT+GROUP unless log.stream says another)")
	flags.BoolVar(&conf, "nats-conf", false, "print a user for the configuration of a nats-server")
	flags.BoolVar(&nsc, "nsc", false, "print a command of nsc, for a server with an operator")
	return cmd
}

const keysCodes = `

Exit codes: 0 done, 1 refused or failure, 2 wrong usage.`

const initHelp = `init makes the directory DIR with the keys of one group: an operator, an account, a
signing key for each role, and server.conf for a nats-server. The directory has the
mode 0700 and its files 0600. A directory that has files is refused.

--tls makes the certificate of the server too: ca.pem, server.pem and server-key.pem,
valid for ten years. Each --host is a name or an address that clients connect to;
localhost, 127.0.0.1 and ::1 are always in the certificate.

Whoever can read DIR can make any user: keep it on the host of the server.` + keysCodes

const addHelp = `add writes DIR/NAME.creds, the credentials file of a user with a role: member, node,
synchronizer, viewer (status, why and watch) or operator (set and reload as well).
Copy it to the host of the user. A server that runs needs no reload.

A member or node has the name NAME unless --member gives other names. A synchronizer
has the name NAME.

For a user that exists, add renews the file with a new key. The roles and names of
the file before stay, unless flags give others, and so does its lifetime. The key
before stays valid until it expires, or the user is revoked.` + keysCodes

const revokeHelp = `revoke has the server refuse all keys of a user, once it has read server.conf again.
It rewrites DIR/server.conf and removes DIR/NAME.creds. The server then cuts off the
connections of the user. A name that was revoked cannot be used again.` + keysCodes

const listHelp = `list prints the users of DIR, and on stderr a warning for each credential that has
expired or expires within 14 days, and for the certificate of the server.` + keysCodes

// takes refuses another number of arguments.
func takes(n int, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return errors.New(usage)
		}
		return nil
	}
}

func newKeysInit() *cobra.Command {
	var tenant, group string
	var hosts []string
	var tls bool
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a directory of keys for a group",
		Long:  initHelp,
		Example: `  pegasus keys init keys --group workers
  pegasus keys init keys --group workers --tls --host nats.example --host 192.0.2.7`,
		Args: takes(1, "init takes a directory: pegasus keys init keys --group workers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case group == "":
				return errors.New("--group is missing: the keys are for the users of one group")
			case tls && len(hosts) == 0:
				return errors.New("--tls needs --host: give each name or address that clients connect to")
			case !tls && len(hosts) > 0:
				return errors.New("--host is for the certificate of --tls: give both, or leave both out")
			}
			dir := args[0]
			if err := keys.Init(dir, tenant, group, hosts, time.Now()); err != nil {
				return fail(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has the keys of group %s, tenant %s. Add its synchronizer next:\n  pegasus keys add %[1]s synchronizer NAME\n", dir, group, tenant)
			return fail(err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", "default", "`NAME` of the tenant")
	flags.StringVar(&group, "group", "", "`NAME` of the group")
	flags.StringArrayVar(&hosts, "host", nil, "`NAME` or address that clients connect to, once for each")
	flags.BoolVar(&tls, "tls", false, "make a certificate for the server")
	return cmd
}

func newKeysAdd() *cobra.Command {
	var u roles.User
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use:   "add DIR ROLE NAME",
		Short: "Write or renew the credentials file of a user",
		Long:  addHelp,
		Example: `  pegasus keys add keys synchronizer gsync
  pegasus keys add keys member w1 --expires 720h
  pegasus keys add keys member pair --member w2 --member w3
  pegasus keys add keys node n1 --processors 4
  pegasus keys add keys operator op --stream pegasus+default+workers`,
		Args: takes(3, "add takes a directory, a role and a name: pegasus keys add keys member w1"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return nil, cobra.ShellCompDirectiveFilterDirs
			case 1:
				return roles.Names(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("expires") && lifetime < time.Second {
				return fmt.Errorf("--expires %v: give at least 1s, or leave it out for a user without end", lifetime)
			}
			u.Role, u.Name = roles.Role(args[1]), args[2]
			file, err := keys.Add(args[0], u, lifetime, time.Now())
			if err != nil {
				return fail(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is the credentials file of %s, %s.\n", file, u.Name, u.Role)
			return fail(err)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&u.Members, "member", nil, "`NAME` of a member, once for each that shares a process, or of the node (default NAME of the user)")
	flags.IntVar(&u.Processors, "processors", 0, "`NUMBER` of processors of a node")
	flags.StringArrayVar(&u.Others, "other", nil, "`GROUP` to which signals of the synchronizer go, once for each")
	flags.StringVar(&u.Stream, "stream", "", "`NAME` of the stream of a member or an operator, with store: jetstream in the section work (pegasus+TENANT+GROUP unless log.stream says another)")
	flags.DurationVar(&lifetime, "expires", 0, "`DURATION` after which the server refuses the file (default never, or that of the file before)")
	return cmd
}

func newKeysRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke DIR NAME",
		Short:   "Have the server refuse the keys of a user",
		Long:    revokeHelp,
		Example: `  pegasus keys revoke keys w1`,
		Args:    takes(2, "revoke takes a directory and a name: pegasus keys revoke keys w1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keys.Revoke(args[0], args[1], time.Now()); err != nil {
				return fail(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked in %s. Have the server read it again now:\n  kill -HUP PID                  the process of pegasus run --keys\n  nats-server --signal reload    a server with server.conf\n", args[1], args[0])
			return fail(err)
		},
	}
}

func newKeysList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list DIR",
		Short:   "List the users, and warn of those that expire",
		Long:    listHelp,
		Example: `  pegasus keys list keys`,
		Args:    takes(1, "list takes a directory: pegasus keys list keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			users, warnings, err := keys.List(args[0], time.Now())
			if err != nil {
				return fail(err)
			}
			for _, w := range warnings {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "pegasus: "+w)
			}
			text := usersText(users)
			if asJSON {
				var b strings.Builder
				for i := range users {
					b.WriteString(show.JSONLine(&users[i]))
				}
				text = b.String()
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return fail(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// usersText is a table.
func usersText(users []keys.User) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tROLE\tKEYS\tISSUED\tENDS\tTAGS") // It is a Builder.
	for i := range users {
		u, ends := &users[i], "never"
		switch {
		case !u.Revoked.IsZero():
			ends = "revoked " + shortTime(u.Revoked)
		case !u.Expires.IsZero():
			ends = shortTime(u.Expires)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", u.Name, u.Role, len(u.Public), shortTime(u.Issued), ends, strings.Join(u.Tags, " "))
	}
	_ = w.Flush()
	return b.String()
}

func shortTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

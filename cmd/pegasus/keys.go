package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/roles"
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

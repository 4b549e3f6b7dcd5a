package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/configfile"
)

const configHelp = `config shows what a configuration comes to, and describes its form.

Exit codes: 0 done, 1 the file is refused or cannot be read, 2 wrong usage.`

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show a configuration, or describe its form",
		Long:  configHelp,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("config needs one of show and schema: pegasus config show pegasus.yaml")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "show CONFIG",
		Short: "Print a configuration with its defaults filled in",
		Long: `show prints a configuration with the defaults of all keys that the file leaves out,
as YAML that check accepts and that means the same. Comments are left out.`,
		Example:           "  pegasus config show pegasus.yaml",
		Args:              oneConfig("config show"),
		ValidArgsFunction: configFiles(),
		RunE:              showConfig,
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of configurations",
		Long: `schema prints a JSON Schema (2020-12) of configurations, for editors that complete
and check YAML by one. What expressions, names and numbers have to do with each
other is not in it: check tells.`,
		Example: "  pegasus config schema > pegasus.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(configfile.JSONSchema())
			return fail(err)
		},
	})
	return cmd
}

// oneConfig wants the path of exactly one configuration file.
func oneConfig(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs one configuration file: pegasus %s pegasus.yaml", command, command)
		}
		return nil
	}
}

func showConfig(cmd *cobra.Command, args []string) error {
	src, err := readYAML(args[0])
	if err != nil {
		return fail(fmt.Errorf("configuration: %w", err))
	}
	shown, err := configfile.Show(args[0], src)
	if err != nil {
		return told(cmd.ErrOrStderr(), err)
	}
	_, err = cmd.OutOrStdout().Write(shown)
	return fail(err)
}

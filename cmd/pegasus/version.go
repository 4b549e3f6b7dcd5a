package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/version"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "version prints one line: the version, the commit where it is known, the Go\nrelease and the platform of the build.",
		Example: "  pegasus version\n  pegasus version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := version.Own()
			if asJSON {
				return fail(json.NewEncoder(cmd.OutOrStdout()).Encode(v))
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return fail(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

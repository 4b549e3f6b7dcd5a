package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes the man pages, which are made of the commands themselves. It is for
// those who package pegasus, and so is hidden.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the man pages", Long: "man writes one file a subcommand into a directory, which it makes if need be.",
		Hidden: true,
		Args:   oneArgument("man needs a directory: pegasus man DIR", "man takes one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // Pages are for all.
				return fail(err)
			}
			return fail(doc.GenManTree(cmd.Root(), &doc.GenManHeader{Source: "pegasus", Manual: "Pegasus"}, args[0]))
		},
	}
}

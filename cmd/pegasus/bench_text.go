package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/connect"
)

// setFlags are the flags that were given, as on the command line but for
// passwords in URLs.
func setFlags(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			b.WriteString(" --" + f.Name)
			return
		}
		value := f.Value.String()
		if f.Name == "nats" {
			value = connect.WithoutUser(value)
		}
		fmt.Fprintf(&b, " --%s %s", f.Name, value)
	})
	return b.String()
}

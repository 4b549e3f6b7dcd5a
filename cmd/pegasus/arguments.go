package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, and %q is one", cmd.Name(), args[0])
	}
	return nil
}

// someArguments wants one at least; needs says so.
func someArguments(needs string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(needs)
		}
		return nil
	}
}

// optionalArgument wants one at most; takes says so.
func optionalArgument(takes string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s, and these are %d: %s", takes, len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// oneArgument wants exactly one.
func oneArgument(needs, takes string) cobra.PositionalArgs {
	return cobra.MatchAll(someArguments(needs), optionalArgument(takes))
}

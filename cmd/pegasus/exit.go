package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// The exit codes of every subcommand.
const (
	exitOK       = 0 // done, or ended by SIGINT or SIGTERM
	exitFailure  = 1 // it could not be done
	exitUsage    = 2 // the command line makes no sense; nothing was done
	exitWarnings = 3 // done, with warnings that were asked to count
	exitUntried  = 4 // done, and some predicate was not tried
)

// failure is an error of a command that was used rightly. Every other error,
// cobra's among them, is wrong usage.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err}
}

// errTold fails a command that has said why already.
var errTold = fail(errors.New("the reason stands above"))

// told prints why a file is refused, which may be several lines, and gives errTold.
func told(stderr io.Writer, why error) error {
	from := ""
	if _, placed := errors.AsType[*yamlconf.Error](why); !placed {
		from = "pegasus: "
	}
	_, _ = fmt.Fprintln(stderr, from+strings.TrimSuffix(why.Error(), "\n"))
	return errTold
}

// errWarned ends a command that has only warned.
var errWarned = fail(errors.New("the warnings stand above"))

// errUntried ends a command that has told what it did not try.
var errUntried = fail(errors.New("some predicates were not tried; the lines above name them"))

// report says on stderr why a command ended and returns its exit code.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	_, failed := errors.AsType[*failure](err)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errTold):
		return exitFailure
	case errors.Is(err, errWarned):
		return exitWarnings
	case errors.Is(err, errUntried):
		return exitUntried
	case failed:
		_, _ = fmt.Fprintf(stderr, "pegasus: %v\n", err)
		return exitFailure
	}
	_, _ = fmt.Fprintf(stderr, "pegasus: %s\nSee %q.\n", strings.TrimSpace(err.Error()), cmd.CommandPath()+" --help")
	return exitUsage
}

// Command pegasus checks configurations, runs the synchronizers of a configuration, shows a run,
// and finds the global states of traces. Without a server it starts a NATS server inside the
// process. "pegasus help" lists all commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	os.Exit(Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

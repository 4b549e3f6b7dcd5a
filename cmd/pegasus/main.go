// Command pegasus checks configurations and runs the synchronizers of one, by default on a NATS
// server inside the process; it shows a run while it lasts; and it finds the global states of
// traces. "pegasus help" tells the rest.
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

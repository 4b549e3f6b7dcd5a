// Pegasus-vet finds calls of functions of other members that a program waits for at once, and suggests fixes that let them run
// beside each other. It runs alone, as "pegasus-vet [-fix] [-v] PACKAGE...", and as "go vet -vettool=$(which pegasus-vet)".
package main

import (
	"os"

	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/gopegasus/pegasus/internal/callsplit"
)

func main() {
	// The driver has a flag -v without an effect, and go vet has one of its own.
	for i, arg := range os.Args {
		if i > 0 && (arg == "-v" || arg == "--v") {
			os.Args[i] = "-explain"
		}
	}
	singlechecker.Main(callsplit.New())
}

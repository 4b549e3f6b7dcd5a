// Package nodes runs the program of an example on processes of its own: the example
// once more, as nodes.
package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// Run starts a NATS server, a synchronizer with the program of a file, and n processes:
// this one again with -url, -name n0, n1 and so on, and args. It returns when the program
// has finished and the processes have ended, with what they have printed, one after the
// other, and what the program results in. The events of the program before its end go to
// observe, one at a time. It fails if ctx ends, or the program does not end well.
func Run(ctx context.Context, file []byte, n int, observe func(monitor.ProgramEvent), result any, args ...string) (printed []byte, err error) {
	server, err := embedded.Start(embedded.Options{}) //nolint:contextcheck // It lives until Close.
	if err != nil {
		return nil, err
	}
	defer server.Close()
	cfg, err := synchronizer.ParseProgram("program.yaml", file)
	if err != nil {
		return nil, err
	}
	finished := make(chan monitor.ProgramEvent, 1)
	s, err := synchronizer.Start(ctx, server.URL(), cfg, synchronizer.Options{Observe: func(e monitor.Event) {
		switch p, ok := e.(monitor.ProgramEvent); {
		case ok && p.Kind == monitor.ProgramFinish:
			finished <- p
		case ok:
			observe(p)
		}
	}})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // The program has ended, or failed for another reason.
	var c children
	defer c.end()
	for i := range n {
		if err := c.start(slices.Concat([]string{"-url", server.URL(), "-name", "n" + strconv.Itoa(i)}, args)); err != nil {
			return nil, err
		}
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.Done():
		return nil, s.Err()
	case p := <-finished:
		if p.Outcome != program.Done {
			return nil, fmt.Errorf("the program did not end well: %s", p.Reason)
		}
		return c.end(), json.Unmarshal([]byte(p.Result), result)
	}
}

// Main is the main function of an example, which has defined the flags of its own: lead in
// the process that a user starts, whose context ends with an interrupt, and node in those
// that [Run] starts. An error ends the program with a message and exit code 1.
func Main(example string, lead func(context.Context) error, node func(url, name string) error) {
	url := flag.String("url", "", "`URL` of the server: be a node (default: start the server and the nodes)")
	name := flag.String("name", "", "`NAME` of the node")
	flag.Parse()
	var err error
	if *url != "" {
		err = node(*url, *name)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = lead(ctx)
		stop()
	}
	if err != nil {
		log.SetFlags(0)
		log.Fatalf("%s: %v", example, err)
	}
}

// Wait is for a process that [Run] has started: it returns when that lets it end, or is
// gone itself.
func Wait() { _, _ = io.Copy(io.Discard, os.Stdin) }

// children are the processes, and what each has printed.
type children struct {
	cmds    []*exec.Cmd
	stdins  []io.Closer
	printed []*bytes.Buffer
}

func (c *children) start(args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	var printed bytes.Buffer
	cmd := exec.Command(exe, args...) //nolint:gosec,noctx // It is this program, and end ends it.
	cmd.Stdout, cmd.Stderr = &printed, os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		c.cmds, c.stdins, c.printed = append(c.cmds, cmd), append(c.stdins, in), append(c.printed, &printed)
	}
	return err
}

// end lets the processes end, makes those end that do not, and returns what all have
// printed. Once more it does nothing.
func (c *children) end() (printed []byte) {
	for _, in := range c.stdins {
		_ = in.Close()
	}
	kill := time.AfterFunc(5*time.Second, func() {
		for _, cmd := range c.cmds {
			_ = cmd.Process.Kill()
		}
	})
	defer kill.Stop()
	for i, cmd := range c.cmds {
		_ = cmd.Wait()
		printed = append(printed, c.printed[i].Bytes()...)
	}
	c.cmds = nil
	return printed
}

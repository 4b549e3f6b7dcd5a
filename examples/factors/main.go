// Factors: the least prime factors of some numbers by a nested PAR of blocks with
// threads on four processes (PEGASUS paper, section 2.2, figures 2.4 and 2.5). What
// another thread or process has made needless is cancelled, by the synchronizer of the
// threads or that of the processes.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

//go:embed program.yaml
var config []byte

// numbers are those of the program. The least divisor of the first is in the share of
// the first thread, that of the second in the share of the third; the last is prime.
var numbers = []int64{100000150042000063, 100650022967500459, 1000000000000037}

const processes = 4

func main() {
	log.SetFlags(0)
	url := flag.String("url", "", "`URL` of the server, of a node (default: this process starts server and nodes)")
	name := flag.String("name", "", "`NAME` of a node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := lead
	if *url != "" {
		run = func(ctx context.Context) error { return node(ctx, *url, *name) }
	}
	if err := run(ctx); err != nil {
		stop()
		log.Fatalf("factors: %v", err) //nolint:gocritic // It was stopped.
	}
}

// node is a process that runs blocks.
func node(ctx context.Context, url, name string) error {
	n, err := agent.JoinNode(ctx, url, agent.NodeConfig{Group: "parts", Name: name, JoinTimeout: time.Minute},
		agent.ThreadBlock("divide", divide, joined, agent.ThreadState(state{})),
		agent.Block("collect", collect))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return n.Close()
}

// lead runs the program on processes that it starts, and compares the result with
// what one loop comes to.
func lead(ctx context.Context) error {
	server, err := embedded.Start(embedded.Options{}) //nolint:contextcheck // It lives until Close.
	if err != nil {
		return err
	}
	defer server.Close()
	cfg, err := synchronizer.ParseProgram("program.yaml", config)
	if err != nil {
		return err
	}
	finished := make(chan monitor.ProgramEvent, 1)
	s, err := synchronizer.Start(ctx, server.URL(), cfg, synchronizer.Options{Observe: func(e monitor.Event) {
		if p, ok := e.(monitor.ProgramEvent); ok && p.Kind == monitor.ProgramFinish {
			finished <- p
		}
	}})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // The program is over.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range processes {
		cmd := exec.Command(self, "-url", server.URL(), "-name", "n"+strconv.Itoa(i)) //nolint:gosec,noctx // It is this program, and ends below.
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	select {
	case p := <-finished:
		return verdict(&p)
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func verdict(p *monitor.ProgramEvent) error {
	if p.Outcome != program.Done {
		return errors.New("the program did not end well: " + p.Reason)
	}
	var all total
	if err := json.Unmarshal([]byte(p.Result), &all); err != nil {
		return err
	}
	var want []int64
	for _, n := range numbers {
		want = append(want, alone(n))
	}
	if !slices.Equal(all.Factors, want) {
		return fmt.Errorf("the least factors are %v, and one loop finds %v", all.Factors, want)
	}
	for i, n := range numbers {
		if d := want[i]; d != none {
			fmt.Printf("%d = %d x %d\n", n, d, n/d)
		} else {
			fmt.Printf("%d is prime\n", n)
		}
	}
	fmt.Printf("cancelled as needless: %d threads by their synchronizer, %d blocks by that of the processes\n",
		all.Needless, all.Canceled)
	fmt.Println("ok: one loop finds the same")
	return nil
}

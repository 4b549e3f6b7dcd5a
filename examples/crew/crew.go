// Package crew runs an example of the package work on processes of its own: the example once more, as
// members that serve.
package crew

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

// Program is an example.
type Program struct {
	Name      string
	Processes int    // of them, unless the flag says otherwise
	Section   string // the section work of the configuration, as YAML in one line
	Functions []work.Option
	// Lead puts the work and returns what it has come to. It runs in the first process.
	Lead func(ctx context.Context, c *Crew) (*Report, error)
}

// Report is what the work has come to.
type Report struct {
	Took   time.Duration // of the work; 0: what Lead took
	Bound  time.Duration // that no schedule on as many processes can beat
	Result any           // for -json
	Text   string        // the result and the baseline, for people
}

// Crew is the processes of an example, as its first one sees them.
type Crew struct {
	Space     *work.Space
	Processes int
	Seed      uint64

	kill    int
	begun   time.Time
	mu      sync.Mutex
	workers map[string]*exec.Cmd
	killed  []string
	stopped map[string]int // and how many looks they are to be looked at
	inputs  []io.Closer    // of all workers
	running sync.WaitGroup
}

// flags are those of all examples.
type flags struct {
	processes, kill int
	seed            uint64
	json            bool
	url, name       string
}

// Main is the main function of an example. Flags of its own are declared before.
func Main(p *Program) {
	var f flags
	flag.IntVar(&f.processes, "processes", p.Processes, "`N` processes, the first of them leads and works too")
	flag.Uint64Var(&f.seed, "seed", 1, "of what is random")
	flag.IntVar(&f.kill, "kill", 0, "kill `N` random processes that run a task, once 10 % of the work is recorded")
	flag.BoolVar(&f.json, "json", false, "print one object of JSON")
	flag.StringVar(&f.url, "url", "", "`URL` of the server, of a process that serves")
	flag.StringVar(&f.name, "name", "", "`NAME` of a process that serves; without it this one leads")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix(p.Name + ": ")
	if err := run(p, &f); err != nil {
		log.Fatal(err)
	}
}

func run(p *Program, f *flags) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if f.name != "" {
		return serve(ctx, p, f)
	}
	if f.processes < 1 || f.processes > 64 || f.kill < 0 || f.kill >= f.processes {
		return fmt.Errorf("-processes %d -kill %d: run 1 to 64 processes, and leave at least one", f.processes, f.kill)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Args())
	}
	return lead(ctx, p, f)
}

// config is that of the synchronizer.
const config = `
synchronizers:
  crew:
    members: {group: crew, count: {min: 1, max: 64}}
    silence: {after: 500ms}
    work: %s
`

// lead runs the synchronizer, the other processes, and the work.
func lead(ctx context.Context, p *Program, f *flags) error {
	server, err := embedded.Start(embedded.Options{}) //nolint:contextcheck // It lives until Close.
	if err != nil {
		return err
	}
	defer server.Close()
	cfg, err := synchronizer.ParseConfig(p.Name, fmt.Appendf(nil, config, p.Section), synchronizer.Members("crew", f.processes))
	if err != nil {
		return err
	}
	s, err := synchronizer.Start(ctx, server.URL(), cfg, synchronizer.Options{})
	if err != nil {
		return err
	}
	c := &Crew{Processes: f.processes, Seed: f.seed, kill: f.kill, workers: map[string]*exec.Cmd{}, stopped: map[string]int{}}
	defer c.end()
	for i := 2; i <= f.processes; i++ {
		if err := c.start("w"+strconv.Itoa(i), server.URL()); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	m, space, err := join(ctx, p, server.URL(), "w1")
	if err != nil {
		return errors.Join(err, s.Close())
	}
	c.Space, c.begun = space, time.Now()
	report, err := p.Lead(ctx, c)
	took, stats := time.Since(c.begun), space.Stats()
	if err == nil && report.Took > 0 {
		took = report.Took
	}
	if err == nil && f.kill > 0 && stats.Redone == 0 {
		err = errors.New("processes were killed, and nothing was done again: the work was over too soon")
	}
	if err = errors.Join(err, space.Close(), m.Close(), s.Close()); err != nil {
		return err
	}
	return show(p, f, report, took, &stats)
}

// show prints the report.
func show(p *Program, f *flags, r *Report, took time.Duration, stats *work.Stats) error {
	efficiency := r.Bound.Seconds() / took.Seconds()
	if f.json {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"name": p.Name, "seconds": took.Seconds(), "bound": r.Bound.Seconds(), "efficiency": efficiency, "processes": f.processes,
			"tasks": stats.Tasks, "migrations": stats.Given, "redone": stats.Redone, "lost": 0, "result": r.Result,
		})
	}
	fmt.Printf("ok: %s; %v with %d processes, %.2f of what is possible; %d tasks, %d moves, %d done again\n",
		r.Text, took.Round(time.Millisecond), f.processes, efficiency, stats.Tasks, stats.Given, stats.Redone)
	return nil
}

// join joins the group and opens the space.
func join(ctx context.Context, p *Program, url, name string) (*agent.Member, *work.Space, error) {
	m, err := agent.Join(ctx, url, agent.Config{Group: "crew", Name: name})
	if err != nil {
		return nil, nil, err
	}
	s, err := work.Open(ctx, m, p.Functions...)
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, s, nil
}

// serve works for the others until the first process is gone, or is told to end.
func serve(ctx context.Context, p *Program, f *flags) error {
	lives, gone := context.WithCancel(ctx)
	defer gone()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // The first process holds the other end.
		gone()
	}()
	m, s, err := join(lives, p, f.url, f.name)
	if err != nil {
		if lives.Err() != nil {
			err = nil
		}
		return err
	}
	err = s.Serve(lives)
	if lives.Err() != nil {
		err = nil
	}
	if ctx.Err() != nil {
		drain, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = s.Drain(drain) //nolint:contextcheck // The other has ended.
	}
	return errors.Join(err, s.Close(), m.Close())
}

// start starts a process that serves.
func (c *Crew) start(name, url string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append(slices.Clone(os.Args[1:]), "-url", url, "-name", name)...) //nolint:gosec,noctx // It is this program, and ends with its standard input.
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.workers[name], c.inputs = cmd, append(c.inputs, input)
	c.running.Go(func() { _ = cmd.Wait() }) // It is killed, or ends with this process.
	return nil
}

// end has the other processes end while the server is there still. It does not wait long for one that is stopped.
func (c *Crew) end() {
	for name := range c.stopped {
		resume(c.workers[name].Process)
	}
	for _, input := range c.inputs {
		_ = input.Close()
	}
	ended := make(chan struct{})
	go func() { c.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
	}
}

// Watch looks 200 times a second which part of the work is recorded, by part, until stop is called, which returns how long it was.
func (c *Crew) Watch(part func() float64) (stop func() time.Duration) {
	over, ended := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(5 * time.Millisecond)
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				c.progress(part())
			case <-over:
				return
			}
		}
	}()
	begun := time.Now()
	return func() time.Duration {
		took := time.Since(begun)
		ticker.Stop()
		close(over)
		<-ended
		return took
	}
}

// progress tells which part of the work is recorded, from 0 to 1. At a tenth the processes are killed that -kill
// asks for, each while it runs a task: it is stopped first, until what it has sent has come, and killed if it has
// a task then. If all that were killed had just finished, one more is killed.
func (c *Crew) progress(part float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	holders := slices.DeleteFunc(c.Space.Holdings(), func(h work.Holding) bool { return c.workers[h.Member] == nil || h.Runs == 0 })
	holds := func(name string) bool {
		return slices.ContainsFunc(holders, func(h work.Holding) bool { return h.Member == name })
	}
	for name, looks := range c.stopped {
		switch process := c.workers[name].Process; {
		case looks > 1:
			c.stopped[name]--
			continue
		case holds(name):
			_ = process.Kill() // It may have ended.
			delete(c.workers, name)
			c.killed = append(c.killed, name)
			c.kill = max(0, c.kill-1)
		default:
			resume(process)
		}
		delete(c.stopped, name)
	}
	if part < 0.1 || c.kill == 0 && !c.inVain() {
		return
	}
	holders = slices.DeleteFunc(holders, func(h work.Holding) bool { return c.workers[h.Member] == nil || c.stopped[h.Member] > 0 })
	random := rand.New(rand.NewPCG(c.Seed, uint64(len(c.workers)))) //nolint:gosec // It is to be repeatable.
	random.Shuffle(len(holders), func(i, j int) { holders[i], holders[j] = holders[j], holders[i] })
	for _, h := range holders[:min(max(0, max(c.kill, 1)-len(c.stopped)), len(holders))] {
		suspend(c.workers[h.Member].Process)
		c.stopped[h.Member] = sendLooks
	}
}

// sendLooks is after how many looks all has come that a stopped process had sent. It is no time: where the
// machine is busy, this process may stand still as well.
const sendLooks = 40

// inVain reports whether processes were killed, none has a task any more, and nothing is done again.
func (c *Crew) inVain() bool {
	return len(c.killed) > 0 && c.Space.Stats().Redone == 0 &&
		!slices.ContainsFunc(c.Space.Holdings(), func(h work.Holding) bool { return slices.Contains(c.killed, h.Member) })
}

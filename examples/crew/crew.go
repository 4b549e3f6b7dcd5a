// Package crew runs an example of the package work on processes of its own: the example once more, as
// members that serve.
package crew

import (
	"bufio"
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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	State     any // that a member sets before it opens the space; nil: none
	// Job is called once the flags are parsed; the seed is that of the flags.
	Job func(seed uint64) (*Job, error)

	trace string // the directory of traces; empty: none
}

// Job is what an example does. A process may be killed at any time, and the example started again: so its tasks have IDs.
type Job struct {
	Put  func(ctx context.Context, s *work.Space) error      // puts the work; nil: Read does, in the first process
	Part func(s *work.Space) float64                         // which part of it is recorded, where it was put: from 0 to 1; nil: the work is calls, which no store keeps
	Read func(ctx context.Context, c *Crew) (*Report, error) // reads what it has come to, in the first process

	Section string // instead of that of the program; empty: that one
	Least   int    // processes that the section needs, by their names; fewer are refused
	// Compare runs instead of all the above, without other processes, unless it is nil. It returns what is printed: an object for
	// -json, and a text.
	Compare func(ctx context.Context) (object any, text string, err error)
	// Alone does the whole work in this process without a space, for -beside. It returns the same as [Report.Result], and how long
	// that took. nil: the example has no such baseline.
	Alone func() (result any, took time.Duration, err error)
}

// Report is what the work has come to.
type Report struct {
	Took   time.Duration  // of the work; 0: what Lead took
	Bound  time.Duration  // that no schedule on as many processes can beat
	Result any            // for -json
	Text   string         // the result and the baseline, for people
	More   map[string]any // for -json, of a loop
}

// Crew is the processes of an example, as its first one sees them.
type Crew struct {
	Space     *work.Space
	Processes int
	// Of are the options of Results and Total: another process may have put the work.
	Of []work.ResultsOption

	job           *Job
	seed          uint64
	server        *serverProcess // nil: the server is in this process
	once          []func() error // at killAt of the work
	faults        []error        // of these
	kill          int
	killAt        float64 // which part of the work is recorded when processes are killed
	begun         time.Time
	mu            sync.Mutex
	workers       map[string]*exec.Cmd
	killed        []string
	creatorKilled bool
	stopped       map[string]int // and how many looks they are to be looked at
	inputs        []io.Closer    // of all workers
	running       sync.WaitGroup
}

// flags are those of all examples.
type flags struct {
	processes, kill, beside int
	killAt                  float64
	seed                    uint64
	json                    bool
	store, dir              string
	killServer, killCreator bool
	url, name, part         string // of a process that this program has started
}

// What a process that another one has started is for, beside members that serve.
const (
	partServer  = "server"  // of NATS, with the synchronizer
	partCreator = "creator" // it puts the work
)

// Main is the main function of an example. Flags of its own are declared before.
func Main(p *Program) {
	var f flags
	flag.IntVar(&f.processes, "processes", p.Processes, "`N` processes, the first of them leads and works too")
	flag.Uint64Var(&f.seed, "seed", 1, "`SEED` of all random choices")
	flag.IntVar(&f.kill, "kill", 0, "kill `N` random processes that run a task, once as much of the work is recorded as -kill-at says")
	flag.Float64Var(&f.killAt, "kill-at", 0.1, "`PART` of the work that is recorded when something is killed, from 0 to below 1")
	flag.IntVar(&f.beside, "beside", 0, "measure `N` times: independent sequential runs, one a process and side by side, and then the program on as many processes; 0 does not measure")
	flag.BoolVar(&f.json, "json", false, "print one object of JSON")
	flag.StringVar(&f.store, "store", "memory", "`STORE` of the tasks: memory or jetstream")
	flag.StringVar(&f.dir, "dir", "", "`DIR` of JetStream: tasks put there before continue; without it, a new directory that is removed at the end")
	flag.BoolVar(&f.killServer, "kill-server", false, "kill the NATS server and the synchronizer at -kill-at, and start them again; with -store jetstream")
	flag.BoolVar(&f.killCreator, "kill-creator", false, "kill the process that has put the work at -kill-at; with -store jetstream")
	flag.StringVar(&p.trace, "trace", "", "`DIR` to which each process writes the lines for pegasus work sim --trace")
	flag.StringVar(&f.url, "url", "", "`URL` of the server, of a process that another one has started")
	flag.StringVar(&f.name, "name", "", "`NAME` of such a process")
	flag.StringVar(&f.part, "part", "", "`PART` of such a process: server, creator, alone for a sequential run, or none for a member that serves")
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
	job, err := p.Job(f.seed)
	if err == nil && job.Section != "" {
		p.Section = job.Section
	}
	switch {
	case err != nil:
		return err
	case f.part == partAlone && job.Alone != nil:
		return runAlone(job)
	case f.part == partServer:
		return serveNATS(ctx, p, f)
	case f.name != "":
		return serve(ctx, p, f, job)
	case f.store != "memory" && f.store != "jetstream":
		return fmt.Errorf("-store %s: use memory or jetstream", f.store)
	case f.store == "memory" && (f.dir != "" || f.killServer || f.killCreator):
		return errors.New("-dir, -kill-server and -kill-creator need -store jetstream: with memory the tasks die with the process that has put them")
	case job.Part == nil && (f.kill > 0 || f.store != "memory"):
		return errors.New("-kill, -store: the work of this example is calls, which are no tasks: leave both out")
	case job.Put == nil && (f.dir != "" || f.killCreator):
		return errors.New("-dir and -kill-creator: this example does not begin again: its first process puts the work while it runs")
	case f.killCreator && (f.processes < 2 || f.kill > 0):
		return errors.New("-kill-creator: run at least two processes, and leave -kill out")
	}
	if f.processes < 1 || f.processes > 64 || f.kill < 0 || f.kill >= f.processes {
		return fmt.Errorf("-processes %d -kill %d: run 1 to 64 processes, and leave at least one", f.processes, f.kill)
	}
	if !(f.killAt >= 0 && f.killAt < 1) {
		return fmt.Errorf("-kill-at %v: give a part of the work, from 0 to below 1", f.killAt)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Args())
	}
	if f.processes < job.Least {
		return fmt.Errorf("-processes %d: the configuration names the members %s to %s: run at least %d processes", f.processes, Process(0), Process(job.Least-1), job.Least)
	}
	switch {
	case f.beside < 0 || f.beside > 100 || f.beside > 0 && (job.Alone == nil || job.Compare != nil || f.kill > 0):
		return fmt.Errorf("-beside %d: give 1 to 100 rounds, without -kill and -table, and of an example that has a sequential run: uts, or blockmatch without -calibrated", f.beside)
	case f.beside > 0:
		return measureBeside(ctx, p, f)
	case job.Compare != nil:
		return compare(ctx, f, job)
	}
	return lead(ctx, p, f, job)
}

// config is that of the synchronizer.
const config = `
synchronizers:
  crew:
    members: {group: crew, count: {min: 1, max: 64}}
    silence: {after: 500ms}
    work: %s
`

// start runs a server and the synchronizer in this process, on a port; 0: any.
func (p *Program) start(ctx context.Context, f *flags, port int) (url string, stop func() error, err error) {
	options, section := embedded.Options{Port: port}, p.Section
	if f.store == "jetstream" {
		options.JetStream, section = f.dir, strings.Replace(section, "{", "{store: jetstream, ", 1)
	}
	server, err := embedded.Start(options) //nolint:contextcheck // It lives until Close.
	if err != nil {
		return "", nil, err
	}
	cfg, err := synchronizer.ParseConfig(p.Name, fmt.Appendf(nil, config, section), synchronizer.Members("crew", f.processes))
	if err != nil {
		server.Close()
		return "", nil, err
	}
	s, err := synchronizer.Start(ctx, server.URL(), cfg, synchronizer.Options{})
	if err != nil {
		server.Close()
		return "", nil, err
	}
	return server.URL(), func() error {
		defer server.Close()
		return s.Close()
	}, nil
}

// lead runs the other processes, and the work.
func lead(ctx context.Context, p *Program, f *flags, job *Job) (err error) {
	if f.store == "jetstream" && f.dir == "" {
		if f.dir, err = os.MkdirTemp("", p.Name); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(f.dir) }()
	}
	c := &Crew{Processes: f.processes, seed: f.seed, job: job, kill: f.kill, killAt: f.killAt, workers: map[string]*exec.Cmd{}, stopped: map[string]int{}}
	stop := c.end
	defer func() { stop() }() // The others end while the server is there still.
	var url string
	if f.killServer {
		c.server = &serverProcess{crew: c, dir: f.dir}
		if url, err = c.server.start("0"); err != nil {
			return err
		}
		c.once = append(c.once, c.server.again)
		stop = func() { c.end(); c.server.end() }
	} else {
		var stopServer func() error
		if url, stopServer, err = p.start(ctx, f, 0); err != nil {
			return err
		}
		stop = func() { c.end(); _ = stopServer() }
	}
	for i := 2; i <= f.processes; i++ {
		name, part := Process(i-1), ""
		if i == 2 && f.killCreator {
			part, c.Of = partCreator, []work.ResultsOption{work.Of(name)}
		}
		if err := c.start(name, url, part); err != nil {
			return err
		}
	}
	m, space, err := join(ctx, p, url, Process(0))
	if err != nil {
		return err
	}
	c.Space, c.begun = space, time.Now()
	if !f.killCreator && job.Put != nil {
		err = job.Put(ctx, space)
	}
	var report *Report
	if err == nil {
		report, err = job.Read(ctx, c)
	}
	took, stats := time.Since(c.begun), space.Stats()
	if err == nil && report.Took > 0 {
		took = report.Took
	}
	switch {
	case err != nil:
	case f.kill > 0 && stats.Redone == 0:
		err = errors.New("processes were killed, and nothing was done again: the work was over too soon: give more of it, such as a larger tree or more calls")
	case len(c.once) > 0:
		err = errors.New("the work was over before the server was killed")
	case f.killCreator && !c.killedCreator():
		err = errors.New("the work was over before the process was killed that had put it")
	}
	if err = errors.Join(err, errors.Join(c.faults...), space.Close(), m.Close()); err != nil {
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
	fmt.Printf("ok: %s; %v with %d processes, %.2f of the possible speed; %d tasks, %d moves, %d done again\n",
		r.Text, took.Round(time.Millisecond), f.processes, efficiency, stats.Tasks, stats.Given, stats.Redone)
	return nil
}

// join joins the group and opens the space.
func join(ctx context.Context, p *Program, url, name string) (*agent.Member, *work.Space, error) {
	m, err := agent.Join(ctx, url, agent.Config{Group: "crew", Name: name})
	if err != nil {
		return nil, nil, err
	}
	if p.State != nil {
		err = m.Set(p.State)
	}
	options := p.Functions
	if err == nil && p.trace != "" {
		var lines *os.File // It is closed at the end of the process.
		if lines, err = os.Create(filepath.Join(p.trace, name+".jsonl")); err == nil {
			options = append(slices.Clone(options), work.Trace(lines))
		}
	}
	var s *work.Space
	if err == nil {
		s, err = work.Open(ctx, m, options...)
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, s, nil
}

// serve works for the others until the first process is gone, or is told to end. The creator puts the work before, and
// prints which part of it is recorded.
func serve(ctx context.Context, p *Program, f *flags, job *Job) error {
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
	if f.part == partCreator {
		if err = job.Put(lives, s); err == nil {
			tick := time.NewTicker(lookPause)
			defer tick.Stop()
			go func() {
				for range tick.C {
					fmt.Println(job.Part(s))
				}
			}()
			err = s.Wait(lives)
		}
	}
	if err == nil {
		err = s.Serve(lives)
	}
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

// start starts a process that serves. The creator is killed once killAt of its work is recorded.
func (c *Crew) start(name, url, part string) error {
	cmd, input, output, err := startSelf("-url", url, "-name", name, "-part", part)
	if err != nil {
		return err
	}
	c.inputs = append(c.inputs, input)
	if part != partCreator {
		c.workers[name] = cmd
	}
	c.running.Go(func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if part, err := strconv.ParseFloat(lines.Text(), 64); err == nil && part >= c.killAt && part < 1 {
				c.mu.Lock()
				c.creatorKilled = true
				c.mu.Unlock()
				_ = cmd.Process.Kill() // It may have ended.
				break
			}
		}
		_ = cmd.Wait() // It is killed, or ends with this process.
	})
	return nil
}

// late is by how much the sleeps of this process were too long in all.
var late atomic.Int64

// Sleep is the work of an example: it takes the time d, unless ctx ends before. The operating system wakes a process
// late, so what a sleep was too long makes the next one shorter.
func Sleep(ctx context.Context, d time.Duration) error {
	begun, owed := time.Now(), min(time.Duration(late.Load()), d/2)
	late.Add(-int64(owed))
	timer := time.NewTimer(d - owed)
	defer timer.Stop()
	select {
	case <-timer.C:
		late.Add(int64(time.Since(begun) - (d - owed)))
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Await waits until the instant t, unless ctx ends before. It is no work.
func Await(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Process returns the name of process i, from 0.
func Process(i int) string { return "w" + strconv.Itoa(i+1) }

// killedCreator reports whether the process was killed that had put the work.
func (c *Crew) killedCreator() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.creatorKilled
}

// startSelf starts this program once more with further flags. The process ends when its input is closed.
func startSelf(flags ...string) (cmd *exec.Cmd, input io.WriteCloser, output io.ReadCloser, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(program, append(slices.Clone(os.Args[1:]), flags...)...) //nolint:gosec,noctx // It ends with its standard input.
	cmd.Stderr = os.Stderr
	if input, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if output, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	return cmd, input, output, cmd.Start()
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

// lookPause is how often one looks which part of the work is recorded.
const lookPause = 5 * time.Millisecond

// Watch looks 200 times a second which part of the work is recorded, until stop is called, which returns how long it was.
func (c *Crew) Watch() (stop func() time.Duration) {
	over, ended := make(chan struct{}), make(chan struct{})
	ticker := time.NewTicker(lookPause)
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				c.progress(c.job.Part(c.Space))
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
	if part < c.killAt {
		return
	}
	for _, do := range c.once {
		c.faults = append(c.faults, do())
	}
	c.once = nil
	if c.kill == 0 && !c.inVain() {
		return
	}
	holders = slices.DeleteFunc(holders, func(h work.Holding) bool { return c.workers[h.Member] == nil || c.stopped[h.Member] > 0 })
	random := rand.New(rand.NewPCG(c.seed, uint64(len(c.workers)))) //nolint:gosec // It is to be repeatable.
	random.Shuffle(len(holders), func(i, j int) { holders[i], holders[j] = holders[j], holders[i] })
	for _, h := range holders[:min(max(0, max(c.kill, 1)-len(c.stopped)), len(holders))] {
		suspend(c.workers[h.Member].Process)
		c.stopped[h.Member] = sendLooks
	}
}

// sendLooks is after how many looks all has come that a stopped process had sent. It is no time: where the
// machine is busy, this process may stand still as well.
const sendLooks = 40

// Elapsed is how long ago the work began.
func (c *Crew) Elapsed() time.Duration { return time.Since(c.begun) }

// inVain reports whether processes were killed, none has a task any more, and nothing is done again.
func (c *Crew) inVain() bool {
	return len(c.killed) > 0 && c.Space.Stats().Redone == 0 &&
		!slices.ContainsFunc(c.Space.Holdings(), func(h work.Holding) bool { return slices.Contains(c.killed, h.Member) })
}

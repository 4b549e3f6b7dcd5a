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
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gopegasus/pegasus/work"
)

// LoopProgram is an example whose processes run one loop together.
type LoopProgram struct {
	Name      string                                                    // of the example
	Processes int                                                       // of them, unless the flag says otherwise
	Section   string                                                    // the section work of the configuration, as YAML in one line
	Check     func() error                                              // looks at the flags of the example
	Run       func(ctx context.Context, m *LoopMember) (*Report, error) // the program of each process; the first one reports
}

// LoopMember is one process of a [LoopProgram].
type LoopMember struct {
	Space     *work.Space       // of the process
	Process   int               // its number, from 0
	Processes int               // that were there at first
	Leads     bool              // it is the first one
	Options   []work.LoopOption // of its loop

	fleet *fleet // of the first one, else nil
	first bool   // an iteration has begun
	debt  time.Duration
	begun time.Time
	took  time.Duration
}

// fleet is the other processes, as the first one sees them.
type fleet struct {
	url                  string
	kill, withdraw, join int
	commands             []*exec.Cmd
	inputs               []io.Closer
	said                 chan string
	ended                []chan struct{}
	err                  error
}

// What a process prints for the first one.
const (
	saidBegan    = "began"    // it has its first iteration
	saidWithdrew = "withdrew" // it has given up its rows, and has left the loop
)

// MainLoop is the main function of an example with a loop. Flags of its own are declared before.
func MainLoop(p *LoopProgram) {
	var f flags
	var fl fleet
	flag.IntVar(&f.processes, "processes", p.Processes, "`N` processes, the first of them is the home of the loop")
	flag.IntVar(&fl.kill, "kill", 0, "kill `N` processes in the second iteration")
	flag.IntVar(&fl.withdraw, "withdraw", 0, "withdraw `N` processes in the second iteration, by SIGTERM")
	flag.IntVar(&fl.join, "join", 0, "start `N` more processes in the second iteration")
	flag.BoolVar(&f.json, "json", false, "print one object of JSON")
	flag.StringVar(&f.url, "url", "", "`URL` of the server, of a process that another one has started")
	flag.StringVar(&f.name, "name", "", "`NAME` of such a process")
	flag.Parse()
	log.SetFlags(0)
	log.SetPrefix(p.Name + ": ")
	if err := p.run(&f, &fl); err != nil {
		log.Fatal(err)
	}
}

func (p *LoopProgram) run(f *flags, fl *fleet) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.Check(); err != nil {
		return err
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Args())
	}
	if f.processes < 1 || f.processes > 32 || fl.join < 0 || fl.join > 32 || fl.kill < 0 || fl.withdraw < 0 || fl.kill+fl.withdraw >= f.processes {
		return fmt.Errorf("-processes %d -kill %d -withdraw %d -join %d: run 1 to 32 processes, and let at most 32 join and at least one stay", f.processes, fl.kill, fl.withdraw, fl.join)
	}
	if f.name != "" {
		return p.serve(ctx, f)
	}
	return p.lead(ctx, f, fl)
}

// lead runs the other processes, and takes part as the home.
func (p *LoopProgram) lead(ctx context.Context, f *flags, fl *fleet) (err error) {
	program := &Program{Name: p.Name, Section: p.Section}
	url, stopServer, err := program.start(ctx, f, 0)
	if err != nil {
		return err
	}
	fl.url, fl.said = url, make(chan string, 256)
	defer func() {
		fl.end()
		_ = stopServer()
	}()
	for i := 2; i <= f.processes; i++ {
		if err := fl.start(i); err != nil {
			return err
		}
	}
	m, s, err := join(ctx, program, url, "w1")
	if err != nil {
		return err
	}
	member := &LoopMember{Space: s, Processes: f.processes, Leads: true, fleet: fl, Options: []work.LoopOption{work.Home()}}
	report, err := p.Run(ctx, member)
	if err = errors.Join(err, fl.err); err == nil {
		err = fl.judge(f.processes)
	}
	if err = errors.Join(err, s.Close(), m.Close()); err != nil {
		return err
	}
	return p.show(f, fl, report, member.took)
}

// judge looks whether all has happened that the flags ask for.
func (fl *fleet) judge(processes int) error {
	said := map[string]int{}
	for {
		select {
		case word := <-fl.said:
			said[word]++
			continue
		default:
		}
		break
	}
	if n := said[saidWithdrew]; n != fl.withdraw {
		return fmt.Errorf("%d processes have withdrawn instead of %d: the loop was over too soon", n, fl.withdraw)
	}
	if n := said[saidBegan]; n < fl.join || fl.kill == 0 && n != processes-1+fl.join {
		return fmt.Errorf("%d of %d other processes took part: the loop was over too soon", n, processes-1+fl.join)
	}
	return nil
}

func (p *LoopProgram) show(f *flags, fl *fleet, r *Report, took time.Duration) error {
	efficiency := r.Bound.Seconds() / took.Seconds()
	if f.json {
		all := map[string]any{
			"name": p.Name, "seconds": took.Seconds(), "bound": r.Bound.Seconds(), "efficiency": efficiency, "processes": f.processes,
			"killed": fl.kill, "withdrawn": fl.withdraw, "joined": fl.join, "lost": 0, "result": r.Result,
		}
		maps.Copy(all, r.More)
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	fmt.Printf("ok: %s; %v with %d processes, %.2f of what the first ones can do\n", r.Text, took.Round(time.Millisecond), f.processes, efficiency)
	return nil
}

// serve takes part until the loop is over or the first process is gone. At SIGTERM it gives up its rows.
func (p *LoopProgram) serve(ctx context.Context, f *flags) error {
	lives, gone := context.WithCancel(context.Background())
	defer gone()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // The first process holds the other end.
		gone()
	}()
	number, err := strconv.Atoi(strings.TrimPrefix(f.name, "w"))
	if err != nil {
		return fmt.Errorf("-name %q: it is w and a number: %w", f.name, err)
	}
	m, s, err := join(lives, &Program{Name: p.Name}, f.url, f.name) //nolint:contextcheck // A signal drains it.
	if err != nil {
		if lives.Err() != nil {
			err = nil
		}
		return err
	}
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		drained <- s.Drain(lives)
	}()
	_, err = p.Run(lives, &LoopMember{Space: s, Process: number - 1, Processes: f.processes}) //nolint:contextcheck // As above.
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = <-drained
		fmt.Println(saidWithdrew)
	default:
		err = s.Serve(lives) //nolint:contextcheck // As above.
	}
	if lives.Err() != nil {
		err = nil
	}
	return errors.Join(err, s.Close(), m.Close())
}

// start starts one more process.
func (fl *fleet) start(number int) error {
	cmd, input, output, err := startSelf("-url", fl.url, "-name", "w"+strconv.Itoa(number))
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	fl.commands, fl.inputs, fl.ended = append(fl.commands, cmd), append(fl.inputs, input), append(fl.ended, ended)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			select {
			case fl.said <- lines.Text():
			default: // Each process says two words.
			}
		}
		_ = cmd.Wait() // It is killed, or ends with this process.
	}()
	return nil
}

// end has the other processes end, and waits for them.
func (fl *fleet) end() {
	for _, input := range fl.inputs {
		_ = input.Close()
	}
	for _, ended := range fl.ended {
		<-ended
	}
}

// strike kills and withdraws processes, and starts more.
func (fl *fleet) strike(processes int) {
	for i := range fl.kill {
		_ = fl.commands[i].Process.Kill() // It may have ended.
	}
	for i := range fl.withdraw {
		if err := fl.commands[fl.kill+i].Process.Signal(syscall.SIGTERM); err != nil {
			fl.err = errors.Join(fl.err, fmt.Errorf("-withdraw: %w", err))
		}
	}
	for i := range fl.join {
		fl.err = errors.Join(fl.err, fl.start(processes+1+i))
	}
}

// Begins is called by the body of the loop in each iteration, after Carry.
func (m *LoopMember) Begins(iteration int) {
	if !m.first && !m.Leads {
		fmt.Println(saidBegan)
	}
	if !m.first {
		m.begun = time.Now()
	}
	if m.first = true; iteration == 2 && m.Leads {
		m.fleet.strike(m.Processes)
	}
}

// Ends is called by the first process when its loop is over. It waits until that of all others is.
func (m *LoopMember) Ends(ctx context.Context) error {
	m.took = time.Since(m.begun)
	return m.Space.Wait(ctx)
}

// Pause sleeps for as long as a row takes. Short times are added up: a sleep takes longer than it is asked for.
func (m *LoopMember) Pause(d time.Duration) {
	if m.debt += d; m.debt >= time.Millisecond {
		begun := time.Now()
		time.Sleep(m.debt)
		m.debt -= time.Since(begun)
	}
}

// Processors is how many of the first processes can compute at a time.
func (m *LoopMember) Processors() int { return min(m.Processes, runtime.NumCPU()) }

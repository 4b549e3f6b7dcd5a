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
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	Functions func(m *LoopMember) []work.Option                         // of its space; nil: none
}

// LoopMember is one process of a [LoopProgram].
type LoopMember struct {
	Space     *work.Space       // of the process
	Process   int               // its number, from 0
	Processes int               // that were there at first
	Leads     bool              // it is the first one
	Options   []work.LoopOption // of its loop
	Loop      *work.ElasticLoop // its loop: Run sets it, if there is one

	fleet *fleet // of the first one, else nil
	debt  time.Duration

	mu      sync.Mutex // functions of tasks run on other goroutines
	first   bool       // an iteration has begun
	strikes int        // rows until processes are killed and withdrawn, and others started; 0: not now
	begun   time.Time
	took    time.Duration
}

// fleet is the other processes, as the first one sees them.
type fleet struct {
	url                  string
	kill, withdraw, join int
	chosen               []int // the processes that are killed, then those that are withdrawn
	after                int   // rows of the first process in the second iteration after which that happens
	back                 int   // iterations after which those that are withdrawn take work again; 0: never
	commands             []*exec.Cmd
	inputs               []io.WriteCloser
	said                 chan string
	ended                []chan struct{}
	err                  error
	took, used           float64 // the longest time in seconds to give rows back, and the largest part of the cores that was used then; NaN: not known
}

// What a process prints for the first one.
const (
	saidBegan    = "began"    // it has its first iteration
	saidWithdrew = "withdrew" // it was withdrawn; the seconds until it did no more work follow, and the part of the cores that it has used since
)

// What the first process writes to another one.
const (
	askWithdraw = "withdraw\n"
	askReturn   = "return\n"
)

// owner is the state of a process: the rule of the key withdraw reads it.
type owner struct {
	Away bool // the owner of the machine uses it
}

// section adds the field that the rule reads to the configuration.
func (p *LoopProgram) section() string { return p.Section + "\n    state: {away: bool}" }

// MainLoop is the main function of an example with a loop. Flags of its own are declared before.
func MainLoop(p *LoopProgram) {
	var f flags
	var fl fleet
	flag.IntVar(&f.processes, "processes", p.Processes, "`N` processes, the first of them is the home of the loop")
	flag.Uint64Var(&f.seed, "seed", 0, "draws which processes are killed and withdrawn, and after how many rows of the first process")
	flag.IntVar(&fl.kill, "kill", 0, "kill `N` processes in the second iteration")
	flag.IntVar(&fl.withdraw, "withdraw", 0, "withdraw `N` processes in the second iteration, by the key withdraw of the configuration")
	flag.IntVar(&fl.back, "back", 0, "have them take work again `N` iterations later; 0: never")
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
	if f.processes < 1 || f.processes > 32 || fl.join < 0 || fl.join > 32 || fl.kill < 0 || fl.withdraw < 0 || fl.back < 0 || fl.kill+fl.withdraw >= f.processes {
		return fmt.Errorf("-processes %d -kill %d -withdraw %d -join %d: run 1 to 32 processes, and let at most 32 join and at least one stay", f.processes, fl.kill, fl.withdraw, fl.join)
	}
	if f.name != "" {
		return p.serve(ctx, f)
	}
	return p.lead(ctx, f, fl)
}

// lead runs the other processes, and takes part as the home.
func (p *LoopProgram) lead(ctx context.Context, f *flags, fl *fleet) (err error) {
	member := &LoopMember{Processes: f.processes, Leads: true, fleet: fl, Options: []work.LoopOption{work.Home()}}
	program := &Program{Name: p.Name, Section: p.section(), Functions: p.functions(member), State: owner{}}
	url, stopServer, err := program.start(ctx, f, 0)
	if err != nil {
		return err
	}
	fl.url, fl.said = url, make(chan string, 256)
	random := rand.New(rand.NewPCG(f.seed, 0)) //nolint:gosec // It is to be repeatable.
	fl.chosen, fl.after = random.Perm(f.processes - 1)[:fl.kill+fl.withdraw], 1+random.IntN(maxStrikeRows)
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
	member.Space = s
	report, err := p.Run(ctx, member)
	fl.end() // It has read all that they say.
	if err = errors.Join(err, fl.err); err == nil {
		err = fl.judge(f.processes)
	}
	if err = errors.Join(err, s.Close(), m.Close()); err != nil {
		return err
	}
	return p.show(f, fl, report, member.took)
}

func (p *LoopProgram) functions(m *LoopMember) []work.Option {
	if p.Functions == nil {
		return nil
	}
	return p.Functions(m)
}

// judge looks whether all has happened that the flags ask for.
func (fl *fleet) judge(processes int) error {
	said := map[string]int{}
	for {
		select {
		case line := <-fl.said:
			word, figures, _ := strings.Cut(line, " ")
			if said[word]++; word == saidWithdrew {
				var took, used float64
				if _, err := fmt.Sscan(figures, &took, &used); err != nil {
					return fmt.Errorf("a process has said %q: %w", line, err)
				}
				fl.took, fl.used = max(fl.took, took), max(fl.used, used)
			}
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
		if !math.IsNaN(fl.took) && fl.withdraw > 0 {
			all["withdrawing_seconds"] = fl.took
		}
		if !math.IsNaN(fl.used) && fl.withdraw > 0 {
			all["used_after"] = fl.used
		}
		maps.Copy(all, r.More)
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	text := r.Text
	if fl.withdraw > 0 && !math.IsNaN(fl.took) {
		text += fmt.Sprintf("; a process that is withdrawn gave its rows back within %v, and used %.1f %% of the cores after that", time.Duration(fl.took*float64(time.Second)).Round(time.Millisecond), fl.used*100)
	}
	fmt.Printf("ok: %s; %v with %d processes, %.2f of the speed of the first processes\n", text, took.Round(time.Millisecond), f.processes, efficiency)
	return nil
}

// serve takes part until the loop is over or the first process is gone. At SIGTERM it gives up its rows. The first
// process tells it when its owner takes the machine back, and gives it again.
func (p *LoopProgram) serve(ctx context.Context, f *flags) error { //nolint:contextcheck // A signal drains it.
	lives, gone := context.WithCancel(context.Background())
	defer gone()
	asked := make(chan string, 8)
	go func() {
		defer gone()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); { // The first process holds the other end.
			asked <- lines.Text() + "\n"
		}
	}()
	number, err := strconv.Atoi(strings.TrimPrefix(f.name, "w"))
	if err != nil {
		return fmt.Errorf("-name %q: it is w and a number: %w", f.name, err)
	}
	member := &LoopMember{Process: number - 1, Processes: f.processes}
	m, s, err := join(lives, &Program{Name: p.Name, Functions: p.functions(member), State: owner{}}, f.url, f.name) //nolint:contextcheck // A signal drains it.
	if err != nil {
		if lives.Err() != nil {
			err = nil
		}
		return err
	}
	member.Space = s
	go func() {
		for {
			select {
			case word := <-asked:
				_ = m.Set(owner{Away: word == askWithdraw}) // It fails if the member is closed.
			case <-lives.Done():
				return
			}
		}
	}()
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		drained <- s.Drain(lives)
	}()
	_, err = p.Run(lives, member) //nolint:contextcheck // As above.
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = <-drained
		member.sayWithdrawn()
	default:
		if member.Loop != nil {
			member.sayWithdrawn()
		}
		err = s.Serve(lives) //nolint:contextcheck // As above.
		if member.Loop == nil {
			member.sayWithdrawn()
		}
	}
	if lives.Err() != nil {
		err = nil
	}
	return errors.Join(err, s.Close(), m.Close())
}

// sayWithdrawn tells the first process how this one was withdrawn, if it was.
func (m *LoopMember) sayWithdrawn() {
	took, used, withdrawn := math.NaN(), math.NaN(), m.Space.Stats().Withdrawals > 0
	if m.Loop != nil {
		stats := m.Loop.Stats()
		took, used, withdrawn = stats.Withdrawing.Seconds(), stats.Used, stats.Withdrawals > 0
	}
	if withdrawn {
		fmt.Println(saidWithdrew, took, used)
	}
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
		_ = fl.commands[fl.chosen[i]].Process.Kill() // It may have ended.
	}
	for i := range fl.withdraw {
		fl.ask(fl.chosen[fl.kill+i], askWithdraw)
	}
	for i := range fl.join {
		fl.err = errors.Join(fl.err, fl.start(processes+1+i))
	}
}

// giveBack has the withdrawn processes take work again.
func (fl *fleet) giveBack() {
	for i := range fl.withdraw {
		fl.ask(fl.chosen[fl.kill+i], askReturn)
	}
}

func (fl *fleet) ask(process int, word string) {
	if _, err := io.WriteString(fl.inputs[process], word); err != nil {
		fl.err = errors.Join(fl.err, fmt.Errorf("-withdraw: %w", err))
	}
}

// Begins is called in each iteration, by the body of the loop after Carry.
func (m *LoopMember) Begins(iteration int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.first {
		m.begun = time.Now()
		if !m.Leads {
			fmt.Println(saidBegan)
		}
	}
	m.first = true
	if !m.Leads {
		return
	}
	if m.strikes > 0 { // It had too few rows.
		m.strikes = 0
		m.fleet.strike(m.Processes)
	}
	if iteration == 2 {
		m.strikes = m.fleet.after
	}
	if m.fleet.back > 0 && iteration == 2+m.fleet.back {
		m.fleet.giveBack()
	}
}

// maxStrikeRows bounds the rows of the second iteration that the first process does before others are killed. If it has
// fewer, they are killed after the iteration.
const maxStrikeRows = 200

// Ends is called by the first process when its loop is over. It waits until that of all others is.
func (m *LoopMember) Ends(ctx context.Context) error {
	m.took = time.Since(m.begun)
	return m.Space.Wait(ctx)
}

// Pause sleeps for as long as a row takes. Short times are added up: a sleep takes longer than it is asked for. It is
// called for each row.
func (m *LoopMember) Pause(d time.Duration) {
	m.mu.Lock()
	if m.strikes > 0 {
		if m.strikes--; m.strikes == 0 {
			m.fleet.strike(m.Processes)
		}
	}
	m.mu.Unlock()
	if m.debt += d; m.debt >= time.Millisecond {
		begun := time.Now()
		time.Sleep(m.debt)
		m.debt -= time.Since(begun)
	}
}

// Processors is how many of the first processes can compute at a time.
func (m *LoopMember) Processors() int { return min(m.Processes, runtime.NumCPU()) }

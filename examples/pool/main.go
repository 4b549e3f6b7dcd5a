// Pool: processes of unequal speed with a pool of tasks each. The synchronizer of
// configs/pool.yaml has tasks moved between them (PEGASUS paper, section 3) and ends
// the work at an instant at which nobody has any. It runs once with the strategy and
// once without, and compares.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

type flags struct {
	url, name string
	slow      int
	index     int

	members, tasks int
	seed           uint64
	journal        string
	batch          time.Duration
}

func main() {
	var f flags
	flag.StringVar(&f.url, "url", "", "`URL` of the server, of a member")
	flag.StringVar(&f.name, "name", "", "`NAME` of a member; without it this process starts them")
	flag.IntVar(&f.slow, "slow", 1, "a member takes `N` times as long")
	flag.IntVar(&f.index, "index", 0, "of a member, from 0")
	flag.IntVar(&f.members, "members", 3, "`N` processes, each half as fast as the one before")
	flag.IntVar(&f.tasks, "tasks", 60, "`N` tasks of each member at first")
	flag.Uint64Var(&f.seed, "seed", 1, "of the tasks")
	flag.StringVar(&f.journal, "journal", "", "write the journal of the synchronizer to `FILE`, of the run with the strategy")
	flag.DurationVar(&f.batch, "batch", 0, "states wait up to `TIME` for others to be sent with")
	flag.Parse()
	log.SetFlags(0)
	if err := run(&f); err != nil {
		log.Fatalf("pool: %v", err)
	}
}

func run(f *flags) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if f.name != "" {
		return work(ctx, f)
	}
	if f.members < 2 || f.members > 16 || f.tasks < 1 {
		return errors.New("it takes 2 to 16 members, with at least one task each")
	}
	without, err := once(ctx, f, "none")
	if err != nil {
		return err
	}
	with, err := once(ctx, f, "pegasus")
	if err != nil {
		return err
	}
	fmt.Printf("ok: %d tasks, each done once; %v without moves, %v with %d (ratio %.2f); the end was decision %s\n",
		f.members*f.tasks, without.took.Round(time.Millisecond), with.took.Round(time.Millisecond), with.received,
		with.took.Seconds()/without.took.Seconds(), with.end)
	return nil
}

// tasksOf are those that a member begins with: the same for the same seed.
func tasksOf(f *flags) []task {
	random := rand.New(rand.NewPCG(f.seed, uint64(f.index))) //nolint:gosec // It is to be repeatable.
	list := make([]task, f.tasks)
	for i := range list {
		list[i] = task{f.index*f.tasks + i, 1 + 4*random.Float64()}
	}
	return list
}

// outcome is what a run came to.
type outcome struct {
	took     time.Duration // from the first global state to the end
	received int
	end      string // the decision that all is done
}

// once runs all members with a strategy.
func once(ctx context.Context, f *flags, strategy string) (*outcome, error) {
	server, err := embedded.Start(embedded.Options{}) //nolint:contextcheck // It lives until Close.
	if err != nil {
		return nil, err
	}
	defer server.Close()
	src, err := configs.Files.ReadFile("pool.yaml")
	if err != nil {
		return nil, err
	}
	src = bytes.Replace(src, []byte("strategy: pegasus"), []byte("strategy: "+strategy), 1)
	cfg, err := synchronizer.ParseConfig("pool.yaml", src, synchronizer.Members("pools", f.members))
	if err != nil {
		return nil, err
	}
	var seen observer
	opt := synchronizer.Options{Observe: seen.observe}
	if f.journal != "" && strategy != "none" {
		file, err := os.Create(f.journal)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // Each line is written before it counts.
		opt.Journal = file
	}
	s, err := synchronizer.Start(ctx, server.URL(), cfg, opt)
	if err != nil {
		return nil, err
	}
	results, err := crew(ctx, f, server.URL())
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	out, err := seen.outcome(f, results)
	if err == nil && uint64(out.received) > s.Stats().Moves { //nolint:gosec // It is no negative number.
		err = fmt.Errorf("%d tasks were moved, and %d moves ordered", out.received, s.Stats().Moves)
	}
	return out, err
}

// crew runs the members to their end.
func crew(ctx context.Context, f *flags, url string) ([]result, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	results, errs := make([]result, f.members), make([]error, f.members)
	for i := range f.members {
		cmd := exec.CommandContext(ctx, program, "-url", url, "-name", "w"+strconv.Itoa(i+1), "-index", strconv.Itoa(i), //nolint:gosec // It is this program.
			"-slow", strconv.Itoa(1<<i), "-tasks", strconv.Itoa(f.tasks), "-seed", strconv.FormatUint(f.seed, 10), "-batch", f.batch.String())
		cmd.Stderr = os.Stderr
		all.Go(func() {
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &results[i])
			}
			if errs[i] = err; err != nil {
				cancel() // The others would wait for it.
			}
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// observer notes when the work began and ended.
type observer struct {
	mu         sync.Mutex
	begun, end time.Time
	decision   string
}

func (o *observer) observe(e monitor.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := e.(type) {
	case monitor.Epoch:
		if o.begun.IsZero() {
			o.begun = time.Now()
		}
	case monitor.Verdict:
		if e.Fired && e.Predicate == "done" {
			o.end, o.decision = time.Now(), e.Decision.String()
		}
	}
}

// outcome checks that each task was done once.
func (o *observer) outcome(f *flags, results []result) (*outcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.decision == "" {
		return nil, errors.New("the end was not decided")
	}
	times := make([]int, f.members*f.tasks)
	out := outcome{took: o.end.Sub(o.begun), end: o.decision}
	for _, r := range results {
		out.received += r.Received
		for _, n := range r.Done {
			times[n]++
		}
	}
	for n, k := range times {
		if k != 1 {
			return nil, fmt.Errorf("task %d was done %d times", n, k)
		}
	}
	return &out, nil
}

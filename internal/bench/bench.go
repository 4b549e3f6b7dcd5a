package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/embedded"
)

// Program is what measures, and on what.
type Program struct {
	Command []string `json:"-"`       // starts it again as a [Worker]
	Pegasus string   `json:"pegasus"` // its version
	Machine Machine  `json:"machine"`
}

// Machine is what figures were measured on.
type Machine struct {
	CPU  string `json:"cpu,omitempty"` // the model; empty where the system does not tell it
	CPUs int    `json:"cpus"`          // logical processors
	OS   string `json:"os"`            // GOOS
	Arch string `json:"arch"`          // GOARCH
	Go   string `json:"go"`            // the release
}

// ThisMachine is the machine that this process runs on.
func ThisMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil { // Elsewhere its name is left out.
		for line := range strings.Lines(string(info)) {
			if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(model)
				break
			}
		}
	}
	return m
}

// Options of a run.
type Options struct {
	Program

	Rounds int           // how often each leg takes its turn
	Leg    time.Duration // how long one turn is
}

// grace is what a run may take beside its legs: processes start, members join.
const grace = time.Minute

// Limit is when a run with these options is given up. With the defaults of the
// command it is under 40 s.
func (o Options) Limit() time.Duration {
	const turns = 4 + 2 + 2 + 2 + 1 // reports, signals, those with a probe near and apart, threads
	return time.Duration(o.Rounds*turns)*o.Leg + grace
}

// Ratio is a figure of the framework over the same of bare NATS. Legs of the same round make a
// pair: the ratio is the median of the pairs'.
type Ratio struct {
	Ratio   float64 `json:"ratio"`
	Least   float64 `json:"least"`   // of the pairs' ratios
	Most    float64 `json:"most"`    // of them
	Pegasus float64 `json:"pegasus"` // the median of its legs
	Bare    float64 `json:"bare"`    // of the legs of bare NATS
	// Processor time of all processes, in nanoseconds, for each state, message or round
	// trip, the medians of the legs. 0 where the system does not tell it.
	PegasusCPU float64 `json:"pegasus_cpu_ns"`
	BareCPU    float64 `json:"bare_cpu_ns"` // the same of bare NATS
}

// Percentiles are of a latency, in microseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Result is what a run has measured. Rates are in reports, or bare messages, a
// second; latencies in microseconds.
type Result struct {
	Program

	Rounds int    `json:"rounds"` // of the options
	Leg    string `json:"leg"`    // likewise, such as 300ms
	// Reports is the rate of messages with one report each, Batched that of reports
	// in messages of 64, both against bare messages of the size of the former, over as
	// many connections; OneConnection is Reports against bare messages over one.
	Reports       Ratio `json:"reports_ratio"`
	OneConnection Ratio `json:"reports_one_connection_ratio"`
	Batched       Ratio `json:"batched_ratio"`
	// States a message, as the synchronizers have counted both: messages one by one, and
	// in batches. Messages that only answer, or say that a state lasts, count as well.
	ReportsMessage float64 `json:"reports_states_per_message"`
	BatchedMessage float64 `json:"batched_states_per_message"`
	// Signal is the time from a change of state to the handler of the signal that
	// follows, by way of a synchronizer in another process, against the round trip
	// of bare messages of the same sizes between the same processes. Probe is the
	// same with a second member whose open state has to be asked after, in the same
	// process; Apart with that member in a third one.
	SignalP50 Ratio `json:"signal_p50_ratio"`
	SignalP99 Ratio `json:"signal_p99_ratio"`
	ProbeP50  Ratio `json:"probe_p50_ratio"`
	ApartP50  Ratio `json:"probe_apart_p50_ratio"`
	// ThreadSignal is the time from the change of a thread's state to the handler in
	// another thread of the process, which computes and checks its region.
	ThreadSignal Percentiles `json:"thread_signal_us"`
	// Nanoseconds of a Check with nothing to do, of a plain atomic load, and of a stamp of the
	// system's clock.
	Check      float64 `json:"check_ns"`
	AtomicLoad float64 `json:"atomic_load_ns"`
	Stamp      float64 `json:"stamp_ns"`
	// Allocs is how often memory is allocated for one report on its whole way, NATS
	// left out, as testing.AllocsPerRun counts.
	Allocs float64 `json:"allocs_per_report"`
}

// Run measures everything.
func Run(ctx context.Context, o Options) (*Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit(), fmt.Errorf("the machine did not get through it within %v: end what else runs on it", o.Limit()))
	defer cancel()
	r, err := run(ctx, o)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

func run(ctx context.Context, o Options) (r *Result, err error) {
	server, err := embedded.Start(embedded.Options{}) //nolint:contextcheck // The server is closed, not cancelled.
	if err != nil {
		return nil, err
	}
	defer server.Close()
	echo, err := newResponder(server.URL())
	if err != nil {
		return nil, err
	}
	defer echo.close()
	b := &bench{Options: o, url: server.URL(), echo: echo}
	for _, p := range []**Process{&b.worker, &b.apart} {
		if *p, err = Start(ctx, o.Command); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, (*p).End()) }()
	}
	r = &Result{Program: o.Program, Rounds: o.Rounds, Leg: o.Leg.String()}
	if _, err := b.worker.call(ctx, request{Op: opConnect, URL: b.url, Members: reporters}); err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context, *Result) error{b.rates, b.signals, b.threads} {
		if err := measure(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Stamp = stampCost()
	r.Allocs, err = reportAllocs(ctx, b.url)
	return r, err
}

// bench is a run.
type bench struct {
	Options

	url    string
	echo   *responder
	worker *Process
	apart  *Process // with a silent member
}

// legs has the worker run each of the requests in turn, Rounds times, after one
// turn that nobody counts, and returns the figures of each, leg by leg.
func (b *bench) legs(ctx context.Context, requests ...request) ([][]figures, error) {
	all := make([][]figures, len(requests))
	for round := -1; round < b.Rounds; round++ {
		for i, q := range requests {
			q.Time = b.Leg
			if round < 0 {
				q.Time = b.Leg / 5
			}
			before, err := b.spent(ctx)
			if err != nil {
				return nil, err
			}
			f, err := b.worker.call(ctx, q)
			if err != nil {
				return nil, err
			}
			after, err := b.spent(ctx)
			if err != nil {
				return nil, err
			}
			f.CPU = float64(after-before) / float64(max(f.Count, 1))
			if round >= 0 {
				all[i] = append(all[i], f)
			}
		}
	}
	return all, nil
}

// spent is the processor time of all processes so far.
func (b *bench) spent(ctx context.Context) (time.Duration, error) {
	near, err1 := b.worker.call(ctx, request{Op: opSpent})
	apart, err2 := b.apart.call(ctx, request{Op: opSpent})
	return Used() + time.Duration(near.CPU+apart.CPU), errors.Join(err1, err2)
}

// middle is the median of a figure over the legs.
func middle(legs []figures, figure func(figures) float64) float64 {
	values := make([]float64, len(legs))
	for i, f := range legs {
		values[i] = figure(f)
	}
	return median(values)
}

// median sorts the values.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// over compares one figure of legs that have taken turns.
func over(pegasus, bare []figures, figure func(figures) float64) Ratio {
	pairs := make([]float64, len(pegasus))
	for i := range pairs {
		pairs[i] = figure(pegasus[i]) / figure(bare[i])
	}
	return Ratio{
		Ratio: median(pairs), Least: slices.Min(pairs), Most: slices.Max(pairs),
		Pegasus: middle(pegasus, figure), Bare: middle(bare, figure), PegasusCPU: middle(pegasus, cpu), BareCPU: middle(bare, cpu),
	}
}

func rate(f figures) float64 { return f.Rate }
func p50(f figures) float64  { return f.P50 }
func p99(f figures) float64  { return f.P99 }
func cpu(f figures) float64  { return f.CPU }

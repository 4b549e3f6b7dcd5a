package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/embedded"
)

// Options of a run. Rounds is how often each leg takes its turn, Leg how long one
// turn is. Command starts this program again as a [Worker].
type Options struct {
	Rounds  int
	Leg     time.Duration
	Command []string
}

// grace is what a run may take beside its legs: processes start, members join.
const grace = time.Minute

// Limit is when a run with these options is given up. With the defaults of the
// command it is under 40 s.
func (o Options) Limit() time.Duration {
	const turns = 3 + 2 + 2 + 1 // reports, signals, signals with a probe, threads
	return time.Duration(o.Rounds*turns)*o.Leg + grace
}

// Ratio is a figure of the product over the same of bare NATS: the medians of
// their legs.
type Ratio struct {
	Ratio   float64 `json:"ratio"`
	Product float64 `json:"product"`
	Raw     float64 `json:"raw"`
}

// Percentiles are of a latency, in microseconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Result is what a run has measured. Rates are in reports, or bare messages, a
// second; latencies in microseconds.
type Result struct {
	// Reports is the rate of messages with one report each, Batched that of reports
	// in messages of 64, both against bare messages of the size of the former.
	Reports Ratio `json:"reports_ratio"`
	Batched Ratio `json:"batched_ratio"`
	// Signal is the time from a change of state to the handler of the signal that
	// follows, by way of a synchronizer in another process, against the round trip
	// of bare messages of the same sizes between the same processes. Probe is the
	// same with a second member whose open state has to be asked after.
	SignalP50 Ratio `json:"signal_p50_ratio"`
	SignalP99 Ratio `json:"signal_p99_ratio"`
	ProbeP50  Ratio `json:"probe_p50_ratio"`
	// ThreadSignal is the time from the change of a thread's state to the handler in
	// another thread of the process, which computes and checks its region.
	ThreadSignal Percentiles `json:"thread_signal_us"`
	// Nanoseconds of one Check with nothing to do, of a plain atomic load, and of a
	// stamp of the system's clock.
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
	p, err := start(ctx, o.Command)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	b := &bench{Options: o, url: server.URL(), echo: echo, worker: p}
	r = &Result{}
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
	worker *process
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
			f, err := b.worker.call(ctx, q)
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				all[i] = append(all[i], f)
			}
		}
	}
	return all, nil
}

// middle is the median of one figure over the legs.
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

func over(product, raw []figures, figure func(figures) float64) Ratio {
	p, r := middle(product, figure), middle(raw, figure)
	return Ratio{Ratio: p / r, Product: p, Raw: r}
}

func rate(f figures) float64 { return f.Rate }
func p50(f figures) float64  { return f.P50 }
func p99(f figures) float64  { return f.P99 }

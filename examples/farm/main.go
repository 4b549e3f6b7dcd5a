// Farm: independent calls of unequal cost on several processes (ALDY, section 5.1). The cost of a call
// is known, so the longest run first. The work is calibrated sleep, so that more processes than processors
// do more. The baseline is a static split: as many calls for each process, one after the other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

func main() {
	calls := flag.Int("calls", 100, "`N` calls of 1 to 10 tenths of a second")
	weights := flag.String("weights", "", "the tenths of a second of each call instead, such as 1,2,10")
	crew.Main(&crew.Program{
		Name: "farm", Processes: 10, Section: "{slots: 1, order: -weight, strategy: {kind: chunk, cut: ss}}",
		Functions: []work.Option{work.Func("call", call)},
		Job: func(seed uint64) (*crew.Job, error) {
			costs, err := costsOf(*weights, *calls, seed)
			if err != nil {
				return nil, err
			}
			return &crew.Job{
				Put: func(ctx context.Context, s *work.Space) error { return put(ctx, s, costs) },
				Part: func(s *work.Space) float64 {
					stats := s.Stats()
					return 1 - float64(stats.Open)/float64(len(costs))
				},
				Read: func(ctx context.Context, c *crew.Crew) (*crew.Report, error) { return read(ctx, c, costs) },
			}, nil
		},
	})
}

// call takes as long as it is told, and returns that.
func call(ctx context.Context, cost time.Duration) (time.Duration, error) {
	return cost, crew.Sleep(ctx, cost)
}

func put(ctx context.Context, s *work.Space, costs []time.Duration) error {
	for i, cost := range costs {
		if err := s.Put(ctx, "call", cost, work.ID("call/%d", i), work.Weight(cost.Seconds())); err != nil {
			return err
		}
	}
	return nil
}

func read(ctx context.Context, c *crew.Crew, costs []time.Duration) (*crew.Report, error) {
	var sum, done time.Duration
	for _, cost := range costs {
		sum += cost
	}
	stop := c.Watch()
	n := 0
	for r, err := range work.Results[time.Duration](ctx, c.Space, "call", c.Of...) {
		if err != nil {
			stop()
			return nil, err
		}
		n++
		done += r.Value
	}
	took := stop()
	if n != len(costs) || done != sum {
		return nil, fmt.Errorf("%d results of %d calls, %v of %v done", n, len(costs), done, sum)
	}
	bound := max(slices.Max(costs), sum/time.Duration(c.Processes))
	return &crew.Report{Took: took, Bound: bound, Result: n, Text: fmt.Sprintf("%d calls, each recorded once; a static split takes %v", n, split(costs, c.Processes))}, nil
}

// split is how long the calls take if each process has as many of them.
func split(costs []time.Duration, processes int) time.Duration {
	times := make([]time.Duration, processes)
	for i, cost := range costs {
		times[i*processes/len(costs)] += cost
	}
	return slices.Max(times)
}

// costsOf are those that are given, or random ones.
func costsOf(weights string, calls int, seed uint64) ([]time.Duration, error) {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	var costs []time.Duration
	if weights == "" {
		for range calls {
			costs = append(costs, time.Duration(1+random.IntN(10))*100*time.Millisecond)
		}
	} else {
		for text := range strings.SplitSeq(weights, ",") {
			w, err := strconv.ParseFloat(text, 64)
			if err != nil || !(w >= 0 && w <= 36000) {
				return nil, fmt.Errorf("-weights: %q is no number of tenths of a second, from 0 to 36000", text)
			}
			costs = append(costs, time.Duration(w*float64(100*time.Millisecond)))
		}
	}
	if len(costs) == 0 {
		return nil, errors.New("-calls: run at least one")
	}
	return costs, nil
}

// Assembly: parts pass three stages, each a function that other processes serve (CORD, section 3.3). The program is the same in
// all runs. The section work of the configuration makes it a sequence of calls, a pipeline, or a pipeline whose slowest stage
// two processes serve. The stages are calibrated sleep, so that more processes than processors do more.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

// configuration is a section work.
type configuration struct{ name, section string }

var configurations = []configuration{
	{"sync", "{slots: 1, calls: {cut: {style: sync, replicas: [w2]}, weld: {style: sync, replicas: [w3]}, paint: {style: sync, replicas: [w4]}}}"},
	{"async", "{slots: 1, calls: {cut: {style: async, replicas: [w2]}, weld: {style: async, replicas: [w3]}, paint: {style: async, replicas: [w4]}}}"},
	{"demand", `{slots: 1, calls: {cut: {style: "async-demand(4:8)", replicas: [w2]}, weld: {style: async, replicas: [w3, w5]}, paint: {style: async, replicas: [w4]}}}`},
}

// leastRatio is how many times as fast the last configuration has to be as the first one.
const leastRatio = 2

// options are the flags.
type options struct {
	parts int
	pause time.Duration // of a short stage; weld takes twice as long
	name  string        // of the configuration; empty: compare them
}

func main() {
	var o options
	flag.IntVar(&o.parts, "parts", 200, "`N` parts")
	flag.DurationVar(&o.pause, "pause", 10*time.Millisecond, "how long cutting a part takes, and painting it; welding takes twice as long")
	flag.StringVar(&o.name, "config", "", "run only the configuration `NAME`: sync, async or demand; without it all run, and are compared")
	crew.Main(&crew.Program{
		Name: "assembly", Processes: 5,
		Functions: []work.Option{work.Server("cut", o.cut), work.Server("weld", o.weld), work.Server("paint", o.paint)},
		Job:       func(uint64) (*crew.Job, error) { return o.job() },
	})
}

func (o *options) job() (*crew.Job, error) {
	if o.parts < 1 || o.parts > 1_000_000 || o.pause <= 0 {
		return nil, errors.New("-parts, -pause: give 1 to 1000000 parts, and a time above 0")
	}
	if o.name == "" {
		return &crew.Job{Least: 5, Compare: o.compare}, nil
	}
	for _, c := range configurations {
		if c.name == o.name {
			return &crew.Job{Section: c.section, Least: 5, Read: o.read}, nil
		}
	}
	return nil, fmt.Errorf("-config %s: use sync, async or demand", o.name)
}

// read makes all parts. The first process serves nothing.
func (o *options) read(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
	cut, weld, paint := work.Client[int, []byte](c.Space, "cut"), work.Client[[]byte, []byte](c.Space, "weld"), work.Client[[]byte, string](c.Space, "paint")
	parts := make([]*work.Call[string], o.parts)
	for i := range parts {
		parts[i] = paint.Then(ctx, weld.Then(ctx, cut.Go(ctx, i)))
	}
	hash := sha256.New()
	for i, p := range parts {
		label, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if right := painted(welded(blank(i))); label != right {
			return nil, fmt.Errorf("part %d is %q instead of %q", i, label, right)
		}
		_, _ = hash.Write([]byte(label)) // It does not fail.
	}
	return &crew.Report{
		Took: c.Elapsed(), Bound: time.Duration(o.parts) * 4 * o.pause / time.Duration(c.Processes-1),
		Result: hex.EncodeToString(hash.Sum(nil)), Text: fmt.Sprintf("%s: %d parts, each of them right", o.name, o.parts),
	}, nil
}

func (o *options) cut(ctx context.Context, part int) ([]byte, error) {
	return blank(part), crew.Sleep(ctx, o.pause)
}

func (o *options) weld(ctx context.Context, part []byte) ([]byte, error) {
	return welded(part), crew.Sleep(ctx, 2*o.pause)
}

func (o *options) paint(ctx context.Context, part []byte) (string, error) {
	return painted(part), crew.Sleep(ctx, o.pause)
}

func blank(part int) []byte { return fmt.Appendf(nil, "part %d", part) }

func welded(part []byte) []byte {
	sum := sha256.Sum256(part)
	return append(slices.Clip(part), sum[:8]...)
}

func painted(part []byte) string { return hex.EncodeToString(part) }

// compare runs all configurations. They must have the same result, and the last one must be faster.
func (o *options) compare(ctx context.Context) (object any, text string, err error) {
	seconds, result := map[string]float64{}, ""
	var lines strings.Builder
	for _, c := range configurations {
		r, err := crew.Again(ctx, "-config", c.name)
		if err != nil {
			return nil, "", err
		}
		if result != "" && r.Result != result {
			return nil, "", fmt.Errorf("configuration %s: its result differs from the result of the configuration before", c.name)
		}
		seconds[c.name], result = r.Seconds, r.Result
		fmt.Fprintf(&lines, "%-6s %6.2f s, %.2f of the possible speed  %s\n", c.name, r.Seconds, r.Efficiency, c.section)
	}
	ratio, err := judge(seconds["sync"], seconds["demand"])
	if err != nil {
		return nil, "", err
	}
	fmt.Fprintf(&lines, "ok: the results are equal; demand is %.2f times as fast as sync\n", ratio)
	return map[string]any{"name": "assembly", "seconds": seconds, "ratio": ratio, "parts": o.parts, "result": result}, lines.String(), nil
}

// judge returns how many times as fast the configuration demand is as sync.
func judge(sync, demand float64) (ratio float64, err error) {
	if ratio = sync / demand; ratio < leastRatio {
		return 0, fmt.Errorf("configuration demand: it takes %.2f s and sync %.2f s, but it has to be %d times as fast: run more parts, or look at what else the machine does", demand, sync, leastRatio)
	}
	return ratio, nil
}

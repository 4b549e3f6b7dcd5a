// Assembly is examples/assembly as a program that waits for each call at once.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

// section gives each stage servers of its own.
const section = `{slots: 1, calls: {cut: {style: async, replicas: [w2]}, weld: {style: async, replicas: [w3, w5]}, paint: {style: async, replicas: [w4]}}}`

// options are the flags.
type options struct {
	parts int
	pause time.Duration // of a short stage; weld takes twice as long
}

func main() {
	var o options
	flag.IntVar(&o.parts, "parts", 200, "`N` parts")
	flag.DurationVar(&o.pause, "pause", 10*time.Millisecond, "how long cutting a part takes, and painting it; welding takes twice as long")
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
	return &crew.Job{Section: section, Least: 5, Read: o.read}, nil
}

// read makes all parts. The first process serves nothing.
func (o *options) read(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
	cut, weld, paint := work.Client[int, []byte](c.Space, "cut"), work.Client[[]byte, []byte](c.Space, "weld"), work.Client[[]byte, string](c.Space, "paint")
	labels := make([]string, o.parts)
	for i := range o.parts {
		raw, err := cut.Go(ctx, i).Wait(ctx)
		if err != nil {
			return nil, err
		}
		whole, err := weld.Go(ctx, raw).Wait(ctx)
		if err != nil {
			return nil, err
		}
		label, err := paint.Go(ctx, whole).Wait(ctx)
		if err != nil {
			return nil, err
		}
		labels[i] = label
	}
	hash := sha256.New()
	for i, label := range labels {
		if right := painted(welded(blank(i))); label != right {
			return nil, fmt.Errorf("part %d is %q instead of %q", i, label, right)
		}
		_, _ = hash.Write([]byte(label)) // It does not fail.
	}
	return &crew.Report{
		Took: c.Elapsed(), Bound: time.Duration(o.parts) * 4 * o.pause / time.Duration(c.Processes-1),
		Result: hex.EncodeToString(hash.Sum(nil)), Text: fmt.Sprintf("%d parts, each of them right", o.parts),
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

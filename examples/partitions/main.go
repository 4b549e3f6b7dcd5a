// Partitions: a data structure of 100 partitions on 10 servers, and 10,000 accesses of which some partitions get far
// more than others (ALDY, section 5.2). A partition is an object, an access is a message to it, and the work is
// calibrated sleep. Accesses come at random times, at a rate that the servers could serve together. The baseline is
// a static map, on which the same accesses run first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

func main() {
	var j job
	flag.IntVar(&j.parts, "partitions", 100, "`N` partitions")
	flag.IntVar(&j.accesses, "accesses", 10_000, "`N` accesses")
	flag.DurationVar(&j.cost, "cost", 8*time.Millisecond, "`TIME` of an access")
	flag.BoolVar(&j.baseline, "baseline", true, "run them on a static map first")
	crew.Main(&crew.Program{
		Name: "partitions", Processes: 10, Section: section,
		Functions: []work.Option{
			work.Object("part", newPart), work.On("part", "access", serve), work.On("part", "report", report), work.Func("tally", tally),
		},
		Job: func(seed uint64) (*crew.Job, error) {
			if j.parts < 1 || j.parts > 1000 || j.accesses < 1 || j.accesses > 1_000_000 || j.cost < 0 || j.cost > time.Second {
				return nil, errors.New("-partitions, -accesses, -cost: use 1 to 1000 partitions, 1 to 1000000 accesses, and at most 1s for one")
			}
			j.seed = seed
			return &crew.Job{Part: j.part, Read: j.read}, nil
		},
	})
}

// section has a server ask if it was busy for less than 60 % of the last half second, and give if it was for more than 90 %.
const section = `{slots: 1, objects: {stay: 10s}, strategy: {kind: receiver, below: "avg(0.6, 0.5)", from: "avg(0.9, 0.5)", again: 20ms, longest: 100ms}}`

// job is all accesses, twice: first on the static map.
type job struct {
	parts, accesses int
	cost            time.Duration
	seed            uint64
	baseline        bool
	sent            atomic.Int64 // accesses to the moving set
}

// Access is a message.
type Access struct {
	Number int           // of all accesses to that partition
	Due    int64         // when it came, in Unix nanoseconds
	Cost   time.Duration // how long it takes
}

// Part is the state of a partition.
type Part struct {
	ID     string   // set and number
	Served int      // accesses
	Digest uint64   // of the numbers, in the order in which they were served
	Waits  Waits    // from the time an access came until it was served
	Last   int64    // when the last access was served, in Unix nanoseconds
	Places []string // the servers, in order
}

func newPart(_ context.Context, id string) (*Part, error) { return &Part{ID: id, Waits: Waits{}}, nil }

func serve(ctx context.Context, p *Part, a Access) error {
	if here := work.SpaceOf(ctx).Member(); len(p.Places) == 0 || p.Places[len(p.Places)-1] != here {
		p.Places = append(p.Places, here)
	}
	if err := crew.Sleep(ctx, a.Cost); err != nil {
		return err
	}
	p.count(a.Number)
	p.Last = time.Now().UnixNano()
	p.Waits.add(time.Duration(p.Last - a.Due))
	return nil
}

func (p *Part) count(number int) {
	p.Served++
	p.Digest = p.Digest*0x9e3779b97f4a7c15 + uint64(number) + 1 //nolint:gosec // It is not below 0.
}

// report has the state read by the process that has created the partition.
func report(ctx context.Context, p *Part, _ int) error {
	return work.SpaceOf(ctx).Put(ctx, "tally", *p, work.ID("tally/%s", p.ID))
}

func tally(_ context.Context, p Part) (Part, error) { return p, nil }

// Waits is how many accesses took how long, in steps of a tenth.
type Waits map[int]int

const step = 1.1

func (w Waits) add(d time.Duration) {
	w[int(math.Ceil(math.Log(max(1, d.Seconds()*1e6))/math.Log(step)))]++
}

// below is the time within which a part of all accesses was served.
func (w Waits) below(part float64) time.Duration {
	all, sum := 0, 0
	for _, n := range w {
		all += n
	}
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if sum += w[k]; float64(sum) >= part*float64(all) {
			return time.Duration(math.Pow(step, float64(k)) * float64(time.Microsecond))
		}
	}
	return 0
}

// The two sets of partitions.
const (
	static = "static"
	moving = "moving"
)

func id(set string, part int) string { return fmt.Sprintf("%s/%d", set, part) }

// create creates the partitions of a set, as many next to each other on each server.
func (j *job) create(ctx context.Context, c *crew.Crew, set string) error {
	for i := range j.parts {
		server := crew.Process(i * c.Processes / j.parts)
		options := []work.PutOption{work.At(server)}
		if set == moving {
			options = nil
		}
		if err := c.Space.Create(ctx, "part", id(set, i), id(set, i), options...); err != nil {
			return err
		}
		if set == moving {
			if err := c.Space.Move("part", id(set, i), server); err != nil {
				return err
			}
		}
	}
	return nil
}

// figures are what a run has come to.
type figures struct {
	P50     float64 `json:"p50"`     // seconds
	P99     float64 `json:"p99"`     // seconds
	Idle    float64 `json:"idle"`    // a part of the time of all servers
	Seconds float64 `json:"seconds"` // until the last access was served
	Moves   int     `json:"moves"`   // of partitions to another server
	Returns int     `json:"returns"` // moves to the server where the partition was before the last one
}

// run sends the accesses to a set as they come, waits, and judges the partitions.
func (j *job) run(ctx context.Context, c *crew.Crew, set string) (f figures, err error) {
	random := rand.New(rand.NewPCG(j.seed, 0)) //nolint:gosec // It is to be repeatable.
	names := random.Perm(j.parts)
	zipf := rand.NewZipf(random, zipfPower, zipfFrom, uint64(j.parts-1)) //nolint:gosec // Above 0.
	pause := j.cost.Seconds() / load / float64(c.Processes)
	want := make([]Part, j.parts)
	begun := time.Now()
	due := begun
	for range j.accesses {
		due = due.Add(time.Duration(random.ExpFloat64() * pause * float64(time.Second)))
		if err := crew.Await(ctx, due); err != nil {
			return f, err
		}
		part := names[zipf.Uint64()]
		if err := c.Space.Send(ctx, id(set, part), "access", Access{want[part].Served, due.UnixNano(), j.cost}); err != nil {
			return f, err
		}
		want[part].count(want[part].Served)
		if set == moving {
			j.sent.Add(1)
		}
	}
	for i := range want {
		if err := c.Space.Send(ctx, id(set, i), "report", 0); err != nil {
			return f, err
		}
	}
	all, last, n := Waits{}, begun.UnixNano(), 0
	for r, err := range work.Results[Part](ctx, c.Space, "tally") {
		if err != nil {
			return f, err
		}
		p := r.Value
		n++
		var i int
		if _, err := fmt.Sscanf(p.ID, set+"/%d", &i); err != nil || i < 0 || i >= j.parts || p.Served != want[i].Served || p.Digest != want[i].Digest {
			return f, fmt.Errorf("partition %s has %d accesses with the digest %x: they are not those that were sent, each once and in their order", p.ID, p.Served, p.Digest)
		}
		for k, n := range p.Waits {
			all[k] += n
		}
		last = max(last, p.Last)
		f.Moves += max(0, len(p.Places)-1)
		for k := 2; k < len(p.Places); k++ {
			if p.Places[k] == p.Places[k-2] {
				f.Returns++
			}
		}
	}
	if n != j.parts {
		return f, fmt.Errorf("%d of %d partitions have told what they have", n, j.parts)
	}
	took := time.Duration(last - begun.UnixNano())
	f.P50, f.P99, f.Seconds = all.below(0.5).Seconds(), all.below(0.99).Seconds(), took.Seconds()
	f.Idle = 1 - float64(j.accesses)*j.cost.Seconds()/(took.Seconds()*float64(c.Processes))
	return f, nil
}

const (
	zipfPower, zipfFrom = 1.01, 2 // of 100 partitions, the first gets an eighth of the accesses
	load                = 0.65    // of all servers: so one server can serve the first partition and not much more
)

// part is which part of the accesses to the moving set was served.
func (j *job) part(s *work.Space) float64 {
	sent := int(j.sent.Load())
	return float64(max(0, sent-s.Stats().Open)) / float64(j.accesses)
}

func (j *job) read(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
	if err := errors.Join(j.create(ctx, c, static), j.create(ctx, c, moving)); err != nil {
		return nil, err
	}
	var still figures
	var err error
	if j.baseline {
		if still, err = j.run(ctx, c, static); err != nil {
			return nil, err
		}
	}
	stop := c.Watch()
	moved, err := j.run(ctx, c, moving)
	stop()
	if err != nil {
		return nil, err
	}
	return &crew.Report{
		Took: time.Duration(moved.Seconds * float64(time.Second)), Bound: time.Duration(float64(j.accesses) / load / float64(c.Processes) * float64(j.cost)),
		Result: map[string]any{"served": j.accesses, static: still, moving: moved},
		Text: fmt.Sprintf("%d accesses to %d partitions, each served once and in order; p99 %.0f ms and %.0f %% idle, with a static map %.0f ms and %.0f %%; %d moves of partitions, %d back",
			j.accesses, j.parts, moved.P99*1e3, moved.Idle*100, still.P99*1e3, still.Idle*100, moved.Moves, moved.Returns),
	}, nil
}

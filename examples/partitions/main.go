// Partitions: objects that serve accesses, of which a few get most (ALDY, section 5). Partition i gets accesses in
// proportion to 1/(i+1), which is Zipf's law, at even distances in time. An access is calibrated sleep. The baseline is a
// static map, measured first in the same run with store: memory: the same accesses to partitions that are bound to members.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

// Access is one access to a partition.
type Access struct {
	Number int           // from 0
	Due    int64         // when it is sent, in microseconds
	Cost   time.Duration // how long it takes
}

// Part is the state of a partition.
type Part struct {
	Served int            // accesses
	Sum    uint64         // of hashes of the numbers of what it served
	Trail  []string       // members that it was at, in their order
	Late   map[int]uint32 // how many accesses ended so long after Due, by classOf
}

// Told is the state of a partition at the end.
type Told struct {
	Kind string // part or fixed
	ID   int    // of the partition
	Part        // as it is
}

func newPart(_ context.Context, _ int) (*Part, error) { return &Part{Late: map[int]uint32{}}, nil }

func access(ctx context.Context, p *Part, a Access) error {
	if err := crew.Work(ctx, a.Cost); err != nil {
		return err
	}
	if name, _ := crew.Own(); len(p.Trail) == 0 || p.Trail[len(p.Trail)-1] != name {
		p.Trail = append(p.Trail, name)
	}
	p.Served++
	p.Sum += hash(a.Number)
	p.Late[classOf(time.Now().UnixMicro()-a.Due)]++
	return nil
}

// tell puts a task whose result is the state of the partition, and ends it.
func tell(ctx context.Context, p *Part, t Told) error {
	_, s := crew.Own()
	t.Part = *p
	work.End(ctx)
	return s.Put(ctx, "told", t)
}

func told(_ context.Context, t Told) (Told, error) { return t, nil }

func hash(n int) uint64 {
	return rand.New(rand.NewPCG(uint64(n), 0)).Uint64() //nolint:gosec // It is to be repeatable.
}

// classOf is the class of a latency in microseconds; each ends 2 % above the one before. latencyOf is that end.
func classOf(us int64) int { return int(math.Ceil(math.Log(float64(max(us, 1))) / math.Log(1.02))) }

func latencyOf(class int) time.Duration { return time.Duration(math.Pow(1.02, float64(class)) * 1000) }

// load is what the partitions are to serve.
type load struct {
	partitions int
	of         []int // the partition of each access
	cost, over time.Duration
}

func loadOf(partitions, accesses int, cost, over time.Duration, seed uint64) (*load, error) {
	if partitions < 1 || partitions > 10_000 || accesses < 1 || accesses > 10_000_000 || cost < 0 || over < 0 {
		return nil, fmt.Errorf("-partitions %d -accesses %d -cost %v -over %v: use 1 to 10000, 1 to 10000000, and no negative time", partitions, accesses, cost, over)
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	upTo, sum := make([]float64, partitions), 0.0
	for i := range upTo {
		sum += 1 / float64(i+1)
		upTo[i] = sum
	}
	l := &load{partitions, make([]int, accesses), cost, over}
	for i := range l.of {
		at, _ := slices.BinarySearch(upTo, random.Float64()*sum)
		l.of[i] = min(at, partitions-1)
	}
	return l, nil
}

// create creates the partitions; with processes each is bound to one.
func (l *load) create(ctx context.Context, s *work.Space, kind string, processes int) error {
	for p := range l.partitions {
		options := []work.PutOption{work.Group(kind)}
		if processes > 0 {
			options = append(options, work.At("w"+strconv.Itoa(1+p%processes)))
		}
		if err := s.Create(ctx, kind, p, 0, options...); err != nil {
			return err
		}
	}
	return nil
}

// send sends the accesses, each when it is due, and then has the partitions tell their states.
func (l *load) send(ctx context.Context, s *work.Space, kind string) error {
	begun := time.Now()
	for i, p := range l.of {
		due := begun.Add(time.Duration(float64(l.over) * float64(i) / float64(len(l.of))))
		if wait := time.Until(due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		}
		if err := s.Send(ctx, p, "access "+kind, Access{i, due.UnixMicro(), l.cost}, work.ID("%s/access/%d", kind, i)); err != nil {
			return err
		}
	}
	for p := range l.partitions {
		if err := s.Send(ctx, p, "tell "+kind, Told{Kind: kind, ID: p}, work.ID("%s/tell/%d", kind, p)); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what a run of the load has come to.
type outcome struct {
	took, p99, idle time.Duration
	moves, returns  int
}

// read reads the states, and checks that each partition has counted each of its accesses once.
func (l *load) read(ctx context.Context, c *crew.Crew, kind string, begun time.Time) (*outcome, error) {
	want := make([]Part, l.partitions)
	for i, p := range l.of {
		want[p].Served++
		want[p].Sum += hash(i)
	}
	o, late, seen := &outcome{}, map[int]uint32{}, map[int]bool{}
	for r, err := range work.Results[Told](ctx, c.Space, "told", c.Of...) {
		if err != nil {
			return nil, err
		}
		t := &r.Value
		if t.ID < 0 || t.ID >= l.partitions || t.Kind != kind || seen[t.ID] || t.Served != want[t.ID].Served || t.Sum != want[t.ID].Sum {
			return nil, fmt.Errorf("partition %d of the kind %s has counted %d accesses with the sum %x, and other ones were sent", t.ID, t.Kind, t.Served, t.Sum)
		}
		o.took = time.Since(begun)
		seen[t.ID] = true
		o.moves += max(0, len(t.Trail)-1)
		for i := range t.Trail {
			if i > 1 && t.Trail[i] == t.Trail[i-2] {
				o.returns++
			}
		}
		for class, n := range t.Late {
			late[class] += n
		}
	}
	if len(seen) != l.partitions {
		return nil, fmt.Errorf("%d of %d partitions have told their states", len(seen), l.partitions)
	}
	o.p99 = latencyOf(percentile(late, len(l.of), 0.99))
	o.idle = time.Duration(c.Processes)*o.took - time.Duration(len(l.of))*l.cost
	return o, nil
}

// percentile is the class in which a part of all ends.
func percentile(late map[int]uint32, all int, part float64) (class int) {
	left := int(math.Ceil(part * float64(all)))
	list := make([]int, 0, len(late))
	for class := range late {
		list = append(list, class)
	}
	slices.Sort(list)
	for _, class = range list {
		if left -= int(late[class]); left <= 0 {
			break
		}
	}
	return class
}

func main() {
	partitions := flag.Int("partitions", 100, "`N` partitions")
	accesses := flag.Int("accesses", 10_000, "`N` accesses")
	cost := flag.Duration("cost", 2*time.Millisecond, "how long an access takes")
	over := flag.Duration("over", 5*time.Second, "send the accesses at even distances over this time")
	var options []work.Option
	for _, kind := range []string{"part", "fixed"} {
		options = append(options, work.Object(kind, newPart), work.On(kind, "access "+kind, access), work.On(kind, "tell "+kind, tell))
	}
	crew.Main(&crew.Program{
		Name: "partitions", Processes: 10, Section: "{slots: 1}", Functions: append(options, work.Func("told", told)),
		Job: func(seed uint64) (*crew.Job, error) {
			l, err := loadOf(*partitions, *accesses, *cost, *over, seed)
			if err != nil {
				return nil, err
			}
			begun := time.Now()
			return &crew.Job{
				Put: func(ctx context.Context, s *work.Space) error {
					begun = time.Now()
					return l.create(ctx, s, "part", 0)
				},
				Part: func(*work.Space) float64 { return min(time.Since(begun).Seconds()/over.Seconds(), 0.99) },
				Read: func(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
					static, err := l.baseline(ctx, c)
					if err != nil {
						return nil, err
					}
					begun = time.Now()
					return l.measure(ctx, c, static)
				},
			}, nil
		},
	})
}

// baseline serves the accesses by a static map, if nothing of a run before can be in the log. It returns nil otherwise.
func (l *load) baseline(ctx context.Context, c *crew.Crew) (*outcome, error) {
	if store := flag.Lookup("store"); store.Value.String() != "memory" {
		return nil, nil //nolint:nilnil // There is none.
	}
	begun := time.Now()
	if err := l.create(ctx, c.Space, "fixed", c.Processes); err != nil {
		return nil, err
	}
	if err := l.send(ctx, c.Space, "fixed"); err != nil {
		return nil, err
	}
	return l.read(ctx, c, "fixed", begun)
}

func (l *load) measure(ctx context.Context, c *crew.Crew, static *outcome) (*crew.Report, error) {
	begun, stop := time.Now(), c.Watch()
	err := l.send(ctx, c.Space, "part")
	var o *outcome
	if err == nil {
		o, err = l.read(ctx, c, "part", begun)
	}
	stop()
	if err != nil {
		return nil, err
	}
	most := make([]int, l.partitions)
	for _, p := range l.of {
		most[p]++
	}
	bound := max(l.over, time.Duration(slices.Max(most))*l.cost, time.Duration(len(l.of))*l.cost/time.Duration(c.Processes))
	figures := map[string]any{"p99": o.p99.Seconds(), "idle": o.idle.Seconds(), "moves": o.moves, "returns": o.returns}
	text := fmt.Sprintf("%d accesses to %d partitions, each counted once; p99 %v, idle %v, %d moves, %d of them back",
		len(l.of), l.partitions, o.p99.Round(time.Millisecond), o.idle.Round(time.Millisecond), o.moves, o.returns)
	if static != nil {
		figures["static"] = map[string]float64{"p99": static.p99.Seconds(), "idle": static.idle.Seconds(), "seconds": static.took.Seconds()}
		text += fmt.Sprintf(" (a static map: p99 %v, idle %v)", static.p99.Round(time.Millisecond), static.idle.Round(time.Millisecond))
	}
	return &crew.Report{Took: o.took, Bound: bound, Result: len(l.of), Figures: figures, Text: text}, nil
}

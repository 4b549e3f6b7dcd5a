// Blockmatch: where each block of an image lay in the image before (TDC, section 4.3). A task searches some blocks of an image, and
// reads two images, which move to the processes ahead of the tasks. The images of some frames are one phase. With -table several
// strategies run one after the other.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

func main() {
	var o options
	flag.IntVar(&o.frames, "frames", 4, "search the blocks of `N` images, each in the image before")
	flag.IntVar(&o.phase, "phase", 10, "`N` images are one phase")
	flag.IntVar(&o.blocks, "blocks", 30, "a task searches `N` blocks of an image")
	flag.StringVar(&o.strategy, "strategy", "diffusion", "`STRATEGY`: diffusion, receiver, or static, in which each process takes as many blocks at once")
	flag.IntVar(&o.window, "window", 31, "search up to `N` pixels to each side")
	flag.BoolVar(&o.calibrated, "calibrated", false, "sleep for as long as a search might take, and compare each block with one place only")
	flag.DurationVar(&o.mean, "mean", 2*time.Millisecond, "how long a search takes on average, with -calibrated")
	flag.BoolVar(&o.table, "table", false, "run all strategies, and print a table")
	crew.Main(&crew.Program{
		Name: "blockmatch", Processes: 2,
		Functions: []work.Option{work.Func("match", o.match)},
		Job:       o.job,
	})
}

// options are the flags.
type options struct {
	frames, phase, blocks, window int
	strategy                      string
	calibrated, table             bool
	mean                          time.Duration

	seed   uint64
	places [][2]int
	put    atomic.Int64 // tasks so far
}

// strategies are the values of -strategy.
var strategies = []string{"diffusion", "receiver", "static"}

// section is the section work of the configuration.
func (o *options) section() string {
	strategy := "kind: " + o.strategy
	if o.strategy == "static" {
		processes := flag.Lookup("processes").Value.(flag.Getter).Get().(int) //nolint:forcetypeassert // The package crew declares it.
		most := min(o.phase, o.frames) * o.tasks()
		strategy = fmt.Sprintf("kind: chunk, cut: css(%d)", max(1, (most+processes-1)/max(1, processes)))
	}
	return "{slots: 1, data: {cache: 64, classes: 8}, strategy: {" + strategy + "}}"
}

func (o *options) job(seed uint64) (*crew.Job, error) {
	if o.frames < 1 || o.frames > 1000 || o.phase < 1 || o.blocks < 1 || o.blocks > blocks || o.window < 0 || o.window > 255 || o.mean <= 0 {
		return nil, fmt.Errorf("-frames, -phase, -blocks, -window, -mean: give 1 to 1000 frames, at least one a phase, 1 to %d blocks, 0 to 255 pixels, and a time above 0", blocks)
	}
	if !slices.Contains(strategies, o.strategy) {
		return nil, fmt.Errorf("-strategy %s: use one of %s", o.strategy, strings.Join(strategies, ", "))
	}
	o.seed = seed
	if o.calibrated {
		o.window = 0
	}
	o.places = window(o.window)
	if o.table {
		return &crew.Job{Compare: o.compare}, nil
	}
	alone := o.runAlone
	if o.calibrated { // A process that sleeps needs no processor.
		alone = nil
	}
	return &crew.Job{
		Section: o.section(),
		Alone:   alone,
		Part: func(s *work.Space) float64 {
			put := o.put.Load() // Before the open ones, so that no task counts as recorded that is not.
			return float64(max(0, put-int64(s.Stats().Open))) / float64(o.frames*o.tasks())
		},
		Read: o.run,
	}, nil
}

// tasks is how many tasks an image has.
func (o *options) tasks() int { return (blocks + o.blocks - 1) / o.blocks }

// part is the argument of a task: blocks of an image. The last part of an image may be smaller.
type part struct{ Frame, First, Blocks int }

func (p part) id() string { return fmt.Sprintf("match/%d/%d", p.Frame, p.First) }

func name(image int) string { return fmt.Sprintf("img/%d", image) }

// match is the function of a task: it searches blocks of an image in the image before.
func (o *options) match(ctx context.Context, p part) ([]vector, error) {
	if p.Frame < 1 || p.First < 0 || p.Blocks < 1 || p.First > blocks-p.Blocks {
		return nil, fmt.Errorf("%d blocks from %d of image %d: images have blocks from 0 to %d, and numbers from 1", p.Blocks, p.First, p.Frame, blocks-1)
	}
	before, err := work.Read(ctx, name(p.Frame-1))
	if err != nil {
		return nil, err
	}
	image, err := work.Read(ctx, name(p.Frame))
	if err != nil {
		return nil, err
	}
	if err := checkImages(before, image); err != nil {
		return nil, err
	}
	vectors, cost := make([]vector, p.Blocks), time.Duration(0)
	for i := range vectors {
		vectors[i] = search(before, image, p.First+i, o.places)
		cost += o.cost(p.Frame, p.First+i)
	}
	if o.calibrated {
		return vectors, crew.Sleep(ctx, cost)
	}
	return vectors, nil
}

// cost is how long the search of a block takes with -calibrated: longer in the lower half of each image, where things move.
func (o *options) cost(frame, block int) time.Duration {
	random := rand.New(rand.NewPCG(o.seed, uint64(frame)<<32|uint64(block))) //nolint:gosec // It is to be repeatable, and match has checked it.
	share := 0.2 + 0.8*random.Float64()                                      // 0.6 on average
	if block >= blocks/2 {
		share += 0.8
	}
	return time.Duration(share * float64(o.mean))
}

// images are all images of the run.
func (o *options) images() [][]byte {
	f := newFilm(o.seed)
	images := make([][]byte, o.frames+1)
	for i := range images {
		images[i] = f.image(i)
	}
	return images
}

// runAlone searches all blocks in this process.
func (o *options) runAlone() (result any, took time.Duration, err error) {
	images := o.images()
	begun := time.Now()
	result, _, err = o.searchAll(images, nil)
	return result, time.Since(begun), err
}

// run puts and reads one phase after the other, and compares the vectors with a sequential run.
func (o *options) run(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
	images := o.images()
	vectors := map[string][]vector{}
	begun, stop := time.Now(), c.Watch()
	var err error
	for first := 1; first <= o.frames && err == nil; first += o.phase {
		err = o.runPhase(ctx, c.Space, images, first, min(first+o.phase, o.frames+1), vectors)
	}
	stop()
	took := time.Since(begun)
	if err != nil {
		return nil, err
	}
	begun = time.Now()
	digest, slept, err := o.check(images, vectors)
	if err != nil {
		return nil, err
	}
	bound := time.Since(begun) / time.Duration(min(c.Processes, runtime.NumCPU()))
	if o.calibrated {
		bound = slept / time.Duration(c.Processes)
	}
	return &crew.Report{
		Took: took, Bound: bound, Result: digest,
		Text: fmt.Sprintf("%s: %d blocks, and each vector is the same as in a sequential run", o.strategy, o.frames*blocks),
	}, nil
}

// runPhase writes the images of a phase and puts its tasks, and adds their results. Its data are dropped at its end.
func (o *options) runPhase(ctx context.Context, s *work.Space, images [][]byte, first, end int, vectors map[string][]vector) error {
	for i := first - 1; i < end; i++ {
		if err := s.Write(ctx, name(i), images[i]); err != nil {
			return err
		}
	}
	for frame := first; frame < end; frame++ {
		for first := 0; first < blocks; first += o.blocks {
			p := part{frame, first, min(o.blocks, blocks-first)}
			if err := s.Put(ctx, "match", p, work.ID("%s", p.id()), work.Reads(name(frame-1), name(frame))); err != nil {
				return err
			}
			o.put.Add(1)
		}
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	for r, err := range work.Results[[]vector](ctx, s, "match") { // They are kept until the next phase has some.
		if err != nil {
			return err
		}
		if _, twice := vectors[r.ID]; twice {
			return fmt.Errorf("the result of task %s comes twice", r.ID)
		}
		vectors[r.ID] = r.Value
	}
	return nil
}

// check searches all blocks once more, and returns the digest of their vectors if the given ones are the same; slept is how long
// all tasks sleep with -calibrated.
func (o *options) check(images [][]byte, vectors map[string][]vector) (digest string, slept time.Duration, err error) {
	n := 0
	for _, list := range vectors {
		n += len(list)
	}
	if n != o.frames*blocks {
		return "", 0, fmt.Errorf("vectors: there are %d instead of %d", n, o.frames*blocks)
	}
	return o.searchAll(images, vectors)
}

// searchAll searches all blocks one after the other, and compares the vectors with the given ones, unless these are nil.
func (o *options) searchAll(images [][]byte, vectors map[string][]vector) (digest string, slept time.Duration, err error) {
	hash := sha256.New()
	for frame := 1; frame <= o.frames; frame++ {
		for i := range blocks {
			right := search(images[frame-1], images[frame], i, o.places)
			if vectors != nil {
				list := vectors[part{Frame: frame, First: i - i%o.blocks}.id()]
				if k := i % o.blocks; k >= len(list) || list[k] != right {
					return "", 0, fmt.Errorf("block %d of image %d: the vectors %v of its task differ from %v of a sequential run", i, frame, list, right)
				}
			}
			_, _ = fmt.Fprintln(hash, right) // It does not fail.
			slept += o.cost(frame, i)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), slept, nil
}

// compare runs the program once with each strategy.
func (o *options) compare(ctx context.Context) (object any, text string, err error) {
	type line struct {
		Strategy   string  `json:"strategy"`
		Seconds    float64 `json:"seconds"`
		Efficiency float64 `json:"efficiency"`
		Moves      int64   `json:"migrations"`
	}
	var lines []line
	var table strings.Builder
	fmt.Fprintf(&table, "%-9s %7s %10s %6s\n", "strategy", "seconds", "efficiency", "moves")
	result := ""
	for _, s := range strategies {
		r, err := crew.Again(ctx, "-table=false", "-strategy", s)
		if err != nil {
			return nil, "", err
		}
		if result != "" && r.Result != result {
			return nil, "", fmt.Errorf("strategy %s: its vectors differ from the vectors of the strategy before", s)
		}
		result = r.Result
		lines = append(lines, line{s, r.Seconds, r.Efficiency, r.Migrations})
		fmt.Fprintf(&table, "%-9s %7.2f %10.2f %6d\n", s, r.Seconds, r.Efficiency, r.Migrations)
	}
	return map[string]any{"name": "blockmatch", "strategies": lines, "result": result}, table.String(), nil
}

// Queens: in how many ways can N queens stand on a board of N by N so that none attacks another? The work is a
// stack of partial boards, which is split wherever somebody has nothing to do. The baseline is a static split: one
// goroutine for each place of the first queen, as many at a time as there are processors.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

// solutions are known (OEIS A000170), from N = 1.
var solutions = []int64{1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512}

func main() {
	n := flag.Int("n", 14, "`N` queens, 1 to 16")
	crew.Main(&crew.Program{
		Name: "queens", Processes: 2, Section: "{slots: 1}",
		Functions: []work.Option{work.Bag("queens", place, func(a, b int64) int64 { return a + b })},
		Job: func(uint64) (*crew.Job, error) {
			if *n < 1 || *n > len(solutions) {
				return nil, fmt.Errorf("-n %d: write 1 to %d", *n, len(solutions))
			}
			return &crew.Job{
				Put: func(ctx context.Context, s *work.Space) error {
					return s.Put(ctx, "queens", &Boards{*n, []board{{}}}, work.ID("board"))
				},
				Part: func(s *work.Space) float64 {
					found, _ := work.Found[int64](s, "queens")
					return float64(found) / float64(max(1, solutions[*n-1]))
				},
				Read: func(ctx context.Context, c *crew.Crew) (*crew.Report, error) { return read(ctx, c, *n) },
			}, nil
		},
	})
}

// board has queens in some rows: which columns and diagonals of the next row they attack.
type board struct{ columns, left, right uint32 }

// Boards is a bag of partial boards. The last one has most queens.
type Boards struct {
	n    int
	list []board
}

// Len is how many boards there are.
func (b *Boards) Len() int { return len(b.list) }

// Split takes boards from the bottom, which have fewest queens and so most work.
func (b *Boards) Split(n int) Boards {
	part := Boards{b.n, append([]board(nil), b.list[:n]...)}
	b.list = append(b.list[:0], b.list[n:]...)
	return part
}

// Expand takes at most so many boards, sets a queen into the next row of each, and counts those that are full.
func (b *Boards) Expand(boards int, found *int64) {
	all := uint32(1)<<b.n - 1
	for ; boards > 0 && len(b.list) > 0; boards-- {
		at := b.list[len(b.list)-1]
		b.list = b.list[:len(b.list)-1]
		if at.columns == all {
			*found++
			continue
		}
		for free := all &^ (at.columns | at.left | at.right); free != 0; free &= free - 1 {
			q := free & -free
			b.list = append(b.list, board{at.columns | q, (at.left | q) << 1 & all, (at.right | q) >> 1})
		}
	}
}

// MarshalBinary writes the size and the boards.
func (b *Boards) MarshalBinary() ([]byte, error) { //nolint:unparam // encoding.BinaryMarshaler has it.
	data := []byte{byte(b.n)}
	for _, at := range b.list {
		for _, v := range []uint32{at.columns, at.left, at.right} {
			data = binary.BigEndian.AppendUint32(data, v)
		}
	}
	return data, nil
}

// UnmarshalBinary reads what MarshalBinary has written.
func (b *Boards) UnmarshalBinary(data []byte) error {
	if len(data)%12 != 1 || data[0] < 1 || int(data[0]) > len(solutions) {
		return errors.New("not a list of boards")
	}
	*b = Boards{n: int(data[0])}
	for data = data[1:]; len(data) > 0; data = data[12:] {
		b.list = append(b.list, board{binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])})
	}
	return nil
}

// place expands boards until none is left here.
func place(ctx context.Context, b *Boards, found *int64) error {
	for b.Len() > 0 {
		b.Expand(2048, found)
		if err := work.Yield(ctx); err != nil {
			return err
		}
	}
	return nil
}

func read(ctx context.Context, c *crew.Crew, n int) (*crew.Report, error) {
	want := solutions[n-1]
	stop := c.Watch()
	found, err := work.Total[int64](ctx, c.Space, "queens", c.Of...)
	took := stop()
	if err != nil {
		return nil, err
	}
	split, baseline := static(n)
	if found != want || baseline != want {
		return nil, fmt.Errorf("%d queens stand in %d ways, %d were found, and %d by a static split", n, want, found, baseline)
	}
	return &crew.Report{
		Took: took, Bound: split * time.Duration(runtime.NumCPU()) / time.Duration(min(c.Processes, runtime.NumCPU())) / time.Duration(runtime.NumCPU()), Result: found,
		Text: fmt.Sprintf("%d queens stand in %d ways, as a static split finds in %v", n, found, split.Round(time.Millisecond)),
	}, nil
}

// static is the baseline: how long it takes, and what it finds.
func static(n int) (time.Duration, int64) {
	begun := time.Now()
	var sum atomic.Int64
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for column := range n {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			q, found := uint32(1)<<column, int64(0)
			b := Boards{n, []board{{q, q << 1 & (1<<n - 1), q >> 1}}}
			if bits.OnesCount32(b.list[0].columns) == n {
				found = 1
				b.list = nil
			}
			for b.Len() > 0 {
				b.Expand(1<<20, &found)
			}
			sum.Add(found)
		})
	}
	all.Wait()
	return time.Since(begun), sum.Load()
}

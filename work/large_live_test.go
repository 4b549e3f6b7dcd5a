package work_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/work"
)

// blob is a bag whose rest has a megabyte for each item.
type blob struct{ Items [][]byte }

func (b *blob) Len() int { return len(b.Items) }

func (b *blob) Split(n int) *blob {
	part := &blob{Items: b.Items[:n]}
	b.Items = b.Items[n:]
	return part
}

func megabyte(seed int) []byte {
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i*seed + i>>8)
	}
	return data
}

// TestLarge: arguments, results, bags, states and messages of some megabytes arrive whole, in both stores.
func TestLarge(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"memory", "jetstream"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			g := newLiveStore(t, store, 2)
			type state struct{ Data, Sum []byte }
			moved := make(chan string, 16)
			options := func(name string) []work.Option {
				return []work.Option{
					work.Func("triple", func(_ context.Context, data []byte) ([]byte, error) {
						return bytes.Repeat(data, 3), nil
					}),
					work.Bag("sum", func(ctx context.Context, b *blob, n *int) error {
						for len(b.Items) > 0 {
							*n += int(b.Items[0][1])
							b.Items = b.Items[1:]
							if err := work.Yield(ctx); err != nil {
								return err
							}
						}
						return nil
					}, func(a, b int) int { return a + b }),
					work.Object("store", func(_ context.Context, seed int) (*state, error) { return &state{Data: megabyte(seed)}, nil }),
					work.On("store", "add", func(_ context.Context, s *state, data []byte) error {
						sum := sha256.Sum256(append(append([]byte(nil), s.Data...), data...))
						s.Sum = sum[:]
						moved <- fmt.Sprintf("%s %x", name, sum[:4])
						return nil
					}),
				}
			}
			list, _ := g.estateOf(options, g.direct, "a", "b")
			serveLive(t, list[1])
			ctx := limited(t)
			for i := range 4 {
				if err := list[0].Put(ctx, "triple", megabyte(i), work.ID("%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			big := &blob{}
			for i := range 4 {
				big.Items = append(big.Items, megabyte(i))
				want += int(big.Items[i][1])
			}
			if err := list[0].Put(ctx, "sum", big); err != nil {
				t.Fatal(err)
			}
			found := 0
			for r, err := range work.Results[[]byte](ctx, list[0], "triple") {
				if err != nil {
					t.Fatal(err)
				}
				var i int
				if _, err := fmt.Sscan(r.ID, &i); err != nil || !bytes.Equal(r.Value, bytes.Repeat(megabyte(i), 3)) {
					t.Errorf("the result of %s differs: %d bytes", r.ID, len(r.Value))
				}
				found++
			}
			if total, err := work.Total[int](ctx, list[0], "sum"); found != 4 || total != want || err != nil {
				t.Errorf("%d results of 4, and the sum is %d instead of %d: %v", found, total, want, err)
			}
			if err := list[0].Create(ctx, "store", 7, 7); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(append(megabyte(7), megabyte(9)...))
			for _, at := range []string{"b", "a", "b"} {
				if err := list[0].Move("store", 7, at); err != nil {
					t.Fatal(err)
				}
				if err := list[0].Send(ctx, 7, "add", megabyte(9)); err != nil {
					t.Fatal(err)
				}
				if err := list[0].Wait(ctx); err != nil {
					t.Fatal(err)
				}
				if got := <-moved; got != fmt.Sprintf("%s %x", at, sum[:4]) {
					t.Errorf("the object has %s instead of %s %x", got, at, sum[:4])
				}
			}
		})
	}
}

// TestLargeCarry: a loop carries and reduces values of a megabyte.
func TestLargeCarry(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	list, _ := g.estateOf(func(string) []work.Option { return nil }, g.direct, "a", "b")
	const words, rows, iterations = 1 << 17, 20, 3
	type vector struct{ V []int64 }
	add := func(a, b vector) vector {
		for i := range a.V {
			a.V[i] += b.V[i]
		}
		return a
	}
	run := func(s *work.Space, options ...work.LoopOption) (int64, error) {
		sum := vector{make([]int64, words)}
		for it, err := range work.Loop(s, "rows", rows, nil, options...).Iterations(limited(t)) {
			if err != nil {
				return 0, err
			}
			it.Carry(&sum)
			part := vector{make([]int64, words)}
			for range it.Mine() {
				part.V[words-1]++
			}
			total, err := work.Reduce(limited(t), it, part, add)
			if err != nil {
				return 0, err
			}
			if sum = add(sum, total); it.Number == iterations {
				break
			}
		}
		return sum.V[words-1], nil
	}
	type end struct {
		sum int64
		err error
	}
	ends := make(chan end, 2)
	for i, s := range list {
		go func() {
			var o []work.LoopOption
			if i == 0 {
				o = append(o, work.Home())
			}
			sum, err := run(s, o...)
			ends <- end{sum, err}
		}()
	}
	for range list {
		if e := <-ends; e.err != nil || e.sum != rows*iterations {
			t.Errorf("the sum is %d: %v", e.sum, e.err)
		}
	}
}

package bustest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// through publishes 0 to n-1 in a bubble, one every millisecond, and returns
// what arrived.
func through(t *testing.T, seed uint64, n int, plan bustest.Plan) (got []string, faults bustest.Faults) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		l := bus.NewLocal()
		to := l.Connect(bus.Options{})
		from := bustest.Faulty(l.Connect(bus.Options{}), rand.New(rand.NewPCG(seed, 0)), plan)
		if _, err := to.Subscribe(">", bus.Limits{}, func(m bus.Message) { got = append(got, string(m.Data)) }); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 0, 8)
		for i := range n {
			buf = strconv.AppendInt(buf[:0], int64(i), 10) // Reused, as a caller may.
			if err := from.Publish("s", buf); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if err := from.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		faults = from.Faults()
		for _, b := range []bus.Bus{from, to} { // The last one waits for the handler.
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return got, faults
}

func numbers(n int) []string {
	var all []string
	for i := range n {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func TestFaultyPlans(t *testing.T) {
	const n = 1000
	tests := map[string]struct {
		plan  bustest.Plan
		check func(t *testing.T, got []string, f bustest.Faults)
	}{
		"none": {bustest.Plan{}, func(t *testing.T, got []string, f bustest.Faults) {
			if !slices.Equal(got, numbers(n)) || f != (bustest.Faults{}) {
				t.Errorf("%d messages, %+v", len(got), f)
			}
		}},
		"drop": {bustest.Plan{Drop: 0.3}, func(t *testing.T, got []string, f bustest.Faults) {
			if f.Dropped < 200 || f.Dropped > 400 || len(got) != n-f.Dropped {
				t.Errorf("%d messages, %+v", len(got), f)
			}
		}},
		"duplicate": {bustest.Plan{Duplicate: 0.3}, func(t *testing.T, got []string, f bustest.Faults) {
			if f.Duplicated < 200 || len(got) != n+f.Duplicated || !slices.Equal(slices.Compact(got), numbers(n)) {
				t.Errorf("%d messages, %+v", len(got), f)
			}
		}},
		"swap":  {bustest.Plan{Swap: 0.3}, reordered(n)},
		"delay": {bustest.Plan{MinDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond}, reordered(n)},
		"elsewhere": {
			bustest.Plan{Drop: 1, Only: func(s string) bool { return s != "s" }},
			func(t *testing.T, got []string, _ bustest.Faults) {
				if len(got) != n {
					t.Errorf("%d messages", len(got))
				}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, faults := through(t, 1, n, tt.plan)
			tt.check(t, got, faults)
		})
	}
}

// reordered wants every message once, but not in order.
func reordered(n int) func(*testing.T, []string, bustest.Faults) {
	return func(t *testing.T, got []string, f bustest.Faults) {
		t.Helper()
		all := numbers(n)
		if slices.Equal(got, all) {
			t.Errorf("in order, %+v", f)
		}
		slices.Sort(got)
		slices.Sort(all)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFaultyIsRepeatable(t *testing.T) {
	plan := bustest.Plan{Drop: 0.2, Duplicate: 0.2, Swap: 0.2}
	one, f := through(t, 7, 500, plan)
	two, _ := through(t, 7, 500, plan)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Error(diff)
	}
	if f.Dropped == 0 || f.Duplicated == 0 || f.Swapped == 0 {
		t.Errorf("%+v", f)
	}
	if other, _ := through(t, 8, 500, plan); slices.Equal(one, other) {
		t.Error("another seed gave the same")
	}
}

func TestFaultyRequest(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		l := bus.NewLocal()
		service := l.Connect(bus.Options{})
		client := bustest.Faulty(l.Connect(bus.Options{}), rand.New(rand.NewPCG(1, 1)), bustest.Plan{})
		if _, err := service.Subscribe("q", bus.Limits{}, func(m bus.Message) { _ = service.Reply(m, m.Data) }); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Request(t.Context(), "q", []byte("x")); err != nil || string(got) != "x" {
			t.Errorf("%q, %v", got, err)
		}
		client.SetPlan(bustest.Plan{Drop: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := client.Request(ctx, "q", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, b := range []bus.Bus{client, service} {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFaultyClose loses what is still delayed, and leaves no timer behind.
func TestFaultyClose(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		b := bustest.Faulty(bus.NewLocal().Connect(bus.Options{}), rand.New(rand.NewPCG(1, 1)), bustest.Plan{MaxDelay: time.Hour})
		for i := range 10 {
			if err := b.Publish("s", []byte(strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("waited %v", d)
		}
		if n := b.Stats().Published; n != 0 {
			t.Errorf("published %d", n)
		}
		if err := b.Publish("s", nil); !errors.Is(err, bus.ErrClosed) {
			t.Error(err)
		}
	})
}

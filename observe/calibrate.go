package observe

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync/source"
)

// rounds is how many units each core does in a calibration. The median counts, so
// that neither the first ones, while memory and clock rate come up, nor those that
// others disturb do.
const rounds = 31

// calibrate measures the power of the cores: all at once, as they will be used, on a
// thread each. Where Go runs on fewer cores than there are, so many of them, evenly
// spread, stand for all.
func calibrate(ctx context.Context, cores []int) (float64, error) {
	next := newPlaces()
	n := min(len(cores), runtime.GOMAXPROCS(0))
	powers, errs := make([]float64, n), make([]error, n)
	var working sync.WaitGroup
	for i := range n {
		working.Go(func() {
			runtime.LockOSThread() // The thread is pinned, so it ends with the goroutine.
			powers[i], errs[i] = calibrateCore(ctx, cores[i*len(cores)/n], next)
		})
	}
	working.Wait()
	sum := 0.0
	for i, p := range powers {
		if errs[i] != nil {
			return 0, errs[i]
		}
		sum += p
	}
	return sum / float64(n) * float64(len(cores)), nil
}

func calibrateCore(ctx context.Context, core int, next []uint32) (float64, error) {
	if err := pin(core); err != nil {
		return 0, fmt.Errorf("core %d: %w", core, err)
	}
	rates := make([]float64, rounds)
	for i := range rates {
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		begin := workTime()
		if sum := unit(next); sum != workSum {
			return 0, fmt.Errorf("core %d: a unit of work came to %#x, and not %#x: this machine computes wrongly", core, sum, workSum)
		}
		took := workTime() - begin
		if took <= 0 {
			return 0, fmt.Errorf("core %d: the clock stood still during a unit of work: give Options.Power", core)
		}
		rates[i] = 1 / took.Seconds()
	}
	return median(rates), nil
}

// workTime is the CPU time of the calling thread, which others do not disturb; where
// it is not told, time as it passes.
func workTime() time.Duration {
	if t, err := threadTime(); err == nil {
		return t
	}
	return time.Duration(source.Monotonic())
}

package observe

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/clocksync/source"
)

// threadTime is the CPU time of the calling thread, to which the goroutine is locked.
func threadTime() (time.Duration, error) { return cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) }

// processTime is the CPU time of this process.
func processTime() (time.Duration, error) { return cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) }

func cpuTime(clock int32) (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano()), err
}

// usable are the cores that this process may use.
func usable() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cores []int
	for i := 0; len(cores) < set.Count(); i++ {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores, nil
}

// pin keeps the calling thread on a core.
func pin(core int) error {
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

const (
	// A kernel lets a thread that wakes up run before others for so long: a slice of
	// its scheduler, or half a period of older ones. Until a thread has waited, or has
	// run for so long, a burst does not count.
	favour = 15 * time.Millisecond
	// waits is how long a wait is that shows that the favour is over.
	waits = 500 * time.Microsecond
	// burstTime is what counts, in CPU time.
	burstTime = 10 * time.Millisecond
	// burstLimit ends a burst on a core that others leave nothing of.
	burstLimit = 500 * time.Millisecond
)

// probe runs the calling thread on a core until it is clear what part of its time it
// gets there, and returns how long it ran and waited while it was ready, and what it
// cost. It is for a goroutine that is locked to its thread and ends with it.
func probe(core int) (ran, waited, cost time.Duration, err error) {
	if err := pin(core); err != nil {
		return 0, 0, 0, err
	}
	delays, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		return 0, 0, 0, err
	}
	defer delays.Close() //nolint:errcheck // It was only read.
	p, begin := prober{delays: delays, work: 1}, source.Monotonic()
	p.read()
	first, from, fromWait := p.cpu, p.cpu, p.delay
	for counts := false; !counts || p.cpu-from < burstTime; {
		if p.err != nil {
			return 0, 0, p.cpu - first, p.err
		}
		if source.Monotonic().Sub(begin) > burstLimit {
			if !counts {
				return 0, 0, p.cpu - first, nil
			}
			break
		}
		p.work = spin(p.work)
		p.read()
		if !counts && (p.delay-fromWait >= waits || p.cpu-from >= favour) {
			// The first wait counts, the time before it does not: what follows are
			// whole turns of waiting and running.
			counts, from = true, p.cpu
		}
	}
	return p.cpu - from, p.delay - fromWait, p.cpu - first, nil
}

// prober reads the times of the calling thread.
type prober struct {
	delays     *os.File
	buf        [128]byte
	cpu, delay time.Duration
	err        error
	work       uint64
}

func (p *prober) read() {
	if p.cpu, p.err = threadTime(); p.err != nil {
		return
	}
	n, err := p.delays.ReadAt(p.buf[:], 0)
	if n == 0 {
		p.err = err
		return
	}
	p.delay, p.err = parseDelay(p.buf[:n])
}

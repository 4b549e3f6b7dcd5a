package observe

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/testwait"
)

const (
	othersVariable = "PEGASUS_OBSERVE_OTHERS" // how many threads run in this process, and nothing else
	pinVariable    = "PEGASUS_OBSERVE_PIN"    // on which core
)

func TestMain(m *testing.M) {
	if n, _ := strconv.Atoi(os.Getenv(othersVariable)); n > 0 {
		runtime.GOMAXPROCS(n + 1)
		for range n {
			go func() {
				runtime.LockOSThread()
				if core, err := strconv.Atoi(os.Getenv(pinVariable)); err == nil && pin(core) != nil {
					os.Exit(1)
				}
				for x := uint64(1); ; {
					x = spin(x)
				}
			}()
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // Until the test ends, however that does.
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// others starts a process of so many threads that never wait, and returns when it has
// used some time.
func others(tb testing.TB, n int, core string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), othersVariable+"="+strconv.Itoa(n), pinVariable+"="+core)
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	testwait.Until(tb, "the others to run", func() bool { return spent(tb, cmd) >= 3*tick })
	return cmd
}

func spent(tb testing.TB, cmd *exec.Cmd) time.Duration {
	tb.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
	if err != nil {
		tb.Fatal(err)
	}
	self, _, err := parseProcess(text)
	if err != nil {
		tb.Fatal(err)
	}
	return self
}

// probing is a burst on one core, from a thread of its own.
func probing(tb testing.TB, core int) (ran, waited, cost time.Duration) {
	tb.Helper()
	type times struct {
		ran, waited, cost time.Duration
		err               error
	}
	done := make(chan times, 1)
	go func() {
		runtime.LockOSThread()
		var v times
		v.ran, v.waited, v.cost, v.err = probe(core)
		done <- v
	}()
	v := <-done
	if v.err != nil {
		tb.Fatal(v.err)
	}
	return v.ran, v.waited, v.cost
}

// TestProbe has a core with two threads that never wait: a third one gets a third of
// it, and less where this machine has other work. A burst that is too short would get
// all of it, since it is favoured.
func TestProbe(t *testing.T) {
	cores, err := usable()
	if err != nil {
		t.Fatal(err)
	}
	core := cores[len(cores)-1]
	others(t, 2, strconv.Itoa(core))
	const bursts = 5
	var ran, waited, cost time.Duration
	for range bursts {
		r, w, c := probing(t, core)
		ran, waited, cost = ran+r, waited+w, cost+c
	}
	// Together, since a virtual machine may charge one of them for time that it did not have.
	if limit := bursts * (favour + burstTime + 5*time.Millisecond); cost > limit {
		t.Errorf("%d bursts cost %v, more than %v", bursts, cost, limit)
	}
	if share := ran.Seconds() / (ran + waited).Seconds(); !(share > 0 && share < 0.55) {
		t.Errorf("beside two others a thread gets %.2f of a core, want about a third", share)
	}
}

// TestChildren counts what processes use that this one has started, if it is asked to,
// and also after they have ended.
func TestChildren(t *testing.T) {
	before := treeTime(t)
	cmd := others(t, 1, "")
	testwait.Until(t, "the others to run", func() bool { return spent(t, cmd) >= 20*tick })
	if used := treeTime(t) - before; used < 20*tick {
		t.Errorf("a child that has used %v or more counts %v", 20*tick, used)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if used := treeTime(t) - before; used < 20*tick {
		t.Errorf("after its end it counts %v", used)
	}
}

func treeTime(t *testing.T) time.Duration {
	t.Helper()
	f := newFiles("/", nil, true)
	defer f.close()
	return f.descendants()
}

// TestOtherRoot observes a machine whose files are written down.
func TestOtherRoot(t *testing.T) {
	o, err := start(t.Context(), Options{Power: 3}, []int{0, 2}, tree(t, machine+"-- proc/self/cgroup --\n-- proc/self/mountinfo --\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if r := o.Reading(); !math.IsNaN(r.Share) || r.Power != 3 || r.Cores != 2 || r.Pressure != 0.5 {
		t.Errorf("%+v", r)
	}
	if why := o.Missing()[FieldShare]; !strings.Contains(why, "stand still") {
		t.Errorf("the share is missing because %q", why)
	}
}

func BenchmarkSample(b *testing.B) {
	cores, err := usable()
	if err != nil {
		b.Fatal(err)
	}
	for _, tree := range []bool{false, true} {
		b.Run("children="+strconv.FormatBool(tree), func(b *testing.B) {
			f := newFiles("/", cores, tree)
			defer f.close()
			b.ReportAllocs()
			for b.Loop() {
				var s sample
				f.sample(&s, 0)
			}
		})
	}
}

// BenchmarkCalibrate shows how far calibrations are apart, beside others too.
func BenchmarkCalibrate(b *testing.B) {
	cores, err := usable()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{0, 1, 2, 4} {
		b.Run("others="+strconv.Itoa(n), func(b *testing.B) {
			if n > 0 {
				others(b, n, "")
			}
			var powers []float64
			for b.Loop() {
				p, err := calibrate(b.Context(), cores)
				if err != nil {
					b.Fatal(err)
				}
				powers = append(powers, p)
			}
			least, most := math.Inf(1), 0.0
			for _, p := range powers {
				least, most = min(least, p), max(most, p)
			}
			b.ReportMetric(least, "least")
			b.ReportMetric(median(powers), "median")
			b.ReportMetric(most, "most")
		})
	}
}

// BenchmarkShare compares the share that is observed while this process does nothing
// with what it then gets with a busy thread a core, in turns.
func BenchmarkShare(b *testing.B) {
	cores, err := usable()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{0, 1, 2, 4} {
		b.Run("others="+strconv.Itoa(n), func(b *testing.B) {
			if n > 0 {
				others(b, n, "")
			}
			var observed, gets, short, turns float64
			for ; b.Loop(); turns++ {
				o, err := Start(b.Context(), Options{Power: 1})
				if err != nil {
					b.Fatal(err)
				}
				testwait.Elapse(1500 * time.Millisecond)
				observed += o.Reading().Share
				if err := o.Close(); err != nil {
					b.Fatal(err)
				}
				gets += got(cores)
				short += shortBurst()
			}
			b.ReportMetric(observed/turns, "observed")
			b.ReportMetric(gets/turns, "got")
			b.ReportMetric(short/turns, "in-200us")
		})
	}
}

// got is the part of all cores that a busy thread on each of them gets.
func got(cores []int) float64 {
	begin, from := source.Monotonic(), must(processTime())
	done := make(chan struct{})
	for _, core := range cores {
		go func() {
			runtime.LockOSThread()
			_ = pin(core)
			for x := uint64(1); source.Monotonic().Sub(begin) < time.Second; {
				x = spin(x)
			}
			done <- struct{}{}
		}()
	}
	for range cores {
		<-done
	}
	return (must(processTime()) - from).Seconds() / source.Monotonic().Sub(begin).Seconds() / float64(len(cores))
}

// shortBurst is what a burst shows that ends before others get their turn.
func shortBurst() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	testwait.Elapse(20 * time.Millisecond)
	begin, from := source.Monotonic(), must(threadTime())
	for x := uint64(1); must(threadTime())-from < 200*time.Microsecond; {
		x = spin(x)
	}
	return (must(threadTime()) - from).Seconds() / source.Monotonic().Sub(begin).Seconds()
}

func must(d time.Duration, err error) time.Duration {
	if err != nil {
		panic(err)
	}
	return d
}

// BenchmarkCost observes for a while beside others, and shows the part of a core that
// this process uses, and that the observer says it does.
func BenchmarkCost(b *testing.B) {
	for _, n := range []int{0, 2} {
		b.Run("others="+strconv.Itoa(n), func(b *testing.B) {
			if n > 0 {
				others(b, n, "")
			}
			o, err := Start(b.Context(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			from, at := must(processTime()), source.Monotonic()
			for b.Loop() {
				testwait.Elapse(time.Second)
			}
			used := (must(processTime()) - from).Seconds() / source.Monotonic().Sub(at).Seconds()
			c := o.Cost()
			if err := o.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(100*used, "%process")
			b.ReportMetric(100*c.CPU.Seconds()/c.Elapsed.Seconds(), "%observer")
			b.ReportMetric(float64(c.Bursts), "bursts")
		})
	}
}

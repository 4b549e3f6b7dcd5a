package source_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// kernel asks the kernel itself for CLOCK_MONOTONIC.
func kernel(tb testing.TB) clocksync.Instant {
	tb.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		tb.Fatal(err)
	}
	return clocksync.Instant(ts.Nano())
}

func TestReadingIsTheKernelsMonotonicClock(t *testing.T) {
	clock := source.System()
	for range 1000 {
		before, s, after := kernel(t), clock.Now(), kernel(t)
		if s.Mono < before || s.Mono > after {
			t.Fatalf("reading %v outside %v to %v", s.Mono, before, after)
		}
	}
}

func TestDomainIsTheBoot(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if d := source.System().Domain(); !strings.HasPrefix(string(d), "boot-"+strings.TrimSpace(string(boot))) {
		t.Errorf("domain %q is not of boot %s", d, boot)
	}
}

// child is what another process reads.
type child struct {
	System, Own clocksync.Stamp
	Monotonic   clocksync.Instant
}

const childVariable = "PEGASUS_SOURCE_TEST_CHILD"

// TestMain turns the test binary into that process.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	system := source.System()
	err := json.NewEncoder(os.Stdout).Encode(child{system.Now(), source.OwnDomain(system).Now(), source.Monotonic()})
	if err != nil {
		os.Exit(1)
	}
}

func TestProcessesShareTheClock(t *testing.T) {
	clock := source.System()
	run := exec.CommandContext(t.Context(), os.Args[0])
	run.Env = append(os.Environ(), childVariable+"=1")
	before, first := clock.Now(), source.Monotonic()
	output, err := run.Output()
	after, last := clock.Now(), source.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	var got child
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatalf("%q: %v", output, err)
	}
	if !clocksync.CertainlyBefore(before, got.System) || !clocksync.CertainlyBefore(got.System, after) {
		t.Errorf("the child read %v, not between %v and %v", got.System, before, after)
	}
	if got.Monotonic < first || got.Monotonic > last {
		t.Errorf("the child's now was %v, not between %v and %v", got.Monotonic, first, last)
	}
	if got.Own.Domain == source.OwnDomain(clock).Domain() || got.Own.Domain == got.System.Domain {
		t.Errorf("the child's own domain %q is not its own", got.Own.Domain)
	}
	if clocksync.CertainlyBefore(before, got.Own) {
		t.Errorf("%v is certain across domains without a bound", got.Own)
	}
}

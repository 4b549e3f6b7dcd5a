//go:build system && linux

package source

import (
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// ip runs the tool of that name.
func ip(tb testing.TB, words string) {
	tb.Helper()
	if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		tb.Fatalf("ip %s: %v: %s (this takes root and iproute2)", words, err, out)
	}
}

// network is two network namespaces and a cable between them: this test's end,
// and the server's.
type network struct{ here, there string }

const (
	hereAddress  = "10.213.0.1"
	thereAddress = "10.213.0.2"
)

func newNetwork(tb testing.TB) network {
	tb.Helper()
	id := strconv.Itoa(os.Getpid())
	n := network{"pegasus-here-" + id, "pegasus-there-" + id}
	for _, name := range []string{n.here, n.there} {
		ip(tb, "netns add "+name)
		tb.Cleanup(func() { ip(tb, "netns del "+name) })
	}
	ip(tb, "link add here netns "+n.here+" type veth peer name there netns "+n.there)
	ip(tb, "-n "+n.here+" addr add "+hereAddress+"/30 dev here")
	ip(tb, "-n "+n.there+" addr add "+thereAddress+"/30 dev there")
	ip(tb, "-n "+n.there+" link set there up")
	n.plug(tb, "up")
	return n
}

// plug sets this end of the cable up or down.
func (n network) plug(tb testing.TB, state string) {
	tb.Helper()
	ip(tb, "-n "+n.here+" link set here "+state)
}

// dial makes a socket in this test's namespace. The thread that enters it is
// thrown away.
func (n network) dial(ctx context.Context, remote string, timeout time.Duration) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var space *os.File
		if space, err = os.Open("/run/netns/" + n.here); err != nil {
			return
		}
		defer space.Close()
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err == nil {
			conn, err = dialUDP(ctx, remote, timeout)
		}
	}()
	<-done
	return conn, err
}

// TestNTPThroughACable asks a chronyd in another network namespace, whose cable is
// pulled and put back.
func TestNTPThroughACable(t *testing.T) {
	n := newNetwork(t)
	d := startChronydAt(t, []string{"ip", "netns", "exec", n.there}, thereAddress, "local stratum 1")
	// Without a cable the kernel refuses at once, so only a busy machine takes long.
	source := ntpOf(t, 2*time.Second, d.ntp)
	source.options.Every, source.dial = 20*time.Millisecond, n.dial
	answering(t, source)
	c, err := Measured(MeasuredOptions{Timeline: clocksync.UTC, Stale: 2 * time.Second}, source)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer func() {
		if t.Failed() {
			t.Logf("the clock: %+v, %+v", c.Quality(), c.Diagnostics())
		}
	}()
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func() clocksync.Interval {
		before, s, after := wallClock(), c.Now(), wallClock()
		if s.Within.Latest < before || s.Within.Earliest > after || !s.Within.Bounded() {
			t.Fatalf("%v does not hold the truth, from %v to %v", s, before, after)
		}
		return s.Within
	}
	check()
	n.plug(t, "down")
	testwait.Until(t, "degraded, and the fault told", func() bool {
		check()
		return c.Quality().Status == clocksync.Degraded && c.Diagnostics().Sources[0].Faults[d.ntp] != ""
	})
	// Only the samples from before are left, and the drift since.
	pulled := check().Width()
	testwait.Until(t, "a bound that grows", func() bool { return check().Width() > pulled+10*time.Microsecond })
	n.plug(t, "up")
	testwait.Until(t, "synchronized again", func() bool { check(); return c.Quality().Status == clocksync.Synchronized })
	t.Logf("bound %v", check().Width()/2)
}

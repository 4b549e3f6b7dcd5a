//go:build system && linux

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source/ntp"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// freePort is a UDP port of loopback that nobody has.
func freePort(tb testing.TB) int {
	tb.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}

// daemon is a chronyd that leaves the clock of this machine alone (-x).
type daemon struct {
	ntp, command string // where it serves time and takes commands
	socket       string
}

// startChronyd runs the system's chronyd with a configuration of our own, until
// the test ends.
func startChronyd(tb testing.TB, lines ...string) daemon {
	tb.Helper()
	return startChronydAt(tb, nil, "127.0.0.1", lines...)
}

// startChronydAt binds it to an address, and runs it behind another command, if
// there is one.
func startChronydAt(tb testing.TB, behind []string, address string, lines ...string) daemon {
	tb.Helper()
	path, err := exec.LookPath("chronyd")
	if errors.Is(err, exec.ErrNotFound) {
		path, err = exec.LookPath("/usr/sbin/chronyd")
	}
	if err != nil {
		tb.Fatalf("these tests need chronyd in the PATH; .ci/run unpacks one, since Debian's package would evict what keeps this machine's clock: %v", err)
	}
	dir := tb.TempDir()
	// It refuses a directory that others may enter.
	if err := os.Chmod(dir, 0o750); err != nil {
		tb.Fatal(err)
	}
	serve, command := freePort(tb), freePort(tb)
	d := daemon{fmt.Sprint(address, ":", serve), fmt.Sprint(address, ":", command), filepath.Join(dir, "chronyd.sock")}
	config := filepath.Join(dir, "chrony.conf")
	lines = append(lines,
		fmt.Sprint("port ", serve), fmt.Sprint("cmdport ", command),
		"bindaddress "+address, "bindcmdaddress "+address, "allow",
		"bindcmdaddress "+d.socket, "pidfile "+filepath.Join(dir, "chronyd.pid"))
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	var log bytes.Buffer
	words := slices.Concat(behind, []string{path, "-x", "-d", "-u", "root", "-f", config})
	run := exec.Command(words[0], words[1:]...)
	run.Stdout, run.Stderr = &log, &log
	stop := underThisTest(tb, run)
	tb.Cleanup(func() {
		stop()
		if tb.Failed() {
			tb.Logf("chronyd: %s", &log)
		}
	})
	return d
}

// underThisTest starts a command that ends with the test binary, however that
// ends. The kernel means the thread that started it, so one stays for it.
func underThisTest(tb testing.TB, run *exec.Cmd) (stop func()) {
	tb.Helper()
	run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		err := run.Start()
		if started <- err; err == nil {
			_ = run.Wait()
		}
	}()
	if err := <-started; err != nil {
		tb.Fatal(err)
	}
	return func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		<-ended
	}
}

// proxy passes packets on to a server, late or not at all.
type proxy struct {
	there, back atomic.Int64 // nanoseconds
	lossy       atomic.Bool

	server string
	conn   *net.UDPConn
	busy   sync.WaitGroup
}

func startProxy(tb testing.TB, server string) (*proxy, string) {
	tb.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{server: server, conn: conn}
	p.busy.Go(p.serve)
	tb.Cleanup(func() { _ = conn.Close(); p.busy.Wait() })
	return p, conn.LocalAddr().String()
}

func (p *proxy) serve() {
	b := make([]byte, 512)
	for {
		n, from, err := p.conn.ReadFromUDP(b)
		if err != nil {
			return
		}
		if request := bytes.Clone(b[:n]); !p.lossy.Load() {
			p.busy.Go(func() { p.pass(request, from) })
		}
	}
}

func (p *proxy) pass(request []byte, from *net.UDPAddr) {
	server, err := net.Dial("udp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	testwait.Elapse(time.Duration(p.there.Load()))
	reply := make([]byte, 512)
	_ = server.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := server.Write(request); err != nil {
		return
	}
	n, err := server.Read(reply)
	if err != nil {
		return
	}
	testwait.Elapse(time.Duration(p.back.Load()))
	_, _ = p.conn.WriteToUDP(reply[:n], from)
}

// wallClock is what a chronyd that follows nobody serves: the truth here.
func wallClock() clocksync.Instant { return clocksync.Instant(kernelWall()) }

// answering waits until a source has a sample.
func answering(tb testing.TB, s Source) {
	tb.Helper()
	var last error
	if !testwait.Within(patient, func() bool {
		samples, err := s.Sample(tb.Context())
		last = err
		return len(samples) > 0
	}) {
		tb.Fatalf("no sample: %v", last)
	}
}

// TestNTPServersOfChronyd stamps by two ways to a chronyd and one to a server
// that lies, through one fault after the other.
func TestNTPServersOfChronyd(t *testing.T) {
	d := startChronyd(t, "local stratum 1")
	answering(t, ntpOf(t, 100*time.Millisecond, d.ntp))
	var ahead atomic.Int64
	liar := &fakeNTP{clock: func() clocksync.Instant { return wallClock().Add(time.Duration(ahead.Load())) }}
	first, firstAt := startProxy(t, d.ntp)
	second, secondAt := startProxy(t, d.ntp)
	s, err := NTP(ntp.Query, NTPOptions{Servers: []string{firstAt, secondAt, liar.start(t)}, Every: 20 * time.Millisecond, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Measured(MeasuredOptions{Timeline: clocksync.UTC, Drift: 200}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const ms = int64(time.Millisecond)
	for _, phase := range []struct {
		name  string
		fault func()
	}{
		{"healthy", func() {}},
		{"80 ms late there", func() { first.there.Store(80 * ms) }},
		{"80 ms late back, too", func() { second.back.Store(80 * ms) }},
		{"liar 10 s ahead", func() { first.there.Store(0); second.back.Store(0); ahead.Store(10_000 * ms) }},
		{"liar just off", func() { ahead.Store(10 * ms) }},
		{"second lost", func() { second.lossy.Store(true) }},
		{"first late, liar behind", func() { second.lossy.Store(false); first.back.Store(30 * ms); ahead.Store(-3000 * ms) }},
		{"healthy again", func() { first.back.Store(0); ahead.Store(0) }},
	} {
		phase.fault()
		stamps, bounded, least := 0, 0, time.Hour
		polls := c.Diagnostics().Sources[0].Polls
		testwait.Until(t, phase.name, func() bool {
			for range 100 {
				before, s, after := wallClock(), c.Now(), wallClock()
				if s.Within.Latest < before || s.Within.Earliest > after {
					t.Fatalf("%s: %v does not hold the truth, from %v to %v: %+v", phase.name, s, before, after, c.Diagnostics())
				}
				stamps++
				if s.Within.Bounded() {
					bounded, least = bounded+1, min(least, s.Within.Width()/2)
				}
			}
			return c.Diagnostics().Sources[0].Polls >= polls+30
		})
		t.Logf("%-24s %7d stamps, all true, %7d bounded, least bound %v, %v", phase.name, stamps, bounded, least, c.Quality().Status)
	}
	if s := c.Now(); !s.Within.Bounded() {
		t.Errorf("no bound at the end: %v, %+v", s, c.Diagnostics())
	}
}

// TestChronyFollowsAServer asks a chronyd that follows a server 40 ms ahead of
// this machine, which is the truth here.
func TestChronyFollowsAServer(t *testing.T) {
	const ahead = 40 * time.Millisecond
	served := &fakeNTP{clock: wallClock, ahead: ahead}
	way, address := startProxy(t, served.start(t))
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	d := startChronyd(t, "server 127.0.0.1 port "+port+" iburst minpoll -4 maxpoll -4", "maxclockerror 50")
	for _, where := range []string{d.command, d.socket} {
		s, err := Chrony(ChronyOptions{Address: where, Timeout: patient})
		if err != nil {
			t.Fatal(err)
		}
		answering(t, s)
		for _, phase := range []struct {
			name  string
			fault func()
		}{
			{"healthy", func() {}},
			{"50 ms late there", func() { way.there.Store(int64(50 * time.Millisecond)) }},
			{"50 ms late back", func() { way.there.Store(0); way.back.Store(int64(50 * time.Millisecond)) }},
			{"lost", func() { way.back.Store(0); way.lossy.Store(true) }},
			{"back", func() { way.lossy.Store(false) }},
		} {
			phase.fault()
			least, most := time.Hour, time.Duration(0)
			for range 100 {
				truth := wallOffset(machine.observeClocks())
				samples, err := s.Sample(t.Context())
				if err != nil {
					t.Fatalf("%s: %v", phase.name, err)
				}
				got := samples[0].Offset
				if got.Earliest > truth.Latest.Add(ahead) || got.Latest < truth.Earliest.Add(ahead) {
					t.Fatalf("%s: %+v does not hold %v", phase.name, samples[0], truth.Latest.Add(ahead))
				}
				least, most = min(least, got.Width()/2), max(most, got.Width()/2)
				testwait.Elapse(20 * time.Millisecond)
			}
			t.Logf("%-20s 100 samples, all true, bounds from %v to %v", phase.name, least, most)
		}
	}
}

func TestChronyThatFollowsItself(t *testing.T) {
	d := startChronyd(t, "local stratum 1")
	answering(t, ntpOf(t, 100*time.Millisecond, d.ntp))
	s, err := Chrony(ChronyOptions{Address: d.command, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Sample(t.Context())
	if got := refusals("chrony", err); len(got) != 1 || got[0].Reason != Unsynchronized || !strings.Contains(err.Error(), "chronyd follows only itself (7F7F0101)") {
		t.Errorf("%v", err)
	}
}

func TestChronyBeforeItIsSynchronized(t *testing.T) {
	d := startChronyd(t, fmt.Sprint("server 127.0.0.1 port ", freePort(t)))
	s, err := Chrony(ChronyOptions{Address: d.command, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "an answer", func() bool {
		samples, err := s.Sample(context.Background())
		if len(samples) != 0 {
			t.Fatalf("a sample without a server: %+v", samples)
		}
		got := refusals("chrony", err)
		return len(got) == 1 && got[0].Reason == Unsynchronized
	})
}

package source

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// recorded is the answer of chronyd 4.3 to sequence 0x01020304, while chronyc
// showed: reference 7F000001, stratum 2, system time 0.000002456 s fast of NTP
// time, root delay 0.000008385 s, root dispersion 0.000001044 s.
const recorded = "060200000021000500000000000000000102030400000000000000007f0000017f000001" +
	"0000000000000000000000000001000000020000000000006b0175e40a2ba74cdf5b331fdaae41e4" +
	"d6e932f7f8ee7023fc92b322fccfb88ce28cad4ddc8b5b8c0483960b"

func recording(tb testing.TB) []byte {
	tb.Helper()
	b, err := hex.DecodeString(recorded)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestTrackingAsChronycShowsIt(t *testing.T) {
	got, err := decodeTracking(recording(t), 0x01020304)
	if err != nil {
		t.Fatal(err)
	}
	updated := time.Date(2026, time.November, 21, 10, 43, 48, 170633036, time.UTC)
	if got.Reference != 0x7f000001 || got.Stratum != 2 || got.Leap != 0 || !got.Updated.Equal(updated) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ got, want time.Duration }{
		{got.Correction, -2456}, {got.Delay, 8386}, {got.Dispersion, 1039}, {got.Interval, 1028016449},
	} {
		if c.got != c.want {
			t.Errorf("%+v: %d, want %d", got, c.got, c.want)
		}
	}
}

func TestChronyFloat(t *testing.T) {
	for x, want := range map[uint32]float64{
		0:                 0,
		1 << 24:           0x1p-1 * -1, // the sign bit of the coefficient
		1<<25 | 1<<23:     0.5,
		0x7f<<25 | 1<<23:  0.125,
		2<<25 | 0x1800000: -1,
		0x3f<<25 | 1:      0x1p38,
		0x40<<25 | 1:      0x1p-89,
	} {
		if got := chronyFloat(x); got != want {
			t.Errorf("%08x is %v, want %v", x, got, want)
		}
	}
	for seconds, want := range map[float64]time.Duration{1e-10: 1, -1e-10: -1, 1: time.Second, -1.5: -1500 * time.Millisecond, 0: 0} {
		if got := ceil(seconds); got != want {
			t.Errorf("%v s is %v", seconds, got)
		}
	}
}

func TestReferenceNames(t *testing.T) {
	for reference, want := range map[uint32]string{chronyManual: "MANU", 0x47505300: "GPS", 0x7f7f0101: "7F7F0101"} {
		if got := (&tracking{Reference: reference}).nameFollowed(); got != want {
			t.Errorf("%08x is %q, want %q", reference, got, want)
		}
	}
}

// fakeChrony answers on loopback or on a socket as chronyd does.
func fakeChrony(tb testing.TB, network, address string, answer func(request []byte) [][]byte) string {
	tb.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			for _, reply := range answer(b[:n]) {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	tb.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr().String()
}

func chronyAt(tb testing.TB, address string, timeout time.Duration) *chrony {
	tb.Helper()
	s, err := Chrony(ChronyOptions{Address: address, Timeout: timeout})
	if err != nil {
		tb.Fatal(err)
	}
	return s.(*chrony)
}

// honest answers with the recording, changed as told.
func honest(tb testing.TB, mutate func([]byte) []byte) func([]byte) [][]byte {
	tb.Helper()
	good := recording(tb)
	return func(request []byte) [][]byte {
		if len(request) != chronyLength || request[0] != chronyVersion || request[1] != chronyRequest {
			return nil // As chronyd: nothing that could be amplified.
		}
		b := slices.Clone(good)
		copy(b[atSequence:], request[8:12])
		if mutate != nil {
			b = mutate(b)
		}
		return [][]byte{b}
	}
}

func TestChronyBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chronyd.sock")
	for network, address := range map[string]string{"udp": "127.0.0.1:0", "unixgram": path} {
		t.Run(network, func(t *testing.T) {
			address := fakeChrony(t, network, address, honest(t, nil))
			s := chronyAt(t, address, patient)
			host := newHost(func() clocksync.Instant { return 5e9 })
			s.clocks = host.readings()
			samples, err := s.Sample(t.Context())
			if err != nil || len(samples) != 1 {
				t.Fatalf("%v, %v", samples, err)
			}
			got := samples[0]
			// 1039 ns and half of 8386 ns around anything from the correction to 0.
			want := clocksync.Interval{Earliest: away - 2456 - 5232, Latest: away + 5232}
			if got.Offset != want || got.At != 5e9 || got.From > got.At || got.Timeline != clocksync.UTC || !got.Wall || got.Server != address {
				t.Errorf("%+v, want %v around %v", got, want, away)
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "pegasus*"))
	if err != nil || len(left) != 0 {
		t.Errorf("sockets left behind: %v, %v", left, err)
	}
}

func TestChronyKnowsWhenItWasMeasured(t *testing.T) {
	host := newHost(func() clocksync.Instant { return 100e9 })
	reply := honest(t, func(b []byte) []byte {
		updated := away + 60e9 // 40 s ago
		binary.BigEndian.PutUint64(b[atUpdated:], uint64(updated/1e9))
		binary.BigEndian.PutUint32(b[atUpdated+8:], 0)
		return b
	})
	s := chronyAt(t, fakeChrony(t, "udp", "127.0.0.1:0", reply), patient)
	s.clocks = host.readings()
	samples, err := s.Sample(t.Context())
	if err != nil || samples[0].From != 60e9 || samples[0].At != 100e9 {
		t.Errorf("%+v, %v", samples, err)
	}
}

type brokenChrony struct {
	mutate func([]byte) []byte
	reason Reason
	text   string
}

func brokenChronies() map[string]brokenChrony {
	set := func(at int, value ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], value); return b }
	}
	return map[string]brokenChrony{
		"empty":           {func([]byte) []byte { return []byte{} }, Malformed, "reply of 0 bytes, want 104"},
		"truncated":       {func(b []byte) []byte { return b[:103] }, Malformed, "reply 5 of 103 bytes, want 5 of 104"},
		"header only":     {func(b []byte) []byte { return b[:27] }, Malformed, "reply of 27 bytes, want 104"},
		"oversized":       {func(b []byte) []byte { return append(b, 0) }, Malformed, "reply 5 of 105 bytes, want 5 of 104"},
		"old protocol":    {set(0, 5), Malformed, "packet type 2 of protocol version 5, want 2 of 6"},
		"a request":       {set(1, 1), Malformed, "packet type 1 of protocol version 6"},
		"other sequence":  {set(atSequence, 9, 9, 9, 9), Mismatch, "sequence"},
		"other command":   {set(atCommand, 0, 34), Mismatch, "reply to command 34, want 33"},
		"other reply":     {set(atReply, 0, 6), Malformed, "reply 6 of 104 bytes"},
		"not allowed":     {set(atStatus, 0, 2), Denied, "status 2: the daemon does not answer this command here"},
		"unsynchronized":  {set(atLeap, 0, 3), Unsynchronized, "chronyd is not synchronized"},
		"no leap":         {set(atLeap, 1, 0), Unsynchronized, "chronyd is not synchronized"},
		"stratum 16":      {set(atStratum, 0, 16), Unsynchronized, "chronyd is not synchronized"},
		"no reference":    {set(atReference, 0, 0, 0, 0), Unsynchronized, "chronyd is not synchronized"},
		"local":           {set(atReference, 127, 127, 1, 1), Unsynchronized, "chronyd follows only itself (7F7F0101)"},
		"manual":          {set(atReference, 'M', 'A', 'N', 'U'), Unsynchronized, "chronyd follows only itself (MANU)"},
		"starting":        {set(atDispersion, 0x10, 0x40, 0, 0), Unsynchronized, "is no bound"},
		"negative delay":  {set(atDelay, 0xdf, 0x5b, 0x33, 0x1f), Malformed, "root delay of -"},
		"eternal":         {set(atDispersion, 0x7e, 0xff, 0xff, 0xff), Malformed, "root dispersion of"},
		"correction":      {set(atCorrection, 0x7d, 0, 0, 0), Malformed, "correction of -"},
		"no nanoseconds":  {set(atUpdated+8, 0xff), Malformed, "time of"},
		"another century": {set(atUpdated, 0, 0, 0, 4), Malformed, "time of 4, "},
	}
}

func TestChronyRefuses(t *testing.T) {
	for name, c := range brokenChronies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := fakeChrony(t, "udp", "127.0.0.1:0", honest(t, c.mutate))
			s := chronyAt(t, address, patient)
			s.dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := dialChrony(ctx, address)
				return &hasty{conn, 1}, err
			}
			samples, err := s.Sample(t.Context())
			got := refusals("chrony", err)
			if len(samples) != 0 || len(got) != 1 || got[0].Reason != c.reason || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, %v, want %s: %s", samples, err, c.reason, c.text)
			}
			if !strings.HasPrefix(err.Error(), "source: chrony "+address+": ") {
				t.Errorf("%v does not say who", err)
			}
		})
	}
}

func TestChronySkipsWhatIsNoAnswer(t *testing.T) {
	answer := honest(t, nil)
	address := fakeChrony(t, "udp", "127.0.0.1:0", func(request []byte) [][]byte {
		late := answer(request)
		early := answer(request)
		binary.BigEndian.PutUint32(early[0][atSequence:], 77)
		return slices.Concat([][]byte{{}, {1, 2, 3}}, early, late)
	})
	if samples, err := chronyAt(t, address, patient).Sample(t.Context()); err != nil || len(samples) != 1 {
		t.Errorf("%v, %v", samples, err)
	}
}

func TestChronyThatIsNotThere(t *testing.T) {
	silent := fakeChrony(t, "udp", "127.0.0.1:0", func([]byte) [][]byte { return nil })
	for address, c := range map[string]struct {
		reason Reason
		text   string
	}{
		silent: {Unanswered, "no answer within 100ms"},
		filepath.Join(t.TempDir(), "absent.sock"): {Unavailable, "cannot reach chronyd; is it running, and may this user write beside its socket? "},
		"/proc/absent.sock":                       {Unavailable, "cannot reach chronyd; is it running, and may this user write beside its socket? "},
		"127.0.0.1:0":                             {Unavailable, "chronyd"},
	} {
		_, err := chronyAt(t, address, 100*time.Millisecond).Sample(t.Context())
		if got := refusals("chrony", err); len(got) != 1 || got[0].Reason != c.reason || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestChronyRefusesWhatWasDisturbed(t *testing.T) {
	host := newHost(readRaw)
	reply := honest(t, func(b []byte) []byte { host.step(-time.Minute, 0); return b })
	s := chronyAt(t, fakeChrony(t, "udp", "127.0.0.1:0", reply), patient)
	s.clocks = host.readings()
	if _, err := s.Sample(t.Context()); err == nil || !strings.Contains(err.Error(), "the wall clock was set by -1m0s meanwhile") {
		t.Errorf("%v", err)
	}
}

func TestChronyEndsWithTheContext(t *testing.T) {
	ctx, cancel := newCancelled(t)
	defer cancel()
	silent := fakeChrony(t, "udp", "127.0.0.1:0", func([]byte) [][]byte { return nil })
	if _, err := chronyAt(t, silent, time.Hour).Sample(ctx); err == nil {
		t.Error("a sample without a server")
	}
}

// FuzzTracking has any bytes as an answer.
func FuzzTracking(f *testing.F) {
	good := recording(f)
	f.Add(good)
	for _, b := range brokenChronies() {
		f.Add(b.mutate(slices.Clone(good)))
	}
	seen := clocksync.Observation{Mono: 1e12, Wall: away + 1e12, Boot: 1e12, Slack: 100}
	f.Fuzz(func(t *testing.T, reply []byte) {
		got, err := decodeTracking(reply, 0x01020304)
		if err != nil {
			if refusalOf("chrony", "", err).Reason == Failed {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		s, err := got.sample(seen)
		if err != nil {
			return
		}
		least := got.Correction.Abs() + 2*got.Dispersion + got.Delay
		if len(reply) != chronyLength || !s.Offset.Valid() || s.Offset.Width() < least || s.From > s.At {
			t.Fatalf("%x gives %+v", reply, s)
		}
	})
}

func TestChronyRemovesItsSocketWhenNobodyListens(t *testing.T) {
	dir := t.TempDir()
	if _, err := chronyAt(t, filepath.Join(dir, "absent.sock"), patient).Sample(t.Context()); err == nil {
		t.Error("a sample without a server")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

package source

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// write lays a segment out as the daemon does.
func (s segment) write() []byte {
	order := binary.NativeEndian
	size := segmentSize1
	if s.Version == 2 {
		size = segmentSize2
	}
	b := make([]byte, size)
	order.PutUint32(b, segmentMagic1)
	order.PutUint32(b[4:], segmentMagic2)
	order.PutUint32(b[8:], uint32(size))
	order.PutUint16(b[12:], s.Version)
	order.PutUint16(b[14:], s.Generation)
	for at, t := range map[int]clocksync.Instant{16: s.AsOf, 32: s.VoidAfter} {
		order.PutUint64(b[at:], uint64(t/1e9))
		order.PutUint64(b[at+8:], uint64(t%1e9))
	}
	order.PutUint64(b[48:], uint64(s.Bound))
	if s.Version == 2 {
		order.PutUint64(b[56:], s.Marker)
		order.PutUint32(b[64:], s.Drift)
		order.PutUint32(b[68:], uint32(s.Status))
		if s.Disruption {
			b[72] = 1
		}
	} else {
		order.PutUint32(b[56:], s.Drift)
		order.PutUint32(b[64:], uint32(s.Status))
	}
	return b
}

// written is a segment of a second ago, seen at 1000 s.
func written(version uint16) segment {
	return segment{
		Version: version, Generation: 8, AsOf: 999e9, VoidAfter: 1999e9,
		Bound: 40 * time.Microsecond, Drift: 50_000, Status: boundSynchronized,
	}
}

const seenAt = clocksync.Instant(1000e9)

func clockBoundOf(tb testing.TB, b []byte) *clockBound {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "shm0")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	s, err := ClockBound(ClockBoundOptions{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	c := s.(*clockBound)
	c.clocks = newHost(func() clocksync.Instant { return seenAt }).readings()
	return c
}

func TestSegmentIsReadAsWritten(t *testing.T) {
	for _, want := range []segment{
		written(1), written(2),
		{Version: 1, Generation: 2, AsOf: 1, VoidAfter: 2, Bound: 3, Drift: 4, Status: -5},
		{Version: 2, Generation: 65534, AsOf: 1, VoidAfter: 2, Bound: 3, Drift: 4, Status: 3, Marker: 1 << 63, Disruption: true},
	} {
		if got, err := decodeSegment(want.write()); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}

func TestClockBound(t *testing.T) {
	for version := range uint16(2) {
		for _, status := range []int32{boundSynchronized, boundFreeRunning} {
			s := written(version + 1)
			s.Status = status
			c := clockBoundOf(t, s.write())
			samples, err := c.Sample(t.Context())
			if err != nil || len(samples) != 1 {
				t.Fatalf("%v, %v", samples, err)
			}
			// 40 us, and 50 ppm of the second since then.
			got, want := samples[0], clocksync.Around(away, 90*time.Microsecond)
			if got.Offset != want || got.From != s.AsOf || got.At != seenAt || got.Lasts != 999*time.Second || got.Drift != 50 || !got.Wall {
				t.Errorf("%+v, want %v", got, want)
			}
			if got.Server != c.paths[0] || got.Timeline != clocksync.UTC {
				t.Errorf("%+v", got)
			}
		}
	}
}

func TestClockBoundTakesTheNewerPath(t *testing.T) {
	dir := t.TempDir()
	c := clockBoundOf(t, nil)
	c.paths = []string{filepath.Join(dir, "shm0"), filepath.Join(dir, "shm")}
	if _, err := c.Sample(t.Context()); err == nil || !strings.Contains(err.Error(), "no segment; is the ClockBound daemon running? open ") {
		t.Errorf("%v", err)
	}
	for i := range c.paths {
		path := c.paths[len(c.paths)-1-i]
		if err := os.WriteFile(path, written(1).write(), 0o600); err != nil {
			t.Fatal(err)
		}
		if samples, err := c.Sample(t.Context()); err != nil || samples[0].Server != path {
			t.Errorf("%v, %v, want %s", samples, err, path)
		}
	}
}

func brokenSegments() map[string]struct {
	b      []byte
	reason Reason
	text   string
} {
	type row = struct {
		b      []byte
		reason Reason
		text   string
	}
	with := func(change func(*segment)) []byte {
		s := written(2)
		change(&s)
		return s.write()
	}
	put := func(at int, value ...byte) []byte {
		b := written(2).write()
		copy(b[at:], value)
		return b
	}
	size := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	return map[string]row{
		"empty":              {nil, Malformed, "segment of 0 bytes, not even a header of 16"},
		"short header":       {written(2).write()[:15], Malformed, "segment of 15 bytes"},
		"short":              {written(2).write()[:79], Malformed, "segment of 79 bytes, said to be 80, want 80"},
		"short 1":            {written(1).write()[:71], Malformed, "segment of 71 bytes, said to be 72, want 72"},
		"said to be short":   {put(8, size(16)...), Malformed, "segment of 80 bytes, said to be 16, want 80"},
		"other magic":        {put(0, 1), Malformed, "this is no ClockBound segment"},
		"magic of the paper": {put(0, 0x41, 0x4d, 0x5a, 0x4e, 0x43, 0x42, 2, 0), Malformed, "this is no ClockBound segment"},
		"version 3":          {with(func(s *segment) { s.Version = 3 }), Malformed, "version 3 of the segment is unknown"},
		"wiped":              {with(func(s *segment) { s.Version = 0 }), Unsynchronized, "the ClockBound daemon has not written yet"},
		"not initialized":    {with(func(s *segment) { s.Generation = 0 }), Unsynchronized, "the ClockBound daemon has not written yet"},
		"mid-write":          {with(func(s *segment) { s.Generation = 7 }), Busy, "the segment was being written each of 100 times"},
		"unknown":            {with(func(s *segment) { s.Status = boundUnknown }), Unsynchronized, "does not know how good"},
		"disrupted":          {with(func(s *segment) { s.Status = boundDisrupted }), Disturbed, "the virtual machine was disrupted"},
		"other status":       {with(func(s *segment) { s.Status = 4 }), Malformed, "status 4 is unknown"},
		"void":               {with(func(s *segment) { s.VoidAfter = seenAt }), Stale, "void for 0s: the daemon is not running"},
		"future":             {with(func(s *segment) { s.AsOf = seenAt + 1002 }), Implausible, "of another boot or time namespace"},
		"negative time":      {put(16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), Malformed, "monotonic time of -1 s"},
		"long second":        {put(24, 0, 0xff, 0xff, 0xff), Malformed, "monotonic time of 999 s"},
		"negative bound":     {with(func(s *segment) { s.Bound = -1 }), Malformed, "negative bound -1ns"},
		"no bound":           {with(func(s *segment) { s.Bound = time.Hour }), Unsynchronized, "1h0m0s is no bound"},
		"endless bound":      {with(func(s *segment) { s.Bound = 1<<63 - 1 }), Unsynchronized, "is no bound"},
		"drifting":           {with(func(s *segment) { s.Drift = 1e9 }), Malformed, "drift of 1000000000 parts per billion"},
		"no device":          {with(func(s *segment) { s.Disruption = true }), Unavailable, "cannot tell whether the virtual machine was disrupted"},
	}
}

func TestClockBoundRefuses(t *testing.T) {
	for name, c := range brokenSegments() {
		t.Run(name, func(t *testing.T) {
			source := clockBoundOf(t, c.b)
			source.options.VMClock = filepath.Join(t.TempDir(), "vmclock0")
			samples, err := source.Sample(t.Context())
			got := refusals("clockbound", err)
			if len(samples) != 0 || len(got) != 1 || got[0].Reason != c.reason || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, %v, want %s: %s", samples, err, c.reason, c.text)
			}
		})
	}
}

func TestClockBoundWatchesTheDevice(t *testing.T) {
	s := written(2)
	s.Disruption, s.Marker = true, 77
	source := clockBoundOf(t, s.write())
	source.options.VMClock = filepath.Join(t.TempDir(), "vmclock0")
	page := func(magic uint32, marker uint64) []byte {
		b := make([]byte, 4096)
		binary.LittleEndian.PutUint32(b, magic)
		binary.LittleEndian.PutUint64(b[vmClockMarker:], marker)
		return b
	}
	for _, c := range []struct {
		page []byte
		want string
	}{
		{page(vmClockMagic, 77), ""},
		{page(vmClockMagic, 78), "the virtual machine was disrupted: marker 78, the daemon saw 77"},
		{page(1, 77), "magic number 00000001: this is no VMClock"},
		{page(vmClockMagic, 77)[:23], "unexpected EOF"},
	} {
		if err := os.WriteFile(source.options.VMClock, c.page, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := source.Sample(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// torn is a segment that is written while it is read: each reading ends where
// the writer has got to.
type torn struct {
	mu   sync.Mutex
	from func(reading int) []byte
	n    int
}

func (f *torn) ReadAt(b []byte, _ int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return copy(b, f.from(f.n)), io.EOF
}

// TestTornSegmentIsReadAgain mixes the halves of two segments at every byte: what
// is taken is one of them, whole.
func TestTornSegmentIsReadAgain(t *testing.T) {
	first, second := written(2), written(2)
	second.Generation, second.Bound, second.AsOf = 10, time.Millisecond, 1000e9
	writing := first
	writing.Generation = 9
	a, b := writing.write(), second.write()
	for cut := range len(a) + 1 {
		mixed := slices.Concat(b[:cut], a[cut:])
		if cut > 12 { // The generation stays odd until everything is written.
			copy(mixed[12:16], a[12:16])
		}
		file := &torn{from: func(reading int) []byte {
			switch {
			case reading <= 2:
				return mixed
			case reading == 3:
				return first.write() // The reader may have been late.
			}
			return b
		}}
		if got, err := readSegment(file); err != nil || got != second {
			t.Fatalf("cut at %d: %+v, %v", cut, got, err)
		}
	}
}

// TestSegmentUnderAWriter reads a file that another goroutine keeps writing as
// the daemon does. Each segment carries a sum in its bound.
func TestSegmentUnderAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shm0")
	segmentOf := func(generation uint16) segment {
		s := written(2)
		s.Generation, s.AsOf, s.Marker = generation, clocksync.Instant(generation), uint64(generation)
		s.Bound = time.Duration(generation) * 3
		return s
	}
	if err := os.WriteFile(path, segmentOf(2).write(), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var done atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for generation := uint16(2); !done.Load(); generation += 2 {
			next := segmentOf(max(generation, 2)).write()
			odd := binary.NativeEndian.AppendUint16(nil, generation+1)
			_, e1 := file.WriteAt(odd, 14)
			_, e2 := file.WriteAt(next[16:], 16)
			_, e3 := file.WriteAt(next[14:16], 14)
			if err := errors.Join(e1, e2, e3); err != nil {
				t.Error(err)
				return
			}
		}
	})
	read := 0
	for range 20_000 {
		s, err := readSegment(file)
		if err != nil {
			if refusalOf("clockbound", "", err).Reason != Busy {
				t.Fatal(err)
			}
			continue
		}
		read++
		if s != segmentOf(s.Generation) {
			t.Fatalf("torn: %+v", s)
		}
	}
	done.Store(true)
	writer.Wait()
	if read == 0 {
		t.Error("nothing was read")
	}
}

func FuzzSegment(f *testing.F) {
	f.Add(written(1).write())
	f.Add(written(2).write())
	for _, b := range brokenSegments() {
		f.Add(b.b)
	}
	seen := clocksync.Observation{Mono: seenAt, Wall: away + seenAt, Boot: seenAt, Slack: 100}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSegment(b)
		if err != nil {
			if refusalOf("clockbound", "", err).Reason == Failed {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		sample, err := s.sample(seen)
		if err != nil {
			return
		}
		if s.Generation%2 != 0 || s.Generation == 0 || sample.Offset.Width() < 2*s.Bound || !sample.Offset.Bounded() ||
			sample.From > sample.At || sample.Lasts <= 0 || !sample.Offset.Contains(away) {
			t.Fatalf("%x gives %+v", b, sample)
		}
	})
}

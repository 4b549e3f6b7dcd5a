package source

import (
	"encoding/binary"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// A segment of the ClockBound daemon, all numbers in the byte order of the
// machine. The header: the magic number (two words, although the protocol paper
// shows them as bytes), the size, the version and the generation, odd while the
// daemon writes. Then as-of and void-after, each seconds and nanoseconds of the
// monotonic clock, and the bound. The rest depends on the version.
const (
	segmentMagic1 = 0x414d5a4e
	segmentMagic2 = 0x43420200
	segmentHeader = 16
	segmentSize1  = 72
	segmentSize2  = 80
)

// The states a segment tells.
const (
	boundUnknown = iota
	boundSynchronized
	boundFreeRunning
	boundDisrupted
)

// segment is what the daemon wrote.
type segment struct {
	Version    uint16
	Generation uint16
	AsOf       clocksync.Instant // reading of the monotonic clock at which Bound held
	VoidAfter  clocksync.Instant // reading after which nothing holds
	Bound      time.Duration
	Drift      uint32 // parts per billion by which Bound grows
	Status     int32
	Marker     uint64 // of the last disruption of the virtual machine
	Disruption bool   // the marker is kept
}

// decodeSegment reads a segment. It does not judge the status.
func decodeSegment(b []byte) (segment, error) {
	order := binary.NativeEndian
	if len(b) < segmentHeader {
		return segment{}, refuseServer(Malformed, "segment of %d bytes, not even a header of %d", len(b), segmentHeader)
	}
	if m1, m2 := order.Uint32(b), order.Uint32(b[4:]); m1 != segmentMagic1 || m2 != segmentMagic2 {
		return segment{}, refuseServer(Malformed, "magic number %08x %08x: this is no ClockBound segment", m1, m2)
	}
	size := order.Uint32(b[8:])
	s := segment{Version: order.Uint16(b[12:]), Generation: order.Uint16(b[14:])}
	want := segmentSize1
	if s.Version == 2 {
		want = segmentSize2
	}
	switch {
	case s.Version == 0 || s.Generation == 0:
		return segment{}, refuseServer(Unsynchronized, "the ClockBound daemon has not written yet")
	case s.Version > 2:
		return segment{}, refuseServer(Malformed, "version %d of the segment is unknown: versions 1 and 2 are known", s.Version)
	case s.Generation%2 != 0:
		return segment{}, refuseServer(Busy, "generation %d: the daemon is writing, or died while it did", s.Generation)
	case size < uint32(want) || len(b) < want:
		return segment{}, refuseServer(Malformed, "segment of %d bytes, said to be %d, want %d", len(b), size, want)
	}
	return s.decodeBody(b)
}

func (s segment) decodeBody(b []byte) (segment, error) {
	order := binary.NativeEndian
	var err error
	if s.AsOf, err = kernelTime(b[16:]); err != nil {
		return segment{}, err
	}
	if s.VoidAfter, err = kernelTime(b[32:]); err != nil {
		return segment{}, err
	}
	s.Bound = time.Duration(order.Uint64(b[48:]))
	if s.Version == 1 {
		s.Drift, s.Status = order.Uint32(b[56:]), int32(order.Uint32(b[64:]))
	} else {
		s.Marker, s.Drift = order.Uint64(b[56:]), order.Uint32(b[64:])
		s.Status, s.Disruption = int32(order.Uint32(b[68:])), b[72] != 0
	}
	switch {
	case s.Drift >= 1e9:
		return segment{}, refuseServer(Malformed, "drift of %d parts per billion", s.Drift)
	case s.Bound < 0:
		return segment{}, refuseServer(Malformed, "negative bound %v", s.Bound)
	}
	return s, nil
}

// maxUptime is beyond what any reading of a monotonic clock comes to.
const maxUptime = 1 << 32

func kernelTime(b []byte) (clocksync.Instant, error) {
	sec, nsec := int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
	if sec < 0 || sec > maxUptime || nsec < 0 || nsec >= 1e9 {
		return 0, refuseServer(Malformed, "monotonic time of %d s and %d ns", sec, nsec)
	}
	return clocksync.Instant(sec*1e9 + nsec), nil
}

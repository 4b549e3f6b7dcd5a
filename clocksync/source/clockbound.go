package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// ClockBoundOptions configure [ClockBound].
type ClockBoundOptions struct {
	// Path is the segment. By default it is /var/run/clockbound/shm0, where
	// daemons since 2.0 write version 2, or else /var/run/clockbound/shm, where
	// those since 1.0 write version 1.
	Path string
	// VMClock is the device that tells of disruptions of the virtual machine, as
	// a migration: /dev/vmclock0 by default. It is read if the daemon uses it.
	VMClock string
	// Every is the time between two polls: 1 s by default, at least 10 ms.
	Every time.Duration
	// Timeline is UTC by default; say SmearedUTC if the daemon's servers smear
	// leap seconds.
	Timeline clocksync.Timeline
}

// ClockBound reads the shared memory of the ClockBound daemon, versions 1 and 2
// of its protocol, by its rules: a bound counts while the daemon says that it is
// synchronized or free running, grows by the drift that the daemon names from
// the moment it was measured, and ends at the moment the daemon names.
func ClockBound(o ClockBoundOptions) (Source, error) {
	o.VMClock = orDefault(o.VMClock, "/dev/vmclock0")
	one, err := newSingle("clockbound", o.Every, 0, o.Timeline)
	if err != nil {
		return nil, err
	}
	paths := []string{o.Path}
	if o.Path == "" {
		paths = []string{"/var/run/clockbound/shm0", "/var/run/clockbound/shm"}
	}
	c := &clockBound{one, o, paths}
	c.take = c.first
	return c, nil
}

type clockBound struct {
	single
	options ClockBoundOptions
	paths   []string
}

// first reads the first of the paths that exists.
func (c *clockBound) first(context.Context) (s clocksync.Sample, err error) {
	for _, c.server = range c.paths {
		if s, err = c.sample(c.server); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return s, err
}

func (c *clockBound) sample(path string) (clocksync.Sample, error) {
	file, err := os.Open(path)
	if err != nil {
		return clocksync.Sample{}, refuseServer(Unavailable, "no segment; is the ClockBound daemon running? %w", err)
	}
	defer func() { _ = file.Close() }()
	s, err := readSegment(file)
	if err != nil {
		return clocksync.Sample{}, err
	}
	if s.Disruption {
		if err := undisrupted(c.options.VMClock, s.Marker); err != nil {
			return clocksync.Sample{}, err
		}
	}
	return s.sample(c.clocks.observeClocks())
}

// attempts is how often a segment is read that changes under the hand. The
// daemon writes once a second.
const attempts = 100

// readSegment reads a segment twice in a row until both are the same: what is
// read while the daemon writes has an odd or another generation the second time.
// The file is read and not mapped, since it may be cut short at any time, and a
// mapping would end the process then.
func readSegment(file io.ReaderAt) (segment, error) {
	var first, second [segmentSize2]byte
	for range attempts {
		n, err := readAt(file, first[:])
		if err != nil {
			return segment{}, err
		}
		m, err := readAt(file, second[:])
		if err != nil {
			return segment{}, err
		}
		if !bytes.Equal(first[:n], second[:m]) {
			continue
		}
		s, err := decodeSegment(first[:n])
		if f, ok := errors.AsType[*fault](err); ok && f.reason == Busy {
			continue
		}
		return s, err
	}
	return segment{}, refuseServer(Busy, "the segment was being written each of %d times: the daemon may have died at it", attempts)
}

// readAt reads what there is, up to the length of b.
func readAt(file io.ReaderAt, b []byte) (int, error) {
	n, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, refuseServer(Unavailable, "cannot read the segment: %w", err)
	}
	return n, nil
}

// causality is how far as-of may lie ahead of the readings: the daemon's clock
// is a coarser one (clock-bound-shm, compute_bound_at).
const causality = time.Microsecond

// sample is what a segment says about the wall clock as observed after it was read.
func (s *segment) sample(o clocksync.Observation) (clocksync.Sample, error) {
	switch {
	case s.Status == boundUnknown:
		return clocksync.Sample{}, refuseServer(Unsynchronized, "the daemon does not know how good the clock is")
	case s.Status == boundDisrupted:
		return clocksync.Sample{}, refuseServer(Disturbed, "the virtual machine was disrupted: the daemon has no bound yet")
	case s.Status != boundSynchronized && s.Status != boundFreeRunning:
		return clocksync.Sample{}, refuseServer(Malformed, "status %d is unknown", s.Status)
	case o.Mono < s.AsOf.Add(-causality):
		return clocksync.Sample{}, refuseServer(Implausible, "measured %v in the future: the segment is of another boot or time namespace", s.AsOf.Sub(o.Mono))
	case o.Mono.Add(o.Slack) >= s.VoidAfter:
		return clocksync.Sample{}, refuseServer(Stale, "void for %v: the daemon is not running", o.Mono.Sub(s.VoidAfter))
	}
	growth := math.Ceil(float64(max(0, o.Mono.Add(o.Slack).Sub(s.AsOf))) * float64(s.Drift) * 1e-9)
	bound := s.Bound + time.Duration(growth)
	if bound < 0 || bound > maxDistance {
		return clocksync.Sample{}, refuseServer(Unsynchronized, "%v is no bound", s.Bound)
	}
	sample := ofWall(o, bound, 0)
	sample.From, sample.At = min(s.AsOf, o.Mono), o.Mono.Add(o.Slack)
	sample.Lasts, sample.Drift = s.VoidAfter.Sub(sample.At), min(float64(s.Drift)/1000, clocksync.MaxDrift)
	sample.Parts.RootDispersion = s.Bound
	return sample, nil
}

// Of the device's page (linux/vmclock-abi.h, little-endian): the magic number
// "VCLK", and the marker that changes with each disruption.
const (
	vmClockMagic  = 0x4b4c4356
	vmClockMarker = 16
	vmClockLength = 24
)

// undisrupted refuses a segment that was written before the last disruption.
func undisrupted(device string, marker uint64) error {
	file, err := os.Open(device)
	if err != nil {
		return refuseServer(Unavailable, "cannot tell whether the virtual machine was disrupted, which the daemon watches for: %w", err)
	}
	defer func() { _ = file.Close() }()
	var page [vmClockLength]byte
	if _, err := io.ReadFull(file, page[:]); err != nil {
		return refuseServer(Unavailable, "cannot tell whether the virtual machine was disrupted, which the daemon watches for: %s: %w", device, err)
	}
	if magic := binary.LittleEndian.Uint32(page[:]); magic != vmClockMagic {
		return refuseServer(Malformed, "%s: magic number %08x: this is no VMClock", device, magic)
	}
	if now := binary.LittleEndian.Uint64(page[vmClockMarker:]); now != marker {
		return refuseServer(Disturbed, "the virtual machine was disrupted: marker %d, the daemon saw %d", now, marker)
	}
	return nil
}

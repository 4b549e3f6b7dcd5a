package source

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// ChronyOptions configure [Chrony].
type ChronyOptions struct {
	// Address is where chronyd takes commands: "host:port", or the path of its
	// socket, which begins with "/" and needs the right to write beside it. The
	// default is 127.0.0.1:323, open to every user of the machine.
	Address string
	// Every is the time between two polls: 1 s by default, at least 10 ms.
	Every time.Duration
	// Timeout is how long an answer may take: 1 s by default.
	Timeout time.Duration
	// Timeline is UTC by default; say SmearedUTC if its servers smear leap seconds.
	Timeline clocksync.Timeline
}

// Chrony asks a chronyd on this machine how far the wall clock is off: by its
// remaining correction, which it is being slewed by, and on top of that by the
// root dispersion and half the root delay, all at the moment of the answer.
//
// The bound is as good as chronyd's dispersion, which grows at the frequency
// error it estimates and "maxclockerror", 1 ppm by default: set that to 50 in
// chrony.conf, as ClockBound asks for, to make it a bound and no estimate. A
// chronyd that follows nothing but itself ("local", "manual") is refused.
func Chrony(o ChronyOptions) (Source, error) {
	one, err := newSingle("chrony", o.Every, o.Timeout, o.Timeline)
	if err != nil {
		return nil, err
	}
	c := &chrony{one, dialChrony}
	c.server, c.take = orDefault(o.Address, "127.0.0.1:323"), c.sample
	return c, nil
}

type chrony struct {
	single
	dial func(ctx context.Context, address string) (net.Conn, error)
}

func (c *chrony) sample(ctx context.Context) (clocksync.Sample, error) {
	before := c.clocks.observeClocks()
	t, err := c.ask(ctx)
	if err != nil {
		return clocksync.Sample{}, err
	}
	if _, err := c.clocks.checkUndisturbed(before); err != nil {
		return clocksync.Sample{}, err
	}
	return t.sample(before)
}

// Two references of a chronyd that follows nobody: the address 127.127.1.1 of
// the mode "local", and the letters MANU.
const (
	chronyLocal  = 0x7f7f0101
	chronyManual = 0x4d414e55
)

// maxDistance is what RFC 5905 lets a server be off at most (MAXDISP).
const maxDistance = 16 * time.Second

// sample is what the report says about the wall clock as it was observed before
// asking. The report is of some moment after that: taken as of then, it grows for
// longer than it must.
func (t *tracking) sample(before clocksync.Observation) (clocksync.Sample, error) {
	switch {
	case t.Leap > uint16(clocksync.LeapDelete) || t.Stratum >= 16 || t.Reference == 0:
		return clocksync.Sample{}, refuseServer(Unsynchronized, "chronyd is not synchronized: wait, or look at chronyc sources")
	case t.Reference == chronyLocal || t.Reference == chronyManual:
		return clocksync.Sample{}, refuseServer(Unsynchronized, "chronyd follows only itself (%s): give it a server or a reference clock", t.nameFollowed())
	}
	distance := t.Dispersion + (t.Delay+1)/2
	if distance > maxDistance {
		return clocksync.Sample{}, refuseServer(Unsynchronized, "a root distance of %v is no bound", distance)
	}
	sample := ofWall(before, distance, t.Correction)
	updated := clocksync.Instant(t.Updated.UnixNano()).Add(-time.Duration(wallOffset(before).Latest))
	sample.From, sample.Leap = min(updated, before.Mono), clocksync.Leap(t.Leap)
	sample.Parts.RootDelay, sample.Parts.RootDispersion = t.Delay, t.Dispersion
	return sample, nil
}

// ask sends a request and waits for the reply to it.
func (c *chrony) ask(ctx context.Context) (t tracking, err error) {
	inner, err := c.dial(ctx, c.server)
	if err != nil {
		return t, refuseServer(Unavailable, "cannot reach chronyd; is it running, and may this user write beside its socket? %w", err)
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // It never fails.
	sequence := binary.BigEndian.Uint32(random[:])
	var refused error // by chronyd, in its reply
	conn := &replies{Conn: inner, ctx: ctx, check: func(reply, _ []byte) error {
		t, refused = decodeTracking(reply, sequence)
		if f, ok := errors.AsType[*fault](refused); ok && (f.reason == Mismatch || f.reason == Malformed) {
			return refused
		}
		return nil
	}}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return t, err
	}
	if _, err := conn.Write(appendTracking(nil, sequence)); err != nil {
		return t, refuseServer(Unavailable, "cannot ask chronyd: %w", err)
	}
	_, err = conn.Read(make([]byte, chronyLength+1)) // One more shows what is too long.
	switch {
	case err == nil:
		return t, refused
	case conn.skipped != nil:
		return t, conn.skipped
	case errors.Is(err, os.ErrDeadlineExceeded):
		return t, refuseServer(Unanswered, "no answer within %v", c.timeout)
	}
	return t, refuseServer(Unavailable, "no chronyd answers; is it running, and its cmdport not 0? %w", err)
}

// dialChrony connects to the address. A socket in the file system needs one of our own
// for the answer, which is removed when the connection is closed.
func dialChrony(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	if !strings.HasPrefix(address, "/") {
		return dialer.DialContext(ctx, "udp", address)
	}
	own := filepath.Join(filepath.Dir(address), "pegasus."+rand.Text()+".sock")
	conn, err := net.DialUnix("unixgram",
		&net.UnixAddr{Net: "unixgram", Name: own},
		&net.UnixAddr{Net: "unixgram", Name: address})
	if err != nil {
		_ = os.Remove(own) // It is there if only the connecting failed.
		return nil, err
	}
	// chronyd answers as another user.
	if err := os.Chmod(own, 0o666); err != nil {
		_ = conn.Close()
		_ = os.Remove(own)
		return nil, err
	}
	return &ownSocket{conn, own}, nil
}

// ownSocket removes its file when it is closed.
type ownSocket struct {
	*net.UnixConn

	path string
}

func (s *ownSocket) Close() error {
	return errors.Join(s.UnixConn.Close(), os.Remove(s.path))
}

package source

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// The command protocol of chronyd, version 6, as its candm.h lays it out: one
// request, one reply, both of this many bytes, all numbers big-endian.
const (
	chronyVersion  = 6
	chronyRequest  = 1
	chronyReply    = 2
	chronyTracking = 33 // the command
	chronyReport   = 5  // its reply
	chronyLength   = 104
)

// Offsets into a reply. A request has its sequence at 8.
const (
	atCommand    = 4
	atReply      = 6
	atStatus     = 8
	atSequence   = 16
	atReference  = 28
	atStratum    = 52
	atLeap       = 54
	atUpdated    = 56
	atCorrection = 68
	atDelay      = 92
	atDispersion = 96
	atInterval   = 100
)

// appendTracking appends a request for the tracking report. It is padded to the
// length of the reply, or chronyd does not answer.
func appendTracking(b []byte, sequence uint32) []byte {
	request := [chronyLength]byte{0: chronyVersion, 1: chronyRequest}
	binary.BigEndian.PutUint16(request[4:], chronyTracking)
	binary.BigEndian.PutUint32(request[8:], sequence)
	return append(b, request[:]...)
}

// tracking is what chronyd says about the clock it keeps.
type tracking struct {
	Reference  uint32 // who it follows: an address, or a name in ASCII
	Stratum    uint16
	Leap       uint16        // 0 none, 1 and 2 pending, 3 not synchronised
	Updated    time.Time     // the last update of the clock
	Correction time.Duration // still to be added to the wall clock
	Delay      time.Duration // of the whole way to the reference clock and back
	Dispersion time.Duration // the error of the whole way, grown since the update
	Interval   time.Duration // between the last two updates
}

// decodeTracking reads a reply to the request with that sequence.
func decodeTracking(b []byte, sequence uint32) (tracking, error) {
	if len(b) < atReference {
		return tracking{}, refuseServer(Malformed, "reply of %d bytes, want %d", len(b), chronyLength)
	}
	if b[0] != chronyVersion || b[1] != chronyReply {
		return tracking{}, refuseServer(Malformed, "packet type %d of protocol version %d, want %d of %d", b[1], b[0], chronyReply, chronyVersion)
	}
	if got := binary.BigEndian.Uint32(b[atSequence:]); got != sequence {
		return tracking{}, refuseServer(Mismatch, "sequence %d, want %d", got, sequence)
	}
	if got := binary.BigEndian.Uint16(b[atCommand:]); got != chronyTracking {
		return tracking{}, refuseServer(Mismatch, "reply to command %d, want %d", got, chronyTracking)
	}
	if status := binary.BigEndian.Uint16(b[atStatus:]); status != 0 {
		return tracking{}, refuseServer(Denied, "status %d: the daemon does not answer this command here", status)
	}
	if reply := binary.BigEndian.Uint16(b[atReply:]); reply != chronyReport || len(b) != chronyLength {
		return tracking{}, refuseServer(Malformed, "reply %d of %d bytes, want %d of %d", reply, len(b), chronyReport, chronyLength)
	}
	return decodeReport(b)
}

func decodeReport(b []byte) (t tracking, err error) {
	t.Reference = binary.BigEndian.Uint32(b[atReference:])
	t.Stratum = binary.BigEndian.Uint16(b[atStratum:])
	t.Leap = binary.BigEndian.Uint16(b[atLeap:])
	if t.Updated, err = chronyTime(b[atUpdated:]); err != nil {
		return tracking{}, err
	}
	for _, field := range []struct {
		name string
		at   int
		into *time.Duration
	}{
		{"correction", atCorrection, &t.Correction},
		{"root delay", atDelay, &t.Delay},
		{"root dispersion", atDispersion, &t.Dispersion},
		{"update interval", atInterval, &t.Interval},
	} {
		seconds := chronyFloat(binary.BigEndian.Uint32(b[field.at:]))
		if math.Abs(seconds) > maxSeconds || seconds < 0 && field.at != atCorrection {
			return tracking{}, refuseServer(Malformed, "%s of %g s", field.name, seconds)
		}
		*field.into = ceil(seconds)
	}
	return t, nil
}

// maxSeconds is where a number of seconds is no longer taken as one.
const maxSeconds = 1e9

// ceil rounds away from zero, so that no error is made smaller.
func ceil(seconds float64) time.Duration {
	if seconds < 0 {
		return -ceil(-seconds)
	}
	return time.Duration(math.Ceil(seconds * 1e9))
}

// chronyTime is three numbers: seconds, high and low half, and nanoseconds. A
// high half of all ones but the sign stands for none.
func chronyTime(b []byte) (time.Time, error) {
	high, low := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	nano := binary.BigEndian.Uint32(b[8:])
	if high == math.MaxInt32 {
		high = 0
	}
	if high > 3 || nano >= 1e9 { // Up to the year 2514.
		return time.Time{}, refuseServer(Malformed, "time of %d, %d s and %d ns", high, low, nano)
	}
	return time.Unix(int64(high)<<32|int64(low), int64(nano)), nil
}

// chronyFloat has 7 bits of exponent and 25 of coefficient, both signed and
// without a hidden bit: coefficient * 2^(exponent-25).
func chronyFloat(x uint32) float64 {
	const bits = 25
	exponent := int32(x) >> bits
	coefficient := int32(x<<(32-bits)) >> (32 - bits)
	return math.Ldexp(float64(coefficient), int(exponent)-bits)
}

// nameFollowed names what chronyd follows: a reference of printable characters as
// they are, others in hexadecimal, as chronyc does.
func (t *tracking) nameFollowed() string {
	var name []byte
	for shift := 24; shift >= 0; shift -= 8 {
		switch c := byte(t.Reference >> shift); {
		case c == 0:
		case c < '!' || c > '~':
			return fmt.Sprintf("%08X", t.Reference)
		default:
			name = append(name, c)
		}
	}
	return string(name)
}

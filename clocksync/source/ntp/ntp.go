package ntp

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/beevik/ntp"

	"github.com/gopegasus/pegasus/clocksync"
)

// Query sends one request to a server and waits at most timeout for the reply. The address is a
// host, with ":port" if the port is not 123. The function now reads the clock of both ends of
// the exchange, and dial opens the connection. Of the sample only Leap, RootDelay,
// RootDispersion and Precision are set. Programs hand Query to source.NTP, which calls it from
// several goroutines at once.
//
// If the server refuses, or its reply gives no time, the error has a method Reason with the text of a
// source.Reason. The error for a kiss code also has a method Kiss, which returns the code.
func Query(address string, timeout time.Duration, now func() clocksync.Instant, dial func(remote string) (net.Conn, error)) (clocksync.Exchange, clocksync.Sample, error) {
	r, err := ntp.QueryWithOptions(address, ntp.QueryOptions{
		Timeout:       timeout,
		GetSystemTime: func() time.Time { return time.Unix(0, int64(now())) },
		Dialer:        func(_, remote string) (net.Conn, error) { return dial(remote) },
	})
	if err == nil && r.IsKissOfDeath() {
		err = &kissError{r.KissCode}
	}
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return clocksync.Exchange{}, clocksync.Sample{}, reasoned(err)
	}
	x := clocksync.Exchange{
		Sent:     instantOf(r.Timestamps.ClientXmit),
		Arrived:  instantOf(r.Timestamps.ServerRecv),
		Departed: instantOf(r.Timestamps.ServerXmit),
		Received: instantOf(r.Timestamps.ClientRecv),
	}
	sample := clocksync.Sample{Leap: clocksync.Leap(r.Leap), Parts: clocksync.Parts{
		RootDelay: r.RootDelay, RootDispersion: r.RootDispersion,
		Precision: r.Precision + time.Nanosecond, // The exponent was rounded down.
	}}
	return x, sample, nil
}

func instantOf(t time.Time) clocksync.Instant { return clocksync.Instant(t.UnixNano()) }

// reasons are the reasons of package source for the errors of beevik/ntp.
var reasons = map[error]string{
	ntp.ErrServerResponseMismatch: "mismatch",
	ntp.ErrInvalidMode:            "malformed",
	ntp.ErrInvalidTransmitTime:    "malformed",
	ntp.ErrServerTickedBackwards:  "implausible",
	ntp.ErrInvalidTime:            "implausible",
	ntp.ErrInvalidStratum:         "unsynchronized",
	ntp.ErrInvalidLeapSecond:      "unsynchronized",
	ntp.ErrInvalidDispersion:      "unsynchronized",
	ntp.ErrServerClockFreshness:   "stale",
}

// reasoned gives an error of beevik/ntp its reason. It returns any other error as it is.
func reasoned(err error) error {
	for known, reason := range reasons {
		if errors.Is(err, known) {
			return &replyError{err, reason}
		}
	}
	return err
}

// replyError is a fault of a reply.
type replyError struct {
	err    error
	reason string
}

func (e *replyError) Error() string  { return e.err.Error() }
func (e *replyError) Unwrap() error  { return e.err }
func (e *replyError) Reason() string { return e.reason }

// kissError is a server's wish to be left alone.
type kissError struct{ code string }

func (k *kissError) Error() string { return fmt.Sprintf("kiss code %q instead of a time", k.code) }
func (k *kissError) Kiss() string  { return k.code }

// Reason distinguishes a server that does not know the time yet from a server that refuses
// questions (RFC 5905, section 7.4).
func (k *kissError) Reason() string {
	if k.code == "INIT" || k.code == "STEP" || k.code == "" {
		return "unsynchronized"
	}
	return "denied"
}

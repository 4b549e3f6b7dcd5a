package source

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// readAdjtimex reads the state of the kernel's clock. It sets nothing.
func readAdjtimex() (discipline, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return discipline{}, refuseServer(Unavailable, "adjtimex: %w", err)
	}
	single := unix.Timex{Modes: unix.ADJ_OFFSET_SS_READ}
	if _, err := unix.Adjtimex(&single); err != nil {
		return discipline{}, refuseServer(Unavailable, "adjtimex: %w", err)
	}
	offset := micros(t.Offset)
	if t.Status&unix.STA_NANO != 0 {
		offset = time.Duration(t.Offset)
	}
	return discipline{
		State:   state,
		Max:     micros(t.Maxerror),
		Est:     micros(t.Esterror),
		Offset:  offset,
		Adjtime: micros(single.Offset),
	}, nil
}

// micros saturates, so that no error becomes small by being large.
func micros[N int32 | int64](n N) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(int64(n), -most), most)) * time.Microsecond
}

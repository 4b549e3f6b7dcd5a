package source

import (
	"context"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// KernelOptions configure [Kernel].
type KernelOptions struct {
	// Every is the time between two polls: 1 s by default, at least 10 ms.
	Every time.Duration
	// Timeline is UTC by default; say SmearedUTC if the servers of the daemon that
	// keeps the clock smear leap seconds.
	Timeline clocksync.Timeline
}

// Kernel asks the kernel for the maximum error that the daemon which keeps the
// clock has told it (adjtimex, as ntp_gettime). It is there on Linux only.
//
// It is a bound only if that daemon means it, so prefer another source where
// there is one:
//
//   - chronyd leaves out what it has not yet corrected. [Chrony] has it.
//   - systemd-timesyncd says that there is no error at all, which is refused.
//   - The kernel adds 500 ppm itself, so the bound is an order of magnitude wider
//     than need be between updates, and ends at 16 s. Then the clock counts as not
//     synchronized; the flag for that (STA_UNSYNC) means nothing, since it stays
//     set under a chronyd without "rtcsync".
func Kernel(o KernelOptions) (Source, error) {
	one, err := newSingle("kernel", o.Every, 0, o.Timeline)
	if err != nil {
		return nil, err
	}
	k := &kernel{one, readAdjtimex}
	k.take = k.sample
	return k, nil
}

type kernel struct {
	single
	ask func() (discipline, error)
}

func (k *kernel) sample(context.Context) (clocksync.Sample, error) {
	before := k.clocks.observeClocks()
	d, err := k.ask()
	if err != nil {
		return clocksync.Sample{}, err
	}
	if _, err := k.clocks.checkUndisturbed(before); err != nil {
		return clocksync.Sample{}, err
	}
	return d.sample(before)
}

// discipline is what the kernel knows about its wall clock.
type discipline struct {
	State   int           // a clock state of adjtimex
	Max     time.Duration // the maximum error
	Est     time.Duration // the estimated error
	Offset  time.Duration // still to be added to the wall clock, by the kernel's own loop
	Adjtime time.Duration // likewise, by adjtime
}

// The states of adjtimex that matter here.
const (
	timeInsert  = 1 // a leap second will be inserted
	timeDelete  = 2
	timeLeaping = 3 // it is being inserted
)

const (
	// maxMaxError is where the kernel stops counting (NTP_PHASE_LIMIT).
	maxMaxError = 16 * time.Second
	// tickError is what the kernel may have to add yet: it does so once a second.
	tickError = 500 * time.Microsecond
)

// sample is what the kernel says about the wall clock as observed before asking.
func (d *discipline) sample(before clocksync.Observation) (clocksync.Sample, error) {
	correction := d.Offset + d.Adjtime
	switch {
	case d.Max < 0 || d.Est < 0 || max(d.Offset.Abs(), d.Adjtime.Abs()) > maxMaxError:
		return clocksync.Sample{}, refuseServer(Malformed, "maximum error %v, estimated error %v, correction %v", d.Max, d.Est, correction)
	case d.Max >= maxMaxError:
		return clocksync.Sample{}, refuseServer(Unsynchronized, "the maximum error is %v or more: no daemon keeps the clock", maxMaxError)
	case d.Est == 0:
		return clocksync.Sample{}, refuseServer(Unsynchronized, "the estimated error is 0, which systemd-timesyncd says of every clock: run chronyd, or ask servers yourself")
	case d.State == timeLeaping:
		return clocksync.Sample{}, refuseServer(Disturbed, "a leap second is being inserted")
	}
	sample := ofWall(before, d.Max+tickError, correction)
	sample.Server, sample.Parts.RootDispersion = "adjtimex", d.Max
	if d.State == timeInsert || d.State == timeDelete {
		sample.Leap = clocksync.Leap(d.State) // They have the same numbers.
	}
	return sample, nil
}

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/clocksync/source/ntp"
)

const clockHelp = `clock prints how well the time is known on this host: the bound, its parts, and
each server with its interval drawn on one scale. It sets no clock.

Without a flag that names a source it asks this machine only, never the network. It
tries ClockBound, chronyd and the kernel, in this order, and uses the first that has
a bound, since all three report the same wall clock. It prints which others it tried.
Named sources are asked together; with 2f+1 servers, f of them may be wrong.

Exit codes: 0 there is a bound, or --watch was ended, 1 no bound can be claimed,
2 wrong usage.`

const clockExample = `  pegasus clock
  pegasus clock --ntp ntp1.example.com,ntp2.example.com,ntp3.example.com --watch
  pegasus clock --chrony local --limit 1ms --json
  pegasus clock --timeout 1m && start-what-needs-the-time`

// clockFlags are the flags of clock.
type clockFlags struct {
	ntp                  []string
	chrony, clockBound   string
	kernel               bool
	bound, limit         time.Duration
	timeout              time.Duration
	faults               int
	drift                float64
	smeared              bool
	watch, asJSON        bool
	faultsGiven, hasWait bool
	hasBound             bool
}

// clockSources are the sources of a clock: all named ones, or the first source of
// this machine that has a bound.
type clockSources struct{ named, local []source.Source }

// opener makes the sources that the flags name; tests have others.
type opener func(*clockFlags) (clockSources, error)

func newClock(open opener) *cobra.Command {
	var f clockFlags
	cmd := &cobra.Command{
		Use:     "clock",
		Short:   "Tell how well the time is known here",
		Long:    clockHelp,
		Example: clockExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := cmd.Flags().Changed
			f.faultsGiven, f.hasWait, f.hasBound = changed("faults"), changed("timeout"), changed("bound")
			if !changed("drift") {
				f.drift = source.DefaultDrift()
			}
			if err := f.check(changed); err != nil {
				return err
			}
			sources, err := open(&f)
			if err != nil {
				return unprefixed(err)
			}
			run := clockRun{flags: &f, sources: sources, stdout: cmd.OutOrStdout(), every: watchEvery}
			return run.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.ntp, "ntp", nil, "ask these NTP servers, `HOST,HOST`; add :PORT if it is not 123")
	flags.StringVar(&f.chrony, "chrony", "", "ask the chronyd of this machine at `ADDR`: HOST:PORT on loopback, its socket's path, or local for 127.0.0.1:323")
	flags.StringVar(&f.clockBound, "clockbound", "", "read the ClockBound segment `PATH`; local is the usual segment of the daemon")
	flags.BoolVar(&f.kernel, "kernel", false, "ask the kernel for the maximum error that its daemon reported")
	flags.DurationVar(&f.bound, "bound", 0, "assume that the error of the wall clock is never larger than `DURATION`")
	flags.BoolVar(&f.smeared, "smeared", false, "all servers smear leap seconds; the timeline is utc-smeared")
	flags.IntVar(&f.faults, "faults", 0, "`N` servers may be wrong (default the most that their number allows, less than half)")
	flags.Float64Var(&f.drift, "drift", 0, "largest rate error of this clock in `PPM`, including slewing by a daemon (default 50, in a virtual machine 200)")
	flags.DurationVar(&f.limit, "limit", 0, "a bound above `DURATION` is degraded, with exit code 1")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Second, "wait `DURATION` at most for a bound")
	flags.BoolVar(&f.watch, "watch", false, "print the bound each second")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// check looks at the flags one by one; each source checks its own values.
func (f *clockFlags) check(changed func(string) bool) error {
	switch {
	case f.watch && f.hasWait:
		return errors.New("--timeout limits the wait for a bound, and --watch waits without limit: leave one out")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %v: it must be above 0", f.timeout)
	case f.limit < 0:
		return fmt.Errorf("--limit %v: it must not be below 0", f.limit)
	case !(f.drift > 0 && f.drift <= clocksync.MaxDrift): // Also NaN.
		return fmt.Errorf("--drift %v: it must be above 0 and at most %v ppm", f.drift, clocksync.MaxDrift)
	case f.faults < 0:
		return fmt.Errorf("--faults %d: it must be 0 or more", f.faults)
	}
	var named []string
	for _, daemon := range []struct {
		name  string
		given bool
		value string
	}{{"chrony", changed("chrony"), f.chrony}, {"clockbound", changed("clockbound"), f.clockBound}, {"kernel", f.kernel, "here"}} {
		switch {
		case daemon.given && daemon.value == "":
			return fmt.Errorf("--%s is empty: say local for the usual place", daemon.name)
		case daemon.given:
			named = append(named, daemon.name)
		}
	}
	// They pass on what one daemon says: the kernel lacks the correction that chronyd
	// has, and chronyd the error of a hardware clock that ClockBound has, so what both
	// allow may not hold the truth.
	if len(named) > 1 {
		return fmt.Errorf("--%s and --%s read the same wall clock, so together they would claim too narrow a bound: name one of them", named[0], named[1])
	}
	if f.chrony != "" && f.chrony != "local" {
		return checkChrony(f.chrony)
	}
	return nil
}

// checkChrony refuses the chronyd of another machine: it tells how far the wall
// clock there is off, and nothing about the one here.
func checkChrony(address string) error {
	if strings.HasPrefix(address, "/") {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--chrony %s: give HOST:PORT, the path of a socket, or local", address)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("--chrony %s: it must be an address of this machine's loopback: a chronyd elsewhere knows nothing about the clock here; ask it with --ntp", address)
	}
	return nil
}

func (f *clockFlags) timeline() clocksync.Timeline {
	if f.smeared {
		return clocksync.SmearedUTC
	}
	return clocksync.UTC
}

func (f *clockFlags) options() source.MeasuredOptions {
	o := source.MeasuredOptions{Timeline: f.timeline(), Faults: f.faults, Drift: f.drift, Limit: f.limit}
	if f.faultsGiven && f.faults == 0 {
		o.Faults = source.NoFaults
	}
	return o
}

// openSources makes the named sources, or else the sources of this machine.
func openSources(f *clockFlags) (clockSources, error) {
	var list []source.Source
	var faults []error
	add := func(s source.Source, err error) {
		list = append(list, s)
		faults = append(faults, err)
	}
	line := f.timeline()
	if len(f.ntp) > 0 {
		add(source.NTP(ntp.Query, source.NTPOptions{Servers: f.ntp, Timeline: line, Drift: f.drift, Timeout: min(f.timeout, time.Second)}))
	}
	if f.chrony != "" {
		add(source.Chrony(source.ChronyOptions{Address: usual(f.chrony), Timeline: line}))
	}
	if f.clockBound != "" {
		add(source.ClockBound(source.ClockBoundOptions{Path: usual(f.clockBound), Timeline: line}))
	}
	if f.kernel {
		add(source.Kernel(source.KernelOptions{Timeline: line}))
	}
	if f.hasBound {
		add(source.Operator(f.bound, line))
	}
	if len(list) > 0 {
		return clockSources{named: list}, errors.Join(faults...)
	}
	add(source.ClockBound(source.ClockBoundOptions{Timeline: line}))
	add(source.Chrony(source.ChronyOptions{Timeline: line}))
	add(source.Kernel(source.KernelOptions{Timeline: line}))
	return clockSources{local: list}, errors.Join(faults...)
}

// unprefixed leaves out the name of the package, which users of flags do not know.
func unprefixed(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "source: ", "")) }

// usual is the empty address for the word local.
func usual(address string) string {
	if address == "local" {
		return ""
	}
	return address
}

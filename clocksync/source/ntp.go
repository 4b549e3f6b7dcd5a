package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// NTPOptions configure [NTP].
type NTPOptions struct {
	// Servers are the hosts to ask, with ":port" if it is not 123. At least one,
	// at most [clocksync.MaxServers]. A bound that outlasts f lying servers takes
	// 2f+1 of them; a pool's name is one server here.
	Servers []string
	// Every is the time between two polls of a server: 64 s by default, which
	// public servers expect, and at least 10 ms. The first 8 polls come
	// every 2 s if that is sooner.
	Every time.Duration
	// Timeout is how long an answer may take: 1 s by default.
	Timeout time.Duration
	// Timeline is UTC by default. Servers that smear leap seconds must not be
	// mixed with those that do not: say SmearedUTC if all of them do.
	Timeline clocksync.Timeline
	// Drift is how many parts per million the domain's clock may run fast or slow
	// during an exchange: [DefaultDrift] by default.
	Drift float64
}

// NTPQuery is the type of ntp.Query, which says what its arguments and results are.
type NTPQuery = func(address string, timeout time.Duration, now func() clocksync.Instant, dial func(remote string) (net.Conn, error)) (clocksync.Exchange, clocksync.Sample, error)

// burst is how many polls come quickly at the start: as many as the estimator
// keeps samples of a server.
const burst = 8

// NTP asks NTP servers (RFC 5905, mode client) how far this domain's readings are from UTC.
// Query is the function of the package clocksync/source/ntp: programs that ask no NTP server do
// not link it. The bound of an answer is half the round trip, the server's distance from its
// reference clock (half the root delay, and the root dispersion) and the precision of both
// clocks.
//
// The readings around an exchange are the readings of stamps. Setting the wall clock cannot
// make a sample wrong: the sample is refused; a daemon that slews the clocks of this machine
// meanwhile (chronyd by up to 83,333 ppm) breaks the assumption about drift: ask that daemon
// instead, or limit it ("maxslewrate").
//
// A server that sends a kiss code is asked less often (RATE) or not for an hour (others); a
// server that fails several times is asked less often, too.
func NTP(query NTPQuery, o NTPOptions) (Source, error) {
	o.Every = orDefault(o.Every, 64*time.Second)
	o.Timeout = orDefault(o.Timeout, time.Second)
	o.Timeline = orDefault(o.Timeline, clocksync.UTC)
	o.Drift = orDefault(o.Drift, DefaultDrift())
	switch n := len(o.Servers); {
	case query == nil:
		return nil, errors.New("source: ntp: the function that asks servers is nil: pass ntp.Query of the package clocksync/source/ntp")
	case n == 0:
		return nil, errors.New("source: ntp: no servers: name at least one, three to outlast a lying one")
	case n > clocksync.MaxServers:
		return nil, fmt.Errorf("source: ntp: %d servers: at most %d", n, clocksync.MaxServers)
	case !(o.Drift > 0 && o.Drift <= clocksync.MaxDrift):
		return nil, fmt.Errorf("source: ntp: drift %v ppm: it must be above 0 and at most %v", o.Drift, clocksync.MaxDrift)
	}
	if err := checkTimes("ntp", o.Every, o.Timeout); err != nil {
		return nil, err
	}
	s := &ntpSource{options: o, query: query, clocks: machine, dial: dialUDP}
	for _, address := range o.Servers {
		if slices.ContainsFunc(s.servers, func(t *ntpServer) bool { return t.address == address }) {
			return nil, fmt.Errorf("source: ntp: server %s is named twice, and would count twice", address)
		}
		s.servers = append(s.servers, &ntpServer{address: address})
	}
	return s, nil
}

type ntpSource struct {
	options NTPOptions
	query   NTPQuery
	clocks  readings
	dial    func(ctx context.Context, remote string, timeout time.Duration) (net.Conn, error)
	servers []*ntpServer
	polls   int
}

// ntpServer is a server and how patient to be with it.
type ntpServer struct {
	address  string
	failures int               // in a row
	paused   clocksync.Instant // not to be asked before
}

func (s *ntpSource) Name() string { return "ntp" }
func (s *ntpSource) Servers() int { return len(s.servers) }

func (s *ntpSource) Every() time.Duration {
	if s.polls < burst {
		return min(s.options.Every, 2*time.Second)
	}
	return s.options.Every
}

// Sample asks all servers at once, but those that are to be left alone.
func (s *ntpSource) Sample(ctx context.Context) ([]clocksync.Sample, error) {
	s.polls = min(s.polls+1, burst)
	samples := make([]clocksync.Sample, len(s.servers))
	refused := make([]error, len(s.servers))
	begun := s.clocks.mono()
	var asked sync.WaitGroup
	for i, server := range s.servers {
		if begun < server.paused {
			continue
		}
		asked.Go(func() {
			sample, err := s.ask(ctx, server.address)
			if server.judge(err, s.clocks.mono(), s.options.Every); err != nil {
				refused[i] = refusalOf("ntp", server.address, err)
				return
			}
			samples[i] = sample
		})
	}
	asked.Wait()
	samples = slices.DeleteFunc(samples, func(s clocksync.Sample) bool { return s.Source == "" })
	return samples, errors.Join(refused...)
}

const (
	// patience is how many failures in a row change nothing.
	patience = 3
	// longest is how many doublings a pause goes through at most.
	longest = 6
	// banned is how long a server that refuses service is left alone.
	banned = time.Hour
)

// judge sets how long a server is left alone.
func (s *ntpServer) judge(err error, now clocksync.Instant, every time.Duration) {
	kiss, kissed := errors.AsType[kissed](err)
	denied := kissed && Reason(kiss.Reason()) == Denied
	switch {
	case err == nil:
		s.failures = 0
	case denied && kiss.Kiss() != "RATE":
		s.paused = now.Add(banned)
	default:
		s.failures++
		if denied {
			s.failures = max(s.failures, patience+1)
		}
		if n := s.failures - patience; n > 0 {
			s.paused = now.Add(min(every, banned) << min(n, longest))
		}
	}
}

// answered is an error for what a server has answered.
type answered interface {
	error
	Reason() string
}

// kissed is an error for a server's wish to be left alone.
type kissed interface {
	answered
	Kiss() string
}

// ask exchanges one packet with a server.
func (s *ntpSource) ask(ctx context.Context, address string) (clocksync.Sample, error) {
	before := s.clocks.observeClocks()
	x, sample, err := s.exchange(ctx, address)
	if err != nil {
		return clocksync.Sample{}, err
	}
	after, err := s.clocks.checkUndisturbed(before)
	if err != nil {
		return clocksync.Sample{}, err
	}
	err = s.complete(&sample, x, after)
	sample.Server, sample.From = address, before.Mono
	return sample, err
}

// exchange runs the query on the readings of stamps: the wall clock has no part in
// the offset, so that setting it cannot corrupt the exchange.
func (s *ntpSource) exchange(ctx context.Context, address string) (clocksync.Exchange, clocksync.Sample, error) {
	var conn *replies
	x, sample, err := s.query(address, s.options.Timeout, s.clocks.mono, func(remote string) (net.Conn, error) {
		inner, err := s.dial(ctx, remote, s.options.Timeout)
		if err != nil {
			return nil, err
		}
		conn = &replies{Conn: inner, ctx: ctx, check: checkReply}
		return conn, nil
	})
	switch {
	case err == nil:
		return x, sample, nil
	case conn != nil && conn.skipped != nil:
		return x, sample, conn.skipped
	}
	return x, sample, s.fault(err)
}

// fault gives an error of the query its reason.
func (s *ntpSource) fault(err error) error {
	if _, ok := errors.AsType[*fault](err); ok {
		return err
	}
	if a, ok := errors.AsType[answered](err); ok {
		return &fault{Reason(a.Reason()), err}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return refuseServer(Unanswered, "no answer within %v", s.options.Timeout)
	}
	return refuseServer(Unavailable, "cannot ask: %w", err)
}

// complete makes a sample of an exchange, which ended before the observation after.
func (s *ntpSource) complete(sample *clocksync.Sample, x clocksync.Exchange, after clocksync.Observation) error {
	p := &sample.Parts
	e := exchange{
		sent:     x.Sent,
		arrived:  clocksync.Around(x.Arrived, p.Precision),
		departed: clocksync.Around(x.Departed, p.Precision),
		received: x.Received,
	}
	offset, err := e.offsetInterval(s.options.Drift)
	if err != nil {
		return err
	}
	sample.Source, sample.Timeline, sample.At = "ntp", s.options.Timeline, e.received
	sample.Offset = offset.Widen((p.RootDelay+1)/2 + p.RootDispersion + granularity)
	sample.Leap = announcedLeap(s.options.Timeline, sample.Leap)
	p.RoundTrip, p.Granularity, p.Correction = e.roundTrip(), granularity, contradiction(sample.Offset, wallOffset(after))
	return nil
}

// contradiction is by how much the wall clock is certainly off, what beevik/ntp
// calls MinError, with the sign of what is missing in it. It is no fault of the
// sample: whoever keeps the wall clock disagrees with the server.
func contradiction(server, wall clocksync.Interval) time.Duration {
	switch {
	case wall.Latest < server.Earliest:
		return server.Earliest.Sub(wall.Latest)
	case wall.Earliest > server.Latest:
		return server.Latest.Sub(wall.Earliest)
	}
	return 0
}

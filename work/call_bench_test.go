package work_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/work"
)

// callBytes is how much a call of the benchmarks carries, in both directions.
const callBytes = 16

// callPairs is how often a benchmark of calls measures both sides, in turns. A side of a pair makes pairCalls calls.
const (
	callPairs = 10
	pairCalls = 2000
)

func echo(_ context.Context, data []byte) ([]byte, error) { return data, nil }

// benchCalls opens two spaces. The first one calls, and the second one serves.
func benchCalls(b *testing.B, call string) *work.Calls[[]byte, []byte] {
	b.Helper()
	text := strings.Replace(live, "slots: 1", "slots: 1, calls: {echo: {"+call+"}}", 1)
	list := benchSpaces(b, benchServerOf(b, embedded.Options{}, text, 2), nil, []work.Option{work.Server("echo", echo)})
	return work.Client[[]byte, []byte](list[0], "echo")
}

// p50 is the median time of one call after the other.
func p50(b *testing.B, call func() error) float64 {
	b.Helper()
	times := make([]float64, pairCalls)
	for i := range times {
		begun := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		times[i] = time.Since(begun).Seconds()
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// inTurns measures both sides callPairs times, and returns the medians of the sides and of their ratio.
func inTurns(left, right func() float64) (l, r, ratio float64) {
	var lefts, rights, ratios []float64
	for range callPairs {
		lefts, rights = append(lefts, left()), append(rights, right())
		ratios = append(ratios, lefts[len(lefts)-1]/rights[len(rights)-1])
	}
	median := func(list []float64) float64 {
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	return median(lefts), median(rights), median(ratios)
}

// BenchmarkCall: the time of a call that is made and awaited, and that of a bare request of NATS over the same server.
func BenchmarkCall(b *testing.B) {
	server := benchServer(b, 2)
	list := benchSpaces(b, server, nil, []work.Option{work.Server("echo", echo)})
	c := work.Client[[]byte, []byte](list[0], "echo")
	var conns [2]*nats.Conn
	for i := range conns {
		nc, err := nats.Connect(server.URL(), append(testnats.Options(b, server.URL()), nats.NoEcho(), nats.PingInterval(750*time.Millisecond))...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(nc.Close)
		conns[i] = nc
	}
	if _, err := conns[1].Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	if err := conns[1].Flush(); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, callBytes)
	call := func() error {
		_, err := c.Go(b.Context(), data).Wait(b.Context())
		return err
	}
	request := func() error {
		_, err := conns[0].RequestWithContext(b.Context(), "echo", data)
		return err
	}
	for b.Loop() {
		calls, requests, ratio := inTurns(func() float64 { return p50(b, call) }, func() float64 { return p50(b, request) })
		b.ReportMetric(calls*1e6, "call-p50-µs")
		b.ReportMetric(requests*1e6, "request-p50-µs")
		b.ReportMetric(ratio, "call/request")
	}
}

// BenchmarkCallStyles: calls a second on demand and in the style sync. The program is the same.
func BenchmarkCallStyles(b *testing.B) {
	demand, sync := benchCalls(b, `style: "async-demand(16:64)"`), benchCalls(b, "style: sync")
	data := make([]byte, callBytes)
	rate := func(c *work.Calls[[]byte, []byte]) float64 {
		begun := time.Now()
		list := make([]*work.Call[[]byte], 5*pairCalls)
		for i := range list {
			list[i] = c.Go(b.Context(), data)
		}
		for _, p := range list {
			if _, err := p.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		return float64(len(list)) / time.Since(begun).Seconds()
	}
	for b.Loop() {
		d, s, ratio := inTurns(func() float64 { return rate(demand) }, func() float64 { return rate(sync) })
		b.ReportMetric(d, "demand-calls/s")
		b.ReportMetric(s, "sync-calls/s")
		b.ReportMetric(ratio, "demand/sync")
	}
}

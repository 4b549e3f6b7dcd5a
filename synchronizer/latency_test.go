package synchronizer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/synchronizer"
)

const latencyConfig = `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    state: {n: int}
    predicates:
      ping:
        when: any(members, .n > 0)
        every: true
        signal: {kind: activate, region: r, to: "filter(members, .name == \"active\")", data: {n: "max(map(members, .n))"}}
`

const workerEnv = "PEGASUS_LATENCY_WORKER"

func TestMain(m *testing.M) {
	if url := os.Getenv(workerEnv); url != "" {
		if err := worker(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkSignal measures, from a second process, the time from a state change
// to the handler of the signal that follows from it, and the round trip of a
// bare NATS echo between the same two processes, in turns. With probe, another
// member is silent, so that its evidence has to be asked for.
func BenchmarkSignal(b *testing.B) {
	for _, c := range []struct {
		name    string
		members int
	}{{"probe=no", 1}, {"probe=yes", 2}} {
		b.Run(c.name, func(b *testing.B) {
			raw, signal := measure(b, c.members)
			b.ReportMetric(float64(raw.Nanoseconds())/1e3, "raw-p50-us")
			b.ReportMetric(float64(signal.Nanoseconds())/1e3, "signal-p50-us")
			b.ReportMetric(float64(signal)/float64(raw), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// latencies is what the worker process prints.
type latencies struct{ Raw, Signal []time.Duration }

func measure(b *testing.B, members int) (raw, signal time.Duration) {
	b.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	cfg, err := synchronizer.ParseConfig("latency", fmt.Appendf(nil, latencyConfig, members))
	if err != nil {
		b.Fatal(err)
	}
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Subscribe("echo", func(m *nats.Msg) { _ = nc.Publish("back", m.Data) }); err != nil {
		b.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), program)
	cmd.Env = append(os.Environ(), workerEnv+"="+server.URL(), fmt.Sprintf("PEGASUS_LATENCY_SILENT=%d", members-1), fmt.Sprintf("PEGASUS_LATENCY_N=%d", max(b.N, 200)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	var l latencies
	if err := json.Unmarshal(out, &l); err != nil {
		b.Fatal(err)
	}
	return median(l.Raw), median(l.Signal)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// worker is the second process.
func worker(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	rounds := 0
	if _, err := fmt.Sscan(os.Getenv("PEGASUS_LATENCY_N"), &rounds); err != nil {
		return err
	}
	if os.Getenv("PEGASUS_LATENCY_SILENT") == "1" {
		silent, err := agent.Join(ctx, url, agent.Config{Group: "g", Name: "silent"})
		if err != nil {
			return err
		}
		defer silent.Close()
		if err := silent.Set(struct{ N int }{0}); err != nil {
			return err
		}
	}
	echo, err := newEcho(url)
	if err != nil {
		return err
	}
	m, err := agent.Join(ctx, url, agent.Config{Group: "g", Name: "active"})
	if err != nil {
		return err
	}
	defer m.Close()
	var l latencies
	err = m.Region(ctx, "r", func(ctx context.Context, r *agent.Region) error {
		for n := 1; n <= rounds; n++ {
			rtt, err := echo()
			if err != nil {
				return err
			}
			start := time.Now()
			if err := m.Set(struct{ N int }{n}); err != nil {
				return err
			}
			for got = 0; got != n; {
				if err := r.Wait(ctx); err != nil {
					return err
				}
			}
			if n > rounds/10 { // warm
				l.Raw, l.Signal = append(l.Raw, rtt), append(l.Signal, time.Since(start))
			}
		}
		return nil
	}, agent.OnActivate("ping", func(_ context.Context, s agent.Signal) error {
		got = int(s.Int("n"))
		return nil
	}))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	return errors.Join(json.NewEncoder(out).Encode(l), out.Flush())
}

var got int // by the handler, which runs on the region's goroutine

// newEcho returns a function that measures one bare round trip.
func newEcho(url string) (func() (time.Duration, error), error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	back := make(chan struct{}, 1)
	if _, err := nc.Subscribe("back", func(*nats.Msg) { back <- struct{}{} }); err != nil {
		return nil, err
	}
	payload := make([]byte, 128)
	return func() (time.Duration, error) {
		start := time.Now()
		if err := nc.Publish("echo", payload); err != nil {
			return 0, err
		}
		select {
		case <-back:
			return time.Since(start), nil
		case <-time.After(5 * time.Second):
			return 0, errors.New("no echo")
		}
	}, nil
}

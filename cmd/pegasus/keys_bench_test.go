//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/synchronizer"
)

// secured is a member of a group on a server of its own, in a region that tells of its signals.
type secured struct {
	member *agent.Member
	told   chan struct{}
	times  []time.Duration
}

// startSecured starts a server, a synchronizer and a member. Dir has their keys; empty: anybody may connect.
func startSecured(b *testing.B, cfg *synchronizer.Config, dir string) *secured {
	b.Helper()
	server, err := embedded.Start(embedded.Options{Open: dir == "", Keys: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	as := func(user string) connect.Settings {
		if dir == "" {
			return connect.Settings{URL: server.URL()}
		}
		return connect.Settings{URL: server.URL(), Creds: filepath.Join(dir, user+".creds"), CA: caOf(dir)}
	}
	resolve := func(user string) connect.Server {
		s, err := as(user).Resolve(connect.Settings{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	leader := resolve("gsync")
	options, err := leader.Options()
	if err != nil {
		b.Fatal(err)
	}
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{NATS: options})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	worker := resolve("w1")
	if options, err = worker.Options(); err != nil {
		b.Fatal(err)
	}
	g := &secured{told: make(chan struct{}, 1)}
	if g.member, err = agent.Join(b.Context(), server.URL(), agent.Config{Group: "workers", Name: "w1"}, agent.WithNATS(options...)); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	inside, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.member.Region(ctx, "r", func(ctx context.Context, r *agent.Region) error {
			close(inside)
			for {
				if err := r.Wait(ctx); err != nil {
					return err
				}
			}
		}, agent.OnActivate("high", func(context.Context, agent.Signal) error { g.told <- struct{}{}; return nil }))
	}()
	b.Cleanup(func() { cancel(); <-ended; _ = g.member.Close() })
	<-inside
	return g
}

// BenchmarkSignalWithKeys is the time from a state to the handler of the signal that it causes: on a server where anybody may
// connect, with keys, and with keys and TLS, in turns.
func BenchmarkSignalWithKeys(b *testing.B) {
	dirs := map[string]string{"plain": "", "keys": b.TempDir(), "tls": b.TempDir()}
	cfg, err := synchronizer.ParseConfig("bench.yaml", []byte(strings.ReplaceAll(keysConfig, "kind: cancel", "kind: activate")))
	if err != nil {
		b.Fatal(err)
	}
	groups := map[string]*secured{}
	for name, dir := range dirs {
		if dir != "" {
			dir = filepath.Join(dir, "keys")
			flags := map[string]string{"tls": "--tls"}[name]
			for _, args := range []string{"keys init " + dir + " --group workers " + flags, "keys add " + dir + " synchronizer gsync", "keys add " + dir + " member w1"} {
				if code := Execute(b.Context(), strings.Fields(args), nil, io.Discard, b.Output()); code != exitOK {
					b.Fatal(args)
				}
			}
		}
		groups[name] = startSecured(b, cfg, dir)
	}
	names := []string{"plain", "keys", "tls"}
	for b.Loop() {
		for _, name := range names {
			g := groups[name]
			begun := time.Now()
			if err := g.member.Set(busy{5}); err != nil {
				b.Fatal(err)
			}
			<-g.told
			g.times = append(g.times, time.Since(begun))
			if err := g.member.Set(busy{0}); err != nil {
				b.Fatal(err)
			}
		}
	}
	median := func(name string) float64 {
		list := groups[name].times
		slices.Sort(list)
		return float64(list[len(list)/2].Microseconds())
	}
	for _, name := range names {
		b.ReportMetric(median(name), fmt.Sprintf("%s-p50-µs", name))
	}
	b.ReportMetric(median("keys")/median("plain"), "keys/plain")
	b.ReportMetric(median("tls")/median("plain"), "tls/plain")
}

// BenchmarkVerdictWithTLS is the age of verdicts at 20,000 reports a second, without credentials and with a JWT and TLS, in turns.
func BenchmarkVerdictWithTLS(b *testing.B) {
	plain, err := embedded.Start(embedded.Options{Open: true})
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	tls := testnats.Start(b, "creds over tls")
	servers := map[string][]string{"plain": {"--nats", plain.URL()}, "tls": append([]string{"--nats", tls.URL}, tls.Flags...)}
	ages := map[string][]float64{}
	for b.Loop() {
		for name, flags := range servers {
			var out strings.Builder
			args := append([]string{"bench", "load", "--members", "100", "--rate", "20000", "--time", "4s", "--json"}, flags...)
			if code := Execute(b.Context(), args, nil, &out, b.Output()); code != exitOK {
				b.Fatal(out.String())
			}
			var r struct {
				Verdict struct {
					P50 float64 `json:"p50"`
				} `json:"verdict_us"`
			}
			if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Verdict.P50 == 0 {
				b.Fatal(err, out.String())
			}
			ages[name] = append(ages[name], r.Verdict.P50)
		}
	}
	for name, list := range ages {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name+"-p50-µs")
	}
	b.ReportMetric(ages["tls"][len(ages["tls"])/2]/ages["plain"][len(ages["plain"])/2], "tls/plain")
}

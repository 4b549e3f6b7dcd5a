//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
)

// poison turns a good report into a report that the synchronizer must refuse.
type poison func(r *rand.Rand, good []byte) []byte

// poisons are the kinds, each on the subject of a member that does not exist.
func poisons() map[string]poison {
	return map[string]poison{
		"empty":   func(*rand.Rand, []byte) []byte { return nil },
		"garbage": func(r *rand.Rand, _ []byte) []byte { return fmt.Append(nil, r.Uint64(), r.Uint64()) },
		"cut":     func(r *rand.Rand, good []byte) []byte { return good[:r.IntN(len(good))] },
		"changed": func(r *rand.Rand, good []byte) []byte {
			text := slices.Clone(good)
			text[r.IntN(len(text))] ^= byte(1 + r.IntN(255))
			return text
		},
		"replayed": func(_ *rand.Rand, good []byte) []byte { return good },
		"long":     func(_ *rand.Rand, good []byte) []byte { return append(slices.Clone(good), make([]byte, 60_000)...) },
	}
}

// BenchmarkBesidePoison is the age of verdicts at 20,000 reports a second, alone and beside 1,000 messages a second of each kind that
// are to be refused. All of them are counted.
func BenchmarkBesidePoison(b *testing.B) {
	for name, make := range poisons() {
		b.Run(name, func(b *testing.B) {
			server, err := embedded.Start(embedded.Options{Open: true})
			if err != nil {
				b.Fatal(err)
			}
			defer server.Close()
			var alone, beside []float64
			var sent, refused uint64
			for b.Loop() {
				age, _, _ := load(b, server.URL(), nil)
				alone = append(alone, age)
				age, n, counted := load(b, server.URL(), make)
				beside = append(beside, age)
				sent, refused = sent+n, refused+counted
			}
			slices.Sort(alone)
			slices.Sort(beside)
			b.ReportMetric(alone[len(alone)/2], "alone-p99-µs")
			b.ReportMetric(beside[len(beside)/2], "beside-p99-µs")
			b.ReportMetric(beside[len(beside)/2]/alone[len(alone)/2], "beside/alone")
			b.ReportMetric(float64(sent)/float64(b.N), "sent/op")
			b.ReportMetric(float64(refused)/float64(sent), "refused/sent")
		})
	}
}

// load puts a synchronizer under load, with or without poison, and returns the p99 of verdicts, how much poison was sent, and how
// much was counted as refused.
func load(b *testing.B, url string, kind poison) (p99 float64, sent, refused uint64) {
	b.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	reports, err := nc.SubscribeSync("pegasus.v1.*.*.st.>")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		var out strings.Builder
		Execute(b.Context(), []string{"bench", "load", "--nats", url, "--members", "100", "--rate", "20000", "--time", "4s", "--json"}, nil, &out, b.Output())
		done <- out.String()
	}()
	var tenant string
	if kind != nil {
		var good *nats.Msg
		for range 200 { // Later ones are reports.
			if good, err = reports.NextMsg(10 * time.Second); err != nil {
				b.Fatal(err)
			}
		}
		if err := reports.Unsubscribe(); err != nil {
			b.Fatal(err)
		}
		tokens := strings.Split(good.Subject, ".")
		tenant = tokens[2]
		to := strings.Join(tokens[:5], ".") + ".evil"
		r := rand.New(rand.NewPCG(1, 2))
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range 350 {
			<-tick.C
			for range 10 {
				if err := nc.Publish(to, kind(r, good.Data)); err != nil {
					b.Fatal(err)
				}
				sent++
			}
		}
		if err := nc.Flush(); err != nil {
			b.Fatal(err)
		}
		var out strings.Builder
		if code := Execute(b.Context(), []string{"status", "--nats", url, "--tenant", tenant, "--json"}, nil, &out, b.Output()); code != exitOK {
			b.Fatal(out.String())
		}
		var status struct {
			Counters map[string]uint64 `json:"counters"`
		}
		if err := json.Unmarshal([]byte(out.String()), &status); err != nil {
			b.Fatal(err, out.String())
		}
		refused = status.Counters["refused"] + status.Counters["malformed"]
	}
	var r struct {
		Verdict struct {
			P99 float64 `json:"p99"`
		} `json:"verdict_us"`
	}
	if text := <-done; json.Unmarshal([]byte(text), &r) != nil || r.Verdict.P99 == 0 {
		b.Fatal(text)
	}
	return r.Verdict.P99, sent, refused
}

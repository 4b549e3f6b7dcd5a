package main

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// BenchmarkSearch compares the search in one thread, without anything of the
// product, to that by worker processes, from the first delivery to the proof.
// Worker processes of one thread each on as many idle cores should come near to
// their number in speed-up.
func BenchmarkSearch(b *testing.B) {
	const spec = "random:150:1"
	var bare time.Duration
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			took, err := searchBare(spec)
			if err != nil {
				b.Fatal(err)
			}
			bare = took
		}
		b.ReportMetric(bare.Seconds(), "search-s")
	})
	for _, processes := range []int{1, 2} {
		b.Run("processes="+strconv.Itoa(processes), func(b *testing.B) {
			var total time.Duration
			for b.Loop() {
				total += searchWith(b, spec, processes)
			}
			mean := total / time.Duration(b.N)
			b.ReportMetric(mean.Seconds(), "search-s")
			if bare > 0 {
				b.ReportMetric(bare.Seconds()/mean.Seconds(), "speed-up")
			}
		})
	}
}

// searchBare times the search behind bnb.Prepare.
func searchBare(spec string) (time.Duration, error) {
	in, err := tsplib.Load(spec)
	if err != nil {
		return 0, err
	}
	p, err := bnb.Prepare(in, bnb.Options{Seed: 1})
	if err != nil {
		return 0, err
	}
	start := time.Now()
	var incumbent atomic.Int64
	incumbent.Store(math.MaxInt64)
	s, err := bnb.NewSearch(p, bnb.Root(bnb.Edges), &incumbent)
	if err != nil {
		return 0, err
	}
	for s.Step() != bnb.Done {
		if s.Nodes() > 1e6 {
			return 0, errors.New(spec + " is too hard")
		}
	}
	return time.Since(start), nil
}

var searchTime = regexp.MustCompile(`\(search ([0-9.]+) s\)`)

// searchWith times the search of a run, which its verdict line tells.
func searchWith(b *testing.B, spec string, processes int) time.Duration {
	b.Helper()
	p := begin(b, "-instance", spec, "-processes", strconv.Itoa(processes), "-threads", "1")
	if code := p.end(b); code != exitGood {
		b.Fatalf("exit code %d: %s", code, p.stderr)
	}
	m := searchTime.FindStringSubmatch(p.stdout.String())
	if m == nil {
		b.Fatalf("no verdict: %s", p.stdout)
	}
	seconds, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

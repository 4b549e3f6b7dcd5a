//go:build broken && linux

package broken

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testcount"
)

var seed = flag.Uint64("seed", 1, "of what is broken, and when")

// counts says how often things are broken: change or nightly.
func counts() string { return cmp.Or(os.Getenv("PEGASUS_COUNTS"), "change") }

// often is how often something is broken: PEGASUS_TIMES, if it is set.
func often(t *testing.T, change, nightly int) int {
	t.Helper()
	if counts() == "nightly" {
		change = nightly
	}
	return testcount.Of(t, "TIMES", change)
}

// part is what a test has found.
type part struct {
	Name    string         `json:"name"`
	Seed    uint64         `json:"seed"`
	Times   int            `json:"times"`
	Figures []*figure      `json:"figures"`
	Counts  map[string]int `json:"counts"`
	Known   map[string]int `json:"known_to_be_broken,omitempty"`
	Broken  []string       `json:"broken,omitempty"`
	Skipped []string       `json:"skipped,omitempty"`
	Seconds float64        `json:"seconds"`

	began time.Time
}

// figure is a measured time, or another number, and what it should be.
type figure struct {
	What    string    `json:"what"`
	Unit    string    `json:"unit"`
	N       int       `json:"n"`
	Median  float64   `json:"median"`
	P99     float64   `json:"p99"`
	Worst   float64   `json:"worst"`
	Wanted  string    `json:"wanted,omitempty"`
	samples []float64 // all
}

// whole is the report of all tests.
type whole struct {
	mu     sync.Mutex
	Counts string  `json:"counts"`
	CPUs   int     `json:"cpus"`
	Parts  []*part `json:"parts"`
}

var wholeReport whole

// newPart begins the part of a test, which ends with it.
func newPart(t *testing.T, n int) *part {
	t.Helper()
	p := &part{Name: t.Name(), Seed: *seed, Times: n, Counts: map[string]int{}, began: time.Now()}
	wholeReport.mu.Lock()
	defer wholeReport.mu.Unlock()
	wholeReport.Parts = append(wholeReport.Parts, p)
	t.Cleanup(func() {
		p.Seconds = time.Since(p.began).Seconds()
		for _, f := range p.Figures {
			f.sum()
		}
		t.Log("\n" + p.text())
	})
	return p
}

// skip names a skipped test, and the reason.
func (p *part) skip(t *testing.T, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	p.Skipped = append(p.Skipped, why)
	t.Log("skipped: " + why)
}

// took adds a measured time.
func (p *part) took(what, wanted string, d time.Duration) { p.add(what, wanted, "s", d.Seconds()) }

func (p *part) add(what, wanted, unit string, value float64) {
	i := slices.IndexFunc(p.Figures, func(f *figure) bool { return f.What == what })
	if i < 0 {
		i = len(p.Figures)
		p.Figures = append(p.Figures, &figure{What: what, Wanted: wanted, Unit: unit})
	}
	p.Figures[i].samples = append(p.Figures[i].samples, value)
}

// sum finds the percentiles. The p99 of fewer than a hundred is the worst.
func (f *figure) sum() {
	slices.Sort(f.samples)
	if f.N = len(f.samples); f.N == 0 {
		return
	}
	at := func(q float64) float64 { return f.samples[min(int(q*float64(f.N)), f.N-1)] }
	f.Median, f.P99, f.Worst = at(0.5), at(0.99), f.samples[f.N-1]
}

// everything is what a group of members does.
var everything = []string{"states", "firings", "handlers", "fates", "entries of barrier", "entries of life"}

// judged ends a part with the findings of the judges. It names the records that must exist.
func (p *part) judged(t *testing.T, w *world, must ...string) {
	t.Helper()
	w.judgeAll(true)
	p.Counts["states"], p.Counts["firings"] = len(w.serials), len(w.fired)
	p.Counts["handlers"], p.Counts["fates"] = len(w.order), len(w.fates)
	p.Counts["terms"], p.Counts["firings that two terms have made"] = len(w.terms), w.again
	for _, region := range slices.Sorted(maps.Keys(w.regions)) {
		p.Counts["entries of "+region] = w.regions[region]
	}
	for what, n := range w.counted {
		p.Counts[what] = int(n) //nolint:gosec // Few.
	}
	for _, s := range w.serials {
		if s.after != 0 {
			p.add("between the readings around a state", "", "ms", float64(s.after-s.before)/1e6)
		}
	}
	p.Known = w.known
	slices.Sort(w.breaches)
	p.Broken = slices.Compact(w.breaches)
	for i, b := range p.Broken {
		if i == 10 {
			t.Errorf("and %d more", len(p.Broken)-i)
			break
		}
		t.Error(b)
	}
	for _, what := range must {
		if p.Counts[what] == 0 {
			t.Errorf("there were no %s: nothing was judged", what)
		}
	}
}

func (p *part) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d times, seed %d, %.0f s\n", p.Name, p.Times, p.Seed, p.Seconds)
	for _, f := range p.Figures {
		fmt.Fprintf(&out, "  %-84s %8d  median %9.3f  p99 %9.3f  worst %9.3f %-3s %s\n", f.What, f.N, f.Median, f.P99, f.Worst, f.Unit, f.Wanted)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Counts)) {
		fmt.Fprintf(&out, "  %-84s %8d\n", k, p.Counts[k])
	}
	for _, k := range slices.Sorted(maps.Keys(p.Known)) {
		fmt.Fprintf(&out, "  known: %-77s %8d\n", k, p.Known[k])
	}
	for _, b := range p.Broken {
		fmt.Fprintf(&out, "  BROKEN %.400s\n", b)
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&out, "  skipped: %s\n", s)
	}
	return out.String()
}

// write writes the report to the file PEGASUS_REPORT as JSON, and to the same with .txt for people.
func (w *whole) write() error {
	file := os.Getenv("PEGASUS_REPORT")
	if file == "" {
		return nil
	}
	w.Counts, w.CPUs = counts(), runtime.NumCPU()
	text, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	var table strings.Builder
	for _, p := range w.Parts {
		table.WriteString(p.text())
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.WriteFile(file+".txt", []byte(table.String()), 0o600)
}

package tracedetect_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/scgs"
)

// drawTrace draws the lines of each participant. Their stamps obey the monotone
// rule of each clock domain; some lines are lost, some are duplicated. A restart may
// be on a clock that no other participant has.
func drawTrace(t *rapid.T, moves bool) [][]string {
	n := rapid.IntRange(1, 4).Draw(t, "participants")
	hosts := rapid.IntRange(1, n).Draw(t, "domains")
	type participant struct {
		domain, seq, incarnation int
		left                     bool
	}
	people := make([]participant, n)
	for i := range people {
		people[i] = participant{domain: rapid.IntRange(0, hosts-1).Draw(t, "domain"), incarnation: 1}
	}
	lo, hi := make([]int, hosts), make([]int, hosts)
	trace := make([][]string, n)
	now := 0
	for range rapid.IntRange(0, 40).Draw(t, "events") {
		now += rapid.IntRange(0, 4).Draw(t, "step")
		i := rapid.IntRange(0, n-1).Draw(t, "who")
		p := &people[i]
		if p.left && rapid.Bool().Draw(t, "stays away") {
			continue
		}
		if p.left || rapid.IntRange(0, 14).Draw(t, "restarts") == 0 {
			p.incarnation, p.seq, p.left = p.incarnation+rapid.IntRange(1, 2).Draw(t, "incarnation"), 0, false
			if moves && rapid.Bool().Draw(t, "moves") {
				p.domain = len(lo)
				lo, hi = append(lo, -9), append(hi, 0)
			}
		}
		eps := rapid.IntRange(0, 5).Draw(t, "bound")
		lo[p.domain], hi[p.domain] = max(lo[p.domain], now-eps), max(hi[p.domain], now+eps)
		earliest, latest := strconv.Itoa(lo[p.domain]), strconv.Itoa(hi[p.domain])
		if rapid.IntRange(0, 11).Draw(t, "no earliest") == 0 {
			earliest = "_"
		}
		if rapid.IntRange(0, 11).Draw(t, "no latest") == 0 {
			latest = "_"
		}
		kind := rapid.SampledFrom([]string{"state", "state", "state", "alive", "alive", "alive", "leave"}).Draw(t, "type")
		p.left = kind == "leave"
		if kind != "alive" || p.seq == 0 {
			p.seq++
		}
		line := fmt.Sprintf("%c@h%d#%d %d %s %s %s %d", 'A'+i, p.domain, p.incarnation, now, earliest, latest, kind, p.seq)
		if kind == "state" {
			line += fmt.Sprintf(` {"x":%d}`, rapid.IntRange(0, 3).Draw(t, "value"))
		}
		if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
			continue
		}
		trace[i] = append(trace[i], long(line))
		if older := slices.DeleteFunc(slices.Clone(trace[i]), func(s string) bool { return strings.Contains(s, "alive") }); len(older) > 0 && rapid.IntRange(0, 7).Draw(t, "double") == 0 {
			trace[i] = append(trace[i], rapid.SampledFrom(older).Draw(t, "which"))
		}
	}
	return trace
}

// merge draws an order of arrival.
func merge(t *rapid.T, trace [][]string) (lines []string) {
	trace = slices.Clone(trace)
	for {
		var more []int
		for i := range trace {
			if len(trace[i]) > 0 {
				more = append(more, i)
			}
		}
		if len(more) == 0 {
			return lines
		}
		i := rapid.SampledFrom(more).Draw(t, "next")
		n := rapid.IntRange(1, len(trace[i])).Draw(t, "lines")
		lines, trace[i] = append(lines, trace[i][:n]...), trace[i][n:]
	}
}

var (
	openRun = regexp.MustCompile(`,(null|\d+)\]`)
	known   = regexp.MustCompile(`,"open".*`)
)

// TestOrderOfArrival compares what two orders of arrival of the same lines bring
// about: the members of the global states and, with Final, all of each line.
func TestOrderOfArrival(t *testing.T) {
	modalities := map[string]tracedetect.Options{
		"inst":            {},
		"inst/when":       {When: "sum(members, .x) > 2"},
		"inst/epochs":     {Epochs: true},
		"definitely":      {Modality: scgs.Definitely, Where: "state.x > 1"},
		"possibly":        {Modality: scgs.Possibly, Where: "state.x > 1"},
		"possibly/epochs": {Modality: scgs.Possibly, Where: "state.x > 1", Epochs: true},
		"atleast":         {K: 2, Where: "state.x > 1"},
	}
	for _, name := range slices.Sorted(maps.Keys(modalities)) {
		o := modalities[name]
		t.Run(name, func(t *testing.T) {
			found := 0
			rapid.Check(t, func(t *rapid.T) {
				// Under Possibly a move makes possible what the clock before excludes.
				trace := drawTrace(t, o.Modality != scgs.Possibly)
				one, two := merge(t, trace), merge(t, trace)
				o.Participants, o.Final = participants(one), false
				if rapid.Bool().Draw(t, "domains not known") {
					for i := range o.Participants {
						o.Participants[i].Domain = ""
					}
				}
				a, b := detect(o, one, false), detect(o, two, false)
				if o.K == 0 && members(a, o) != members(b, o) {
					t.Fatalf("two orders of arrival\n%s\ngive\n%s\nand\n%s\ngives\n%s", strings.Join(one, "\n"), a, strings.Join(two, "\n"), b)
				}
				o.Final = true
				f, g := detect(o, one, false), detect(o, two, false)
				if f != g {
					t.Fatalf("finally two orders of arrival\n%s\ngive\n%s\nand\n%s\ngives\n%s", strings.Join(one, "\n"), f, strings.Join(two, "\n"), g)
				}
				if o.K == 0 && members(a, o) != members(f, o) {
					t.Fatalf("%s\ngives\n%s\nand finally\n%s", strings.Join(one, "\n"), a, f)
				}
				if strings.Contains(f, "line") {
					t.Fatalf("%s\nrefused:\n%s", strings.Join(one, "\n"), f)
				}
				found += strings.Count(f, "\n")
			})
			if found == 0 {
				t.Error("nothing was found in any trace")
			}
		})
	}
}

// members are those of each line. The last state of a run is left out: while it
// is open it depends on the order.
func members(out string, o tracedetect.Options) string {
	var lines []string
	for line := range strings.Lines(out) {
		line = known.ReplaceAllString(line, "")
		if o.Modality != scgs.Inst {
			line = openRun.ReplaceAllString(line, "]")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

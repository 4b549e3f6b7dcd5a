package synccore_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestJoinedProbes: members with the same clock domain are asked by one message if they are three or more and half
// of the epoch's members, and each says that it answers that. The message asks for as much as any of them lacks.
func TestJoinedProbes(t *testing.T) {
	const text = `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    state: {n: int}
    predicates: {all: {when: "all(members, .n > 0)"}}
`
	for name, c := range map[string]struct {
		domains string // of the members; a capital letter: of a member that does not answer such a message
		want    string
	}{
		"one host":                  {"xxxx", "all of x>23"},
		"two are few":               {"xx", "m0>21"},                                            // The other one's newest report is evidence enough.
		"two hosts":                 {"xxxxyyyy", "all of x>23/28, m4>27/24 m5>27/24 m6>27/24"}, // Three of y lack evidence: fewer than half of eight.
		"a host with few":           {"xxxxxy", "all of x>24/26, m5>any/25"},
		"three hosts":               {"xxxyyyzzz", "m0>22/29 m1>22/29 m2>21/29 m3>25/29 m4>25/29 m5>24/29 m6>28/26 m7>28/26"},
		"an old member among three": {"xxxXx", "all of x>24, m3>24"},
		"old members":               {"XXXX", "m0>23 m1>23 m2>23"},
	} {
		n := len(c.domains)
		core := synccore.New(compile(t, fmt.Sprintf(text, n)), synccore.Options{Term: 1, OnDemand: true})
		var out synccore.Output
		now := clocksync.Instant(0)
		step := func(in synccore.Input) {
			now++
			if core.Step(now, &in, &out); len(out.Rejected) > 0 {
				t.Fatalf("%s: %+v", name, out.Rejected)
			}
		}
		var asked []string
		for i, d := range strings.ToLower(c.domains) {
			member := fmt.Sprint("m", i)
			step(synccore.Input{Kind: synccore.InHello, From: member, Hello: &wire.Hello{Member: member, Incarnation: 1, Domain: clocksync.Domain(string(d)), Common: c.domains[i] == byte(d)}})
		}
		for _, seq := range []uint64{1, 2} {
			for i, d := range strings.ToLower(c.domains) {
				r := reportOf(seq, clocksync.Instant(10*int(seq)+i), int64(seq-1))
				r.At.Domain, r.At.Within = clocksync.Domain(string(d)), clocksync.Around(r.At.Mono, 1)
				member := fmt.Sprint("m", i)
				step(synccore.Input{Kind: synccore.InBatch, From: member, More: seq == 1 || i < n-1, Batch: &wire.Batch{Member: member, Incarnation: 1, Reports: []wire.Report{r}}})
			}
		}
		var joined []string
		for _, p := range out.Probes {
			if p.To == "" {
				joined = append(joined, fmt.Sprintf("all of %s>%s", p.Msg.Domain, past(&p.Msg)))
				continue
			}
			asked = append(asked, fmt.Sprintf("%s>%s", p.To, past(&p.Msg)))
		}
		slices.Sort(joined)
		slices.Sort(asked)
		if len(asked) > 0 {
			joined = append(joined, strings.Join(asked, " "))
		}
		if got := strings.Join(joined, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// past is the reading and the time that a probe asks for.
func past(p *wire.Probe) string {
	if p.AfterTime == clocksync.MinInstant {
		return strconv.FormatInt(int64(p.AfterMono), 10)
	}
	if p.AfterMono == clocksync.MinInstant {
		return fmt.Sprint("any/", int64(p.AfterTime))
	}
	return fmt.Sprint(int64(p.AfterMono), "/", int64(p.AfterTime))
}

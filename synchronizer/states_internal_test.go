package synchronizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// loggedStates are the states of some inputs, as texts: member, value, start, end, and how the end is known.
func loggedStates(opt synccore.Options, inputs ...synccore.Input) []string {
	var got []string
	l := &stateLog{
		opt: opt, schema: scgs.Schema{{Name: "v", Type: scgs.Int}}, members: map[string]*loggedMember{},
		emit: func(s memberState) {
			text := fmt.Sprintf("%s %s %d-%d to %d-%d", s.member, s.state, int64(s.start.From), int64(s.start.To), int64(s.end.From), int64(s.end.To))
			if s.open {
				text += " open"
			}
			got = append(got, text)
		},
	}
	for i := range inputs {
		l.noteInput(clocksync.Instant(1000+i), &inputs[i])
	}
	l.finishStates(true)
	return got
}

func helloOf(name string, domain clocksync.Domain, incarnation uint64, timeline clocksync.Timeline) synccore.Input {
	return synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Incarnation: incarnation, Host: "h", Domain: domain, Quality: clocksync.Quality{Timeline: timeline}}}
}

// batchOf has a report for each seq; it is an end if the seq is negative. A report is made at 10 times its number.
func batchOf(name string, incarnation uint64, evidence int, list ...int) synccore.Input {
	b := &wire.Batch{Incarnation: incarnation}
	stamp := func(at int) clocksync.Stamp {
		t := clocksync.Instant(at)
		return clocksync.Stamp{Mono: t, Within: clocksync.Interval{Earliest: t - 3, Latest: t + 3}}
	}
	for _, seq := range list {
		n := max(seq, -seq)
		b.Reports = append(b.Reports, wire.Report{Seq: uint64(n), End: seq < 0, At: stamp(10 * n), Row: []scgs.Value{scgs.IntValue(int64(n))}}) //nolint:gosec // Small.
	}
	if evidence > 0 {
		b.Evidence = wire.Evidence{Seq: uint64(evidence), At: stamp(10*evidence + 5)} //nolint:gosec // Small.
	}
	return synccore.Input{Kind: synccore.InBatch, From: name, Batch: b}
}

// TestStateLog finds states in the inputs of a journal: with late, lost and repeated reports, ends, other clocks and lives.
func TestStateLog(t *testing.T) {
	const here, there clocksync.Domain = "here", "there"
	root := synccore.Options{Reference: here}.Resolved()
	gone := synccore.Input{Kind: synccore.InGone, From: "a", Gone: &wire.Gone{Incarnation: 1, First: 4}}
	restart := synccore.Input{Kind: synccore.InRestart, Restart: &synccore.Options{Reference: "other"}}
	foreign := batchOf("a", 1, 0, 1)
	foreign.Group = "others"
	leaving := batchOf("a", 1, 2, 2)
	leaving.Batch.Leaving = true
	many := []int{1}
	for i := range maxEarly + 1 {
		many = append(many, 3+i)
	}
	for _, c := range []struct {
		name   string
		opt    synccore.Options
		inputs []synccore.Input
		want   string
	}{
		{"the reference clock is exact", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 2, 1, 2)}, "a v=1 10-10 to 20-20; a v=2 20-20 to 25-25 open"},
		{"another clock has bounds", root, []synccore.Input{helloOf("a", there, 1, "here"), batchOf("a", 1, 2, 1, 2)}, "a v=1 7-13 to 17-23; a v=2 17-23 to 22-22 open"},
		{"without a timeline the arrival is the bound", root, []synccore.Input{helloOf("a", there, 1, ""), batchOf("a", 1, 0, 1), batchOf("a", 1, 0, 2)}, "a v=1 MIN-1001 to MIN-1002; a v=2 MIN-1002 to MIN-MIN open"},
		{"an end", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1, -2, 3)}, "a v=1 10-10 to 20-20; a v=3 30-30 to 30-30 open"},
		{"a member leaves", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1), leaving}, "a v=1 10-10 to 20-20; a v=2 20-20 to 25-25"},
		{"late and twice", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1), batchOf("a", 1, 0, 3, 4), batchOf("a", 1, 0, 1, 2, 3)}, "a v=1 10-10 to 20-20; a v=2 20-20 to 30-30; a v=3 30-30 to 40-40; a v=4 40-40 to 40-40 open"},
		{"lost for good", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 1, 1), batchOf("a", 1, 0, 4), gone}, "a v=1 10-10 to 15-15; a v=4 40-40 to 40-40 open"},
		{"lost at the end", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1), batchOf("a", 1, 0, 3, 5)}, "a v=1 10-10 to 10-10; a v=3 30-30 to 30-30; a v=5 50-50 to 50-50 open"},
		{"too many wait", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, many...), batchOf("a", 1, 0, 2)}, "a v=1 10-10 to 10-10; a v=3 30-30 to 40-40"},
		{"another life", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1), helloOf("a", here, 2, ""), batchOf("a", 1, 0, 2), batchOf("a", 2, 0, 7)}, "a v=1 10-10 to 10-10; a v=7 70-70 to 70-70 open"},
		{"an older life says nothing", root, []synccore.Input{helloOf("a", here, 2, ""), helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1)}, ""},
		{"no hello, another group", root, []synccore.Input{batchOf("a", 1, 0, 1), helloOf("a", here, 1, ""), foreign}, ""},
		{"another process goes on", root, []synccore.Input{helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1), restart, batchOf("a", 1, 0, 2)}, "a v=1 10-10 to 10-10"},
		{"evidence of a multiplexer", root, []synccore.Input{
			helloOf("a", here, 1, ""), batchOf("a", 1, 0, 1),
			{Kind: synccore.InAlive, Alive: []wire.Alive{{Member: "a", Incarnation: 1, Evidence: wire.Evidence{Seq: 1, At: clocksync.Stamp{Mono: 77}}}, {Member: "x"}}},
		}, "a v=1 10-10 to 77-77 open"},
		{"a clock that is ahead", root, []synccore.Input{helloOf("a", there, 1, "here"), batchOf("a", 1, 0, 500)}, "a v=500 MIN-1001 to MIN-MIN open"},
		{"a timeline of the program", synccore.Options{Reference: here, Timeline: "utc"}.Resolved(), []synccore.Input{helloOf("a", there, 1, "utc"), batchOf("a", 1, 0, 1), helloOf("b", here, 1, ""), batchOf("b", 1, 0, 2)}, "a v=1 MIN-1001 to MIN-MIN open; b v=2 20-20 to 20-20 open"},
	} {
		got := strings.ReplaceAll(strings.Join(loggedStates(c.opt, c.inputs...), "; "), fmt.Sprintf(" %d-", int64(clocksync.MinInstant)), " MIN-")
		got = strings.ReplaceAll(got, fmt.Sprintf("-%d", int64(clocksync.MinInstant)), "-MIN")
		if c.name == "too many wait" {
			got = strings.Join(slices.Clip(strings.SplitN(got, "; ", 3)[:2]), "; ")
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

package synccore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const generalConfig = `
synchronizers:
  gsync:
    members: {group: g, min: 2, max: 4}
    state: {load: float, n: int, phase: {enum: [idle, busy]}, unread: string}
    memory: {k: {type: int, initial: 5}}
    predicates:
      total: {when: "sum(map(members, .n)) >= memory.k", set: {k: "memory.k + 3"}, every: true}
      heavy: {when: "sum(members, .load) > 12", signal: {kind: activate, region: work, to: "filter(members, .load > 3)"}}
      least: {when: "min(map(members, .load)) < 1 and max(map(members, .n)) > 3", until: "all(members, .n < 5)"}
      idle: {when: 'all(members, .phase == "idle")', for: 4us}
      rare: {when: "mean(map(members, .n)) > 2", cooldown: 50ms}
      busy: {when: 'count(members, .phase == "busy") >= 2'}
`

// talkers are members that tell batches, mostly as they should.
type talkers struct {
	*rand.Rand
	now   clocksync.Instant
	seq   [4]uint64
	life  [4]uint64
	late  [4]*wire.Batch // its reports come after evidence of them
	hosts int
}

func (h *talkers) stamp(m int) clocksync.Stamp {
	h.now += clocksync.Instant(1 + h.IntN(300))
	at := clocksync.Stamp{Domain: clocksync.Domain(fmt.Sprintf("host%d", m%h.hosts)), Mono: h.now, Within: clocksync.Unbounded}
	if m%2 == 0 {
		at.Within = clocksync.Around(h.now, 20*time.Nanosecond)
	}
	switch h.IntN(300) {
	case 0:
		at.Domain = "elsewhere"
	case 1:
		at.Within = clocksync.Interval{Earliest: 5, Latest: 3}
	case 2:
		at.Mono -= 3000
	case 3, 4, 5, 6:
		at.Domain = "" // That of the member.
	}
	return at
}

func (h *talkers) row() []scgs.Value {
	row := []scgs.Value{
		scgs.FloatValue(float64(h.IntN(20)) / 4), scgs.IntValue(int64(h.IntN(7))), scgs.EnumValue([]string{"idle", "busy"}[h.IntN(2)]), scgs.StringValue("x"),
	}
	switch h.IntN(100) {
	case 0:
		row[h.IntN(len(row))] = scgs.Value{}
	case 1:
		row[1] = scgs.BoolValue(true)
	case 2:
		row = row[:2]
	}
	return row
}

func (h *talkers) input() *Input {
	m := h.IntN(len(h.seq))
	name := fmt.Sprintf("m%d", m)
	if h.life[m] == 0 || h.IntN(200) == 0 {
		h.life[m]++
		h.seq[m], h.late[m] = 0, nil
		hello := &wire.Hello{Member: name, Incarnation: h.life[m], Domain: clocksync.Domain(fmt.Sprintf("host%d", m%h.hosts))}
		if m < 2 {
			hello.Quality.Timeline = "host0"
		}
		return &Input{Kind: InHello, From: name, Hello: hello}
	}
	if b := h.late[m]; b != nil {
		h.late[m] = nil
		return &Input{Kind: InBatch, From: name, Batch: b}
	}
	b := &wire.Batch{Member: name, Incarnation: h.life[m], Leaving: h.IntN(150) == 0, Regions: []wire.Region{{Name: "work", Entry: 1, Since: 1}}}
	for range h.IntN(8) {
		switch h.IntN(60) {
		case 0:
			h.seq[m] += 2 // One is lost.
		case 1:
			h.seq[m] -= min(h.seq[m], 1) // The last one comes again.
		}
		h.seq[m]++
		r := wire.Report{Seq: h.seq[m], At: h.stamp(m), End: h.IntN(40) == 0}
		if !r.End {
			r.Row = h.row()
		}
		b.Reports = append(b.Reports, r)
	}
	if h.IntN(3) > 0 && h.seq[m] > 0 {
		b.Evidence = wire.Evidence{Seq: h.seq[m], At: h.stamp(m)}
	}
	if b.Evidence.Seq > 0 && h.IntN(20) == 0 {
		late := *b
		h.late[m], b.Reports, late.Evidence = &late, nil, wire.Evidence{}
	}
	return &Input{Kind: InBatch, From: name, Batch: b, More: h.IntN(2) == 0}
}

// TestShorterWays steps two machines with the same inputs, one of which does all as in
// the general case: what they put out, and tell of themselves, is the same.
func TestShorterWays(t *testing.T) {
	plans, err := configfile.Parse("general.yaml", []byte(generalConfig))
	if err != nil {
		t.Fatal(err)
	}
	fired, refused, global := 0, 0, uint64(0)
	for seed := range uint64(60) {
		h := &talkers{Rand: rand.New(rand.NewPCG(seed, 1)), now: 1e9, hosts: 1 + int(seed%3)}
		opt := Options{Term: 1}
		if seed%2 == 0 {
			opt.Reference = "host0"
		}
		short, general := New(plans[0], opt), New(plans[0], opt)
		general.General()
		var got, want Output
		now := clocksync.Instant(0)
		for range 300 {
			if now += clocksync.Instant(20 * time.Millisecond); h.IntN(20) == 0 {
				now += clocksync.Instant(resendWait)
			}
			in := h.input()
			short.Step(now, in, &got)
			general.Step(now, in, &want)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(scgs.Value{})); diff != "" {
				t.Fatalf("seed %d: in the general way (-) and in the short one (+):\n%s", seed, diff)
			}
			if a, b := general.Counts(), short.Counts(); a != b {
				t.Fatalf("seed %d: the counts are %+v, and %+v in the general way", seed, b, a)
			}
			for _, v := range got.Verdicts {
				if v.Fired {
					fired++
				}
			}
			refused += len(got.Rejected)
		}
		global += short.Counts().Global
	}
	if fired < 500 || refused < 100 || global < 5_000 {
		t.Errorf("%d firings, %d refusals, %d global states: too few to tell", fired, refused, global)
	}
}

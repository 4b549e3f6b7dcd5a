package synccore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const toWorkers = `
synchronizers:
  gsync:
    members: {group: g}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      stop:
        when: any(members, .n > 0)
        every: true
        signal: {kind: cancel, region: search, to: {group: workers, max: 2}, expires: 1h}
`

// between is a machine that sends to another group, and its journal.
type between struct {
	t      *testing.T
	core   *synccore.Core
	now    clocksync.Instant
	out    synccore.Output
	record recorder
	seq    uint64
}

func newBetween(t *testing.T) *between {
	t.Helper()
	plans, err := configfile.Parse("test.yaml", []byte(toWorkers))
	if err != nil {
		t.Fatal(err)
	}
	b := &between{t: t, core: synccore.New(plans[0], synccore.Options{Term: 1}), record: recorder{on: true}}
	b.step(synccore.Input{Kind: synccore.InHello, From: "a", Hello: &wire.Hello{Member: "a", Incarnation: 1, Domain: "host"}})
	return b
}

func (b *between) step(in synccore.Input) {
	b.record.step(b.t, b.core, b.now, &in, &b.out)
}

// pass lets time go by, as the machine wants to be woken.
func (b *between) pass(d time.Duration) {
	for end := b.now.Add(d); b.now < end; {
		b.now = min(end, max(b.out.Wake, b.now.Add(time.Millisecond)))
		b.step(synccore.Input{Kind: synccore.InTick})
	}
}

func (b *between) heard(member string, incarnation uint64, regions ...wire.Region) synccore.Input {
	return synccore.Input{Kind: synccore.InBatch, From: member, Group: "workers", Batch: &wire.Batch{Member: member, Incarnation: incarnation, Regions: regions}}
}

// fire makes a decision and returns the targets of its signals, and with which entry.
func (b *between) fire() string {
	b.seq++
	at := func(mono uint64) clocksync.Stamp {
		return clocksync.Stamp{Domain: "host", Mono: clocksync.Instant(mono), Within: clocksync.Unbounded}
	}
	b.step(synccore.Input{Kind: synccore.InBatch, From: "a", Batch: &wire.Batch{
		Member: "a", Incarnation: 1, Evidence: wire.Evidence{Seq: b.seq, At: at(2*b.seq + 1)},
		Reports: []wire.Report{{Seq: b.seq, At: at(2 * b.seq), Row: []scgs.Value{scgs.IntValue(1)}}},
	}})
	var text strings.Builder
	for _, s := range b.out.Signals {
		fmt.Fprintf(&text, "%s/%s of %d: %d;", s.Group, s.To, s.Msg.Incarnation, s.Msg.Signals[len(s.Msg.Signals)-1].Entry)
	}
	for _, f := range b.out.Fates {
		fmt.Fprintf(&text, "%s/%s %v;", f.Group, f.Signal.Target, f.Fate)
	}
	return text.String()
}

func (b *between) want(what, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (b *between) news(what string, in synccore.Input, want bool) {
	b.t.Helper()
	if got := b.core.News(b.now, &in); got != want {
		b.t.Errorf("%s is news: %t, want %t", what, got, want)
	}
}

// TestMembersOfOtherGroupsAreForgotten: a member that is silent for five seconds is sent
// nothing more and its signals are given up, unless the machine itself was away; a member that
// continues is known, though its repetitions are not stepped with each time.
func TestMembersOfOtherGroupsAreForgotten(t *testing.T) {
	b := newBetween(t)
	search := wire.Region{Name: "search", Entry: 3}
	b.want("nobody is known", b.fire(), "")
	b.want("rejected", b.out.Rejected[0].Detail, `signal stop: no member of group "workers" is known`)
	b.step(b.heard("w1", 1, search))
	b.step(b.heard("w2", 1, search))
	b.want("both are known", b.fire(), "workers/w1 of 1: 3;workers/w2 of 1: 3;")
	for range 12 {
		b.pass(450 * time.Millisecond)
		b.news("what w2 repeats", b.heard("w2", 1, search), false)
		b.pass(50 * time.Millisecond)
		b.news("what w2 repeats after half a second", b.heard("w2", 1, search), true)
		b.step(b.heard("w2", 1, search))
	}
	b.want("one is silent", b.fire(), "workers/w2 of 1: 3;")
	b.want("waiting", strconv.Itoa(b.core.Figures().Waiting), "2")
	b.now = b.now.Add(time.Hour / 2)
	b.step(synccore.Input{Kind: synccore.InTick})
	b.want("the machine was away", b.fire(), "workers/w2 of 1: 3;")
	b.pass(6 * time.Second)
	b.want("both are silent", b.fire(), "")
	b.want("waiting", strconv.Itoa(b.core.Figures().Waiting), "0")
	again, _ := replay(t, b.record.text)
	if string(again.text) != string(b.record.text) {
		t.Error("the journal of the replay is another one")
	}
}

// TestNewsOfOtherGroups: the host need not step with inputs that change nothing.
func TestNewsOfOtherGroups(t *testing.T) {
	b := newBetween(t)
	search, rest := wire.Region{Name: "search", Entry: 3}, wire.Region{Name: "rest", Entry: 4}
	b.news("a new member", b.heard("w1", 5, search), true)
	b.step(b.heard("w1", 5, search))
	b.news("the same", b.heard("w1", 5, search), false)
	b.news("another entry", b.heard("w1", 5, wire.Region{Name: "search", Entry: 5}), true)
	b.news("a region more", b.heard("w1", 5, search, rest), true)
	b.news("no region", b.heard("w1", 5), true)
	b.news("another incarnation", b.heard("w1", 6, search), true)
	sent := b.heard("w1", 5)
	sent.Batch.Again = true
	b.news("what is sent again", sent, false)
	leaving := b.heard("w1", 5, search)
	leaving.Batch.Leaving = true
	b.news("a leave", leaving, true)
	other := b.heard("w1", 5, rest)
	other.Group = "strangers"
	b.news("what comes from a group that no signal goes to", other, false)
	b.news("an acknowledgement", synccore.Input{Kind: synccore.InAck, Group: "workers", From: "w1", Ack: &wire.Ack{Member: "w1"}}, true)
	b.step(b.heard("w2", 1))
	b.news("one too many", b.heard("w3", 1), true)
	b.step(b.heard("w3", 1))
	b.news("one too many once more", b.heard("w3", 1), false)
	b.pass(time.Second)
	b.news("one too many a while later", b.heard("w3", 1), true)
}

// TestNobodysRoster: a member of another group that is on no roster, such as a process with
// threads, is known by what its multiplexer brings of it; what another one brings does not count.
func TestNobodysRoster(t *testing.T) {
	b := newBetween(t)
	by := func(multiplexer string, entry uint64) synccore.Input {
		in := b.heard("w1", 5, wire.Region{Name: "search", Entry: entry})
		in.By = multiplexer
		return in
	}
	b.step(by("p-x", 3))
	b.want("a batch that a multiplexer brings", b.fire(), "workers/w1 of 5: 3;")
	if via := b.out.Signals[0].Via; via != "p-x" {
		t.Errorf("the signal goes by %q", via)
	}
	b.step(by("p-y", 4))
	b.want("that of another one", b.fire(), "workers/w1 of 5: 3;")
}

// TestSignalsToOtherGroupsAfterReload: signals under way to a group that no signal goes
// to any more still find their fate, and a group that is new is listened to.
func TestSignalsToOtherGroupsAfterReload(t *testing.T) {
	b := newBetween(t)
	b.step(b.heard("w1", 1, wire.Region{Name: "search", Entry: 3}))
	b.want("before", b.fire(), "workers/w1 of 1: 3;")
	plans, err := configfile.Parse("changed.yaml", []byte(`
synchronizers:
  gsync:
    members: {group: g}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      halt: {when: "any(members, .n > 0)", every: true, signal: {kind: cancel, region: search, to: {group: helpers}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	b.step(synccore.Input{Kind: synccore.InLevel, Level: plans[0]})
	answer := wire.Answer{Decision: control.Decision{Synchronizer: "gsync", Term: 1, Epoch: 1, Number: 1}, Name: "stop", Target: "w1", Fate: control.Applied}
	b.step(synccore.Input{Kind: synccore.InAck, From: "w1", Group: "workers", Ack: &wire.Ack{Member: "w1", Incarnation: 1, Answers: []wire.Answer{answer}}})
	if len(b.out.Fates) != 1 || b.out.Fates[0].Fate != control.Applied || b.out.Fates[0].Group != "workers" {
		t.Errorf("fates %+v", b.out.Fates)
	}
	h := b.heard("h1", 1, wire.Region{Name: "search", Entry: 8})
	h.Group = "helpers"
	b.step(h)
	b.want("after", b.fire(), "helpers/h1 of 1: 8;")
	again, _ := replay(t, b.record.text)
	if string(again.text) != string(b.record.text) {
		t.Error("the journal of the replay is another one")
	}
}

// BenchmarkOtherGroup is the cost of hearing a member of another group: of a batch
// that says nothing new, and of one that tells another entry of its region.
func BenchmarkOtherGroup(b *testing.B) {
	const members = 1000
	plans, err := configfile.Parse("test.yaml", []byte(strings.Replace(toWorkers, "max: 2", "max: 1000", 1)))
	if err != nil {
		b.Fatal(err)
	}
	core := synccore.New(plans[0], synccore.Options{Term: 1})
	inputs := make([]synccore.Input, members)
	var out synccore.Output
	for i := range inputs {
		name := fmt.Sprintf("w%03d", i)
		inputs[i] = synccore.Input{Kind: synccore.InBatch, From: name, Group: "workers", Batch: &wire.Batch{
			Member: name, Incarnation: 1, Regions: []wire.Region{{Name: "search", Entry: 1}},
		}}
		core.Step(0, &inputs[i], &out)
	}
	b.Run("news=no/members=1000", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if core.News(0, &inputs[i%members]) {
				b.Fatal("what is known is news")
			}
		}
	})
	b.Run("news=yes/members=1000", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			in := &inputs[i%members]
			if in.Batch.Regions[0].Entry++; !core.News(0, in) {
				b.Fatal("another entry is no news")
			}
			core.Step(0, in, &out)
		}
	})
}

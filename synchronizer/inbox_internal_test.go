package synchronizer

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// numbered is a message of some bytes that tells how many its sender has sent before.
func numbered(member string, n, size int, at clocksync.Instant) item {
	frame := make([]byte, max(size, 8))
	for i := range 8 {
		frame[i] = byte(n >> (8 * i)) //nolint:gosec // Its bytes.
	}
	return item{member: member, frame: frame, at: at}
}

func numberOf(it *item) (n int) {
	for i := range 8 {
		n |= int(it.frame[i]) << (8 * i)
	}
	return n
}

// inOrder fails unless what a sender has sent comes in its order.
type inOrder struct {
	tb   testing.TB
	next map[string]int
}

func (o *inOrder) see(items []item) {
	o.tb.Helper()
	for i := range items {
		n := numberOf(&items[i])
		if n < o.next[items[i].member] {
			o.tb.Fatalf("message %d of %s comes after %d", n, items[i].member, o.next[items[i].member]-1)
		}
		o.next[items[i].member] = n + 1
	}
}

// TestOneFloods: one member sends without end while others say little. Theirs is never shed,
// and waits for one turn of the others at most; what waits stays within its bound.
func TestOneFloods(t *testing.T) {
	const quiet, limit = 99, 1 << 20
	for name, size := range map[string]int{"small": 16, "largest": wire.MaxFrameBytes} {
		t.Run(name, func(t *testing.T) {
			b, order := newInbox(limit), inOrder{t, map[string]int{}}
			var items []item
			flood := 1_000_000
			if size > 1000 || testing.Short() {
				flood = 50_000
			}
			said, heard := 0, 0
			for n := range flood {
				b.putMessage(numbered("flood", n, size, 0))
				if n%100 == 0 { // Of them all, one in a hundred messages.
					b.putMessage(numbered(fmt.Sprint("quiet", said%quiet), said/quiet, 16, 0))
					said++
				}
				if b.cost > limit {
					t.Fatalf("%d bytes wait", b.cost)
				}
				if n%500 == 499 { // Much less than comes is taken.
					items, _, _ = b.takeTurn(0, items)
					order.see(items)
					for i := range items {
						if items[i].member != "flood" {
							heard++
						}
					}
					if said-heard > 0 {
						t.Fatalf("after message %d, %d messages of others wait", n, said-heard)
					}
				}
			}
			if shed := b.shedBy(); len(shed) != 1 || shed[0].From != "flood" {
				t.Errorf("shed: %v", shed)
			}
			if sheds := b.shedCounts(); sheds[shedFull] == 0 || sheds[shedOld] != 0 {
				t.Errorf("shed: %v", sheds)
			}
		})
	}
}

// TestAllTooMuch: all together send three times as much as the core takes. Each gets its share, with
// its newest message, and waiting messages are soon no older than they may be.
func TestAllTooMuch(t *testing.T) {
	const members, perTurn = 50, 5
	b, order := newInbox(inboxBytes), inOrder{t, map[string]int{}}
	sent, got := make([]int, members), map[string]int{}
	now := clocksync.Instant(0)
	var items []item
	for range 400 { // of 10 ms
		now = now.Add(10 * time.Millisecond)
		for m := range members {
			for range perTurn * 3 {
				b.putMessage(numbered(strconv.Itoa(m), sent[m], 16, now))
				sent[m]++
			}
		}
		items, _, _ = b.takeTurn(now, items)
		order.see(items)
		for i := range items {
			if age := now.Sub(items[i].at); age > inboxAge+inboxGrace {
				t.Fatalf("a message has waited for %v", age)
			}
			got[items[i].member]++
		}
	}
	for m := range members {
		if n := got[strconv.Itoa(m)]; n < got["0"]*9/10 || n > got["0"]*11/10 {
			t.Errorf("%d messages of %d, %d of 0", n, m, got["0"])
		}
	}
	if b.shedCounts()[shedOld] == 0 {
		t.Error("nothing was shed")
	}
	for more := true; more; { // It is over.
		items, _, more = b.takeTurn(now, items)
		order.see(items)
	}
	if len(b.nodes) > nodesKept || b.cost != 0 || b.count != 0 || len(b.active) != 0 {
		t.Errorf("there is room for %d messages, and %d bytes of %d wait", len(b.nodes), b.cost, b.count)
	}
	for m := range members {
		if order.next[strconv.Itoa(m)] != sent[m] {
			t.Errorf("the newest message of %d was shed", m)
		}
	}
}

// TestStoodStill: what has waited while nobody took anything is not shed.
func TestStoodStill(t *testing.T) {
	b := newInbox(inboxBytes)
	b.takeTurn(0, nil)
	for n := range 10 {
		b.putMessage(numbered("a", n, 16, 1))
	}
	if items, _, _ := b.takeTurn(clocksync.Instant(time.Minute), nil); len(items) != 10 || b.shedCounts().total() > 0 {
		t.Errorf("%d messages, %v shed", len(items), b.shedCounts())
	}
}

// TestHeldUp: the process has little of a processor for more than a second, and then enough again.
// Nothing is shed.
func TestHeldUp(t *testing.T) {
	b := newInbox(inboxBytes)
	var items []item
	taken := 0
	for ms := range 2000 {
		now := clocksync.Instant(ms) * clocksync.Instant(time.Millisecond)
		for n := range 10 {
			b.putMessage(numbered("a", 10*ms+n, 16, now))
		}
		if ms >= 1300 || ms%300 == 0 {
			items, _, _ = b.takeTurn(now, items)
			taken += len(items)
		}
	}
	if b.shedCounts().total() > 0 || taken < 19_000 {
		t.Errorf("%v shed, %d taken", b.shedCounts(), taken)
	}
}

// TestAcksAreHeard: answers, and what a member says for the first time, are not behind the
// reports of those who flood.
func TestAcksAreHeard(t *testing.T) {
	b := newInbox(inboxBytes)
	for n := range 10_000 {
		b.putMessage(numbered("a", n, 200, 0))
		b.putMessage(numbered("b", n, 200, 0))
	}
	b.takeTurn(0, nil)
	ack := numbered("a", 0, 16, 0)
	ack.ack = true
	b.putMessage(ack)
	b.putMessage(numbered("c", 0, 16, 0))
	items, _, _ := b.takeTurn(0, nil)
	if len(items) < 3 || !items[0].ack || items[1].member != "c" {
		t.Errorf("first come %+v", items[:min(3, len(items))])
	}
	for n := range 100_000 { // And who floods with these is one of many.
		ack := numbered("a", n, 16, 0)
		ack.ack = true
		b.putMessage(ack)
	}
	for range 2 {
		items, _, _ = b.takeTurn(0, items)
	}
	reports := 0
	for i := range items {
		if !items[i].ack {
			reports++
		}
	}
	if reports < len(items)/3 {
		t.Errorf("%d of %d are reports", reports, len(items))
	}
}

// TestManySenders: of more senders than there is room for a message each, none loses one that was
// taken in, and those that are counted by name are bounded, as is what is remembered of them.
func TestManySenders(t *testing.T) {
	b := newInbox(1000 * (itemCost + 16))
	for n := range 10_000 {
		b.putMessage(numbered(fmt.Sprint("m", n), 0, 16, 0))
	}
	if b.depth() != 1000 || b.shedCounts()[shedFull] != 9000 || len(b.bySend) != shedNames+1 || b.shedBy()[0] != (monitor.ShedStatus{From: otherNames, Full: 9000 - shedNames}) {
		t.Errorf("%d wait, %v shed of %d", b.depth(), b.shedCounts(), len(b.bySend))
	}
	for range 20 {
		for n := range idleSenders {
			b.putMessage(numbered(fmt.Sprint("m", n), 0, 16, 0))
		}
		for more := true; more; {
			_, _, more = b.takeTurn(0, nil)
		}
	}
	if len(b.senders) > 2*idleSenders || len(b.nodes) > 2000 {
		t.Errorf("%d senders and %d messages are remembered", len(b.senders), len(b.nodes))
	}
}

// TestReach: a round trip is complete when what came before it was taken or shed, in whatever order.
func TestReach(t *testing.T) {
	b := newInbox(inboxBytes)
	b.noteRoundTrip(1)
	if b.heardUpTo() != 1 {
		t.Error("nothing waited")
	}
	for n := range 100 {
		b.putMessage(numbered("a", n, takeBytes/4, 0))
	}
	b.noteRoundTrip(2)
	b.putMessage(numbered("b", 0, 16, 0))
	b.noteRoundTrip(3)
	for taken := 0; taken < 101; {
		items, reached, _ := b.takeTurn(0, nil)
		taken += len(items)
		if want := clocksync.Instant(1); taken < 100 && reached != want {
			t.Fatalf("after %d messages %d, want %d", taken, reached, want)
		}
	}
	if b.heardUpTo() != 3 {
		t.Errorf("in the end %d", b.heardUpTo())
	}
	for i := range 10 * maxMarks {
		b.putMessage(numbered("a", i, 16, 0))
		b.noteRoundTrip(clocksync.Instant(10 + i))
	}
	for more := true; more; {
		_, _, more = b.takeTurn(0, nil)
	}
	if len(b.marks) != 0 || b.newer != 0 || b.heardUpTo() < 10+maxMarks-1 {
		t.Errorf("%d round trips are left, %d heard", len(b.marks), b.heardUpTo())
	}
}

// BenchmarkInbox is what a message costs in it.
func BenchmarkInbox(b *testing.B) {
	in := newInbox(inboxBytes)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("m", i)
	}
	frame := make([]byte, 64)
	var items []item
	b.ReportAllocs()
	for i := range b.N {
		in.putMessage(item{member: names[i%len(names)], frame: frame})
		if i%100 == 99 {
			items, _, _ = in.takeTurn(0, items)
		}
	}
}

// shedding steps a loop with the reports of two members, some of which are shed.
type shedding struct {
	*crowd

	l *loop

	log      bytes.Buffer
	verdicts []monitor.Verdict
}

func newShedding(t *testing.T, cfg string) *shedding {
	t.Helper()
	s := &shedding{}
	s.crowd = newCrowd(t, cfg, Options{Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	s.l = s.drive()
	s.l.opt.Observe = func(e monitor.Event) {
		if v, ok := e.(monitor.Verdict); ok {
			s.verdicts = append(s.verdicts, v)
		}
	}
	return s
}

func (s *shedding) says(by, member string, shed uint64, frame []byte) {
	it := item{member: member, frame: frame, at: s.l.opt.now(), shed: shed}
	if by != "" {
		it.member, it.frame = by, s.bundle([]wire.Part{{Member: member, Frame: frame}})
	}
	s.l.receiveFrame(&it)
}

func (s *shedding) truth(t *testing.T, want predicates.Truth) {
	t.Helper()
	if len(s.verdicts) == 0 || s.verdicts[len(s.verdicts)-1].Truth != want {
		t.Fatalf("verdicts %+v, want %v in the end", s.verdicts, want)
	}
}

// TestShedIsUnknown: where the report of a change was shed unread, no state is taken for the present
// one: neither from what others tell, nor from evidence of the state after it. The next report that
// comes shows the gap, the states in it are unknown, and nothing is asked for.
func TestShedIsUnknown(t *testing.T) {
	for name, by := range map[string]string{"by itself": "", "by a multiplexer": "n"} {
		t.Run(name, func(t *testing.T) {
			s := newShedding(t, configText(2, 1))
			a, b, hello := "w0", "w1", s.hello
			if by != "" {
				a, b, hello = "n-0", "n-1", s.carried
			}
			ms := func(n int) clocksync.Instant { return clocksync.Instant(time.Duration(n) * time.Millisecond) }
			s.says(by, a, 0, hello(a))
			s.says(by, b, 0, hello(b))
			s.says(by, a, 0, s.batch(a, 1, ms(10), 0))
			s.says(by, b, 0, s.batch(b, 1, ms(12), 7))
			s.says(by, a, 0, s.batch(a, 2, ms(20), 0)) // Until here it was 0.
			s.truth(t, predicates.True)
			held := len(s.verdicts)

			// Report 3 of a, that n is 5, is shed. Nothing follows from the reports of b.
			s.says(by, b, 0, s.batch(b, 2, ms(100), 7))
			s.says(by, b, 0, s.batch(b, 3, ms(200), 7))
			if len(s.verdicts) != held {
				t.Fatalf("verdicts %+v", s.verdicts[held:])
			}
			// Nor from the evidence of a later state that the next frame has.
			s.says(by, a, 1, s.batch(a, 4, ms(300), 5))
			if len(s.l.output.Resends) > 0 {
				t.Errorf("reports that were shed are asked for: %+v", s.l.output.Resends)
			}
			s.says(by, b, 0, s.batch(b, 4, ms(400), 7))
			s.says(by, a, 1, s.batch(a, 5, ms(500), 5))
			s.says(by, b, 0, s.batch(b, 5, ms(600), 7))
			s.truth(t, predicates.False)
			for _, v := range s.verdicts[held:] {
				if v.Truth == predicates.True {
					t.Errorf("true after what is known: %+v", v)
				}
			}
			if s.verdicts[held].Truth != predicates.Unknown {
				t.Errorf("in the gap: %+v", s.verdicts[held])
			}
			if n := s.l.askCore(s.l.now, &synccore.Question{Counts: true}).Counts.Gaps; n != 1 {
				t.Errorf("%d gaps", n)
			}
		})
	}
}

// TestRepairIsPaced: while messages wait for too long no reports are asked for, and afterwards they
// are; the log counts the messages shed, once a second at most.
func TestRepairIsPaced(t *testing.T) {
	s := newShedding(t, configText(2, 1))
	now := s.l.opt.now()
	s.says("", "w0", 0, s.hello("w0"))
	s.says("", "w1", 0, s.hello("w1"))
	s.says("", "w0", 0, s.batch("w0", 1, 10, 0))
	s.says("", "w1", 0, s.batch("w1", 1, 10, 0))
	for n := range 100 {
		s.s.in.lost(&waiting{sender: sender{member: "w0"}}, n%shedReasons)
		s.l.turn(s.l.opt.now(), []item{{member: "w0", frame: s.batch("w0", uint64(3+2*n), clocksync.Instant(100+10*n), 0), at: now.Add(-time.Second)}}, 0, nil) //nolint:gosec // Small.
	}
	stats := s.s.Stats()
	if stats.Resends > 0 || stats.Withheld == 0 || stats.Shed != 100 {
		t.Errorf("%d requests were sent, %d withheld, %d shed", stats.Resends, stats.Withheld, stats.Shed)
	}
	if n := strings.Count(s.log.String(), "falls behind"); n < 1 || n > 1+int(s.l.opt.now().Sub(now)/shedEvery) || !regexp.MustCompile(`most=w0 seconds=\d+(\.\d{1,3})?\n`).MatchString(s.log.String()) {
		t.Errorf("the log has %d lines:\n%s", n, s.log.String())
	}
	s.l.turn(s.l.opt.now(), []item{{member: "w0", frame: s.batch("w0", 1000, 10_000, 0), at: s.l.opt.now()}}, 0, nil)
	if s.s.Stats().Resends == 0 {
		t.Error("nothing is asked for afterwards")
	}
}

// TestFeedIsBounded: more events than watchers receive in time are counted, and nobody waits.
func TestFeedIsBounded(t *testing.T) {
	f := eventFeed{waiting: make(chan timedEvent, maxEvents)}
	now := func() clocksync.Instant { return 0 }
	f.extendLease(now())
	for range maxEvents + 5 {
		f.putEvent(monitor.Rejection{}, now)
	}
	if f.untold.Load() != 5 || f.missed.Load() != 5 || len(f.waiting) != maxEvents {
		t.Errorf("%d untold, %d wait", f.untold.Load(), len(f.waiting))
	}
}

// TestStatusTellsWhatIsShed: the senders of shed messages, the largest losses first.
func TestStatusTellsWhatIsShed(t *testing.T) {
	c := newCrowd(t, configText(1, 1), Options{})
	c.s.in.mu.Lock()
	for n := range 40 {
		for range n + 1 {
			c.s.in.lost(&waiting{sender: sender{member: fmt.Sprint("m", n)}}, n%shedReasons)
		}
	}
	c.s.in.mu.Unlock()
	status, err := c.s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(status.Shed); n != maxShedTold || status.Shed[0] != (monitor.ShedStatus{From: "m39", Old: 40}) || status.Shed[1] != (monitor.ShedStatus{From: "m38", Full: 39}) || status.Counters["shed"] != 40*41/2 {
		t.Errorf("%d senders: %+v, %d in all", n, status.Shed, status.Counters["shed"])
	}
}

// TestNothingFalseOfWhatIsShed: members change at random, and of their messages, alone or by a
// multiplexer, many are shed at random, in runs as the inbox does it. All that the core finds true was true then.
func TestNothingFalseOfWhatIsShed(t *testing.T) {
	const members, states, step = 3, 60, 4 * time.Millisecond
	cfg := strings.ReplaceAll(configText(members, 1), "> 0", fmt.Sprintf(">= %d and all(members, true)", members))
	truths := map[predicates.Truth]int{}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // A test.
		s, by := newShedding(t, cfg), ""
		names := []string{"w0", "w1", "w2"}
		hello := s.hello
		if seed%2 == 1 {
			by, names, hello = "n", []string{"n-0", "n-1", "n-2"}, s.carried
		}
		for _, name := range names {
			s.says(by, name, 0, hello(name))
		}
		was := make([][]int64, members)
		shed, losing := make([]uint64, members), make([]int, members)
		for n := range states { // A state begins at n steps, and holds for a millisecond at least.
			for _, m := range rng.Perm(members) {
				value := int64(rng.IntN(3) / 2)
				was[m] = append(was[m], value)
				frame := s.batch(names[m], uint64(n+1), clocksync.Instant(time.Duration(n+1)*step), value) //nolint:gosec // Small.
				if losing[m] == 0 && n > 0 && rng.IntN(8) == 0 {
					losing[m] = 1 + rng.IntN(4)
				}
				if losing[m] > 0 {
					losing[m]--
					shed[m]++
					if by != "" { // It is the same for all that it brings.
						for i := range shed {
							shed[i] = max(shed[i], shed[m])
						}
					}
					continue
				}
				s.says(by, names[m], shed[m], frame)
			}
		}
		for _, v := range s.verdicts {
			truths[v.Truth]++
			if v.Truth != predicates.True {
				continue
			}
			n := int(v.Span.MonoFrom/clocksync.Instant(step)) - 1
			for m := range members {
				if was[m][n] != 0 {
					t.Errorf("seed %d: true at %v, when %s had %d", seed, v.Span, names[m], was[m][n])
				}
			}
		}
		s.verdicts = nil
	}
	if truths[predicates.True] < 20 || truths[predicates.False] < 20 || truths[predicates.Unknown] < 20 {
		t.Errorf("verdicts %v", truths)
	}
}

// TestQuietAreNotCut: during one long step of the core, one sender floods and others send a little.
// Their messages are not shed with the flood.
func TestQuietAreNotCut(t *testing.T) {
	b, order := newInbox(inboxBytes), inOrder{t, map[string]int{}}
	now, flood, said := clocksync.Instant(0), 0, 0
	var items []item
	for range 20 {
		for range 60 { // of 10 ms, in which nothing is taken
			now = now.Add(10 * time.Millisecond)
			for range 1000 {
				b.putMessage(numbered("flood", flood, 16, now))
				flood++
			}
			for m := range 20 {
				b.putMessage(numbered("quiet"+strconv.Itoa(m), said, 16, now))
			}
			said++
		}
		for range 40 {
			items, _, _ = b.takeTurn(now, items)
			order.see(items)
		}
	}
	if shed := b.shedBy(); len(shed) != 1 || shed[0].From != "flood" || shed[0].Old == 0 {
		t.Errorf("shed: %+v", shed)
	}
}

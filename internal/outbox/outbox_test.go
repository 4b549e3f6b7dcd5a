package outbox_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/wire"
)

const ms = time.Millisecond

// post is an outbox driven by hand, and what it says.
type post struct {
	*outbox.Outbox
	*testing.T
	frames outbox.Frames
}

func newPost(t *testing.T) *post { return &post{Outbox: outbox.New(), T: t} }

// letter is the signal of a decision to an entry of a process in its incarnation 3.
func letter(number uint64, target string) outbox.Letter {
	return outbox.Letter{Owner: outbox.Rule, Incarnation: 3, Signal: &control.Signal{
		Decision: control.Decision{Synchronizer: "s", Number: number}, Name: "stop", Target: target, Region: "r", Entry: 7, TTL: time.Second,
	}}
}

func (p *post) post(now clocksync.Instant, l outbox.Letter) {
	p.Helper()
	if s, sent := p.Post(now, &wire.Signals{Synchronizer: "s"}, l, &p.frames); !sent {
		p.Fatalf("not sent: %+v", s)
	}
}

// retry is what goes out at an instant, and the settled signals.
func (p *post) retry(now clocksync.Instant, gone func(*outbox.Letter) bool) (sent int, settled []outbox.Settled) {
	p.frames = nil
	settled = p.Retry(now, now, &wire.Signals{}, gone, &p.frames, nil)
	for _, f := range p.frames {
		sent += len(f.Msg.Signals)
	}
	return sent, settled
}

func nobody(*outbox.Letter) bool { return false }

func answer(l outbox.Letter, f control.Fate) *wire.Answer {
	return &wire.Answer{Decision: l.Signal.Decision, Name: l.Signal.Name, Target: l.Signal.Target, Fate: f, Detail: "so"}
}

// TestRepeats: a signal is sent again, more and more seldom, until it has no time left;
// the outbox is due when the next one is. A target that has it is asked once a second.
func TestRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		ttl     time.Duration
		waiting clocksync.Instant // of the answer that it waits there
		recalls bool
		want    []time.Duration
		fate    control.Fate
		detail  string
	}{
		"silent":  {time.Second, -1, false, []time.Duration{20 * ms, 70 * ms, 170 * ms, 370 * ms, 870 * ms}, control.Unconfirmed, "no answer"},
		"short":   {60 * ms, -1, true, []time.Duration{20 * ms}, control.Unconfirmed, "no answer"},
		"waiting": {2500 * ms, clocksync.Instant(10 * ms), false, []time.Duration{1010 * ms, 2010 * ms}, control.Expired, "the target did not get to it in time"},
		"asked after its time": {
			1500 * ms, clocksync.Instant(10 * ms), true,
			[]time.Duration{1010 * ms, 1500 * ms, 1520 * ms, 1570 * ms, 1670 * ms, 1870 * ms, 2370 * ms},
			control.Unconfirmed, "the target had it, and does not say what became of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := newPost(t), letter(1, "a")
			l.Signal.TTL, l.Recalls = c.ttl, c.recalls
			end := clocksync.Instant(c.ttl)
			if c.recalls && c.waiting > 0 {
				end = end.Add(time.Second)
			}
			p.post(0, l)
			now := clocksync.Instant(0)
			if c.waiting > 0 {
				p.retry(0, nobody)
				if s, ok := p.Answer(c.waiting, "", "a", answer(l, control.Waiting)); ok || p.Due() > c.waiting.Add(time.Second) {
					t.Fatalf("waiting is final, or is not asked after: %+v", s)
				}
			}
			var got []time.Duration
			for p.Len() > 0 {
				sent, settled := p.retry(now, nobody)
				if sent > 0 {
					got = append(got, time.Duration(now))
				}
				if want := []outbox.Settled{{Letter: l, Fate: c.fate, Detail: c.detail}}; len(settled) > 0 && (now != end || !cmp.Equal(settled, want)) {
					t.Errorf("at %v: %+v", now, settled)
				}
				if p.Len() > 0 && p.Due() <= now {
					t.Fatalf("due at %v, and it is %v", p.Due(), now)
				}
				now = p.Due()
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("sent again at %v, want %v", got, c.want)
			}
		})
	}
}

// TestFates: a final fate settles the signal it is of, and no other one does. With the last signal the outbox has nothing to do.
func TestFates(t *testing.T) {
	for f, want := range map[control.Fate]control.Fate{
		control.Applied: control.Applied, control.Duplicate: control.Applied, control.Expired: control.Expired,
		control.Refused: control.Refused, control.NoSuchEntry: control.NoSuchEntry, control.OldEpoch: control.OldEpoch,
	} {
		p, l := newPost(t), letter(1, "a")
		p.post(0, l)
		p.retry(0, nobody)
		other, named := answer(letter(2, "a"), f), answer(l, f)
		named.Name = "go"
		for i, a := range []struct {
			group, from string
			answer      *wire.Answer
		}{{"", "b", answer(l, f)}, {"g", "a", answer(l, f)}, {"", "a", other}, {"", "a", named}} {
			if s, ok := p.Answer(1, a.group, a.from, a.answer); ok {
				t.Errorf("%v: answer %d settles %+v", f, i, s)
			}
		}
		if !p.Pending(l.Signal.Decision, "a") || p.Pending(l.Signal.Decision, "b") || p.Pending(control.Decision{Number: 2}, "a") {
			t.Errorf("%v: what is pending is told wrongly", f)
		}
		got, ok := p.Answer(1, "", "a", answer(l, f))
		if !ok || !cmp.Equal(got, outbox.Settled{Letter: l, Fate: want, Detail: "so"}) || p.Pending(l.Signal.Decision, "a") || p.Due() != clocksync.MaxInstant {
			t.Errorf("%v: %+v, %t, due at %v", f, got, ok, p.Due())
		}
		if s, again := p.Answer(1, "", "a", answer(l, f)); again {
			t.Errorf("%v settles it twice: %+v", f, s)
		}
	}
}

// TestGone: signals to a member that is gone are given up, in the order in which they were
// posted, as soon as the outbox is told to look; the others stay.
func TestGone(t *testing.T) {
	p := newPost(t)
	for i, target := range []string{"b", "a", "b"} {
		p.post(0, letter(uint64(i), target))
	}
	gone := func(l *outbox.Letter) bool { return l.Signal.Target == "b" }
	p.retry(0, nobody)
	if sent, settled := p.retry(1, gone); sent != 0 || settled != nil {
		t.Errorf("looked before it was due: %d, %+v", sent, settled)
	}
	p.Look()
	_, settled := p.retry(1, gone)
	if len(settled) != 2 || settled[0].Signal.Decision.Number != 0 || settled[1].Signal.Decision.Number != 2 ||
		settled[0].Fate != control.Unconfirmed || settled[0].Detail != "the target is gone" || p.Len() != 1 {
		t.Errorf("%+v, and %d left", settled, p.Len())
	}
}

// TestFrames: what goes to one process goes in one frame, in the order of its posting,
// with the head it was given; a full frame is followed by another.
func TestFrames(t *testing.T) {
	p := newPost(t)
	again, elsewhere := letter(3, "a"), letter(4, "a")
	again.Incarnation, elsewhere.Group = 4, "g"
	for _, l := range []outbox.Letter{letter(0, "a"), letter(1, "b"), letter(2, "a"), again, elsewhere} {
		p.post(0, l)
	}
	var got []string
	for _, f := range p.frames {
		var numbers []uint64
		for i := range f.Msg.Signals {
			numbers = append(numbers, f.Msg.Signals[i].Decision.Number)
		}
		got = append(got, fmt.Sprint(f.Group, "/", f.To, " ", f.Msg.Synchronizer, " ", f.Msg.Incarnation, " ", numbers))
	}
	if d := cmp.Diff([]string{"/a s 3 [0 2]", "/b s 3 [1]", "/a s 4 [3]", "g/a s 3 [4]"}, got); d != "" {
		t.Error(d)
	}
	p.frames = nil
	for i := range uint64(wire.MaxSignals + 1) {
		p.post(0, letter(i, "a"))
	}
	if len(p.frames) != 2 || len(p.frames[0].Msg.Signals) != wire.MaxSignals {
		t.Errorf("%d frames", len(p.frames))
	}
}

// TestRefused: a target outside the region, and one signal too many, are not sent.
func TestRefused(t *testing.T) {
	p := newPost(t)
	outside := letter(1, "a")
	outside.Signal.Entry = 0
	for i := range uint64(outbox.Limit) {
		p.frames = nil
		p.post(0, letter(i, "a"))
	}
	for _, want := range []outbox.Settled{
		{Letter: outside, Fate: control.NoSuchEntry, Detail: "the target was in no such region"},
		{Letter: letter(9, "b"), Fate: control.Refused, Detail: "too many signals wait for their fate"},
	} {
		p.frames = nil
		got, sent := p.Post(0, &wire.Signals{}, want.Letter, &p.frames)
		if sent || len(p.frames) != 0 || p.Len() != outbox.Limit || !cmp.Equal(got, want) {
			t.Errorf("%+v, sent %t, want %+v", got, sent, want)
		}
	}
}

// TestAskedAfterItsTime: of a signal that a target has, and whose time is over, the target says
// what became of it: its answer may have been lost.
func TestAskedAfterItsTime(t *testing.T) {
	for _, f := range []control.Fate{control.Applied, control.Expired} {
		p, l := newPost(t), letter(1, "a")
		l.Recalls = true
		p.post(0, l)
		p.Answer(clocksync.Instant(10*ms), "", "a", answer(l, control.Waiting))
		p.retry(clocksync.Instant(10*ms), nobody)
		if sent, settled := p.retry(clocksync.Instant(time.Second), nobody); sent != 1 || len(settled) > 0 {
			t.Fatalf("%d sent, %+v", sent, settled)
		}
		if s, ok := p.Answer(clocksync.Instant(1001*ms), "", "a", answer(l, control.Waiting)); ok || p.Len() != 1 {
			t.Errorf("%+v, though its handler runs", s)
		}
		if s, ok := p.Answer(clocksync.Instant(1002*ms), "", "a", answer(l, f)); !ok || s.Fate != f {
			t.Errorf("%+v, %t", s, ok)
		}
	}
}

// TestReceipts: what is recorded is told to each target in frames of its own, a moment later,
// and so is what was given up, if the target keeps it.
func TestReceipts(t *testing.T) {
	p := newPost(t)
	d := func(number uint64) control.Decision {
		return control.Decision{Synchronizer: "s", Term: 2, Number: number}
	}
	p.retry(0, nobody)
	p.Record(0, "", "b", 3, d(1), "stop")
	p.Record(1, "", "a", 3, d(2), "stop")
	p.Record(2, "g", "a", 3, d(3), "stop")
	for n := range uint64(wire.MaxSignals) {
		p.Record(3, "", "b", 3, d(4+n), "go")
	}
	if p.Due() != clocksync.Instant(250*ms) {
		t.Fatalf("due at %v", p.Due())
	}
	p.retry(clocksync.Instant(250*ms), nobody)
	var got []string
	for _, f := range p.frames {
		got = append(got, fmt.Sprint(f.Group, "/", f.To, " ", f.Msg.Incarnation, " ", f.Msg.Recorded[0], " ", len(f.Msg.Recorded), " ", len(f.Msg.Signals)))
	}
	for n := range uint64(control.MaxKept / 2) { // The target must not have to forget fates.
		if p.Record(clocksync.Instant(300*ms), "", "a", 3, d(1000+n), "go"); n < control.MaxKept/2-1 && p.Due() != clocksync.Instant(550*ms) {
			t.Fatalf("due at %v after %d receipts", p.Due(), n+1)
		}
	}
	if p.Due() != clocksync.Instant(300*ms) {
		t.Errorf("many receipts are due at %v", p.Due())
	}
	if d := cmp.Diff([]string{"/a 3 {2 2 stop} 1 0", "/b 3 {2 1 stop} 256 0", "/b 3 {2 259 go} 1 0", "g/a 3 {2 3 stop} 1 0"}, got); d != "" {
		t.Error(d)
	}
	p.Post(clocksync.Instant(250*ms), &wire.Signals{}, letter(1, "a"), &p.frames)
	if n := len(p.frames); n != 5 || len(p.frames[0].Msg.Signals) > 0 {
		t.Errorf("a signal is in a frame of receipts")
	}
	if p.retry(clocksync.Instant(260*ms), nobody); len(p.frames) != 0 {
		t.Errorf("they are told twice: %+v", p.frames)
	}
	q, l := newPost(t), letter(9, "a")
	l.Recalls = true
	q.post(0, l)
	if _, settled := q.retry(clocksync.Instant(time.Second), nobody); len(settled) != 1 {
		t.Fatal("it is not given up")
	}
	if q.retry(clocksync.Instant(1250*ms), nobody); len(q.frames) != 1 || !slices.Equal(q.frames[0].Msg.Recorded, []wire.Receipt{{Number: 9, Name: "stop"}}) {
		t.Errorf("what was given up: %+v", q.frames)
	}
}

// TestStoodStill: a machine that stood still until long after a signal's time asks the target
// that has it before it says what became of it.
func TestStoodStill(t *testing.T) {
	p, l := newPost(t), letter(1, "a")
	l.Recalls = true
	p.post(0, l)
	p.retry(0, nobody)
	p.Answer(clocksync.Instant(ms), "", "a", answer(l, control.Waiting))
	late := clocksync.Instant(time.Minute)
	if sent, settled := p.retry(late, nobody); sent != 1 || len(settled) != 0 {
		t.Fatalf("sent %d times, %+v", sent, settled)
	}
	if s, ok := p.Answer(late.Add(ms), "", "a", answer(l, control.Applied)); !ok || s.Fate != control.Applied {
		t.Errorf("%+v, %t", s, ok)
	}
	p.post(0, letter(2, "a"))
	if _, settled := p.retry(late, nobody); len(settled) != 1 || settled[0].Fate != control.Unconfirmed {
		t.Errorf("no answer: %+v", settled)
	}
}

// TestRenewed: what a target says of the copies of earlier terms settles a signal only if it
// was applied, also in an outbox to which it was handed on: another copy may be applied yet.
func TestRenewed(t *testing.T) {
	for _, fate := range []control.Fate{control.OldEpoch, control.Applied, control.Duplicate} {
		p, l := newPost(t), letter(1, "a")
		l.Signal.Decision.Term, l.Signal.Cause.Source = 1, 5
		p.post(0, l)
		p.Renew(2)
		next := newPost(t)
		next.Restore(0, p.Kept(0))
		next.Renew(3)
		second := l
		second.Signal = new(*l.Signal)
		second.Signal.Decision.Term = 2
		for _, copied := range []outbox.Letter{l, second} {
			one := newPost(t)
			one.Restore(0, next.Kept(0))
			if s, ok := one.Answer(1, "", "a", answer(copied, fate)); ok != (fate != control.OldEpoch) {
				t.Errorf("%v of the copy of term %d: %+v, %t", fate, copied.Signal.Decision.Term, s, ok)
			}
		}
		third := second
		third.Signal = new(*second.Signal)
		third.Signal.Decision.Term = 3
		if s, ok := next.Answer(1, "", "a", answer(third, fate)); !ok {
			t.Errorf("%v of the last copy: %+v", fate, s)
		}
	}
}

// BenchmarkEverybody is a signal to each of many members, and their answers one by one, for each member.
func BenchmarkEverybody(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			letters := make([]outbox.Letter, n)
			for i := range letters {
				letters[i] = letter(1, fmt.Sprint("m", i))
			}
			head := &wire.Signals{Synchronizer: "s"}
			o, frames := outbox.New(), outbox.Frames{}
			for range b.N/n + 1 {
				for _, l := range letters {
					o.Post(0, head, l, &frames)
				}
				for i := range letters {
					frames = frames[:0]
					if o.Due() <= 1 {
						o.Retry(1, 1, head, nobody, &frames, nil)
					}
					if _, ok := o.Answer(1, "", letters[i].Signal.Target, answer(letters[i], control.Applied)); !ok {
						b.Fatal("an answer is not taken")
					}
				}
				if o.Len() > 0 {
					b.Fatal("signals are left")
				}
			}
		})
	}
}

package outbox_test

import (
	"fmt"
	"slices"
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

// retry is what goes out at an instant, and what is settled.
func (p *post) retry(now clocksync.Instant, gone func(*outbox.Letter) bool) (sent int, settled []outbox.Settled) {
	p.frames = nil
	settled = p.Retry(now, &wire.Signals{}, gone, &p.frames, nil)
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
		want    []time.Duration
		fate    control.Fate
		detail  string
	}{
		"silent":  {time.Second, -1, []time.Duration{20 * ms, 70 * ms, 170 * ms, 370 * ms, 870 * ms}, control.Unconfirmed, "no answer"},
		"short":   {60 * ms, -1, []time.Duration{20 * ms}, control.Unconfirmed, "no answer"},
		"waiting": {2500 * ms, clocksync.Instant(10 * ms), []time.Duration{1010 * ms, 2010 * ms}, control.Expired, "the target did not get to it in time"},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := newPost(t), letter(1, "a")
			l.Signal.TTL = c.ttl
			p.post(0, l)
			now := clocksync.Instant(0)
			if c.waiting > 0 {
				p.retry(0, nobody)
				if s, ok := p.Answer(c.waiting, "", "a", answer(l, control.Waiting)); ok || p.Due() != clocksync.MinInstant {
					t.Fatalf("waiting is final, or no news: %+v", s)
				}
			}
			var got []time.Duration
			for p.Len() > 0 {
				sent, settled := p.retry(now, nobody)
				if sent > 0 {
					got = append(got, time.Duration(now))
				}
				if want := []outbox.Settled{{Letter: l, Fate: c.fate, Detail: c.detail}}; len(settled) > 0 && (now != clocksync.Instant(c.ttl) || !cmp.Equal(settled, want)) {
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

// TestFates: a final fate settles the signal it is of, and no other one does. The outbox is
// due at once, since something has changed.
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
		if !ok || !cmp.Equal(got, outbox.Settled{Letter: l, Fate: want, Detail: "so"}) || p.Pending(l.Signal.Decision, "a") || p.Due() != clocksync.MinInstant {
			t.Errorf("%v: %+v, %t, due at %v", f, got, ok, p.Due())
		}
		if s, again := p.Answer(1, "", "a", answer(l, f)); again {
			t.Errorf("%v settles it twice: %+v", f, s)
		}
	}
}

// TestGone: signals to one who is gone are given up, in the order in which they were
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

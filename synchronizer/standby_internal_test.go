package synchronizer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

func leads(t *testing.T, what string, s *Synchronizer) {
	t.Helper()
	testwait.Until(t, what, func() bool {
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		return s.leads.Load()
	})
}

// TestStandby: a standby says so, is announced, and begins when the leader says that it
// ends, or is not heard any more; one by one.
func TestStandby(t *testing.T) {
	server, log := bustest.NewServer(t), &lines{}
	own := server.Connect(bus.Options{})
	first, err := tryLed(t.Context(), own, Options{wall: wallAt(aDay)})
	if err != nil {
		t.Fatal(err)
	}
	m := newFenced(t, server, "a", 0)
	m.say()
	m.obeys(first.term.Load())
	second := startLed(t, server, Options{Standby: true, wall: wallAt(0), Logger: log.logger()})
	status := func(s *Synchronizer) monitor.Status {
		t.Helper()
		status, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	testwait.Until(t, "word of who stands by", func() bool {
		list := status(first).Standbys
		return len(list) == 1 && strings.HasPrefix(list[0], fmt.Sprintf("process %d on ", os.Getpid()))
	})
	want := fmt.Sprintf("leads in term %d", first.term.Load())
	testwait.Until(t, "word of who leads", func() bool {
		_, err := second.Status(t.Context())
		return errors.Is(err, ErrStandby) && strings.HasSuffix(err.Error(), want)
	})
	parts := second.Readiness()
	if last := parts[len(parts)-1]; last.Part != "leads" || last.Ready || !strings.HasSuffix(last.Detail, want) || !parts[0].Ready {
		t.Errorf("%+v", parts)
	}
	cfg, err := ParseConfig("test.yaml", []byte(ledConfig))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Reload(cfg); !errors.Is(err, ErrStandby) {
		t.Error(err)
	}
	if _, err := tryLed(t.Context(), server.Connect(bus.Options{}), Options{}); !errors.Is(err, ErrNameTaken) {
		t.Error(err)
	}

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the second one after the end of the first", second)
	if a, b := first.term.Load(), second.term.Load(); b != a+1 {
		t.Errorf("term %d after %d", b, a)
	}
	m.obeys(second.term.Load())
	if list := status(second).Standbys; len(list) > 0 {
		t.Errorf("there stand by %v", list)
	}
	if !log.has("stands by until the process that leads has ended") || !log.has("; this process leads now") && !log.has("no other process leads; this one does now") {
		t.Error(log.string())
	}

	third, fourth := startLed(t, server, Options{Standby: true}), startLed(t, server, Options{Standby: true})
	testwait.Until(t, "both to stand by", func() bool { return len(status(second).Standbys) == 2 })
	if err := second.bus.Close(); err != nil { // As if it were killed.
		t.Fatal(err)
	}
	testwait.Until(t, "one of them", func() bool { return third.leads.Load() || fourth.leads.Load() })
	testwait.Until(t, "one to lead and the other not to", func() bool {
		for winner, other := range map[*Synchronizer]*Synchronizer{third: fourth, fourth: third} {
			_, err := winner.Status(t.Context())
			_, no := other.Status(t.Context())
			known := no != nil && strings.HasSuffix(no.Error(), fmt.Sprintf("leads in term %d", winner.term.Load()))
			if err == nil && (known || errors.Is(other.Err(), ErrSuperseded)) {
				m.obeys(winner.term.Load())
				return true
			}
		}
		return false
	})
}

// TestServerStandsStill: when a server continues that stood still, it may hand over to who stands by
// before it reads what the leader has said meanwhile. That leader is not missed.
func TestServerStandsStill(t *testing.T) {
	server := bustest.NewServer(t)
	connect := func() (*throttled, *bus.Bus) {
		way := &throttled{server: server}
		b, err := bus.Dial(t.Context(), "nats://in-process", bus.Options{Extra: []nats.Option{nats.SetCustomDialer(way)}})
		if err != nil {
			t.Fatal(err)
		}
		return way, b
	}
	ofFirst, own := connect()
	first, err := tryLed(t.Context(), own, Options{wall: wallAt(aDay)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	ofSecond, own := connect()
	second, err := tryLed(t.Context(), own, Options{Standby: true, wall: wallAt(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	for range 3 {
		testwait.Until(t, "a warm standby", second.follow.isCaughtUp)
		ofFirst.out.Lock()
		ofSecond.gate.Lock()
		testwait.Elapse(beatsGone + beatEvery)
		ofSecond.gate.Unlock()
		err := second.bus.Flush(t.Context())
		testwait.Elapse(beatEvery / 4)
		ofFirst.out.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "the leader to be heard again", func() bool {
			second.beats.mu.Lock()
			defer second.beats.mu.Unlock()
			return second.opt.now().Sub(second.beats.leader.at) < beatEvery || second.leads.Load()
		})
		if second.leads.Load() {
			t.Fatal("two lead")
		}
	}
	if first.Err() != nil || second.Err() != nil {
		t.Error(first.Err(), second.Err())
	}
}

// TestStandbyWithoutALeader begins after a second. One whose place is held by a process
// that sends no beats waits.
func TestStandbyWithoutALeader(t *testing.T) {
	server, log := bustest.NewServer(t), &lines{}
	silent := server.Connect(bus.Options{})
	t.Cleanup(func() { _ = silent.Close() })
	if err := silent.Subscribe(ledSubjects.Control("gsync"), bus.Limits{}, func(m bus.Message) { _ = silent.Reply(m, nil) }); err != nil {
		t.Fatal(err)
	}
	if err := silent.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := startLed(t, server, Options{Standby: true, Logger: log.logger()})
	if _, err := s.Status(t.Context()); err == nil || err.Error() != `synchronizer "gsync": the process is a standby, and no process is known to lead: start one, or wait` {
		t.Error(err)
	}
	testwait.Until(t, "an attempt", func() bool {
		return log.has("nobody is heard to lead, and this process cannot; it stands by") && log.has("the name is taken")
	})
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the one that stands by", s)
}

// TestStandbyOfARaisedTerm: a standby continues to follow a leader that raises its term in place.
func TestStandbyOfARaisedTerm(t *testing.T) {
	server, log := bustest.NewServer(t), &lines{}
	first := startLed(t, server, Options{wall: wallAt(aDay)})
	second := startLed(t, server, Options{Standby: true, wall: wallAt(0), Logger: log.logger()})
	testwait.Until(t, "a warm standby", second.follow.isCaughtUp)
	later := first.term.Load() + 5
	m := newFenced(t, server, "a", later)
	testwait.Until(t, "it to be told all in the later term", func() bool {
		m.say()
		f := second.follow
		f.mu.Lock()
		defer f.mu.Unlock()
		ready, _ := f.core.Follows()
		return f.broken == "" && ready && f.core.Term() == first.term.Load() && f.core.Term() > later
	})
	if !log.has("the leader continues in a later term, and has to send its state again") || first.Err() != nil || second.leads.Load() {
		t.Error(first.Err(), log.string())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the standby", second)
}

// TestSlowServer: an answer that takes long gives a leader that is silent the time to be heard, once; so
// a server that is slow for long, or now and then, keeps nobody from beginning.
func TestSlowServer(t *testing.T) {
	const quick, slow = serverSlow, serverSlow + 1
	const short, long = beatsGone/2 - 1, beatsGone / 2
	var g grace
	now, heard := clocksync.Instant(time.Hour), clocksync.Instant(0)
	for i, c := range []struct {
		silence time.Duration // 0: it was not heard since
		took    time.Duration
		waits   bool
	}{
		{long, quick, false},
		{short, slow, false},
		{long, slow, true},
		{0, slow, false},
		{0, quick, false},
		{0, slow, false},
		{long, slow, true},
	} {
		if now = now.Add(beatsGone); c.silence > 0 {
			heard = now.Add(-c.silence)
		}
		if g.note(now, heard, c.took); (now < g.until) != c.waits {
			t.Errorf("answer %d, after %v: waits %t", i, c.took, !c.waits)
		}
	}
}

// TestTheLastLeader: for 3 s the leader that was heard is known to be the last one.
func TestTheLastLeader(t *testing.T) {
	var h beats
	if h.heardLately(0) {
		t.Error("nobody was heard")
	}
	h.noteBeat(&beat{Beat: wire.Beat{Term: 1}, Nonce: 1}, 5)
	h.noteBeat(&beat{Beat: wire.Beat{Standby: true}, Nonce: 2}, clocksync.Instant(2*time.Second))
	if last := clocksync.Instant(5).Add(leaderLately); !h.heardLately(last) || h.heardLately(last+1) {
		t.Errorf("at %v: %t, then %t", last, h.heardLately(last), h.heardLately(last+1))
	}
}

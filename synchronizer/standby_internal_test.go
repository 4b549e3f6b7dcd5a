package synchronizer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/testwait"
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

// TestStandby: who stands by says so, is told of, and begins when the leader says that it
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
		return errors.Is(err, ErrStandsBy) && strings.HasSuffix(err.Error(), want)
	})
	parts := second.Readiness()
	if last := parts[len(parts)-1]; last.Part != "leads" || last.Ready || !strings.HasSuffix(last.Detail, want) || !parts[0].Ready {
		t.Errorf("%+v", parts)
	}
	cfg, err := ParseConfig("test.yaml", []byte(ledConfig))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Reload(cfg); !errors.Is(err, ErrStandsBy) {
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
	if !log.has("stands by until the process that leads has ended") || !log.has("; this one leads now") && !log.has("no other process leads; this one does now") {
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
	if _, err := s.Status(t.Context()); err == nil || err.Error() != `synchronizer "gsync": it stands by, and has heard of no other process that leads` {
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

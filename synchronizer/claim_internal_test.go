package synchronizer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
)

// startNamed starts a synchronizer of the group of ledConfig under another name.
func startNamed(ctx context.Context, name string, b *bus.Bus, opt Options) (*Synchronizer, error) {
	cfg, err := ParseConfig("test.yaml", []byte(strings.ReplaceAll(ledConfig, "gsync", name)))
	if err != nil {
		return nil, err
	}
	opt.bus = b
	return Start(ctx, "", cfg, opt)
}

// TestGroupHasOneSynchronizer: one of another name does not begin, in another tenant it does,
// and in this one when the first has ended.
func TestGroupHasOneSynchronizer(t *testing.T) {
	server := bustest.NewServer(t)
	first, err := startNamed(t.Context(), "a", server.Connect(bus.Options{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = startNamed(t.Context(), "b", server.Connect(bus.Options{}), Options{})
	want := `synchronizer "b": the group is taken: synchronizer "a" already controls group "` + ledSubjects.Group +
		`" of tenant "default": stop one of the two, or give one another group or another tenant`
	if !errors.Is(err, ErrGroupTaken) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, tenant := range []string{"x", "default"} {
		if tenant == "default" {
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := startNamed(t.Context(), "b", server.Connect(bus.Options{}), Options{Tenant: tenant})
		if err != nil {
			t.Fatalf("tenant %s: %v", tenant, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTwoNamesAtOnce: of two that begin at the same moment one remains at most.
func TestTwoNamesAtOnce(t *testing.T) {
	both := 0
	for i := range 10 {
		server := bustest.NewServer(t)
		var pair [2]*Synchronizer
		var errs [2]error
		buses := [2]*bus.Bus{server.Connect(bus.Options{}), server.Connect(bus.Options{})}
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for k, name := range []string{"a", "b"} {
			wg.Go(func() {
				<-begin
				pair[k], errs[k] = startNamed(t.Context(), name, buses[k], Options{})
			})
		}
		close(begin)
		wg.Wait()
		if pair[0] != nil && pair[1] != nil {
			both++
			loser := pair[0]
			if pair[0].nonce > pair[1].nonce {
				loser = pair[1]
			}
			<-loser.Done()
			if err := loser.Err(); !errors.Is(err, ErrGroupTaken) {
				t.Errorf("round %d: %v", i, err)
			}
		}
		for k, s := range pair {
			switch {
			case s == nil && !errors.Is(errs[k], ErrGroupTaken):
				t.Errorf("round %d: %v", i, errs[k])
			case s != nil:
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Logf("%d of 10 times both led for a moment", both)
}

// TestClaim: the process that has led longer continues, and says so; the other one ends.
func TestClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		subject string
		beat    beat
		logs    bool
		ends    bool
	}{
		"younger":            {"other", beat{Beat: wire.Beat{Term: 1}}, true, false},
		"older":              {"other", beat{Beat: wire.Beat{Term: 1}, Steady: time.Hour}, false, true},
		"of the same age":    {"other", beat{Beat: wire.Beat{Term: 1}, Nonce: 1<<64 - 1, Steady: time.Second / 2}, false, true},
		"one that stands by": {"other", beat{Beat: wire.Beat{Standby: true}, Steady: time.Hour}, false, false},
		"one that ends":      {"other", beat{Beat: wire.Beat{Term: 1, Ends: true}, Steady: time.Hour}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, log := bustest.NewServer(t), &lines{}
			b := server.Connect(bus.Options{})
			t.Cleanup(func() { _ = b.Close() })
			var own int
			var mu sync.Mutex
			if err := b.Subscribe(ledSubjects.Beat("gsync"), bus.Limits{}, func(bus.Message) { mu.Lock(); own++; mu.Unlock() }); err != nil {
				t.Fatal(err)
			}
			s, err := tryLed(t.Context(), server.Connect(bus.Options{}), Options{Logger: log.logger()})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(c.beat)
			if err != nil {
				t.Fatal(err)
			}
			beats := func() int {
				mu.Lock()
				defer mu.Unlock()
				return own
			}
			testwait.Until(t, "it has ended, or says why it goes on", func() bool {
				if err := b.Publish(ledSubjects.Beat(c.subject), text); err != nil {
					t.Fatal(err)
				}
				select {
				case <-s.Done():
					return true
				default:
					return !c.ends && beats() > 3 && log.has("another synchronizer claims the group") == c.logs
				}
			})
			if err := s.Err(); errors.Is(err, ErrGroupTaken) != c.ends || err != nil && !strings.HasPrefix(err.Error(), `synchronizer "gsync": the group is taken: synchronizer "other" already controls group`) {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

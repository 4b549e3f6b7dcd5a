//go:build broken && linux

package broken

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// roleKey names the variable of the environment that makes the test program a process of a
// group: a role as JSON.
const roleKey = "PEGASUS_BROKEN_ROLE"

// The kinds of processes.
const (
	aMember       = "member"
	aSynchronizer = "synchronizer"
	aServer       = "server"
	aNode         = "node"
	aProgram      = "program"
)

// role is what a process is.
type role struct {
	Kind    string
	Name    string
	Life    int      // from 1
	Dir     string   // of the records
	URL     string   // of the server
	Port    int      // of a server
	Members []string // of a member's process
	Standby bool     // of a synchronizer
	Awaited int      // members
	Still   bool     // members that have arrived keep still
}

func (r *role) path(ending string) string {
	return filepath.Join(r.Dir, fmt.Sprintf("%s.%d.%s", r.Name, r.Life, ending))
}

func TestMain(m *testing.M) {
	text := os.Getenv(roleKey)
	if text == "" {
		code := m.Run()
		if err := wholeReport.write(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.be()
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// be is the process, until SIGTERM.
func (r *role) be() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	file, err := os.OpenFile(r.path("jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := &writer{file: file}
	logger := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
	switch r.Kind {
	case aServer:
		s, err := embedded.Start(embedded.Options{Port: r.Port, Open: true}) // Proxies have other ports.
		if err != nil {
			return err
		}
		<-ctx.Done()
		s.Close()
		return nil
	case aSynchronizer:
		return r.decide(ctx, w, logger)
	case aNode:
		return r.work(ctx, w, logger)
	case aProgram:
		return r.runProgram(ctx, w, logger)
	case aCrowd:
		return r.crowd(ctx, logger)
	case anUsher:
		return r.usher(ctx, w, logger)
	}
	return r.takePart(ctx, w, logger)
}

// persist tries again as long as the server cannot be reached: it may be broken just now.
func persist[T any](ctx context.Context, try func() (T, error)) (T, error) {
	for {
		made, err := try()
		if ctx.Err() != nil || !errors.Is(err, agent.ErrNotConnected) && !errors.Is(err, synchronizer.ErrNotConnected) {
			return made, err
		}
	}
}

// takePart has members live in this process.
func (r *role) takePart(ctx context.Context, w *writer, logger *slog.Logger) error {
	still, stop := signal.NotifyContext(ctx, syscall.SIGUSR1)
	defer stop()
	errs := make([]error, len(r.Members))
	var joined []*agent.Member
	var all sync.WaitGroup
	for i, name := range r.Members {
		m, err := persist(ctx, func() (*agent.Member, error) {
			return agent.Join(ctx, r.URL, agent.Config{
				Group: "members", Name: name, State: state{}, Logger: logger, JoinTimeout: time.Hour,
			})
		})
		if err != nil {
			return err
		}
		joined = append(joined, m)
		defer m.Close()
		one := &member{
			Member: m, name: name, records: w, still: still, rests: r.Still,
			random: rand.New(rand.NewPCG(uint64(r.Life), uint64(name[1]))), //nolint:gosec // Not negative.
			serial: int64(r.Life) * serialsOfLife, entries: map[string]int{}, now: state{Phase: "work"},
		}
		all.Go(func() { errs[i] = one.live(ctx) })
	}
	all.Wait()
	for _, m := range joined {
		s := m.Stats()
		w.put(&record{Kind: kindCount, At: clock(), Shown: &shown{Counters: map[string]uint64{
			"signals refused by members, old-epoch": s.Signals.OldEpoch, "signals refused by members, no-such-entry": s.Signals.NoSuchEntry,
			"copies of signals": s.Signals.Copies, "messages of an older term": s.Ignored,
			"states that rings dropped": s.Dropped, "members that came back": s.Rejoins,
		}}})
	}
	return errors.Join(errs...)
}

// member lives in regions, works and waits for the others.
type member struct {
	*agent.Member

	name    string
	records *writer
	random  *rand.Rand      // of the work
	still   context.Context //nolint:containedctx // States change until it ends.

	rests bool // it keeps still when it has arrived

	mu      sync.Mutex // orders sets
	serial  int64
	now     state
	entries map[string]int
}

// set changes the state. A record before the change may be of a state that is never reported; a
// record after it is of a state that was set.
func (m *member) set(change func(*state)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.still.Err() != nil {
		return nil
	}
	change(&m.now)
	m.serial++
	m.now.Serial = m.serial
	now := m.now
	m.records.put(&record{Kind: kindSet, At: clock(), By: m.name, State: &now})
	err := m.Set(now)
	m.records.put(&record{Kind: kindDid, At: clock(), By: m.name, State: &state{Serial: now.Serial}})
	return err
}

// entry counts the entries of a region.
func (m *member) entry(region string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[region]++
	return m.entries[region]
}

// handler writes down that it runs.
func (m *member) handler(entry int, then func()) agent.Handler {
	return func(_ context.Context, s agent.Signal) error {
		h := &handled{
			Region: s.Region, Entry: entry, Name: s.Name, Predicate: s.Predicate, Target: m.name,
			Decision: number{s.Decision.Term, s.Decision.Epoch, s.Decision.Number},
		}
		m.records.put(&record{Kind: kindBegin, At: clock(), By: m.name, Handled: h})
		if then != nil {
			then()
		}
		m.records.put(&record{Kind: kindEnd, At: clock(), By: m.name, Handled: h})
		return nil
	}
}

// region is one entry of a region.
func (m *member) region(ctx context.Context, name string, work agent.Work, options func(entry int) []agent.RegionOption) error {
	entry := m.entry(name)
	err := m.Region(ctx, name, func(ctx context.Context, r *agent.Region) error {
		m.records.put(&record{Kind: kindEnter, At: clock(), By: m.name, Handled: &handled{Region: name, Entry: entry}})
		defer func() {
			m.records.put(&record{Kind: kindLeave, At: clock(), By: m.name, Handled: &handled{Region: name, Entry: entry}})
		}()
		return work(ctx, r)
	}, options(entry)...)
	if ctx.Err() == nil && !errors.Is(err, agent.ErrClosed) {
		return err
	}
	return nil // It ends.
}

func (m *member) live(ctx context.Context) error {
	if err := m.set(func(*state) {}); err != nil {
		return err
	}
	blinks := make(chan error, 1)
	go func() { blinks <- m.blink(ctx) }()
	for ctx.Err() == nil {
		err := m.region(ctx, "life", func(ctx context.Context, _ *agent.Region) error {
			for range 5 {
				if err := m.meet(ctx); err != nil || ctx.Err() != nil {
					return err
				}
			}
			return nil
		}, func(entry int) []agent.RegionOption {
			return []agent.RegionOption{agent.OnActivateNow("mostly", m.handler(entry, nil)), agent.OnActivateNow("six", m.handler(entry, nil))}
		})
		if err != nil {
			return err
		}
	}
	return <-blinks
}

// blink changes the field that changes often. If a member that has arrived keeps still, a later term finds the
// witness of an earlier one again.
func (m *member) blink(ctx context.Context) error {
	random := rand.New(rand.NewPCG(uint64(m.serial), 1)) //nolint:gosec // Not negative.
	for pause(ctx, time.Duration(10+random.IntN(30))*time.Millisecond) {
		m.mu.Lock()
		waits := m.rests && m.now.Phase == "arrived"
		m.mu.Unlock()
		if waits {
			continue
		}
		if err := m.set(func(s *state) { s.Lit = !s.Lit }); err != nil {
			return err
		}
	}
	return nil
}

// meet works for a while, arrives, and waits until all have been there.
func (m *member) meet(ctx context.Context) error {
	if !pause(ctx, time.Duration(5+m.random.IntN(40))*time.Millisecond) {
		return nil
	}
	goOn := false
	return m.region(ctx, "barrier", func(ctx context.Context, r *agent.Region) error {
		if err := m.set(func(s *state) { s.Phase = "arrived" }); err != nil {
			return err
		}
		for !goOn {
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
		return m.set(func(s *state) { s.Phase = "work" })
	}, func(entry int) []agent.RegionOption {
		return []agent.RegionOption{
			agent.OnActivate("arrived", m.handler(entry, nil)),
			agent.OnActivate("go", m.handler(entry, func() { goOn = true })),
		}
	})
}

// pause lets time pass, unless the process is to end.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

//go:embed broken.yaml
var config []byte

// shownEvery is how often a synchronizer writes down what it shows.
const shownEvery = 20 * time.Millisecond

// decide is a synchronizer, until SIGTERM or until another one leads.
func (r *role) decide(ctx context.Context, w *writer, logger *slog.Logger) error {
	cfg, err := synchronizer.ParseConfig("broken.yaml", config, synchronizer.Members("broken", r.Awaited))
	if err != nil {
		return err
	}
	journal, err := os.Create(r.path("journal"))
	if err != nil {
		return err
	}
	defer journal.Close()
	return r.oversee(ctx, w, cfg, synchronizer.Options{
		Observe: func(e monitor.Event) { w.event(e) },
		Logger:  logger, Journal: journal, State: filepath.Join(r.Dir, "state"), Standby: r.Standby,
	})
}

// oversee runs a synchronizer, and writes down what it shows.
func (r *role) oversee(ctx context.Context, w *writer, cfg *synchronizer.Config, opt synchronizer.Options) error {
	s, err := persist(ctx, func() (*synchronizer.Synchronizer, error) { return synchronizer.Start(ctx, r.URL, cfg, opt) })
	if err != nil {
		return err
	}
	watch(ctx, s, func(st *monitor.Status) { w.put(&record{Kind: kindShown, At: clock(), Shown: shows(st)}) })
	total := &shown{Counters: map[string]uint64{}}
	if st, err := s.Status(context.WithoutCancel(ctx)); err == nil {
		total = shows(&st)
	}
	err = s.Close()
	total.Counters["gaps"] = s.Stats().Gaps
	w.put(&record{Kind: kindTotal, At: clock(), Shown: total})
	return errors.Join(err, s.Err())
}

// watch asks a synchronizer for its status again and again, until it ends or is to end.
func watch(ctx context.Context, s *synchronizer.Synchronizer, tell func(*monitor.Status)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Done():
			return
		case <-time.After(shownEvery):
			if st, err := s.Status(ctx); err == nil {
				tell(&st)
			}
		}
	}
}

// shows is what a synchronizer shows.
func shows(st *monitor.Status) *shown {
	w := &shown{
		Term: st.Term, Epoch: st.Epoch, InForce: st.State != nil && st.State.InForce, Waiting: st.Waiting,
		Standbys: len(st.Standbys), Counters: st.Counters,
	}
	for i := range st.Members {
		m := &st.Members[i]
		p := share{Member: m.Name, Unknown: m.Unknown || m.Behind > 0}
		if m.Standing != monitor.InEpoch {
			p.Absent, p.Why = string(m.Standing), m.Why
		}
		for _, v := range m.State {
			p.read(v.Name, fmt.Sprint(v.Value))
		}
		w.Members = append(w.Members, p)
	}
	return w
}

// read takes a field by the text of its value.
func (s *state) read(name, text string) {
	switch name {
	case "serial":
		_, _ = fmt.Sscan(text, &s.Serial) // 0 is the serial of no state.
	case "phase":
		s.Phase = text
	case "lit":
		s.Lit = text == "true"
	}
}

// event writes down what a synchronizer tells.
func (w *writer) event(e monitor.Event) {
	switch e := e.(type) {
	case monitor.Verdict:
		if !e.Fired {
			return
		}
		f := &firing{
			Rule: e.Predicate, Made: number{e.Decision.Term, e.Decision.Epoch, e.Decision.Number},
			Modality: e.Modality, Held: int64(e.Span.Certain()), Over: int64(e.EndedAgo),
		}
		for i := range e.Witness {
			p := &e.Witness[i]
			s := share{Member: p.Name, Unknown: p.State.Unknown, Began: int64(p.State.Start.Mono)}
			for j, v := range p.Row {
				s.read(p.Fields[j].Name, v.String())
			}
			f.Witness = append(f.Witness, s)
		}
		w.put(&record{Kind: kindFired, At: clock(), Firing: f})
	case monitor.Fate:
		s := e.Signal
		w.put(&record{Kind: kindFate, At: clock(), Text: e.Detail, Handled: &handled{
			Region: s.Region, Entry: int(s.Entry), Name: s.Name, Predicate: s.Predicate, Target: s.Target, //nolint:gosec // Few.
			Decision: number{s.Decision.Term, s.Decision.Epoch, s.Decision.Number}, Fate: e.Fate.String(),
		}})
	}
}

// elapse lets a fault last.
func elapse(d time.Duration) { testwait.Elapse(d) }

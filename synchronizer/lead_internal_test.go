package synchronizer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const ledConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      high: {when: "sum(members, .n) > 1", signal: {kind: activate, region: r}}
`

var ledSubjects = wire.Subjects{Tenant: "default", Group: "g"}

// startLed starts a synchronizer of ledConfig on a connection of its own.
func startLed(t *testing.T, server *bustest.Server, opt Options) *Synchronizer {
	t.Helper()
	s, err := tryLed(t.Context(), server.Connect(bus.Options{}), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func tryLed(ctx context.Context, b *bus.Bus, opt Options) (*Synchronizer, error) {
	cfg, err := ParseConfig("test.yaml", []byte(ledConfig))
	if err != nil {
		return nil, err
	}
	opt.bus = b
	return Start(ctx, "", cfg, opt)
}

// fenced is a member that obeys no term below the last accepted one, and answers its
// synchronizer's question with a hello all the same.
type fenced struct {
	t   *testing.T
	bus *bus.Bus

	mu    sync.Mutex
	hello wire.Hello
	terms []uint64 // accepted
}

func newFenced(t *testing.T, server *bustest.Server, name string, term uint64) *fenced {
	t.Helper()
	m := &fenced{t: t, bus: server.Connect(bus.Options{}), hello: wire.Hello{Member: name, Incarnation: 1, Domain: "d"}}
	if term > 0 {
		m.hello.Leader, m.hello.Term = "gsync", term
	}
	t.Cleanup(func() { _ = m.bus.Close() })
	for _, subject := range []string{ledSubjects.Probe(name), ledSubjects.Announce()} {
		if err := m.bus.Subscribe(subject, bus.Limits{}, m.take); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.bus.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *fenced) take(msg bus.Message) {
	if kind, err := wire.KindOf(msg.Data); err != nil || kind != wire.KindWelcome {
		return
	}
	w, err := wire.DecodeWelcome(msg.Data)
	if err != nil {
		m.t.Error(err)
		return
	}
	m.mu.Lock()
	switch {
	case w.Accepted && w.Term >= m.hello.Term:
		m.hello.Leader, m.hello.Term = w.Synchronizer, w.Term
		m.terms = append(m.terms, w.Term)
	case !w.Accepted && !w.Refused:
		defer m.say()
	}
	m.mu.Unlock()
}

// say sends the hello.
func (m *fenced) say() {
	m.mu.Lock()
	frame, err := wire.AppendHello(nil, &m.hello)
	m.mu.Unlock()
	if err == nil {
		err = m.bus.Publish(ledSubjects.State(m.hello.Member), frame)
	}
	if err != nil {
		m.t.Error(err)
	}
}

// obeys waits until it has accepted a term.
func (m *fenced) obeys(term uint64) {
	m.t.Helper()
	testwait.Until(m.t, fmt.Sprintf("member in term %d", term), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.terms) > 0 && m.terms[len(m.terms)-1] == term
	})
}

func wallAt(ns int64) func() int64 { return func() int64 { return ns } }

const aDay = int64(24 * time.Hour)

// farTerm leaves the same number of terms above it as there are in four seconds.
const farTerm = control.MaxTerm - 1<<32 - 1

// TestWallClockSetBack: a member of the life before takes part in the next one, whatever
// the wall clock says, with a state directory and without.
func TestWallClockSetBack(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept=%t", kept), func(t *testing.T) {
			dir := ""
			if kept {
				dir = t.TempDir()
			}
			server := bustest.NewServer(t)
			first := startLed(t, server, Options{State: dir, wall: wallAt(aDay)})
			m := newFenced(t, server, "a", 0)
			m.say()
			m.obeys(first.term.Load())
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second := startLed(t, server, Options{State: dir, wall: wallAt(aDay - int64(time.Minute))})
			m.obeys(second.term.Load())
			if a, b := first.term.Load(), second.term.Load(); b != a+1 {
				t.Errorf("term %d after %d", b, a)
			}
		})
	}
}

// TestTermIsStored: each life has the next term, also where nobody remembers the one
// before. One whose directory is lost learns from the members, and from the hellos that a
// multiplexer brings.
func TestTermIsStored(t *testing.T) {
	dir, server := filepath.Join(t.TempDir(), "made"), bustest.NewServer(t)
	path := filepath.Join(dir, "synchronizer.default.g.gsync.json")
	var last uint64
	for i := range 3 {
		s := startLed(t, server, Options{State: dir, wall: wallAt(aDay - int64(i))})
		if term := s.term.Load(); term <= last || last > 0 && term != last+1 {
			t.Errorf("term %d after %d", term, last)
		}
		last = s.term.Load()
		text, err := os.ReadFile(path)
		if want := fmt.Sprintf(`{"tenant":"default","group":"g","synchronizer":"gsync","term":%d}`+"\n", last); err != nil || string(text) != want {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	m := newFenced(t, server, "a", last+40)
	newFenced(t, server, "b", last+7)
	other := newFenced(t, server, "c", last+1000)
	other.hello.Leader = "another"
	brought := newFenced(t, server, "d", last+50)
	brought.hello.Multiplexer = "p.n"
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := brought.bus.Subscribe(ledSubjects.Announce(), bus.Limits{}, func(bus.Message) {
		hello, err := wire.AppendHello(nil, &brought.hello)
		if err != nil {
			t.Error(err)
		}
		frame, _, err := wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{{Member: "d", Frame: hello}}})
		if err == nil {
			err = brought.bus.Publish(ledSubjects.State("p.n"), frame)
		}
		if err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := brought.bus.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := startLed(t, server, Options{State: dir, wall: wallAt(0)})
	if got := s.term.Load(); got != last+51 {
		t.Errorf("term %d, and a member knows %d", got, last+50)
	}
	m.obeys(last + 51)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("in the directory are %v, %v", files, err)
	}
}

// TestDamagedState: an unreadable file is reported before anything is begun.
func TestDamagedState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "synchronizer.default.g.gsync.json")
	const advice = ": put back a copy of it, or remove it while members run, which tell the term that they know"
	for text, why := range map[string]string{
		"":                                      "unexpected end of JSON input",
		`{"tenant":"default","group":"g","sync`: "unexpected end of JSON input",
		strings.Repeat("x", maxStored+1):        "the file has more than 40960 bytes, and no synchronizer writes so many",
		`{"tenant":"default","group":"G","synchronizer":"gsync","term":3}`:                   `the file belongs to synchronizer "gsync" of group "G" and tenant "default"`,
		`{"tenant":"default","group":"g","synchronizer":"gsync","term":0}`:                   "term 0 is none that it could have written",
		`{"tenant":"default","group":"g","synchronizer":"gsync","term":4611686018427387904}`: "term 4611686018427387904 is none that it could have written",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tryLed(t.Context(), nil, Options{State: dir})
		if want := `synchronizer "gsync": state: ` + path + " is damaged: " + why + advice; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("the file was altered: %q, %v", left, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.DevNull, path); err != nil { // As endless ones are no file.
		t.Fatal(err)
	}
	_, err := tryLed(t.Context(), nil, Options{State: dir})
	if want := `synchronizer "gsync": state: ` + path + " is damaged: the path is no regular file" + advice; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = tryLed(t.Context(), nil, Options{State: path})
	if want := `synchronizer "gsync": state: mkdir ` + path + `: not a directory: give another directory, or none`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestStateIsShared: processes that start at once each get a term of their own, and leave
// the file whole.
func TestStateIsShared(t *testing.T) {
	dir := t.TempDir()
	var all sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			st, err := openStore(dir, ledSubjects, "gsync")
			for i := 0; i < 25 && err == nil; i++ {
				var term uint64
				if term, err = st.advanceTerm(0); err == nil {
					if _, twice := all.LoadOrStore(term, true); twice {
						t.Errorf("two have term %d", term)
					}
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st, err := openStore(dir, ledSubjects, "gsync")
	if err != nil || st.term() != 200 {
		t.Errorf("term %d after 200 starts, %v", st.term(), err)
	}
}

// TestTwoStartsAtOnce: exactly one remains. The other learns so, or that another one leads.
func TestTwoStartsAtOnce(t *testing.T) {
	superseded := 0
	for i := range 20 {
		server := bustest.NewServer(t)
		var pair [2]*Synchronizer
		var errs [2]error
		buses := [2]*bus.Bus{server.Connect(bus.Options{}), server.Connect(bus.Options{})}
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for k := range pair {
			wg.Go(func() {
				<-begin
				pair[k], errs[k] = tryLed(t.Context(), buses[k], Options{wall: wallAt(aDay)}) // In one term: the larger nonce leads.
			})
		}
		close(begin)
		wg.Wait()
		for k, s := range pair {
			if s == nil && !errors.Is(errs[k], ErrNameTaken) {
				t.Fatalf("round %d: %v", i, errs[k])
			}
		}
		switch {
		case pair[0] == nil && pair[1] == nil:
			t.Errorf("round %d: none remains", i)
		case pair[0] != nil && pair[1] != nil:
			superseded++
			winner, loser := pair[0], pair[1]
			if (&beat{Beat: wire.Beat{Term: loser.term.Load()}, Nonce: loser.nonce}).outranks(winner.term.Load(), winner.nonce) {
				winner, loser = loser, winner
			}
			<-loser.Done()
			if err := loser.Err(); !errors.Is(err, ErrSuperseded) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on", os.Getpid())) {
				t.Errorf("round %d: %v", i, err)
			}
			if _, err := winner.Status(t.Context()); err != nil {
				t.Errorf("round %d: the other one: %v", i, err)
			}
		}
		for _, s := range pair {
			if s != nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Logf("%d of 20 times both led for a moment", superseded)
}

// lines keeps the logged lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestTermIsRaisedInPlace: a live synchronizer hears of a later term from a member, and
// continues above it: members, epoch and the predicate stay as they were. A term that nobody
// can have come to is ignored, at the start and later.
func TestTermIsRaisedInPlace(t *testing.T) {
	t.Parallel()
	server, dir, log := bustest.NewServer(t), t.TempDir(), &lines{}
	liar := newFenced(t, server, "x", 1<<63)
	var epochs, fired atomic.Int64
	var journal bytes.Buffer
	s := startLed(t, server, Options{State: dir, wall: wallAt(aDay), Logger: log.logger(), Journal: &journal, Observe: func(e monitor.Event) {
		switch e := e.(type) {
		case monitor.Epoch:
			epochs.Add(1)
		case monitor.Verdict:
			if e.Fired {
				fired.Add(1)
			}
		}
	}})
	first := s.term.Load()
	if first != uint64(aDay)+1 {
		t.Errorf("term %d", first)
	}
	if err := liar.bus.Close(); err != nil { // It says hello again and again.
		t.Fatal(err)
	}
	const ignored = "a term that no synchronizer can have come to is ignored"
	if !log.has(ignored) {
		t.Error("the forged term is not logged")
	}
	m := newFenced(t, server, "a", 0)
	m.say()
	m.obeys(first)
	c := &crowd{tb: t, s: s, members: m.bus, subjects: ledSubjects, codec: wire.NewBatchCodec(s.level.State)}
	report := func(seq uint64, n int64) {
		t.Helper()
		now := s.opt.now().Add(time.Duration(seq) * 10 * time.Millisecond) //nolint:gosec // Small.
		frame, _, err := c.codec.Append(nil, &wire.Batch{
			Member: "a", Incarnation: 1,
			Reports:  []wire.Report{{Seq: seq, At: clocksync.Stamp{Domain: "d", Mono: now, Within: clocksync.Unbounded}, Row: []scgs.Value{scgs.IntValue(n)}}},
			Evidence: wire.Evidence{Seq: seq, At: clocksync.Stamp{Domain: "d", Mono: now.Add(time.Millisecond), Within: clocksync.Unbounded}},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.send(ledSubjects.State("a"), frame)
	}
	report(1, 5)
	testwait.Until(t, "firing", func() bool { return fired.Load() == 1 })

	m.mu.Lock()
	m.hello.Term = first + 100 // By a life that left nothing but this.
	m.mu.Unlock()
	m.say()
	m.obeys(first + 101)
	report(2, 6) // It is still true: no edge.
	status := func() monitor.Status {
		t.Helper()
		status, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	testwait.Until(t, "second report", func() bool { return s.Stats().Reports == 2 })
	if st := status(); st.Term != first+101 || st.Epoch != 1 || epochs.Load() != 1 || fired.Load() != 1 {
		t.Errorf("term %d (from %d), epoch %d, %d epochs, %d firings", st.Term, first, st.Epoch, epochs.Load(), fired.Load())
	}
	if text, err := os.ReadFile(filepath.Join(dir, "synchronizer.default.g.gsync.json")); err != nil || !strings.Contains(string(text), strconv.FormatUint(first+101, 10)) {
		t.Errorf("%s, %v", text, err)
	}
	if !log.has("members obey a later term than the synchronizer's; it continues above that term") {
		t.Error("the raise is not logged")
	}
	report(3, 0)
	report(4, 7)
	testwait.Until(t, "second firing", func() bool { return fired.Load() == 2 })
	m.mu.Lock()
	m.hello.Term = farTerm
	m.mu.Unlock()
	m.say()
	testwait.Until(t, "second hello", func() bool { return log.has("from=a term=4611686014132420607") })
	if st := status(); st.Term != first+101 {
		t.Errorf("term %d after a forged hello", st.Term)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Replay(bytes.NewReader(journal.Bytes()), ReplayOptions{}); err != nil || r.FirstDifference != 0 || !r.Complete || r.Decisions != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func (l *lines) string() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestLaterTermOfAnotherLeader: if another process leads in the later term of a member, its
// beat comes before the term is raised: this one ends.
func TestLaterTermOfAnotherLeader(t *testing.T) {
	server := bustest.NewServer(t)
	s := startLed(t, server, Options{wall: wallAt(aDay)})
	m := newFenced(t, server, "a", uint64(aDay)+5)
	m.say()
	testwait.Until(t, "hello", func() bool { return s.Stats().Frames > 0 })
	sendBeat(t, m.bus, beat{Beat: wire.Beat{Term: uint64(aDay) + 5}, Nonce: 1, Host: "elsewhere", Process: 7})
	<-s.Done()
	want := fmt.Sprintf(`synchronizer "gsync": another process leads as this synchronizer: process 7 on "elsewhere", in term %d, and this one was in term %d: run one of the two only, or the second with --standby (Options.Standby); `+
		`if no such process runs, another client has published on pegasus.v1.default.g.bt.gsync: permit only synchronizers to do so`, aDay+5, aDay+1)
	if err := s.Err(); !errors.Is(err, ErrSuperseded) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got := s.term.Load(); got != uint64(aDay)+1 {
		t.Errorf("it has raised its term to %d", got)
	}
	if r := (&crowd{tb: t, s: s}).ready("loop"); r.Ready || !strings.Contains(r.Detail, "another process leads") {
		t.Errorf("%+v", r)
	}
}

// TestForgedBeat: a copy of the own beat with another term and nonce names the own process. The error says
// what else it may be.
func TestForgedBeat(t *testing.T) {
	server := bustest.NewServer(t)
	s := startLed(t, server, Options{wall: wallAt(aDay)})
	b := server.Connect(bus.Options{})
	t.Cleanup(func() { _ = b.Close() })
	forged := *s.ownBeat(false)
	forged.Term, forged.Nonce = forged.Term+1, forged.Nonce+1
	sendBeat(t, b, forged)
	<-s.Done()
	want := fmt.Sprintf(`synchronizer "gsync": another process leads as this synchronizer: %v, which is this process, in term %d, and this one was in term %d: `+
		`run one of the two only, or the second with --standby (Options.Standby); if the process has started it only once, `+
		`another client has published on pegasus.v1.default.g.bt.gsync: permit only synchronizers to do so`, &forged, forged.Term, forged.Term-1)
	if err := s.Err(); !errors.Is(err, ErrSuperseded) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestLostMessagesAreLoggedAFewTimes: a flood makes some lines, which say what to do, and no more than ten a second.
func TestLostMessagesAreLoggedAFewTimes(t *testing.T) {
	log, began := &lines{}, time.Now()
	s := startLed(t, bustest.NewServer(t), Options{Logger: log.logger()})
	for n := range uint64(1000) {
		s.complained(&bus.SlowError{Subject: "a", Dropped: n})
	}
	s.complained(bus.ErrPermission) // Of another class.
	want := `msg=NATS class=slow error="bus: subscription \"a\" loses messages, 0 so far: more come than this process takes; ` +
		`find out who sends so many (nats server report connections --sort in-msgs), or give the process more CPU"`
	if n := strings.Count(log.string(), "class=slow"); !log.has(want) || !log.has("class=permission") || n > 10*(2+int(time.Since(began)/time.Second)) {
		t.Errorf("%d lines:\n%s", n, log.string())
	}
}

// TestDeniedSubjectsAreInTheStatus: each one once, and 32 at most.
func TestDeniedSubjectsAreInTheStatus(t *testing.T) {
	s := startLed(t, bustest.NewServer(t), Options{})
	for range 2 {
		for i := range 40 {
			s.complained(fmt.Errorf("%w: nats: Permissions Violation for Publish to \"p.%02d\"", bus.ErrPermission, i))
		}
	}
	s.complained(errors.New("another fault"))
	status, err := s.Status(t.Context())
	if err != nil || len(status.Denied) != maxDenied {
		t.Fatalf("%d subjects, %v", len(status.Denied), err)
	}
	if d := status.Denied[0]; d.Subject != "p.00" || !d.Publish || d.Ago < 0 || d.Ago > 60 {
		t.Errorf("%+v", d)
	}
}

func sendBeat(t *testing.T, b *bus.Bus, is beat) {
	t.Helper()
	text, err := json.Marshal(is)
	if err == nil {
		err = b.Publish(ledSubjects.Beat("gsync"), text)
	}
	if err == nil {
		err = b.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestBeats: a process that hears a beat below its own continues and answers it. It ignores its own
// beat, an impossible beat, and bytes that are no beat. It reports the latter.
func TestBeats(t *testing.T) {
	server, log := bustest.NewServer(t), &lines{}
	b := server.Connect(bus.Options{})
	t.Cleanup(func() { _ = b.Close() })
	heard := make(chan beat, 1000)
	if err := b.Subscribe(ledSubjects.Beat("gsync"), bus.Limits{}, func(m bus.Message) {
		var is beat
		if err := json.Unmarshal(m.Data, &is); err != nil {
			t.Error(err)
		}
		is.Steady = 0 // It grows.
		heard <- is
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := startLed(t, server, Options{wall: wallAt(aDay), Logger: log.logger()})
	own := <-heard
	if own.Term != s.term.Load() || own.Nonce != s.nonce || own.Process != os.Getpid() || own.Ends {
		t.Errorf("%+v", own)
	}
	sendBeat(t, b, own)
	sendBeat(t, b, beat{Beat: wire.Beat{Term: own.Term - 1}, Nonce: own.Nonce + 1})
	sendBeat(t, b, beat{Beat: wire.Beat{Term: farTerm}, Nonce: 3})
	for _, text := range []string{"", "{", `{"term":-1}`, strings.Repeat(" ", wire.MaxBeatBytes) + "{}"} {
		if err := b.Publish(ledSubjects.Beat("gsync"), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "four that cannot be read", func() bool { return s.Stats().Malformed == 4 })
	if again := <-heard; again != own {
		t.Errorf("%+v", again)
	}
	if !log.has("class=term from=\"a beat\" term=4611686014132420607") {
		t.Error(log.string())
	}
	if err := s.Close(); err != nil || s.Err() != nil {
		t.Error(err, s.Err())
	}
	last := own
	for last.Ends = true; ; {
		if is := <-heard; is == last {
			break
		} else if is != own {
			t.Fatalf("%+v", is)
		}
	}
}

// throttle is a connection whose bytes from and to the server wait while it is held.
type throttle struct {
	net.Conn
	gate, out *sync.RWMutex
}

func (c throttle) Write(p []byte) (int, error) {
	c.out.RLock()
	defer c.out.RUnlock()
	return c.Conn.Write(p)
}

func (c throttle) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.RLock()
	defer c.gate.RUnlock()
	return n, err
}

type throttled struct {
	server    *bustest.Server
	gate, out sync.RWMutex
}

func (d *throttled) Dial(string, string) (net.Conn, error) {
	conn, err := d.server.InProcessConn()
	return throttle{conn, &d.gate, &d.out}, err
}

// TestPausedLeader: a process that wakes after another one has taken over sends nothing,
// though what makes its predicate fire waits in its inbox.
func TestPausedLeader(t *testing.T) {
	server, log := bustest.NewServer(t), &lines{}
	way := &throttled{server: server}
	own, err := bus.Dial(t.Context(), "nats://in-process", bus.Options{Extra: []nats.Option{nats.SetCustomDialer(way)}})
	if err != nil {
		t.Fatal(err)
	}
	var offset atomic.Int64
	paused, resume := make(chan struct{}), make(chan struct{})
	s, err := tryLed(t.Context(), own, Options{
		Logger: log.logger(), wall: wallAt(aDay),
		now: func() clocksync.Instant { return clocksync.Instant(time.Hour).Add(time.Duration(offset.Add(1))) },
		Observe: func(e monitor.Event) {
			if _, ok := e.(monitor.Epoch); ok { // The whole process stands still.
				if err := own.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				way.gate.Lock()
				close(paused)
				<-resume
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := &crowd{tb: t, s: s, members: server.Connect(bus.Options{}), subjects: ledSubjects, codec: wire.NewBatchCodec(s.level.State)}
	t.Cleanup(func() { _ = c.members.Close() })
	var told atomic.Int64
	for _, subject := range []string{ledSubjects.Signal(">"), ledSubjects.Probe(">"), ledSubjects.Announce(), ledSubjects.Beat("gsync")} {
		if err := c.members.Subscribe(subject, bus.Limits{}, func(m bus.Message) {
			select {
			case <-paused:
				if !bytes.Contains(m.Data, []byte("elsewhere")) { // The beat of the other one.
					told.Add(1)
				}
			default:
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	c.send(ledSubjects.State("a"), c.hello("a"))
	c.send(ledSubjects.State("a"), c.batch("a", 1, 1000, 0))
	<-paused
	if err := c.members.CatchUp(t.Context()); err != nil { // The messages sent before.
		t.Fatal(err)
	}
	before := told.Load()
	s.in.putMessage(item{member: "a", frame: c.batch("a", 2, 2_000_000, 5)}) // It had come already.
	other := server.Connect(bus.Options{})
	sendBeat(t, other, beat{Beat: wire.Beat{Term: s.term.Load() + 1}, Nonce: 1, Host: "elsewhere", Process: 7})
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	offset.Add(int64(2 * time.Second))
	close(resume)
	testwait.Until(t, "question to the server", func() bool { return log.has("the process stood still") })
	way.gate.Unlock()
	<-s.Done()
	if err := s.Err(); !errors.Is(err, ErrSuperseded) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.members.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := told.Load() - before; n != 0 || s.Stats().Decisions != 0 {
		t.Errorf("%d messages were sent after the pause, %d decisions", n, s.Stats().Decisions)
	}
}

// TestMachineSlept: the wall clock alone has moved. It asks the server, and continues.
func TestMachineSlept(t *testing.T) {
	server, log := bustest.NewServer(t), &lines{}
	var wall atomic.Int64
	wall.Store(aDay)
	s := startLed(t, server, Options{Logger: log.logger(), wall: wall.Load})
	if _, err := s.Status(t.Context()); err != nil { // The loop runs.
		t.Fatal(err)
	}
	wall.Add(int64(time.Minute))
	testwait.Until(t, "question to the server", func() bool { return log.has("the process stood still") && log.has("seconds=60") })
	if _, err := s.Status(t.Context()); err != nil {
		t.Error(err)
	}
	wall.Add(-int64(time.Hour))
	m := newFenced(t, server, "a", 0)
	m.say()
	m.obeys(s.term.Load())
	if strings.Count(log.string(), "the process stood still") != 1 {
		t.Error(log.string())
	}
}

// TestLastTerm: no life begins in a term that members refuse.
func TestLastTerm(t *testing.T) {
	st, err := openStore(t.TempDir(), ledSubjects, "gsync")
	if err != nil {
		t.Fatal(err)
	}
	if term, err := st.advanceTerm(control.MaxTerm - 2); err != nil || term != control.MaxTerm-1 {
		t.Errorf("term %d, %v", term, err)
	}
	for _, one := range []*store{st, nil} {
		const want = "term 4611686018427387903 is the last term that members accept: give the synchronizer another name"
		if _, err := one.advanceTerm(control.MaxTerm - 1); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}

// TestMembersReadBeats: members look at a part of a beat.
func TestMembersReadBeats(t *testing.T) {
	s := &Synchronizer{leading: newLeading()}
	s.term.Store(7)
	for _, leads := range []bool{false, true} {
		s.leads.Store(leads)
		for _, ends := range []bool{false, true} {
			var b wire.Beat
			if err := wire.DecodeBeat(s.ownBeat(ends).text(), &b); err != nil || b.Term != 7 || b.Leads() != (leads && !ends) {
				t.Errorf("leads %t, ends %t: %+v, %v", leads, ends, b, err)
			}
		}
	}
}

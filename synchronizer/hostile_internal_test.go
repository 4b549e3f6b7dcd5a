package synchronizer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
)

// says has a member say hello that obeys a term.
func says(t *testing.T, b *bus.Bus, member string, term uint64) {
	t.Helper()
	frame, err := wire.AppendHello(nil, &wire.Hello{Member: member, Incarnation: 1, Host: "h", Domain: "d", Leader: "gsync", Term: term})
	if err == nil {
		err = b.Publish(ledSubjects.State(member), frame)
	}
	if err == nil {
		err = b.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func dialed(t *testing.T, url string) *bus.Bus {
	t.Helper()
	b, err := bus.Dial(t.Context(), url, bus.Options{Extra: testnats.Options(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// TestBelieved: a term below a wall clock that is ahead, or just above a known term.
func TestBelieved(t *testing.T) {
	s := &Synchronizer{leading: newLeading()}
	log, wall := &lines{}, thisYear
	s.opt.Logger, s.opt.wall = log.logger(), func() int64 { return wall }
	check := func(what string, last uint64, apart int64) {
		t.Helper()
		if !s.isTermPossible(last, "a", apart) || s.isTermPossible(last+1, "a", apart) {
			t.Errorf("%s: the last one is not %d", what, last)
		}
	}
	check("by the clock", uint64(thisYear+termsAhead), 0)
	check("of a leader", uint64(thisYear+termsAhead+clocksApart), clocksApart)
	wall = 0
	check("the clock is not set", uint64(thisYear+termsAhead), 0)
	wall = 2 * thisYear
	check("later", uint64(2*thisYear+termsAhead), 0)
	s.term.Store(3e18)
	if wall = 0; !s.isTermPossible(3e18+termsAbove, "a", 0) {
		t.Error("one above the own")
	}
	s.noteTerm(4e18)
	s.noteTerm(5)
	check("one that is stored", 4e18+termsAbove, 0)
	s.noteTerm(farTerm + 1<<32 - 2)
	check("the last of all", farTerm+1<<32-1, 0)
}

// TestMemberLiesAboutTheTerm: the leader does not end for it, the standby does not begin, members
// still obey, and the standby takes over later.
func TestMemberLiesAboutTheTerm(t *testing.T) {
	w := newWarm(t)
	first, events, log := w.run(warmConfig, Options{})
	a, b := w.join("a"), w.join("b")
	w.set(a, warmState{true, 1})
	w.set(b, warmState{true, 1})
	second, _, next := w.run(warmConfig, Options{Standby: true, wall: wallAt(thisYear)}) // It is behind.
	w.isWarm(first, 1)
	liar, before := dialed(t, w.url), first.term.Load()
	says(t, liar, "c", farTerm)
	testwait.Until(t, "what is not believed", func() bool { return log.has("a term that no synchronizer can have come to is ignored") })
	most := uint64(first.opt.wall() + termsAhead - 1) //nolint:gosec // After 1970.
	says(t, liar, "c", most)
	testwait.Until(t, "the term to be raised", func() bool { return first.term.Load() == most+1 })
	w.set(a, warmState{true, 9})
	testwait.Until(t, "members to obey", func() bool { return events.fired("edge") == 1 })
	w.isWarm(first, 1)
	if err := first.Err(); err != nil || second.leads.Load() || before >= most {
		t.Fatalf("%v, the standby leads: %t", err, second.leads.Load())
	}
	if err := first.bus.Close(); err != nil { // As if it were killed.
		t.Fatal(err)
	}
	leads(t, "the one that stood by", second)
	if got := second.term.Load(); got != most+2 || !next.has("this process leads now and continues where the leader stopped") {
		t.Errorf("term %d after %d: %s", got, most+1, next.string())
	}
}

// TestNobodyIsTakenInForATerm: a hello that is refused says nothing of terms.
func TestNobodyIsTakenInForATerm(t *testing.T) {
	w := newWarm(t)
	s, _, _ := w.run(strings.Replace(warmConfig, "count: 2", "count: 1, max: 1", 1), Options{})
	w.set(w.join("a"), warmState{})
	testwait.Until(t, "the member", func() bool { return s.Stats().Reports > 0 })
	says(t, dialed(t, w.url), "b", s.term.Load()+10)
	testwait.Until(t, "the refusal", func() bool { return s.Stats().Rejected > 0 })
	fence := make(chan uint64)
	s.calls <- func(l *loop) { fence <- l.fence }
	if got := <-fence; got != 0 {
		t.Errorf("fenced by term %d", got)
	}
}

// TestHasLedAndEnded: a process that says that it ends, in a later term, leads no more: this one
// continues with a term above it.
func TestHasLedAndEnded(t *testing.T) {
	w := newWarm(t)
	s, _, _ := w.run(warmConfig, Options{})
	for nonce, more := range map[uint64]uint64{1: 5, ^uint64(0): 0} {
		is := s.term.Load()
		sendBeat(t, dialed(t, w.url), beat{Beat: wire.Beat{Term: is + more, Ends: true}, Nonce: nonce})
		testwait.Until(t, "a later term", func() bool { return s.term.Load() == is+more+1 })
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// TestForgedStream: what no leader sends ends nobody, and is asked for again.
func TestForgedStream(t *testing.T) {
	w := newWarm(t)
	first, _, _ := w.run(warmConfig, Options{})
	w.set(w.join("a"), warmState{true, 1})
	w.set(w.join("b"), warmState{true, 1})
	second, _, log := w.run(warmConfig, Options{Standby: true})
	f := second.follow
	forge := func(line string, spoil func()) {
		t.Helper()
		testwait.Until(t, "a warm standby", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.warm && f.broken == ""
		})
		f.mu.Lock()
		spoil()
		f.pause = attachFirst
		f.mu.Unlock()
		head := streamHead{kind: streamLast, nonce: 1, index: 1}
		f.hearStream(bus.Message{Subject: f.subjects.Stream(f.name, nonceToken(f.nonce)), Data: append(head.append(nil), line+"\n"...)})
	}
	retold := func(change func(*synccore.Input)) string {
		var text []byte
		done := make(chan error)
		first.calls <- func(l *loop) {
			var err error
			l.core.Retell(func(in *synccore.Input) {
				if change(in); err == nil {
					text, err = journal.AppendInput(text, l.level.State, l.now, in)
					text = journal.AppendBroken(text)
				}
			})
			done <- err
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	for _, c := range []struct {
		line, why string
		spoil     func()
	}{
		{`{"end":0}`, "the line is the end of a file, and these lines come one by one", func() {}},
		{`{"now":1,"tick":true}`, `the core fails on "{\"now\":1,\"tick\":true}\n" with "runtime error: invalid memory address`, func() { f.core = nil }},
		{retold(func(in *synccore.Input) {
			if in.Restart != nil {
				in.Restart.Term = farTerm
			}
		}), fmt.Sprintf("the message has term %d, which no synchronizer can have reached", uint64(farTerm)), func() {}},
		{retold(func(in *synccore.Input) {
			if k := in.Kept; k != nil {
				k.Members = append(k.Members, k.Members[0])
			}
		}), "what another machine has in mind cannot be taken over: member \"a\" is behind member \"b\"", func() {}},
	} {
		if forge(c.line, c.spoil); !strings.Contains(log.string(), strings.Trim(strconv.Quote(c.why), `"`)) {
			t.Errorf("want %s\ngot %s", c.why, log.string())
		}
	}
	w.isWarm(first, 1)
}

// TestForgedJournal: a journal that another program has written is refused as a whole, with the
// line, before the file is touched.
func TestForgedJournal(t *testing.T) {
	w := newWarm(t)
	path := filepath.Join(t.TempDir(), "journal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ := w.run(warmConfig, Options{Journal: file})
	w.set(w.join("a"), warmState{true, 1})
	w.set(w.join("b"), warmState{true, 1})
	testwait.Until(t, "reports", func() bool { return s.Stats().Reports >= 2 })
	kept := make(chan *synccore.Kept)
	s.calls <- func(l *loop) { kept <- l.core.Kept() }
	k := <-kept
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	k.Members = append(k.Members, k.Members[0])
	double, err := journal.AppendInput(nil, s.level.State, k.Now.Add(1), &synccore.Input{Kind: synccore.InKept, Kept: k})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = text[:bytes.LastIndex(text, []byte(`{"end"`))]
	line := bytes.Count(text, []byte("\n")) + 1
	cfg, err := ParseConfig("test.yaml", []byte(warmConfig))
	if err != nil {
		t.Fatal(err)
	}
	for more, why := range map[string]string{
		`{"now":9223372036854775806,"tick":true}`:                   fmt.Sprintf("line %d: now is 9223372036854775806, and the clock of this machine is at ", line),
		string(double) + "}":                                        fmt.Sprintf(`line %d: what another machine has in mind cannot be taken over: member "a" is behind member "b"`, line),
		fmt.Sprintf(`{"now":%d,"kept":{}}`, k.Now+1):                fmt.Sprintf(`line %d: what another machine has in mind cannot be taken over: it is of another configuration`, line),
		fmt.Sprintf(`{"now":%d,"term":%d}`, k.Now+1, uint64(1)<<62): fmt.Sprintf("line %d: no term that members accept can follow term 4611686018427387904", line),
	} {
		forged := slices.Concat(text, []byte(more+"\n"))
		if err := os.WriteFile(path, forged, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(context.Background(), w.url, cfg, Options{Resume: f})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got  %v\nwant %s", err, why)
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, forged) {
			t.Errorf("the file was altered, %v", err)
		}
		_ = f.Close()
	}
}

// TestTooManyStandBy: standbys that do not become warm leave their place to a standby that
// does.
func TestTooManyStandBy(t *testing.T) {
	h, now := &beats{}, clocksync.Instant(time.Hour)
	says := func(nonce uint64, attach uint64, warm bool) *beat {
		return h.noteBeat(&beat{Beat: wire.Beat{Standby: true}, Nonce: nonce, Follows: &follows{Attach: attach, Warm: warm}}, now)
	}
	idle := func() (out []uint64) {
		for nonce := range uint64(maxStandbys) {
			if b := says(1+nonce, nonce%2, nonce%2 == 0); b != nil {
				out = append(out, b.Nonce)
			}
		}
		now = now.Add(beatEvery)
		return out
	}
	if out := idle(); len(out) > 0 {
		t.Errorf("%v were left out", out)
	}
	for range 3 {
		if b := says(100, 1, false); b == nil || b.Nonce != 100 {
			t.Errorf("%v was left out, and not the last", b)
		}
		idle()
	}
	for now.Sub(clocksync.Instant(time.Hour)) < standbyPatience {
		idle()
	}
	if b := says(100, 1, false); b == nil || b.Nonce != 1 {
		t.Errorf("%v was left out, and not the first", b)
	}
	for range 7 { // The others rotate.
		idle()
		if b := says(100, 1, false); b != nil {
			t.Fatalf("%v was left out for it", b)
		}
	}
	for range 100 {
		says(100, 1, true)
		if out := idle(); slices.Contains(out, 100) {
			t.Fatal("a warm one was left out")
		}
	}
	if !h.warm(now) {
		t.Error("none is warm")
	}
}

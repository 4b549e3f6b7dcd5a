//go:build broken && linux

package broken

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testwait"
)

// process is a process that runs, or ran.
type process struct {
	role

	cmd    *exec.Cmd
	space  string // its network namespace; empty: the namespace of the test
	began  int64
	killed int64 // when it was sent what ends it at once; 0: it was not
	ended  int64 // when it was certainly over; 0: it runs
	seen   *tail
	done   chan struct{}
	err    error
	mayEnd bool // unasked
}

// world is a group of processes and what they have written so far.
type world struct {
	t       *testing.T
	dir     string
	url     string            // of the server
	still   bool              // members that have arrived keep still
	urls    map[string]string // of a proxy in front of it, by process
	port    int
	lives   map[string]int
	running map[string]*process
	written []*process // that are read from
	groups  [][]string // the members of each process

	mu sync.Mutex // guards the fields below, and the times of the processes
	findings
	lastShown *record
	lastBy    *process // whose it is
	lacked    []log    // the states that were not right, in turn
	lastFired *record
}

// perProcess is how many members a process has.
const perProcess = 2

// newWorld has so many processes of members, which do not run yet.
func newWorld(t *testing.T, processes int) *world {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, dir: t.TempDir(), port: port, url: fmt.Sprintf("nats://127.0.0.1:%d", port),
		urls: map[string]string{}, lives: map[string]int{}, running: map[string]*process{}, findings: newFindings(),
	}
	for p := range processes {
		var names []string
		for i := range perProcess {
			names = append(names, "m"+string(rune('a'+p*perProcess+i)))
		}
		w.groups = append(w.groups, names)
	}
	t.Cleanup(w.clear)
	return w
}

// clear ends what still runs.
func (w *world) clear() {
	for _, p := range w.running {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	if w.t.Failed() && os.Getenv("PEGASUS_BROKEN_KEEP") != "" {
		kept, err := os.MkdirTemp("", "broken")
		if err == nil {
			err = os.CopyFS(kept, os.DirFS(w.dir))
		}
		w.t.Logf("the records are kept in %s: %v", kept, err)
	}
}

// start begins a process in its next life.
func (w *world) start(r role) *process { return w.startIn("", r) }

// startIn begins it in a network namespace.
func (w *world) startIn(space string, r role) *process {
	w.t.Helper()
	w.lives[r.Name]++
	r.Life, r.Dir = w.lives[r.Name], w.dir
	if r.URL == "" {
		r.URL = cmp.Or(w.urls[r.Name], w.url)
	}
	text, err := json.Marshal(&r)
	if err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	words := []string{self}
	if space != "" {
		words = []string{"ip", "netns", "exec", space, self}
	}
	p := &process{role: r, space: space, cmd: exec.Command(words[0], words[1:]...), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // Nothing outlives the test.
	p.cmd.Env = append(os.Environ(), roleKey+"="+string(text))
	out, err := os.Create(r.path("err"))
	if err != nil {
		w.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if p.seen, err = follow(r.path("jsonl")); err != nil {
		w.t.Fatal(err)
	}
	p.began = clock()
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
		_ = out.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		p.ended = clock()
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, p)
	w.running[r.Name] = p
	return p
}

// server starts the NATS server, and returns when it takes connections.
func (w *world) server() int64 {
	w.t.Helper()
	w.start(role{Kind: aServer, Name: "nats", Port: w.port})
	var at int64
	testwait.Until(w.t, "the server", func() bool {
		at = clock()
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", w.port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return at
}

// members starts the members of process i.
func (w *world) members(i int) {
	w.t.Helper()
	w.start(role{Kind: aMember, Name: w.groupName(i), Members: w.groups[i], Still: w.still})
}

func (w *world) groupName(i int) string { return fmt.Sprintf("p%d", i) }

// decider starts a synchronizer.
func (w *world) decider(name string, standby bool) {
	w.t.Helper()
	w.start(role{Kind: aSynchronizer, Name: name, Standby: standby, Awaited: len(w.groups) * perProcess})
}

// begin starts everything, and waits until it decides.
func (w *world) begin(standby bool) {
	w.t.Helper()
	w.server()
	w.decider("s0", false)
	for i := range w.groups {
		w.members(i)
	}
	since := clock()
	w.until("all to be shown", func() bool { return w.right(since) })
	if standby {
		w.decider("s1", true)
		w.until("one to stand by", func() bool { return w.lastShown.Shown.Standbys > 0 })
	}
}

// kill ends a process at once, and waits for its end.
func (w *world) kill(p *process) {
	w.t.Helper()
	w.mu.Lock()
	p.killed = clock()
	w.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Fatal(err)
	}
	<-p.done
	w.over(p)
}

// over forgets a process that has ended.
func (w *world) over(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[p.Name] == p {
		delete(w.running, p.Name)
	}
}

// send signals a process.
func (w *world) send(p *process, s syscall.Signal) {
	w.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Fatal(err)
	}
}

// look takes in the records written since.
func (w *world) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = slices.DeleteFunc(w.written, func(p *process) bool {
		last := p.ended != 0 // Nothing comes after this.
		if err := p.seen.more(func(r *record) { w.take(p, r) }); err != nil {
			w.t.Fatalf("the records of %s %d: %v", p.Name, p.Life, err)
		}
		return last && p.seen.file.Close() == nil
	})
}

func (w *world) take(p *process, r *record) {
	switch r.Kind {
	case kindShown:
		if w.lastShown == nil || r.Shown.Term >= w.lastShown.Shown.Term {
			w.lastShown, w.lastBy = r, p
		}
	case kindFired:
		if w.lastFired == nil || r.Firing.Made.Term >= w.lastFired.Firing.Made.Term {
			w.lastFired = r
		}
	}
	w.findings.take(p, r)
}

// until waits for a condition on the records.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	ok := testwait.Within(patience, func() bool {
		elapse(4 * time.Millisecond) // Reading is work, too.
		w.look()
		for _, p := range w.running {
			if p.mayEnd {
				continue
			}
			select {
			case <-p.done:
				w.t.Fatalf("%s has ended by itself, waiting for %s: %v; %s", p.Name, what, p.err, w.complaints())
			default:
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.lastShown != nil && holds()
	})
	if !ok {
		last, _ := json.Marshal(w.lastShown)
		w.t.Fatalf("waited %v for %s; shown last: %s; %s; not right: %+v", patience, what, last, w.complaints(), w.lacked)
	}
}

// patience is far above every figure, for a machine with other work.
const patience = time.Minute

// complaints are what processes wrote to stderr.
func (w *world) complaints() string {
	var out strings.Builder
	names, _ := filepath.Glob(filepath.Join(w.dir, "*.err"))
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
			fmt.Fprintf(&out, "%s: %.300s\n", filepath.Base(name), text)
		}
	}
	return out.String()
}

// right reports whether all members that run are shown, and no others, each in a state as new as
// its state at an instant. The lock is held.
func (w *world) right(since int64) bool {
	lacks := w.lacks(since)
	if n := len(w.lacked); n == 0 || w.lacked[n-1].text != lacks {
		w.lacked = append(w.lacked, log{at: clock(), text: lacks})
	}
	return lacks == ""
}

// lacks says how the shown state differs from the one that right wants; empty if it does not.
func (w *world) lacks(since int64) string {
	s := w.lastShown
	if s == nil || s.At < since {
		return "nothing is shown"
	}
	there := 0
	for i := range s.Shown.Members {
		m := &s.Shown.Members[i]
		switch life := w.lifeOf(m.Member); {
		case m.Absent == "gone" && life == 0:
			continue
		case m.Absent != "":
			why, _, _ := strings.Cut(m.Why, " in again in ") // Which counts down.
			return m.Member + " is " + m.Absent + ": " + why
		case m.Unknown:
			return m.Member + " is unknown"
		case m.Serial/serialsOfLife != life:
			return m.Member + " is shown in another life"
		case m.Serial < w.serialAt(m.Member, since):
			return m.Member + " is shown in an old state"
		}
		there++
	}
	for _, p := range w.running {
		there -= len(p.Members)
	}
	switch {
	case there != 0:
		return fmt.Sprintf("%d members are not shown", -there)
	case !s.Shown.InForce:
		return "no global state is in force"
	}
	return ""
}

// slow is the time after which the test names the condition that it waits for.
const slow = 3 * time.Second

// putOff reports whether a member was to wait, since it came and went.
func (w *world) putOff() bool {
	return slices.ContainsFunc(w.lacked, func(l log) bool { return strings.Contains(l.text, "came and went") })
}

// shownSince is how long it took since an instant until the truth was shown.
func (w *world) shownSince(since int64) time.Duration {
	w.t.Helper()
	w.lacked = nil
	w.until("the truth to be shown", func() bool { return w.right(since) })
	took := time.Duration(w.lastShown.At - since)
	if took > slow && !w.putOff() {
		for _, l := range w.lacked {
			w.t.Logf("slow, %v after: %s", time.Duration(l.at-since), l.text)
		}
		for _, l := range w.logs[max(0, len(w.logs)-8):] {
			if l.at > since {
				w.t.Logf("slow, %v after: %s %d: %.300s", time.Duration(l.at-since), l.by.Name, l.by.Life, l.text)
			}
		}
	}
	return took
}

// lifeOf is which life of a member's process runs; 0 if none does.
func (w *world) lifeOf(member string) int64 {
	for _, p := range w.running {
		if slices.Contains(p.Members, member) {
			return int64(p.Life)
		}
	}
	return 0
}

// quiesce has the members keep their states, waits until just these are shown and no signal
// is under way, and ends all in order. It returns how long it took until that was shown.
func (w *world) quiesce(since int64) time.Duration {
	w.t.Helper()
	for _, p := range w.running {
		if p.Kind == aMember {
			w.send(p, syscall.SIGUSR1)
		}
	}
	elapse(50 * time.Millisecond) // No set is under way any more.
	w.look()
	began := clock()
	w.until("what is true to be shown", func() bool { return w.right(began) && w.lastShown.Shown.Waiting == 0 })
	took := time.Duration(w.lastShown.At - max(since, began))
	w.endAll()
	return took
}

// endAll ends the processes in order: members, synchronizers, the server. A synchronizer ends once it knows that
// the members have left: a signal that is under way when it ends has no fate until its next life.
func (w *world) endAll() {
	w.t.Helper()
	for _, kind := range []string{aMember, aNode, aSynchronizer, aProgram, aServer} {
		if left := clock(); kind == aSynchronizer && w.lastShown != nil && w.running[w.lastBy.Name] == w.lastBy {
			w.until("the members to have left", func() bool {
				here := func(p share) bool { return p.Absent == "" }
				return w.lastShown.At > left && w.lastShown.Shown.Waiting == 0 && !slices.ContainsFunc(w.lastShown.Shown.Members, here)
			})
		}
		var ending []*process
		for _, p := range w.running {
			if p.Kind == kind {
				w.send(p, syscall.SIGTERM)
				ending = append(ending, p)
			}
		}
		for _, p := range ending {
			select {
			case <-p.done:
			case <-time.After(patience):
				w.t.Fatalf("%s did not end; %s", p.Name, w.complaints())
			}
			w.over(p)
			if p.err != nil {
				w.t.Errorf("%s has ended with %v; %s", p.Name, p.err, w.complaints())
			}
		}
	}
	w.look()
}

package workcore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// The errors of the log of a world.
var (
	errFenced = errors.New("another process has appended")
	errSilent = errors.New("no answer")
	errStale  = errors.New("10071")
	errFlight = errors.New("10164")
)

// message is one of the log of a world; its sequence is its place, from 1.
type message struct {
	subject string
	body    []byte
	gone    bool // purged
}

// publish is a message on its way to the log.
type publish struct {
	at      clocksync.Instant
	subject string
	on      uint64
	body    []byte
	needs   []uint64
}

// routine runs a function that waits in between, as a goroutine of the shell does.
type routine struct {
	w     *logSpace
	n     *keeperNode
	life  Peer
	at    clocksync.Instant
	next  func() (time.Duration, bool)
	stop  func()
	yield func(time.Duration) bool
	floor int      // what it reads is not older than that
	needs []uint64 // numbers that were open at its last barrier
}

// errKilled ends a routine whose process has died.
var errKilled = errors.New("killed")

func (r *routine) wait(d time.Duration) {
	if !r.yield(d) {
		panic(errKilled)
	}
}

// keeperNode is a computer of a world: one life of a member after the other.
type keeperNode struct {
	peer      Peer
	machine   *Member // nil: it has not opened its account yet
	out       Output
	keeper    *Keeper
	writers   map[string]*logWriter
	jobs      []job
	speed     float64
	roster    []Peer
	rosters   [][]Peer // that it is yet to hear of
	heardAt   clocksync.Instant
	told      Told
	signalled uint64
	signal    uint64 // that it is yet to hear of
	signalAt  clocksync.Instant
	gone      bool // it does not come back
	unsure    bool
	ends      bool // a wake of closePhases
	orphans   bool // a wake of adoptOrphans
	looked    clocksync.Instant
	phase     uint64 // that the program is in
	puts      []int  // places in the script of its phase that it is yet to put
	putting   int    // the place that waits for the log; -1: none
	ticket    uint64
	dead      bool
	cut       clocksync.Instant // until when the synchronizer does not hear of it
	heard     clocksync.Instant
	delivered map[uint64]bool
	begunAt   int // how many messages the log had
}

type logWriter struct {
	*Writer
	ended bool // it does not write any more
}

// scripted is a task of a script, which each life of a program puts again.
type scripted struct {
	low, high uint64
	kind      string
	acked     bool // a Put has returned
}

// logSpace is a world of members with logs. Each task is a stretch of numbers. The judge counts the numbers in the
// messages of the log and in what programs get, and reads no account.
type logSpace struct {
	*rand.Rand
	now      clocksync.Instant
	nodes    []*keeperNode
	roster   []Peer
	flights  []flight
	routines []*routine
	messages []message
	late     []publish
	lives    uint64
	number   uint64
	scripts  map[string][]scripted // by "name phase"
	names    int
	loss     float64
	poisons  bool
	losses   int
	batch    int
	decided  Decision
	faults   []string

	// What the judge reads in the log.
	owners    map[string]Peer   // by account
	parts     map[string][]byte // of an entry that is not whole, by account
	puts      map[string]bool   // "account/id"
	steps     map[string]bool   // "account/id on"
	began     map[string]int    // "account/id"
	counts    map[uint64]int    // by number
	taskOf    map[uint64]string // by number: its root, "account/id"
	bad       map[string]bool   // tasks that are poisoned
	deaths    map[string]int    // of holders, by "account/id"
	countedAt map[uint64]int    // by number: the message that has its result
	ends      []int             // messages with a decision that is valid

	// Of mutants.
	bendStep    func(n *keeperNode, out *Output)
	bendAppend  func(subject string, body []byte) (swallowed bool)
	bendBarrier func([]string) []string
	bendTaken   func(*Store)
	bendBody    func(w *Writer, body []byte) []byte
	bendRead    func(body []byte) []byte
	bendEnd     func(*keeperNode)
	bendFenced  bool
	bendAgain   bool
	bendLate    bool

	kills, drops, adopted, voids, valid, fenced, restarts, split, lost, poisoned, stales, flightsIn, parted int
}

func newLogSpace(seed uint64) *logSpace {
	w := &logSpace{
		Rand: rand.New(rand.NewPCG(seed, 3)), scripts: map[string][]scripted{}, owners: map[string]Peer{}, parts: map[string][]byte{}, puts: map[string]bool{}, steps: map[string]bool{},
		began: map[string]int{}, counts: map[uint64]int{}, taskOf: map[uint64]string{}, bad: map[string]bool{}, deaths: map[string]int{}, countedAt: map[uint64]int{},
		bendStep: func(*keeperNode, *Output) {}, bendAppend: func(string, []byte) bool { return false }, bendBarrier: func(s []string) []string { return s },
		bendTaken: func(*Store) {}, bendRead: func(body []byte) []byte { return body }, bendEnd: func(*keeperNode) {}, bendBody: func(_ *Writer, body []byte) []byte { return body },
	}
	w.loss = []float64{0, 0.05, 0.2}[w.IntN(3)]
	w.losses, w.batch = 1<<30, []int{MaxBatch, 400, 80}[w.IntN(3)]
	if w.poisons = w.IntN(4) == 0; w.poisons {
		w.losses = 3
	} else if w.IntN(3) == 0 { // Many entries are too large for a message. With poison the log would be too slow.
		w.batch = 30
	}
	return w
}

func (w *logSpace) fault(format string, args ...any) {
	if len(w.faults) < 10 {
		w.faults = append(w.faults, fmt.Sprintf("%v: ", w.now.Sub(0))+fmt.Sprintf(format, args...))
	}
}

// spawn begins a routine of a node's process.
func (w *logSpace) spawn(n *keeperNode, run func(*routine)) {
	r := &routine{w: w, n: n, life: n.peer, at: w.now}
	r.next, r.stop = iter.Pull(func(yield func(time.Duration) bool) {
		defer func() {
			if e := recover(); e != nil && e != any(errKilled) {
				panic(e)
			}
		}()
		r.yield = yield
		run(r)
	})
	w.routines = append(w.routines, r)
}

// runRoutines lets those continue that have waited long enough.
func (w *logSpace) runRoutines() {
	for i := 0; i < len(w.routines); i++ { // They may begin others.
		r := w.routines[i]
		switch {
		case r.n.dead || r.n.peer != r.life:
			r.stop()
		case r.at > w.now:
			continue
		default:
			if d, more := r.next(); more {
				r.at = w.now.Add(d)
				continue
			}
		}
		w.routines[i] = nil
	}
	w.routines = slices.DeleteFunc(w.routines, func(r *routine) bool { return r == nil })
}

// logOf is the log as one routine sees it.
type logOf struct{ r *routine }

// take appends a message, as the server does, or refuses it.
func (w *logSpace) take(p *publish) (uint64, error) {
	if last := w.last(p.subject, len(w.messages)); last != int(p.on) { //nolint:gosec // Small.
		w.stales++
		return 0, errStale
	}
	w.messages = append(w.messages, message{subject: p.subject, body: slices.Clone(p.body)})
	w.judgeMessage(p)
	return uint64(len(w.messages)), nil
}

// last is the sequence of the last message of a subject, of the first messages.
func (w *logSpace) last(subject string, of int) int {
	for i := of - 1; i >= 0; i-- {
		if m := &w.messages[i]; m.subject == subject && !m.gone {
			return i + 1
		}
	}
	return 0
}

// publish sends a message to the log once.
func (l logOf) publish(subject string, on uint64, body []byte) (uint64, error) {
	w := l.r.w
	if w.bendAppend(subject, body) {
		return on, nil
	}
	l.r.wait(time.Duration(1+w.IntN(20)) * time.Millisecond)
	dice := 1000
	if w.loss > 0 {
		dice = w.IntN(100)
	}
	switch {
	case dice < 4: // It comes late, or never.
		w.lost++
		if w.IntN(2) == 0 {
			w.late = append(w.late, publish{w.now.Add(time.Duration(w.IntN(1500)) * time.Millisecond), subject, on, body, l.r.needs})
		}
		l.r.wait(500 * time.Millisecond)
		return 0, errSilent
	case dice < 8:
		w.flightsIn++
		return 0, errFlight
	case dice < 11: // It comes twice.
		w.late = append(w.late, publish{w.now.Add(time.Duration(w.IntN(500)) * time.Millisecond), subject, on, body, l.r.needs})
	}
	seq, err := w.take(&publish{0, subject, on, body, l.r.needs})
	if err == nil && dice < 14 {
		l.r.wait(500 * time.Millisecond)
		return 0, errSilent
	}
	l.r.wait(time.Duration(1+w.IntN(20)) * time.Millisecond)
	return seq, err
}

// Append tries again as internal/worklog does.
func (l logOf) Append(subject string, on uint64, body []byte) (uint64, error) {
	for {
		seq, err := l.publish(subject, on, body)
		if err == nil {
			return seq, nil
		}
		if errors.Is(err, errStale) {
			last, have, _ := l.Last(subject)
			switch {
			case last <= on: // It is stale.
			case string(have) == string(body):
				return last, nil
			default:
				return 0, errFenced
			}
		}
		l.r.wait(time.Duration(5+l.r.w.IntN(50)) * time.Millisecond)
	}
}

func (logOf) Fenced(err error) bool { return errors.Is(err, errFenced) }

// seen is how many messages a reader sees: a server that does not lead any more may answer.
func (l logOf) seen() int {
	w := l.r.w
	l.r.wait(time.Duration(1+w.IntN(20)) * time.Millisecond)
	if w.loss > 0 && w.IntN(6) == 0 {
		return max(l.r.floor, len(w.messages)-w.IntN(6))
	}
	return len(w.messages)
}

func (l logOf) Last(subject string) (uint64, []byte, error) {
	i := l.r.w.last(subject, l.seen())
	if i == 0 {
		return 0, nil, nil
	}
	return uint64(i), l.r.w.messages[i-1].body, nil
}

func (l logOf) Read(subject string, take func(uint64, []byte) error) (uint64, error) {
	w := l.r.w
	last := w.last(subject, l.seen())
	for i := range last {
		if m := &w.messages[i]; m.subject == subject && !m.gone {
			if err := take(uint64(i+1), w.bendRead(m.body)); err != nil {
				return 0, err
			}
		}
	}
	return uint64(last), nil
}

func (l logOf) Barrier(string) ([]string, error) {
	w := l.r.w
	l.r.wait(time.Duration(1+w.IntN(20)) * time.Millisecond)
	w.messages = append(w.messages, message{subject: "barrier", gone: true})
	l.r.floor, l.r.needs = len(w.messages), w.open()
	list, err := l.Subjects("")
	return w.bendBarrier(list), err
}

func (l logOf) Subjects(string) (list []string, err error) {
	seen := l.seen()
	for i := range seen {
		if m := &l.r.w.messages[i]; strings.HasPrefix(m.subject, accountPrefix) && !m.gone && !slices.Contains(list, m.subject) {
			list = append(list, m.subject)
		}
	}
	return list, nil
}

func (l logOf) Purge(subject string, before uint64) error {
	l.r.wait(time.Duration(1+l.r.w.IntN(20)) * time.Millisecond)
	for i := range before - 1 {
		if m := &l.r.w.messages[i]; m.subject == subject {
			m.gone = true
		}
	}
	return nil
}

// judgeMessage reads the message appended.
func (w *logSpace) judgeMessage(p *publish) {
	account, is := strings.CutPrefix(p.subject, accountPrefix)
	if !is {
		w.judgeDecision(p)
		return
	}
	b, err := ReadBatch(p.body)
	if err != nil {
		w.fault("%s: %v", p.subject, err)
		return
	}
	for left := w.whole(account, &b); len(left) > 0; {
		var one []byte
		one, left = SplitEntries(left, 0)
		_, used := binary.Uvarint(one)
		c := coder{buf: one[used:], form: formWaits, names: map[string]string{}}
		var e entry
		c.entry(&e)
		id := account + "/" + e.record.ID
		switch e.kind {
		case entryOwner:
			if w.owners[account] = e.owner; e.owner.Name == "" {
				w.owners[account] = b.Owner // It says so next, or gives up what it has.
			}
		case entryPut:
			w.puts[account+"/"+e.task.ID] = true
		case entryBegan:
			w.began[id]++
		case entryStep:
			w.steps[fmt.Sprint(id, " ", e.record.On)] = true
			for i := range e.record.Children {
				w.puts[account+"/"+e.record.Children[i].ID] = true
			}
			w.judgeRecord(id, &e.record)
		default:
		}
	}
	if w.owners[account] != b.Owner {
		w.fault("%s: %v appends, and %v has it", p.subject, b.Owner, w.owners[account])
	}
}

// whole are the entries of a batch. The entries of a part are there with its last one.
func (w *logSpace) whole(account string, b *Batch) []byte {
	if !b.part {
		delete(w.parts, account)
		return b.Entries
	}
	w.parted++
	all := slices.Concat(w.parts[account], b.Entries)
	if n, used := binary.Uvarint(all); used > 0 && int(n) == len(all)-used {
		delete(w.parts, account)
		return all
	}
	w.parts[account] = all
	return nil
}

func (w *logSpace) judgeRecord(id string, r *Record) {
	switch {
	case r.Fate == Poisoned && w.bad[id]:
		w.poisoned++
		for k, of := range w.taskOf {
			if of == id {
				w.counts[k]++
				w.countedAt[k] = len(w.messages)
			}
		}
	case r.Fate > Done:
		w.fault("%s is %v: %s", id, r.Fate, r.Error)
	default:
		low, high := bounds(r.Result)
		for k := low; k < high; k++ {
			w.countedAt[k] = len(w.messages)
			if w.counts[k]++; w.counts[k] > 1 {
				w.fault("number %d is recorded twice, with %s", k, id)
			}
		}
	}
}

// judgeDecision: no phase is over in which a task is open that a Put had put before the last barrier of who decides.
func (w *logSpace) judgeDecision(p *publish) {
	var d Decision
	if err := json.Unmarshal(p.body, &d); err != nil || d.Phase != w.decided.Phase+1 || d.Valid != d.Phase && d.Valid != w.decided.Valid {
		w.fault("%+v after %+v: %v", d, w.decided, err)
	}
	if d.Valid == d.Phase {
		w.valid++
		w.ends = append(w.ends, len(w.messages))
		for _, k := range p.needs {
			if w.counts[k] == 0 {
				w.fault("phase %d is over, and number %d of %s is not recorded", d.Phase, k, w.taskOf[k])
			}
		}
	} else {
		w.voids++
	}
	w.decided = d
}

// open lists the numbers that a Put has put and that are not recorded.
func (w *logSpace) open() (list []uint64) {
	for _, script := range w.scripts {
		for _, t := range script {
			for k := t.low; t.acked && k < t.high; k++ {
				if w.counts[k] == 0 {
					list = append(list, k)
				}
			}
		}
	}
	return list
}

// job is a function that runs.
type job struct {
	work
	id string // "account/id"
}

// lastPhase is the last one in which programs put tasks.
const lastPhase = 3

// begin begins a life of a node.
func (w *logSpace) begin(n *keeperNode, name string) {
	w.lives++
	slots := 1 + w.IntN(2)
	if w.poisons {
		slots = 1
	}
	*n = keeperNode{
		peer: Peer{name, w.lives}, jobs: make([]job, slots), speed: 0.5 + 3*w.Float64(), writers: map[string]*logWriter{}, heard: w.now, putting: -1,
		delivered: map[uint64]bool{}, begunAt: len(w.messages),
	}
	w.roster = append(w.roster, n.peer)
	w.newRoster()
	w.spawn(n, w.openLogs)
}

// openLogs opens the logs of a member, as openLogs of the package work does.
func (w *logSpace) openLogs(r *routine) {
	n := r.n
	n.keeper = &Keeper{Log: logOf{r}, Self: n.peer, Limits: Limits{Losses: w.losses}, Batch: w.batch, Lives: func(p Peer) bool {
		return slices.Contains(n.roster, p) || n.machine == nil && slices.Contains(n.rosters[0], p)
	}}
	own, lw, d, err := n.keeper.Open()
	if w.bendAgain && err == nil {
		rec := NewRecovery(n.keeper.Limits)
		for i := range w.messages {
			if m := &w.messages[i]; m.subject == SubjectOf(n.peer.Name) && !m.gone {
				found, _ := rec.Take(m.body)
				own.results = append(own.results, found...)
			}
		}
	}
	if err != nil {
		w.fault("%v: %v", n.peer, err)
		return
	}
	strategy, err := local.New(local.Config{})
	if err != nil {
		panic(err)
	}
	w.bendTaken(own)
	n.machine = NewMember(Options{Self: n.peer, Phase: d.Phase + 1, Slots: len(n.jobs), Strategy: strategy, Account: own})
	w.beginWriter(n, lw)
	w.spawn(n, w.closePhases)
	w.spawn(n, w.adoptOrphans)
}

func (w *logSpace) beginWriter(n *keeperNode, of *Writer) {
	lw := &logWriter{Writer: of}
	n.writers[of.Account()] = lw
	w.spawn(n, func(r *routine) { w.write(r, lw) })
}

// write is the loop of a writer.
func (w *logSpace) write(r *routine, lw *logWriter) {
	n := r.n
	for {
		body, on := lw.Compose()
		if body == nil {
			if lw.ended {
				return
			}
			r.wait(pulse)
			continue
		}
		if len(lw.pending) > 0 && lw.pending[0].Ticket > lw.ticket {
			w.split++
		}
		body = w.bendBody(lw.Writer, body)
		seq, err := logOf{r}.Append(lw.Subject(), on, body)
		for w.bendFenced && errors.Is(err, errFenced) {
			seq, err = logOf{r}.Append(lw.Subject(), uint64(w.last(lw.Subject(), len(w.messages))), body) //nolint:gosec // Above 0.
		}
		if err != nil {
			w.fence(n, lw)
			return
		}
		ticket, trim := lw.Took(seq)
		if ticket > 0 {
			w.step(n, &Input{Kind: InDurable, ID: lw.Account(), Ticket: ticket})
		}
		if trim > 0 {
			_ = logOf{r}.Purge(lw.Subject(), trim)
		}
	}
}

// fence ends what cannot continue without a log.
func (w *logSpace) fence(n *keeperNode, lw *logWriter) {
	w.fenced++
	if w.owners[lw.Account()] == n.peer && n.writers[lw.Account()] == lw {
		w.fault("%v: it was fenced from the account of %s, and nobody else has it", n.peer, lw.Account())
	}
	switch {
	case lw.Account() == n.peer.Name:
		w.finish(n)
	case n.writers[lw.Account()] == lw:
		delete(n.writers, lw.Account())
		w.step(n, &Input{Kind: InDisown, ID: lw.Account()})
	}
}

// finish ends a life. Its program begins another one.
func (w *logSpace) finish(n *keeperNode) { n.dead = true }

func (w *logSpace) closePhases(r *routine) {
	for n := r.n; ; {
		if !n.ends {
			r.wait(pulse)
			continue
		}
		n.ends = false
		for {
			more, err := w.closePhase(r)
			if err != nil {
				r.wait(250 * time.Millisecond)
				continue
			}
			if !more {
				break
			}
		}
	}
}

// closePhase mirrors the package work.
func (w *logSpace) closePhase(r *routine) (more bool, err error) {
	n := r.n
	phase, signalled := n.machine.phase, n.signalled
	r.floor = 0
	k := *n.keeper
	k.Log = logOf{r}
	seq, d, err := k.Decided()
	if err != nil {
		return false, err
	}
	if d.Phase < phase {
		if signalled < phase {
			return false, nil
		}
		if d, err = k.Decide(seq, d, phase); err != nil {
			return false, err
		}
	}
	for n.machine.phase <= d.Phase && !n.dead {
		w.endPhase(n, d.Valid < n.machine.phase)
	}
	if d.Valid < d.Phase && w.first(n) {
		n.unsure, n.orphans = true, true
	}
	w.tell(n)
	return true, nil
}

func (w *logSpace) endPhase(n *keeperNode, void bool) {
	phase := n.machine.phase
	late := !void && (n.told.Open > 0 || n.told.Late() && !w.bendLate)
	w.bendEnd(n)
	w.step(n, &Input{Kind: InEnd, Phase: phase, Void: void || late})
	if n.out.Err != nil {
		w.fault("%v: %v", n.peer, n.out.Err)
	}
	if void || late {
		return
	}
	for _, t := range w.scripts[scriptOf(n.peer.Name, phase)] {
		for k := t.low; t.acked && k < t.high; k++ {
			if w.counts[k] > 0 && !n.delivered[k] {
				w.fault("%v: phase %d is over, and the program did not get number %d", n.peer, phase, k)
				return
			}
		}
	}
}

func scriptOf(name string, phase uint64) string { return fmt.Sprint(name, " ", phase) }

func (*logSpace) first(n *keeperNode) bool {
	return slices.Contains(n.roster, n.peer) && !slices.ContainsFunc(n.roster, func(p Peer) bool { return p.Name < n.peer.Name })
}

func (w *logSpace) adoptOrphans(r *routine) {
	for n := r.n; ; {
		if !n.orphans && n.looked.Add(time.Second) > w.now {
			r.wait(pulse)
			continue
		}
		n.orphans, n.looked = false, w.now
		w.adopt(r)
	}
}

// adopt mirrors the package work.
func (w *logSpace) adopt(r *routine) {
	n := r.n
	n.ends = true
	phase := n.machine.phase
	if !w.first(n) {
		return
	}
	r.floor = 0
	k := *n.keeper
	k.Log = logOf{r}
	accounts, err := k.Orphans(func(account string) bool { return !isOrphan(n, account) })
	if err != nil {
		w.fault("%v: %v", n.peer, err)
		return
	}
	for _, account := range accounts {
		if !isOrphan(n, account) {
			continue
		}
		store, of, err := k.Take(account, Decision{Phase: phase - 1}, func() bool { return isOrphan(n, account) })
		if err != nil {
			continue
		}
		if isOrphan(n, account) {
			w.adopted++
			w.bendTaken(store)
			w.beginWriter(n, of)
			w.step(n, &Input{Kind: InAdopt, ID: account, Account: store})
		}
	}
	n.unsure = false
	w.tell(n)
}

func isOrphan(n *keeperNode, account string) bool {
	return n.writers[account] == nil && !slices.ContainsFunc(n.roster, func(p Peer) bool { return p.Name == account })
}

// hear takes the next roster.
func (w *logSpace) hear(n *keeperNode) {
	if len(n.rosters) == 0 || n.heardAt > w.now || n.machine == nil {
		return
	}
	roster := n.rosters[0]
	n.rosters = n.rosters[1:]
	n.roster = roster
	w.step(n, &Input{Kind: InRoster, Roster: roster})
	for _, p := range roster {
		if lw := n.writers[p.Name]; lw != nil && p.Name != n.peer.Name {
			lw.Drop()
			lw.ended = true
			delete(n.writers, p.Name)
		}
	}
	n.ends, n.orphans = true, true
}

func (w *logSpace) newRoster() {
	slices.SortFunc(w.roster, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	roster := slices.Clone(w.roster)
	for _, n := range w.nodes {
		if !n.dead {
			n.rosters = append(n.rosters, roster)
			d := time.Duration(w.IntN(300)) * time.Millisecond
			if w.IntN(6) == 0 {
				d *= 8
			}
			n.heardAt = w.now.Add(d)
		}
	}
}

// tell is what the synchronizer hears.
func (w *logSpace) tell(n *keeperNode) {
	n.told = n.out.Told
	n.told.Idle = n.told.Idle && !n.unsure
}

func (w *logSpace) step(n *keeperNode, in *Input) {
	if n.dead {
		return
	}
	n.machine.Step(w.now, in, &n.out)
	if n.out.Err != nil && in.Kind != InEnd {
		w.fault("%v: %v", n.peer, n.out.Err)
	}
	for i := range n.out.Log {
		if lw := n.writers[n.out.Log[i].Account]; lw != nil {
			lw.Add(&n.out.Log[i])
		}
	}
	w.bendStep(n, &n.out)
	for w.carry(n); !n.dead && n.machine.Release(&n.out); {
		w.bendStep(n, &n.out)
		w.carry(n)
	}
}

// logged: nothing leaves a member that rests on what the log does not have.
func (w *logSpace) logged(n *keeperNode, full string, on uint64, step bool, what string) {
	account, id := splitID(full)
	if account == "" {
		account = n.peer.Name
	}
	if n.writers[account] == nil {
		return // Another life has it, and knows nothing of this.
	}
	at := account + "/" + id
	if step && !w.steps[fmt.Sprint(at, " ", on)] || !step && !w.puts[at] {
		w.fault("%v: %s of %s, which the log does not have", n.peer, what, at)
	}
}

func (w *logSpace) carry(n *keeperNode) {
	out := &n.out
	w.tell(n)
	for _, f := range out.Frames {
		if v := f.Verdict; v != nil && !v.Failed && v.Outcome == Counted {
			w.logged(n, v.ID, v.On, true, "a verdict")
		}
		if f.Parcel != nil {
			for _, l := range f.Parcel.Leases {
				if l.Account == n.peer {
					w.logged(n, l.Lease.Task.ID, 0, false, "a lease")
				}
			}
		}
		w.send(f)
	}
	for _, i := range out.Stops {
		n.jobs[i].stops = true
	}
	for _, i := range out.Recorded {
		n.jobs[i].waits = false
	}
	for _, y := range out.Yields {
		if n.jobs[y.Slot].part = y.Items; y.Items == 0 {
			n.jobs[y.Slot].part = -1
		}
	}
	w.deliver(n, out.Results)
	runs := slices.Clone(out.Runs)
	if out.Over {
		w.finish(n)
		return
	}
	for _, r := range runs {
		low, high := bounds(r.Task.Body)
		if n.jobs[r.Slot].runs {
			w.fault("%v: slot %d runs two tasks", n.peer, r.Slot)
		}
		id := r.Account.Name + "/" + r.Task.ID
		if full := n.machine.slots[r.Slot].Lease.Task.ID; strings.HasPrefix(full, fullMark) {
			account, own := splitID(full)
			id = account + "/" + own
		}
		if r.Account == n.peer && w.began[id] == 0 && n.machine.accounts.isCareful() && !n.machine.slots[r.Slot].stopped {
			w.fault("%v: %s begins, which the log does not have", n.peer, id)
		}
		n.jobs[r.Slot] = job{work{runs: true, kind: r.Task.Func, low: low, at: low, high: high}, id}
		if r.Task.Func == "bag" {
			w.step(n, &Input{Kind: InItems, Slot: r.Slot, Items: int(high - low)}) //nolint:gosec // Small.
		}
	}
}

// deliver judges what a program gets.
func (w *logSpace) deliver(n *keeperNode, results []Result) {
	for _, r := range results {
		id := n.peer.Name + "/" + r.ID
		low, high := uint64(0), uint64(0)
		if r.Fate == Poisoned && w.bad[id] {
			for k, of := range w.taskOf {
				if of == id {
					low, high = k, k+1
				}
			}
		} else {
			low, high = bounds(r.Value)
		}
		for k := low; k < high; k++ {
			if w.counts[k] == 0 {
				w.fault("%v: number %d of %s, which the log does not have", n.peer, k, r.ID)
			}
			if n.delivered[k] {
				w.fault("%v: the program gets number %d of %s twice", n.peer, k, r.ID)
			}
			n.delivered[k] = true
			if name, _, _ := strings.Cut(w.taskOf[k], "/"); name != n.peer.Name {
				w.fault("%v: the program gets number %d of %s", n.peer, k, w.taskOf[k])
			}
			if slices.ContainsFunc(w.ends, func(at int) bool { return w.countedAt[k] < at && at <= n.begunAt }) {
				w.fault("%v: the program gets number %d of %s of a phase before its life", n.peer, k, r.ID)
			}
		}
	}
}

// send puts a copy of a frame on its way, or two, or none.
func (w *logSpace) send(f Frame) {
	f = f.Kept()
	if err := f.Check(); err != nil {
		w.fault("a frame that may not be sent: %v", err)
	}
	for copies := 1; copies > 0; copies-- {
		if w.Float64() < w.loss {
			continue
		}
		delay := time.Duration(w.IntN(30)) * time.Millisecond
		if w.loss > 0 && w.IntN(20) == 0 {
			delay = time.Duration(w.IntN(2000)) * time.Millisecond
		}
		if w.loss > 0 && w.IntN(10) == 0 && copies == 1 {
			copies++
		}
		w.flights = append(w.flights, flight{w.now.Add(delay), f})
	}
}

// script is what a program puts in a phase, the same in each life.
func (w *logSpace) script(name string, phase uint64) []scripted {
	key := scriptOf(name, phase)
	if s, is := w.scripts[key]; is || phase > lastPhase {
		return s
	}
	var list []scripted
	for i := range w.IntN(4) * w.IntN(5) {
		count, kind := uint64(1), "one"
		switch dice := w.IntN(6); {
		case dice == 0:
			kind, count = "bag", 1+w.Uint64N(80)
		case dice == 1:
			count = 1 + w.Uint64N(10)
		case dice == 2 && w.poisons && w.IntN(3) == 0:
			kind = "poison"
			w.bad[fmt.Sprint(name, "/", phase, ".", i)] = true
		}
		for k := w.number; k < w.number+count; k++ {
			w.taskOf[k] = fmt.Sprint(name, "/", phase, ".", i)
		}
		list = append(list, scripted{low: w.number, high: w.number + count, kind: kind})
		w.number += count
	}
	w.scripts[key] = list
	return list
}

// program puts the remaining tasks, and settles then.
func (w *logSpace) program(n *keeperNode) {
	if n.phase != n.machine.phase {
		n.phase, n.puts, n.putting = n.machine.phase, nil, -1
		for i := range w.script(n.peer.Name, n.phase) {
			n.puts = append(n.puts, i)
		}
		w.step(n, &Input{Kind: InSettled, Settled: false})
		return
	}
	script := w.scripts[scriptOf(n.peer.Name, n.phase)]
	switch {
	case n.putting >= 0:
		if n.machine.Written() >= n.ticket {
			t := &script[n.putting]
			id := fmt.Sprint(n.phase, ".", n.putting)
			if !w.puts[n.peer.Name+"/"+id] {
				w.fault("%v: task %s was put, and the log does not have it", n.peer, id)
			}
			t.acked, n.putting = true, -1
		}
	case w.IntN(3) > 0:
	case len(n.puts) > 0:
		i := n.puts[0]
		n.puts = n.puts[1:]
		t := &script[i]
		n.putting = i
		w.step(n, &Input{Kind: InPut, Task: &Task{ID: fmt.Sprint(n.phase, ".", i), Func: t.kind, Body: span(t.low, t.high)}, Key: float64(w.IntN(3))})
		n.ticket = n.machine.Ticket()
	case !n.told.Settled:
		w.step(n, &Input{Kind: InSettled, Settled: true})
	}
}

// run lets the functions of a node work for a pulse.
func (w *logSpace) run(n *keeperNode) {
	for i := 0; i < len(n.jobs) && !n.dead; i++ {
		s := &n.jobs[i]
		if !s.runs || s.waits && !s.stops {
			continue
		}
		if s.kind == "poison" && !s.stops && w.IntN(20) == 0 {
			w.deaths[s.id]++
			n.dead = true
			return
		}
		for s.credit += n.speed / 3; s.credit >= 1 && s.at < s.high && s.kind != "poison"; s.credit-- {
			s.at++
		}
		found := span(s.low, s.at)
		switch {
		case s.stops && w.IntN(4) > 0:
		case s.stops || s.at == s.high:
			*s = job{}
			w.step(n, &Input{Kind: InDone, Slot: i, Step: &Step{Record: Record{Fate: Done, Result: found}}})
		case s.kind == "bag" && (s.part != 0 || w.IntN(30) == 0):
			r := Record{Fate: Kept, Result: found}
			if part := min(uint64(max(0, s.part)), s.high-s.at-1); part > 0 { //nolint:gosec // Above 0.
				w.names++
				r.Children = []Task{{ID: fmt.Sprintf("%v/%d", n.peer, w.names), Func: "bag", Body: span(s.high-part, s.high), Part: true}}
				s.high -= part
			}
			s.low, s.part, s.waits, r.Rest = s.at, 0, true, span(s.at, s.high)
			w.step(n, &Input{Kind: InYield, Slot: i, Step: &Step{Record: r}, Items: int(s.high - s.at)}) //nolint:gosec // Small.
		default:
		}
	}
}

// trouble kills nodes, and has living ones dropped.
func (w *logSpace) trouble() {
	n := w.nodes[w.IntN(len(w.nodes))]
	switch dice := w.IntN(300); {
	case n.dead || w.poisons:
	case dice < 2:
		n.dead, n.gone = true, n != w.nodes[0] && w.IntN(3) == 0
		w.kills++
	case dice < 4:
		n.cut = w.now.Add(time.Duration(w.IntN(3000)) * time.Millisecond)
	}
}

// synchronizer drops silent members, lets the dead come back, and says when a phase is over.
func (w *logSpace) synchronizer() {
	for _, n := range w.nodes {
		if !n.dead && n.cut <= w.now {
			n.heard = w.now
		}
		i := slices.Index(w.roster, n.peer)
		switch {
		case i >= 0 && w.now.Sub(n.heard) > quiet:
			w.drops++
			w.roster = slices.Delete(w.roster, i, i+1)
			w.newRoster()
			n.heardAt = max(n.heardAt, n.cut)
		case i < 0 && n.dead && !n.gone && w.IntN(50) == 0:
			w.restarts++
			w.begin(n, n.peer.Name)
		}
	}
	phase := uint64(0)
	for _, p := range w.roster {
		i := slices.IndexFunc(w.nodes, func(n *keeperNode) bool { return n.peer == p && !n.dead })
		if i < 0 {
			return
		}
		n := w.nodes[i]
		if n.machine == nil || !n.told.Idle || !n.told.Settled || len(n.puts) > 0 || n.putting >= 0 || n.phase != n.machine.phase || phase > 0 && n.told.Phase != phase {
			return
		}
		phase = n.told.Phase
	}
	for _, n := range w.nodes {
		if !n.dead && n.signal < phase {
			n.signal, n.signalAt = phase, w.now.Add(time.Duration(w.IntN(200))*time.Millisecond)
		}
	}
}

func (w *logSpace) pulse() {
	w.now = w.now.Add(pulse)
	w.late = slices.DeleteFunc(w.late, func(p publish) bool {
		if p.at <= w.now {
			_, _ = w.take(&p)
		}
		return p.at <= w.now
	})
	w.runRoutines()
	var due []flight
	w.flights = slices.DeleteFunc(w.flights, func(f flight) bool {
		if f.at <= w.now {
			due = append(due, f)
		}
		return f.at <= w.now
	})
	for _, f := range due {
		for _, n := range w.nodes {
			if n.peer != f.frame.To || n.dead || n.machine == nil {
				continue
			}
			if f.frame.Phase > n.machine.phase && n.told.Idle {
				n.ends = true
			}
			frame := f.frame
			w.step(n, &Input{Kind: InFrame, Frame: &frame})
		}
	}
	for _, n := range w.nodes {
		if n.dead || n.machine == nil {
			continue
		}
		if w.hear(n); n.signal > n.signalled && n.signalAt <= w.now {
			n.signalled, n.ends = n.signal, true
		}
		if !n.dead && n.out.Wake <= w.now {
			w.step(n, &Input{Kind: InTick})
		}
		if w.run(n); !n.dead {
			w.program(n)
		}
	}
	w.synchronizer()
}

func (w *logSpace) live() {
	for i := range 2 + w.IntN(4) {
		w.nodes = append(w.nodes, &keeperNode{})
		w.begin(w.nodes[i], fmt.Sprint("n", i))
	}
	end := func() bool {
		return w.decided.Valid >= lastPhase && w.decided.Valid == w.decided.Phase && len(w.open()) == 0
	}
	for w.now < clocksync.Instant(troubles) && !end() && len(w.faults) == 0 {
		w.trouble()
		w.pulse()
	}
	w.loss = min(w.loss, 0.02)
	for limit := w.now.Add(2 * patience); !end() && w.now < limit && len(w.faults) == 0; {
		w.pulse()
	}
	if !end() && len(w.faults) == 0 {
		w.fault("phase %d does not end; open %v", w.decided.Phase+1, w.open())
		for _, n := range w.nodes {
			w.fault("%v dead %v unsure %v: %+v", n.peer, n.dead, n.unsure, n.told)
		}
	}
	for id, n := range w.deaths {
		if n > 4*w.losses { // Who dies with its account takes some of what is known with it.
			w.fault("%d members died of %s", n, id)
		}
	}
	for _, r := range w.routines {
		r.stop()
	}
}

// TestLogSpaces: whatever a Put has put is recorded once, no end comes early, and nothing is said before the log has it.
func TestLogSpaces(t *testing.T) {
	n := testcount.Of(t, "WORK", 200)
	var sum logSpace
	for seed := range uint64(n) { //nolint:gosec // Above 0.
		w := newLogSpace(seed)
		w.live()
		if len(w.faults) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.faults, "\n"))
		}
		sum.kills, sum.drops, sum.adopted, sum.voids, sum.valid = sum.kills+w.kills, sum.drops+w.drops, sum.adopted+w.adopted, sum.voids+w.voids, sum.valid+w.valid
		sum.parted += w.parted
		sum.fenced, sum.restarts, sum.split, sum.poisoned, sum.stales = sum.fenced+w.fenced, sum.restarts+w.restarts, sum.split+w.split, sum.poisoned+w.poisoned, sum.stales+w.stales
	}
	t.Logf("%d kills, %d drops, %d restarts, %d accounts adopted, %d valid ends, %d void, %d fenced, %d poisoned, %d refused as stale, %d messages with parts of entries", sum.kills, sum.drops, sum.restarts, sum.adopted, sum.valid, sum.voids, sum.fenced, sum.poisoned, sum.stales, sum.parted)
	if least := min(2*sum.kills, 2*sum.adopted, 2*sum.voids, 4*sum.fenced, 4*sum.poisoned, sum.parted); least < n {
		t.Error("too little was tried")
	}
}

// TestLogMutants: the judge of TestLogSpaces notices a protocol that is wrong.
func TestLogMutants(t *testing.T) {
	tasks := func(s *Store, change func(*open)) {
		for _, id := range s.account.Open() {
			change(s.account.findTask(id))
		}
	}
	for name, bend := range map[string]func(*logSpace){
		"output is not held back": func(w *logSpace) {
			w.bendStep = func(n *keeperNode, _ *Output) {
				for i := range n.machine.durable.held {
					n.machine.durable.held[i].until = 0
				}
			}
		},
		"idle before the log has all": func(w *logSpace) {
			w.bendStep = func(n *keeperNode, out *Output) {
				out.Told.Idle = out.Told.Open == 0 && out.Told.Queued == 0 && out.Told.Running == 0
			}
			w.bendBarrier = func([]string) []string { return nil }
		},
		"Put returns before the log has it": func(w *logSpace) {
			w.bendStep = func(n *keeperNode, _ *Output) { n.ticket = 0 }
		},
		"who adopts does not say so in the log": func(w *logSpace) {
			w.bendAppend = func(_ string, body []byte) bool {
				b, err := ReadBatch(body)
				return err == nil && b.Number == 0 && b.Open > 0
			}
		},
		"a fold forgets what a record builds on": func(w *logSpace) {
			w.bendTaken = func(s *Store) { tasks(s, func(o *open) { o.last = 0 }) }
		},
		"a fold forgets what is left of a task": func(w *logSpace) {
			w.bendTaken = func(s *Store) {
				tasks(s, func(o *open) {
					if low, high := bounds(o.task.Body); low > 0 && o.last > 0 {
						o.task.Body = span(low-1, high)
					}
				})
			}
		},
		"a decision does not look at all accounts": func(w *logSpace) {
			w.bendBarrier = func(list []string) []string { return list[:len(list)/2] }
		},
		"a message that is a part says that nothing is open": func(w *logSpace) {
			w.bendBody = func(of *Writer, body []byte) []byte {
				b, _ := ReadBatch(body)
				if b.Number != of.ticket {
					b.Open = 0
				}
				return b.Append(nil)
			}
			w.batch = 40
		},
		"runs in which an owner died are not counted": func(w *logSpace) {
			w.bendRead = func(body []byte) []byte {
				b, _ := ReadBatch(body)
				left := b.Entries
				for b.Entries = nil; len(left) > 0 && !b.part; {
					var one []byte
					if one, left = SplitEntries(left, 0); entryKind(one[1]) != entryBegan {
						b.Entries = append(b.Entries, one...)
					}
				}
				return b.Append(nil)
			}
		},
		"the results of a phase that is over are told again": func(w *logSpace) { w.bendAgain = true },
		"who was fenced appends behind the last message":     func(w *logSpace) { w.bendFenced = true },
		"a phase ends before its results are told":           func(w *logSpace) { w.bendLate = true },
		"what ran when a phase ended waits for ever": func(w *logSpace) {
			w.bendEnd = func(n *keeperNode) { delete(n.machine.accounts.own.held, n.machine.holder) }
		},
	} {
		noticed(t, name, 2000, func(seed uint64) []string {
			w := newLogSpace(seed)
			bend(w)
			return faultsOf(w.live, &w.faults)
		})
	}
}

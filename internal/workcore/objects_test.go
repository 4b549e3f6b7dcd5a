package workcore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// state is the state of an object of a world: the messages that it has served, and how many it has
// sent.
type state struct {
	Log  []letter
	Sent map[string]int
}

// letter is the body of a message.
type letter struct {
	From   string // a life of a program, or an object
	N      int    // counts for each object that From sends to
	Hops   int    // that follow
	Effect string // bad: it fails
}

// host is a process of a world of objects.
type host struct {
	peer                        Peer
	machine                     *Member
	out                         Output
	runs                        []*turn
	asleep, cut, heard, orderAt clocksync.Instant
	orders                      []func(*host)
	dead                        bool
	sent                        map[string]int
	left                        int // messages that its program is yet to send
	writes                      []Append
	told                        Told
	lost                        int // objects
	drains, away                bool
	taken                       []leaseID // by slot
}

// turn is a run of an object.
type turn struct {
	Run
	until   clocksync.Instant
	stopped bool
}

// estate is a world of objects. The judge looks at states and runs alone.
type estate struct {
	*rand.Rand
	now      clocksync.Instant
	hosts    []*host
	roster   []Peer
	flights  []flight
	durable  bool
	logs     map[string][][]byte // by account
	owners   map[string]Peer
	loss     float64
	objects  []string
	near     map[string][]string
	fences   map[string]map[uint64]string
	sent     map[string]int // by sender and object
	bad      map[string]bool
	failed   map[string]bool
	faults   []string
	ended    bool
	strategy local.Config
	// withdraws has members withdraw and return, and objects be bound to the first one.
	withdraws bool
	bend      func(*host, *Frame) bool
	twist     func(*host)
	ids       int

	kills, moves, served, parcels, withdrawals int
}

func newEstate(seed uint64, durable bool) *estate {
	w := &estate{
		Rand: rand.New(rand.NewPCG(seed, 3)), durable: durable, logs: map[string][][]byte{}, owners: map[string]Peer{}, near: map[string][]string{},
		fences: map[string]map[uint64]string{}, sent: map[string]int{}, bad: map[string]bool{}, failed: map[string]bool{},
		bend: func(*host, *Frame) bool { return true }, twist: func(*host) {},
	}
	w.loss = []float64{0, 0.02, 0.2}[w.IntN(3)]
	w.strategy = []local.Config{{}, {Kind: local.Chunk}, {Share: 1, Again: 20 * time.Millisecond}, {Kind: local.Sender}}[w.IntN(4)]
	return w
}

func (w *estate) fault(format string, args ...any) {
	if len(w.faults) < 20 {
		w.faults = append(w.faults, fmt.Sprintf("%v: ", w.now.Sub(0))+fmt.Sprintf(format, args...))
	}
}

// begin begins a life of a host.
func (w *estate) begin(h *host, name string, life uint64) {
	strategy, err := local.New(w.strategy)
	if err != nil {
		panic(err)
	}
	slots := 1 + w.IntN(2)
	*h = host{peer: Peer{name, life}, runs: make([]*turn, slots), heard: w.now, sent: map[string]int{}, left: w.IntN(60)}
	o := Options{Self: h.peer, Slots: slots, Strategy: strategy, Limits: Limits{Losses: 1 << 30, Batch: 1 + w.IntN(5)}, Central: w.strategy.Central()}
	if w.durable {
		o.Account = w.own(name, h.peer)
	}
	h.machine = NewMember(o)
	w.roster = append(w.roster, h.peer)
	w.newRoster()
}

// own makes a life the owner of an account.
func (w *estate) own(name string, owner Peer) *Store {
	r := NewRecovery(Limits{Losses: 1 << 30})
	for _, b := range w.logs[name] {
		if _, err := r.Take(b); err != nil {
			w.fault("log of %s: %v", name, err)
		}
	}
	s := r.Own(owner, false)
	w.owners[name] = owner
	w.logs[name] = append(w.logs[name], (&Batch{Owner: owner, Number: 1, Phase: 1, Entries: s.TakeLog()}).Append(nil))
	return s
}

func (w *estate) newRoster() {
	slices.SortFunc(w.roster, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	roster := slices.Clone(w.roster)
	for _, h := range w.hosts {
		if !h.dead {
			h.orders = append(h.orders, func(h *host) {
				w.step(h, &Input{Kind: InRoster, Roster: roster})
				for _, name := range slices.Sorted(maps.Keys(w.owners)) {
					owner := w.owners[name]
					if len(roster) > 0 && roster[0] == h.peer && !slices.Contains(w.roster, owner) && !slices.ContainsFunc(roster, func(p Peer) bool { return p.Name == name }) && h.machine.accounts.findAccount(name) < 0 {
						w.step(h, &Input{Kind: InAdopt, ID: name, Account: w.own(name, h.peer)})
					}
				}
			})
			h.orderAt = w.now.Add(time.Duration(w.IntN(100)) * time.Millisecond)
		}
	}
}

// begun are the slots that have begun a run since it was called last, before the log has it.
func (h *host) begun() (list []int) {
	before := h.taken
	h.taken = nil
	for i := range h.machine.slots {
		s := &h.machine.slots[i]
		if is := s.isRunning(); is && (i >= len(before) || before[i] != s.id()) {
			list = append(list, i)
		}
		h.taken = append(h.taken, leaseID{})
		if s.isRunning() {
			h.taken[i] = s.id()
		}
	}
	return list
}

func (w *estate) step(h *host, in *Input) {
	h.machine.Step(w.now, in, &h.out)
	w.twist(h)
	h.told = h.out.Told
	for _, i := range h.begun() {
		if l := &h.machine.slots[i].Lease; h.machine.leave.gives && (h.drains || !l.isBound()) { // Others take work.
			w.fault("%v: object %s begins to run, although this member takes no work", h.peer, l.Task.ID)
		}
	}
	if h.out.Err != nil {
		w.fault("%v: %v", h.peer, h.out.Err)
	}
	h.writes = append(h.writes, h.out.Log...)
	for done := false; !done; {
		out, runs := h.out, slices.Clone(h.out.Runs)
		for _, f := range out.Frames {
			w.send(h, f)
		}
		for _, i := range out.Stops {
			if h.runs[i] != nil {
				h.runs[i].stopped = true
			}
		}
		for _, r := range out.Results {
			w.judgeFailure(&r)
		}
		for _, l := range out.Lost {
			h.lost += l.Objects
		}
		if out.Over {
			w.begin(h, h.peer.Name, h.peer.Life+1)
			return
		}
		for _, r := range runs {
			w.judgeRun(h, &r)
			h.runs[r.Slot] = &turn{Run: r, until: w.now.Add(time.Duration(w.IntN(40)) * time.Millisecond)}
		}
		done = !h.machine.Release(&h.out)
	}
}

// judgeRun: nobody runs an object twice at one fence, and fences rise.
func (w *estate) judgeRun(h *host, r *Run) {
	id := r.Task.ID
	if w.fences[id] == nil {
		w.fences[id] = map[uint64]string{}
	}
	if before := w.fences[id][r.Fence]; before != "" {
		w.fault("%v: object %s of %v runs with the fence %d, as before at %s", h.peer, id, r.Account, r.Fence, before)
	}
	w.fences[id][r.Fence] = fmt.Sprintf("%v, %v, of %v", h.peer, w.now.Sub(0), r.Account)
}

func (w *estate) judgeFailure(r *Result) {
	if w.failed[r.ID] && !w.durable || !w.bad[r.ID] { // Another life reads it again.
		w.fault("message %s has failed, and should not, or twice: %s", r.ID, r.Error)
	}
	w.failed[r.ID] = true
}

// send puts a copy of a frame on its way, or two, or none.
func (w *estate) send(h *host, f Frame) {
	if err := f.Check(); err != nil {
		w.fault("a frame that may not be sent: %v", err)
	}
	if f = f.Kept(); !w.bend(h, &f) {
		return
	}
	if read, err := new(Reader).Read(f.Append(nil)); err != nil {
		w.fault("%v", err)
	} else {
		f = read.Kept()
	}
	if f.Parcel != nil && len(f.Parcel.Leases) > 0 {
		w.parcels++
	}
	for copies := 1; copies > 0; copies-- {
		if w.Float64() < w.loss {
			continue
		}
		delay := time.Duration(w.IntN(30)) * time.Millisecond
		if w.loss > 0 && w.IntN(20) == 0 {
			delay = time.Duration(w.IntN(4000)) * time.Millisecond
		}
		if w.loss > 0 && w.IntN(10) == 0 && copies == 1 {
			copies++
		}
		w.flights = append(w.flights, flight{w.now.Add(delay), f})
	}
}

// serve is the function of an object.
func (w *estate) serve(h *host, slot int) {
	t := h.runs[slot]
	h.runs[slot] = nil
	step := Step{Record: Record{Fate: Kept, Pinned: w.IntN(10) == 0}}
	var s state
	if len(t.Task.Body) > 0 {
		if err := json.Unmarshal(t.Task.Body, &s); err != nil {
			w.fault("%s: %v", t.Task.ID, err)
		}
	}
	for _, m := range t.Inbox[:1+w.IntN(len(t.Inbox))] {
		var l letter
		if m.Func == "new" {
			s.Sent = map[string]int{}
		} else if err := json.Unmarshal(m.Body, &l); err != nil {
			w.fault("%s: %v", m.ID, err)
		} else {
			s.Log = append(s.Log, l)
		}
		if l.Effect == "bad" {
			w.step(h, &Input{Kind: InDone, Slot: slot, Step: &Step{Record: Record{Fate: Failed, Error: "no luck"}}})
			return
		}
		if step.Record.Served++; l.Hops > 0 {
			to := w.objects[w.IntN(len(w.objects))]
			child := w.message(t.Task.ID, to, s.Sent[to]+1, l.Hops-1)
			step.Record.Children = append(step.Record.Children, child)
			if s.Sent[to]++; w.bad[child.ID] {
				s.Sent[to]--
			}
		}
	}
	step.Record.Rest, _ = json.Marshal(s)
	w.step(h, &Input{Kind: InDone, Slot: slot, Step: &step})
}

func (w *estate) message(from, to string, n, hops int) Task {
	l := letter{From: from, N: n, Hops: hops}
	w.ids++
	t := Task{ID: fmt.Sprint("m", w.ids), Func: "take", For: to}
	if w.IntN(60) == 0 {
		w.bad[t.ID], l.Effect = true, "bad"
	}
	t.Body, _ = json.Marshal(l)
	return t
}

// program sends messages.
func (w *estate) program(h *host) {
	switch {
	case h.left > 0 && w.IntN(2) == 0:
		h.left--
		to := w.objects[w.IntN(len(w.objects))]
		if w.IntN(3) == 0 {
			to = w.objects[0]
		}
		t := w.message(h.peer.String(), to, h.sent[to]+1, w.IntN(4))
		if w.bad[t.ID] {
			h.sent[to]--
		}
		h.sent[to]++
		w.step(h, &Input{Kind: InPut, Task: &t, Key: float64(w.IntN(3))})
	case h.left == 0 && !h.told.Settled:
		w.step(h, &Input{Kind: InSettled, Settled: true})
	case w.IntN(100) == 0 && len(w.roster) > 1:
		id := w.objects[w.IntN(len(w.objects))]
		if o := h.machine.accounts.own.account.objects[id]; o != nil && !o.box.pinned && len(o.task.Object.At) == 0 {
			to := w.roster[w.IntN(len(w.roster))].Name
			if to == h.peer.Name && !h.machine.leave.away[h.machine.holder] || slices.ContainsFunc(h.machine.peers, func(p peer) bool { return p.Name == to && !p.away }) {
				w.moves++
				w.step(h, &Input{Kind: InMove, ID: id, To: to})
			}
		}
	default:
	}
}

func (w *estate) trouble() {
	h := w.hosts[w.IntN(len(w.hosts))]
	switch dice := w.IntN(300); {
	case h.dead:
	case dice < 2 && (w.durable || h != w.hosts[0]): // With it all objects would die.
		h.dead = true
		w.kills++
	case dice < 4 && (w.durable || h != w.hosts[0]):
		h.asleep = w.now.Add(time.Duration(w.IntN(2500)) * time.Millisecond)
	case dice < 6 && (w.durable || h != w.hosts[0]):
		h.cut = w.now.Add(time.Duration(w.IntN(2500)) * time.Millisecond)
	case dice < 7 && h != w.hosts[0]:
		h.drains = true
		w.step(h, &Input{Kind: InDrain})
	case dice < 15 && w.withdraws:
		w.withdraw(h)
	default:
	}
}

// withdraw has a host take no work, or take work again.
func (w *estate) withdraw(h *host) {
	if h.away = !h.away; h.away {
		w.withdrawals++
	}
	w.step(h, &Input{Kind: InWithdraw, Active: !h.away})
}

func (w *estate) pulse() {
	w.now = w.now.Add(pulse)
	var due []flight
	w.flights = slices.DeleteFunc(w.flights, func(f flight) bool {
		if f.at <= w.now {
			due = append(due, f)
		}
		return f.at <= w.now
	})
	for _, f := range due {
		at := slices.IndexFunc(w.hosts, func(h *host) bool { return h.peer == f.frame.To && !h.dead })
		from := slices.IndexFunc(w.hosts, func(h *host) bool { return h.peer == f.frame.From && !h.dead })
		switch {
		case at < 0 || w.hosts[at].cut > w.now || from >= 0 && w.hosts[from].cut > w.now:
		case w.hosts[at].asleep > w.now:
			w.flights = append(w.flights, flight{w.hosts[at].asleep, f.frame})
		default:
			w.step(w.hosts[at], &Input{Kind: InFrame, Frame: &f.frame})
		}
	}
	for _, h := range w.hosts {
		if h.dead || h.asleep > w.now {
			continue
		}
		for len(h.orders) > 0 && h.orderAt <= w.now && h.cut <= w.now {
			do := h.orders[0]
			h.orders = h.orders[1:]
			do(h)
		}
		w.write(h)
		if h.out.Wake <= w.now {
			w.step(h, &Input{Kind: InTick})
		}
		for i := range h.runs {
			if t := h.runs[i]; i < len(h.runs) && t != nil && t.until <= w.now {
				w.serve(h, i)
			}
		}
		if !w.ended {
			w.program(h)
		}
	}
	w.synchronizer()
}

// write appends to the logs, if this host is their owner.
func (w *estate) write(h *host) {
	if len(h.writes) == 0 || w.IntN(3) == 0 || h.cut > w.now {
		return
	}
	list := h.writes
	h.writes = nil
	life := h.peer
	for _, a := range list {
		if h.peer != life {
			return
		}
		if w.owners[a.Account] != h.peer {
			if a.Account != h.peer.Name { // Else it will hear that it is out.
				w.step(h, &Input{Kind: InDisown, ID: a.Account})
			}
			continue
		}
		b := Batch{Owner: h.peer, Number: a.Ticket, Phase: a.Phase, Open: a.Open, Objects: a.Objects, Entries: a.Entries}
		w.logs[a.Account] = append(w.logs[a.Account], b.Append(nil))
		w.step(h, &Input{Kind: InDurable, ID: a.Account, Ticket: a.Ticket})
	}
}

// synchronizer drops silent members, lets the dead come back, and declares the end.
func (w *estate) synchronizer() {
	for _, h := range w.hosts {
		if !h.dead && h.asleep <= w.now && h.cut <= w.now {
			h.heard = w.now
		}
		if i := slices.Index(w.roster, h.peer); i >= 0 && w.now.Sub(h.heard) > quiet {
			w.roster = slices.Delete(w.roster, i, i+1)
			w.newRoster()
		} else if i < 0 && h.dead && w.IntN(50) == 0 {
			w.begin(h, h.peer.Name, h.peer.Life+1)
		}
	}
	if len(w.roster) == 0 || w.ended {
		return
	}
	for _, p := range w.roster {
		i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.peer == p && !h.dead })
		if i < 0 || !w.hosts[i].told.Idle || !w.hosts[i].told.Settled || w.hosts[i].left > 0 || len(w.hosts[i].orders) > 0 {
			return
		}
	}
	if w.durable { // As a look into the logs finds.
		for name, owner := range w.owners {
			if !slices.Contains(w.roster, owner) || w.open(name) > 0 {
				return
			}
		}
	}
	w.ended = true
}

func (w *estate) open(name string) int {
	for _, h := range w.hosts {
		if h.peer == w.owners[name] {
			s := h.machine.accounts.own
			if i := h.machine.accounts.findAccount(name); i >= 0 {
				s = h.machine.accounts.taken[i].store
			}
			return s.account.counts.Open
		}
	}
	return 1
}

// judge: each object has served the messages of each sender in their order, none twice and none left out.
func (w *estate) judge() {
	sent := map[string]int{}
	for _, h := range w.hosts {
		if h.dead || !slices.Contains(w.roster, h.peer) {
			continue
		}
		for to, n := range h.sent {
			sent[h.peer.String()+" "+to] = n
		}
	}
	states := map[string]*state{}
	for _, h := range w.hosts {
		h.machine.accounts.eachStore(func(name string, s *Store) {
			if w.durable && w.owners[cmp.Or(name, h.peer.Name)] != h.peer {
				return // Of a process that has it no more.
			}
			for id, o := range s.account.objects {
				if states[id] = new(state); json.Unmarshal(o.task.Body, states[id]) != nil {
					w.fault("object %s has the state %q", id, o.task.Body)
				}
			}
		})
	}
	for id, s := range states {
		last := map[string]int{}
		for _, l := range s.Log {
			w.served++
			if last[l.From]++; l.N != last[l.From] {
				w.fault("object %s has served message %d of %s after %d", id, l.N, l.From, last[l.From]-1)
			}
		}
		for from, n := range sent {
			if who, to, _ := strings.Cut(from, " "); to == id && last[who] != n {
				w.fault("object %s has served %d of %d messages of %s", id, last[who], n, who)
			}
		}
	}
	if len(states) != len(w.objects) {
		w.fault("%d of %d objects are there", len(states), len(w.objects))
	}
}

func (w *estate) live() {
	for i := range 2 + w.IntN(4) {
		w.hosts = append(w.hosts, &host{})
		w.begin(w.hosts[i], fmt.Sprint("n", i), 1)
	}
	for i := range 3 + w.IntN(8) {
		w.objects = append(w.objects, fmt.Sprint("o", i))
	}
	for i, id := range w.objects {
		h := w.hosts[0]
		if w.durable {
			h = w.hosts[w.IntN(len(w.hosts))]
		}
		t := Task{ID: id, Func: "new", Object: &Object{}}
		if w.withdraws && w.IntN(6) == 0 {
			t.Object.At = []string{"n0", "n1"}[:1+w.IntN(2)]
		}
		if i > 0 && w.IntN(2) == 0 {
			t.Object.Near = []string{w.objects[i-1]}
		}
		w.step(h, &Input{Kind: InPut, Task: &t})
	}
	for w.durable && slices.ContainsFunc(w.hosts, func(h *host) bool { return len(h.writes) > 0 }) {
		for _, h := range w.hosts { // What a program was told that it is there.
			w.write(h)
		}
	}
	for w.now < clocksync.Instant(troubles) && !w.ended {
		w.trouble()
		w.pulse()
	}
	w.loss = min(w.loss, 0.02)
	limit := w.now.Add(patience)
	if w.withdraws { // Few members do all.
		limit = limit.Add(3 * patience)
	}
	for !w.ended && w.now < limit && len(w.faults) == 0 {
		w.pulse()
	}
	if !w.ended {
		w.fault("the phase does not end")
		for _, h := range w.hosts {
			w.fault("%v: %+v", h.peer, h.told)
		}
		return
	}
	w.judge()
}

// TestObjects: messages are served once, in the order of their sender, and no two holders have one fence.
func TestObjects(t *testing.T) {
	for _, durable := range []bool{false, true} {
		n := testcount.Of(t, "WORK", 200)
		kills, moves, served, parcels := 0, 0, 0, 0
		for seed := range uint64(n) { //nolint:gosec // Above 0.
			w := newEstate(seed, durable)
			if w.live(); len(w.faults) > 0 {
				t.Fatalf("durable %v, seed %d: %s", durable, seed, strings.Join(w.faults, "\n"))
			}
			kills, moves, served, parcels = kills+w.kills, moves+w.moves, served+w.served, parcels+w.parcels
		}
		t.Logf("durable %v: %d worlds: %d kills, %d moves, %d messages, %d parcels", durable, n, kills, moves, served, parcels)
	}
}

// TestObjectMutants: the judge of TestObjects notices a machine that is wrong.
func TestObjectMutants(t *testing.T) {
	each := func(h *host, do func(s *Store)) { h.machine.accounts.eachStore(func(_ string, s *Store) { do(s) }) }
	for name, one := range map[string]struct {
		durable bool
		bend    func(*host, *Frame) bool
		twist   func(*host)
	}{
		"an object has no new fence": {twist: func(h *host) {
			each(h, func(s *Store) {
				for _, o := range s.account.objects {
					o.lease.handed = false
				}
			})
		}},
		"messages that came before are taken again": {twist: func(h *host) {
			each(h, func(s *Store) { clear(s.account.received) })
		}},
		"a message is over before it is taken": {bend: func(_ *host, f *Frame) bool {
			if f.Posted != nil && f.Posted.Number > 0 {
				p := *f.Posted
				p.Number += 1 << 22
				f.Posted = &p
			}
			return true
		}},
		"a post leaves out its first message": {bend: func(_ *host, f *Frame) bool {
			if f.Post != nil && len(f.Post.Messages) > 1 {
				p := *f.Post
				p.Messages = p.Messages[1:]
				f.Post = &p
			}
			return true
		}},
		"a record leaves out what was served": {bend: func(_ *host, f *Frame) bool {
			if f.Step != nil && f.Step.Record.Served > 0 {
				s := *f.Step
				s.Record.Served--
				f.Step = &s
			}
			return true
		}},
		"an object that was lost on its way is not sent again": {twist: func(h *host) { h.machine.pushes = nil }},
		"messages are passed on before the log has them": {durable: true, twist: func(h *host) {
			for _, one := range h.machine.mails {
				one.ticket = 0
			}
		}},
		"what another life has now is told all the same": {durable: true, twist: func(h *host) {
			if d := h.machine.durable; len(d.pending) > 0 {
				d.pending = d.pending[:0]
			}
		}},
	} {
		noticed(t, name, 2000, func(seed uint64) []string {
			w := newEstate(seed, one.durable)
			if one.bend != nil {
				w.bend = one.bend
			}
			if one.twist != nil {
				w.twist = one.twist
			}
			return faultsOf(w.live, &w.faults)
		})
	}
}

// TestNear: an object that has a place is given only to a member that has a neighbour of it or nothing, and a
// pinned one to nobody. Where it begins is free.
func TestNear(t *testing.T) {
	s := NewStore(Limits{})
	s.self = "ann#1"
	for _, task := range []Task{
		{ID: "o", Func: "new", Object: &Object{Near: []string{"p"}}},
		{ID: "m", Func: "f", For: "o"},
	} {
		if err := s.Put(&task, 0); err != nil {
			t.Fatal(err)
		}
	}
	run := func(pinned bool) {
		t.Helper()
		l, ok := s.handTo("ann#1", 0, nil, nil, nil)
		if outcome, err := s.Record(&Record{ID: "o", On: l.On, Served: 1, Pinned: pinned}, nil); !ok || err != nil || outcome != Counted {
			t.Fatal(l, ok, outcome, err)
		}
		s.claimTask("o", "ann#1")
	}
	if o := s.firstFor("bob#1", []string{"q"}, nil, nil); o == nil {
		t.Error("it has no place yet, and is not given")
	}
	run(false)
	for _, c := range []struct {
		holder string
		has    []string
		want   bool
	}{{"bob#1", []string{"q"}, false}, {"bob#1", []string{"q", "p"}, true}, {"bob#1", nil, true}, {"ann#1", []string{"q"}, true}} {
		if o := s.firstFor(c.holder, c.has, nil, nil); (o != nil) != c.want {
			t.Errorf("%+v: %v", c, o)
		}
	}
	if err := s.Put(&Task{ID: "n", Func: "f", For: "o"}, 0); err != nil {
		t.Fatal(err)
	}
	run(true)
	if o := s.firstFor("bob#1", []string{"p"}, nil, nil); o != nil {
		t.Error("it is pinned, and is given")
	}
	if o := s.firstFor("ann#1", nil, nil, nil); o == nil {
		t.Error("it is pinned here, and does not run")
	}
}

// TestPull: of the objects that may move to a member, the one goes first whose neighbours there attract it most; with
// equal sums the first in the queue.
func TestPull(t *testing.T) {
	s := NewStore(Limits{})
	s.self = "ann#1"
	for _, o := range []Object{{Near: []string{"p"}}, {Near: []string{"p", "q"}, Pull: []float64{0.5, 4}}, {Near: []string{"q", "p"}, Pull: []float64{4}}, {Near: []string{"z"}, Pull: []float64{100}}} {
		if err := s.Put(&Task{ID: strconv.Itoa(len(s.account.objects)), Func: "new", Object: &o}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 { // Each gets a place.
		l, _ := s.handTo("ann#1", 0, nil, nil, nil)
		if outcome, err := s.Record(&Record{ID: l.Task.ID, On: l.On, Served: 1}, nil); outcome != Counted {
			t.Fatal(outcome, err)
		}
		s.claimTask(l.Task.ID, "ann#1")
	}
	for i := range 4 {
		if err := s.Put(&Task{ID: "m" + strconv.Itoa(i), Func: "f", For: strconv.Itoa(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		has  []string
		want string
	}{{[]string{"p"}, "0"}, {[]string{"q"}, "1"}, {[]string{"p", "q"}, "2"}, {[]string{"z", "q"}, "3"}, {nil, "0"}} {
		if o := s.firstFor("bob#1", c.has, nil, nil); o == nil || o.task.ID != c.want {
			t.Errorf("a member with %v gets %+v; want %s", c.has, o, c.want)
		}
	}
	for _, pull := range [][]float64{{1, 2}, {-1}, {math.NaN()}, {math.Inf(1)}} {
		task := Task{ID: "bad", Func: "new", Object: &Object{Near: []string{"p"}, Pull: pull}}
		if err := task.Check(); err == nil || !strings.HasPrefix(err.Error(), `object "bad": its neighbours attract it by [`) {
			t.Errorf("%v: %v", pull, err)
		}
	}
}

// placed makes two members, of which ann has created an object that has run at ann, and has a message for it.
func placed(t *testing.T, stay time.Duration) (a, b *Member, step func(now clocksync.Instant, m *Member, in *Input)) {
	t.Helper()
	strategy, err := local.New(local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	step = func(now clocksync.Instant, m *Member, in *Input) {
		t.Helper()
		if m.Step(now, in, &out); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	a = NewMember(Options{Self: ann, Slots: 1, Strategy: strategy, Stay: stay})
	b = NewMember(Options{Self: bob, Slots: 1, Strategy: strategy, Stay: stay})
	for _, m := range []*Member{a, b} {
		step(0, m, &Input{Kind: InRoster, Roster: []Peer{ann, bob}})
	}
	step(1, a, &Input{Kind: InPut, Task: &Task{ID: "o", Func: "new", Object: &Object{}}})
	step(2, a, &Input{Kind: InDone, Step: &Step{Record: Record{Fate: Kept, Served: 1}}})
	step(3, a, &Input{Kind: InPut, Task: &Task{ID: "x", Func: "f"}}) // It has the slot.
	step(4, a, &Input{Kind: InPut, Task: &Task{ID: "m", Func: "f", For: "o"}})
	return a, b, step
}

// TestPushToNew: an object is brought to the member where it is once that one has told of itself.
func TestPushToNew(t *testing.T) {
	a, _, step := placed(t, 0)
	step(5, a, &Input{Kind: InMove, ID: "o", To: "bob"})
	if len(a.pushes) > 0 {
		t.Errorf("%+v is on its way to a member that was not heard yet", a.pushes)
	}
	step(6, a, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Holds: &Holds{Number: 1}}})
	if len(a.pushes) != 1 || a.pushes[0].id != "o" || a.pushes[0].to != bob {
		t.Errorf("%+v is on its way, want the object", a.pushes)
	}
}

// TestStay: an object that was given to a member does not go back to the member that it came from before its time,
// and may go to others. An object that has not run before may go anywhere.
func TestStay(t *testing.T) {
	for _, c := range []struct {
		about string
		stay  time.Duration
		fresh bool
		at    clocksync.Instant
		to    Peer
		want  bool
	}{
		{"at once, to where it came from", time.Second, false, 10, ann, true},
		{"at once, to another one", time.Second, false, 10, Peer{"cid", 1}, false},
		{"before its time", time.Second, false, clocksync.Instant(time.Second) + 9, ann, true},
		{"after its time", time.Second, false, clocksync.Instant(time.Second) + 10, ann, false},
		{"without a time", 0, false, 10, ann, false},
		{"it had not begun", time.Second, true, 10, ann, false},
	} {
		_, b, step := placed(t, c.stay)
		l := Lease{Task: Task{ID: "o", Func: "new", Object: &Object{}}, On: 1, Inbox: []Message{{ID: "m", Func: "f"}}}
		if c.fresh {
			l.Inbox[0].ID = "o"
		}
		b.peers[0].demand = 7
		step(10, b, &Input{Kind: InFrame, Frame: &Frame{From: ann, To: bob, Phase: 1, Parcel: &Parcel{Demand: 7, Leases: []Parted{{ann, l}}}}})
		b.now = c.at
		if got := b.mustStay("o", c.to.String()); got != c.want {
			t.Errorf("%s: it stays: %v", c.about, got)
		}
	}
}

// TestStayIsKept: neither the member that has put an object nor another one gives it back before its time.
func TestStayIsKept(t *testing.T) {
	for _, stay := range []time.Duration{0, time.Second} {
		a, b, step := placed(t, stay)
		want := 1
		if stay > 0 {
			want = 0
		}
		a.noteArrival(&Lease{Task: Task{ID: "o", Object: &Object{}}}, bob.String())
		var out Output
		a.give(bob, &Demand{Number: 1}, 1, nil, &out)
		if got := len(out.Frames[0].Parcel.Leases); got != want {
			t.Errorf("stay %v: its creator gives %d objects back, want %d", stay, got, want)
		}
		busy := Lease{Task: Task{ID: "x", Func: "f"}, On: 1}
		o := Lease{Task: Task{ID: "o", Func: "new", Object: &Object{}}, On: 1, Key: 1, Inbox: []Message{{ID: "m", Func: "f"}}}
		b.peers[0].demand = 7
		step(10, b, &Input{Kind: InFrame, Frame: &Frame{From: ann, To: bob, Phase: 1, Parcel: &Parcel{Demand: 7, Leases: []Parted{{ann, busy}, {ann, o}}}}})
		out = Output{}
		b.Step(20, &Input{Kind: InFrame, Frame: &Frame{From: ann, To: bob, Phase: 1, Demand: &Demand{Number: 1, Tasks: 1}}}, &out)
		i := slices.IndexFunc(out.Frames, func(f Frame) bool { return f.Parcel != nil })
		if i < 0 || len(out.Frames[i].Parcel.Leases) != want {
			t.Errorf("stay %v: %+v, want a parcel of %d", stay, out.Frames, want)
		}
	}
}

// TestGivenObject: the member that has put an object does not list it among its own once it has given it away, and
// has it at its place again when it comes back on demand.
func TestGivenObject(t *testing.T) {
	a, _, step := placed(t, 0)
	if !slices.Equal(a.has, []string{"o"}) {
		t.Fatalf("it has %q before", a.has)
	}
	var out Output
	a.give(bob, &Demand{Number: 1}, 1, nil, &out)
	if len(a.has) > 0 || len(out.Frames[0].Parcel.Leases) != 1 {
		t.Fatalf("it has given %+v, and has %q", out.Frames, a.has)
	}
	back := out.Frames[0].Parcel.Leases[0]
	a.peers[0].demand = 9
	step(10, a, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Parcel: &Parcel{Demand: 9, Leases: []Parted{back}}}})
	if at := a.accounts.own.account.objects["o"].lease.at; at != ann.String() {
		t.Errorf("it came back on demand, and is at %q", at)
	}
	out = Output{}
	a.give(bob, &Demand{Number: 2}, 1, nil, &out)
	back = out.Frames[0].Parcel.Leases[0]
	step(11, a, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Parcel: &Parcel{Leases: []Parted{back}}}})
	if at := a.accounts.own.account.objects["o"].lease.at; at != "" {
		t.Errorf("bob drains and has sent it back, and it is at %q", at)
	}
}

// waitingAt makes a store of ann whose objects have run at ann and have a message each.
func waitingAt(t *testing.T, objects ...Object) *Store {
	t.Helper()
	s := NewStore(Limits{})
	s.self = "ann#1"
	for i := range objects {
		id := strconv.Itoa(i)
		if err := s.Put(&Task{ID: id, Func: "new", Object: &objects[i]}, 0); err != nil {
			t.Fatal(err)
		}
		o := s.account.objects[id]
		s.handOut(o, s.self, 0)
		if outcome, err := s.Record(&Record{ID: id, On: o.last, Served: 1}, nil); outcome != Counted {
			t.Fatal(outcome, err)
		}
		s.claimTask(id, s.self)
		if err := s.Put(&Task{ID: "m" + id, Func: "f", For: id}, 0); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestBound: an object that is bound to members is given to none of the others, wherever it is.
func TestBound(t *testing.T) {
	s := waitingAt(t, Object{At: []string{"ann"}}, Object{At: []string{"cid"}})
	for _, o := range s.takePushes() {
		s.waiting.pushTask(o) // As if its place were here.
	}
	for holder, want := range map[string]string{"bob#1": "", "ann#1": "0", "cid#7": "1"} {
		got := ""
		if o := s.firstFor(holder, nil, nil, nil); o != nil {
			got = o.task.ID
		}
		if got != want {
			t.Errorf("%s gets the object %q; want %q", holder, got, want)
		}
	}
	s.account.objects["0"].lease.at = ""
	if o := s.firstFor("bob#1", nil, nil, nil); o != nil {
		t.Errorf("it has no place, and bob gets the object %s", o.task.ID)
	}
	s.leaves = true
	if o := s.firstFor("bob#1", nil, nil, nil); o == nil {
		t.Error("ann drains, and the object stays")
	}
}

// TestReportOfWaitingObjects: objects with messages that are bound to members none of which is here.
func TestReportOfWaitingObjects(t *testing.T) {
	s := waitingAt(t, Object{At: []string{"cid", "dan"}}, Object{At: []string{"ann"}}, Object{At: []string{"cid", "bob"}}, Object{})
	strategy, err := local.New(local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := NewMember(Options{Self: Peer{"ann", 1}, Phase: 1, Slots: 1, Strategy: strategy, Account: s})
	m.Step(1, &Input{Kind: InRoster, Roster: []Peer{{"ann", 1}, {"bob", 1}}}, &Output{})
	r := m.Report(2)
	if len(r.Waiting) != 1 || r.Waiting[0].Object != "0" || !slices.Equal(r.Waiting[0].Members, []string{"cid", "dan"}) || r.WaitingMore != 0 || !r.Plausible("ann") {
		t.Errorf("%+v", r)
	}
	r.Waiting[0].Object = strings.Repeat("x", 2000)
	if r.Plausible("ann") {
		t.Error("an object with a name of 2,000 bytes is plausible")
	}
	var many []Object
	for range 20 {
		many = append(many, Object{At: []string{"cid"}})
	}
	if r = NewMember(Options{Self: Peer{"ann", 1}, Phase: 1, Account: waitingAt(t, many...)}).Report(1); len(r.Waiting) != 16 || r.WaitingMore != 4 {
		t.Errorf("%d objects, and %d more", len(r.Waiting), r.WaitingMore)
	}
}

// TestTurns: of objects that always have messages, each runs in turn.
func TestTurns(t *testing.T) {
	s := waitingAt(t, Object{}, Object{}, Object{})
	var order []string
	for i := range 6 {
		l, _ := s.handTo(s.self, 0, nil, nil, nil)
		order = append(order, l.Task.ID)
		if err := s.Put(&Task{ID: "more" + strconv.Itoa(i), Func: "f", For: l.Task.ID}, 0); err != nil {
			t.Fatal(err)
		}
		if outcome, err := s.Record(&Record{ID: l.Task.ID, On: l.On, Served: 1}, nil); outcome != Counted {
			t.Fatal(outcome, err)
		}
		s.claimTask(l.Task.ID, s.self)
	}
	if want := []string{"0", "1", "2", "0", "1", "2"}; !slices.Equal(order, want) {
		t.Errorf("they run as %v; want %v", order, want)
	}
}

// TestNearInOneParcel: the objects of a parcel to a member without objects are neighbours of each other.
func TestNearInOneParcel(t *testing.T) {
	m, out := alone(t, 0, ann, bob)
	m.accounts.own = waitingAt(t, Object{Near: []string{"1"}}, Object{Near: []string{"0", "2"}}, Object{Near: []string{"9"}})
	m.give(bob, &Demand{Number: 1}, 3, nil, out)
	var got []string
	for _, l := range out.Frames[len(out.Frames)-1].Parcel.Leases {
		got = append(got, l.Lease.Task.ID)
	}
	if want := []string{"0", "1"}; !slices.Equal(got, want) {
		t.Errorf("bob gets %v; want %v", got, want)
	}
}

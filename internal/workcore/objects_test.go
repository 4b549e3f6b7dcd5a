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

// state is that of an object of a world: the messages that it has served, and how many it has sent.
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
	bend     func(*host, *Frame) bool
	twist    func(*host)
	ids      int

	kills, moves, served, parcels int
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
	o := Options{Self: h.peer, Slots: slots, Strategy: strategy, Limits: Limits{Losses: 1 << 30, Batch: 1 + w.IntN(5)}}
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
					if len(roster) > 0 && roster[0] == h.peer && !slices.Contains(w.roster, owner) && !slices.ContainsFunc(roster, func(p Peer) bool { return p.Name == name }) && h.machine.accounts.find(name) < 0 {
						w.step(h, &Input{Kind: InAdopt, ID: name, Account: w.own(name, h.peer)})
					}
				}
			})
			h.orderAt = w.now.Add(time.Duration(w.IntN(100)) * time.Millisecond)
		}
	}
}

func (w *estate) step(h *host, in *Input) {
	h.machine.Step(w.now, in, &h.out)
	w.twist(h)
	h.told = h.out.Told
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
		if o := h.machine.accounts.own.account.objects[id]; o != nil && !o.box.pinned {
			to := w.roster[w.IntN(len(w.roster))].Name
			if to == h.peer.Name || slices.ContainsFunc(h.machine.peers, func(p peer) bool { return p.Name == to }) {
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
		w.step(h, &Input{Kind: InDrain})
	default:
	}
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

// synchronizer drops who is not heard of, lets the dead come back, and declares the end.
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
			if i := h.machine.accounts.find(name); i >= 0 {
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
		h.machine.accounts.each(func(name string, s *Store) {
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
	for limit := w.now.Add(patience); !w.ended && w.now < limit && len(w.faults) == 0; {
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
	each := func(h *host, do func(s *Store)) { h.machine.accounts.each(func(_ string, s *Store) { do(s) }) }
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
		l, ok := s.handTo("ann#1", 0, nil)
		if outcome, err := s.Record(&Record{ID: "o", On: l.On, Served: 1, Pinned: pinned}, nil); !ok || err != nil || outcome != Counted {
			t.Fatal(l, ok, outcome, err)
		}
		s.claim("o", "ann#1")
	}
	if o := s.firstFor("bob#1", []string{"q"}); o == nil {
		t.Error("it has no place yet, and is not given")
	}
	run(false)
	for _, c := range []struct {
		holder string
		has    []string
		want   bool
	}{{"bob#1", []string{"q"}, false}, {"bob#1", []string{"q", "p"}, true}, {"bob#1", nil, true}, {"ann#1", []string{"q"}, true}} {
		if o := s.firstFor(c.holder, c.has); (o != nil) != c.want {
			t.Errorf("%+v: %v", c, o)
		}
	}
	if err := s.Put(&Task{ID: "n", Func: "f", For: "o"}, 0); err != nil {
		t.Fatal(err)
	}
	run(true)
	if o := s.firstFor("bob#1", []string{"p"}); o != nil {
		t.Error("it is pinned, and is given")
	}
	if o := s.firstFor("ann#1", nil); o == nil {
		t.Error("it is pinned here, and does not run")
	}
}

// TestBound: an object that is bound to the member of its account is given to no other one, unless that drains.
func TestBound(t *testing.T) {
	s := NewStore(Limits{})
	s.self = "ann#1"
	if err := s.Put(&Task{ID: "o", Func: "new", Object: &Object{At: []string{"ann"}}}, 0); err != nil {
		t.Fatal(err)
	}
	for _, o := range s.takePushes() { // As the member does that finds itself among those of At.
		o.lease.at = s.self
		s.enqueue(o)
	}
	if o := s.firstFor("bob#1", nil); o != nil {
		t.Error("it is bound to another member, and is given")
	}
	if o := s.firstFor("ann#1", nil); o == nil {
		t.Error("it is bound to this member, and does not run here")
	}
	if s.leaves = true; s.firstFor("bob#1", nil) == nil {
		t.Error("its member drains, and it is not given")
	}
}

// TestReturn: an object does not go back to the member where it ran before, from its account nor from its holder, until it
// has stayed for 10 s. It goes to others at once.
func TestReturn(t *testing.T) {
	s := NewStore(Limits{})
	s.self = "ann#1"
	if err := s.Put(&Task{ID: "o", Func: "new", Object: &Object{}}, 0); err != nil {
		t.Fatal(err)
	}
	serve := func(holder string) {
		t.Helper()
		l, ok := s.handTo(holder, 1, nil)
		if outcome, err := s.Record(&Record{ID: "o", On: l.On, Served: 1}, nil); !ok || err != nil || outcome != Counted {
			t.Fatal(l, ok, outcome, err)
		}
		s.claim("o", holder)
		if err := s.Put(&Task{ID: "m" + strconv.FormatUint(s.puts, 10), Func: "f", For: "o"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	serve("bob#1")
	s.now += clocksync.Instant(time.Second)
	o := s.account.objects["o"]
	s.enqueue(o) // As for a member that waits no longer for its holder.
	serve("ann#1")
	for _, c := range []struct {
		after  time.Duration
		holder Peer
		want   bool
	}{{0, Peer{"bob", 1}, false}, {0, Peer{"bob", 2}, true}, {0, Peer{"cid", 1}, true}, {10*time.Second - 1, Peer{"bob", 1}, false}, {10 * time.Second, Peer{"bob", 1}, true}} {
		s.now = clocksync.Instant(time.Second + c.after)
		if got := s.firstFor(c.holder.String(), nil) != nil; got != c.want {
			t.Errorf("%+v: the account gives it: %t", c, got)
		}
		l := s.leaseOf(o)
		if got := l.mayMove(c.holder, nil); got != c.want {
			t.Errorf("%+v: its holder gives it: %t", c, got)
		}
	}
	s.now = clocksync.Instant(time.Second)
	if o.lease.at = ""; s.firstFor("bob#1", nil) != nil {
		t.Error("it is lost on the way, and goes back")
	}
	o.lease.at = "ann#1"
	if s.vacate("ann#1"); s.firstFor("bob#1", nil) == nil {
		t.Error("its holder is gone, and it goes nowhere")
	}
	l := s.leaseOf(o)
	l.Was = strings.Repeat("b", MaxName+25)
	want := fmt.Sprintf("the lease of object \"o\" names a member of %d bytes that it came from, and at most %d are allowed", MaxName+25, MaxName+24)
	if err := (&Parcel{Leases: []Parted{{Peer{"ann", 1}, l}}}).check(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestTurns: objects with messages run in turn, also if one always has more.
func TestTurns(t *testing.T) {
	s := NewStore(Limits{Batch: 1})
	s.self = "ann#1"
	for _, id := range []string{"a", "b", "c"} {
		if err := s.Put(&Task{ID: id, Func: "new", Object: &Object{}}, 0); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := s.Put(&Task{ID: id + strconv.Itoa(i), Func: "f", For: id}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	var turns []string
	for range 9 {
		l, _ := s.handTo("ann#1", 0, nil)
		turns = append(turns, l.Task.ID)
		if outcome, err := s.Record(&Record{ID: l.Task.ID, On: l.On, Served: 1}, nil); outcome != Counted {
			t.Fatal(outcome, err)
		}
		s.claim(l.Task.ID, "ann#1")
	}
	if got := strings.Join(turns, ""); got != "abcabcabc" {
		t.Errorf("they run in the order %s", got)
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
		l, _ := s.handTo("ann#1", 0, nil)
		if outcome, err := s.Record(&Record{ID: l.Task.ID, On: l.On, Served: 1}, nil); outcome != Counted {
			t.Fatal(outcome, err)
		}
		s.claim(l.Task.ID, "ann#1")
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
		if o := s.firstFor("bob#1", c.has); o == nil || o.task.ID != c.want {
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

// generous gives whatever waits, and never asks.
type generous struct{}

func (generous) Look(_ clocksync.Instant, _ *local.View, to []local.Demand) ([]local.Demand, clocksync.Instant) {
	return to, clocksync.MaxInstant
}

func (generous) Answer(_ clocksync.Instant, v *local.View, _ local.Demand) local.Share {
	return local.Share{Tasks: v.Waiting}
}

// TestGive: what a member gives counts as there for what follows in the parcel, and it knows that it has it no more. While
// it asks itself it gives no objects, unless it drains.
func TestGive(t *testing.T) {
	for _, c := range []struct {
		name         string
		asks, drains bool
		want         string
	}{{"it does not ask", false, false, "o p"}, {"it asks", true, false, ""}, {"it asks and drains", true, true, "o p q"}} {
		m, out := alone(t, 1, ann, bob)
		m.opts.Strategy = generous{}
		for _, o := range []Task{
			{ID: "o", Func: "new", Object: &Object{}}, {ID: "p", Func: "new", Object: &Object{Near: []string{"o"}}}, {ID: "q", Func: "new", Object: &Object{Near: []string{"z"}}},
		} {
			m.Step(1, &Input{Kind: InPut, Task: &o}, out)
			m.Step(1, &Input{Kind: InDone, Step: &Step{Record: Record{Fate: Kept, Served: 1}}}, out)
		}
		m.Step(1, put("long"), out)
		for _, to := range []string{"o", "p", "q"} {
			m.Step(1, &Input{Kind: InPut, Task: &Task{ID: "m" + to, Func: "f", For: to}}, out)
		}
		if got := strings.Join(m.Objects(), " "); got != "o p q" {
			t.Fatalf("%s: it has %s", c.name, got)
		}
		if c.asks {
			m.demand++
			m.peers[0].demand, m.peers[0].deadline = m.demand, clocksync.MaxInstant
		}
		if c.drains {
			m.Step(1, &Input{Kind: InDrain}, out)
		}
		m.Step(1, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Demand: &Demand{Number: 1, Tasks: 9}}}, out)
		var got []string
		for _, f := range out.Frames {
			if f.Parcel != nil {
				for _, l := range f.Parcel.Leases {
					got = append(got, l.Lease.Task.ID)
				}
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != c.want || len(m.Objects()) != 3-len(got) {
			t.Errorf("%s: it gives %q and has %q, want %s", c.name, got, m.Objects(), c.want)
		}
	}
}

// TestMoveForgets: a member that has an object of its own moved knows that it has it no more.
func TestMoveForgets(t *testing.T) {
	m, out := alone(t, 1, ann, bob)
	m.Step(1, &Input{Kind: InPut, Task: &Task{ID: "o", Func: "new", Object: &Object{}}}, out)
	m.Step(1, &Input{Kind: InDone, Step: &Step{Record: Record{Fate: Kept, Served: 1}}}, out)
	m.Step(1, &Input{Kind: InMove, ID: "o", To: "bob"}, out)
	if out.Err != nil || !m.HasObject("o") {
		t.Fatal(out.Err, m.Objects()) // It moves with its next message.
	}
	m.Step(1, &Input{Kind: InPut, Task: &Task{ID: "m", Func: "f", For: "o"}}, out)
	if m.HasObject("o") || len(m.has) > 0 {
		t.Errorf("it has %q, and tells of %q", m.Objects(), m.has)
	}
}

// TestGotBack: an object of the own account that another member has given to this one is here from then on, and not anywhere.
func TestGotBack(t *testing.T) {
	m, out := alone(t, 1, ann, bob)
	m.Step(1, &Input{Kind: InPut, Task: &Task{ID: "o", Func: "new", Object: &Object{Near: []string{"p"}}}}, out)
	m.Step(1, &Input{Kind: InDone, Step: &Step{Record: Record{Fate: Kept, Served: 1}}}, out)
	m.Step(1, &Input{Kind: InMove, ID: "o", To: "bob"}, out)
	m.Step(1, put("long"), out)
	m.Step(1, &Input{Kind: InPut, Task: &Task{ID: "m", Func: "f", For: "o"}}, out)
	i := slices.IndexFunc(out.Frames, func(f Frame) bool { return f.Parcel != nil })
	if i < 0 {
		t.Fatalf("it is not brought to bob: %+v", out.Frames)
	}
	l := out.Frames[i].Parcel.Leases[0]
	m.demand++
	m.peers[0].demand, m.peers[0].deadline = m.demand, clocksync.MaxInstant
	m.Step(2, &Input{Kind: InFrame, Frame: &Frame{From: bob, To: ann, Phase: 1, Parcel: &Parcel{Demand: m.demand, Leases: []Parted{l}}}}, out)
	s := m.accounts.own
	if o := s.account.objects["o"]; o.lease.at != "ann#1" || s.firstFor("cid#1", []string{"q"}) != nil || s.firstFor("cid#1", []string{"p"}) == nil {
		t.Errorf("it is at %q", o.lease.at)
	}
}

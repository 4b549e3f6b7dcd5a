package workcore

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

// pairOf are two members of a space whose strategy is central. Frames between them arrive at once, in their order.
type pairOf struct {
	t    *testing.T
	now  clocksync.Instant
	list []*Member
	runs [][]Run
}

func newPair(t *testing.T) *pairOf {
	t.Helper()
	p := &pairOf{t: t, runs: make([][]Run, 2)}
	roster := []Peer{{"a", 1}, {"b", 1}}
	for _, self := range roster {
		strategy, err := local.New(local.Config{Kind: local.Greedy})
		if err != nil {
			t.Fatal(err)
		}
		p.list = append(p.list, NewMember(Options{Self: self, Slots: 1, Strategy: strategy, Central: true}))
	}
	for i := range roster {
		p.step(i, &Input{Kind: InRoster, Roster: roster})
	}
	p.pass(500 * time.Millisecond) // Both have told of themselves.
	return p
}

// step makes a step of a member, and those that follow from its frames.
func (p *pairOf) step(i int, in *Input) {
	p.t.Helper()
	var out Output
	p.list[i].Step(p.now, in, &out)
	if out.Err != nil {
		p.t.Fatal(out.Err)
	}
	p.runs[i] = append(p.runs[i], slices.Clone(out.Runs)...)
	for _, f := range out.Frames {
		f = f.Kept()
		p.step(1-i, &Input{Kind: InFrame, Frame: &f})
	}
}

func (p *pairOf) pass(d time.Duration) {
	p.t.Helper()
	for end := p.now.Add(d); p.now < end; {
		p.now = min(end, p.now.Add(50*time.Millisecond))
		for i := range p.list {
			p.step(i, &Input{Kind: InTick})
		}
	}
}

// serve has a member run what it has begun for a time, and send from its objects to others.
func (p *pairOf) serve(i int, d time.Duration, record Record, to ...string) (id string) {
	p.t.Helper()
	if len(p.runs[i]) == 0 {
		p.t.Fatalf("member %d runs nothing", i)
	}
	r := p.runs[i][0]
	p.runs[i] = p.runs[i][1:]
	p.pass(d)
	record.Served, record.Rest = len(r.Inbox), []byte("state")
	for k, object := range to {
		record.Children = append(record.Children, Task{ID: fmt.Sprint("m", p.now, k), Func: "say", For: object})
	}
	p.step(i, &Input{Kind: InDone, Slot: r.Slot, Step: &Step{Record: record}})
	return r.Task.ID
}

func (p *pairOf) create(i int, id string, o Object) {
	p.t.Helper()
	p.step(i, &Input{Kind: InPut, Task: &Task{ID: id, Func: "make", Object: &o}})
}

func (p *pairOf) say(i int, id string) {
	p.t.Helper()
	p.step(i, &Input{Kind: InPut, Task: &Task{ID: fmt.Sprint("s", p.now, id), Func: "say", For: id}})
}

func (p *pairOf) told(i int) *Load { return p.list[i].makeTold().Load }

func (p *pairOf) order(i int, id, to string) {
	p.t.Helper()
	p.step(i, &Input{Kind: InOrders, Orders: []Order{{ObjectNumber(id), to}}})
}

// TestMeter: a member tells for how much of a second each object runs, or the weight that it was created with, and what it
// sends to other objects; older windows count half.
func TestMeter(t *testing.T) {
	p := newPair(t)
	p.create(0, "o/1", Object{})
	p.serve(0, 250*time.Millisecond, Record{}, "o/2", "o/2", GroupOf("g"))
	p.pass(750 * time.Millisecond)
	l := p.told(0)
	if l.Slots != 1 || !slices.Equal(l.Objects, []int64{ObjectNumber("o/1")}) || !slices.Equal(l.Weights, []float64{0.25}) || !slices.Equal(l.Names, []string{"o/1"}) ||
		!slices.Equal(l.Senders, l.Objects) || !slices.Equal(l.Receivers, []int64{ObjectNumber("o/2")}) || !slices.Equal(l.Volumes, []float64{2}) {
		t.Errorf("%+v", l)
	}
	p.pass(time.Second)
	if l = p.told(0); !slices.Equal(l.Weights, []float64{0.125}) || !slices.Equal(l.Volumes, []float64{1}) {
		t.Errorf("after a window without a run: %+v", l)
	}
	p.say(0, "o/1")
	p.pass(1500 * time.Millisecond) // It runs all the time.
	if l = p.told(0); len(l.Weights) != 1 || math.Abs(l.Weights[0]-(0.125+1)/2) > 1e-9 {
		t.Errorf("while it runs: %+v", l)
	}
	p.serve(0, 0, Record{})
	p.step(0, &Input{Kind: InPut, Task: &Task{ID: "o/3", Func: "make", Weight: 7, Object: &Object{}}})
	p.serve(0, time.Second, Record{})
	p.pass(time.Second)
	if l = p.told(0); !slices.Equal(l.Names, []string{"o/3", "o/1"}) || l.Weights[0] != 7 {
		t.Errorf("with a declared weight: %+v", l)
	}
	for range 30 {
		p.pass(time.Second)
	}
	if l = p.told(0); len(l.Objects)+len(l.Senders) > 0 {
		t.Errorf("long after its last run: %+v", l)
	}
	p.step(0, &Input{Kind: InDrain})
	if l = p.told(0); l.Slots != 0 {
		t.Errorf("while it drains: %+v", l)
	}
}

// TestMeterIsBounded: of more objects and pairs the largest are reported, with as many names as have
// room.
func TestMeterIsBounded(t *testing.T) {
	m, here := newMeter(), map[string]atHand{}
	for i := range 2 * MaxTold {
		id := fmt.Sprintf("%03d\x00%s", i, strings.Repeat("x", 40))
		here[id] = atHand{}
		m.weights[id] = float64(1 + i)
		m.volumes[pair{id, "other"}] = float64(1 + i)
	}
	l := m.tell(1, here)
	if len(l.Objects) != MaxTold || l.Weights[0] != 2*MaxTold || l.Weights[MaxTold-1] != MaxTold+1 || len(l.Senders) != MaxTold || l.Volumes[MaxTold-1] != MaxTold+1 {
		t.Errorf("%+v", l)
	}
	if len(l.Names) != MaxLabels/44 || l.Names[0] != "" {
		t.Errorf("names %q: none can be printed", l.Names)
	}
	var task Task
	for i := range maxMetered + 9 {
		task.ID = strconv.Itoa(i)
		m.noteRun(0, 0, &task, []Task{{For: "p"}})
	}
	if len(m.busy) != maxMetered || len(m.sent) != maxMetered {
		t.Errorf("%d objects and %d pairs are measured", len(m.busy), len(m.sent))
	}
	for i := range 2 * maxDeclined {
		m.decline(0, strconv.Itoa(i), refusedPinned)
	}
	if l = m.tell(1, here); len(l.Refused) != maxDeclined || l.Refused[maxDeclined-1] != ObjectNumber(strconv.Itoa(2*maxDeclined-1)) {
		t.Errorf("%+v", l)
	}
}

// TestOrders: a member has an object go elsewhere, be its account here or there, and be it busy; a pinned or bound object
// stays, and the member tells why for a while.
func TestOrders(t *testing.T) {
	p := newPair(t)
	p.create(0, "o/1", Object{})
	p.serve(0, time.Millisecond, Record{})
	p.pass(time.Second)
	p.order(0, "o/1", "b")
	if l := p.told(0); len(l.Objects)+len(l.Refused) > 0 {
		t.Errorf("it is told although it has gone: %+v", l)
	}
	p.say(0, "o/1")
	if id := p.serve(1, time.Millisecond, Record{}); id != "o/1" {
		t.Errorf("b has run %s", id)
	}
	p.say(0, "o/1") // It runs at b, whose account it is not.
	p.pass(time.Second)
	if l := p.told(1); !slices.Equal(l.Names, []string{"o/1"}) {
		t.Fatalf("b tells %+v", l)
	}
	p.order(1, "o/1", "a")
	p.serve(1, time.Millisecond, Record{})
	p.say(1, "o/1")
	if p.serve(0, time.Millisecond, Record{}); len(p.runs[1]) > 0 || len(p.told(1).Objects) > 0 {
		t.Errorf("b runs %+v and tells %+v", p.runs[1], p.told(1))
	}
	p.pass(time.Second)
	p.order(0, "o/1", "c")
	p.order(0, "o/9", "b")
	p.say(0, "o/1")
	p.serve(0, time.Millisecond, Record{Pinned: true})
	p.create(0, "o/2", Object{At: []string{"a"}})
	p.serve(0, time.Millisecond, Record{})
	p.pass(time.Second)
	if l := p.told(0); !slices.Equal(l.Reasons, []string{refusedMember}) || !slices.Equal(l.Refused, []int64{ObjectNumber("o/1")}) {
		t.Errorf("%+v", l)
	}
	p.order(0, "o/1", "b")
	p.order(0, "o/2", "b")
	if l := p.told(0); !slices.Equal(l.Reasons, []string{refusedPinned, refusedBound}) {
		t.Errorf("%+v", l)
	}
	if orders, refused := p.list[0].Ordered(); orders != 5 || refused != 4 {
		t.Errorf("%d orders, of which %d were refused", orders, refused)
	}
	for range 11 {
		p.pass(time.Second)
	}
	if l := p.told(0); len(l.Refused) > 0 {
		t.Errorf("long after the orders: %+v", l)
	}
}

// TestForeignOrders: an account moves an object for the member alone that has it, and frames that cannot be are refused.
func TestForeignOrders(t *testing.T) {
	p := newPair(t)
	p.create(0, "o/1", Object{})
	p.serve(0, time.Millisecond, Record{})
	a, b := p.list[0].opts.Self, p.list[1].opts.Self
	answer := func(o MoveOrder) string {
		var out Output
		p.list[0].Step(p.now, &Input{Kind: InFrame, Frame: &Frame{From: b, To: a, Phase: 1, MoveOrder: &o}}, &out)
		for _, f := range out.Frames {
			if f.MoveAnswer != nil {
				return f.MoveAnswer.Refusal
			}
		}
		return fmt.Sprint("no answer: ", out.Err)
	}
	for _, o := range []MoveOrder{{"o/1", "b"}, {"o/2", "b"}} {
		if got := answer(o); got != refusedGone {
			t.Errorf("%v: %q", o, got)
		}
	}
	for _, f := range []Frame{
		{MoveOrder: &MoveOrder{"", "b"}},
		{MoveOrder: &MoveOrder{"o", ""}},
		{MoveOrder: &MoveOrder{strings.Repeat("o", MaxID+1), "b"}},
		{MoveOrder: &MoveOrder{"o", strings.Repeat("b", MaxName+1)}},
		{MoveAnswer: &MoveAnswer{"", ""}},
		{MoveAnswer: &MoveAnswer{"o", "\x1b[2J"}},
		{MoveOrder: &MoveOrder{"o", "b"}, MoveAnswer: &MoveAnswer{"o", ""}},
	} {
		if f.From, f.To = a, b; f.Check() == nil {
			t.Errorf("%+v %+v passes", f.MoveOrder, f.MoveAnswer)
		}
	}
	want := `frame from b#1 to a#1: the answer "why" to the order to move object "o": an answer is empty or one of ["gone" "pinned" "bound" "no such member" "member takes no work"]`
	if err := (&Frame{From: b, To: a, MoveAnswer: &MoveAnswer{"o", "why"}}).Check(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	want = `frame from b#1 to a#1: the order to move object "" to member "b": an ID has 1 to 128 bytes, and a name 1 to 128`
	if err := (&Frame{From: b, To: a, MoveOrder: &MoveOrder{"", "b"}}).Check(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestOrderedObjects: TestObjects holds with orders at any time, of which some are for objects that are not there.
func TestOrderedObjects(t *testing.T) {
	for _, durable := range []bool{false, true} {
		orders, refused := uint64(0), uint64(0)
		for seed := range uint64(testcount.Of(t, "WORK", 60)) { //nolint:gosec // Above 0.
			w := newEstate(seed, durable)
			w.strategy = local.Config{Kind: local.Greedy}
			counted := map[*Member]bool{}
			w.twist = func(h *host) {
				if counted[h.machine] = true; w.now > clocksync.Instant(troubles) || w.IntN(20) > 0 || len(h.orders) > 3 {
					return
				}
				in := &Input{Kind: InOrders, Orders: []Order{{ObjectNumber(w.objects[w.IntN(len(w.objects))]), w.hosts[w.IntN(len(w.hosts))].peer.Name}}}
				h.orders = append(h.orders, func(h *host) { w.step(h, in) })
				h.orderAt = w.now.Add(time.Duration(w.IntN(100)) * time.Millisecond)
			}
			if w.live(); len(w.faults) > 0 {
				t.Fatalf("durable %v, seed %d: %s", durable, seed, strings.Join(w.faults, "\n"))
			}
			for m := range counted {
				o, r := m.Ordered()
				orders, refused = orders+o, refused+r
			}
		}
		if refused == 0 || orders <= refused {
			t.Errorf("durable %v: %d orders, of which %d were refused", durable, orders, refused)
		}
		t.Logf("durable %v: %d orders, of which %d were refused", durable, orders, refused)
	}
}

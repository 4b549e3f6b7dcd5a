package workcore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/testcount"
)

// A bag of the world is an interval of numbers; its result is their sum.
func span(low, high uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, low), high)
}

func bounds(body []byte) (low, high uint64) {
	return binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:])
}

// world has holders that run bags, split them, pass them on, die, come back, and send records late
// and twice. It knows what the sum has to be, and reads no account to judge.
type world struct {
	*rand.Rand
	store   *Store
	record  func(*Record) Outcome // that of the store, or of a mutant
	end     func() bool
	lose    func(holder string) int
	holders []map[string]*bag
	names   []string
	lives   int
	late    []*Record
	parts   int
	want    uint64
	sum     uint64
	counted map[string]bool // "ID on": what has had a result
	faults  []string
	deaths  int
	ended   bool
}

type bag struct {
	id        string
	on        uint64
	low, high uint64
	runs      bool
	try       int
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), store: NewStore(Limits{Losses: 1 << 30, Retry: 1 << 30}), counted: map[string]bool{}}
	w.record = func(r *Record) Outcome {
		o, err := w.store.Record(r, nil)
		if err != nil {
			w.faults = append(w.faults, err.Error())
		}
		return o
	}
	w.end, w.lose = w.store.End, w.store.Lose
	for range 2 + w.IntN(3) {
		w.holders, w.names = append(w.holders, map[string]*bag{}), append(w.names, "")
		w.rename(len(w.holders) - 1)
	}
	return w
}

// rename begins another life of a holder.
func (w *world) rename(i int) {
	w.lives++
	w.holders[i], w.names[i] = map[string]*bag{}, fmt.Sprintf("h%d.%d", i, w.lives)
}

func (w *world) run() {
	low := uint64(0)
	for i := range 1 + w.IntN(5) {
		high := low + 1 + w.Uint64N(40)
		if err := w.store.Put(&Task{ID: fmt.Sprint("root", i), Func: "sum", Body: span(low, high)}, 0); err != nil {
			w.faults = append(w.faults, err.Error())
		}
		low = high
	}
	w.want = low * (low - 1) / 2
	for range 4000 {
		w.step()
		if w.tryEnd(); w.ended {
			break
		}
	}
	if !w.ended {
		w.faults = append(w.faults, fmt.Sprintf("no end after 4,000 steps; open %v", w.store.Account().Open()))
	} else if w.sum != w.want {
		w.faults = append(w.faults, fmt.Sprintf("the sum is %d, want %d", w.sum, w.want))
	}
	for _, r := range w.late { // Whatever comes after the end.
		if w.record(r) == Counted {
			w.faults = append(w.faults, "a record counts after the end")
		}
	}
}

func (w *world) tryEnd() {
	before := w.sum
	if w.IntN(4) > 0 || !w.end() {
		return
	}
	w.take()
	if w.ended = true; before != w.want {
		w.faults = append(w.faults, fmt.Sprintf("it ended when the sum was %d, want %d", before, w.want))
	}
}

// take judges the results: each stretch of a task has one.
func (w *world) take() {
	for _, r := range w.store.Results(nil) {
		w.sum += binary.BigEndian.Uint64(r.Value)
	}
}

func (w *world) step() {
	i := w.IntN(len(w.holders))
	mine := w.holders[i]
	var one *bag
	for _, id := range w.store.Account().Open() { // In an order that the seed alone decides.
		if b := mine[id]; b != nil && (one == nil || w.IntN(2) == 0) {
			one = b
		}
	}
	switch dice := w.IntN(100); {
	case dice < 4: // It dies; its records may be on the way.
		w.deaths++
		w.lose(w.names[i])
		w.rename(i)
	case dice < 7 && len(mine) > 0: // It is thought dead, and lives.
		w.lose(w.names[i])
	case dice < 25:
		for _, l := range handed(w.store, w.names[i], 1+w.IntN(3)) {
			low, high := bounds(l.Task.Body)
			if w.IntN(10) > 0 { // Else it is lost on the way.
				mine[l.Task.ID] = &bag{id: l.Task.ID, on: l.On, low: low, high: high, try: l.Try}
			}
		}
	case dice < 32: // It tells what it has.
		var list []Held
		for _, id := range w.store.Account().Open() {
			if b := mine[id]; b != nil {
				list = append(list, Held{ID: b.id, On: b.on, Runs: b.runs})
			}
		}
		w.store.Hold(w.names[i], list, 0)
	case dice < 40 && len(w.late) > 0: // A record comes late, and perhaps again.
		k := w.IntN(len(w.late))
		w.send(w.late[k])
		if w.IntN(2) == 0 {
			w.late = append(w.late[:k], w.late[k+1:]...)
		}
	case one == nil:
	case dice < 50: // It passes a lease on, without a word to the store.
		k := w.IntN(len(w.holders))
		delete(mine, one.id)
		if w.IntN(10) > 0 {
			w.holders[k][one.id] = one
		}
	case dice < 55:
		w.store.Fail(one.id, one.on, one.try, "no luck")
		delete(mine, one.id)
	default:
		w.work(mine, one)
	}
}

// work does some of a bag and records it, perhaps with a part given away.
func (w *world) work(mine map[string]*bag, b *bag) {
	n := min(1+w.Uint64N(8), b.high-b.low)
	sum := uint64(0)
	for k := b.low; k < b.low+n; k++ {
		sum += k
	}
	r := &Record{ID: b.id, On: b.on, Fate: Done, Result: binary.BigEndian.AppendUint64(nil, sum)}
	low, high := b.low+n, b.high
	if high-low >= 2 && w.IntN(2) == 0 {
		middle := low + (high-low)/2
		w.parts++
		r.Children = []Task{{ID: fmt.Sprintf("%s/%d", b.id, w.parts), Func: "sum", Body: span(middle, high)}}
		high = middle
	}
	if low < high {
		r.Fate, r.Rest = Kept, span(low, high)
	}
	switch w.IntN(6) {
	case 0: // It is lost, or late, and the holder has moved to something else.
		w.late = append(w.late, r)
		delete(mine, b.id)
		return
	case 1:
		w.late = append(w.late, r) // A copy comes later.
	default:
	}
	outcome := w.send(r)
	if outcome != Counted || r.Fate == Done {
		delete(mine, b.id)
		return
	}
	*b = bag{id: b.id, on: w.store.Account().Seq(), low: low, high: high, runs: true}
}

// send records, and judges by what was counted before.
func (w *world) send(r *Record) Outcome {
	outcome := w.record(r)
	if outcome == Counted {
		stretch := fmt.Sprint(r.ID, " ", r.On)
		if w.counted[stretch] {
			w.faults = append(w.faults, "two results of "+stretch)
		}
		w.counted[stretch] = true
	}
	w.take()
	return outcome
}

// TestWorlds: every sum is that of one process, nothing is counted twice, and nothing ends early.
func TestWorlds(t *testing.T) {
	deaths, parts, records, stale := 0, 0, uint64(0), uint64(0)
	n := testcount.Of(t, "WORK", 400)
	for seed := range uint64(n) { //nolint:gosec // Above 0.
		w := newWorld(seed)
		w.run()
		if len(w.faults) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.faults, "\n"))
		}
		c := w.store.Account().Counts()
		deaths, parts, records, stale = deaths+w.deaths, parts+w.parts, records+c.Records, stale+c.Stale
	}
	t.Logf("%d worlds: %d deaths, %d parts given away, %d records counted, %d did not", n, deaths, parts, records, stale)
	if deaths < n/2 || parts < n || stale < uint64(n)/2 { //nolint:gosec // Above 0.
		t.Errorf("%d deaths, %d parts, %d stale records: too little was tried", deaths, parts, stale)
	}
}

// TestMutants: the judge of TestWorlds notices an account that is wrong.
func TestMutants(t *testing.T) {
	for name, bend := range map[string]func(*world){
		"a stale record counts": func(w *world) {
			right := w.record
			w.record = func(r *Record) Outcome {
				again := *r
				if _, on, isOpen := w.store.Account().Find(r.ID); isOpen {
					again.On = on
				}
				return right(&again)
			}
		},
		"children of a stale record count": func(w *world) {
			right := w.record
			w.record = func(r *Record) Outcome {
				outcome := right(r)
				if outcome != Counted {
					for i := range r.Children {
						_ = w.store.Put(&r.Children[i], 0)
					}
				}
				return outcome
			}
		},
		"a phase ends while a task is held": func(w *world) {
			w.end = func() bool { return w.store.Waiting() == 0 }
		},
		"a lost holder keeps its tasks": func(w *world) {
			w.lose = func(string) int { return 0 }
		},
		"a record is counted without its children": func(w *world) {
			right := w.record
			w.record = func(r *Record) Outcome {
				again := *r
				again.Children = nil
				return right(&again)
			}
		},
	} {
		caught := 0
		for seed := range uint64(200) {
			w := newWorld(seed)
			bend(w)
			if w.run(); len(w.faults) > 0 {
				caught++
			}
		}
		if t.Logf("%s: noticed in %d of 200 worlds", name, caught); caught == 0 {
			t.Errorf("nobody noticed: %s", name)
		}
	}
}

func TestPut(t *testing.T) {
	s := NewStore(Limits{Open: 2})
	first := Task{ID: "a", Func: "f", Body: []byte("1")}
	for _, c := range []struct {
		task Task
		want string
		is   error
	}{
		{first, "", nil},
		{first, "", nil},
		{Task{ID: "a", Func: "f", Body: []byte("2")}, `task "a": another task has that ID: give each task of a phase its own`, ErrDuplicateID},
		{Task{ID: "b", Func: "f"}, "", nil},
		{Task{ID: "c", Func: "f"}, `task "c": as many tasks are open as may be: 2`, ErrFull},
	} {
		err := s.Put(&c.task, 0)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want || !errors.Is(err, c.is)) {
			t.Errorf("%+v: %v", c.task, err)
		}
	}
}

// handed are at most n leases for a holder.
func handed(s *Store, holder string, n int) (list []Lease) {
	for range n {
		if l, ok := s.Hand(holder, 0); ok {
			list = append(list, l)
		}
	}
	return list
}

// TestOrder: the smallest key first, then the first put.
func TestOrder(t *testing.T) {
	s := NewStore(Limits{})
	for i, key := range []float64{3, 1, 2, 1} {
		if err := s.Put(&Task{ID: strconv.Itoa(i), Func: "f"}, key); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, l := range handed(s, "h", 3) {
		got = append(got, l.Task.ID)
	}
	if !slices.Equal(got, []string{"1", "3", "2"}) || s.Waiting() != 1 {
		t.Errorf("%v, and %d wait", got, s.Waiting())
	}
}

// TestFailures: a task that fails is run as often as it may, and one that kills its holders too.
func TestFailures(t *testing.T) {
	s := NewStore(Limits{Retry: 2, Losses: 2})
	for _, id := range []string{"bad", "deadly", "idle"} {
		if err := s.Put(&Task{ID: id, Func: "f"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		for _, l := range handed(s, fmt.Sprint("h", i), 3) {
			switch l.Task.ID {
			case "bad":
				s.Fail(l.Task.ID, l.On, l.Try, "it is bad")
			default: // The holder dies; it had not begun the task idle.
				s.Hold(fmt.Sprint("h", i), []Held{{ID: "deadly", Runs: true}, {ID: "idle"}}, 0)
			}
		}
		s.Lose(fmt.Sprint("h", i))
	}
	var got []string
	for _, r := range s.Results(nil) {
		got = append(got, fmt.Sprintf("%s %v: %s", r.ID, r.Fate, r.Error))
	}
	if want := "bad failed: it is bad; deadly poisoned: 2 members died while they ran it, h1 the last"; strings.Join(got, "; ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "; "), want)
	}
	if c := s.Account().Counts(); c.Failed != 1 || c.Poisoned != 1 || c.Open != 1 || s.Waiting() != 1 {
		t.Errorf("%+v, %d wait", c, s.Waiting())
	}
}

// TestAccount is the table of what does not count.
func TestAccount(t *testing.T) {
	a := NewAccount()
	task := func(id string) *Task { return &Task{ID: id, Func: "f"} }
	for i, c := range []struct {
		got, want Outcome
	}{
		{a.Put(1, 1, task("a")), Counted},
		{a.Put(1, 1, task("b")), Old},
		{a.Put(2, 2, task("b")), PhaseOver},
		{a.Put(3, 1, task("a")), Again},
		{a.Put(4, 1, &Task{ID: "a", Func: "g"}), Taken},
		{a.Record(5, 1, &Record{ID: "b"}), Closed},
		{a.Record(6, 1, &Record{ID: "a", On: 1}), Stale},
		{a.Record(7, 1, &Record{ID: "a", Rest: []byte("r"), Children: []Task{*task("c")}}), Counted},
		{a.Record(8, 1, &Record{ID: "a", Fate: Done}), Stale},
		{a.End(9, 1), NotEmpty},
		{a.Record(10, 1, &Record{ID: "a", On: 7, Fate: Done}), Counted},
		{a.Record(11, 1, &Record{ID: "c", Fate: Done}), Counted},
		{a.Put(12, 1, task("a")), Again},
		{a.End(13, 2), PhaseOver},
		{a.End(14, 1), Counted},
		{a.Put(15, 1, task("d")), PhaseOver},
		{a.Record(16, 1, &Record{ID: "a"}), PhaseOver},
		{a.Put(17, 2, task("a")), Counted},
	} {
		if c.got != c.want {
			t.Errorf("entry %d %v, want: it %v", i+1, c.got, c.want)
		}
	}
	want := Counts{Open: 1, Put: 3, Records: 3, Done: 2, Stale: 3, Void: 6}
	if c := a.Counts(); c != want || a.Phase() != 2 || a.Seq() != 17 {
		t.Errorf("%+v in phase %d after %d, want %+v", c, a.Phase(), a.Seq(), want)
	}
}

// BenchmarkEmptyTask puts, hands out and records an empty task, with 1,000 others open.
func BenchmarkEmptyTask(b *testing.B) {
	s := NewStore(Limits{})
	ids := make([]string, b.N+1000)
	for i := range ids {
		ids[i] = fmt.Sprint("t/", i)
	}
	put := func(id string) {
		if err := s.Put(&Task{ID: id, Func: "f"}, 0); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 1000 {
		put(ids[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		put(ids[1000+i])
		l, _ := s.Hand("h", 0)
		if o, err := s.Record(&Record{ID: l.Task.ID, On: l.On, Fate: Done}, nil); o != Counted || err != nil {
			b.Fatal(o, err)
		}
		if i%1000 == 0 {
			s.Results(nil)
		}
	}
}

package workcore

import (
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"strconv"
	"testing"

	"github.com/gopegasus/pegasus/balance/local"
)

// TestVoidStopsNothing: a task that its own member runs when a phase ends void continues, and its record counts.
func TestVoidStopsNothing(t *testing.T) {
	strategy, err := local.New(local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, out := NewMember(Options{Self: ann, Slots: 1, Strategy: strategy, Account: NewRecovery(Limits{}).Own(ann, false)}), &Output{}
	runs, stops := 0, 0
	step := func(in *Input) {
		for more := true; more; more = m.Release(out) {
			if in != nil {
				m.Step(1, in, out)
				in = nil
			}
			runs, stops = runs+len(out.Runs), stops+len(out.Stops)
			m.durable.noteReached(ann.Name, m.Ticket())
		}
	}
	step(&Input{Kind: InRoster, Roster: []Peer{ann}})
	step(put("a"))
	step(&Input{Kind: InEnd, Phase: 1, Void: true})
	step(returned(Done, ""))
	if runs != 1 || stops != 0 || m.Counts().Done != 1 {
		t.Errorf("%d runs, %d stops and %d done", runs, stops, m.Counts().Done)
	}
}

// entries are one of each kind.
func entries() []entry {
	task := Task{ID: "a/2", Func: "f", Body: []byte{0, 1, 255}, Weight: 2.5, After: []string{"a/1"}}
	return []entry{
		{kind: entryOwner, owner: ann},
		{kind: entryPut, seq: 1, task: Task{ID: "a/1", Func: "f"}, key: -1.5},
		{kind: entryPut, seq: 2, task: task, key: 3},
		{kind: entryBegan, seq: 2, record: Record{ID: "a/1"}},
		{kind: entryDied, seq: 2, record: Record{ID: "a/1"}},
		{kind: entryStep, seq: 3, record: Record{ID: "a/1", Result: []byte("r"), Rest: []byte("left"), Children: []Task{{ID: "a/3", Func: "f", Part: true}}}, keys: []float64{7}},
		{kind: entryOwner, seq: 3},
		{kind: entryStep, seq: 4, record: Record{ID: "a/1", On: 3, Fate: Done}},
		{kind: entryStep, seq: 5, record: Record{ID: "a/3", Fate: Failed, Error: "no"}},
		{kind: entryStep, seq: 6, record: Record{ID: "a/2", Fate: Failed, Error: "no"}},
		{kind: entryEnd, seq: 7},
	}
}

func batchOf(list []entry) []byte {
	s := &Store{logs: true}
	for i := range list {
		s.writeEntry(&list[i])
	}
	b := Batch{Owner: ann, Number: 3, Phase: 2, Open: 1, Entries: s.TakeLog()}
	return b.Append(nil)
}

// TestEntriesAreReadAsTheyWereWritten: entries of each kind, and a fold refuses entries that are
// cut off.
func TestEntriesAreReadAsTheyWereWritten(t *testing.T) {
	want := entries()
	data := batchOf(want)
	b, err := ReadBatch(data)
	if err != nil || b.Owner != ann || b.Number != 3 || b.Phase != 2 || b.Open != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	for _, e := range want {
		var one []byte
		one, b.Entries = SplitEntries(b.Entries, 0)
		c := coder{buf: one[1:], form: formData, names: map[string]string{}}
		var got entry
		if c.entry(&got); c.err != nil || len(c.buf) > 0 || !reflect.DeepEqual(got, e) {
			t.Errorf("read %+v, %v; want %+v", got, c.err, e)
		}
	}
	r := NewRecovery(Limits{})
	if found, err := r.Take(data); err != nil || len(found) != 4 || r.Ends() != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	ends := map[int]bool{} // Where an entry ends, the rest may be another message.
	for n := range data {
		b, err := ReadBatch(data[:n])
		if err == nil {
			left := b.Entries
			if len(left) == 0 {
				ends[n] = true
			}
			for len(left) > 0 {
				one, rest := SplitEntries(left, 0)
				size, used := binary.Uvarint(one)
				if left = rest; len(rest) == 0 && used > 0 && int(size) == len(one)-used { //nolint:gosec // Small.
					ends[n] = true
				}
			}
		}
		if _, err := NewRecovery(Limits{}).Take(data[:n]); (err == nil) != ends[n] {
			t.Errorf("the first %d of %d bytes: %v", n, len(data), err)
		}
	}
}

// TestRefusedBatches: a batch that a log may not have is refused with the reason.
func TestRefusedBatches(t *testing.T) {
	open := Task{ID: "a", Func: "f"}
	for want, data := range map[string][]byte{
		"batch of a log: it has another form than this program reads: let all members of the space run the same version, or remove the message if another program has written it": {9},
		"batch of a log: the end is missing":                                                                    {batchFirst, 3, 'a'},
		"batch 3 of ann#1: the end is missing":                                                                  append(batchOf(nil), 200),
		"batch 3 of ann#1: there is no entry of the kind 99":                                                    append(batchOf(nil), 2, 99, 0),
		"batch 3 of ann#1: 1 bytes are left over":                                                               append(batchOf(nil), 3, byte(entryEnd), 0, 0),
		"batch 3 of ann#1: the entry ends a phase in which tasks are open":                                      batchOf([]entry{{kind: entryOwner, owner: ann}, {kind: entryPut, seq: 1, task: open}, {kind: entryEnd, seq: 2}}),
		"batch 3 of ann#1: task of function \"\": its ID is empty: give each task a name that no other one has": batchOf([]entry{{kind: entryOwner, owner: ann}, {kind: entryPut, seq: 1}}),
	} {
		if _, err := NewRecovery(Limits{}).Take(data); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// FuzzRecovery: damaged bytes are an error. They neither panic nor take more memory than a few times their size.
func FuzzRecovery(f *testing.F) {
	list := entries()
	for n := range list {
		f.Add(batchOf(list[:n+1]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewRecovery(Limits{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := r.Take(data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(1<<16+2000*len(data)) { //nolint:gosec // Above 0.
			t.Errorf("%d bytes take %d", len(data), n)
		}
		if err == nil {
			_ = r.Own(bob, false)
		}
	})
}

// TestPoisonAtOnce: a task that kills its holders before they can tell that they run it is given alone then, and
// poisoned. Those that were given with it are not.
func TestPoisonAtOnce(t *testing.T) {
	m, out := alone(t, 0, ann, bob)
	for _, id := range []string{"poison", "b", "c"} {
		m.Step(1, put(id), out)
	}
	given := 0
	for life := uint64(1); life <= 9; life++ {
		peer := Peer{"bob", life}
		m.Step(2, &Input{Kind: InRoster, Roster: []Peer{ann, peer}}, out)
		if len(out.Results) > 0 {
			break
		}
		for number := range uint64(2) {
			m.Step(3, &Input{Kind: InFrame, Frame: &Frame{From: peer, To: ann, Phase: 1, Demand: &Demand{Number: number + 1, Tasks: 3}}}, out)
			if p := out.Frames[0].Parcel; len(p.Leases) > 0 && p.Leases[0].Lease.Task.ID == "poison" {
				given++
			}
			if given == int(life) { //nolint:gosec // Small.
				break // It dies of it.
			}
		}
	}
	if len(out.Results) != 1 || out.Results[0].ID != "poison" || out.Results[0].Fate != Poisoned || given != 4 {
		t.Errorf("given %d times, %+v", given, out.Results)
	}
}

// oddLog has one message in each subject, and refuses all others.
type oddLog struct{ body string }

func (oddLog) Append(string, uint64, []byte) (uint64, error) { return 0, errFenced }
func (oddLog) Fenced(err error) bool                         { return errors.Is(err, errFenced) }
func (l oddLog) Last(string) (uint64, []byte, error)         { return 7, []byte(l.body), nil }
func (oddLog) Barrier(string) ([]string, error)              { return nil, nil }
func (oddLog) Subjects(string) ([]string, error)             { return []string{"a.x"}, nil }
func (oddLog) Purge(string, uint64) error                    { return nil }
func (l oddLog) Read(_ string, take func(uint64, []byte) error) (uint64, error) {
	return 7, take(7, []byte(l.body))
}

// TestOddLogs: what a log says that cannot be is an error that names the message.
func TestOddLogs(t *testing.T) {
	keeper := func(body string) *Keeper {
		return &Keeper{Log: oddLog{body}, Stream: "S", Self: ann, Lives: func(Peer) bool { return false }}
	}
	_, _, _, opened := keeper("no").Open()
	_, decided := keeper(`{"phase":1}`).Decide(7, Decision{Phase: 1}, 2)
	_, orphans := keeper("no").Orphans(func(string) bool { return false })
	ahead := Batch{Owner: bob, Phase: 3}
	_, _, taken := keeper(string(ahead.Append(nil))).Take("x", Decision{}, nil)
	for want, err := range map[string]error{
		"work: stream S: message 7, which says what phase is over: invalid character 'o' in literal null (expecting 'u'): let all members run the same version":                                              opened,
		"work: stream S: the decision on phase 2 is not to be seen: do not purge S.phases":                                                                                                                   decided,
		"work: stream S: message 7: batch of a log: it has another form than this program reads: let all members of the space run the same version, or remove the message if another program has written it": orphans,
		"the account is in a later phase: this member has to end its own first":                                                                                                                              taken,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestLargeEntries: an entry that fits into no message is read again from its parts. Parts whose owner has died before
// the last one are left out.
func TestLargeEntries(t *testing.T) {
	for _, size := range []int{MaxBatch - 100, MaxBatch, 3*MaxBatch + 7, MaxBody} {
		s := NewRecovery(Limits{}).Own(ann, false)
		for _, id := range []string{"before", "large", "after"} {
			task := &Task{ID: id, Func: "f", Body: []byte("x")}
			if id == "large" {
				task.Body = make([]byte, size)
			}
			if err := s.Put(task, 0); err != nil {
				t.Fatal(err)
			}
		}
		w := &Writer{account: "ann", owner: ann, limit: MaxBatch}
		w.Add(&Append{Entries: s.TakeLog(), Ticket: 1, Phase: 1, Open: 3})
		whole := NewRecovery(Limits{})
		var log [][]byte
		for body, on := w.Compose(); body != nil; body, on = w.Compose() {
			if len(body) > MaxBatch+300 {
				t.Fatalf("%d: a message has %d bytes", size, len(body))
			}
			if last := len(w.pending) == 0; last != (w.ticket == 1) {
				t.Errorf("%d: message %d: the last one is %t, and the ticket is %d", size, on+1, last, w.ticket)
			}
			if _, err := whole.Take(body); err != nil {
				t.Fatal(err)
			}
			log = append(log, body)
			w.Took(on + 1)
		}
		if c := whole.Own(bob, false).Account().Counts(); c.Open != 3 {
			t.Errorf("%d: %d tasks are open instead of 3", size, c.Open)
		}
		for cut := 1; cut < len(log); cut++ {
			r := NewRecovery(Limits{})
			for _, body := range log[:cut] {
				if _, err := r.Take(body); err != nil {
					t.Fatal(err)
				}
			}
			next := r.Own(bob, false)
			open := next.Account().Counts().Open
			if err := next.Put(&Task{ID: "large", Func: "f", Body: make([]byte, size)}, 0); err != nil {
				t.Fatal(err)
			}
			w := &Writer{account: "ann", owner: bob, limit: MaxBatch}
			w.Add(&Append{Entries: next.TakeLog(), Ticket: 1, Phase: 1, Open: 2})
			for body, on := w.Compose(); body != nil; body, on = w.Compose() {
				if _, err := r.Take(body); err != nil {
					t.Fatalf("%d bytes, cut after message %d: %v", size, cut, err)
				}
				w.Took(on + 1)
			}
			if c := r.Own(ann, false).Account().Counts(); c.Open != max(open, 2) {
				t.Errorf("%d bytes, cut after message %d: %d tasks are open, and were %d", size, cut, c.Open, open)
			}
			if cut > 4 { // The others are alike.
				break
			}
		}
	}
}

// TestTrimKeepsObjects: what the log keeps behind the end of a phase begins with that end, in how many messages it may be.
func TestTrimKeepsObjects(t *testing.T) {
	s := NewRecovery(Limits{}).Own(ann, false)
	w := &Writer{account: "ann", owner: ann, limit: MaxBatch}
	var log [][]byte
	write := func(ends bool) {
		w.Add(&Append{Entries: s.TakeLog(), Ticket: 1, Phase: 1, Ends: ends})
		for body, on := w.Compose(); body != nil; body, on = w.Compose() {
			log = append(log, body)
			if _, trim := w.Took(on + 1); trim > 0 {
				for i := range trim - 1 {
					log[i] = nil
				}
			}
		}
	}
	for i := range 5 {
		o := &Task{ID: strconv.Itoa(i), Func: "f", Object: &Object{}, Body: make([]byte, MaxBatch/2)}
		if err := s.Put(o, 0); err != nil {
			t.Fatal(err)
		}
		if l, ok := s.Hand("ann", 0); !ok {
			t.Fatal("the object does not run")
		} else if outcome, err := s.Record(&Record{ID: o.ID, On: l.On, Rest: make([]byte, 2*MaxBatch), Served: 1}, nil); outcome != Counted {
			t.Fatal(outcome, err)
		}
	}
	write(false)
	for range 3 {
		if !s.End() {
			t.Fatal("the phase does not end")
		}
		write(true)
		r := NewRecovery(Limits{})
		for _, body := range log {
			if body == nil {
				continue
			}
			if _, err := r.Take(body); err != nil {
				t.Fatal(err)
			}
		}
		if c := r.Own(bob, false).Account().Counts(); c.Objects != 5 {
			t.Fatalf("%d objects are left of 5", c.Objects)
		}
	}
	if log[0] != nil {
		t.Error("nothing was trimmed")
	}
}

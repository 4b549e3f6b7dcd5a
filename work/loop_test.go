package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// lap is a program of a loop in a test: it sums up rows, each of which takes a time.
type lap struct {
	s     *Space
	total int
	last  int           // iterations
	row   time.Duration // how long a row takes here
	home  bool
	body  func(it *Iteration, row int) // is called before each row
	after func(it *Iteration)          // is called after each iteration

	mu    sync.Mutex
	rows  map[int][]int // by iteration
	reads []int
	nets  []int // carried into each iteration
	l     *ElasticLoop
	name  string // of the loop; empty: rows
	like  string // the loop whose speeds it begins with
}

// rowValue is what a row comes to.
func rowValue(row, net int) int { return (row+1)*(net%7+1) + row*row }

// alone is what the loop of one process comes to.
func (p *lap) alone() int {
	net := 1
	for range p.last {
		sum := 0
		for row := range p.total {
			sum += rowValue(row, net)
		}
		net += sum
	}
	return net
}

// run is the body of the program, as a user writes it.
func (p *lap) run(ctx context.Context) (net int, err error) {
	net = -1
	var options []LoopOption
	if p.home {
		options, net = append(options, Home()), 1
	}
	if p.like != "" {
		options = append(options, SpeedsOf(p.like))
	}
	p.rows = map[int][]int{}
	p.l = Loop(p.s, cmp.Or(p.name, "rows"), p.total, func(_ context.Context, low, high int) error {
		for row := low; row < high; row++ {
			p.reads = append(p.reads, row)
		}
		return nil
	}, options...)
	for it, err := range p.l.Iterations(ctx) {
		if err != nil {
			return net, err
		}
		it.Carry(&net)
		p.nets = append(p.nets, net)
		sum := 0
		for row := range it.Mine() {
			if p.body != nil {
				p.body(it, row)
			}
			time.Sleep(p.row)
			sum += rowValue(row, net)
			p.mu.Lock()
			p.rows[it.Number] = append(p.rows[it.Number], row)
			p.mu.Unlock()
		}
		sum, err = Reduce(ctx, it, sum, func(a, b int) int { return a + b })
		if err != nil {
			return net, err
		}
		net += sum
		if p.after != nil {
			p.after(it)
		}
		if it.Number == p.last {
			break
		}
	}
	return net, p.s.Wait(ctx)
}

// laps runs the programs of a group, the first of which is the home, and returns what each has come to.
func laps(t *testing.T, programs ...*lap) (nets []int, errs []error) {
	t.Helper()
	nets, errs = make([]int, len(programs)), make([]error, len(programs))
	var running sync.WaitGroup
	for i, p := range programs {
		running.Go(func() { nets[i], errs[i] = p.run(t.Context()) })
	}
	running.Wait()
	return nets, errs
}

// loopGroup is a group of members with programs; the first is the home.
func loopGroup(t *testing.T, g *group, n, total, last int, row time.Duration) (list []*lap, links []*fakeLink) {
	t.Helper()
	for i := range n {
		s, l := g.spaceOf(t, string(rune('a'+i)), 1)
		list = append(list, &lap{s: s, total: total, last: last, row: row, home: i == 0})
		links = append(links, l)
	}
	synctest.Wait() // All have the roster with all.
	return list, links
}

// each counts how often each row was done in an iteration.
func each(programs []*lap, iteration, total int) []int {
	seen := make([]int, total)
	for _, p := range programs {
		for _, row := range p.rows[iteration] {
			seen[row]++
		}
	}
	return seen
}

func once(seen []int) bool { return !slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) }

// sameStats reports whether the figures of a home are these.
func sameStats(s LoopStats, iteration, moved, released, redone int) bool {
	return s.Iteration == iteration && s.Moved == moved && s.Released == released && s.Redone == redone && s.Withdrawals == 0
}

// TestLoop: four members of unequal speeds do each row once, have the value of one process alone, and take little
// longer than their speeds allow once these are known.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, _ := loopGroup(t, g, 4, 1000, 6, 0)
		for i, row := range []time.Duration{12, 6, 4, 3} { // Speeds 1, 2, 3, 4.
			list[i].row = row * time.Millisecond
		}
		nearly := func(rows []int) bool {
			return !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return math.Abs(float64(rows[i]-(i+1)*100)) > float64(i+1)*5 })
		}
		var times []time.Time
		list[0].after = func(*Iteration) { times = append(times, time.Now()) }
		nets, errs := laps(t, list...)
		for i := range list {
			if errs[i] != nil || nets[i] != list[0].alone() || !slices.Equal(list[i].nets, list[0].nets) {
				t.Errorf("member %d: %v, %v; want %d", i, nets[i], errs[i], list[0].alone())
			}
		}
		for n := 1; n <= 6; n++ {
			if !once(each(list, n, 1000)) {
				t.Errorf("rows of iteration %d: %v", n, each(list, n, 1000))
			}
		}
		best := 1000 * time.Second / time.Duration((1+2+3+4)*1000/12)
		if took := times[5].Sub(times[0]) / 5; took > best*105/100 {
			t.Errorf("an iteration takes %v, want %v and little more", took, best)
		}
		var got []int
		for _, p := range list {
			got = append(got, len(p.rows[6]))
		}
		if !nearly(got) || len(list[0].reads) != got[0] || !sameStats(list[0].l.Stats(), 6, 0, 0, 0) {
			t.Errorf("the members have %v, %d reads, %+v", got, len(list[0].reads), list[0].l.Stats())
		}
		if g.ends != 1 {
			t.Errorf("%d phases have ended", g.ends)
		}
		if s := list[0].l.Stats(); s.Efficiency < 0.97 || s.Efficiency > 1.001 || s.Overall < 0.97 || s.Overall > 1.001 {
			t.Errorf("%+v: want an efficiency of nearly 1, in the first iteration too", s)
		}
		speeds := list[0].l.Speeds()
		for i, name := range []string{"a", "b", "c", "d"} {
			if want := float64(i+1) * 1000 / 12; math.Abs(speeds[name]/want-1) > 0.01 {
				t.Errorf("member %q has the speed %v, want %v", name, speeds[name], want)
			}
		}
		for i := range list { // In the next phase the speeds are known.
			list[i].last = 1
		}
		nets, errs = laps(t, list...)
		got = nil
		for _, p := range list {
			got = append(got, len(p.rows[1]))
		}
		if err := errors.Join(errs...); err != nil || nets[0] != list[0].alone() || !nearly(got) {
			t.Errorf("%v: the members have %v in the first iteration of another loop", err, got)
		}
	})
}

// TestLoopSpeedsOf: a loop of another name in a later phase divides its first iteration by the speeds of one that is over if it
// says so, and else knows none.
func TestLoopSpeedsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, _ := loopGroup(t, newGroup(config.DefaultWork()), 4, 1000, 3, 0)
		for i, row := range []time.Duration{12, 6, 4, 3} { // Speeds 1, 2, 3, 4.
			list[i].row = row * time.Millisecond
		}
		if _, errs := laps(t, list...); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		for name, like := range map[string]string{"pixels": "rows", "others": "", "strangers": "none"} {
			var got, at []int
			var mu sync.Mutex // of at
			for i, p := range list {
				first := false
				p.name, p.like, p.last = name, like, 1
				p.body = func(*Iteration, int) {
					if !first { // What it has before more is handed out.
						n := 0
						list[i].s.mu.Lock()
						rows, _ := list[i].l.machine.Assigned()
						for _, s := range rows {
							n += s.Len()
						}
						list[i].s.mu.Unlock()
						first = true
						mu.Lock()
						at = append(at, n)
						mu.Unlock()
					}
				}
			}
			nets, errs := laps(t, list...)
			if err := errors.Join(errs...); err != nil || nets[0] != list[0].alone() {
				t.Fatal(err)
			}
			for _, p := range list {
				got = append(got, len(p.rows[1]))
			}
			slices.Sort(at)
			want := []int{31, 31, 31, 31} // An eighth of 250 rows.
			if like == "rows" {
				want = []int{100, 200, 300, 400}
			}
			if off := func(i int) bool { return math.Abs(float64(at[i]-want[i])) > 5 }; len(at) != 4 || off(0) || off(1) || off(2) || off(3) {
				t.Errorf("loop %q begins with %v rows of its members, want %v; they have done %v", name, at, want, got)
			}
		}
	})
}

// TestLoopDrain: a member that drains gives back its rows within the one that it works on. No row is done twice.
func TestLoopDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, links := loopGroup(t, g, 3, 90, 4, 10*time.Millisecond)
		list[0].after = func(it *Iteration) {
			if it.Number == 3 { // Somebody asks how the space stands.
				for _, l := range links {
					l.inboxes["asked"] <- [2]string{}
				}
			}
		}
		var drained sync.WaitGroup
		var asked time.Time
		list[2].body = func(it *Iteration, _ int) {
			if it.Number == 2 && len(list[2].rows[2]) == 10 && asked.IsZero() {
				asked = time.Now()
				drained.Go(func() {
					if err := list[2].s.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		nets, errs := laps(t, list...)
		drained.Wait()
		if err := errors.Join(errs...); err != nil || nets[0] != list[0].alone() || nets[1] != nets[0] {
			t.Errorf("%v, %v; want %d", nets, err, list[0].alone())
		}
		for n := 1; n <= 4; n++ {
			if !once(each(list, n, 90)) {
				t.Errorf("rows of iteration %d: %v", n, each(list, n, 90))
			}
		}
		if n := len(list[2].rows[2]); n > 12 || len(list[2].rows[3]) > 0 || list[0].l.Stats().Redone > 0 {
			t.Errorf("the member that drains has done %d rows, then %v; %+v", n, list[2].rows[3], list[0].l.Stats())
		}
		if s := list[0].l.Stats(); s.Moved != 30 || s.Released != 30 || s.Withdrawals != 0 {
			t.Errorf("%+v: want 30 rows that moved, those of the member that drains", s)
		}
		if s := list[2].l.Stats(); s.Withdrawals != 1 || s.Withdrawing <= 0 || s.Withdrawing > list[2].row {
			t.Errorf("%+v: the member that drains has to end the row that it works on, and no other", s)
		}
		loops := map[string]workreport.Loop{}
		for _, text := range g.reports {
			var r workreport.Report
			if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Loops) != 1 || !r.Plausible(r.Member) {
				t.Fatalf("%v: %s", err, text)
			}
			loops[r.Member] = r.Loops[0]
		}
		if h := loops["a"]; !h.Home || h.Name != "rows" || h.Rows != 90 || h.Iteration < 3 || h.Released != 30 || h.Efficiency < 0.9 || h.Overall < 0.9 || len(h.Speeds) != 3 || h.Withdrawals != 0 || h.Used != nil {
			t.Errorf("the home tells %+v", h)
		}
		if m := loops["c"]; m.Home || m.Withdrawals != 1 || m.Withdrawing != list[2].l.Stats().Withdrawing.Seconds() || len(m.Speeds) != 0 {
			t.Errorf("the member that drains tells %+v", m)
		}
	})
}

// TestLoopReadsOnce: members that read their own parts read each row once in all, where a copy for each of them would be
// nine times as much: golden case adm-copy, with a row for each megabyte.
func TestLoopReadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, _ := loopGroup(t, newGroup(config.DefaultWork()), 9, 40, 4, 10*time.Millisecond)
		if _, errs := laps(t, list...); errors.Join(errs...) != nil {
			t.Error(errs)
		}
		sent := 0
		for _, p := range list {
			sent += len(p.reads)
		}
		if sent != 40 {
			t.Errorf("%d rows were read, want 40", sent)
		}
	})
}

// TestLoopAllDrain: the home does all rows if all other members drain.
func TestLoopAllDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, _ := loopGroup(t, g, 3, 30, 4, 10*time.Millisecond)
		var drained sync.WaitGroup
		for _, p := range list {
			p.body = func(it *Iteration, row int) {
				if it.Number == 2 && row%10 == 5 { // The home as well: it stays in its loop.
					drained.Go(func() { _ = p.s.Drain(t.Context()) })
				}
			}
		}
		nets, errs := laps(t, list...)
		drained.Wait()
		if err := errors.Join(errs...); err != nil || nets[0] != list[0].alone() || len(list[0].rows[4]) != 30 || !once(each(list, 2, 30)) {
			t.Errorf("%v, %v, want %d; %v", nets, err, list[0].alone(), list[0].rows)
		}
	})
}

// TestLoopMemberLost: the rows of a member that is lost are redone by the others, and no other rows. Messages are lost, too.
func TestLoopMemberLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, links := loopGroup(t, g, 3, 90, 4, 10*time.Millisecond)
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It is to be repeatable.
		g.mu.Lock()
		g.lose = func(string) bool { return random.IntN(5) == 0 }
		g.mu.Unlock()
		list[2].body = func(it *Iteration, _ int) {
			if it.Number == 2 && len(list[2].rows[2]) == 10 {
				g.leave(links[2])
			}
		}
		nets, errs := laps(t, list...)
		if errs[0] != nil || errs[1] != nil || nets[0] != list[0].alone() || nets[1] != nets[0] {
			t.Errorf("%v, %v; want %d", nets, errs, list[0].alone())
		}
		if !errors.Is(errs[2], ErrDropped) {
			t.Errorf("the member that is lost: %v", errs[2])
		}
		if !once(each(list[:2], 2, 90)) || list[0].l.Stats().Redone != 30 {
			t.Errorf("rows of iteration 2: %v, %+v", each(list[:2], 2, 90), list[0].l.Stats())
		}
	})
}

// TestLoopJoin: a member that joins takes part from the next iteration on; one that joins in the last iteration, or
// later, has none.
func TestLoopJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, _ := loopGroup(t, g, 2, 60, 5, 10*time.Millisecond)
		var joined sync.WaitGroup
		join := func(name string) {
			s, _ := g.spaceOf(t, name, 1)
			p := &lap{s: s, total: 60, last: 5, row: 10 * time.Millisecond}
			list = append(list, p)
			joined.Go(func() {
				if _, err := p.run(t.Context()); err != nil {
					t.Errorf("member %q: %v", name, err)
				}
			})
		}
		list[0].body = func(it *Iteration, _ int) {
			if it.Number == 2 && len(list) == 2 {
				join("c")
			}
			if it.Number == 5 && len(list) == 3 {
				join("0") // Before the home, by name.
			}
		}
		list[0].after = func(it *Iteration) {
			if it.Number == 5 {
				join("e")
			}
		}
		nets, errs := laps(t, list[:2]...)
		joined.Wait()
		if err := errors.Join(errs...); err != nil || nets[0] != list[0].alone() || nets[1] != nets[0] {
			t.Errorf("%v, %v; want %d", nets, err, list[0].alone())
		}
		for n := 1; n <= 5; n++ {
			if !once(each(list, n, 60)) {
				t.Errorf("rows of iteration %d: %v", n, each(list, n, 60))
			}
		}
		if len(list) != 5 || len(list[2].rows[2]) > 0 || len(list[2].rows[3]) != 20 || len(list[3].nets)+len(list[4].nets) > 0 {
			t.Errorf("the one that joined has %v, those that came late %v and %v", list[2].rows, list[3].rows, list[4].rows)
		}
	})
}

// TestLoopFewRows: members without rows take part, and no rows are no fault.
func TestLoopFewRows(t *testing.T) {
	for _, total := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			list, _ := loopGroup(t, newGroup(config.DefaultWork()), 4, total, 3, time.Millisecond)
			nets, errs := laps(t, list...)
			if err := errors.Join(errs...); err != nil || fmt.Sprint(nets) != fmt.Sprint(slices.Repeat([]int{list[0].alone()}, 4)) {
				t.Errorf("%d rows: %v, %v; want %d", total, nets, err, list[0].alone())
			}
		})
	}
}

// TestLoopHomeLost: the loop ends with its home.
func TestLoopHomeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, links := loopGroup(t, g, 3, 90, 4, 10*time.Millisecond)
		list[0].body = func(it *Iteration, _ int) {
			if it.Number == 2 && len(list[0].rows[2]) == 10 {
				g.leave(links[0])
			}
		}
		_, errs := laps(t, list...)
		for _, err := range errs[1:] {
			if want := `work: loop "rows": its home, member "a", is gone, and the loop with it: begin another loop`; err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if !errors.Is(errs[0], ErrDropped) {
			t.Errorf("the home that is lost: %v", errs[0])
		}
	})
}

// TestLoopFaults has what a loop of a home and a member comes to if a program is wrong: the error of each.
func TestLoopFaults(t *testing.T) {
	type secret struct{ sum int }
	add := func(a, b int) int { return a + b }
	good := func(ctx context.Context, it *Iteration) error {
		net := 0
		it.Carry(&net)
		for range it.Mine() {
		}
		_, err := Reduce(ctx, it, 1, add)
		return err
	}
	for name, c := range map[string]struct {
		home, member           func(ctx context.Context, it *Iteration) error
		total                  int // of the member
		read                   func(ctx context.Context, low, high int) error
		wantHome, wantOfMember string
	}{
		"another type": {
			member: func(ctx context.Context, it *Iteration) error {
				it.Carry(new(int))
				for range it.Mine() {
				}
				_, err := Reduce(ctx, it, 1.5, func(a, b float64) float64 { return a + b })
				return err
			},
			wantHome:     `iteration 1: the partial result of member "b" is float64, and its home reduces int: let all programs reduce the same type`,
			wantOfMember: `its home, member "a", has failed: iteration 1: the partial result of member "b" is float64, and its home reduces int: let all programs reduce the same type`,
		},
		"another total": {
			total:        9,
			wantOfMember: `member "b" has 9 rows, and its home, member "a", has 10: let all programs give the same total`,
		},
		"a negative total": {
			total:        -1,
			wantHome:     `wait: context deadline exceeded: members ["b"] have not called Iterations`,
			wantOfMember: `a total of -1 rows cannot be divided: give 0 to 2147483647`,
		},
		"nothing is reduced": {
			member:       func(context.Context, *Iteration) error { return nil },
			wantOfMember: `iteration 1: its body has not called Reduce: call it in each iteration`,
		},
		"reduced before Mine": {
			member:       func(ctx context.Context, it *Iteration) error { _, err := Reduce(ctx, it, 1, add); return err },
			wantOfMember: `iteration 1: Reduce comes once in each iteration, after Mine has ended`,
		},
		"the body leaves Mine": {
			home: func(ctx context.Context, it *Iteration) error {
				for row := range it.Mine() {
					if row == 3 {
						break
					}
				}
				_, err := Reduce(ctx, it, 1, add)
				return err
			},
			member: func(ctx context.Context, it *Iteration) error {
				for range it.Mine() {
				}
				_, err := Reduce(ctx, it, 1, add)
				return err
			},
			wantHome:     `iteration 1: its body has left Mine at row 3: let it range over all rows`,
			wantOfMember: `its home, member "a", has failed: iteration 1: its body has left Mine at row 3: let it range over all rows`,
		},
		"Mine twice": {
			member: func(ctx context.Context, it *Iteration) error {
				for range 2 {
					for range it.Mine() {
					}
				}
				_, err := Reduce(ctx, it, 1, add)
				return err
			},
			wantOfMember: `iteration 1: Mine has ended: range over it once in each iteration`,
		},
		"Carry of a value": {
			member:       func(ctx context.Context, it *Iteration) error { it.Carry(7); return good(ctx, it) },
			wantOfMember: `iteration 1: the carried value is int: give Carry a pointer`,
		},
		"Carry of another type": {
			member:       func(ctx context.Context, it *Iteration) error { it.Carry(new([]string)); return good(ctx, it) },
			wantOfMember: `iteration 1: the carried value cannot be read as []string: json: cannot unmarshal number into Go value of type []string: let all members run the same version`,
		},
		"Carry of what does not travel": {
			home:         func(ctx context.Context, it *Iteration) error { it.Carry(&secret{1}); return good(ctx, it) },
			wantHome:     `iteration 1: the carried value cannot be written as bytes: no field of work.secret is exported, so nothing of it would travel: export its fields, or give it MarshalBinary and UnmarshalBinary`,
			wantOfMember: `its home, member "a", has failed: iteration 1: the carried value cannot be written as bytes: no field of work.secret is exported, so nothing of it would travel: export its fields, or give it MarshalBinary and UnmarshalBinary`,
		},
		"Carry twice": {
			home:         func(ctx context.Context, it *Iteration) error { it.Carry(new(int)); return good(ctx, it) },
			wantHome:     `iteration 1: the rows are handed out already: call Carry once, before Mine`,
			wantOfMember: `its home, member "a", has failed: iteration 1: the rows are handed out already: call Carry once, before Mine`,
		},
		"the home carries nothing": {
			home: func(ctx context.Context, it *Iteration) error {
				for range it.Mine() {
				}
				_, err := Reduce(ctx, it, 1, add)
				return err
			},
			wantOfMember: `iteration 1: the home has carried no value: call Carry in the body of every program`,
		},
		"too much is carried": {
			home: func(ctx context.Context, it *Iteration) error {
				d := make([]byte, 17<<20)
				it.Carry(&d)
				return good(ctx, it)
			},
			wantHome:     `the carried value has 17825792 bytes, and at most 16777216 are allowed: carry the name of the data instead`,
			wantOfMember: `its home, member "a", has failed: the carried value has 17825792 bytes, and at most 16777216 are allowed: carry the name of the data instead`,
		},
		"rows that cannot be read": {
			read:         func(context.Context, int, int) error { return errors.New("no such file") },
			wantOfMember: `iteration 1: rows 5 to 9 cannot be read: no such file`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(config.DefaultWork())
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				run := func(s *Space, total int, read func(context.Context, int, int) error, body func(context.Context, *Iteration) error, options ...LoopOption) (err error) {
					for it, err := range Loop(s, "rows", total, read, options...).Iterations(ctx) {
						if err != nil {
							return err
						}
						if body == nil {
							body = good
						}
						if err := body(ctx, it); err != nil {
							continue // Iterations returns it as well.
						}
						if it.Number == 2 {
							break
						}
					}
					return nil
				}
				a, b := g.space(t, "a"), g.space(t, "b")
				synctest.Wait() // Both know the roster.
				var running sync.WaitGroup
				var ofHome, ofMember error
				running.Go(func() { ofHome = run(a, 10, nil, c.home, Home()) })
				if c.total == 0 {
					c.total = 10
				}
				running.Go(func() { ofMember = run(b, c.total, c.read, c.member) })
				running.Wait()
				for _, r := range []struct {
					of   string
					err  error
					want string
				}{{"home", ofHome, c.wantHome}, {"member", ofMember, c.wantOfMember}} {
					if r.want != "" {
						r.want = `work: loop "rows": ` + r.want
					}
					if text := fmt.Sprint(r.err); r.want != text && (r.want != "" || r.err != nil) {
						t.Errorf("%s: %s\nwant %s", r.of, text, r.want)
					}
				}
			})
		})
	}
}

// TestLoopCalledTwice: Iterations is called once for a name and phase, and needs a home and store: memory.
func TestLoopCalledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		first := func(l *ElasticLoop, ctx context.Context) (err error) {
			for _, err = range l.Iterations(ctx) {
				return err
			}
			return nil
		}
		l := Loop(a, "rows", 1, nil, Home())
		if err := first(l, t.Context()); err != nil {
			t.Error(err)
		}
		for _, again := range []*ElasticLoop{l, Loop(a, "rows", 1, nil)} {
			if err, want := first(again, t.Context()), `work: loop "rows": Iterations was called before in this phase: give another loop another name`; err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := first(Loop(a, "rows", 1, nil, Home()), t.Context()); err != nil {
			t.Errorf("in the next phase: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err, want := first(Loop(a, "others", 1, nil), ctx), `work: loop "others": wait: context deadline exceeded: no iteration has begun: one member makes the loop with the option Home, and all call Iterations`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if s := Loop(a, "none", 1, nil).Stats(); !sameStats(s, 0, 0, 0, 0) {
			t.Errorf("%+v", s)
		}
	})
}

// TestLoopHostileFrames: frames of a loop from strangers, of another phase and about another loop change nothing.
func TestLoopHostileFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		list, _ := loopGroup(t, g, 2, 10, 3, time.Millisecond)
		b := workcore.Peer{Name: "b", Life: 1}
		list[0].body = func(*Iteration, int) {
			for _, f := range []workcore.Frame{
				{From: b, Phase: 2, Loop: &workcore.LoopFrame{Name: "rows", Version: 99, Out: true}},
				{From: b, Phase: 1, Loop: &workcore.LoopFrame{Name: "other", Version: 99, Out: true}},
				{From: workcore.Peer{Name: "b", Life: 7}, Phase: 1, Loop: &workcore.LoopFrame{Name: "rows", Version: 99, Out: true}},
				{From: workcore.Peer{Name: "c", Life: 1}, Phase: 1, Loop: &workcore.LoopFrame{Name: "rows", Version: 99, Number: 1, Has: true}},
			} {
				f.To = workcore.Peer{Name: "a", Life: 1}
				data := f.Append(nil)
				list[0].s.receive("work.a."+f.From.Name, append([]byte{byte(len(data))}, data...))
			}
		}
		nets, errs := laps(t, list...)
		if err := errors.Join(errs...); err != nil || nets[0] != list[0].alone() || nets[1] != nets[0] || !once(each(list, 2, 10)) || len(list[1].rows[3]) == 0 {
			t.Errorf("%v, %v; want %d", nets, err, list[0].alone())
		}
	})
}

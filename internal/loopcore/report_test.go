package loopcore

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// figures is a home of 1000 rows with the members b, c and d, whose programs are as fast as a test says.
type figures struct {
	*testing.T
	home    *Loop
	now     clocksync.Instant
	version uint64
}

func newFigures(t *testing.T, names string, o *Options) *figures {
	t.Helper()
	g := &figures{T: t, now: clocksync.Instant(time.Hour)}
	var peers []workcore.Peer
	for _, name := range names {
		peers = append(peers, workcore.Peer{Name: string(name), Life: 1})
	}
	o.Name, o.Self, o.Home, o.Total = "rows", peers[0], true, 1000
	var err error
	if g.home, err = New(*o); err != nil {
		t.Fatal(err)
	}
	g.home.TakeRoster(g.now, peers)
	for _, p := range peers[1:] {
		g.say(p, workcore.LoopFrame{})
	}
	return g
}

func (g *figures) say(p workcore.Peer, f workcore.LoopFrame) {
	g.version++
	f.Name, f.Version, f.Total = "rows", g.version, 1000
	g.home.TakeFrame(g.now, p, &f)
}

// iteration has all members do their rows; each member gives what it has not done back after it has done as many as gives says.
func (g *figures) iteration(took time.Duration, speeds []float64, gives map[string]int) {
	g.Helper()
	h := g.home
	if err := h.Open(g.now, nil); err != nil {
		g.Fatal(err)
	}
	for i, s := range h.seats {
		if rows, leaves := gives[s.Name]; leaves && s.in {
			g.say(s.Peer, workcore.LoopFrame{Number: h.number, Done: rows, Speed: speeds[i+1], Gives: true})
		}
	}
	g.now = g.now.Add(took)
	for range 50 { // The rows that were given back, or are spare, are done in later turns.
		h.SetDone(total(h.self.spans), speeds[0])
		for i, s := range h.seats {
			if s.in && !s.gives {
				g.say(s.Peer, workcore.LoopFrame{Number: h.number, Done: total(s.spans), Speed: speeds[i+1]})
			}
		}
	}
	for i, s := range h.seats {
		if _, leaves := gives[s.Name]; s.in {
			g.say(s.Peer, workcore.LoopFrame{Number: h.number, Done: total(s.spans), Speed: speeds[i+1], Has: true, Gives: leaves})
		}
	}
	if err := h.SetPartial(nil, ""); err != nil {
		g.Fatal(err)
	}
	if err := h.Reduced(g.now, nil); err != nil {
		g.Fatal(err)
	}
}

func (g *figures) have() (list [4]int) {
	for i, s := range g.home.all() {
		list[i] = total(s.spans)
	}
	return list
}

// TestLoopKeepsItsPartition: a member has the same rows as before while its speed stays about the same, and the fewest move
// when a member is withdrawn: golden case adm-withdraw.
func TestLoopKeepsItsPartition(t *testing.T) {
	g := newFigures(t, "abcd", &Options{Speeds: map[string]float64{"a": 1, "b": 2, "c": 3, "d": 4}})
	g.iteration(0, []float64{1, 2, 3, 4}, nil)
	g.iteration(0, []float64{1.01, 2.02, 2.98, 4.01}, nil)
	if got, r := g.have(), g.home.Report(); got != [4]int{100, 200, 300, 400} || r.Moved != 0 || r.Released != 0 {
		t.Errorf("the members have %v, %+v", got, r)
	}
	g.iteration(0, []float64{1, 2, 3, 4}, map[string]int{"c": 300})
	if r := g.home.Report(); r.Moved != 0 || r.Released != 0 {
		t.Errorf("%+v: rows have moved though the speeds are about the same", r)
	}
	g.iteration(0, []float64{1, 2, 0, 4}, nil)
	if got, r := g.have(), g.home.Report(); got != [4]int{143, 286, 0, 571} || r.Moved != 300 || r.Released != 300 || r.Redone != 0 {
		t.Errorf("the members have %v, %+v", got, r)
	}
}

// TestWithdrawalMovesLeast: a member that is withdrawn within an iteration, wherever, has its 300 rows move, and no other
// row: golden case adm-withdraw. No row is redone.
func TestWithdrawalMovesLeast(t *testing.T) {
	for _, rows := range []int{0, 1, 100, 299, 300} {
		g := newFigures(t, "abcd", &Options{Speeds: map[string]float64{"a": 1, "b": 2, "c": 3, "d": 4}})
		g.iteration(0, []float64{1, 2, 3, 4}, nil)
		g.iteration(0, []float64{1, 2, 3, 4}, map[string]int{"c": rows})
		g.iteration(0, []float64{1, 2, 0, 4}, nil)
		if got, r := g.have(), g.home.Report(); got != [4]int{143, 286, 0, 571} || r.Moved != 300 || r.Released != 300 || r.Redone != 0 {
			t.Errorf("after %d rows the members have %v, %+v", rows, got, r)
		}
	}
}

// TestEfficiency: golden case adm-efficiency. A member that gives its rows back counts until then, and one that is lost too.
func TestEfficiency(t *testing.T) {
	speeds := []float64{1, 2, 3, 4}
	g := newFigures(t, "abcd", &Options{})
	g.iteration(125*time.Second, speeds, nil)
	if r := g.home.Report(); r.Efficiency != 0.8 || r.Overall != 0.8 {
		t.Errorf("%+v; want 0.8", r)
	}
	g.iteration(100*time.Second, speeds, nil)
	if r := g.home.Report(); r.Efficiency != 1 || r.Overall != 2000./2250 {
		t.Errorf("%+v; want 1 and %v", r, 2000./2250)
	}
	g.iteration(250*time.Second, speeds, map[string]int{"c": 0}) // c was there for no time at all.
	if r := g.home.Report(); r.Efficiency != 1000./(250*7) {
		t.Errorf("%+v; want %v", r, 1000./(250*7))
	}
	if err := g.home.Open(g.now, nil); err != nil {
		t.Fatal(err)
	}
	g.now = g.now.Add(50 * time.Second)
	g.home.TakeRoster(g.now, []workcore.Peer{g.home.self.Peer, g.home.seats[0].Peer, g.home.seats[1].Peer}) // d is lost.
	g.now = g.now.Add(150 * time.Second)
	for range 2 {
		g.home.SetDone(total(g.home.self.spans), 1)
		g.say(g.home.seats[0].Peer, workcore.LoopFrame{Number: g.home.number, Done: total(g.home.seats[0].spans), Speed: 2})
	}
	g.say(g.home.seats[0].Peer, workcore.LoopFrame{Number: g.home.number, Done: total(g.home.seats[0].spans), Speed: 2, Has: true})
	if err := g.home.SetPartial(nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := g.home.Reduced(g.now, nil); err != nil {
		t.Fatal(err)
	}
	if r := g.home.Report(); r.Efficiency != 1000./(200*3+50*4) || r.Redone != 571 {
		t.Errorf("%+v; want %v", r, 1000./(200*3+50*4))
	}
	if got := g.home.Speeds(); !maps.Equal(got, map[string]float64{"a": 1, "b": 2, "c": 3, "d": 4}) {
		t.Errorf("the speeds %v", got)
	}
}

// TestSpeedsOfAnEarlierLoop: the first iteration is divided by speeds that are known, and a member without one gets
// an eighth of the mean at first: the rest goes to whoever has done its own.
func TestSpeedsOfAnEarlierLoop(t *testing.T) {
	g := newFigures(t, "abcd", &Options{Speeds: map[string]float64{"a": 1, "b": 2, "d": 4, "gone": 9}})
	if err := g.home.Open(g.now, nil); err != nil {
		t.Fatal(err)
	}
	if got := g.have(); got != [4]int{107, 214, 31, 429} || total(g.home.spare) != 219 {
		t.Errorf("the members have %v, and %d rows are spare", got, total(g.home.spare))
	}
}

// TestStatusComesWithResults: that a member gives its rows back comes with its partial result at the latest, so the next
// iteration does not miss it. The home waits for nothing that a member without rows would say.
func TestStatusComesWithResults(t *testing.T) {
	speeds := []float64{1, 2, 3, 4}
	g := newFigures(t, "abcd", &Options{Speeds: map[string]float64{"a": 1, "b": 2, "c": 3, "d": 4}})
	if err := g.home.Open(g.now, nil); err != nil {
		t.Fatal(err)
	}
	g.home.SetDone(100, 1)
	for i, s := range g.home.seats {
		g.say(s.Peer, workcore.LoopFrame{Number: 1, Done: total(s.spans), Speed: speeds[i+1]})
	}
	for i, s := range g.home.seats { // One frame has the partial result, the speed, and that c is withdrawn.
		g.say(s.Peer, workcore.LoopFrame{Number: 1, Done: total(s.spans), Speed: speeds[i+1], Has: true, Value: []byte(s.Name), Gives: s.Name == "c"})
	}
	if err := g.home.SetPartial([]byte("a"), ""); err != nil {
		t.Fatal(err)
	}
	parts, complete := g.home.Parts()
	if len(parts) != 4 || !complete {
		t.Fatalf("%v, %t", parts, complete)
	}
	if err := g.home.Reduced(g.now, nil); err != nil {
		t.Fatal(err)
	}
	c := g.home.find(workcore.Peer{Name: "c", Life: 1})
	version := c.heard
	for range 3 {
		g.iteration(time.Second, speeds, nil)
		if got := g.have(); got != [4]int{143, 286, 0, 571} || c.heard != version {
			t.Errorf("the members have %v, and c was heard in version %d, want %d", got, c.heard, version)
		}
	}
}

// TestWildSpeeds: whatever speeds members say, each row is handed out once, also those that are spare, and all figures are
// numbers.
func TestWildSpeeds(t *testing.T) {
	for _, speeds := range [][]float64{
		{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64},
		{math.SmallestNonzeroFloat64, math.MaxFloat64, 1, math.SmallestNonzeroFloat64},
		{math.MaxFloat64, math.SmallestNonzeroFloat64, 0, 0},
		{0, 0, 0, math.MaxFloat64},
	} {
		g := newFigures(t, "abcd", &Options{})
		for n := range 4 {
			g.iteration(time.Hour, speeds, nil)
			var all []workcore.Span
			rows := 0
			for _, s := range g.home.all() {
				all, rows = append(all, s.spans...), rows+total(s.spans)
			}
			if rows != 1000 || len(complement(sorted(all), 1000)) > 0 {
				t.Errorf("speeds %v, iteration %d: the members have %v", speeds, n+1, all)
			}
			if r := g.home.Report(); !(r.Efficiency >= 0 && r.Overall >= 0 && r.Efficiency <= math.MaxFloat64 && r.Overall <= math.MaxFloat64) {
				t.Errorf("speeds %v: %+v", speeds, r)
			}
		}
	}
}

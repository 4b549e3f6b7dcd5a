package ablation

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// The views.
const (
	Consistent = "consistent" // the global state that the detector has found
	Latest     = "latest"     // the newest report of each member
)

// Options say what decides.
type Options struct {
	// Balance is the strategy; nil: that of the recorded configuration.
	Balance *balance.Config
	// Stop is a condition on which the work would be ended; empty: no member has a
	// load or a rest.
	Stop string
	// Work is a condition on what was true, under which there was work; empty: some
	// member had a load or a rest, or a load was under way. Both conditions are needed
	// where the recorded configuration has no section balance; nothing is planned then.
	Work string
}

// Counts are what decisions on one view came to.
type Counts struct {
	View string `json:"view"`
	// Views are those that were decided on, each when it was new. Torn are the ones
	// whose states never held together, Old those of which some state was over.
	Views int `json:"views"`
	Torn  int `json:"torn"`
	Old   int `json:"old"`
	// Plans are those with moves. A move is wrong if its load was not there any more
	// (Gone), or its target would have ended with it later than its source without the
	// move (NoGain), by what was true when it was decided. WrongTorn are those of the
	// wrong ones that were decided on torn views, Unclear those of whose members
	// nothing is known at that time.
	Plans     int `json:"plans"`
	Moves     int `json:"moves"`
	Wrong     int `json:"wrong_moves"`
	Gone      int `json:"gone"`
	NoGain    int `json:"no_gain"`
	WrongTorn int `json:"wrong_on_torn"`
	Unclear   int `json:"unclear"`
	// Stops are the views on which the work would have been ended, WrongStops those of
	// them while there was work, with a member or under way.
	Stops      int `json:"stops"`
	WrongStops int `json:"wrong_stops"`
}

// Report is what a journal comes to.
type Report struct {
	Synchronizer string `json:"synchronizer"`
	Strategy     string `json:"strategy"`
	Stop         string `json:"stop"` // empty: nobody has a load
	Work         string `json:"work"` // empty: somebody has one, or one is under way
	Members      int    `json:"members"`
	Loads        int    `json:"loads"`
	Reports      int    `json:"reports"`
	Moved        int    `json:"moved"` // loads that were with several members
	// Differs is the first line of the journal from which on this build comes to
	// something else than was recorded, so that what is taken to be under way is not
	// what was; 0: none.
	Differs int      `json:"differs"`
	Views   []Counts `json:"views"`
}

// Run judges the two views of a journal. The error is about the journal or the
// options.
func Run(journal io.ReadSeeker, opt Options) (*Report, error) {
	t, j, err := readTruth(journal)
	if err != nil {
		return nil, err
	}
	if _, err := journal.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	a := &ablation{truth: t, plan: j.Plan, reader: j.Plan.Reader(), newest: map[string]held{}}
	config, err := a.decisions(&opt)
	if err != nil {
		return nil, err
	}
	for i, view := range []string{Consistent, Latest} {
		strategy, err := balance.New(config)
		if err != nil {
			return nil, err
		}
		a.views[i] = viewer{Counts: Counts{View: view}, strategy: strategy}
	}
	if err := a.replay(journal); err != nil {
		return nil, err
	}
	r := &Report{
		Synchronizer: j.Plan.Name, Strategy: config.Strategy, Stop: opt.Stop, Work: opt.Work, Loads: len(t.loads), Reports: t.reports,
		Views: []Counts{a.views[0].Counts, a.views[1].Counts}, Differs: a.differs,
	}
	names := map[string]bool{}
	for _, l := range t.lives {
		names[l.name] = true
	}
	r.Members = len(names)
	for _, stays := range t.loads {
		if slices.ContainsFunc(stays, func(s stay) bool { return s.life != stays[0].life }) {
			r.Moved++
		}
	}
	return r, nil
}

// decisions reads what the options say of them.
func (a *ablation) decisions(opt *Options) (balance.Config, error) {
	var err error
	for _, c := range []struct {
		what, text string
		to         **predicates.Expression
	}{{"stop", opt.Stop, &a.stop}, {"work", opt.Work, &a.work}} {
		if c.text == "" {
			continue
		}
		if *c.to, err = a.reader.Condition(c.text); err != nil {
			return balance.Config{}, fmt.Errorf("%s: %w", c.what, err)
		}
	}
	config := balance.Default()
	switch b := a.plan.Balancing(); {
	case b == nil && (a.stop == nil || a.work == nil):
		return config, fmt.Errorf("the recorded configuration of %q has no section balance: say when the work would be ended, and when there is some (--stop and --work)", a.plan.Name)
	case b == nil:
		config.Strategy = balance.None
		return config, nil
	default:
		config = b.Config()
	}
	if opt.Balance != nil {
		config = *opt.Balance
	}
	return config, nil
}

// held is a state in a view.
type held struct {
	name        string
	incarnation uint64
	seq         uint64
	row         []scgs.Value
}

// viewer decides on one view.
type viewer struct {
	Counts
	strategy balance.Strategy
}

// ablation is a journal under way.
type ablation struct {
	*truth
	plan   *synccore.Plan
	reader *synccore.Reader
	stop   *predicates.Expression // nil: nobody has a load
	work   *predicates.Expression // nil: somebody has one
	core   *synccore.Core
	views  [2]viewer

	members []string // of the epoch
	newest  map[string]held
	state   [2]uint64 // epoch and number of the global state that was judged last
	flights []synccore.Flight
	now     clocksync.Instant // of the step, by the synchronizer's clock
	differs int
}

// replay steps a machine through the recorded inputs, and decides whenever one of the
// views is new.
func (a *ablation) replay(r io.Reader) error {
	j, err := synccore.ReadJournal(r)
	if err != nil {
		return err
	}
	a.core = synccore.New(j.Plan, j.Header.Options())
	var rec synccore.Record
	var out synccore.Output
	var digest synccore.Digest
	for {
		if err := j.Next(&rec); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a.now = rec.Now
		before := a.core.UnderWay(nil)
		a.core.Step(rec.Now, &rec.Input, &out)
		if digest.Add(&out); a.differs == 0 && !rec.Broken && digest.Sum() != rec.Out {
			a.differs = j.Line()
		}
		for _, e := range out.Epochs {
			a.members = slices.Clone(e.Members)
			if e.Epoch == 0 {
				a.members = nil
			}
		}
		a.flights = underWay(before, a.core.UnderWay(nil))
		fresh := a.report(&rec.Input) || len(out.Epochs) > 0
		a.consistent()
		if fresh {
			a.latest()
		}
	}
}

// underWay is what was under way before a step and has not ended in it. What the
// recorded planner has ordered in the step is the decision that is compared: neither
// view knows of it.
func underWay(before, after []synccore.Flight) []synccore.Flight {
	var list []synccore.Flight
	for _, f := range after {
		if slices.ContainsFunc(before, func(g synccore.Flight) bool { return g.Load == f.Load && g.From == f.From && g.To == f.To }) {
			list = append(list, f)
		}
	}
	return list
}

// report keeps the newest report of a member, and says whether there is one.
func (a *ablation) report(in *synccore.Input) (fresh bool) {
	if in.Kind != synccore.InBatch || in.Group != "" {
		return false
	}
	b := in.Batch
	for i := range b.Reports {
		r, h := &b.Reports[i], a.newest[b.Member]
		if r.End || b.Incarnation < h.incarnation || b.Incarnation == h.incarnation && r.Seq <= h.seq {
			continue
		}
		a.newest[b.Member] = held{b.Member, b.Incarnation, r.Seq, slices.Clone(r.Row)}
		fresh = true
	}
	return fresh
}

// consistent decides on the global state in force, if it is another one.
func (a *ablation) consistent() {
	epoch, index, parts, ok := a.core.InForce()
	if !ok || a.state == [2]uint64{epoch, index} {
		return
	}
	a.state = [2]uint64{epoch, index}
	var view []held
	for i := range parts {
		p := &parts[i]
		if p.State.Unknown {
			return // A partial one is none to compare.
		}
		view = append(view, held{p.Name, a.core.Incarnation(p.Name), p.State.Seq, p.Row})
	}
	a.decide(&a.views[0], view)
}

// latest decides on the newest report of each member of the epoch.
func (a *ablation) latest() {
	var view []held
	for _, name := range a.members {
		h, ok := a.newest[name]
		if !ok {
			return
		}
		view = append(view, h)
	}
	if len(view) > 0 {
		a.decide(&a.views[1], view)
	}
}

// decide has the strategy and the condition for the end decide on a view, and judges
// them.
func (a *ablation) decide(v *viewer, view []held) {
	v.Views++
	now := clocksync.Instant(int64(a.now) - a.delay) // On the clock of the stamps.
	torn := a.judgeView(v, view, now)
	ordered := map[string]string{}
	s := a.balanceState(view, ordered)
	queues, work := a.queues(now, ordered)
	if a.stops(view) {
		v.Stops++
		if a.work != nil {
			work = a.worked(view, now)
		}
		if work {
			v.WrongStops++
		}
	}
	plan := v.strategy.Plan(a.now, s)
	if len(plan.Moves) > 0 {
		v.Plans++
	}
	for i := range plan.Moves {
		a.judge(v, &plan.Moves[i], now, queues, torn)
	}
}

// judgeView says whether the states of a view never held together, and counts that.
func (a *ablation) judgeView(v *viewer, view []held, now clocksync.Instant) (torn bool) {
	from, to, old := clocksync.MinInstant, clocksync.MaxInstant, false
	for i := range view {
		if s := a.truth.state(view[i].name, view[i].incarnation, view[i].seq); s != nil {
			from, to = max(from, s.from), min(to, s.to)
			old = old || s.to <= now
		}
	}
	if torn = from >= to; torn {
		v.Torn++
	}
	if old {
		v.Old++
	}
	return torn
}

// balanceState is what the strategy is told of a view: the states, and what the
// planner of the recorded run knew to be under way.
func (a *ablation) balanceState(view []held, ordered map[string]string) *balance.State {
	flights := map[string]synccore.Flight{}
	for _, f := range a.flights {
		ordered[f.Load] = f.To
		i := slices.IndexFunc(view, func(h held) bool { return h.name == f.To })
		if f.Landed > 0 && i >= 0 && view[i].seq >= f.Landed {
			continue
		}
		flights[f.Load] = f
	}
	s, listed := &balance.State{}, map[string]bool{}
	for i := range view {
		r := a.reader.Read(view[i].name, view[i].row)
		s.Nodes = append(s.Nodes, r.Node)
		for k, name := range r.Loads {
			l := balance.Load{Name: name, Node: r.Node.Name, Weight: r.Weights[k]}
			if f, ok := flights[name]; ok && f.From == l.Node {
				l.To = f.To
			}
			listed[name] = true // Also where it has come to: there it counts.
			s.Loads = append(s.Loads, l)
		}
		if r.Rest != 0 {
			s.Loads = append(s.Loads, balance.Load{Name: r.Node.Name + "/rest", Node: r.Node.Name, Weight: r.Rest, Running: true})
		}
	}
	for _, f := range a.flights {
		if _, flies := flights[f.Load]; flies && !listed[f.Load] {
			s.Loads = append(s.Loads, balance.Load{Name: f.Load, Node: f.From, To: f.To, Weight: f.Weight})
		}
	}
	return s
}

// stops says whether the work would be ended on a view.
func (a *ablation) stops(view []held) bool {
	names, rows := make([]string, len(view)), make([][]scgs.Value, len(view))
	for i := range view {
		names[i], rows[i] = view[i].name, view[i].row
		if a.stop != nil {
			continue
		}
		if r := a.reader.Read(names[i], rows[i]); r.Node.Note != "" || len(r.Loads) > 0 || r.Rest > 0 {
			return false
		}
	}
	return a.stop == nil || a.reader.Holds(a.stop, names, rows)
}

// worked judges the condition of work on what the members of a view truly had.
func (a *ablation) worked(view []held, now clocksync.Instant) bool {
	var names []string
	var rows [][]scgs.Value
	for i := range view {
		if s := a.at(view[i].name, now); s != nil {
			names, rows = append(names, view[i].name), append(rows, s.row)
		}
	}
	return a.reader.Holds(a.work, names, rows)
}

// judge counts a move that is wrong by what was true when it was decided. The moves
// before it are taken to be made.
func (a *ablation) judge(v *viewer, m *balance.Move, now clocksync.Instant, queues map[string]float64, torn bool) {
	v.Moves++
	from, to := a.at(m.From, now), a.at(m.To, now)
	if from == nil || to == nil {
		v.Unclear++
		return
	}
	seconds := func(s *span) float64 { return m.Weight / (s.Node.Power * s.Node.Share) }
	there := slices.Contains(from.Loads, m.Load)
	after := queues[m.To] + seconds(to)
	gain := after <= queues[m.From] && !math.IsInf(after, 1)
	if !there {
		v.Gone++
	} else if !gain {
		v.NoGain++
	}
	if !there || !gain {
		v.Wrong++
		if torn {
			v.WrongTorn++
		}
	}
	if there && !math.IsInf(queues[m.From], 1) { // A queue without end has none with a load less.
		queues[m.From] -= seconds(from)
	}
	queues[m.To] += seconds(to)
}

package synccore

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/regions"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Two machines given the same inputs reach the same state. A machine that begins later first
// receives a summary of the earlier inputs: the reports of the members that still matter, as
// if the members sent them now, and between them, as Kept, the state that no report contains.

// Kept is what a machine has in mind that its members cannot tell. Instants are on the
// machine's clock.
type Kept struct {
	Now       clocksync.Instant  `json:"now"`                // of its last step
	Looked    clocksync.Instant  `json:"looked,omitempty"`   // when silence was looked at last
	Reached   clocksync.Instant  `json:"reached,omitempty"`  // up to when all that the server had was taken in; 0: not known
	Epoch     uint64             `json:"epoch"`              // its number
	Begun     bool               `json:"begun,omitempty"`    // the first one has been reached
	InForce   bool               `json:"in_force,omitempty"` // an epoch is; else all predicates begin again with the next one
	Members   []KeptMember       `json:"members,omitempty"`  // by name
	PutOff    clocksync.Instant  `json:"put_off"`            // when the next of those that wait to come back is let in
	Decisions uint64             `json:"decisions"`          // the number of the last one
	Open      bool               `json:"open,omitempty"`     // there is a current global state
	Heads     uint64             `json:"heads"`              // the sum over its states
	Memory    []scgs.Value       `json:"memory,omitempty"`   // by variable
	Prev      [][]scgs.Value     `json:"prev,omitempty"`     // the global state before, a row for each member of the epoch; none if it is not known
	Rules     []KeptRule         `json:"rules,omitempty"`    // by place
	Letters   []outbox.Kept      `json:"letters,omitempty"`  // signals under way, of decisions with numbers above After
	After     uint64             `json:"after,omitempty"`    // see Letters
	Left      []outbox.Letter    `json:"left,omitempty"`     // signals of earlier terms whose fates may be told yet
	Give      clocksync.Instant  `json:"give,omitempty"`     // when these are given up
	Led       []control.Decision `json:"led,omitempty"`      // the last ones of the terms before that it continues
	Floor     KeptFloor          `json:"floor,omitzero"`     // no hold time begins before it
	Ended     [2]uint32          `json:"ended,omitzero"`     // the largest numbers of firings before the last reload
	Entered   []regions.Kept     `json:"entered,omitempty"`  // regions that members have reported
}

// KeptMember is how a member comes and goes.
type KeptMember struct {
	Name    string            `json:"name"`             // of the member
	In      bool              `json:"in,omitempty"`     // it is in the epoch
	Heard   clocksync.Instant `json:"heard"`            // last
	Entered clocksync.Instant `json:"entered"`          // the epoch that it is in, or was
	Stays   int               `json:"stays,omitempty"`  // short ones
	Left    clocksync.Instant `json:"left"`             // after the last of them
	Before  uint64            `json:"before,omitempty"` // the newest report of it, and of its incarnations before
	Gaps    uint64            `json:"gaps,omitempty"`   // in its reports
	Lost    uint64            `json:"lost,omitempty"`   // states in them
	Gone    uint64            `json:"gone,omitempty"`   // the incarnation that is gone; 0: it is there
	Why     string            `json:"why,omitempty"`    // it is gone
	Joined  uint64            `json:"joined,omitempty"` // the epoch that it entered with
	Was     uint64            `json:"was,omitempty"`    // the number of its state in the last global state of earlier epochs
}

// KeptRule is where a predicate stands.
type KeptRule struct {
	Truth      predicates.Truth  `json:"truth"`                // by the last verdict
	Told       bool              `json:"told,omitempty"`       // it was judged in this epoch
	Came       clocksync.Instant `json:"came"`                 // to that truth
	Armed      bool              `json:"armed,omitempty"`      // it fires at the next true
	Holding    bool              `json:"holding,omitempty"`    // its hold time runs, since Since
	Since      clocksync.Instant `json:"since"`                // on the clock of the epoch's spans
	Due        clocksync.Instant `json:"due"`                  // when to ask for evidence of that, or to fire after all
	Kept       bool              `json:"kept,omitempty"`       // only the cooldown keeps it from firing
	Quiet      clocksync.Instant `json:"quiet"`                // the end of its cooldown
	Suppressed uint64            `json:"suppressed,omitempty"` // firings kept back since the last one
	Cause      control.Cause     `json:"cause"`                // of its last firing
	Made       control.Cause     `json:"made,omitzero"`        // its last firing, if an earlier term has made it, and it was not found again yet
	Most       uint32            `json:"most,omitempty"`       // the largest number of a firing
	Fired      uint64            `json:"fired,omitempty"`      // so often, the last time by Last, at At
	Last       control.Decision  `json:"last"`                 // see Fired
	At         clocksync.Instant `json:"at"`                   // see Fired
	Shot       bool              `json:"shot,omitempty"`       // it has fired in this epoch
	Shots      bool              `json:"shots,omitempty"`      // it has fired in this run
	On         bool              `json:"on,omitempty"`         // it has fired on the current global state, or was kept back
	First      clocksync.Instant `json:"first,omitempty"`      // its first firing since it was last ready again; 0: there was none
	Epoch      uint64            `json:"epoch,omitempty"`      // of its last firing
	Ones       []KeptOne         `json:"ones,omitempty"`       // of a rule that is judged for each member
}

// handover is where a machine stands that is retold the inputs of another one.
type handover struct {
	retold bool              // they are not over yet
	kept   *Kept             // of them
	same   bool              // it has come to the same global state
	led    clocksync.Instant // since when it continues in place of that one
	termAt clocksync.Instant // since when it continues in its term
	before uint64            // the number of the last decision of that one
	// The program as the other one's records lead to it; nil if one of them was missing.
	recalled plan.Executor
	records  int               // of these
	was      clocksync.Instant // of the step before
}

// Record is one of a program, of [plan.Executor].
type Record struct {
	After int         `json:"after"` // how many were before
	Step  plan.Record `json:"step"`  // JSON
}

// recallProgram takes the next record of the program of another machine.
func (c *Core) recallProgram(r *Record, out *Output) {
	if c.recalled == nil {
		return
	}
	err := fmt.Errorf("one comes after %d, and %d have come", r.After, c.records)
	if r.After == c.records {
		err = c.recalled.Recall(r.Step)
	}
	if c.records++; err != nil {
		c.recalled = nil
		out.addReject(c.plan.Name, "the records of the program cannot be followed: "+err.Error())
	}
}

// Records are the program's records after the first ones. Whole is false if they are more than
// are kept: then no machine can continue with them.
func (c *Core) Records(after int) (list []plan.Record, whole bool) {
	if c.exec == nil {
		return nil, true
	}
	return c.exec.Log(after)
}

// Recalls reports whether the machine, which follows another one, could continue the program.
func (h *handover) Recalls() bool { return h.recalled != nil }

// Follows tells whether the machine has reached the state of the machine that it follows when
// it was retold its inputs: only then do hold times, edges and prev continue. Before that is
// over ready is false.
func (c *Core) Follows() (ready, same bool) { return !c.retold, c.same }

// Kept is what the machine has in mind.
func (c *Core) Kept() *Kept {
	k := &Kept{
		Now: c.now, Looked: c.looked, Reached: c.reached, Epoch: c.epoch, Begun: c.begun, InForce: c.begun && !c.paused && len(c.removing) == 0, PutOff: c.putOff,
		Decisions: c.decisions, Open: c.tuple, Heads: c.heads, Memory: c.memory, Letters: c.outbox.Kept(0), Rules: c.keptRules(),
		Left: c.earlier.left, Give: c.earlier.give, Led: c.earlier.led, Floor: c.floor, Ended: c.ended, Entered: c.reports.regions.Kept(),
	}
	for _, m := range c.sorted {
		kept := KeptMember{
			Name: m.name, In: k.InForce && m.index != noIndex && !m.gone, Heard: m.lastHeard(), Entered: m.entered, Stays: m.stays, Left: m.left,
			Before: max(m.before, m.last), Gaps: m.losses.gaps, Lost: m.losses.states,
		}
		if kept.In {
			kept.Joined, kept.Was = m.joined, m.was
		}
		if m.gone {
			kept.Gone, kept.Why = m.incarnation, m.why
		}
		k.Members = append(k.Members, kept)
	}
	if c.plan.Prev && k.InForce {
		k.Prev = c.scope.Last(c.tuple)
	}
	return k
}

func (c *Core) keptRules() []KeptRule {
	rules := make([]KeptRule, len(c.states))
	for i := range c.states {
		s := &c.states[i]
		rules[i] = KeptRule{
			Truth: s.truth, Told: s.told, Came: s.past.since, Armed: s.armed, Holding: s.holding, Since: s.since, Due: s.due, Kept: s.kept,
			Quiet: s.quiet, Suppressed: s.suppressed, Cause: s.cause.Cause, Most: s.cause.most, Fired: s.past.fired, Last: s.past.last.Decision, At: s.past.at,
			Shot: s.shot, Shots: s.shots, On: s.on > 0 && s.on == c.ev.Index, First: s.first, Epoch: s.epoch,
		}
		if s.cause.Firing == 0 {
			rules[i].Made = s.made
		}
		if rules[i].Ones = slices.Clone(s.ones); c.plan.Rules[i].Detector.Each && !c.opt.Follows {
			rules[i].Ones = c.keptOnes(i)
		}
	}
	return rules
}

// KeptUpTo is what the machine has in mind if it is sure of the decisions up to a number alone:
// others may be another machine's under the same number.
func (c *Core) KeptUpTo(decision uint64) *Kept {
	k := c.Kept()
	k.Letters = slices.DeleteFunc(k.Letters, func(l outbox.Kept) bool {
		return l.Signal.Decision.Term == c.opt.Term && l.Signal.Decision.Number > decision
	})
	k.Led = append(slices.Clip(k.Led), control.Decision{Term: c.opt.Term, Number: decision})
	return k
}

// Decisions is the number of the last decision.
func (c *Core) Decisions() uint64 { return c.decisions }

// MadeAlone is what a machine that follows this one has to be told after a step that came to
// out, beside its input: nil unless it has no part in a decision of that step.
func (c *Core) MadeAlone(out *Output) *Kept {
	first, tell := c.decisions+1, false
	for i := range out.Verdicts {
		if v := &out.Verdicts[i]; v.Fired {
			first = min(first, v.Decision.Number)
			tell = tell || c.plan.Rules[c.ruleIndex(v.Predicate)].Detector.Exists()
		}
	}
	for i := range out.Plans {
		if n := out.Plans[i].Decision.Number; n > 0 {
			first, tell = min(first, n), true
		}
	}
	if !tell {
		return nil
	}
	return &Kept{Now: c.now, After: first - 1, Decisions: c.decisions, Memory: c.memory, Letters: c.outbox.Kept(first - 1), Rules: c.keptRules(), Floor: c.floor}
}

// Retell tells the inputs by which a machine of the same level comes to follow this one,
// all at the instant of its last step. What they point to holds during the call only.
// There is nothing of the program, of the section balance and of the rules' own detectors
// in them but what follows from the members' states.
func (c *Core) Retell(tell func(*Input)) {
	again := c.opt
	again.Follows = true
	if c.exec != nil {
		again.Program = c.exec.ID()
	}
	tell(&Input{Kind: InRestart, Restart: &again})
	c.retellOthers(tell)
	kept := c.Kept()
	queues := make(map[*member][]scgs.Part, len(c.inEpoch))
	for _, m := range c.sorted {
		if m.gone {
			continue
		}
		h := wire.Hello{Member: m.name, Incarnation: m.incarnation, Host: m.host, Domain: m.domain, Quality: m.quality, Causes: m.causes, Over: m.over, Common: m.common, Same: m.same, Process: m.process}
		if m.life < m.incarnation {
			h.Life = m.life
		}
		if m.multiplexer != nil {
			h.Multiplexer = m.multiplexer.name
		}
		tell(&Input{Kind: InHello, From: m.name, Hello: &h})
		b := wire.Batch{Member: m.name, Incarnation: m.incarnation, Regions: m.regions}
		if m.index != noIndex {
			queue := c.det.States(nil, m.index)
			first := slices.IndexFunc(queue, func(p scgs.Part) bool { return !p.Unknown })
			if first >= 0 {
				b.Reports = []wire.Report{{Seq: queue[first].Seq, At: queue[first].Start, Row: c.row(m, queue[first].Ref)}}
				queues[m] = queue[first:]
			}
		} else if m.newest.known {
			b.Reports = []wire.Report{{Seq: m.last, At: m.newest.at, Row: c.row(m, m.newest.ref)}}
			if clocksync.CertainlyBefore(m.newest.at, m.newest.alive) {
				b.Evidence = wire.Evidence{Seq: m.last, At: m.newest.alive}
			}
		}
		tell(&Input{Kind: InBatch, From: m.name, Batch: &b})
	}
	tell(&Input{Kind: InKept, Kept: kept})
	for _, m := range c.sorted {
		if !m.gone {
			c.retellRest(m, queues[m], tell)
		}
	}
	for _, m := range c.sorted { // In an order of its own: the order of the first members.
		if x := m.multiplexer; m.listed && x.listed[0] == m {
			x.retell(tell)
		}
	}
	tell(&Input{Kind: InTick})
}

// retellOthers tells the known state of members of other groups.
func (c *Core) retellOthers(tell func(*Input)) {
	for _, o := range c.plan.OtherGroups {
		for _, m := range c.others[o.Name].sorted {
			h := wire.Hello{Member: m.name, Incarnation: m.incarnation, Multiplexer: m.by, Causes: m.causes, Over: m.over}
			tell(&Input{Kind: InHello, Group: o.Name, From: m.name, Hello: &h})
			b := wire.Batch{Member: m.name, Incarnation: m.incarnation, Regions: m.regions}
			tell(&Input{Kind: InBatch, Group: o.Name, From: m.name, Batch: &b})
		}
	}
}

// retellRest tells the states behind the state that the detector looks at, and the reports that
// wait behind a gap.
func (c *Core) retellRest(m *member, queue []scgs.Part, tell func(*Input)) {
	batch := func(b wire.Batch) {
		b.Member, b.Incarnation, b.Again = m.name, m.incarnation, true
		tell(&Input{Kind: InBatch, From: m.name, Batch: &b})
	}
	gone := func(first uint64) {
		tell(&Input{Kind: InGone, From: m.name, Gone: &wire.Gone{Member: m.name, Incarnation: m.incarnation, First: first}})
	}
	last, lost := uint64(0), false
	for i := range queue {
		switch p := &queue[i]; {
		case p.Unknown:
			lost = true
		case i > 0:
			if p.Seq > last+1 {
				gone(p.Seq)
			}
			batch(wire.Batch{Reports: []wire.Report{{Seq: p.Seq, At: p.Start, Row: c.row(m, p.Ref)}}})
			last = p.Seq
		default:
			last = p.Seq
		}
		p := &queue[i]
		if more := i+1 < len(queue); p.Open || p.Unknown || more && (queue[i+1].Unknown || queue[i+1].Seq == p.Seq+1) {
			continue
		}
		last++
		batch(wire.Batch{Reports: []wire.Report{{Seq: last, At: p.End, End: true}}})
	}
	if n := len(queue); n > 0 && queue[n-1].Open && !lost && last == m.last && clocksync.CertainlyBefore(queue[n-1].Start, queue[n-1].End) {
		batch(wire.Batch{Evidence: wire.Evidence{Seq: last, At: queue[n-1].End}})
	}
	if first := max(m.lost, m.last+1); first > last+1 {
		gone(first)
	}
	for i := range m.stash {
		batch(wire.Batch{Reports: []wire.Report{m.stash[i].Report}})
	}
}

// rosterPiece is how many members of a roster a message tells at once.
const rosterPiece = 32

// retell tells the roster of a multiplexer.
func (x *multiplexer) retell(tell func(*Input)) {
	listed := make([]wire.Listed, len(x.listed))
	for i, m := range x.listed {
		listed[i] = wire.Listed{Member: m.name, Incarnation: m.incarnation, Seq: m.last, Regions: m.regions}
	}
	for first := 0; first < len(listed); first += rosterPiece {
		tell(&Input{Kind: InShared, From: x.name, Shared: &wire.Bundle{Roster: wire.Roster{
			Version: x.version, Total: uint64(len(listed)), First: uint64(first), //nolint:gosec // Counts.
			Listed: listed[first:min(first+rosterPiece, len(listed))],
		}}})
	}
}

// takeIntent takes another machine's intent. A machine that is retold its inputs begins its
// epoch, and takes over the rest when they are over. Any other one, whose clock may be another,
// takes over the memory, the last occasions on which the predicates fired, and the rest of
// their cooldowns.
func (c *Core) takeIntent(k *Kept, out *Output) {
	if why := c.unfit(k); why != "" {
		out.addReject(c.plan.Name, "what another machine has in mind cannot be taken over: "+why)
		return
	}
	for l := range k.letters { // To a group that no signal goes to any more.
		if l.Group != "" && c.others[l.Group] == nil {
			c.others[l.Group] = &otherGroup{name: l.Group}
		}
	}
	switch {
	case c.retold:
	case c.opt.Follows:
		c.inherit(k)
		c.floor = k.Floor
		c.outbox.Restore(k.After, k.Letters)
		for i := range c.states {
			c.stands(i, &k.Rules[i])
		}
		return
	default:
		c.inherit(k)
		for i := range c.states {
			r := &k.Rules[i]
			s := &c.states[i]
			s.epoch = 0 // Its epochs have other numbers, and all members are new.
			s.quiet, s.past.at = c.now.Add(max(0, r.Quiet.Sub(k.Now))), c.now.Add(r.At.Sub(k.Now))
			if r.First != 0 {
				s.first = c.now.Add(r.First.Sub(k.Now))
			}
			for k2 := range s.ones {
				s.ones[k2].Quiet = c.now.Add(max(0, s.ones[k2].Quiet.Sub(k.Now)))
			}
			c.again(i, &k.Rules[i])
		}
		left, e := slices.Clone(k.Left), &c.earlier
		for i := range k.Letters {
			left = append(left, k.Letters[i].Letter)
		}
		for i := range left {
			l := &left[i]
			if !slices.ContainsFunc(e.left, func(have outbox.Letter) bool { return idOf(&have) == idOf(l) }) {
				e.left = append(e.left, *l) // Its target may tell its fate.
			}
		}
		e.led, e.give = append(e.led, k.Led...), c.now.Add(c.plan.Silence.After+heardWithin)
		return
	}
	c.kept = k
	for i := range k.Members {
		kept := &k.Members[i]
		m := c.members[kept.Name]
		if m == nil && kept.Gone > 0 {
			m = c.addMember(kept.Name)
			c.absent++
			m.gone, m.incarnation, m.why, m.weight = true, kept.Gone, kept.Why, wire.Weight(m.name, kept.Gone)
		}
		if m != nil {
			m.heard, m.entered, m.stays, m.left = kept.Heard, kept.Entered, kept.Stays, kept.Left
			m.before, m.losses = kept.Before, losses{kept.Gaps, kept.Lost}
		}
	}
	c.epoch, c.begun, c.paused = k.Epoch, k.Begun, k.Begun && !k.InForce
	if !k.InForce {
		return
	}
	var entering []*member
	for i := range k.Members {
		if m := c.members[k.Members[i].Name]; k.Members[i].In && m != nil && m.isReady() {
			entering = append(entering, m)
		}
	}
	c.switchDetector(entering)
	for i := range k.Members {
		if m := c.members[k.Members[i].Name]; m != nil && m.index != noIndex {
			m.entered, m.joined, m.was = k.Members[i].Entered, k.Members[i].Joined, k.Members[i].Was
		}
	}
	c.rearmAll(false)
	c.resetScope()
	c.paused = !c.makesEpoch(len(c.inEpoch))
	out.reset()
}

// unfit says why a machine like this one cannot have had that in mind; "" if it can.
func (c *Core) unfit(k *Kept) string {
	switch {
	case len(k.Rules) != len(c.states) || len(k.Memory) != len(c.memory):
		return "it is of another configuration"
	case c.kept != nil:
		return "that was told before"
	case k.Epoch >= control.MaxTerm || k.Decisions >= control.MaxTerm:
		return "the numbers of its epoch and its decisions are to be below 2^62"
	}
	for i := range k.Memory {
		if f := c.plan.Variables[i].Field; k.Memory[i].Type() != scgs.Invalid && !f.Accepts(k.Memory[i]) {
			return fmt.Sprintf("memory.%s does not take %s", f.Name, f.Show(k.Memory[i]))
		}
	}
	for i := range k.Members {
		if i > 0 && k.Members[i].Name <= k.Members[i-1].Name {
			return fmt.Sprintf("member %q is behind member %q, and they are in order of their names", k.Members[i].Name, k.Members[i-1].Name)
		}
		if err := wire.CheckToken("member", k.Members[i].Name); err != nil {
			return err.Error()
		}
		if k.Members[i].Gone >= wire.MaxIncarnation {
			return fmt.Sprintf("member %q was incarnation %d: it is to be below 2^62", k.Members[i].Name, k.Members[i].Gone)
		}
	}
	for _, row := range k.Prev {
		if err := c.plan.State.Accepts(row); err != nil && len(row) > 0 {
			return "prev: " + err.Error()
		}
	}
	if why := regions.Unfit(k.Entered); why != "" {
		return why
	}
	var frame []byte
	n := 0
	for l := range k.letters {
		if n++; l.Signal == nil || l.Owner < outbox.Rule || l.Owner > outbox.Balance || l.Group != "" && wire.CheckToken("group", l.Group) != nil {
			return fmt.Sprintf("letter %d has no signal, no owner, or a group that has no name", n)
		}
		var err error
		if frame, _, err = wire.AppendSignals(frame[:0], &wire.Signals{Synchronizer: c.plan.Name, Signals: []control.Signal{*l.Signal}}); err != nil {
			return fmt.Sprintf("letter %d: %v", n, err)
		}
	}
	return ""
}

// letters are the signals under way, and those left from earlier terms.
func (k *Kept) letters(yield func(*outbox.Letter) bool) {
	for i := range k.Letters {
		if !yield(&k.Letters[i].Letter) {
			return
		}
	}
	for i := range k.Left {
		if !yield(&k.Left[i]) {
			return
		}
	}
}

// takeRetold takes an input that is retold. The outputs of the input count for nothing.
func (c *Core) takeRetold(in *Input, out *Output) {
	if in.Kind == InTick && c.kept != nil {
		c.takeOver(out)
		return
	}
	reloads, rejected := len(out.Reloads), 0
	if in.Kind == InKept {
		rejected = len(out.Rejected)
	}
	out.reset()
	out.Reloads, out.Rejected = out.Reloads[:reloads], out.Rejected[:rejected]
}

// inherit takes over what no global state has to be the same for.
func (c *Core) inherit(k *Kept) {
	for i, v := range k.Memory {
		c.setMemory(i, v)
	}
	for i := range c.states {
		s, r := &c.states[i], &k.Rules[i]
		s.suppressed = r.Suppressed
		s.past.fired, s.past.at = r.Fired, r.At
		s.shots, s.first, s.epoch, s.ones = r.Shots, r.First, r.Epoch, slices.Clone(r.Ones)
		if s.past.last.Decision != r.Last { // Else its witness is known.
			s.past.last = monitor.Verdict{Predicate: c.plan.Rules[i].Name, Truth: predicates.True, Fired: r.Fired > 0, Decision: r.Last}
		}
	}
	c.decisions, c.ended = k.Decisions, k.Ended
	c.reports.regions.Inherit(k.Entered, func(group string) bool { return group == "" || c.others[group] != nil })
}

// stands lets a predicate stand where it did in another machine.
func (j *judgement) stands(i int, k *KeptRule) {
	s := &j.states[i]
	s.truth, s.told, s.armed, s.holding, s.since, s.due, s.kept = k.Truth, k.Told, k.Armed, k.Holding, k.Since, k.Due, k.Kept
	s.quiet, s.cause = k.Quiet, causes{k.Cause, k.Most}
	s.past.truth, s.past.since = k.Truth, k.Came
	j.hasMade(s, &k.Made)
	s.shot, s.shots, s.first, s.epoch, s.ones = k.Shot, k.Shots, k.First, k.Epoch, slices.Clone(k.Ones)
	if s.on = 0; k.On {
		s.on = j.ev.Index
	}
}

// again lets a predicate begin again that another machine has judged. Where it has fired
// there, it makes the same firing: whoever has had that one does not obey it twice.
func (j *judgement) again(i int, k *KeptRule) {
	s := &j.states[i]
	*s = s.beginAgain()
	s.cause.Witness, s.cause.Firing, s.cause.most = 0, 0, max(s.cause.most, k.Most)
	if made := k.Cause; made.Firing > 0 {
		j.hasMade(s, &made)
	} else {
		j.hasMade(s, &k.Made)
	}
}

// hasMade has a predicate make a firing of an earlier term as the same, if it finds its states again.
func (j *judgement) hasMade(s *ruleState, made *control.Cause) {
	s.made = *made
	if made.Firing == 0 {
		return
	}
	if j.earlier.fates == nil {
		j.earlier.firings, j.earlier.fates = map[control.Cause]uint32{}, map[earlierID]control.Fate{}
	}
	j.earlier.firings[control.Cause{Source: made.Source, Witness: made.Witness}] = made.Firing
}

// takeOver ends the retelling: the predicates are judged on the members' reports, without an
// effect, and stand where they stood.
func (c *Core) takeOver(out *Output) {
	k := c.kept
	c.retold, c.kept = false, nil
	c.sweepDetector(out)
	in := 0
	for i := range k.Members {
		if k.Members[i].In {
			in++
		}
	}
	c.same = k.InForce && !c.paused && in == len(c.inEpoch) && c.tuple == k.Open && (!c.tuple || c.heads == k.Heads)
	c.sets, c.outbox, c.earlier = c.sets[:0], outbox.New(), earlier{left: k.Left, give: k.Give, led: k.Led}
	c.inherit(k)
	c.floor = k.Floor
	c.outbox.Restore(0, k.Letters)
	for i := range c.states {
		if c.same {
			c.stands(i, &k.Rules[i])
			c.states[i].past.epoch = c.epoch
			continue
		}
		c.states[i].quiet = k.Rules[i].Quiet
		c.again(i, &k.Rules[i])
		c.states[i].shot = k.InForce && k.Rules[i].Shot
	}
	if c.same && k.Prev != nil {
		c.scope.SetLast(k.Prev, c.tuple)
	}
	c.heardBefore(k)
	c.lookAtAll()
	c.changed, c.putOff = !k.InForce, k.PutOff
	out.reset()
	out.Wake = c.nextWake()
}

// heardBefore counts silence as the other machine does: retold messages were said before. A
// multiplexer was heard no later than any of its members.
func (c *Core) heardBefore(k *Kept) {
	c.looked, c.reached = k.Looked, k.Reached
	for _, x := range c.multiplexers.byName {
		x.heard = c.now
	}
	for i := range k.Members {
		m := c.members[k.Members[i].Name]
		if m == nil {
			continue
		}
		if m.heard = k.Members[i].Heard; m.listed {
			m.multiplexer.heard = min(m.multiplexer.heard, m.heard)
		}
	}
}

// succeedLeader is for a machine that has followed another machine, and takes its place: the
// detectors of rules begin with the current states, and the section balance begins again.
func (c *Core) succeedLeader() {
	c.opt.Follows, c.led, c.before = false, c.now, c.decisions
	c.parts = c.det.Witness(c.parts[:0])
	for i, r := range c.plan.Rules {
		if r.Detector.Exists() {
			s, was := &c.states[i], c.states[i]
			c.again(i, &KeptRule{Cause: was.cause.Cause, Most: was.cause.most})
			s.shot, s.armed = was.shot, was.armed || r.Until == nil // The epoch is the same.
			c.beginRuns(i, r)
		}
	}
	c.lookAtAll()
	c.balanceBy(c.plan.Balance)
	if c.planner != nil {
		c.planner.Regroup(c.planMembers())
	}
}

// Sum is a digest of where the machine stands: two that were stepped on the same inputs
// have the same one.
// It is 0 where a program runs, of which another machine knows the records alone.
func (c *Core) Sum() uint64 {
	if c.plan.Program != nil {
		return 0
	}
	sum := uint64(fnvOffset)
	add := func(n uint64) {
		for range 8 {
			sum = (sum ^ n&0xff) * fnvPrime
			n >>= 8
		}
	}
	flags := func(list ...bool) {
		n := uint64(0)
		for i, b := range list {
			if b {
				n |= 1 << i
			}
		}
		add(n)
	}
	add(c.opt.Term)
	add(c.epoch)
	add(c.decisions)
	add(uint64(c.outbox.Len())) //nolint:gosec // A count.
	flags(c.begun, c.paused, c.tuple)
	if c.tuple {
		add(c.heads)
	}
	for i := range c.memory {
		for _, b := range []byte(c.memory[i].String()) {
			add(uint64(b))
		}
	}
	for i := range c.states {
		s := &c.states[i]
		if c.plan.Rules[i].Detector.Exists() {
			continue
		}
		flags(s.told, s.armed, s.holding, s.kept)
		add(uint64(s.truth))
		add(uint64(s.quiet)) //nolint:gosec // Only the bits count.
		if s.holding {
			add(uint64(s.since)) //nolint:gosec // Likewise.
		}
		add(s.cause.Witness)
		add(uint64(s.cause.most))
		add(s.epoch)
	}
	return sum
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Goes is how a predicate continues after the machine was retold: whole or, if not, which part
// of it begins again.
func (c *Core) Goes(r *plan.Rule) (again string) {
	switch {
	case r.Detector.Exists():
		return "the condition is looked for again among the members' newest states"
	case !c.same && r.Hold > 0:
		return "its hold time begins again, and it fires again" + ifTrue(r)
	case !c.same:
		return "the predicate is judged again, and fires again" + ifTrue(r)
	}
	return ""
}

// Term is the term that the machine is in.
func (c *Core) Term() uint64 { return c.opt.Term }

package workplan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// Options say for which members a configuration is planned.
type Options struct {
	Names  []string  // of the members; empty: those that the file names, and others up to Count
	Count  int       // of members; 0: as the file says
	Speeds []float64 // of the members in their order, in tasks a second; empty: those of the key speeds, or all alike
	Tasks  int       // that are spread, 1 to MaxTasks
	Bytes  float64   // of each
	Cost   Cost      // of a message
}

// The limits of Options.
const (
	MaxTasks   = 100_000
	MaxMembers = 1000
	maxSpeed   = 1e12
)

// DefaultTasks is how many tasks a plan is for if nothing is said.
const DefaultTasks = 1000

// Plan says what the section work of a synchronizer does.
type Plan struct {
	Synchronizer string   `json:"synchronizer"` // its name
	Group        string   `json:"group"`        // of its members
	Topology     string   `json:"topology"`     // one of local.Topologies
	Strategy     string   `json:"strategy"`     // its kind
	Members      []Member `json:"members"`      // in the order of Options
	Alike        bool     `json:"alike"`        // nothing says how fast the members are
	Tasks        int      `json:"tasks"`        // that it is for
	Paths        []Path   `json:"paths"`        // of tasks; empty: members ask and offer by load
	Ways         []Way    `json:"ways"`         // of the tasks, and of the calls of each function
	Warnings     []string `json:"warnings"`     // each with its place
}

// Member is one member.
type Member struct {
	Name       string   `json:"name"`       // in the roster
	Named      bool     `json:"named"`      // by the file or by Options; else the name stands for a member that the file does not name
	Speed      float64  `json:"speed"`      // tasks a second
	Neighbours []string `json:"neighbours"` // by the topology
}

// Path says that one member may give tasks to another one.
type Path struct {
	From  string  `json:"from"`  // the member that gives
	To    string  `json:"to"`    // the member that gets tasks
	Share float64 `json:"share"` // the part of its spare tasks that From gives
	When  string  `json:"when"`  // the condition, in words
	Level int     `json:"level"` // of a tree, from 1; 0: of links
	// Moved and Moves are by the theorems 6.1 and 6.2, of a pair of members that have as many tasks at first; 0: none.
	Moved float64 `json:"moved"`
	Moves float64 `json:"moves"` // see Moved
}

// Way is how tasks, or the calls of a function, reach the members.
type Way struct {
	Calls      string   `json:"calls"`      // the function; empty: tasks
	Rule       string   `json:"rule"`       // as the file says it
	Split      []int    `json:"split"`      // how many each member gets, by theory
	First      []int    `json:"first"`      // the first parcel of each member; null: the strategy splits nothing
	Seconds    float64  `json:"seconds"`    // until all are done
	Rate       float64  `json:"rate"`       // tasks a second
	Efficiency float64  `json:"efficiency"` // Rate as a part of all speeds
	Anomaly    *Anomaly `json:"anomaly"`    // null: every member helps
}

// planner makes the plan of a section.
type planner struct {
	plan  Plan
	opt   *Options
	doc   *yamlconf.Doc
	level *plan.Level
	at    string // the path of the section
	names []mention
}

// mention is where the section names a member.
type mention struct {
	name, path string
	column     int // in the text there, in characters from 1; 0: the whole value
}

// New plans each section work of a file. The error is a *yamlconf.Error with every fault and its place, or says what is
// wrong with the options.
func New(file string, src []byte, opt *Options) ([]*Plan, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	levels, err := configfile.Parse(file, src)
	if err != nil {
		return nil, err
	}
	doc, err := yamlconf.Decode(file, src, &config.Config{})
	if err != nil {
		return nil, err
	}
	var plans []*Plan
	for _, level := range levels {
		if level.Work == nil {
			continue
		}
		p := planner{opt: opt, doc: doc, level: level, at: "synchronizers." + level.Name + "." + config.WorkName}
		if err := p.make(); err != nil {
			return nil, err
		}
		plans = append(plans, &p.plan)
	}
	if len(plans) == 0 {
		doc.FaultAt("synchronizers", "no synchronizer has a section work: add work: {} to the one whose members share tasks")
	}
	return plans, doc.Err()
}

func (o *Options) check() error {
	switch {
	case o.Tasks < 1 || o.Tasks > MaxTasks:
		return fmt.Errorf("tasks: %d is out of range: give 1 to %d", o.Tasks, MaxTasks)
	case o.Count < 0 || o.Count > MaxMembers || len(o.Names) > MaxMembers || len(o.Speeds) > MaxMembers:
		return fmt.Errorf("members: there may be 1 to %d of them", MaxMembers)
	case !(o.Bytes >= 0 && o.Bytes <= maxSpeed):
		return fmt.Errorf("bytes: %v is out of range: give 0 or more", o.Bytes)
	}
	for i, name := range o.Names {
		if name == "" || slices.Contains(o.Names[:i], name) {
			return fmt.Errorf("members: the name %q is empty or there twice: give each member one name", name)
		}
	}
	for i, speed := range o.Speeds {
		if !(speed > 0 && speed <= maxSpeed) {
			return fmt.Errorf("speeds: number %d is %v: a member that does nothing has no part in a plan: give numbers above 0", i+1, speed)
		}
	}
	return nil
}

func (p *planner) make() error {
	w := p.level.Work
	p.plan = Plan{
		Synchronizer: p.level.Name, Group: p.level.Members.Group, Topology: w.Topology, Strategy: w.Strategy.Kind, Tasks: p.opt.Tasks,
		Paths: []Path{}, Ways: []Way{}, Warnings: []string{},
	}
	p.mentions()
	if err := p.members(); err != nil {
		return err
	}
	paths, err := w.Strategy.Paths(p.namesOf())
	if err != nil {
		return err // The loader has refused it before.
	}
	p.checkMembers()
	p.checkPaths(paths)
	if p.doc.Err() != nil {
		return nil //nolint:nilerr // New returns the faults of all sections.
	}
	p.listPaths(paths)
	p.taskWay(paths)
	for i := range w.Calls {
		p.callWay(w.Calls[i].Key, &w.Calls[i].Value)
	}
	return nil
}

// mentions lists the members that the section names, in the order of links, replicas and speeds.
func (p *planner) mentions() {
	s := &p.level.Work.Strategy
	add := func(name, path string, column int) {
		if !slices.ContainsFunc(p.names, func(m mention) bool { return m.name == name && m.path == path }) {
			p.names = append(p.names, mention{name, path, column})
		}
	}
	if s.Kind == local.Links {
		paths, _ := s.Paths(nil) // The loader has refused faults.
		for _, path := range paths {
			ends := []mention{{path.From, "", path.Column}, {path.To, "", path.Other}}
			if path.Column > path.Other {
				slices.Reverse(ends)
			}
			for _, e := range ends {
				add(e.name, p.at+".strategy.links", e.column)
			}
		}
	}
	for i := range p.level.Work.Calls {
		call := &p.level.Work.Calls[i]
		for k, name := range call.Value.Replicas {
			add(name, fmt.Sprintf("%s.calls.%s.replicas[%d]", p.at, call.Key, k), 0)
		}
	}
	names, _ := s.Throughputs()
	slices.SortFunc(names, func(a, b string) int { return speedColumn(s.Speeds, a) - speedColumn(s.Speeds, b) })
	for _, name := range names {
		add(name, p.at+".strategy.speeds", speedColumn(s.Speeds, name))
	}
}

// speedColumn is where the key speeds names a member, in characters from 1.
func speedColumn(text, name string) int {
	at := 0
	for part := range strings.SplitSeq(text, ",") {
		trimmed := strings.TrimSpace(part)
		if i := strings.LastIndex(trimmed, ":"); i > 0 && strings.TrimSpace(trimmed[:i]) == name {
			return len([]rune(text[:at+strings.Index(part, trimmed)])) + 1
		}
		at += len(part) + 1
	}
	return 1
}

// offset is the place of a column in bytes.
func offset(text string, column int) int {
	for i := range text {
		if column--; column <= 0 {
			return i
		}
	}
	return len(text)
}

// fault reports a fault at a mention.
func (p *planner) fault(m mention, format string, args ...any) {
	if m.column == 0 {
		p.doc.FaultAt(m.path, format, args...)
		return
	}
	text := p.level.Work.Strategy.Links
	if strings.HasSuffix(m.path, ".speeds") {
		text = p.level.Work.Strategy.Speeds
	}
	p.doc.FaultIn(m.path, offset(text, m.column), format, args...)
}

// warn adds a warning at a path.
func (p *planner) warn(path, format string, args ...any) {
	f := p.doc.Note(yamlconf.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Path, f.Message))
}

func (p *planner) namesOf() (list []string) {
	for i := range p.plan.Members {
		list = append(list, p.plan.Members[i].Name)
	}
	return list
}

func (p *planner) speeds() (list []float64) {
	for i := range p.plan.Members {
		list = append(list, p.plan.Members[i].Speed)
	}
	return list
}

// members decides which members there are, and how fast they are.
func (p *planner) members() error {
	names, m := slices.Clone(p.opt.Names), p.level.Members
	count := max(p.opt.Count, len(p.opt.Speeds))
	if names == nil {
		for _, mention := range p.names {
			if !slices.Contains(names, mention.name) {
				names = append(names, mention.name)
			}
		}
		if count == 0 {
			count = min(MaxMembers, max(len(names), m.Count))
		}
	} else {
		count = max(count, len(names))
	}
	if n := len(p.opt.Speeds); n > 0 && n != count {
		return fmt.Errorf("speeds: there are %d numbers, and %d members: give one for each", n, count)
	}
	if p.opt.Names != nil && p.opt.Count > len(names) {
		return fmt.Errorf("members: %d names for %d members: give all names, or only the number", len(names), p.opt.Count)
	}
	if count > m.Max {
		p.doc.FaultAt("synchronizers."+p.level.Name+".members", "%d members are planned for, and at most %d take part: raise the largest count, or plan for fewer", count, m.Max)
	}
	if len(names) > count {
		at := p.names[slices.IndexFunc(p.names, func(m mention) bool { return m.name == names[count] })]
		p.fault(at, "the name %q is the %s of %d members: plan for all named members, or remove a name", names[count], ordinal(count+1), count)
		names = names[:count]
	}
	named := len(names)
	for i := 1; len(names) < count; i++ {
		if name := fmt.Sprintf("m%d", i); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	listed, speeds := p.level.Work.Strategy.Throughputs()
	p.plan.Alike = len(p.opt.Speeds) == 0 && len(listed) == 0
	sorted := slices.Sorted(slices.Values(names)) // As in a roster.
	for i, name := range names {
		member := Member{Name: name, Named: i < named, Speed: 1}
		if k := slices.Index(listed, name); k >= 0 {
			member.Speed = speeds[k]
		}
		if len(p.opt.Speeds) > 0 {
			member.Speed = p.opt.Speeds[i]
		}
		member.Neighbours = []string{}
		for _, k := range local.Topology(p.level.Work.Topology).AppendNeighbours(nil, slices.Index(sorted, name), len(sorted)) {
			member.Neighbours = append(member.Neighbours, sorted[k])
		}
		p.plan.Members = append(p.plan.Members, member)
	}
	return nil
}

// ordinal is a number in a row.
func ordinal(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// complete reports whether the name of each member is known.
func (p *planner) complete() bool {
	return !slices.ContainsFunc(p.plan.Members, func(m Member) bool { return !m.Named })
}

func (p *planner) member(name string) *Member {
	for i := range p.plan.Members {
		if p.plan.Members[i].Name == name {
			return &p.plan.Members[i]
		}
	}
	return nil
}

// checkMembers refuses names of members that there are not, and speeds that are not known.
func (p *planner) checkMembers() {
	all := strings.Join(p.namesOf(), ", ")
	for _, m := range p.names {
		if p.member(m.name) != nil {
			continue
		}
		switch {
		case p.opt.Names == nil: // There are more names than members, which is a fault already.
		case strings.HasSuffix(m.path, ".links"):
			p.fault(m, "a link leads to %q, and there is no such member: name one of %s", m.name, all)
		case strings.HasSuffix(m.path, ".speeds"):
			p.fault(m, "a speed is given for %q, and there is no such member: name one of %s", m.name, all)
		default:
			p.fault(m, "the replica %q is not known: name one of %s", m.name, all)
		}
	}
	s := &p.level.Work.Strategy
	listed, _ := s.Throughputs()
	var unknown []string
	for i := range p.plan.Members {
		if m := &p.plan.Members[i]; !slices.Contains(listed, m.Name) {
			unknown = append(unknown, m.Name)
		}
	}
	if s.Kind == local.Tree && len(listed) > 0 && len(unknown) > 0 {
		p.doc.FaultAt(p.at+".strategy.speeds", "the speed of %s is not known, and would count as 1: add %s: NUMBER", strings.Join(unknown, ", "), unknown[0])
	}
}

// checkPaths refuses links that move nothing, and warns of rings.
func (p *planner) checkPaths(paths []local.Path) {
	s := &p.level.Work.Strategy
	at := p.at + ".strategy.links"
	if s.Kind == local.Tree && p.level.Work.Topology != "" && p.level.Work.Topology != local.Full {
		p.warn(p.at+".topology", "a tree is built of the neighbours, and with the topology %s each member builds another one: write topology: full", p.level.Work.Topology)
	}
	if s.Kind != local.Links {
		return
	}
	given := map[string]float64{}
	group := map[string]string{} // by member: another one that a link leads to, for trees
	var find func(string) string
	find = func(name string) string {
		if up, ok := group[name]; ok && up != name {
			return find(up)
		}
		return name
	}
	seen := map[[2]string]bool{}
	for _, path := range paths {
		here := mention{path.From, at, min(path.Column, path.Other)}
		from, back := p.member(path.From), seen[[2]string{path.To, path.From}]
		seen[[2]string{path.From, path.To}] = true
		if sum := given[path.From] + path.Share; sum > 1+1e-9 && given[path.From] <= 1+1e-9 {
			p.fault(mention{path.From, at, path.Column}, "with this link %s gives %s of its tasks, more than it has: let the parts behind one member add up to 1 at most", path.From, fraction(sum))
		}
		given[path.From] += path.Share
		if back || from == nil || p.member(path.To) == nil {
			continue
		}
		a, b := find(path.From), find(path.To)
		adjacent := slices.Contains(from.Neighbours, path.To)
		switch {
		case a == b && p.level.Work.Topology == local.BinaryTree:
			p.fault(here, "the link closes a cycle over %s and %s, and the topology tree has none: leave the link out, or write topology: full", path.From, path.To)
		case !adjacent && p.complete():
			p.fault(here, "%s and %s are no neighbours by the topology %s, so no task takes this link: write topology: full, or link neighbours", path.From, path.To, p.level.Work.Topology)
		}
		group[a] = b
	}
	if ring := pushRing(paths); ring != nil {
		p.warn(at, "the links %s close a ring of members that give while they are overloaded, whatever the next one has: by CORD's rule tasks circulate while all of them are overloaded. Here a member keeps more than the next one gets, so moves end. Leave one link out, or let members ask with u", strings.Join(ring, " > "))
	}
}

// pushRing finds a ring of paths whose givers do not look at the load of the next member; nil: there is none.
func pushRing(paths []local.Path) []string {
	next := map[string][]string{}
	var starts []string
	for _, path := range paths {
		if path.Pushes {
			next[path.From] = append(next[path.From], path.To)
			starts = append(starts, path.From)
		}
	}
	done := map[string]bool{}
	var trail []string
	var walk func(name string) []string
	walk = func(name string) []string {
		if i := slices.Index(trail, name); i >= 0 {
			return append(slices.Clone(trail[i:]), name)
		}
		if done[name] {
			return nil
		}
		trail = append(trail, name)
		for _, to := range next[name] {
			if ring := walk(to); ring != nil {
				return ring
			}
		}
		trail = trail[:len(trail)-1]
		done[name] = true
		return nil
	}
	for _, name := range starts {
		if ring := walk(name); ring != nil {
			return ring
		}
	}
	return nil
}

// listPaths lists the paths and the tasks that move over them.
func (p *planner) listPaths(paths []local.Path) {
	for _, path := range paths {
		out := Path{From: path.From, To: path.To, Share: path.Share, When: path.When, Level: path.Level}
		from, to := p.member(path.From), p.member(path.To)
		if path.Level == 1 && !p.plan.Alike && to.Speed > from.Speed && p.level.Work.Strategy.Speeds == "" {
			n := float64(p.plan.Tasks) / float64(len(p.plan.Members))
			out.Moved, out.Moves = Moved(from.Speed, to.Speed, n), Moves(from.Speed, to.Speed, n)
		}
		p.plan.Paths = append(p.plan.Paths, out)
	}
}

// taskWay adds what the strategy should come to. The tasks lie at the first member.
func (p *planner) taskWay(paths []local.Path) {
	s, names, speeds := &p.level.Work.Strategy, p.namesOf(), p.speeds()
	w := Way{Rule: "kind: " + s.Kind}
	run := way(together)
	switch s.Kind {
	case local.Chunk:
		w.Rule += ", cut: " + s.Cut
		run = func(speeds []float64, tasks int) timing {
			cut, err := local.ParseCutter(s.Cut)
			if err != nil {
				return timing{} // The loader has refused it before.
			}
			src := source{size: cut.Next, places: 1, home: 0, cost: p.opt.Cost, bytes: p.opt.Bytes}
			return src.onDemand(speeds, tasks)
		}
		cut, err := local.ParseCutter(s.Cut)
		for left := p.plan.Tasks; err == nil && len(w.First) < len(names); {
			n := cut.Next(left, len(names))
			left -= n
			w.First = append(w.First, n)
		}
	case local.Tree:
		w.First = s.FirstSplit(names, p.plan.Tasks)
	case local.Links:
		reached := reach(paths, names[0])
		var out []string
		for i, name := range names {
			if !slices.Contains(reached, name) {
				out = append(out, name)
				speeds[i] = 0
			}
		}
		if len(out) > 0 {
			p.warn(p.at+".strategy.links", "no links lead from %s to %s: tasks that %s puts never get there: add a link, or put the tasks at several members", names[0], strings.Join(out, ", "), names[0])
		}
	}
	p.addWay(w, run, speeds, p.at+".strategy")
}

// reach are the members that tasks of a member get to.
func reach(paths []local.Path, from string) []string {
	list := []string{from}
	for i := 0; i < len(list); i++ {
		for _, path := range paths {
			if path.From == list[i] && !slices.Contains(list, path.To) {
				list = append(list, path.To)
			}
		}
	}
	return list
}

// openCalls is how many calls of a function one caller has open at most.
const openCalls = 1024

// callWay adds what the calls of a function should come to. The caller is not one of the servers.
func (p *planner) callWay(name string, c *config.WorkCall) {
	speeds := p.speeds()
	var replicas []int
	for i := range speeds {
		if c.Replicas != nil && !slices.Contains(c.Replicas, p.plan.Members[i].Name) {
			speeds[i] = 0
			continue
		}
		replicas = append(replicas, i)
	}
	w := Way{Calls: name, Rule: "style: " + styleOf(c)}
	src := source{size: func(int, int) int { return 1 }, home: -1, cost: p.opt.Cost, bytes: p.opt.Bytes}
	run := way(src.onDemand)
	delay := p.opt.Cost.Of(p.opt.Bytes) + p.opt.Cost.Of(0)
	sync, demand, low, high, err := config.ParseStyle(c.Style)
	shares, bad := config.ParseRatio(c.Ratio)
	switch {
	case errors.Join(err, bad) != nil:
		return // The loader has refused it before.
	case sync:
		run = oneByOne(delay)
	case shares != nil:
		w.Rule += ", ratio: " + c.Ratio
		part := make([]float64, len(speeds))
		for i, share := range shares {
			if k := slices.Index(p.namesOf(), c.Replicas[i]); k >= 0 {
				part[k] = float64(share)
			}
		}
		run = byShares(part, delay)
	case demand:
		if src.places = high; high == 0 {
			src.places = max(low, openCalls/max(1, len(replicas)))
		}
	default:
		src.places = max(1, openCalls/max(1, len(replicas)))
		if p.plan.Tasks <= openCalls {
			run = byShares(nil, delay)
		}
	}
	if len(replicas) == 1 && len(p.plan.Members) > 1 {
		p.warn(p.at+".calls."+name, "only %s serves it: the others have no part in these calls: list more replicas, or leave replicas out", p.plan.Members[replicas[0]].Name)
	}
	p.addWay(w, run, speeds, p.at+".calls."+name)
}

func styleOf(c *config.WorkCall) string {
	if c.Style == "" {
		return config.StyleAsync
	}
	return c.Style
}

// addWay computes a way, and warns if it is faster without slow members.
func (p *planner) addWay(w Way, run way, speeds []float64, at string) {
	t := run(speeds, p.plan.Tasks)
	sum := 0.0
	for i := range p.plan.Members {
		sum += p.plan.Members[i].Speed
	}
	w.Split, w.Seconds = t.counts, t.seconds
	if t.seconds > 0 && !math.IsInf(t.seconds, 0) {
		w.Rate = float64(p.plan.Tasks) / t.seconds
		w.Efficiency = w.Rate / sum
	}
	if w.Anomaly = anomaly(run, p.namesOf(), speeds, p.plan.Tasks, t.seconds); w.Anomaly != nil {
		p.warn(at, "without %s all would end after %s s, and with all members after %s s: a slow member that gets as much as the others, or a large parcel late, lets them wait: give it less, or leave it out", strings.Join(w.Anomaly.Without, ", "), number(w.Anomaly.Seconds), number(t.seconds))
	}
	p.plan.Ways = append(p.plan.Ways, w)
}

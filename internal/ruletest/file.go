package ruletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// File is a checked file of rule tests.
type File struct {
	Name  string
	Tests []*Test
}

// Test is one test of a file. It does not change, and may be run again.
type Test struct {
	Name string
	Place

	plan    *plan.Level
	seeds   int
	lasts   time.Duration
	delay   time.Duration
	loss    float64
	windows []window
	members []*participant
	process []entry
	parent  []parentSignal
	expect  []expectation
}

// Place is a place in a file of tests.
type Place struct {
	File   string `json:"-"`      // its path
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // from 1
	Source string `json:"-"`      // the text of the line
}

// participant is a member or a thread of a test.
type participant struct {
	name      string
	host      string // empty: the synchronizer's
	skew, off time.Duration
	delay     time.Duration
	manual    bool // it enters regions without a script
	initial   []scgs.Value
	entries   []entry
}

type parentSignal struct {
	at   time.Duration
	name string
	data []control.Datum
}

// rawFile and the types below are the form of a file.
type rawFile struct {
	Config  string               `yaml:"config,required"`
	Initial yamlconf.Map[scalar] `yaml:"initial"`
	Tests   []rawTest            `yaml:"tests,required"`
}

type rawTest struct {
	node         yamlconf.Node
	Name         string                  `yaml:"name,required"`
	Synchronizer string                  `yaml:"synchronizer"`
	Count        int                     `yaml:"count"`
	Params       yamlconf.Map[scalar]    `yaml:"params"` // values of parameters
	Seeds        int                     `yaml:"seeds"`
	Lasts        time.Duration           `yaml:"lasts"`
	Initial      scalar                  `yaml:"initial"`
	Network      rawNetwork              `yaml:"network"`
	Members      yamlconf.Map[rawMember] `yaml:"members,required"`
	Process      script                  `yaml:"process"`
	Parent       script                  `yaml:"parent"`
	Expect       []yamlconf.Node         `yaml:"expect,required"`
}

// UnmarshalNode keeps the place.
func (t *rawTest) UnmarshalNode(n yamlconf.Node) error {
	type plain rawTest // Without this method.
	t.node, t.Seeds, t.Network.Delay = n, 1, defaultDelay
	return n.Decode((*plain)(t))
}

type rawNetwork struct {
	Delay   time.Duration `yaml:"delay"`
	Loss    float64       `yaml:"loss"`
	Windows []window      `yaml:"windows"`
}

// window is a stretch of time in which messages are lost.
type window struct {
	From    time.Duration `yaml:"from,required"`
	To      time.Duration `yaml:"to,required"`
	Loss    *float64      `yaml:"loss"` // the part that is, 1 by default
	Members yamlconf.Node `yaml:"members"`
	names   []string      // of these members; empty: all
}

// rawMember is a timeline, or a map with more.
type rawMember struct {
	node   yamlconf.Node
	Host   string         `yaml:"host"`
	Skew   time.Duration  `yaml:"skew"`
	Offset time.Duration  `yaml:"offset"`
	Delay  *time.Duration `yaml:"delay"`
	States script         `yaml:"states,required"`
}

func (m *rawMember) UnmarshalNode(n yamlconf.Node) error {
	type plain rawMember // Without this method.
	m.node = n
	if n.Kind() == yamlconf.KindMap {
		return n.Decode((*plain)(m))
	}
	return n.Decode(&m.States)
}

const (
	defaultDelay  = time.Millisecond
	maxDelay      = 10 * time.Second
	afterTheLast  = time.Second // a test continues after the last time it names
	defaultWithin = 100 * time.Millisecond
)

// Reader reads the configuration that a file of tests names, and says by which
// name its faults tell of it.
type Reader func(path string) (name string, src []byte, err error)

// Parse reads a file of tests. The error is a *yamlconf.Error with every fault of
// the file, or of the configuration that it names.
func Parse(name string, src []byte, config Reader) (*File, error) {
	var raw rawFile
	doc, err := yamlconf.Decode(name, src, &raw)
	if doc == nil {
		return nil, err
	}
	doc.Advise(`unknown key "synchronizers"`, `a configuration is for "pegasus check"; its rule tests are a file of their own, which names it with config:`)
	if raw.Config == "" {
		if err == nil {
			doc.FaultAt("config", "write the path of a configuration, beside this file or absolute")
		}
		return nil, doc.Err()
	}
	path, source, err := config(raw.Config)
	if err != nil {
		doc.FaultAt("config", "%v", err)
		return nil, doc.Err()
	}
	plans, err := configfile.Parse(path, source)
	if err != nil {
		return nil, err
	}
	if len(raw.Tests) == 0 && doc.Err() == nil {
		doc.FaultAt("tests", "there is no test: give a list with a name, members and expect for each")
	}
	for _, e := range raw.Initial {
		if plans.Get(e.Key) == nil {
			doc.Fault(e.Pos, "%s has no synchronizer %q: it has %s", raw.Config, e.Key, levelNames(plans))
		}
	}
	file, seen := &File{Name: name}, map[string]int{}
	for i := range raw.Tests {
		t := &raw.Tests[i]
		if absent(t.node) {
			continue
		}
		if line, ok := seen[t.Name]; ok && t.Name != "" {
			doc.FaultAt(t.node.Path()+".name", "the test in line %d has this name, too", line)
		}
		seen[t.Name] = t.node.Pos().Line
		p := testParser{
			doc: doc, file: &raw, config: path, source: source, raw: t, path: t.node.Path(),
			test: &Test{Name: t.Name, Place: placeOf(doc, t.node)},
		}
		if p.test.plan = p.plan(plans); p.test.plan != nil {
			p.read()
			file.Tests = append(file.Tests, p.test)
		}
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return file, nil
}

// absent reports whether a file does not have a value, or it is null, which was reported when
// it was decoded.
func absent(n yamlconf.Node) bool { return n == yamlconf.Node{} }

func placeOf(doc *yamlconf.Doc, n yamlconf.Node) Place {
	f := doc.Note(yamlconf.Fault{Pos: n.Pos()})
	return Place{f.File, f.Line, f.Column, f.Source}
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = name(x)
	}
	return names
}

func levelNames(plans plan.Levels) string {
	return strings.Join(namesOf(plans, func(l *plan.Level) string { return l.Name }), ", ")
}

// testParser reads one test.
type testParser struct {
	doc     *yamlconf.Doc
	file    *rawFile
	config  string
	source  []byte
	raw     *rawTest
	path    string
	test    *Test
	regions []string
	entries int
	last    time.Duration // that is named
	about   []span        // times of the expectation that is read
}

func (t *testParser) read() {
	for _, s := range t.test.plan.Sends() {
		if !slices.Contains(t.regions, s.Region) {
			t.regions = append(t.regions, s.Region)
		}
	}
	if n := len(t.regions); n > control.MaxOpen {
		t.doc.Fault(t.raw.node.Pos(), "the signals of %s go to %d regions, and a member is in at most %d at a time", t.test.plan.Name, n, control.MaxOpen)
	}
	t.options()
	t.members()
	t.process()
	t.parent()
	for _, w := range t.test.windows {
		t.named(w.To)
	}
	for _, n := range t.raw.Expect {
		t.expectation(n)
	}
	if len(t.raw.Expect) == 0 {
		t.fault("expect", "a test that expects nothing cannot fail: say what a predicate comes to")
	}
	t.duration()
}

func (t *testParser) fault(key, format string, args ...any) {
	t.doc.FaultAt(t.path+"."+key, format, args...)
}

// named notes a time that the test names: it continues beyond.
func (t *testParser) named(at time.Duration) { t.last = max(t.last, at) }

// plan finds the synchronizer that is tested, awaiting as many members as the test
// says.
func (t *testParser) plan(plans plan.Levels) *plan.Level {
	name := t.raw.Synchronizer
	switch {
	case name == "" && len(plans) > 1:
		t.doc.Fault(t.raw.node.Pos(), "%s has several synchronizers: add synchronizer: with one of %s", t.file.Config, levelNames(plans))
		return nil
	case name == "":
		name = plans[0].Name
	case plans.Get(name) == nil:
		t.fault("synchronizer", "%s has no synchronizer %q: it has %s", t.file.Config, name, levelNames(plans))
		return nil
	}
	var overrides []plan.Override
	for _, p := range t.raw.Params {
		overrides = append(overrides, plan.Override{Param: p.Key, Value: p.Value.text})
		if _, err := configfile.Parse(t.config, t.source, overrides...); err != nil {
			t.fault("params."+p.Key, "%v", err)
			return nil
		}
	}
	if _, ok := t.raw.node.Get("count"); ok {
		overrides = append(overrides, plan.Override{Synchronizer: name, Count: t.raw.Count})
	}
	if len(overrides) == 0 {
		return plans.Get(name)
	}
	changed, err := configfile.Parse(t.config, t.source, overrides...)
	if err != nil {
		t.fault("count", "%v", err)
		return nil
	}
	return changed.Get(name)
}

func (t *testParser) options() {
	raw, test := t.raw, t.test
	test.seeds, test.delay, test.loss, test.windows = raw.Seeds, raw.Network.Delay, raw.Network.Loss, raw.Network.Windows
	if raw.Seeds < 1 || raw.Seeds > maxSeeds {
		t.fault("seeds", "%d is out of range: a test is repeated with 1 to %d seeds", raw.Seeds, maxSeeds)
	}
	t.checkDelay("network.delay", test.delay)
	t.checkPart("network.loss", test.loss)
	if _, ok := raw.node.Get("network"); ok && test.plan.Members.Threads {
		t.fault("network", "threads report through memory: there is no network")
	}
	for i := range test.windows {
		w, at := &test.windows[i], fmt.Sprintf("network.windows[%d]", i)
		if w.Loss == nil {
			w.Loss = new(1.0)
		}
		t.checkPart(at+".loss", *w.Loss)
		if w.From < 0 || w.To <= w.From || w.To > maxLasts {
			t.fault(at, "a window goes from a time to a later one, up to %v", maxLasts)
		}
	}
}

func (t *testParser) checkDelay(key string, d time.Duration) {
	if d < 0 || d > maxDelay {
		t.fault(key, "%v is out of range: a message takes from 0s to %v", d, maxDelay)
	}
}

func (t *testParser) checkPart(key string, part float64) {
	if part < 0 || part > 1 {
		t.fault(key, "%v is out of range: the part that is lost is from 0 to 1", part)
	}
}

func (t *testParser) reader() *reader {
	return &reader{
		doc: t.doc, schema: t.test.plan.State, what: "the state", members: true,
		local: t.test.plan.Members.Threads, regions: t.regions, count: &t.entries,
	}
}

// initial gives the fields that first states may leave out.
func (t *testParser) initial() []scgs.Value {
	row := defaults(t.test.plan.State)
	file, _ := t.file.Initial.Get(t.test.plan.Name)
	for _, text := range []scalar{file, t.raw.Initial} {
		r := t.reader()
		r.members = false
		for _, w := range split(word{text.node, 0, text.text}, ' ') {
			if !strings.Contains(w.text, "=") {
				r.fault(w, "%q is no FIELD=VALUE", w.text)
			} else if i, value, ok := r.field(w); ok {
				row[i] = r.value(value, r.schema[i])
			}
		}
	}
	return row
}

func (t *testParser) members() {
	initial := t.initial()
	if _, given := t.raw.node.Get("members"); given && len(t.raw.Members) == 0 { // Without the key that is reported already.
		t.fault("members", "a test needs members, each with a timeline")
	}
	for i := range t.raw.Members {
		e := &t.raw.Members[i]
		if absent(e.Value.node) {
			continue
		}
		names, err := expand(e.Key)
		if err != nil {
			t.doc.Fault(e.Pos, "%v", err)
			continue
		}
		// One script for all of them: its faults are reported once.
		first := t.participant(e.Key, &e.Value, initial)
		for _, name := range names {
			m := *first
			m.name = name
			if m.host == "" && m.skew > 0 {
				m.host = "host-" + name
			}
			if t.has(name) {
				t.doc.Fault(e.Pos, "member %q is there already", name)
			}
			t.test.members = append(t.test.members, &m)
		}
	}
	if n := len(t.test.members); n > maxMembers {
		t.fault("members", "%d members, at most %d take part in a test", n, maxMembers)
	}
	t.hosts()
	for i := range t.test.windows {
		if w := &t.test.windows[i]; !absent(w.Members) {
			w.names = t.names(w.Members)
		}
	}
}

// has reports whether the test has a member of that name.
func (t *testParser) has(name string) bool {
	return slices.ContainsFunc(t.test.members, func(m *participant) bool { return m.name == name })
}

func (t *testParser) participant(key string, raw *rawMember, initial []scgs.Value) *participant {
	at := "members." + yamlconf.Path(key)
	m := &participant{host: raw.Host, skew: raw.Skew, off: raw.Offset, delay: t.test.delay, initial: initial}
	if raw.Delay != nil {
		m.delay = *raw.Delay
		t.checkDelay(at+".delay", m.delay)
	}
	switch {
	case t.test.plan.Members.Threads && raw.node.Kind() == yamlconf.KindMap:
		t.fault(at, "threads share the clock and the memory of their process: a timeline is all that can be said of them")
	case m.host != "" && wire.CheckToken("host", m.host) != nil:
		t.fault(at+".host", "%v", wire.CheckToken("host", m.host))
	case m.skew < 0 || m.skew > time.Hour:
		t.fault(at+".skew", "%v is out of range: a clock is off by at most 0s to 1h", m.skew)
	case m.off.Abs() > m.skew:
		t.fault(at, "the clock is off by %v and claims to be off by at most %v: give a skew of %v or more", m.off, m.skew, m.off.Abs())
	}
	m.entries = t.reader().read(raw.States)
	for _, e := range m.entries {
		t.named(e.at)
		for _, s := range e.steps {
			m.manual = m.manual || s.verb == verbEnter || s.verb == verbExit
		}
	}
	t.lives(m)
	return m
}

// lives checks that what a member does makes sense in its order: it joins with a
// whole state, and does nothing while it is not there.
func (t *testParser) lives(m *participant) {
	r := t.reader()
	here, left := false, time.Duration(0)
	missing := lacking(m.initial)
	for i, e := range m.entries {
		here = here || i == 0
		for j, s := range e.steps {
			switch {
			case s.verb == verbJoin && here && (i > 0 || j > 0):
				r.fault(s.word, "the member is here already")
			case s.verb == verbJoin && !here:
				here, missing = true, lacking(m.initial)
			case !here:
				r.fault(s.word, "the member has left at %v: join comes first", left)
				return
			case s.verb == verbLeave || s.verb == verbCrash:
				here, left = false, e.at
			}
			for _, a := range s.values {
				missing[a.field] = false
			}
		}
		var lacks []string
		for k, f := range r.schema {
			if here && missing[k] {
				lacks = append(lacks, f.Name)
			}
		}
		// An initial that is refused says nothing, and the fault is reported already.
		if given, is := t.raw.node.Get("initial"); len(lacks) > 0 && (!is || !composed(given)) {
			r.fault(e.text, "the first state lacks %s: give every field, or put what all members begin with below initial", strings.Join(lacks, ", "))
			return
		}
	}
}

// defaults is a row before anything is set.
func defaults(s scgs.Schema) []scgs.Value {
	row := make([]scgs.Value, len(s))
	for i, f := range s {
		row[i] = f.Default
	}
	return row
}

func lacking(row []scgs.Value) []bool {
	list := make([]bool, len(row))
	for i, v := range row {
		list[i] = v.Type() == scgs.Invalid
	}
	return list
}

// hosts checks that members of a host agree on its clock.
func (t *testParser) hosts() {
	clocks := map[string]*participant{}
	for _, m := range t.test.members {
		first := clocks[m.host]
		if m.host == "" {
			continue
		}
		if first == nil {
			clocks[m.host] = m
			continue
		}
		if first.skew != m.skew || first.off != m.off {
			t.fault("members."+yamlconf.Path(m.name), "%q and %q are on host %s and have clocks with another skew or offset: a host has one clock", first.name, m.name, m.host)
		}
	}
}

// process reads the timeline of the process beside its threads.
func (t *testParser) process() {
	schema := t.test.plan.Process
	switch {
	case len(t.raw.Process) == 0 && len(schema) > 0:
		t.doc.Fault(t.raw.node.Pos(), "%s declares a state of the process: add process: with a timeline of %s", t.test.plan.Name, orNone(fieldNames(schema)))
	case len(t.raw.Process) > 0 && len(schema) == 0:
		t.fault("process", "%s declares no state of a process", t.test.plan.Name)
	case len(schema) > 0:
		r := &reader{doc: t.doc, schema: schema, what: "the process", count: &t.entries}
		t.test.process = r.read(t.raw.Process)
		missing := lacking(defaults(schema))
		for i, e := range t.test.process {
			t.named(e.at)
			for _, s := range e.steps {
				for _, a := range s.values {
					missing[a.field] = false
				}
			}
			if j := slices.Index(missing, true); i == 0 && j >= 0 {
				r.fault(e.text, "the first state of the process lacks %s: give every field", schema[j].Name)
			}
		}
	}
}

// parent reads the signals that come from the level above: TIME SIGNAL
// FIELD=VALUE...
func (t *testParser) parent() {
	signals := t.test.plan.FromParent()
	if len(t.raw.Parent) > 0 && len(signals) == 0 {
		t.fault("parent", "%s has no parent that sends signals", t.test.plan.Name)
		return
	}
	known := namesOf(signals, func(s predicates.ParentSignal) string { return s.Name })
	r := &reader{doc: t.doc, count: &t.entries}
	for _, p := range t.raw.Parent {
		words := split(p, ' ')
		if len(words) < 2 {
			r.fault(p, "write TIME SIGNAL FIELD=VALUE...")
			continue
		}
		at, ok := r.duration(words[0], "an entry begins with its time, such as 200ms")
		if !ok {
			continue
		}
		i := slices.Index(known, words[1].text)
		if i < 0 {
			r.fault(words[1], "the parent sends no signal %q: it sends %s", words[1].text, strings.Join(known, ", "))
			continue
		}
		r.schema, r.what = signals[i].Fields, "the signal "+signals[i].Name
		data := make([]control.Datum, len(r.schema))
		for _, w := range words[2:] {
			if j, value, ok := r.field(w); ok {
				data[j] = control.Datum{Name: r.schema[j].Name, Value: r.value(value, r.schema[j])}
			}
		}
		if j := slices.IndexFunc(data, func(d control.Datum) bool { return d.Value.Type() == scgs.Invalid }); j >= 0 {
			r.fault(words[1], "the signal %s carries %s: give it a value", signals[i].Name, r.schema[j].Name)
		}
		t.named(at)
		t.test.parent = append(t.test.parent, parentSignal{at, signals[i].Name, data})
	}
}

// duration is up to a second after the last time that is named.
func (t *testParser) duration() {
	t.test.lasts = cmp.Or(t.raw.Lasts, min(t.last+afterTheLast, maxLasts))
	switch {
	case t.raw.Lasts < 0 || t.raw.Lasts > maxLasts:
		t.fault("lasts", "%v is out of range: a test lasts at most %v", t.raw.Lasts, maxLasts)
	case t.test.lasts < t.last:
		t.fault("lasts", "the test names %v, and ends before: leave lasts out, or make it longer", t.last)
	}
}

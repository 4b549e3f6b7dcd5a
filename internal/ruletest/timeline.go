package ruletest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/scgs"
)

// The limits of a test.
const (
	maxLasts   = time.Hour
	maxMembers = 1000
	maxEntries = 100_000 // of all timelines, with repetitions
	maxSeeds   = 10_000
)

// script is a timeline as the file writes it, cut at its bars.
type script []word

// UnmarshalNode takes a text with bars between the entries, or a list of such
// texts.
func (s *script) UnmarshalNode(n yamlconf.Node) error {
	switch n.Kind() { //nolint:exhaustive // What is left is no timeline.
	case yamlconf.KindText:
		*s = append(*s, split(word{n, 0, n.Text()}, '|')...)
		return nil
	case yamlconf.KindList:
		for _, item := range n.Items() {
			if err := item.Decode(s); err != nil {
				return err
			}
		}
		return nil
	}
	return n.Fault(`a timeline is a text such as "0s phase=idle | 200ms phase=busy", or a list of such texts`)
}

// word is a part of a text of the file.
type word struct {
	node   yamlconf.Node
	offset int
	text   string
}

// from is the part from some byte on.
func (w word) from(i int) word { return word{w.node, w.offset + i, w.text[i:]} }

// split cuts a text at a separator that is in no quotes and no brackets, and
// trims the parts; empty ones between blanks are left out.
func split(of word, separator byte) []word {
	var words []word
	depth, start := 0, 0
	quote := byte(0)
	cut := func(end int) {
		part := of.text[start:end]
		lead := len(part) - len(strings.TrimLeft(part, " \n"))
		if part = strings.TrimSpace(part); part != "" || separator != ' ' {
			words = append(words, word{of.node, of.offset + start + lead, part})
		}
		start = end + 1
	}
	for i := range len(of.text) {
		switch c := of.text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case depth == 0 && (c == separator || separator == ' ' && c == '\n'):
			cut(i)
		}
	}
	cut(len(of.text))
	return words
}

// entry is what happens at one time, in the order of its steps.
type entry struct {
	at    time.Duration
	text  word
	steps []step
}

type verb uint8

const (
	verbSet verb = iota // a state: the fields in values
	verbJoin
	verbLeave
	verbCrash
	verbCut
	verbHeal
	verbEnter
	verbExit
)

// verbs are the words of a timeline beside FIELD=VALUE.
var verbs = map[string]verb{
	"join": verbJoin, "leave": verbLeave, "crash": verbCrash, "cut": verbCut, "heal": verbHeal, "enter": verbEnter, "exit": verbExit,
}

type step struct {
	verb   verb
	region string
	values []assigned
	word   word
}

// assigned is a value for the field of that number.
type assigned struct {
	field int
	value scgs.Value
}

// reader reads timelines of a schema.
type reader struct {
	doc     *yamlconf.Doc
	schema  scgs.Schema
	what    string // "the state", for faults
	members bool   // its entries may hold verbs
	local   bool   // of threads
	regions []string
	count   *int // entries so far, of the whole test
}

func (r *reader) fault(w word, format string, args ...any) {
	r.doc.FaultIn(w.node.Path(), w.offset, format, args...)
}

// read reads a timeline; its entries are in ascending order of time.
func (r *reader) read(s script) []entry {
	var list []entry
	last := time.Duration(-1)
	for _, p := range s {
		words := split(p, ' ')
		if len(words) == 0 {
			r.fault(p, "an entry of a timeline is empty: write TIME FIELD=VALUE..., with bars between the entries")
			continue
		}
		at, ok := r.duration(words[0], "an entry of a timeline begins with its time, such as 200ms")
		if !ok {
			continue
		}
		if at <= last {
			r.fault(words[0], "%v is not after %v: the entries of a timeline are in the order of time", at, last)
			continue
		}
		for _, e := range r.entries(p, at, words[1:]) {
			last = e.at
			list = append(list, e)
		}
	}
	return list
}

func (r *reader) duration(w word, hint string) (time.Duration, bool) {
	d, err := time.ParseDuration(w.text)
	switch {
	case err != nil:
		r.fault(w, "%q is no time: %s", w.text, hint)
	case d < 0 || d > maxLasts:
		r.fault(w, "%v is out of range: a test lasts from 0s to %v", d, maxLasts)
	default:
		return d, true
	}
	return 0, false
}

// entries are one entry, or as many as its words repeat.
func (r *reader) entries(p word, at time.Duration, words []word) []entry {
	var every time.Duration
	if n := len(words); n >= 2 && words[n-2].text == "every" {
		var ok bool
		if every, ok = r.duration(words[n-1], "every needs one, such as 100ms"); !ok {
			return nil
		}
		if every == 0 {
			r.fault(words[n-1], "every 0s would never come to an end: give a time above 0")
			return nil
		}
		words = words[:n-2]
	}
	first := entry{at: at, text: p}
	times, ramps := 0, []ramp(nil)
	state := -1 // the step that sets fields
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.Contains(w.text, "=") {
			s, used := r.verb(words[i:])
			i += used
			if s.verb != verbSet {
				first.steps = append(first.steps, s)
			}
			continue
		}
		if state < 0 {
			state = len(first.steps)
			first.steps = append(first.steps, step{verb: verbSet, word: w})
		}
		field, value, ok := r.field(w)
		if !ok {
			continue
		}
		set := &first.steps[state].values
		if slices.ContainsFunc(*set, func(a assigned) bool { return a.field == field }) {
			r.fault(w, "%s is given twice at %v", r.schema[field].Name, at)
		}
		m, ok := r.ramp(value, field)
		if !ok {
			*set = append(*set, assigned{field, r.value(value, r.schema[field])})
			continue
		}
		ramps = append(ramps, m)
		if times > 0 && times != m.times {
			r.fault(value, "%q lasts %d steps, and another field of the entry for %d: they have to agree", value.text, m.times, times)
		}
		times = m.times
		*set = append(*set, assigned{field, m.at(0)})
	}
	switch {
	case len(ramps) > 0 && every == 0:
		r.fault(p, `a value that repeats needs a pace: end the entry with "every 100ms"`)
	case len(ramps) == 0 && every > 0:
		r.fault(p, `nothing repeats here: "every" goes with a value such as 0+0.1x10`)
	}
	*r.count += times + 1
	if *r.count > maxEntries {
		if *r.count -= times + 1; *r.count <= maxEntries { // Told once.
			r.fault(p, "the timelines of this test have more than %d entries: shorten one", maxEntries)
			*r.count = maxEntries + 1
		}
		return nil
	}
	list := []entry{first}
	for n := 1; n <= times; n++ {
		s := step{verb: verbSet, word: first.steps[state].word}
		for _, m := range ramps {
			s.values = append(s.values, assigned{m.field, m.at(n)})
		}
		list = append(list, entry{at: first.at + time.Duration(n)*every, text: p, steps: []step{s}})
	}
	if end := list[len(list)-1].at; end > maxLasts || end < first.at {
		r.fault(p, "the last repetition is out of range: a test lasts at most %v", maxLasts)
		return nil
	}
	return list
}

// verb reads a word that sets no field, and says how many more words it took. A
// fault is a step that sets nothing.
func (r *reader) verb(words []word) (step, int) {
	w := words[0]
	v, ok := verbs[w.text]
	known := []string{"join", "leave", "enter REGION", "exit REGION"}
	if !r.local {
		known = []string{"join", "leave", "crash", "cut", "heal", "enter REGION", "exit REGION"}
	}
	switch {
	case !r.members:
		r.fault(w, "%q is no FIELD=VALUE: %s has the fields %s", w.text, r.what, orNone(fieldNames(r.schema)))
		return step{}, 0
	case !ok:
		r.fault(w, "%q is neither FIELD=VALUE nor one of %s", w.text, strings.Join(known, ", "))
		return step{}, 0
	case r.local && (v == verbCrash || v == verbCut || v == verbHeal):
		r.fault(w, "a thread cannot %s alone: it shares its process with the synchronizer; use leave", w.text)
		return step{}, 0
	case v != verbEnter && v != verbExit:
		return step{verb: v, word: w}, 0
	case len(words) == 1:
		r.fault(w, "%s needs a region", w.text)
		return step{}, 0
	}
	region := words[1].text
	if !slices.Contains(r.regions, region) {
		r.fault(words[1], "no signal goes to a region %q: the predicates send to %s", region, orNone(r.regions))
	}
	return step{verb: v, region: region, word: w}, 1
}

// field cuts FIELD=VALUE; ok if there is such a field.
func (r *reader) field(w word) (field int, value word, ok bool) {
	name, _, _ := strings.Cut(w.text, "=")
	if field = r.schema.Index(name); field < 0 {
		r.fault(w, "%s has no field %q: %s", r.what, name, choice(name, fieldNames(r.schema)))
		return field, w, false
	}
	return field, w.from(min(len(name)+1, len(w.text))), true
}

func (r *reader) value(w word, f scgs.Field) scgs.Value {
	if f.Type.IsList() {
		return r.list(w, f)
	}
	v, err := config.ParseValue(f, unquote(w.text))
	if err != nil {
		r.fault(w, "%v", err)
	}
	return v
}

// list reads [A, B] with elements as they are written alone.
func (r *reader) list(w word, f scgs.Field) scgs.Value {
	n := len(w.text)
	if n < 2 || w.text[0] != '[' || w.text[n-1] != ']' {
		r.fault(w, "%s is a list: write [] or [A, B]", f)
		return scgs.Value{}
	}
	var elements []scgs.Value
	if inner := (word{w.node, w.offset + 1, w.text[1 : n-1]}); strings.TrimSpace(inner.text) != "" {
		for _, e := range split(inner, ',') {
			elements = append(elements, r.value(e, f.Element()))
		}
	}
	v := scgs.ListValue(f.Type.Elem(), elements...)
	if v.Type() != scgs.Invalid && !f.Accepts(v) { // Otherwise an element is at fault.
		r.fault(w, "%s is no value of %s", w.text, f)
	}
	return v
}

// unquote takes the quotes off a text.
func unquote(text string) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

// ramp is a value that changes by a step so many times.
type ramp struct {
	field    int
	typ      scgs.Type
	from, by scgs.Value
	times    int
}

var (
	rampText  = regexp.MustCompile(`^(.+)x([0-9]+)$`)
	signsText = regexp.MustCompile(`[-+]`)
)

// ramp reads A+BxN and A-BxN, for a number or a duration.
func (r *reader) ramp(w word, field int) (ramp, bool) {
	f := r.schema[field]
	m := rampText.FindStringSubmatch(w.text)
	if m == nil || f.Type != scgs.Int && f.Type != scgs.Float && f.Type != scgs.Duration {
		return ramp{}, false
	}
	times, err := strconv.Atoi(m[2])
	if err != nil || times > maxEntries {
		r.fault(w, "%q repeats more than %d times", w.text, maxEntries)
		return ramp{field: field, typ: f.Type}, true
	}
	// 1e-3+1e-3x2 has three signs, one of which divides it.
	for _, at := range signsText.FindAllStringIndex(m[1], -1) {
		from, err := config.ParseValue(f, m[1][:at[0]])
		by, err2 := config.ParseValue(f, strings.TrimPrefix(m[1][at[0]:], "+"))
		if err != nil || err2 != nil {
			continue
		}
		// The values are exact up to there, and their sums are no overflow.
		const limit = 1 << 61
		if end := math.Abs(from.Float()) + float64(times)*math.Abs(by.Float()); f.Type != scgs.Float && end > limit || math.IsInf(end, 0) {
			r.fault(w, "the values of %q go out of range", w.text)
			by, times = from, 0
		}
		return ramp{field, f.Type, from, by, times}, true
	}
	return ramp{}, false
}

// at is the value after n steps.
func (m ramp) at(n int) scgs.Value {
	if n == 0 {
		return m.from
	}
	switch m.typ { // The reader makes ramps of numbers only.
	case scgs.Int:
		return scgs.IntValue(m.from.Int() + int64(n)*m.by.Int())
	case scgs.Float:
		return scgs.FloatValue(m.from.Float() + float64(n)*m.by.Float())
	default:
		return scgs.DurationValue(m.from.Duration() + time.Duration(n)*m.by.Duration())
	}
}

// choice says which name may have been meant, and which there are.
func choice(name string, known []string) string {
	if near := nearest.Name(name, known); near != "" {
		return fmt.Sprintf("did you mean %q? There is %s", near, orNone(known))
	}
	return "there is " + orNone(known)
}

func fieldNames(s scgs.Schema) []string {
	return namesOf(s, func(f scgs.Field) string { return f.Name })
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

var rangeText = regexp.MustCompile(`^(.*?)([0-9]{1,6})\.\.(.*?)([0-9]{1,6})$`)

// expand gives the names of a key: itself, or w1, w2, w3 for w1..w3.
func expand(key string) ([]string, error) {
	m := rangeText.FindStringSubmatch(key)
	if m == nil {
		return []string{key}, wire.CheckToken("member", key)
	}
	from, _ := strconv.Atoi(m[2]) // The pattern lets only digits in.
	to, _ := strconv.Atoi(m[4])
	switch {
	case m[3] != "" && m[3] != m[1]:
		return nil, fmt.Errorf("%q is no range of names: write the same name with the first and the last number, as in w1..w3", key)
	case to < from:
		return nil, fmt.Errorf("the range %q has no member: %d is above %d", key, from, to)
	case to-from >= maxMembers:
		return nil, fmt.Errorf("the range %q has %d members, at most %d take part in a test", key, to-from+1, maxMembers)
	}
	width := 0
	if strings.HasPrefix(m[2], "0") {
		width = len(m[2])
	}
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("%s%0*d", m[1], width, i))
	}
	return names, wire.CheckToken("member", names[len(names)-1])
}

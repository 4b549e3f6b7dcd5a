//go:build broken && linux

package broken

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// serialsOfLife is how many numbers of states a life of a process has.
const serialsOfLife = 1_000_000_000

// stretch is a state of a member. It began between before and after, as far as that is
// known, and ended between endBefore and endAfter.
type stretch struct {
	state

	before, after       int64
	endBefore, endAfter int64
	by                  *process
	place               int // among the states of the member
}

// numbered names a state of a member, by its number.
type numbered struct {
	member string
	serial int64
}

// known are promises that are known to be broken at times: they are counted.
type known map[string]int

// findings are the records of processes, and the faults in them.
type findings struct {
	truth    map[string][]*stretch // by member, in order
	serials  map[numbered]*stretch
	begun    map[run]int
	ended    map[run]int
	order    []run // as handlers began in each process
	regions  map[string]int
	fired    []fired
	fates    map[letter][]fate
	terms    map[uint64]*process // that led
	logs     []log
	rates    []*record
	totals   map[*process]*shown
	counted  map[string]uint64 // by members that have ended in order
	again    int               // firings that another term has made as well
	ownFirst bool              // the first state of each is the framework's
	breaches []string
	known    known
}

// run is a handler that began.
type run struct {
	handled

	member string
	life   int
}

// letter names a signal of a decision.
type letter struct {
	number

	name, target string
}

// fate is what a synchronizer tells of a signal.
type fate struct {
	word, detail string
	by           *process
}

type fired struct {
	*firing

	at int64
	by *process
}

type log struct {
	by   *process
	at   int64
	text string
}

func newFindings() findings {
	return findings{
		truth: map[string][]*stretch{}, serials: map[numbered]*stretch{}, begun: map[run]int{}, ended: map[run]int{},
		regions: map[string]int{}, fates: map[letter][]fate{}, terms: map[uint64]*process{}, totals: map[*process]*shown{}, known: known{}, counted: map[string]uint64{},
	}
}

func (f *findings) breach(judge, format string, args ...any) {
	f.breaches = append(f.breaches, judge+": "+fmt.Sprintf(format, args...))
}

// take notes a record.
func (f *findings) take(p *process, r *record) {
	switch r.Kind {
	case kindSet:
		s := &stretch{state: *r.State, before: r.At, by: p, place: len(f.truth[r.By])}
		if list := f.truth[r.By]; len(list) > 0 && list[len(list)-1].by == p {
			list[len(list)-1].endBefore = r.At
		}
		f.truth[r.By] = append(f.truth[r.By], s)
		f.serials[numbered{r.By, s.Serial}] = s
	case kindDid:
		list := f.truth[r.By]
		list[len(list)-1].after = r.At
		if len(list) > 1 && list[len(list)-2].by == p {
			list[len(list)-2].endAfter = r.At
		}
	case kindBegin, kindEnd:
		key := run{*r.Handled, r.By, p.Life}
		if r.Kind == kindEnd {
			f.ended[key]++
			return
		}
		f.begun[key]++
		f.order = append(f.order, key)
	case kindEnter:
		f.regions[r.Handled.Region]++
	case kindFired:
		f.fired = append(f.fired, fired{r.Firing, r.At, p})
		f.terms[r.Firing.Made.Term] = p
	case kindFate:
		l := letter{r.Handled.Decision, r.Handled.Name, r.Handled.Target}
		f.fates[l] = append(f.fates[l], fate{r.Handled.Fate, r.Text, p})
	case kindTotal:
		f.totals[p] = r.Shown
	case kindCount:
		for what, n := range r.Shown.Counters {
			f.counted[what] += n
		}
	case kindLog:
		f.logs = append(f.logs, log{p, r.At, r.Text})
	case kindRate:
		f.rates = append(f.rates, r)
	}
}

// serialAt is the number of the newest state that a member certainly had begun by then; 0 if
// there is none.
func (f *findings) serialAt(member string, at int64) int64 {
	list := f.truth[member]
	i, _ := slices.BinarySearchFunc(list, at, func(s *stretch, at int64) int { return cmp.Compare(s.before, at) })
	for i--; i >= 0; i-- {
		if list[i].after != 0 && list[i].after <= at {
			return list[i].Serial
		}
	}
	return 0
}

// latest is the last instant at which a state may have been.
func (s *stretch) latest() int64 {
	switch {
	case s.endAfter != 0:
		return s.endAfter
	case s.by.ended != 0:
		return s.by.ended
	}
	return math.MaxInt64
}

// judgeAll judges all, when all processes have ended.
func (f *findings) judgeAll(journals bool) {
	for i := range f.fired {
		f.judgeFiring(&f.fired[i])
	}
	f.judgeHandlers()
	f.judgeFates()
	if journals {
		for p := range f.totals {
			if !p.Standby && p.err == nil { // Else its journal may begin anywhere, and end before a gap is given up.
				f.judgeLoss(p)
			}
		}
	}
}

// waited is the hold time of all-waited, in ns.
const waited = int64(40 * time.Millisecond)

// judgeFiring is judge S: at one instant all members may have been in the states of the
// witness, by what they wrote down themselves, for as long as it is said that they were; and
// on these states the predicate is true.
func (f *findings) judgeFiring(v *fired) {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	lit, arrived, knownParts := 0, 0, 0
	for i := range v.Witness {
		p := &v.Witness[i]
		if p.Unknown || p.Serial == 0 && f.ownFirst {
			continue
		}
		s := f.serials[numbered{p.Member, p.Serial}]
		if s == nil || s.Lit != p.Lit || s.Phase != "" && s.Phase != p.Phase {
			f.breach("S", "%s fired on a state that %s never had: %+v", v.Rule, p.Member, p.state)
			return
		}
		knownParts++
		begin, end := s.before, s.latest()
		if v.Modality != "" {
			begin, end = f.runOf(p.Member, s)
		}
		if p.Began < begin {
			f.breach("S", "%s fired on a state of %s that is said to have begun %v before it did: %+v", v.Rule, p.Member, time.Duration(begin-p.Began), p.state)
		}
		from, to = max(from, begin), min(to, end)
		if s.Lit {
			lit++
		}
		if s.Phase == "arrived" {
			arrived++
		}
	}
	if knownParts == 0 {
		return
	}
	held := v.Held - v.Held/1000 // The clock of the framework may be slewed against this one.
	if from >= to || to-from < held {
		f.breach("S", "%s fired (%+v), held %v, and its states were together for %v at the most: %+v", v.Rule, v.Made, time.Duration(v.Held), time.Duration(to-from), v.Witness)
	}
	holds := true
	switch v.Rule {
	case "all-arrived", "all-waited":
		holds = arrived == len(v.Witness)
	case "mostly-lit", "six-lit":
		holds = lit >= 6
	}
	if v.Rule == "all-waited" && to-from < waited {
		// It may have held in the global states before this one, whose barrier states are
		// the same or older: of each member from when it arrived, or joined. A member that joined within the
		// hold time is left out, since no record has the time of its join.
		if since := f.arrivedSince(v, to-waited); to-since < waited*999/1000 {
			f.breach("S", "all-waited fired (%+v) after %v", v.Made, time.Duration(to-since))
		}
	}
	if !holds {
		f.breach("S", "%s fired (%+v), and it is false on %+v", v.Rule, v.Made, v.Witness)
	}
}

// runOf is how long a member was lit without an end around a state.
func (f *findings) runOf(member string, s *stretch) (from, to int64) {
	list := f.truth[member]
	i, j := s.place, s.place
	for i > 0 && list[i-1].Lit && list[i-1].by == s.by {
		i--
	}
	for j+1 < len(list) && list[j+1].Lit && list[j+1].by == s.by {
		j++
	}
	return list[i].before, list[j].latest()
}

// arrivedSince is the earliest instant from which on all members of a witness had arrived that were members
// by then at the latest.
func (f *findings) arrivedSince(v *fired, then int64) int64 {
	since := int64(math.MinInt64)
	joined := f.joined(v, then)
	for i := range v.Witness {
		if joined[v.Witness[i].Member] {
			continue
		}
		s := f.serials[numbered{v.Witness[i].Member, v.Witness[i].Serial}]
		list := f.truth[v.Witness[i].Member]
		j := s.place
		for j > 0 && list[j-1].Phase == "arrived" && list[j-1].by == s.by {
			j--
		}
		since = max(since, list[j].before)
	}
	return since
}

// joined are the members of a witness that the last witness of an earlier epoch until an instant lacks.
func (f *findings) joined(v *fired, until int64) map[string]bool {
	var before *fired
	for i := range f.fired {
		if o := &f.fired[i]; o.by == v.by && o.Made.Term == v.Made.Term && o.Made.Epoch < v.Made.Epoch && o.Rule != "six-lit" && o.at <= until && (before == nil || o.at > before.at) {
			before = o
		}
	}
	joined := map[string]bool{}
	if before == nil {
		return joined
	}
	for i := range v.Witness {
		joined[v.Witness[i].Member] = true
	}
	for i := range before.Witness {
		delete(joined, before.Witness[i].Member)
	}
	return joined
}

// judgeHandlers is judge A: a handler begins at most once for a decision in an entry, and at
// most once for the same firing, whatever the term; and a member that has obeyed a term obeys no
// earlier one any more.
func (f *findings) judgeHandlers() {
	for key, n := range f.begun {
		if n > 1 {
			f.breach("A", "%s began %d times for decision %+v in entry %d of %s", key.Name, n, key.Decision, key.Entry, key.member)
		}
		if key.Target != key.member {
			f.breach("A", "%s to %s was taken by %s", key.Name, key.Target, key.member)
		}
	}
	witness := f.witnesses()
	first := map[string]uint64{}
	for made, of := range witness {
		if term, again := first[of]; again && term != made.Term {
			f.again++
		}
		first[of] = made.Term
	}
	same, newest := map[run]number{}, map[run]uint64{}
	for _, key := range f.order {
		place := run{handled{Region: key.Region}, key.member, key.life}
		if key.Decision.Term < newest[place] {
			f.breach("A", "%s of term %d began in %s of %s after one of term %d", key.Name, key.Decision.Term, key.Region, key.member, newest[place])
		}
		newest[place] = max(newest[place], key.Decision.Term)
		of, ok := witness[key.Decision]
		if !ok {
			f.counted["firings that were not written down, since their synchronizer was killed"]++
			continue
		}
		firing := key
		firing.Decision, firing.Fate = number{}, of
		if first, again := same[firing]; again && first != key.Decision {
			f.breach("A", "%s began in entry %d of %s for %+v, and for the same firing %+v", key.Name, key.Entry, key.member, key.Decision, first)
		}
		same[firing] = key.Decision
	}
	f.judgeRuns()
}

// judgeRuns is the part of judge A that looks at runs, of which a later term may know only the
// state that they had come to: its first firing on them has no effect in an entry in which one of
// an earlier term had.
func (f *findings) judgeRuns() {
	of, firsts, times := map[number]string{}, map[number]bool{}, map[string]int{}
	for i := range f.fired {
		v := &f.fired[i]
		if v.Modality == "" {
			continue
		}
		parts := []string{v.Rule}
		for j := range v.Witness {
			p := &v.Witness[j]
			if s := f.serials[numbered{p.Member, p.Serial}]; s != nil {
				from, _ := f.runOf(p.Member, s)
				parts = append(parts, fmt.Sprintf("%s:%d", p.Member, from))
			}
		}
		runs := strings.Join(parts, " ")
		in := fmt.Sprint(v.Made.Term, " ", runs)
		times[in]++
		of[v.Made], firsts[v.Made] = runs, times[in] == 1
	}
	first := map[run]number{}
	for _, key := range f.order {
		runs, ok := of[key.Decision]
		if !ok {
			continue
		}
		firing := key
		firing.Decision, firing.Fate = number{}, runs
		made, again := first[firing]
		if again && made.Term != key.Decision.Term && firsts[key.Decision] {
			f.breach("A", "%s began in entry %d of %s for %+v, and for %+v on the same runs: %s", key.Name, key.Entry, key.member, key.Decision, made, runs)
		}
		if !again {
			first[firing] = key.Decision
		}
	}
}

// witnesses names each firing by what it rests on, and the how-manieth in its term that is.
func (f *findings) witnesses() map[number]string {
	names, times := map[number]string{}, map[string]int{}
	for i := range f.fired {
		v := &f.fired[i]
		var text strings.Builder
		text.WriteString(v.Rule)
		for j := range v.Witness {
			p := &v.Witness[j]
			fmt.Fprintf(&text, " %s:%d", p.Member, p.Began)
		}
		key := fmt.Sprintf("%d %s", v.Made.Term, &text)
		times[key]++
		names[v.Made] = fmt.Sprintf("%s #%d", &text, times[key])
	}
	return names
}

// effect is a handler that has returned, by the firing; that is empty if it was not written
// down.
type effect struct{ name, member, firing string }

// renewed is a signal by what it keeps when a term takes over what the one before has under way.
type renewed struct {
	number       uint64
	name, member string
}

// earlier reports whether a term is one, and before another one.
func earlier(term, than uint64) bool { return term > 0 && term < than }

// sends are the signals of a rule.
var sends = map[string]string{"all-arrived": "arrived", "all-waited": "go", "mostly-lit": "mostly", "six-lit": "six"}

func (f *findings) ours(signal string) bool {
	return slices.Contains(slices.Collect(maps.Values(sends)), signal)
}

// judgeFates is judge F: every signal has one fate in the end, and that is true.
func (f *findings) judgeFates() {
	ran, whole, effects := map[letter]bool{}, map[letter]bool{}, map[effect]bool{}
	again := map[renewed]uint64{} // the first term in which its handler has returned
	witness := f.witnesses()
	for key := range f.begun {
		ran[letter{key.Decision, key.Name, key.member}] = true
	}
	for key := range f.ended {
		whole[letter{key.Decision, key.Name, key.member}] = true
		effects[effect{key.Name, key.member, witness[key.Decision]}] = true
		if r := (renewed{key.Decision.Number, key.Name, key.member}); again[r] == 0 || key.Decision.Term < again[r] {
			again[r] = key.Decision.Term
		}
	}
	for i := range f.fired {
		v := &f.fired[i]
		for j := range v.Witness {
			l := letter{v.Made, sends[v.Rule], v.Witness[j].Member}
			if sends[v.Rule] == "" || len(f.fates[l]) > 0 {
				continue
			}
			if f.totals[v.by] == nil || v.by.err != nil {
				f.known["F-restart: signals without a fate, since their synchronizer was killed or another one led"]++
				continue
			}
			f.breach("F", "%s %+v to %s has no fate", l.name, l.number, l.target)
		}
	}
	for l, list := range f.fates {
		if !f.ours(l.name) { // The program's own.
			continue
		}
		fate, detail := list[0].word, list[0].detail
		for _, other := range list[1:] {
			if other.by != list[0].by && other.word == fate { // The first one was killed before others knew.
				f.counted["fates that two terms record alike"]++
				continue
			}
			f.breach("F", "%s %+v to %s has the fate %s, and %s", l.name, l.number, l.target, fate, other.word)
		}
		switch {
		case fate == "applied" && (whole[l] || effects[effect{l.name, l.target, witness[l.number]}]):
			// By the handler of this decision, or of the same firing of another term.
		case fate == "applied" && witness[l.number] == "" && earlier(again[renewed{l.Number, l.name, l.target}], l.Term):
			// It was under way at a takeover, which has sent it again under its number.
		case fate == "applied" && effects[effect{l.name, l.target, ""}]:
			f.counted["applied, perhaps by a firing that was not written down"]++
		case fate == "applied":
			f.breach("F", "%s %+v to %s is applied (%s), and its handler did not return", l.name, l.number, l.target, detail)
		case fate != "applied" && fate != "unconfirmed" && ran[l]:
			f.breach("F", "%s %+v to %s is %s (%s), and its handler began", l.name, l.number, l.target, fate, detail)
		}
	}
}

// loss is the reports that a synchronizer lacks between received ones.
type loss struct {
	states, ranges int
	lives          int // in which a range is missing within one incarnation
	rejoins        int // ranges between two incarnations
	gaps           int // that were counted
}

// judgeLoss is judge G: of each member that has told states, and whose later ones came, those
// between are in a gap that was counted.
func (f *findings) judgeLoss(p *process) {
	l, err := f.lossOf(p)
	if err != nil {
		f.breach("G", "the journal of %s %d: %v", p.Name, p.Life, err)
		return
	}
	f.lost(p, l)
}

func (f *findings) lost(p *process, l loss) {
	if l.lives > l.gaps {
		f.breach("G", "of %d lives of members states are missing, %d in all, and %s %d has counted %d gaps", l.lives, l.states, p.Name, p.Life, l.gaps)
	}
	// What a member had sent, and was lost on the way before it was dropped.
	if n := l.rejoins - max(l.gaps-l.lives, 0); n > 0 {
		f.breach("G", "%d times states are missing before a member came back, %d in all, and %s %d has not counted that: %d gaps", n, l.states, p.Name, p.Life, l.gaps)
	}
}

// lossOf compares the journal of a synchronizer with the records of members while it led.
func (f *findings) lossOf(p *process) (l loss, err error) {
	file, err := os.Open(p.path("journal"))
	if err != nil {
		return l, err
	}
	defer file.Close()
	came := map[numbered]int64{}
	read := bufio.NewReader(file)
	for {
		line, err := read.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l, err
		}
		var in struct {
			Batch *struct {
				Member      string `json:"member"`
				Incarnation int64  `json:"incarnation"`
				Reports     []struct {
					State []any `json:"state"`
				} `json:"reports"`
			} `json:"batch"`
		}
		if err := json.Unmarshal(line, &in); err != nil {
			return l, err
		}
		if in.Batch == nil {
			continue
		}
		for _, r := range in.Batch.Reports {
			if len(r.State) > 0 {
				if serial, ok := r.State[0].(float64); ok {
					came[numbered{in.Batch.Member, int64(serial)}] = in.Batch.Incarnation
				}
			}
		}
	}
	l.gaps = int(f.totals[p].Counters["gaps"]) //nolint:gosec // Few.
	for name, list := range f.truth {
		l.add(list, func(s *stretch) int64 { return came[numbered{name, s.Serial}] })
	}
	return l, nil
}

// add counts the missing states of a member, by the incarnations in which its states came; 0:
// a state did not come.
func (l *loss) add(list []*stretch, came func(*stretch) int64) {
	var by *process
	missing, last, within := 0, int64(0), false
	for _, s := range list {
		if s.by != by {
			by, missing, last, within = s.by, 0, 0, false
		}
		now := came(s)
		switch {
		case now == 0:
			missing++
			continue
		case missing > 0 && last != 0:
			l.states, l.ranges = l.states+missing, l.ranges+1
			if now != last {
				l.rejoins++
			} else if !within {
				within = true
				l.lives++
			}
		}
		missing, last = 0, now
	}
}

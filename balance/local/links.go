package local

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
)

// link is a path of tasks between two members, of CORD (section 4.1.2):
//
//	M1(u=(L<1), o=(L>=10))[1/2]#M2(u=(L<1))[1/3]
//
// L is how many tasks wait at the member. Below u it is underloaded, above o overloaded.
// Either condition may be left out, and both with the brackets. The part in square brackets
// is the part of its tasks that a member gives; a member that never gives needs none.
type link struct{ ends [2]linkEnd }

type linkEnd struct {
	name   string
	u, o   bound
	share  float64
	column int // of the name in the text
}

// bound is a condition on L; the zero value is none.
type bound struct {
	op string
	n  float64
}

// formatBound is the condition as it is written.
func (b bound) formatBound() string { return "L" + b.op + strconv.FormatFloat(b.n, 'g', -1, 64) }

func (b bound) holds(load float64) bool {
	switch b.op {
	case "<":
		return load < b.n
	case "<=":
		return load <= b.n
	case ">":
		return load > b.n
	case ">=":
		return load >= b.n
	}
	return false
}

// linkState is how a member stands by the conditions of a link.
type linkState int

const (
	between linkState = iota
	under
	over
)

func (e *linkEnd) state(load float64) linkState {
	switch {
	case e.u.holds(load):
		return under
	case e.o.holds(load):
		return over
	}
	return between
}

// listInitiating are the conditions that start a move, by table 4.1: where both members have a
// u, only these count (types 4, 7 and 8), else where both have an o, only those (5 and the
// dual of 7).
func (l *link) listInitiating(end int) (u, o bool) {
	both := func(of func(*linkEnd) bound) bool { return of(&l.ends[0]).op != "" && of(&l.ends[1]).op != "" }
	e := &l.ends[end]
	u, o = e.u.op != "", e.o.op != ""
	switch {
	case both(func(e *linkEnd) bound { return e.u }):
		o = false
	case both(func(e *linkEnd) bound { return e.o }):
		u = false
	}
	return u, o
}

// gives reports whether the member at an end gives tasks to the other one, in two states.
func (l *link) gives(end int, own, other linkState) bool {
	wants := func(from int, a, b linkState) bool {
		_, o := l.listInitiating(from)
		u, _ := l.listInitiating(1 - from)
		return o && a == over || u && b == under
	}
	return wants(end, own, other) && !wants(1-end, other, own)
}

// amount is how many of the tasks that wait the member at an end gives: its share, rounded
// down. So that moves end, the other one has less afterwards than this one had: on a ring
// of senders tasks would go round for ever.
func (l *link) amount(end, waiting int, other float64) int {
	return max(0, min(l.portion(end, waiting), waiting-1-int(math.Ceil(other))))
}

// portion is the share of the tasks that wait, as the paper has it.
func (l *link) portion(end, waiting int) int {
	return int(math.Floor(l.ends[end].share*float64(max(0, waiting)) + 1e-9))
}

// linkScanner reads a link.
type linkScanner struct {
	text string
	at   int
}

func (s *linkScanner) fault(at int, format string, args ...any) *Fault {
	return &Fault{Column: columnOf(s.text, at), Message: fmt.Sprintf(format, args...) + ", as in M1(u=(L<1), o=(L>=10))[1/2]#M2"}
}

func (s *linkScanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\n') {
		s.at++
	}
}

// next takes a token if it is next.
func (s *linkScanner) next(token string) bool {
	if s.space(); !strings.HasPrefix(s.text[s.at:], token) {
		return false
	}
	s.at += len(token)
	return true
}

// until takes what is before one of some characters.
func (s *linkScanner) until(stops string) (text string, at int) {
	s.space()
	at = s.at
	if n := strings.IndexAny(s.text[at:], stops); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.text)
	}
	return strings.TrimRight(s.text[at:s.at], " \t\n"), at
}

// parseLinks reads links with commas between them, one a pair of members. The error is a
// *Fault without a key.
func parseLinks(text string) ([]link, error) {
	s := &linkScanner{text: text}
	var list []link
	for first := true; first || s.next(","); first = false {
		s.space()
		from := s.at
		l, fault := s.link()
		if fault != nil {
			return nil, fault
		}
		for _, o := range list {
			if a, b := o.ends[0].name, o.ends[1].name; a == l.ends[0].name && b == l.ends[1].name || b == l.ends[0].name && a == l.ends[1].name {
				return nil, s.fault(from, "%s and %s are linked before: write one link for both directions", l.ends[0].name, l.ends[1].name)
			}
		}
		if list = append(list, l); len(list) > maxLinks {
			return nil, s.fault(from, "there are more than %d links: write fewer", maxLinks)
		}
	}
	if s.space(); s.at < len(text) {
		return nil, s.fault(s.at, "text follows the second member: write a comma between links")
	}
	return list, nil
}

func (s *linkScanner) link() (l link, fault *Fault) {
	from := s.at
	var places [2]int
	for i := range l.ends {
		if l.ends[i], places[i], fault = s.end(); fault != nil {
			return l, fault
		}
		l.ends[i].column = columnOf(s.text, places[i])
		if i == 0 && !s.next("#") {
			return l, s.fault(s.at, "# is missing: write two members with # between them")
		}
	}
	if l.ends[0].name == l.ends[1].name {
		return l, s.fault(places[1], "%s is linked to itself: name another member", l.ends[1].name)
	}
	moves := false
	for i := range l.ends {
		e := &l.ends[i]
		_, o := l.listInitiating(i)
		u, _ := l.listInitiating(1 - i)
		if moves = moves || o || u; (o || u) && e.share == 0 {
			return l, s.fault(places[i], "%s gives tasks, and it is not said how many: write the part behind it", e.name)
		}
	}
	if !moves {
		return l, s.fault(from, "no task ever moves: write when a member is underloaded or overloaded")
	}
	return l, nil
}

// end reads a member with its conditions and its share.
func (s *linkScanner) end() (e linkEnd, at int, fault *Fault) {
	if e.name, at = s.until("([#,"); e.name == "" || strings.ContainsAny(e.name, ")] ") {
		return e, at, s.fault(at, "%q is not a member: write its name", e.name)
	}
	if s.next("(") {
		for first := true; !s.next(")"); first = false {
			if !first && !s.next(",") {
				return e, at, s.fault(s.at, "a closing bracket is missing: write ) after the conditions")
			}
			if fault = s.condition(&e); fault != nil {
				return e, at, fault
			}
		}
	}
	if e.u.op != "" && e.o.op != "" && e.u.n >= e.o.n && !(e.u.n == e.o.n && (e.u.op == "<" || e.o.op == ">")) {
		return e, at, s.fault(at, "%s can be underloaded and overloaded at once: write an o above u", e.name)
	}
	if s.next("[") {
		text, from := s.until("]")
		if !s.next("]") {
			return e, at, s.fault(s.at, "a closing bracket is missing: write ] after the part")
		}
		above, below, ratio := strings.Cut(text, "/")
		x, err := strconv.ParseFloat(strings.TrimSpace(above), 64)
		if ratio && err == nil {
			var y float64
			y, err = strconv.ParseFloat(strings.TrimSpace(below), 64)
			x /= y
		}
		if err != nil || !(x > 0 && x <= 1) {
			return e, at, s.fault(from, "%q is not a part: write a fraction above 0, at most 1", text)
		}
		e.share = x
	}
	return e, at, nil
}

// condition reads u=(L<n) or o=(L>=n).
func (s *linkScanner) condition(e *linkEnd) *Fault {
	word, at := s.until("=(),")
	into, ops := &e.u, []string{"<=", "<"}
	switch word {
	case "u":
	case "o":
		into, ops = &e.o, []string{">=", ">"}
	default:
		return s.fault(at, "%q is not a condition: write u for underloaded or o for overloaded", word)
	}
	if into.op != "" {
		return s.fault(at, "%s is there twice: write one", word)
	}
	if !s.next("=") || !s.next("(") || !s.next("L") {
		return s.fault(s.at, "the condition %s compares L, the tasks that wait: write %s=(L%s10)", word, word, ops[0])
	}
	for _, op := range ops {
		if into.op == "" && s.next(op) {
			into.op = op
		}
	}
	if into.op == "" {
		return s.fault(s.at, "the condition %s compares with %s or %s", word, ops[0], ops[1])
	}
	number, from := s.until(")")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n <= maxLoad) {
		return s.fault(from, "%q is not a number of tasks: write 0 or more", number)
	}
	if into.n = n; !s.next(")") {
		return s.fault(s.at, "a closing bracket is missing: write ) after the number")
	}
	return nil
}

// linked moves tasks along links.
type linked struct {
	asker
	links []link
}

// Look looks at each link of this member: it asks where it is underloaded, offers where it is
// overloaded, and takes an offer that the link allows. A member without slots, such as a
// draining member, offers its tasks to every neighbour, and one with nothing to do takes them.
func (s *linked) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	next := clocksync.MaxInstant
	load := v.ownLoad()
	switch slots := v.Activity.Slots(); {
	case slots == 0 && v.Waiting > 0:
		return s.offerTasks(now, v, v.Waiting-v.Waiting/2, to)
	case slots > 0 && v.Waiting <= 0 && v.Activity.Free() > 0:
		if to = takeOffer(v, to); len(to) > 0 {
			return to, next
		}
	}
	for i := range s.links {
		l := &s.links[i]
		end, n := l.of(v)
		if n == nil || n.Pending || n.Silent {
			continue
		}
		own, other := l.ends[end].state(load), l.ends[1-end].state(n.loadOrZero())
		u, o := l.listInitiating(end)
		switch {
		case n.Offers > 0 && v.Activity.Slots() > 0 && l.gives(1-end, over, own):
			to = append(to, Demand{Member: n.Name, Tasks: n.Offers})
		case u && own == under && v.Activity.Slots() > 0 && l.gives(1-end, other, own):
			may, from := n.MayAsk(now, s.again, s.longest)
			if may {
				to = append(to, Demand{Member: n.Name})
			} else {
				next = min(next, from)
			}
		case o && own == over && l.gives(end, own, other):
			tasks := min(l.amount(end, v.Waiting, n.loadOrZero()), v.countSpare())
			may, from := n.mayOffer(now, s.again, s.longest)
			switch {
			case tasks < 1:
			case may:
				to = append(to, Demand{Member: n.Name, Tasks: tasks, Offer: true})
			default:
				next = min(next, from)
			}
		}
	}
	return to, next
}

// of returns at which end of a link this member is, and the neighbour at the other end, nil
// if there is none.
func (l *link) of(v *View) (end int, other *Neighbour) {
	for end := range l.ends {
		if l.ends[end].name == v.Self {
			return end, v.findNeighbour(l.ends[1-end].name)
		}
	}
	return 0, nil
}

// Answer gives what a link to the asking member allows. The state of that member is as its
// demand says: it asks because it is underloaded, or because this one has offered.
func (s *linked) Answer(_ clocksync.Instant, v *View, d Demand) Share {
	load := v.ownLoad()
	if v.Activity.Slots() == 0 {
		return Share{Tasks: d.limitWanted(v.countSpare() - v.countSpare()/2)}
	}
	for i := range s.links {
		l := &s.links[i]
		end, n := l.of(v)
		if n == nil || n.Name != d.Member {
			continue
		}
		own := l.ends[end].state(load)
		if !l.gives(end, own, under) && !l.gives(end, own, between) && !l.gives(end, own, over) {
			continue
		}
		if tasks := min(l.amount(end, v.Waiting, n.loadOrZero()), v.countSpare()); tasks > 0 {
			return Share{Tasks: d.limitWanted(tasks)}
		}
		if v.Waiting <= 0 && v.Items > 1 {
			return Share{Part: l.ends[end].share}
		}
	}
	return Share{}
}

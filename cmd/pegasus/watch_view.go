package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/monitor"
)

const (
	eventsKept = 500  // lines of the past
	heldKept   = 5000 // updates while paused; then the oldest are dropped
	minEvents  = 3    // lines of events on a screen that is too small for all
)

// watchModel is what the screen of watch shows. It is pure: updates and keys in,
// text out.
type watchModel struct {
	first         watching
	width, height int
	color         bool

	statuses map[string]update // the newest of each synchronizer
	order    []string
	chosen   int
	events   []update
	server   string // why nothing comes; empty if all is well
	paused   bool
	held     []update // that came while paused
	missed   uint64
}

func newWatchModel(first watching, color bool) *watchModel {
	m := &watchModel{first: first, width: 80, height: 24, color: color, statuses: map[string]update{}}
	for _, name := range first.names {
		m.add(name)
	}
	return m
}

func (m *watchModel) add(name string) {
	if i, known := slices.BinarySearch(m.order, name); !known {
		m.order = slices.Insert(m.order, i, name)
	}
}

// apply takes an update in, or keeps it for later while the screen is paused.
func (m *watchModel) apply(u update) {
	if m.paused {
		if len(m.held) >= heldKept {
			m.held = slices.Delete(m.held, 0, heldKept/2)
			m.missed += heldKept / 2
		}
		m.held = append(m.held, u)
		return
	}
	switch {
	case u.status != nil:
		m.add(u.from)
		m.statuses[u.from] = u
		m.server = ""
		return
	case u.event == nil && u.from == "":
		m.server = u.notice
	}
	if len(m.events) >= eventsKept {
		m.events = slices.Delete(m.events, 0, eventsKept/2)
	}
	m.events = append(m.events, u)
}

// key takes a key, and reports whether it ends the program.
func (m *watchModel) key(name string) (quit bool) {
	switch name {
	case "q", "esc", "ctrl+c":
		return true
	case "p", "space":
		if m.paused = !m.paused; !m.paused {
			held := m.held
			m.held = nil
			for _, u := range held {
				m.apply(u)
			}
		}
	case "tab", "right":
		m.choose(1)
	case "shift+tab", "left":
		m.choose(-1)
	}
	return false
}

func (m *watchModel) choose(step int) {
	if n := len(m.order); n > 0 {
		m.chosen = (m.chosen + step + n) % n
	}
}

// The colours of the screen, for what is good, bad or worth a look.
const (
	plainColor = ""
	bold       = "\x1b[1m"
	green      = "\x1b[32m"
	yellow     = "\x1b[33m"
	red        = "\x1b[31m"
	reset      = "\x1b[m"
)

// line is one line of the screen.
type line struct{ text, color string }

// view is the screen: exactly height lines of at most width columns.
func (m *watchModel) view() string {
	lines := m.lines()
	var b strings.Builder
	for i := range m.height {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i >= len(lines) {
			continue
		}
		b.WriteString(m.paint(lines[i]))
	}
	return b.String()
}

// paint cuts a line to the width and colours it.
func (m *watchModel) paint(l line) string {
	text := printable(l.text)
	if r := []rune(text); len(r) > m.width {
		text = string(r[:max(0, m.width-1)]) + "…"
	}
	if !m.color || l.color == plainColor || text == "" {
		return text
	}
	return l.color + text + reset
}

func (m *watchModel) lines() []line {
	name := ""
	if len(m.order) > 0 {
		name = m.order[min(m.chosen, len(m.order)-1)]
	}
	u, known := m.statuses[name]
	head := []line{m.title(name, u)}
	if !known {
		head = append(head, line{text: "waiting for the first answer"}, line{})
		return m.finish(head, nil, name)
	}
	s := u.status
	head = append(head, line{text: globalStateText(s.State)}, line{})
	room := max(0, m.height-len(head)-2) // The last two lines are the counters and the keys.
	events := min(room, max(minEvents, room/3))
	members, predicates := memberLines(s.Members), predicateLines(s.Predicates)
	both := max(0, room-events)
	forPredicates := min(len(predicates), max(both/2, both-len(members)))
	members = cut(members, both-forPredicates, "member")
	predicates = cut(predicates, forPredicates, "predicate")
	return m.finish(append(append(head, members...), predicates...), s, name)
}

// title names what is shown and whether that is how things are.
func (m *watchModel) title(name string, u update) line {
	text, color := "pegasus watch", bold
	if name != "" {
		text = name
	}
	if n := len(m.order); n > 1 {
		text += fmt.Sprintf(" (%d of %d)", m.chosen+1, n)
	}
	if s := u.status; s != nil {
		epoch := fmt.Sprintf("epoch %d", s.Epoch)
		if s.Epoch == 0 {
			epoch = "no epoch"
		}
		text += fmt.Sprintf("  %s  group %s  tenant %s  %s", epoch, s.Group, s.Tenant, clockTime(u.at))
	}
	switch {
	case m.paused:
		text, color = text+fmt.Sprintf("  PAUSED, %d wait", len(m.held)), yellow
	case m.server != "":
		text, color = text+"  "+m.server, red
	}
	return line{text, color}
}

// finish adds the newest events, the counters and the keys below what is there.
func (m *watchModel) finish(lines []line, s *monitor.Status, name string) []line {
	room := m.height - len(lines) - 2
	var mine []update
	for i := len(m.events) - 1; i >= 0 && len(mine) < room-1; i-- {
		if u := m.events[i]; u.from == "" || u.from == name {
			mine = append(mine, u)
		}
	}
	if room > 0 {
		lines = append(lines, line{"EVENTS", bold})
	}
	for _, u := range slices.Backward(mine) {
		lines = append(lines, eventLine(u))
	}
	for len(lines) < m.height-2 {
		lines = append(lines, line{})
	}
	counters := ""
	if s != nil {
		counters = "signals: " + signalsText(s) + "  counters: " + countersText(s.Counters)
	}
	keys := "q quit  p pause"
	if len(m.order) > 1 {
		keys += "  tab next synchronizer"
	}
	if m.missed > 0 {
		keys += fmt.Sprintf("  (%d updates left out)", m.missed)
	}
	return append(lines, line{text: counters}, line{text: keys})
}

func eventLine(u update) line {
	if u.event == nil {
		return line{clockTime(u.at) + " " + u.notice, yellow}
	}
	l := line{text: clockTime(u.at) + " " + u.event.String()}
	switch u.event.Event {
	case "fired":
		l.color = green
	case "lost", "refused", "skipped":
		l.color = yellow
	}
	return l
}

// cut shortens a table with a header to so many lines, and says how many are
// missing.
func cut(lines []line, room int, noun string) []line {
	switch {
	case len(lines) <= room:
		return lines
	case room < 3: // No row would be seen.
		return nil
	}
	missing := len(lines) - room + 1
	return append(lines[:room-1:room-1], line{text: fmt.Sprintf("and %s more", count(missing, noun))})
}

// memberLines are a table of members: those in trouble first, so that they are
// seen where not all fit.
func memberLines(members []monitor.MemberStatus) []line {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b monitor.MemberStatus) int { return trouble(&b) - trouble(&a) })
	rows := [][]string{{"MEMBER", "EPOCH", "HEARD", "CLOCK", "STATE"}}
	colors := []string{bold}
	for i := range sorted {
		m := &sorted[i]
		rows = append(rows, []string{m.Name, string(m.Standing), heardText(m), clockName(&m.Clock), stateText(m)})
		colors = append(colors, [...]string{plainColor, yellow, red}[trouble(m)])
	}
	return coloredTable(rows, colors)
}

// trouble is 2 for members that keep the others waiting, 1 for those that do not
// take part.
func trouble(m *monitor.MemberStatus) int {
	switch {
	case m.Silent, m.Unknown, m.Gap > 0:
		return 2
	case m.Standing != monitor.Taking:
		return 1
	}
	return 0
}

func predicateLines(predicates []monitor.PredicateStatus) []line {
	rows := [][]string{{"PREDICATE", "TRUTH", "FOR", "FIRED", "LAST", ""}}
	colors := []string{bold}
	for i := range predicates {
		p := &predicates[i]
		last := "-"
		if p.Decision != "" {
			last = monitor.Seconds(p.Ago) + " ago"
		}
		rows = append(rows, []string{p.Name, p.Truth, secondsOr("-", p.Since), strconv.FormatUint(p.Fired, 10), last, remark(p)})
		colors = append(colors, map[string]string{"true": green, "unknown": yellow}[p.Truth])
	}
	return coloredTable(rows, colors)
}

func coloredTable(rows [][]string, colors []string) []line {
	lines := make([]line, 0, len(rows))
	for text := range strings.Lines(tabulate(rows)) {
		lines = append(lines, line{strings.TrimSuffix(text, "\n"), colors[len(lines)]})
	}
	return lines
}

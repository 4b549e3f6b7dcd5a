package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

const (
	eventsKept = 500  // lines of the past
	heldKept   = 5000 // updates while paused; then the oldest are dropped
	minEvents  = 3    // lines of events on a screen that is too small for all
)

// Watch is what the screen of watch shows. It is pure: entries and keys in,
// text out.
type Watch struct {
	Width, Height int  // of the screen, in columns and lines
	color         bool // for what is good, bad or worth a look

	statuses map[string]Entry // the newest of each synchronizer
	order    []string
	chosen   int
	events   []Entry
	server   string // why nothing comes; empty if all is well
	paused   bool
	held     []Entry // that came while paused
	missed   uint64
}

// NewWatch is of 80 columns and 24 lines, and knows of nothing yet.
func NewWatch(color bool) *Watch {
	return &Watch{Width: 80, Height: 24, color: color, statuses: map[string]Entry{}}
}

func (m *Watch) add(name string) {
	if i, known := slices.BinarySearch(m.order, name); !known {
		m.order = slices.Insert(m.order, i, name)
	}
}

// Apply takes an entry in, or keeps it for later while the screen is paused.
func (m *Watch) Apply(e Entry) {
	if m.paused {
		if len(m.held) >= heldKept {
			m.held = slices.Delete(m.held, 0, heldKept/2)
			m.missed += heldKept / 2
		}
		m.held = append(m.held, e)
		return
	}
	switch event := e.Event.(type) {
	case Watching:
		for _, name := range event.Names {
			m.add(name)
		}
		return
	case Skipped:
		m.missed += uint64(event)
		return
	case Standing:
		m.add(e.From)
		m.statuses[e.From] = e
		m.server = ""
		return
	case Notice:
		if e.From == "" {
			m.server = string(event)
		}
	}
	if len(m.events) >= eventsKept {
		m.events = slices.Delete(m.events, 0, eventsKept/2)
	}
	m.events = append(m.events, e)
}

// Key takes a key, and reports whether it ends the program.
func (m *Watch) Key(name string) (quit bool) {
	switch name {
	case "q", "esc", "ctrl+c":
		return true
	case "p", "space":
		if m.paused = !m.paused; !m.paused {
			held := m.held
			m.held = nil
			for _, e := range held {
				m.Apply(e)
			}
		}
	case "tab", "right":
		m.choose(1)
	case "shift+tab", "left":
		m.choose(-1)
	}
	return false
}

func (m *Watch) choose(step int) {
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

// Screen is what it shows: exactly height lines of at most width columns.
func (m *Watch) Screen() string {
	lines := m.lines()
	var b strings.Builder
	for i := range m.Height {
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
func (m *Watch) paint(l line) string {
	text := Printable(l.text)
	if r := []rune(text); len(r) > m.Width {
		text = string(r[:max(0, m.Width-1)]) + "…"
	}
	if !m.color || l.color == plainColor || text == "" {
		return text
	}
	return l.color + text + reset
}

func (m *Watch) lines() []line {
	name := ""
	if len(m.order) > 0 {
		name = m.order[min(m.chosen, len(m.order)-1)]
	}
	e := m.statuses[name]
	s, known := e.Event.(Standing)
	head := []line{m.title(name, e.At, s.Status)}
	if !known {
		head = append(head, line{text: "waiting for the first answer"}, line{})
		return m.finish(head, nil, name)
	}
	head = append(head, line{text: globalStateText(s.State)}, line{})
	room := max(0, m.Height-len(head)-2) // The last two lines are the counters and the keys.
	events := min(room, max(minEvents, room/3))
	members, predicates := memberLines(s.Members), predicateLines(s.Predicates)
	both := max(0, room-events)
	forPredicates := min(len(predicates), max(both/2, both-len(members)))
	members = cut(members, both-forPredicates, "member")
	predicates = cut(predicates, forPredicates, "predicate")
	return m.finish(append(append(head, members...), predicates...), s.Status, name)
}

// title names what is shown and whether that is how things are.
func (m *Watch) title(name string, at time.Time, s *monitor.Status) line {
	text, color := "pegasus watch", bold
	if name != "" {
		text = name
	}
	if n := len(m.order); n > 1 {
		text += fmt.Sprintf(" (%d of %d)", m.chosen+1, n)
	}
	if s != nil {
		epoch := fmt.Sprintf("epoch %d", s.Epoch)
		if s.Epoch == 0 {
			epoch = "no epoch"
		}
		text += fmt.Sprintf("  %s  group %s  tenant %s  %s", epoch, s.Group, s.Tenant, clockTime(at))
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
func (m *Watch) finish(lines []line, s *monitor.Status, name string) []line {
	room := m.Height - len(lines) - 2
	var mine []Entry
	for i := len(m.events) - 1; i >= 0 && len(mine) < room-1; i-- {
		if e := m.events[i]; e.From == "" || e.From == name {
			mine = append(mine, e)
		}
	}
	if room > 0 {
		lines = append(lines, line{"EVENTS", bold})
	}
	for _, e := range slices.Backward(mine) {
		lines = append(lines, eventLine(e))
	}
	for len(lines) < m.Height-2 {
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

func eventLine(e Entry) line {
	l := line{clockTime(e.At) + " " + phrase(e.Event), yellow}
	if event, ok := e.Event.(*monitor.Line); ok {
		l.color = map[string]string{"fired": green, "lost": yellow, "refused": yellow, "skipped": yellow}[event.Event]
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
	return append(lines[:room-1:room-1], line{text: fmt.Sprintf("and %s more", Count(missing, noun))})
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
	case m.Standing != monitor.InEpoch:
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
	for text := range strings.Lines(Table(rows)) {
		lines = append(lines, line{strings.TrimSuffix(text, "\n"), colors[len(lines)]})
	}
	return lines
}

package show

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// Why is an explanation for people.
func Why(e *monitor.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s is %s", e.Synchronizer, e.Name, e.Truth)
	if e.Since != nil {
		fmt.Fprintf(&b, " for %s", monitor.Seconds(*e.Since))
	}
	if e.Reason != "" {
		b.WriteString(": " + Printable(e.Reason))
	}
	b.WriteString("; " + firedText(e) + "\n")
	b.WriteString("  when " + indented(e.When) + "\n")
	switch {
	case e.Every:
		b.WriteString("  on every global state\n")
	case e.For > 0:
		fmt.Fprintf(&b, "  for %s\n", monitor.Seconds(e.For))
	}
	b.WriteString("\n" + globalStateText(e.State) + "\n")
	b.WriteString(partsText(e.Parts))
	if len(e.Missing) > 0 {
		b.WriteString("\nmissing\n" + missingTable(e.Missing))
	}
	if e.Last != nil {
		b.WriteString("\n" + decisionText(e.Last))
	}
	if e.Balance != nil {
		b.WriteString("\n" + balanceDetails(e.Balance))
	}
	return PrintableLines(b.String())
}

// balanceDetails are the loads under way and the last plan.
func balanceDetails(p *monitor.BalanceStatus) string {
	var b strings.Builder
	writeLine(&b, "%s", balanceText(p))
	if len(p.UnderWay) > 0 {
		rows := [][]string{{"LOAD", "FROM", "TO", "WEIGHT", "DECISION", "SINCE", ""}}
		for _, f := range p.UnderWay {
			rows = append(rows, []string{f.Load, f.From, f.To, digits(f.Weight), f.Decision, monitor.Seconds(f.Ago), f.Phase})
		}
		b.WriteString("\n" + Table(rows))
	}
	if p.Last != nil {
		writePlan(&b, "last plan", p.Last)
	}
	if p.Moved != nil {
		writePlan(&b, "last plan with moves", p.Moved)
	}
	return b.String()
}

// writePlan writes a plan, with its members, moves and refusals.
func writePlan(b *strings.Builder, which string, l *monitor.PlanStatus) {
	fmt.Fprintf(b, "\n%s, on global state %d of epoch %d: longest queue %s, with %s %s\n",
		which, l.Index, l.Epoch, secondsOr("without end", l.Before), Count(len(l.Moves), "move"), secondsOr("without end", l.After))
	rows := [][]string{{"MEMBER", "CLASS", "INDEX", "AVAILABLE", "LOADS", "WORK", "QUEUE", "THEN"}}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.Note != "" {
			rows = append(rows, []string{n.Name, "left alone: " + n.Note})
			continue
		}
		rows = append(rows, []string{
			n.Name, n.Class, digits(n.Index), digits(n.Available), strconv.Itoa(n.Loads), digits(n.Work), secondsOr("without end", n.Queue), secondsOr("without end", n.Then),
		})
	}
	b.WriteString(Table(rows))
	for _, m := range l.Moves {
		writeLine(b, "move %s (%s) from %s to %s: %s", m.Load, digits(m.Weight), m.From, m.To, m.Why)
	}
	for _, r := range l.Refused {
		writeLine(b, "%s", refusalText(&r))
	}
	if l.LeftOut > 0 {
		fmt.Fprintf(b, "and %d more refused\n", l.LeftOut)
	}
}

// refusalText is a line as a plan has it.
func refusalText(r *monitor.PlanRefusal) string {
	words := []string{"refused"}
	for _, part := range [][2]string{{"", r.Load}, {"on ", r.From}, {"to ", r.To}} {
		if part[1] != "" {
			words = append(words, part[0]+part[1])
		}
	}
	return strings.Join(words, " ") + ": " + r.Reason + ": " + r.Detail
}

// digits gives three of them.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func firedText(e *monitor.Explanation) string {
	switch e.Fired {
	case 0:
		return "never fired"
	case 1:
		return fmt.Sprintf("fired once, %s ago", monitor.Seconds(e.Ago))
	}
	return fmt.Sprintf("fired %d times, last %s ago", e.Fired, monitor.Seconds(e.Ago))
}

// indented aligns the lines of a predicate.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n       ")
}

func partsText(parts []monitor.Condition) string {
	rows := make([][]string, len(parts))
	for i := range parts {
		p := &parts[i]
		rows[i] = []string{"  " + strings.Repeat("  ", p.Depth) + p.Text, valueText(p), membersText(p)}
	}
	return Table(rows)
}

func valueText(p *monitor.Condition) string {
	if p.Low == nil {
		return "unknown"
	}
	low, high := fmt.Sprint(p.Low), fmt.Sprint(p.High)
	if low != high {
		return low + " to " + high
	}
	return low
}

// membersText names the members on which a part depends: the fewer of those for
// which its condition holds and of those for which it does not, and those of which
// that is not known.
func membersText(p *monitor.Condition) string {
	if p.True == nil || p.False == nil || p.Unknown == nil {
		return p.Reason
	}
	all := p.True.Count + p.False.Count + p.Unknown.Count
	text := fmt.Sprintf("holds for %d of %s", p.True.Count, Count(all, "member"))
	switch {
	case p.True.Count == 0 || p.False.Count == 0:
	case p.False.Count < p.True.Count:
		text += ", not for " + p.False.String()
	default:
		text += ": " + p.True.String()
	}
	if p.Unknown.Count > 0 {
		text += "; unknown of " + p.Unknown.String()
	}
	return text
}

func missingTable(missing []monitor.Missing) string {
	rows := make([][]string, len(missing))
	for i, m := range missing {
		since := ""
		if m.Since != nil {
			since = "since " + monitor.Seconds(*m.Since)
		}
		rows[i] = []string{"  " + m.Kind, cmp.Or(m.Member, "-"), m.Text, since}
	}
	return Table(rows)
}

// decisionText draws the states that held together.
func decisionText(d *monitor.LastDecision) string {
	if d.Inherited {
		return fmt.Sprintf("decision %s, %s ago, by the process that led before: its witness is not known here\n", d.ID, monitor.Seconds(d.Ago))
	}
	var b strings.Builder
	on := fmt.Sprintf("global state %d", d.Index)
	if d.Modality != "" && d.Modality != scgs.Inst.String() {
		on = fmt.Sprintf("set %d (%s)", d.Index, d.Modality)
	}
	writeLine(&b, "decision %s, %s ago, on %s of epoch %d: %s",
		d.ID, monitor.Seconds(d.Ago), on, d.Epoch, certainty(d))
	b.WriteString(witnessDrawing(d))
	rows := [][]string{{"MEMBER", "SEQ", "BEGAN", "HELD UNTIL", "STATE"}}
	for i := range d.Witness {
		w := &d.Witness[i]
		if w.Unknown {
			rows = append(rows, []string{w.Member, "-", "-", "-", "unknown"})
			continue
		}
		until := momentText(w.End)
		if w.Open {
			until = signedInstant(w.End.From) + " or longer"
		}
		rows = append(rows, []string{w.Member, strconv.FormatUint(w.Seq, 10), momentText(w.Start), until, w.State.String()})
	}
	b.WriteString(Table(rows))
	if d.LeftOut > 0 {
		fmt.Fprintf(&b, "and %s more\n", Count(d.LeftOut, "member"))
	}
	return b.String()
}

// certainty says for how long it certainly held, and by which bound.
func certainty(d *monitor.LastDecision) string {
	f := monitor.Firing{Modality: d.Modality, Held: d.Held, SameClock: d.SameClock, Bound: d.Bound, Sources: d.Sources}
	return f.Certainty()
}

// momentText is when something happened, from the instant that is drawn as 0.
func momentText(r monitor.Range) string {
	if r.From == r.To {
		return signedInstant(r.From)
	}
	return signedInstant(r.From) + " to " + signedInstant(r.To)
}

func signedInstant(t clocksync.Instant) string {
	if !t.Finite() {
		return t.String()
	}
	return signed(t.Sub(0))
}

// witnessDrawing shows the core and each state on one scale.
func witnessDrawing(d *monitor.LastDecision) string {
	s := witnessScale(d)
	var b strings.Builder
	b.WriteString("\n" + s.header())
	if d.Core != nil {
		b.WriteString(s.row("core", s.draw(interval(*d.Core), '=')))
	}
	if !d.SameClock {
		b.WriteString(s.row("envelope", s.draw(interval(d.Envelope), '.')))
	}
	for i := range d.Witness {
		w := &d.Witness[i]
		if w.Unknown {
			b.WriteString(s.row(w.Member, "?"))
			continue
		}
		b.WriteString(s.row(w.Member, s.state(w)))
	}
	zero := "0: from here on all certainly held"
	if d.Core == nil {
		zero = "0: from here on all may have held"
	}
	b.WriteString(s.mark(0, zero) + "\n")
	return b.String()
}

func interval(r monitor.Range) clocksync.Interval {
	return clocksync.Interval{Earliest: r.From, Latest: r.To}
}

// witnessScale is that of core and envelope, of the state that began last and of
// the one that ended first, and half as much again on both sides.
func witnessScale(d *monitor.LastDecision) scale {
	hull := clocksync.Exactly(0)
	late, early := clocksync.MinInstant, clocksync.MaxInstant
	for i := range d.Witness {
		if w := &d.Witness[i]; !w.Unknown {
			late, early = max(late, w.Start.To), min(early, w.End.From)
		}
	}
	ends := []clocksync.Instant{d.Envelope.From, d.Envelope.To, late, early}
	if d.Core != nil {
		ends = append(ends, d.Core.To)
	}
	for _, t := range ends {
		if t.Finite() {
			hull = hull.Hull(clocksync.Exactly(t))
		}
	}
	hull = hull.Widen(hull.Width()/2 + drawColumns)
	return scale{hull.Earliest, hull.Latest}
}

// state draws from the earliest start to the latest end, and what is certain
// in it with =; a + ends a state that was still open.
func (s scale) state(w *monitor.WitnessState) string {
	row := []byte(s.draw(clocksync.Interval{Earliest: w.Start.From, Latest: w.End.To}, '-'))
	from, to := max(w.Start.To, s.from), min(w.End.From, s.to)
	if from <= to {
		for c := s.column(from); c <= s.column(to); c++ {
			if row[c] == '-' {
				row[c] = '='
			}
		}
	}
	if end := s.column(min(w.End.To, s.to)); w.Open && w.End.To <= s.to {
		row[end] = '+'
	}
	return string(row)
}

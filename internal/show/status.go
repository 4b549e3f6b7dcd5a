package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/monitor"
)

// Status is a status for people: its synchronizer, members, predicates, signals
// and counters.
func Status(s *monitor.Status) string {
	var b strings.Builder
	epoch := fmt.Sprintf("epoch %d", s.Epoch)
	if s.Epoch == 0 {
		epoch = fmt.Sprintf("no epoch: %s awaited", Count(s.Awaited, "member"))
	}
	writeLine(&b, "%s: %s; group %s, tenant %s, term %d, config %s", s.Synchronizer, epoch, s.Group, s.Tenant, s.Term, s.Config)
	b.WriteString(globalStateText(s.State) + "\n\n")
	b.WriteString(membersTable(s.Members))
	if len(s.Predicates) > 0 {
		b.WriteString("\n" + predicatesTable(s.Predicates))
	}
	for i := range s.Predicates {
		for _, note := range s.Predicates[i].Notes {
			writeLine(&b, "%s: %s", s.Predicates[i].Name, note)
		}
	}
	b.WriteString("\n")
	for i := range s.Groups {
		writeLine(&b, "group     %s", groupText(&s.Groups[i]))
	}
	if s.Balance != nil {
		writeLine(&b, "balance   %s", balanceText(s.Balance))
	}
	if len(s.Params) > 0 {
		writeLine(&b, "params    %s", paramsText(s.Params))
	}
	if len(s.Memory) > 0 {
		writeLine(&b, "memory    %s", s.Memory)
	}
	writeLine(&b, "signals   %s", signalsText(s))
	writeLine(&b, "counters  %s", countersText(s.Counters))
	if len(s.Shed) > 0 {
		writeLine(&b, "shed      %s", shedText(s.Shed))
	}
	for _, d := range s.Denied {
		writeLine(&b, "denied    %s", deniedText(s, d))
	}
	if len(s.Standbys) > 0 {
		writeLine(&b, "leader    %s", s.Leader)
		for _, standby := range s.Standbys {
			writeLine(&b, "standby   %s", standby)
		}
	}
	return b.String()
}

// paramsText has the values of parameters, those that were set with what they were.
func paramsText(list []monitor.ParamStatus) string {
	var parts []string
	for _, p := range list {
		text := p.Name + "=" + p.Value
		if p.Set {
			text += fmt.Sprintf(" (set; %s before)", p.Default)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// Params is a table of parameters for people.
func Params(s *monitor.Status) string {
	var b strings.Builder
	if len(s.Params) == 0 {
		writeLine(&b, "%s: its configuration declares no parameters", s.Synchronizer)
		return b.String()
	}
	writeLine(&b, "%s:", s.Synchronizer)
	rows := [][]string{{"param", "value", "type", "takes", "default", ""}}
	for _, p := range s.Params {
		note := ""
		if p.Set {
			note = "set"
		}
		rows = append(rows, []string{p.Name, p.Value, p.Type, cmp.Or(p.Range, "any"), p.Default, note})
	}
	b.WriteString(Table(rows))
	return b.String()
}

// shedShown is how many senders a line has room for.
const shedShown = 4

func shedText(list []monitor.ShedStatus) string {
	var parts []string
	for _, s := range list[:min(len(list), shedShown)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", s.From, s.Full+s.Old))
	}
	if n := len(list) - len(parts); n > 0 {
		parts = append(parts, "and of "+Count(n, "other"))
	}
	return "messages unread of " + strings.Join(parts, ", ")
}

// deniedText says what to permit.
func deniedText(s *monitor.Status, d monitor.DeniedStatus) string {
	verb := "subscribe"
	if d.Publish {
		verb = "publish"
	}
	return fmt.Sprintf("the server refuses to %s to %q, last %s ago: permit what pegasus keys permissions synchronizer %s --tenant %s --group %s prints",
		verb, d.Subject, monitor.Seconds(d.Ago), s.Synchronizer, s.Tenant, s.Group)
}

func globalStateText(g *monitor.StateStatus) string {
	if g == nil {
		return "no global state yet"
	}
	return fmt.Sprintf("global state %d of epoch %d: %s", g.Index, g.Epoch, heldText(g))
}

func heldText(g *monitor.StateStatus) string {
	text := "in force"
	if !g.InForce {
		text = "over, and the next one is not certain yet"
	}
	if g.Partial {
		text += ", partial"
	}
	if !g.InForce && g.Held == 0 {
		return text // Nobody has looked for how long.
	}
	text += ", certainly held for " + monitor.Seconds(g.Held)
	if g.SameClock {
		text += " by the same clock"
	}
	return text
}

// secondsOr is a time span, or a text if there is none.
func secondsOr(none string, s *float64) string {
	if s == nil {
		return none
	}
	return monitor.Seconds(*s)
}

func membersTable(members []monitor.MemberStatus) string {
	if len(members) == 0 {
		return "no members\n"
	}
	rows := [][]string{{"MEMBER", "HOST", "EPOCH", "HEARD", "CLOCK", "BOUND", "PENDING", "GAP", "STATE"}}
	for i := range members {
		m := &members[i]
		rows = append(rows, []string{
			m.Name, m.Host, string(m.Standing), heardText(m), clockName(&m.Clock), boundText(m.Clock.Bound),
			strconv.Itoa(m.Pending), gapText(m), stateText(m),
		})
	}
	return Table(rows)
}

func gapText(m *monitor.MemberStatus) string {
	var parts []string
	if m.Gap > 0 {
		parts = append(parts, fmt.Sprintf("%s, %d behind", monitor.Seconds(m.Gap), m.Behind))
	}
	if m.Gaps > 0 {
		parts = append(parts, fmt.Sprintf("%s, %d lost", Count(m.Gaps, "gap"), m.Lost))
	}
	return cmp.Or(strings.Join(parts, "; "), "-")
}

// groupText tells whom signals to another group could reach.
func groupText(g *monitor.GroupStatus) string {
	regions := map[string]int{}
	for i := range g.Members {
		for _, name := range g.Members[i].Regions {
			regions[name]++
		}
	}
	parts := []string{Count(len(g.Members), "member") + " known"}
	for _, name := range slices.Sorted(maps.Keys(regions)) {
		parts = append(parts, fmt.Sprintf("%d in region %s", regions[name], name))
	}
	return fmt.Sprintf("%s: %s", g.Group, strings.Join(parts, ", "))
}

func heardText(m *monitor.MemberStatus) string {
	text := monitor.Seconds(m.Heard) + " ago"
	if m.Silent {
		text = "silent for " + monitor.Seconds(m.Heard)
	}
	return text
}

func clockName(c *monitor.ClockStatus) string {
	if c.Source == "" || c.Status == "exact" || c.Status == "local" {
		return c.Status
	}
	return c.Status + " by " + c.Source
}

func boundText(bound *float64) string {
	switch {
	case bound == nil:
		return "-"
	case *bound == 0:
		return "0"
	}
	return "±" + monitor.Seconds(*bound)
}

func stateText(m *monitor.MemberStatus) string {
	switch {
	case m.Why != "":
		return m.Why
	case m.Unknown:
		return "unknown"
	case m.Standing == monitor.NoState:
		return "none yet"
	}
	return m.State.String()
}

func predicatesTable(predicates []monitor.PredicateStatus) string {
	rows := [][]string{{"PREDICATE", "TRUTH", "FOR", "FIRED", "LAST DECISION", ""}}
	for i := range predicates {
		p := &predicates[i]
		last := "-"
		if p.Decision != "" {
			last = fmt.Sprintf("%s, %s ago", p.Decision, monitor.Seconds(p.Ago))
		}
		rows = append(rows, []string{p.Name, p.Truth, secondsOr("-", p.Since), strconv.FormatUint(p.Fired, 10), last, remark(p)})
	}
	return Table(rows)
}

// remark is what else there is to say of a predicate.
func remark(p *monitor.PredicateStatus) string {
	switch {
	case p.Reason != "":
		return p.Reason
	case p.Hold != nil:
		return fmt.Sprintf("certain for %s of %s", monitor.Seconds(p.Hold.Certain), monitor.Seconds(p.Hold.Wanted))
	}
	return ""
}

// balanceText tells how the section balance stands.
func balanceText(p *monitor.BalanceStatus) string {
	text := fmt.Sprintf("%s: %s, %d in balance, %s, %s", p.Strategy, Count(p.Looks, "look"), p.Quiet, Count(p.Plans, "plan"), Count(p.Moves, "move"))
	if p.Refused > 0 {
		text += fmt.Sprintf(", %d of them refused", p.Refused)
	}
	if p.Flights > 0 {
		text += fmt.Sprintf("; %s under way", Count(p.Flights, "load"))
	}
	if p.Last != nil {
		text += "; last plan: " + p.Last.Verdict
	}
	return text
}

func signalsText(s *monitor.Status) string {
	var parts []string
	for _, fate := range slices.Sorted(maps.Keys(s.Fates)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Fates[fate], fate))
	}
	if s.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d without a fate yet", s.Waiting))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// countersText leaves out what is 0.
func countersText(counters map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if n := counters[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/workreport"
)

// Space is how the tasks of a group stand.
type Space struct {
	Synchronizer string               `json:"synchronizer"` // its name
	Group        string               `json:"group"`        // whose members were asked
	Epoch        uint64               `json:"epoch"`        // whose members were asked
	Members      []*workreport.Report `json:"members"`      // those that have answered, by name
	Silent       []string             `json:"silent"`       // those that have not
}

// SpaceText is a space for people.
func SpaceText(s *Space) string {
	var b strings.Builder
	open, blocked, queued, running := 0, 0, 0, 0
	for _, m := range s.Members {
		open, blocked, queued, running = open+m.Open, blocked+m.Blocked, queued+m.Queued, running+m.Running
	}
	writeLine(&b, "%s: group %s, epoch %d; %s open, %d blocked, %d queued, %d running", s.Synchronizer, s.Group, s.Epoch, Count(open, "task"), blocked, queued, running)
	rows := [][]string{{"MEMBER", "PHASE", "PROGRAM", "OPEN", "BLOCKED", "QUEUED", "RUNNING", "STUCK", "PUT", "GIVEN", "MOVED", "REDONE", "HOLDS ITS TASKS"}}
	for _, m := range s.Members {
		rows = append(rows, []string{
			m.Member, strconv.FormatUint(m.Phase, 10), programText(m), strconv.Itoa(m.Open), blockedText(m), strconv.Itoa(m.Queued), fmt.Sprintf("%d of %d", m.Running, m.Slots),
			strconv.Itoa(m.Stuck), strconv.FormatUint(m.Put, 10), strconv.FormatUint(m.Given, 10), strconv.FormatUint(m.Moved, 10), strconv.FormatUint(m.Redone, 10), holdersText(m.Holders),
		})
	}
	b.WriteString(Table(rows))
	writeLogs(&b, s.Members)
	for _, name := range s.Silent {
		writeLine(&b, "%s: no answer: it has not opened the space, has died, or cannot be reached; pegasus why end says whether the phase waits for it", name)
	}
	for _, m := range s.Members {
		if m.Withdrawal != nil {
			writeLine(&b, "%s: %s", m.Member, withdrawalText(m.Withdrawal))
		}
		for _, o := range m.Waiting {
			writeLine(&b, "%s: messages to object %s wait: it is bound to %s, and none of them is in the group: start one of them", m.Member, Printable(o.Object), Printable(strings.Join(o.Members, ", ")))
		}
		if m.WaitingMore > 0 {
			writeLine(&b, "%s: and messages to %s more wait for such members", m.Member, Count(m.WaitingMore, "object"))
		}
		writeLoops(&b, m)
		writeCalls(&b, m)
		if m.Mail.Undirected > m.Mail.Directed+m.Mail.Local {
			writeLine(&b, "%s: asked all members %s which of them has an object, more often than it sent messages: create objects before others send to them", m.Member, Count(int(min(m.Mail.Undirected, 1<<31)), "time")) //nolint:gosec // It is bounded.
		}
		if m.Dropped > 0 {
			writeLine(&b, "%s: %s to others found the queue full; what matters is sent again", m.Member, Count(int(min(m.Dropped, 1<<31)), "message")) //nolint:gosec // It is bounded.
		}
	}
	return b.String()
}

// writeLoops says how the loops of a member stand. A member that is not the home of a loop is left out until it was
// withdrawn.
func writeLoops(b *strings.Builder, m *workreport.Report) {
	for i := range m.Loops {
		l := &m.Loops[i]
		name := Printable(l.Name)
		switch {
		case l.Home:
			writeLine(b, "%s: home of loop %s: iteration %d of %s; %s moved, %d of them of members that left; %d redone; efficiency %.2f, %.2f in the last iteration",
				m.Member, name, l.Iteration, Count(l.Rows, "row"), Count(l.Moved, "row"), l.Released, l.Redone, l.Overall, l.Efficiency)
			if len(l.Speeds) > 0 {
				parts := make([]string, len(l.Speeds))
				for i, s := range l.Speeds {
					parts[i] = fmt.Sprintf("%s %.1f", Printable(s.Member), s.Rows)
				}
				writeLine(b, "%s: rows a second in loop %s: %s", m.Member, name, strings.Join(parts, ", "))
			}
		case l.Withdrawals > 0:
			used := ""
			if l.Used != nil {
				used = fmt.Sprintf("; its process uses %.1f %% of the cores since", *l.Used*100)
			}
			writeLine(b, "%s: gave its rows of loop %s back %s, within %v%s", m.Member, name, Count(l.Withdrawals, "time"), time.Duration(min(l.Withdrawing, 1e9)*float64(time.Second)).Round(time.Millisecond), used)
		}
	}
}

// writeCalls says how the calls of a member stand, as its caller and as its server. A function without calls is left out.
func writeCalls(b *strings.Builder, m *workreport.Report) {
	for i := range m.Calls {
		c := &m.Calls[i]
		if c.Open == 0 && c.Waiting == 0 && c.Running == 0 && c.Lost == 0 && c.Full == 0 && c.Busy == 0 {
			continue
		}
		text := fmt.Sprintf("%s open, %d waiting and %d running there", Count(c.Open, "call"), c.Waiting, c.Running)
		if c.Lost > 0 {
			text += fmt.Sprintf("; servers were lost with its calls %s", Count(int(min(c.Lost, 1<<31)), "time")) //nolint:gosec // It is bounded.
		}
		if c.Full > 0 {
			text += fmt.Sprintf("; servers refused its calls %s", Count(int(min(c.Full, 1<<31)), "time")) //nolint:gosec // It is bounded.
		}
		if c.Busy > 0 {
			text += fmt.Sprintf("; servers at their upper mark had its calls wait %s", Count(int(min(c.Busy, 1<<31)), "time")) //nolint:gosec // It is bounded.
		}
		writeLine(b, "%s: function %s: %s", m.Member, Printable(c.Name), text)
	}
}

// writeLogs says how the stream stands that the tasks lie in.
func writeLogs(b *strings.Builder, members []*workreport.Report) {
	var most *workreport.LogReport // Whoever asked last knows of most, as far as nothing was removed.
	for _, m := range members {
		if m.Log != nil && (most == nil || m.Log.Messages > most.Messages) {
			most = m.Log
		}
	}
	if most == nil {
		return
	}
	writeLine(b, "stream %s: %s, %.1f MiB", Printable(most.Stream), Count(int(min(most.Messages, 1<<31)), "message"), float64(most.Bytes)/(1<<20)) //nolint:gosec // It is bounded.
	for _, m := range members {
		switch l := m.Log; {
		case l == nil:
			continue
		case l.Stalled:
			writeLine(b, "%s: the stream takes no messages of it; %s wait, and nothing counts before: look at the NATS server and its disk", m.Member, Count(l.Unwritten, "append"))
		}
		if m.Log.Fault != "" {
			writeLine(b, "%s: no phase ends now: %s", m.Member, Printable(m.Log.Fault))
		}
		if len(m.Log.Accounts) > 0 {
			writeLine(b, "%s: has taken over the tasks of lost members: %s", m.Member, Printable(strings.Join(m.Log.Accounts, ", ")))
		}
	}
}

// blockedText counts the tasks that wait for others, and the IDs that were not put.
func blockedText(m *workreport.Report) string {
	if m.Missing == 0 {
		return strconv.Itoa(m.Blocked)
	}
	return fmt.Sprintf("%d, %s not put", m.Blocked, Count(m.Missing, "ID"))
}

// programText is what the program of a member does, as far as the end of the phase waits for it.
func programText(m *workreport.Report) string {
	switch {
	case m.Drains:
		return "drains"
	case m.Withdrawal != nil:
		return "WITHDRAWN"
	case m.Awaits:
		return "waits for the end"
	case m.Settled:
		return "serves"
	default:
		return "may put tasks"
	}
}

// withdrawalText is since when a member takes no work, and what stays there.
func withdrawalText(w *workreport.Withdrawal) string {
	text := fmt.Sprintf("withdrawn for %v", time.Duration(min(w.Seconds, 1e9)*float64(time.Second)).Round(100*time.Millisecond))
	if w.Alone {
		text += "; none of its neighbours takes work, so it works on"
	}
	if w.Stay == 0 {
		return text + "; no object stays there"
	}
	names := make([]string, len(w.Objects))
	for i, id := range w.Objects {
		names[i] = Printable(id)
	}
	text += fmt.Sprintf("; %s stay there, pinned or bound to members: %s", Count(w.Stay, "object"), strings.Join(names, ", "))
	if more := w.Stay - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func holdersText(list []workreport.Holding) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, h := range list {
		parts[i] = fmt.Sprintf("%s %d", Printable(h.Member), h.Tasks)
		if h.Runs > 0 {
			parts[i] += fmt.Sprintf(" (%d run)", h.Runs)
		}
	}
	return strings.Join(parts, ", ")
}

package show

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/monitor"
)

// Program tells where a program stands.
func Program(s *monitor.ProgramStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s is %s", s.Name, s.Outcome)
	if s.Reason != "" {
		b.WriteString(": " + Printable(s.Reason))
	}
	b.WriteString("\n")
	rows := [][]string{{"BLOCK", "STARTS", "DONE", "FAILED", "CANCELLED", "LOST", "TWICE?", "MEAN", "LONGEST", "NOW", "PATH"}}
	for i := range s.Blocks {
		x := &s.Blocks[i]
		runs := make([]string, len(x.Runs))
		for k, r := range x.Runs {
			if runs[k] = fmt.Sprintf("%s on %s for %s", r.Phase, r.Processor, monitor.Seconds(r.Seconds)); r.Attempt > 1 {
				runs[k] += fmt.Sprintf(" (attempt %d)", r.Attempt)
			}
			if r.Replica != "" {
				runs[k] = "[" + r.Replica + "] " + runs[k]
			}
		}
		now := "-"
		if len(runs) > 0 {
			now = Some(runs)
		}
		row := []string{x.Name}
		for _, n := range []uint64{x.Starts, x.Done, x.Failed, x.Canceled, x.Lost, x.Twice} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		mean, longest := "-", "-"
		if x.Done > 0 {
			mean, longest = monitor.Seconds(x.Mean), monitor.Seconds(x.Longest)
		}
		rows = append(rows, append(row, mean, longest, now, x.Path))
	}
	b.WriteString(Table(rows))
	if s.LeftOut > 0 {
		fmt.Fprintf(&b, "and %s more\n", Count(s.LeftOut, "block"))
	}
	for _, x := range s.Waits {
		name := x.Name
		if x.Replica != "" {
			name += "[" + x.Replica + "]"
		}
		fmt.Fprintf(&b, "%s waits for %s  (%s)\n", name, x.For, x.Path)
	}
	if s.WaitsMore > 0 {
		fmt.Fprintf(&b, "and %d more wait\n", s.WaitsMore)
	}
	return PrintableLines(b.String())
}

// Rehearsal tells the processors of a plan and what starts on them.
func Rehearsal(plan *program.Compiled) string {
	p := plan.Program()
	var b strings.Builder
	fmt.Fprintf(&b, "program %s: %s\n\n", p.Name, Count(plan.Blocks(), "block instance"))
	rows := [][]string{{"PROCESSOR", "NODES", "LABELS", "CORES A BLOCK"}}
	for i := range p.Processors {
		q := &p.Processors[i]
		rows = append(rows, []string{q.Name, most(q.Count, "all that fit"), listed(q.Labels), most(q.Cores, "shared")})
	}
	if anywhere(plan) {
		rows = append(rows, []string{"(any)", "all", "-", "shared"})
	}
	r := rehearsal{plan, [][]string{{"BLOCK", "TIMES", "ON", "STARTS", "UNDER"}}}
	r.walk(0, 1, "", "at the start")
	b.WriteString(Table(rows) + "\n" + Table(r.rows))
	if text := Threads(p); text != "" {
		b.WriteString("\n" + text)
	}
	return b.String()
}

// Threads says which blocks have threads, and who is above these: a line each.
func Threads(p *program.Program) string {
	var text strings.Builder
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.Threads == 0 {
			continue
		}
		fmt.Fprintf(&text, "block %s: %s under %s; it runs on Go nodes that have it as an agent.ThreadBlock\n", b.Name, Count(b.Threads, "thread"), cmp.Or(b.Synchronizer, "no synchronizer"))
	}
	return text.String()
}

func most(n int, none string) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

func listed(words []string) string { return cmp.Or(strings.Join(words, " "), "-") }

// anywhere reports whether a block names no processor.
func anywhere(plan *program.Compiled) bool {
	for i := range plan.Constructs() {
		if info := plan.Info(i); info.On != nil && info.On.Name == "" {
			return true
		}
	}
	return false
}

type rehearsal struct {
	plan *program.Compiled
	rows [][]string
}

// walk prints the blocks of a construct: how often each starts at a time, under
// which switches, and after what.
func (r *rehearsal) walk(i, times int, when, after string) {
	info := r.plan.Info(i)
	under := func(more string) string {
		if when == "" {
			return more
		}
		return when + ", " + more
	}
	switch info.Kind {
	case program.KindDo:
		name := info.Block.Name
		if info.Name != name {
			name = info.Name + ": " + name
		}
		if info.Block.Threads > 0 {
			name += " (" + Count(info.Block.Threads, "thread") + ")"
		}
		starts := after
		if when != "" {
			starts += "; " + when
		}
		r.rows = append(r.rows, []string{name, strconv.Itoa(times), cmp.Or(info.On.Name, "(any)"), starts, listed(info.Async)})
	case program.KindSeq:
		for k, kid := range info.Kids {
			if k > 0 {
				after = "after " + r.name(info.Kids[k-1])
			}
			r.walk(kid, times, when, after)
		}
	case program.KindPar:
		for _, kid := range info.Kids {
			r.walk(kid, times*max(1, info.Times), when, after)
		}
	case program.KindIf, program.KindCase:
		for k, kid := range info.Kids {
			cond := "if " + strings.Join(info.Reads, ", ") + " false"
			if len(info.Reads) > 1 {
				cond = "if none of " + strings.Join(info.Reads, ", ")
			}
			if k < len(info.Reads) {
				cond = "if " + info.Reads[k]
			}
			r.walk(kid, times, under(cond), after)
		}
	case program.KindWhile:
		r.walk(info.Kids[0], times, under("while "+info.Reads[0]), after)
	case program.KindUntil:
		r.walk(info.Kids[0], times, under("until "+info.Reads[0]), after)
	}
	if info.Else >= 0 {
		r.walk(info.Else, times, under("in its place"), r.name(i)+" failed")
	}
}

func (r *rehearsal) name(i int) string {
	info := r.plan.Info(i)
	return cmp.Or(info.Name, "the "+info.Kind.String())
}

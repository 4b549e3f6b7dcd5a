package callsplit

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// schedule moves starts up and waits down as far as that lets something run beside a call. It ends: each move has a start
// in front of more waits and work of the program, or a wait behind more starts and work, and no move takes that back.
func (p *pass) schedule(units []*unit) []*unit {
	for moved := true; moved; {
		moved = false
		for i := range units {
			if units[i].kind == starts && p.hoist(units, i) {
				moved = true
			}
		}
		for i := range slices.Backward(units) {
			if units[i].kind == waits && p.sink(units, i) {
				moved = true
			}
		}
	}
	return units
}

// hoist moves a start in front of the last wait, or work of the program, that it can pass.
func (p *pass) hoist(units []*unit, i int) bool {
	u, best := units[i], i
	for at := i - 1; at >= 0; at-- {
		over := units[at]
		if why := overStart(u, over); why != "" {
			u.call.note("its start cannot move in front of line %d: %s", p.line(over.pos), why)
			break
		}
		if over.kind == waits || over.kind == plain && over.effects.works {
			best = at
		}
	}
	move(units, i, best)
	return best < i
}

// sink moves a wait behind the last start, or work of the program, that it can pass.
func (p *pass) sink(units []*unit, i int) bool {
	u, best := units[i], i
	for at := i + 1; at < len(units); at++ {
		under := units[at]
		if why := underWait(u, under); why != "" {
			if under.kind != waits {
				u.call.note("its wait cannot move behind line %d: %s", p.line(under.pos), why)
			}
			break
		}
		if under.kind == starts || under.kind == plain && under.effects.works {
			best = at
		}
	}
	move(units, i, best)
	return best > i
}

func move(units []*unit, from, to int) {
	u := units[from]
	if from < to {
		copy(units[from:to], units[from+1:to+1])
	} else {
		copy(units[to+1:from+1], units[to:from])
	}
	units[to] = u
}

// note keeps the first two reasons why a call stays as it is.
func (c *syncCall) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n := strings.Count(c.why, ";"); n < 1 && !strings.Contains(c.why, text[:12]) {
		c.why = strings.TrimPrefix(c.why+"; "+text, "; ")
	}
}

// overStart returns why a start must stay behind another unit, or empty.
func overStart(u, over *unit) string {
	if over.call == u.call && over.kind != plain {
		return "both belong to the same call"
	}
	if why := u.effects.meets(&over.effects); why != "" {
		return why
	}
	if u.effects.panics && (over.returns || over.effects.writesHeap || over.effects.panics) {
		return "its arguments may panic, and the program may return or stop there"
	}
	return ""
}

// underWait returns why a wait must stay in front of another unit, or empty. Waits keep their order: the first error is returned.
func underWait(u, under *unit) string {
	if under.kind == waits {
		return "waits keep their order"
	}
	if why := u.effects.meets(&under.effects); why != "" {
		return why
	}
	if (u.returns || u.effects.panics) && (under.effects.panics || under.effects.writesHeap) {
		return "the program may panic or store there, although the call fails"
	}
	return ""
}

// split suggests a fix for a list of statements, and reports whether it does.
func (p *pass) split(units []*unit, calls []*syncCall) bool {
	units, calls = p.chain(units, calls)
	original := slices.Clone(units)
	for _, c := range calls {
		if c.keep {
			freeze(original, c)
		}
	}
	for {
		units = p.schedule(slices.Clone(original))
		idle := idleCalls(units)
		if len(idle) == 0 {
			break
		}
		for _, c := range idle {
			freeze(original, c)
		}
	}
	var split, left []*syncCall
	for _, c := range calls {
		if slices.ContainsFunc(units, func(u *unit) bool { return u.kind == starts && u.call == c }) {
			split = append(split, c)
		} else if !c.joined {
			left = append(left, c)
		}
	}
	p.leave(left, "")
	first, last := 0, len(units)
	for first < last && units[first] == original[first] && !changed(units[first]) {
		first++
	}
	for last > first && units[last-1] == original[last-1] && !changed(units[last-1]) {
		last--
	}
	if first == last {
		return false
	}
	p.suggest(original[first:last], units[first:last], split, calls)
	return true
}

// changed reports whether a unit differs from its source where it is.
func changed(u *unit) bool {
	return u.kind != plain && u.call.declare || u.call != nil && u.call.joined
}

// freeze makes a call in a list one statement, which nothing passes.
func freeze(units []*unit, c *syncCall) {
	for i, u := range units {
		if u.call != c || u.kind == plain {
			continue
		}
		e := noEffects()
		e.stop("a call that is waited for there")
		frozen := &unit{effects: e, pos: u.pos, call: c, from: u.from, to: u.to}
		if u.kind == starts {
			frozen.lead = u.lead
			if !c.declare {
				frozen.body = u.body
			}
		} else {
			frozen.body = strings.ReplaceAll(u.body, placeholder+c.wait, c.beginAndWait())
		}
		units[i] = frozen
	}
}

// beginAndWait is the source of a call that is not split.
func (c *syncCall) beginAndWait() string {
	if c.pair {
		return c.source
	}
	return c.begin + c.wait
}

// idleCalls returns the calls beside which nothing runs.
func idleCalls(units []*unit) (out []*syncCall) {
	open, busy := map[*syncCall]bool{}, map[*syncCall]bool{}
	var all []*syncCall
	for _, u := range units {
		switch {
		case u.kind == starts:
			all = append(all, u.call)
			for c := range open {
				busy[c], busy[u.call] = true, true
			}
			open[u.call] = true
		case u.kind == waits:
			delete(open, u.call)
		case u.effects.works:
			for c := range open {
				busy[c] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(c *syncCall) bool { return busy[c] })
}

// render is the source of units. Handles get their names.
func (p *pass) render(units []*unit) string {
	var out strings.Builder
	for _, u := range units {
		text := u.lead + u.body
		if u.kind != plain {
			if u.call.handle == placeholder {
				u.call.handle = p.fresh(u.call.wanted)
			}
			text = strings.ReplaceAll(text, placeholder, u.call.handle)
		}
		out.WriteString(text)
	}
	return out.String()
}

// suggest reports the calls that are split, with one fix for all of them.
func (p *pass) suggest(before, after []*unit, split, calls []*syncCall) {
	file := p.Fset.File(p.file.FileStart)
	from, to := before[0].from, before[0].to
	for _, u := range before {
		from, to = min(from, u.from), max(to, u.to)
	}
	end := file.Pos(file.Size())
	if to < file.LineCount() {
		end = file.LineStart(to + 1)
	}
	text := p.render(after)
	pos, names := calls[0].pos, []string{}
	if len(split) == 0 { // A chain alone.
		split = slices.DeleteFunc(slices.Clone(calls), func(c *syncCall) bool { return !c.joined })
	}
	for i, c := range split {
		if p.markDone(c); i == 0 {
			pos = c.pos
		}
		names = append(names, c.name)
	}
	message := fmt.Sprintf("calls that wait at once: %s: start them early and wait for them late", strings.Join(names, ", "))
	p.Report(analysis.Diagnostic{Pos: pos, Category: "split", Message: message, SuggestedFixes: []analysis.SuggestedFix{{
		Message: "Split the calls into starts and waits", TextEdits: []analysis.TextEdit{{Pos: file.LineStart(from), End: end, NewText: []byte(text)}},
	}}})
}

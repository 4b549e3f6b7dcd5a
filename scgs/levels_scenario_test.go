package scgs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// The files draw timelines of groups and say what must be found in each and, as
// "all", above them. Times and input lines are those of TestScenarios. Commands:
//
//	group NAME [share=(D,E)]  lines "NAME domain=D [eps=E]" are its members
//	all                       lines likewise are members beside the groups
//	input                     lines as in TestScenarios, "lose NAME" (the next
//	                          summary of a group), or "lost NAME"
//	needs                     what is lacking above, and in the groups for that
func TestLevelScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/levels", func(t *testing.T, path string) {
		t.Helper()
		h := &house{all: newScene(scgs.Options{}), groups: map[string]*scene{}, members: map[string]scgs.Member{}}
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			t.Helper()
			h.use(t, &strings.Builder{})
			switch c.Cmd {
			case "group":
				h.group(c)
			case "all":
				h.build(c)
			case "input":
				for line := range strings.Lines(c.Input) {
					h.input(strings.TrimSpace(line))
				}
			case "needs":
				h.needs()
			default:
				t.Fatalf("unknown command %q", c.Cmd)
			}
			return h.all.out.String()
		})
	})
}

// house is groups and a detector above them.
type house struct {
	all     *scene
	names   []string // of the groups
	groups  map[string]*scene
	members map[string]scgs.Member
	lose    string
	title   string // not printed yet
	sum     scgs.Summary
}

func (h *house) use(t *testing.T, out *strings.Builder) {
	t.Helper()
	h.all.t, h.all.out = t, out
	for _, g := range h.groups {
		g.t, g.out = t, out
	}
}

func (h *house) group(c *datadriven.TestData) {
	name := c.CmdArgs[0].Key
	g := newScene(scgs.Options{})
	h.groups[name], h.names = g, append(h.names, name)
	h.use(h.all.t, h.all.out)
	var shared []clocksync.Domain
	for _, a := range c.CmdArgs[1:] {
		for _, d := range a.Vals {
			shared = append(shared, clocksync.Domain(d))
		}
	}
	g.d.Share(shared...)
	g.epoch(epochOf(c))
}

// epochOf is a first epoch of the members that c names.
func epochOf(c *datadriven.TestData) *datadriven.TestData {
	return &datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "1"}}, Input: c.Input}
}

func (h *house) build(c *datadriven.TestData) {
	h.all.epoch(epochOf(c))
	for _, name := range h.names {
		h.members[name] = h.all.d.Epoch(1, nil, []scgs.Spec{{Group: true}})[0]
	}
}

func (h *house) input(line string) {
	words := strings.Fields(line)
	h.title = line
	switch words[0] {
	case "lose":
		h.lose = words[1]
		return
	case "lost":
		h.all.d.Lost(h.members[words[1]])
		h.drain()
		return
	}
	in := h.all
	for _, name := range h.names {
		if h.groups[name].members[words[0]] != nil {
			in = h.groups[name]
		}
	}
	in.report(in.d, line, in.start)
	for _, name := range h.names {
		h.forward(name)
	}
	h.drain()
}

// drain prints what has become certain above.
func (h *house) drain() {
	for h.all.d.Next(&h.all.event) {
		h.print("all", h.all)
	}
}

// head prints the line that brings about what is printed next, once.
func (h *house) head(s *scene) {
	if h.title != "" {
		fmt.Fprintln(s.out, h.title)
		h.title = ""
	}
}

func (h *house) print(name string, s *scene) {
	h.head(s)
	e := &s.event
	fmt.Fprintf(s.out, "  %s/%d %v", name, e.Index, e.Kind)
	if e.Kind == scgs.Opened {
		fmt.Fprintf(s.out, " (%s)", s.names())
	}
	if e.Partial {
		fmt.Fprint(s.out, " partial")
	}
	if e.Step {
		fmt.Fprint(s.out, " step")
	}
	fmt.Fprintln(s.out, s.span(e.Span))
}

// forward prints what a group has found and tells it above.
func (h *house) forward(name string) {
	g := h.groups[name]
	for more := true; more; {
		if more = g.d.Next(&g.event); more {
			h.print(name, g)
		}
		if !g.d.Summarize(&h.sum) {
			continue
		}
		if h.lose == name {
			h.head(g)
			fmt.Fprintf(g.out, "  a summary of %s is lost\n", name)
			h.lose = ""
			continue
		}
		if h.sum.Index != 0 { // after Opened: these are the parts
			h.all.states = append(h.all.states, "("+g.names()+")")
		}
		if why := h.all.d.Summary(h.members[name], &h.sum, scgs.Ref(len(h.all.states)-1)); why != scgs.Accepted {
			fmt.Fprintf(g.out, "%s: %v\n", name, why)
		}
	}
}

func (h *house) needs() {
	for _, n := range h.all.d.Needs(nil) {
		group := ""
		for _, name := range slices.Sorted(maps.Keys(h.members)) {
			if h.members[name] == n.Member {
				group = name
			}
		}
		if group == "" {
			fmt.Fprintf(h.all.out, "%s: after reading %s, time %s\n", h.all.name(n.Member), show(n.AfterMono), show(n.AfterTime))
			continue
		}
		g := h.groups[group]
		for _, low := range g.d.NeedsFor(nil, n) {
			fmt.Fprintf(g.out, "%s: %s: after reading %s, time %s\n", group, g.name(low.Member), show(low.AfterMono), show(low.AfterTime))
		}
	}
}

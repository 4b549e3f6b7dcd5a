package synccore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/regions"
	"github.com/gopegasus/pegasus/internal/wire"
)

const regionsConfig = `
synchronizers:
  g:
    members: {group: g}
    state: {n: int}
    predicates:
      stop: {when: "any(members, .n > 0)", signal: {kind: cancel, region: wurk}}
      other: {when: "any(members, .n > 0)", signal: {kind: cancel, region: serach, to: {group: workers, max: 3}}}
`

func regionsCore(t *testing.T) *Core {
	t.Helper()
	levels, err := configfile.Parse("c.yaml", []byte(regionsConfig))
	if err != nil {
		t.Fatal(err)
	}
	return New(levels[0], Options{Term: 1, Reference: "host"})
}

// TestRegionsAreBounded: of so many names of regions that members make up no more than the bound is kept,
// and then nothing is said of those that are not kept.
func TestRegionsAreBounded(t *testing.T) {
	c := regionsCore(t)
	var out Output
	c.Step(0, &Input{Kind: InHello, From: "a", Hello: &wire.Hello{Member: "a", Incarnation: 1, Domain: "host"}}, &out)
	for i := range regions.Most {
		in := []wire.Region{{Name: fmt.Sprintf("r%03d", i), Entry: uint64(i) + 1}}
		c.Step(clocksync.Instant(i), &Input{Kind: InBatch, From: "a", Batch: &wire.Batch{Member: "a", Incarnation: 1, Regions: in}}, &out)
	}
	want := `no member has ever reported region "wurk"; members have reported: r000, r001, r002, r003, r004, r005, r006, r007 and 56 more`
	if got := c.reports.regions.Lacks("", "wurk"); got != want {
		t.Errorf("at the bound: %q, not %q", got, want)
	}
	c.Step(100, &Input{Kind: InBatch, From: "a", Batch: &wire.Batch{Member: "a", Incarnation: 1, Regions: []wire.Region{{Name: "wurk", Entry: 100}}}}, &out)
	if got := c.reports.regions.Lacks("", "wurk"); got != "" || len(c.reports.regions.Kept()[0].Names) != regions.Most {
		t.Errorf("beyond the bound: %q with %d names", got, len(c.reports.regions.Kept()[0].Names))
	}
	if e := explained(t, c, "stop"); strings.Contains(e, "wurk") {
		t.Error(e)
	}
}

// TestRegionsAreInherited: a machine that continues in the place of another one knows which regions members
// had reported to that one, those of other groups too.
func TestRegionsAreInherited(t *testing.T) {
	leads, follows := regionsCore(t), regionsCore(t)
	leads.reports.regions.Note("", []wire.Region{{Name: "wurk"}})
	leads.reports.regions.Note("workers", []wire.Region{{Name: "search"}})
	inherit(follows, leads.Kept().Entered)
	if e := explained(t, follows, "stop"); strings.Contains(e, "wurk") {
		t.Error(e)
	}
	want := `signal other has no effect: no member of group "workers" has ever reported region "serach"; members have reported: search`
	if e := explained(t, follows, "other"); !strings.Contains(e, want) {
		t.Errorf("%s lacks %s", e, want)
	}
	many := leads.Kept()
	many.Entered[0].More = true
	inherit(follows, many.Entered)
	if got := follows.reports.regions.Lacks("", "x"); got != "" {
		t.Errorf("more than the bound is known, and it says %s", got)
	}
}

func inherit(c *Core, list []regions.Kept) {
	c.reports.regions.Inherit(list, func(group string) bool { return group == "" || c.others[group] != nil })
}

func explained(t *testing.T, c *Core, predicate string) string {
	t.Helper()
	e, ok := c.explainPredicate(c.now, predicate)
	if !ok {
		t.Fatal("there is no such predicate")
	}
	var text strings.Builder
	for _, m := range e.Missing {
		fmt.Fprintln(&text, m.Kind, m.Member, m.Text)
	}
	return text.String()
}

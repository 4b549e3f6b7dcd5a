package show

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/internal/sim"
)

// Trials tells what trials of a configuration have come to, and the commands that repeat
// what was broken, if anything was: in the least trial, and in the one that was found.
func Trials(r *sim.Report, seed uint64, least, found string) string {
	var b strings.Builder
	number := Count(r.Trials, "trial")
	if r.Trials < r.Asked {
		number = fmt.Sprintf("%d of %s, up to the first that broke a promise,", r.Trials, Count(r.Asked, "trial"))
	}
	fmt.Fprintf(&b, "%s: %s of %v from seed %d, %s, %s, %s\n", r.Synchronizer, number, r.Time, seed,
		Count(r.States, "state"), Count(r.Global, "global state"), Count(r.Steps, "step"))
	fmt.Fprintf(&b, "faults: %s\n", counted(r.Faults))
	if len(r.Killed) > 0 {
		fmt.Fprintf(&b, "killed at: %s\n", counted(r.Killed))
	}
	table := [][]string{{"predicate", "true", "fired", "partial", "decided", "at worst", "handled", "at worst"}}
	for _, t := range r.Rules {
		wasTrue := "-"
		if t.Plain {
			wasTrue = strconv.Itoa(t.True)
		}
		row := []string{t.Name, wasTrue, strconv.Itoa(t.Fired), strconv.Itoa(t.Partial)}
		table = append(table, append(append(row, times(t.Decided)...), times(t.Handled)...))
	}
	if len(r.Rules) > 0 {
		b.WriteString(Table(table))
	}
	fmt.Fprintf(&b, "signals: %d sent, %d applied; fates: %s\n", r.Sent, r.Applied, counted(r.Fates))
	if r.Least == nil {
		since := "after the end of the trial time, without a fault,"
		for _, n := range r.Faults {
			if n > 0 {
				since = "after the last fault"
			}
		}
		fmt.Fprintf(&b, "all was right %s %s at the latest\n", brief(r.Content), since)
	}
	for _, line := range r.Never {
		b.WriteString("never: " + line + "\n")
	}
	for _, line := range r.Untried {
		b.WriteString("not tried: " + line + "\n")
	}
	for _, line := range r.Breaches {
		b.WriteString("broken: " + line + "\n")
	}
	for _, line := range r.Promises {
		b.WriteString("promise " + line + "\n")
	}
	switch {
	case r.Least == nil && len(r.Unfired) > 0:
		fmt.Fprintf(&b, "no promise was broken, but what never fired was not tried: %s\n", strings.Join(r.Unfired, ", "))
	case r.Least == nil:
		b.WriteString("no promise was broken\n")
	default:
		b.WriteString("repeat it, in the smallest trial that breaks it: " + least + "\n")
		fmt.Fprintf(&b, "repeat it, as it was found with seed %d: %s\n", r.Found.Seed, found)
	}
	return PrintableLines(b.String())
}

// counted lists how often something has happened, by name.
func counted(n map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%s %d", name, n[name]))
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}

// times are a median and the worst.
func times(t sim.Times) []string {
	if t.N == 0 {
		return []string{"-", "-"}
	}
	return []string{brief(t.Median), brief(t.Worst)}
}

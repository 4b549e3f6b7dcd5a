package configfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/wire"
)

// BenchmarkParse is what `check` of a file costs.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 200} {
		b.Run(fmt.Sprintf("predicates=%d", n), func(b *testing.B) {
			var text strings.Builder
			text.WriteString("synchronizers:\n  gsync:\n    members: {group: workers, count: 3}\n" +
				"    state: {phase: {enum: [idle, search]}, load: float}\n    predicates:\n")
			for i := range n {
				fmt.Fprintf(&text, "      busy-%d:\n        when: count(members, .phase == \"idle\" and .load < %d) > 2\n"+
					"        signal: {kind: cancel, region: search, to: \"filter(members, .load > 2)\"}\n", i, i)
			}
			config := []byte(text.String())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := configfile.Parse("bench.yaml", config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestFits: what is found good can be told to a member, whatever its name and its clock.
func TestFits(t *testing.T) {
	long := strings.Repeat("x", wire.MaxHostBytes)
	good, bad := 0, 0
	for n := range 64 {
		var b strings.Builder
		b.WriteString("synchronizers:\n  g:\n    members: {group: g}\n    state:\n")
		for field := range 15 {
			words := 62
			if field == 0 {
				words = n + 1
			}
			fmt.Fprintf(&b, "      f%d:\n        enum:\n", field)
			for word := range words {
				fmt.Fprintf(&b, "          - w%063d\n", word)
			}
		}
		plans, err := configfile.Parse("fits.yaml", []byte(b.String()))
		if err != nil {
			bad++
			const want = "fits.yaml:3:5: synchronizers.g: the declared state and the section below do not fit the message that tells members of them: "
			if !strings.HasPrefix(err.Error(), want) {
				t.Fatal(err)
			}
			continue
		}
		good++
		w := wire.Welcome{Synchronizer: "g", Member: long[:wire.MaxTokenBytes], Accepted: true, Schema: plans[0].State, Domain: clocksync.Domain(long), Timeline: clocksync.Timeline(long)}
		if _, err := wire.AppendWelcome(nil, &w); err != nil {
			t.Errorf("%d words: %v", n+1, err)
		}
	}
	if good == 0 || bad == 0 {
		t.Errorf("%d fit, %d do not", good, bad)
	}
}

// TestOneOfAGroup: a member would obey whichever of two synchronizers it has heard last.
func TestOneOfAGroup(t *testing.T) {
	const text = `synchronizers:
  a:
    members: {group: w}
    state: {load: int}
  b:
    members: {group: w}
    state: {load: float}
`
	const want = `c.yaml:6:22: synchronizers.b.members.group: the group "w" belongs to "a" already: a member obeys one synchronizer; put both sections together, or give this synchronizer a group of its own`
	if _, err := configfile.Parse("c.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := configfile.Parse("c.yaml", []byte(strings.Replace(text, "w", "v", 1))); err != nil {
		t.Error(err)
	}
}

package synccore

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/lookahead"
	"github.com/gopegasus/pegasus/predicates"
)

// TestDense: members are always asked where many of them share few processes.
func TestDense(t *testing.T) {
	plans, err := configfile.Parse("dense.yaml", []byte(`
synchronizers:
  gsync:
    members: {group: g, count: 1}
    silence: {after: 1s, then: drop}
    state: {on: bool}
    predicates: {p: {when: "all(members, .on)"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		members, processes int // 0 processes: each has its own
		dense              bool
	}{
		{64, 1, false}, {72, 9, true}, {72, 10, false}, {1000, 20, true}, {1000, 0, false},
	} {
		o := ondemand{ahead: lookahead.New(plans[0]), trial: lookahead.NewTrial(plans[0])}
		shared := make([]multiplexer, c.processes)
		members, names := make([]*member, c.members), make([]predicates.Member, c.members)
		for i := range members {
			names[i].Name = fmt.Sprint("m", i)
			if members[i] = (&member{name: names[i].Name}); c.processes > 0 {
				members[i].multiplexer = &shared[i%c.processes]
			}
		}
		if o.resetMembers(members, names); o.dense != c.dense {
			t.Errorf("%+v: %t", c, o.dense)
		}
	}
}

package agentcore_test

import (
	"math"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// BenchmarkState is a state of a word and a number, as a row and as words, and what
// hands it out together with 63 others.
func BenchmarkState(b *testing.B) {
	schema := scgs.Schema{{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "search"}}, {Name: "load", Type: scgs.Float}}
	row, words := []scgs.Value{scgs.EnumValue("search"), {}}, []uint64{1, 0}
	b.Run("row", benchmarkState(schema, func(c *agentcore.Core, now clocksync.Instant, at *clocksync.Stamp) error {
		row[1] = scgs.FloatValue(float64(now))
		_, err := c.State(now, at, row)
		return err
	}))
	b.Run("words", benchmarkState(schema, func(c *agentcore.Core, now clocksync.Instant, at *clocksync.Stamp) error {
		words[1] = math.Float64bits(float64(now))
		_, err := c.Plain(now, at, words)
		return err
	}))
}

func benchmarkState(schema scgs.Schema, set func(c *agentcore.Core, now clocksync.Instant, at *clocksync.Stamp) error) func(b *testing.B) {
	return func(b *testing.B) {
		b.Helper()
		c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d"}})
		c.OnWelcome(0, &wire.Welcome{Synchronizer: "s", Member: "w", Incarnation: 1, Accepted: true, Schema: schema})
		var out agentcore.Output
		at, n := clocksync.Stamp{Domain: "d"}, clocksync.Instant(0)
		b.ReportAllocs()
		for b.Loop() {
			n++
			at.Mono, at.Within = n, clocksync.Unbounded
			if err := set(c.Core, n, &at); err != nil {
				b.Fatal(err)
			}
			if n%64 == 0 {
				c.Flush(n, at, &out)
			}
		}
	}
}

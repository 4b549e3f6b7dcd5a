package tracefile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// report is a line as encoding/json decodes it.
type report struct {
	Participant string             `json:"participant"`
	Domain      clocksync.Domain   `json:"domain"`
	Mono        clocksync.Instant  `json:"mono"`
	Earliest    *clocksync.Instant `json:"earliest"`
	Latest      *clocksync.Instant `json:"latest"`
	Type        string             `json:"type"`
	Seq         uint64             `json:"seq"`
	Incarnation *uint64            `json:"incarnation"`
	State       fields             `json:"state"`
}

type fields struct {
	Role string  `json:"role"`
	Load float64 `json:"load"`
	Busy bool    `json:"busy"`
}

// lines makes a trace of states with n fields, 0 to 3, and of evidence.
func lines(n int) [][]byte {
	var list [][]byte
	for i := range 1000 {
		values := []string{
			fmt.Sprintf(`"role":%q`, []string{"leader", "follower", "candidate"}[i%3]),
			fmt.Sprintf(`"load":%d.%02d`, i%7, i%100), fmt.Sprintf(`"busy":%t`, i%2 == 0),
		}
		at := 1_700_000_000_000_000_000 + i*1_000_003
		stamp := fmt.Sprintf(`{"participant":"worker-%d","domain":"host-%d","mono":%d,"earliest":%d,"latest":%d`, i%10, i%4, at, at-250_000, at+250_000)
		line := fmt.Sprintf(`%s,"type":"state","seq":%d,"state":{%s}}`, stamp, i/10+1, strings.Join(values[:n], ","))
		if n == 0 {
			line = fmt.Sprintf(`%s,"type":"alive","seq":%d}`, stamp, i/10+1)
		}
		list = append(list, []byte(line))
	}
	return list
}

// BenchmarkLine reads lines with the scanner, values included, and with
// encoding/json.
func BenchmarkLine(b *testing.B) {
	for _, n := range []int{0, 1, 3} {
		input := lines(n)
		size := 0
		for _, line := range input {
			size += len(line)
		}
		b.Run(fmt.Sprintf("reader=scanner/fields=%d", n), func(b *testing.B) {
			schema := scgs.Schema{{Name: "role"}, {Name: "load"}, {Name: "busy"}}[:n]
			names := []string{"role", "load", "busy"}[:n]
			s, c := tracefile.NewScanner(names), tracefile.NewColumns(schema)
			row := make([]scgs.Value, n)
			var l tracefile.Line
			b.SetBytes(int64(size / len(input)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := s.Scan(input[i%len(input)], &l); err != nil {
					b.Fatal(err)
				}
				c.Row(l.State, row)
			}
		})
		b.Run(fmt.Sprintf("reader=encoding-json/fields=%d", n), func(b *testing.B) {
			b.SetBytes(int64(size / len(input)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				var r report
				if err := json.Unmarshal(input[i%len(input)], &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

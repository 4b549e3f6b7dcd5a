package tracedetect_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// FuzzDetect makes lines of any bytes, in order and out of it. Under no modality
// may they bring about a panic, and with Final and without it the same global
// states are found.
func FuzzDetect(f *testing.F) {
	options := []tracedetect.Options{
		{When: "sum(members, .x) > 1"},
		{Epochs: true},
		{Modality: scgs.Definitely, Where: "state.x > 1", Epochs: true},
		{Modality: scgs.Possibly, Where: "state.x > 1"},
		{K: 2, Where: "state.x > 1"},
		{K: 1, Where: "state.x > 1"},
	}
	for i := range options {
		f.Add(byte(i), []byte("\x00\x10\x01\x01\x01\x10\x01\x01\x00\x24\x03\x01\x01\x24\x03\x01\x00\x10\x81\x01"))
		f.Add(byte(i), []byte("\x03\x10\xff\x01\x01\x10\x01\x41\x00\x34\x03\x21\x01\x24\x03\x01\x13\x10\x81\x01"))
	}
	f.Fuzz(func(t *testing.T, option byte, script []byte) {
		o := options[int(option)%len(options)]
		lines := linesOf(script[:min(len(script), 400)])
		o.Participants = participants(lines)
		now := detect(o, lines, false)
		o.Final = true
		if final := detect(o, lines, false); o.K == 0 && strings.Count(now, "\n") != strings.Count(final, "\n") {
			t.Errorf("%+v: %q\ngives\n%s\nand finally\n%s", o, lines, now, final)
		}
	})
}

// linesOf makes a line of every four bytes: who on which clock in which
// incarnation, type and time, bounds, seq and value.
func linesOf(script []byte) (lines []string) {
	now := 0
	for ; len(script) >= 4; script = script[4:] {
		who, when, width, what := script[0], script[1], script[2], script[3]
		now += int(when>>4) - 1
		earliest, latest := strconv.Itoa(now-int(width&7)), strconv.Itoa(now+int(width>>3&7))
		if width&64 != 0 {
			earliest = "_"
		}
		if width&128 != 0 {
			latest = "_"
		}
		kind := []string{"state", "state", "state", "alive", "alive", "alive", "alive", "leave"}[when&7]
		line := fmt.Sprintf("%c@h%d#%d %d %s %s %s %d", 'A'+who&3, who>>2&3, 1+who>>4, now, earliest, latest, kind, 1+what&31)
		if kind == "state" {
			line += fmt.Sprintf(` {"x":%d}`, what>>5)
		}
		lines = append(lines, long(line))
	}
	return lines
}

// BenchmarkCore reads whole traces of members that change their states in turn,
// each on a clock of its own; a line in three is evidence.
func BenchmarkCore(b *testing.B) {
	const size = 50_000
	for _, n := range []int{4, 100} {
		var people []tracedetect.Participant
		for i := range n {
			people = append(people, tracedetect.Participant{Name: fmt.Sprintf("p%05d", i)})
		}
		lines := make([][]byte, size)
		for i := range lines {
			m, round := i%n, i/n
			line := fmt.Sprintf(`{"participant":"p%05d","domain":"h%d","mono":%d,"earliest":%d,"latest":%d,`, m, m, i, i-1, i+1)
			if round%3 == 2 {
				line += fmt.Sprintf(`"type":"alive","seq":%d}`, round-round/3)
			} else {
				line += fmt.Sprintf(`"type":"state","seq":%d,"state":{"x":%d}}`, round-round/3+1, round%7)
			}
			lines[i] = []byte(line)
		}
		for _, c := range []struct {
			name string
			o    tracedetect.Options
		}{
			{"inst", tracedetect.Options{}},
			{"inst-when", tracedetect.Options{When: "count(members, .x > 1) > 1000"}},
			{"inst-final", tracedetect.Options{Final: true}},
			{"definitely", tracedetect.Options{Modality: scgs.Definitely, Where: "state.x > 2"}},
			{"possibly", tracedetect.Options{Modality: scgs.Possibly, Where: "state.x > 2"}},
			{"atleast", tracedetect.Options{K: 2, Where: "state.x > 5"}},
		} {
			b.Run(fmt.Sprintf("%s/members=%d", c.name, n), func(b *testing.B) {
				o := c.o
				o.Participants = people
				for b.Loop() {
					read(b, o, lines)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/line")
			})
		}
	}
}

// read reads a trace to its end.
func read(b *testing.B, o tracedetect.Options, lines [][]byte) {
	b.Helper()
	found := 0
	c, err := tracedetect.New(o, func(*tracedetect.State) { found++ })
	if err != nil {
		b.Fatal(err)
	}
	s := tracefile.NewScanner(c.Fields())
	var l tracefile.Line
	for _, line := range lines {
		if err := s.Scan(line, &l); err != nil {
			b.Fatal(err)
		}
		if err := c.Line(&l); err != nil {
			b.Fatal(err)
		}
	}
	c.Finish()
	if found == 0 && o.When == "" {
		b.Fatal("nothing was found")
	}
}

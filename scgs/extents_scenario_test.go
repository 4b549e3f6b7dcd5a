package scgs_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// The files of testdata/possible draw a timeline and say what may have been then.
// Times are in units of 1000 ns; the stamps are written as in TestScenarios.
// Commands:
//
//	extents [declared=(A,B)] [pending=N]   begin
//	epoch N [remove=A]      lines "NAME domain=D [eps=E]" are members that join
//	input                   "A 5@10" is: A has the value 5 from 10 on; "nan" is a
//	                        value that is UNKNOWN. Also end, alive, until, lost,
//	                        restart, and "finish" without a member
//	needs, stats            ask
func TestPossibleScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/possible", func(t *testing.T, path string) {
		t.Helper()
		var s *stage
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			t.Helper()
			if s == nil {
				s = newStage(t, c)
				return ""
			}
			s.t, s.out = t, &strings.Builder{}
			switch c.Cmd {
			case "epoch":
				s.epoch(c)
			case "input":
				for line := range strings.Lines(c.Input) {
					s.input(strings.TrimSpace(line))
				}
			case "needs":
				for _, n := range s.x.Needs(nil) {
					fmt.Fprintf(s.out, "%s: report %d, after time %s\n", s.name(n.Member), n.Seq, show(n.AfterTime))
				}
			case "stats":
				st := s.x.Stats()
				fmt.Fprintf(s.out, "states=%d evidence=%d gaps=%d collapsed=%d\n", st.States, st.Evidence, st.Gaps, st.Collapsed)
			default:
				t.Fatalf("unknown command %q", c.Cmd)
			}
			return s.out.String()
		})
	})
}

// stage is an Extents whose members have names.
type stage struct {
	*scene // reads numbers and stamps
	x      *scgs.Extents
}

func newStage(t *testing.T, c *datadriven.TestData) *stage {
	t.Helper()
	s := &stage{scene: newScene(scgs.Options{})}
	s.t = t
	if c.Cmd != "extents" {
		t.Fatalf("begin with extents, not %q", c.Cmd)
	}
	var o scgs.ExtentOptions
	c.MaybeScanArgs(t, "pending", &o.MaxPending)
	if c.HasArg("declared") {
		var low, high string
		c.ScanArgs(t, "declared", &low, &high)
		o.Declared = scgs.Range{Low: s.number(low), High: s.number(high)}
	}
	var err error
	if s.x, err = scgs.NewExtents(o); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) epoch(c *datadriven.TestData) {
	id, err := strconv.ParseUint(c.CmdArgs[0].Key, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	var remove []scgs.Member
	for _, a := range c.CmdArgs[1:] {
		remove = append(remove, s.members[a.Vals[0]].m)
		delete(s.members, a.Vals[0])
	}
	for line := range strings.Lines(c.Input) {
		a := &actor{}
		for word := range strings.FieldsSeq(line) {
			key, value, found := strings.Cut(word, "=")
			switch {
			case !found:
				a.name, a.domain = word, clocksync.Domain(word)
			case key == "domain":
				a.domain = clocksync.Domain(value)
			case key == "eps":
				a.eps = s.number(value)
			}
		}
		a.m = s.x.Epoch(id, remove, []scgs.Spec{{Domain: a.domain}})[0]
		s.members[a.name], remove = a, nil
	}
	if len(remove) > 0 {
		s.x.Epoch(id, remove, nil)
	}
	s.drain("epoch")
}

func (s *stage) input(line string) {
	if line == "finish" {
		s.x.Finish()
		s.drain(line)
		return
	}
	s.report(s.x, line, s.start)
	s.drain(line)
}

func (s *stage) start(a *actor, seq uint64, word string, at clocksync.Stamp) scgs.Reason {
	value := math.NaN()
	if word != "nan" {
		value = s.number(word)
	}
	return s.x.Start(a.m, seq, at, value)
}

// drain prints what has become certain, under the line that brought it about.
func (s *stage) drain(line string) {
	var lines []string
	var x scgs.Extent
	for s.x.Next(&x) {
		lines = append(lines, fmt.Sprintf("  %d/%d from %s: sum %s, least %s, greatest %s",
			x.Epoch, x.Index, show(x.From), between(x.Sum), between(x.Least), between(x.Greatest)))
	}
	if len(lines) > 0 {
		fmt.Fprintf(s.out, "%s\n%s\n", line, strings.Join(lines, "\n"))
	}
}

func between(r scgs.Range) string {
	if r.Low == r.High {
		return fmt.Sprint(r.Low)
	}
	return fmt.Sprintf("%v..%v", r.Low, r.High)
}

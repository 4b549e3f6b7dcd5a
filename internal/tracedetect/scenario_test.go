package tracedetect_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// TestScenarios reads the traces of testdata/scenarios and compares what they
// bring about. A command is the modality, with arguments:
//
//	inst|definitely|possibly|atleast [k=N] [where=(EXPR)] [when=(EXPR)] [schema=(NAME:TYPE,...)] [final] [epochs] [members=(A,B)] [stats]
//
// Each line of its input is one of a trace, or is written short:
//
//	P@DOMAIN#INCARNATION MONO EARLIEST LATEST TYPE SEQ [STATE]
//
// where @DOMAIN is @P and #INCARNATION is #1 if they are left out, and _ is null.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var lines []string
			for line := range strings.Lines(d.Input) {
				lines = append(lines, long(strings.TrimSpace(line)))
			}
			return detect(options(t, d, lines), lines, d.HasArg("stats"))
		})
	})
}

// options are those of a command on a trace.
func options(t *testing.T, d *datadriven.TestData, lines []string) tracedetect.Options {
	t.Helper()
	o := tracedetect.Options{Final: d.HasArg("final"), Epochs: d.HasArg("epochs"), Participants: participants(lines)}
	d.MaybeScanArgs(t, "k", &o.K)
	arg := func(key string) string {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				return strings.Join(a.Vals, ", ")
			}
		}
		return ""
	}
	o.Where, o.When = arg("where"), arg("when")
	names, schema := arg("members"), arg("schema")
	if names != "" {
		o.Participants = nil
		for name := range strings.SplitSeq(names, ", ") {
			o.Participants = append(o.Participants, tracedetect.Participant{Name: name})
		}
	}
	switch d.Cmd {
	case "inst", "atleast":
	case "definitely":
		o.Modality = scgs.Definitely
	case "possibly":
		o.Modality = scgs.Possibly
	default:
		d.Fatalf(t, "no modality %s", d.Cmd)
	}
	if schema != "" {
		s, err := tracedetect.ParseSchema(schema)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		o.Schema = s
	}
	return o
}

// long writes a line in full.
func long(line string) string {
	if strings.HasPrefix(line, "{") {
		return line
	}
	words := strings.Fields(line)
	name, incarnation, _ := strings.Cut(words[0], "#")
	name, domain, ok := strings.Cut(name, "@")
	if !ok {
		domain = name
	}
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "_", "null")
	}
	text := fmt.Sprintf(`{"participant":%q,"domain":%q,"mono":%s,"earliest":%s,"latest":%s,"type":%q,"seq":%s`,
		name, domain, words[1], words[2], words[3], words[4], words[5])
	if incarnation != "" {
		text += `,"incarnation":` + incarnation
	}
	if len(words) > 6 {
		text += `,"state":` + strings.Join(words[6:], " ")
	}
	return text + "}"
}

// participants are those of the lines that can be read.
func participants(lines []string) (list []tracedetect.Participant) {
	s := tracefile.NewScanner(nil)
	var l tracefile.Line
	domains := map[string]string{}
	for _, line := range lines {
		if err := s.Scan([]byte(line), &l); err == nil && domains[string(l.Participant)] == "" {
			domains[string(l.Participant)] = string(l.Domain)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		list = append(list, tracedetect.Participant{Name: name, Domain: clocksync.Domain(domains[name])})
	}
	return list
}

// detect runs a trace up to the first line that is refused.
func detect(o tracedetect.Options, lines []string, stats bool) string {
	var out []byte
	j := tracedetect.NewJSON(&o)
	c, err := tracedetect.New(o, func(s *tracedetect.State) { out = j.Append(out, s) })
	if err != nil {
		return err.Error() + "\n"
	}
	s := tracefile.NewScanner(c.Fields())
	var l tracefile.Line
	for i, line := range lines {
		err := s.Scan([]byte(line), &l)
		if err == nil {
			err = c.Line(&l)
		}
		if err != nil {
			out = fmt.Appendf(out, "line %d: %v\n", i+1, err)
			if _, ok := errors.AsType[*tracefile.Error](err); !ok {
				return string(out)
			}
		}
	}
	c.Finish()
	if stats {
		out = fmt.Appendf(out, "%+v\n", c.Stats())
	}
	return string(out)
}

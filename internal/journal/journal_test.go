package journal_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// everyType has a field of each type.
const everyType = `
synchronizers:
  gsync:
    members: {group: g}
    state: {b: bool, i: int, f: float, s: string, d: duration, e: {enum: [idle, "q\"u<o>te", "ä ö"]}, fs: {list: float}, es: {type: {list: {enum: [idle, "q\"u<o>te", "ä ö"]}}, default: [idle]}}
    predicates:
      p: {when: "any(members, .b)", signal: {kind: cancel, region: r, to: {group: others}}}
`

var words = []string{"idle", "ä ö", "q\"u<o>te"}

func oneOf[T any](values ...T) *rapid.Generator[T] { return rapid.SampledFrom(values) }

func anyValue(t scgs.Type) *rapid.Generator[scgs.Value] {
	return rapid.Custom(func(r *rapid.T) scgs.Value {
		if rapid.IntRange(0, 5).Draw(r, "none") == 0 {
			return scgs.Value{}
		}
		if t.IsList() {
			return scgs.ListValue(t.Elem(), rapid.SliceOfN(anyValue(t.Elem()).Filter(func(v scgs.Value) bool { return v.Type() != scgs.Invalid }), 0, 4).Draw(r, "list")...)
		}
		switch t {
		case scgs.Bool:
			return scgs.BoolValue(rapid.Bool().Draw(r, "bool"))
		case scgs.Int:
			return scgs.IntValue(rapid.OneOf(rapid.Int64(), oneOf[int64](math.MinInt64, math.MaxInt64, 0)).Draw(r, "int"))
		case scgs.Duration:
			return scgs.DurationValue(time.Duration(rapid.Int64().Draw(r, "duration")))
		case scgs.Float:
			return scgs.FloatValue(rapid.OneOf(
				rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
				oneOf(math.Copysign(0, -1), 5e-324, 1e21, 0.1, 1<<53+1),
			).Draw(r, "float"))
		case scgs.Enum:
			return scgs.EnumValue(oneOf(words...).Draw(r, "word"))
		default:
			return scgs.StringValue(rapid.StringN(0, 60, 200).Draw(r, "text"))
		}
	})
}

func anyStamp(domain clocksync.Domain) *rapid.Generator[clocksync.Stamp] {
	return rapid.Custom(func(r *rapid.T) clocksync.Stamp {
		s := clocksync.Stamp{Domain: domain, Mono: clocksync.Instant(rapid.Int64Range(0, 1<<60).Draw(r, "mono")), Within: clocksync.Unbounded}
		if rapid.Bool().Draw(r, "from") {
			s.Within.Earliest = clocksync.Instant(rapid.Int64Range(-1<<60, 1<<60).Draw(r, "earliest"))
		}
		if rapid.Bool().Draw(r, "to") {
			s.Within.Latest = max(s.Within.Earliest, clocksync.Instant(rapid.Int64Range(-1<<60, 1<<60).Draw(r, "latest")))
		}
		return s
	})
}

func anyBatch(schema scgs.Schema) *rapid.Generator[*wire.Batch] {
	return rapid.Custom(func(r *rapid.T) *wire.Batch {
		domain := clocksync.Domain(oneOf("host", "a \"host\"\n", "ü").Draw(r, "domain"))
		b := &wire.Batch{
			Member: "w1", Incarnation: rapid.Uint64().Draw(r, "incarnation"), Schema: schema.Hash(),
			Again: rapid.Bool().Draw(r, "again"), Leaving: rapid.Bool().Draw(r, "leaving"),
		}
		seq := uint64(0)
		for range rapid.IntRange(0, 4).Draw(r, "reports") {
			seq += rapid.Uint64Range(1, 1<<40).Draw(r, "step")
			report := wire.Report{Seq: seq, End: rapid.Bool().Draw(r, "end"), At: anyStamp(domain).Draw(r, "at")}
			for i := 0; !report.End && i < len(schema); i++ {
				report.Row = append(report.Row, anyValue(schema[i].Type).Draw(r, schema[i].Name))
			}
			b.Reports = append(b.Reports, report)
		}
		for range rapid.IntRange(0, 3).Draw(r, "regions") {
			b.Regions = append(b.Regions, wire.Region{Name: "r", Entry: rapid.Uint64Min(1).Draw(r, "entry"), Since: rapid.Uint64().Draw(r, "since")})
		}
		if rapid.Bool().Draw(r, "evidence") {
			b.Evidence = wire.Evidence{Seq: rapid.Uint64Min(1).Draw(r, "seq"), At: anyStamp(domain).Draw(r, "at")}
		}
		if rapid.Bool().Draw(r, "tagged") {
			b.Tagged, b.Quality = true, anyQuality(r)
			b.Quality.Timeline = "" // It does not travel with a batch.
		}
		return b
	})
}

func anyQuality(r *rapid.T) clocksync.Quality {
	return clocksync.Quality{
		Source: oneOf("ntp", "peer", "a<b").Draw(r, "source"), Assumed: rapid.Bool().Draw(r, "assumed"), Unverified: rapid.Bool().Draw(r, "unverified"),
		Timeline: oneOf[clocksync.Timeline]("", "utc").Draw(r, "timeline"),
		Status:   oneOf(clocksync.Unknown, clocksync.Untrusted).Draw(r, "status"), Expires: clocksync.Instant(rapid.Int64().Draw(r, "expires")),
	}
}

// TestJournalIsLossless: what a line has been written of is read from it again.
func TestJournalIsLossless(t *testing.T) {
	plans, err := configfile.Parse("every.yaml", []byte(everyType))
	if err != nil {
		t.Fatal(err)
	}
	header := journal.NewHeader(plans[0], synccore.Options{Term: 1})
	rapid.Check(t, func(r *rapid.T) {
		in := synccore.Input{From: "w1", More: rapid.Bool().Draw(r, "more")}
		group := oneOf("", "others").Draw(r, "group")
		in.By = oneOf("", "p-1").Draw(r, "by")
		switch rapid.IntRange(0, 6).Draw(r, "kind") {
		case 0:
			in.Kind, in.From, in.By = synccore.InTick, "", ""
			in.Watched = rapid.Bool().Draw(r, "watched")
		case 1:
			in.Group = group
			in.Kind, in.Hello = synccore.InHello, &wire.Hello{
				Member: "w2", Incarnation: rapid.Uint64().Draw(r, "incarnation"), Host: "höst", Domain: "d", Quality: anyQuality(r),
				Typed: true, Schema: plans[0].State, Threads: rapid.Bool().Draw(r, "threads"),
				Leader: "gsync", Term: rapid.Uint64Min(1).Draw(r, "term"), Causes: rapid.Bool().Draw(r, "causes"),
			}
			if rapid.Bool().Draw(r, "newer") {
				in.Hello.Process, in.Hello.Asks, in.Hello.Had = rapid.Uint64().Draw(r, "process"), rapid.Bool().Draw(r, "asks"), rapid.Uint64Min(1).Draw(r, "had")
				in.Hello.Over = rapid.Bool().Draw(r, "over")
				in.Hello.Common = rapid.Bool().Draw(r, "common")
			}
			if rapid.Bool().Draw(r, "fated") {
				cause := control.Cause{Source: rapid.Uint64Min(1).Draw(r, "source"), Witness: rapid.Uint64().Draw(r, "witness"), Firing: 2}
				in.Hello.Same = wire.Same{Seq: rapid.Uint64Min(1).Draw(r, "same"), Incarnation: 4, Of: 2}
				in.Hello.Fates = []control.Fated{{Cause: cause, Name: "stop", Entry: 3, Fate: control.Applied}}
			}
		case 2:
			in.Kind, in.Gone = synccore.InGone, &wire.Gone{Member: "w1", Incarnation: 3, First: rapid.Uint64Min(1).Draw(r, "first")}
		case 3:
			answer := wire.Answer{Name: "stop", Target: "w1", Fate: 5, Detail: rapid.StringN(0, 20, 60).Draw(r, "detail")}
			answer.Decision.Synchronizer, answer.Decision.Term, answer.Decision.Number = "gsync", rapid.Uint64().Draw(r, "term"), 7
			in.Group = group
			in.Kind, in.Ack = synccore.InAck, &wire.Ack{Member: "w1", Incarnation: 3, Answers: []wire.Answer{answer}}
		case 4:
			in.Kind, in.From, in.By, in.Timeline = synccore.InTimeline, "", "", "boot+1"
		case 5:
			in.By, in.Group = "", group
			in.Kind, in.Shared = synccore.InShared, anyShared(r)
		default:
			in.Kind, in.Batch = synccore.InBatch, anyBatch(plans[0].State).Draw(r, "batch")
			if in.Group = group; group != "" { // It comes in outline.
				b := in.Batch
				in.Batch = &wire.Batch{Member: b.Member, Incarnation: b.Incarnation, Schema: b.Schema, Again: b.Again, Leaving: b.Leaving, Regions: b.Regions}
			}
		}
		now := clocksync.Instant(rapid.Int64Range(0, math.MaxInt64-1).Draw(r, "now"))
		text, err := journal.AppendInput(journal.AppendHeader(nil, &header), plans[0].State, now, &in)
		if err != nil {
			r.Fatal(err)
		}
		var digest journal.Digest
		digest.Add(&synccore.Output{Failed: "x"})
		text = journal.AppendOutput(text, &digest)
		j, err := journal.Read(bytes.NewReader(text))
		if err != nil {
			r.Fatal(err)
		}
		var rec journal.Record
		if err := j.Next(&rec); err != nil {
			r.Fatalf("%v in %s", err, text)
		}
		want := journal.Record{Now: now, Input: in, Out: digest.Sum()}
		if d := cmp.Diff(want, rec, cmp.AllowUnexported(scgs.Value{}, wire.Batch{}), equateEmpty); d != "" {
			r.Fatalf("%s\n%s", d, text)
		}
	})
}

// equateEmpty takes an empty list for a missing one.
var equateEmpty = cmp.FilterValues(func(a, b any) bool { return isEmpty(a) && isEmpty(b) }, cmp.Ignore())

func isEmpty(v any) bool {
	switch list := v.(type) {
	case []wire.Report:
		return len(list) == 0
	case []wire.Region:
		return len(list) == 0
	}
	return false
}

// TestDigestSeesEverything: an output that differs in one place has another
// digest, and a list that was truncated counts as none.
func TestDigestSeesEverything(t *testing.T) {
	sum := func(out synccore.Output) uint64 {
		var d journal.Digest
		d.Add(&out)
		return d.Sum()
	}
	base := func() synccore.Output {
		return synccore.Output{Wake: 5, Verdicts: []monitor.Verdict{{
			Predicate: "p", Fired: true, Witness: []monitor.Part{{Name: "a", Row: []scgs.Value{scgs.IntValue(1), scgs.StringValue("x")}}},
		}}}
	}
	seen := map[uint64]string{sum(base()): "base"}
	for name, change := range map[string]func(*synccore.Output){
		"wake":    func(o *synccore.Output) { o.Wake = 6 },
		"failed":  func(o *synccore.Output) { o.Failed = "x" },
		"reason":  func(o *synccore.Output) { o.Verdicts[0].Reason = "x" },
		"value":   func(o *synccore.Output) { o.Verdicts[0].Witness[0].Row[0] = scgs.IntValue(2) },
		"type":    func(o *synccore.Output) { o.Verdicts[0].Witness[0].Row[0] = scgs.DurationValue(1) },
		"text":    func(o *synccore.Output) { o.Verdicts[0].Witness[0].Row[1] = scgs.StringValue("y") },
		"shorter": func(o *synccore.Output) { o.Verdicts[0].Witness[0].Row = o.Verdicts[0].Witness[0].Row[:1] },
		"none":    func(o *synccore.Output) { o.Verdicts = nil },
		"reject":  func(o *synccore.Output) { o.Rejected = append(o.Rejected, monitor.Rejection{From: "p"}) },
		"unfired": func(o *synccore.Output) { o.Verdicts[0].Fired = false },
	} {
		out := base()
		change(&out)
		if other, ok := seen[sum(out)]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[sum(out)] = name
	}
	renamed := synccore.Output{Rejected: []monitor.Rejection{{From: "w1", Reason: monitor.RejectOrder, Detail: "late"}}}
	if got := sum(renamed); got != 0x3bac94c174763783 {
		t.Errorf("a rejection has the digest %016x, not that of older journals", got)
	}
	truncated := base()
	truncated.Fates, truncated.Verdicts[0].Witness[0].Fields = make([]monitor.Fate, 0, 4), scgs.Schema{}
	if sum(truncated) != sum(base()) {
		t.Error("an empty list that has been one counts")
	}
}

// anyShared is what a multiplexer says of its members: the roster, or evidence, or both.
func anyShared(r *rapid.T) *wire.Bundle {
	b := &wire.Bundle{}
	both := rapid.IntRange(0, 2).Draw(r, "what")
	if both > 0 {
		b.Roster = wire.Roster{Version: 7, Total: 9, First: 3, Listed: []wire.Listed{
			{Member: "w1", Incarnation: rapid.Uint64().Draw(r, "incarnation"), Seq: 4, Regions: []wire.Region{{Name: "r", Entry: 2, Since: 1}}}, {Member: "w2"},
		}}
	}
	if both < 2 {
		b.Held = wire.Held{Of: 7, Sum: rapid.Uint64().Draw(r, "sum"), At: clocksync.Stamp{Mono: 5, Within: clocksync.Interval{Earliest: 4, Latest: clocksync.MaxInstant}}}
	}
	return b
}

// shortJournal is a journal with a line of each kind.
func shortJournal(tb testing.TB) []byte {
	tb.Helper()
	plans, err := configfile.Parse("every.yaml", []byte(everyType))
	if err != nil {
		tb.Fatal(err)
	}
	core := synccore.New(plans[0], synccore.Options{Term: 1})
	h := journal.NewHeader(plans[0], synccore.Options{Term: 1})
	text := journal.AppendHeader(nil, &h)
	var digest journal.Digest
	var out synccore.Output
	at := clocksync.Stamp{Domain: "d", Mono: 5, Within: clocksync.Interval{Earliest: 4, Latest: clocksync.MaxInstant}}
	row := []scgs.Value{
		scgs.BoolValue(true), scgs.IntValue(-1), scgs.FloatValue(0.25), scgs.StringValue("a\nb"), scgs.DurationValue(7), scgs.EnumValue("idle"),
		scgs.ListValue(scgs.Float, scgs.FloatValue(1.5)), scgs.ListValue(scgs.Enum),
	}
	inputs := []synccore.Input{
		{Kind: synccore.InHello, From: "w1", Hello: &wire.Hello{Member: "w1", Incarnation: 1, Host: "h", Domain: "d", Typed: true, Schema: plans[0].State}},
		{Kind: synccore.InBatch, From: "w1", More: true, Batch: &wire.Batch{
			Member: "w1", Incarnation: 1, Regions: []wire.Region{{Name: "r", Entry: 1}},
			Reports:  []wire.Report{{Seq: 1, At: at, Row: row}, {Seq: 2, At: at, End: true}},
			Evidence: wire.Evidence{Seq: 1, At: at}, Tagged: true, Quality: clocksync.Quality{Source: "x"},
		}},
		{Kind: synccore.InGone, From: "w1", Gone: &wire.Gone{Member: "w1", Incarnation: 1, First: 1}},
		{Kind: synccore.InAck, From: "w1", Ack: &wire.Ack{Member: "w1", Incarnation: 1, Answers: []wire.Answer{{Name: "p", Target: "w1", Fate: 2}}}},
		{Kind: synccore.InTimeline, Timeline: "t"},
		{Kind: synccore.InLevel, Level: plans[0], Person: "vic"},
		{Kind: synccore.InTick},
		{Kind: synccore.InBatch, From: "o1", Group: "others", Batch: &wire.Batch{Member: "o1", Incarnation: 1, Regions: []wire.Region{{Name: "r", Entry: 1}}}},
	}
	inputs[3].Ack.Answers[0].Decision.Synchronizer = "gsync"
	for i := range inputs {
		now := clocksync.Instant(1000 * (i + 1))
		if text, err = journal.AppendInput(text, plans[0].State, now, &inputs[i]); err != nil {
			tb.Fatal(err)
		}
		core.Step(now, &inputs[i], &out)
		digest.Add(&out)
		text = journal.AppendOutput(text, &digest)
	}
	return journal.AppendEnd(text, uint64(len(inputs)), "")
}

// TestJournalRefusals: a text that is no journal is refused with its line.
func TestJournalRefusals(t *testing.T) {
	good := string(shortJournal(t))
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")
	swap := func(line int, old, with string) string {
		list := append([]string(nil), lines...)
		if !strings.Contains(list[line-1], old) {
			t.Fatalf("line %d has no %s: %s", line, old, list[line-1])
		}
		list[line-1] = strings.Replace(list[line-1], old, with, 1)
		return strings.Join(list, "") + "\n"
	}
	_, out, _ := strings.Cut(lines[2], `"out":"`)
	const kinds = `a line needs one of tick, hello, batch, alive, shared, gone, ack, timeline, config, body, cancel, restart, term, kept, end`
	for want, text := range map[string]string{
		`the journal is empty, or its first line was not written to the end: nothing can be replayed`:    lines[0][:40],
		`line 1: the first line is no header of a journal, as run --journal writes it`:                   strings.Join(lines[1:], ""),
		`line 1: its format is 1, and this version of pegasus reads 2: use the version that wrote it`:    swap(1, `"journal":2`, `"journal":1`),
		`line 1: the text is no line of a journal: json: unknown field "terms"`:                          swap(1, `"term"`, `"terms"`),
		`line 2: the text is no line of a journal: json: unknown field "hallo"`:                          swap(2, `"hello"`, `"hallo"`),
		`line 2: the text is no line of a journal: invalid character 'x' looking for beginning of value`: swap(2, `{`, `x`),
		`line 2: from "": use letters, digits, - and _, at most 64`:                                      swap(2, `"from":"w1",`, ``),
		`line 3: now goes back from 1000 to 999`:                                                         swap(3, `2000`, `999`),
		`line 3: now is missing: the instant of the input in ns`:                                         swap(3, `"now":2000,`, ``),
		`line 3: batch: report 1: field "i": "x" is no int`:                                              swap(3, `-1`, `"x"`),
		`line 3: batch: report 1: field "fs": 7 is no list of float of at most 64 elements`:              swap(3, `[1.5]`, `7`),
		`line 3: batch: report 1: field "fs": an element is null: a list of float has values only`:       swap(3, `[1.5]`, `[null]`),
		`line 3: batch: report 1: 9 values for 8 fields`:                                                 swap(3, `-1`, `-1,5`),
		`line 3: batch: report 2: an end has no state`:                                                   swap(3, `"end":true`, `"end":true,"state":[1]`),
		`line 3: batch: evidence: at is a reading, or a reading, the earliest and the latest time`:       swap(3, `"evidence":{"seq":1,"at":[5,4,null]`, `"evidence":{"seq":1,"at":[5,4]`),
		`line 3: out: "zz" is no digest of 16 hexadecimal digits`:                                        swap(3, `"out":"`+out, `"out":"zz"}`+"\n"),
		"line 8: " + kinds:          swap(8, `,"tick":true`, ``),
		"line 8: " + kinds + "\x00": swap(8, `"tick":true`, `"tick":true,"timeline":"x"`),
		`line 8: the text is no line of a journal: more follows the object`:                          swap(8, "}\n", "} {}\n"),
		`line 9: group "a b": use letters, digits, - and _, at most 64`:                              swap(9, `"group":"others"`, `"group":"a b"`),
		`line 4: watched belongs to tick`:                                                            swap(4, `"from":"w1"`, `"from":"w1","watched":true`),
		`line 4: group belongs to hello, batch, shared and ack`:                                      swap(4, `"from":"w1"`, `"from":"w1","group":"others"`),
		`line 3: batch: of another group's members there are no reports, evidence and quality`:       swap(3, `"from":"w1"`, `"from":"w1","group":"others"`),
		`line 10: the last line counts 8 inputs before it, and the journal has 7: lines are missing`: strings.Join(append(append([]string(nil), lines[:5]...), lines[6:]...), "") + "\n",
		`line 10: more lines follow the last line of the journal`:                                    good + "{}\n",
	} {
		want := strings.TrimSuffix(want, "\x00")
		if strings.HasPrefix(want, "line 10: the last line counts") {
			want = strings.Replace(want, "line 10", "line 9", 1) // One is missing.
		}
		if err := readAll(text); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if err := readAll(swap(1, `{group: g}`, `{group: h}`)); err == nil || !strings.HasSuffix(err.Error(), "stands there: the text was changed") {
		t.Errorf("a changed configuration: %v", err)
	}
	if err := readAll(swap(3, `"seq":2`, `"seq":1`)); err == nil || !strings.Contains(err.Error(), "the number is not above the number before") {
		t.Errorf("reports out of order: %v", err)
	}
	if err := readAll(lines[0] + strings.Repeat(" ", journal.MaxLine) + "\n"); err == nil || err.Error() != "line 2: the line is longer than 16777216 bytes" {
		t.Errorf("a line that is too long: %v", err)
	}
}

func readAll(text string) error {
	j, err := journal.Read(strings.NewReader(text))
	var rec journal.Record
	for err == nil {
		err = j.Next(&rec)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// TestJournalOfEveryLength: a journal that was cut anywhere is read as far as its
// whole lines go, and it shows that it was cut.
func TestJournalOfEveryLength(t *testing.T) {
	text := shortJournal(t)
	first := bytes.IndexByte(text, '\n') + 1
	for n := first; n < len(text); n++ {
		j := replay(t, bytes.NewReader(text[:n]), sameOutput(t))
		whole := uint64(bytes.Count(text[:n], []byte("\n"))) - 1
		if j.Inputs != whole || j.Ended || j.Cut != (text[n-1] != '\n') {
			t.Fatalf("cut after %d bytes: %d inputs of %d, ended %t, cut %t", n, j.Inputs, whole, j.Ended, j.Cut)
		}
	}
	if j := replay(t, bytes.NewReader(text), sameOutput(t)); !j.Ended || j.Cut || j.Stopped != "" {
		t.Errorf("whole: ended %t, cut %t, stopped %q", j.Ended, j.Cut, j.Stopped)
	}
}

// retold are the lines by which a machine comes to follow the machine of a journal.
func retold(tb testing.TB, text []byte) (lines []byte) {
	tb.Helper()
	j, err := journal.Read(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	core := synccore.New(j.Level, j.Header.Options)
	var out synccore.Output
	var rec journal.Record
	for j.Next(&rec) == nil {
		core.Step(rec.Now, &rec.Input, &out)
	}
	core.Retell(func(in *synccore.Input) {
		line, err := journal.AppendInput(lines, j.Level.State, rec.Now, in)
		if err != nil {
			tb.Fatal(err)
		}
		lines = journal.AppendBroken(line)
	})
	return lines
}

// FuzzJournal: whatever follows a header, nothing panics, neither the reader nor
// the machine that it feeds, and what was read is written as a line that says the
// same. A text that is a header itself stands alone.
func FuzzJournal(f *testing.F) {
	lines := bytes.SplitAfter(shortJournal(f), []byte("\n"))
	header := lines[0]
	for i := range lines {
		f.Add(lines[i])
		f.Add(bytes.Join(lines[1:i+1], nil))
	}
	retold := retold(f, bytes.Join(lines, nil))
	f.Add(retold)
	for line := range bytes.Lines(retold) {
		f.Add(append(slices.Clip(bytes.SplitAfter(retold, []byte("\n"))[0]), line...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !bytes.HasPrefix(text, []byte(`{"journal"`)) {
			text = append(slices.Clip(header), text...)
		}
		j, err := journal.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		core := synccore.New(j.Level, j.Header.Options)
		var out synccore.Output
		var rec, again journal.Record
		for j.Next(&rec) == nil {
			line, err := journal.AppendInput(journal.AppendHeader(nil, &j.Header), j.Level.State, rec.Now, &rec.Input)
			if err != nil {
				t.Fatalf("it was read and is not written: %v", err)
			}
			copied, err := journal.Read(bytes.NewReader(journal.AppendBroken(line)))
			if err != nil {
				t.Fatal(err)
			}
			if err := copied.Next(&again); err != nil {
				t.Fatalf("it was written and is not read: %v", err)
			}
			if second, _ := journal.AppendInput(nil, j.Level.State, again.Now, &again.Input); !bytes.HasSuffix(line, second) {
				t.Fatalf("written again it is\n%s, and was\n%s", second, line)
			}
			core.Step(rec.Now, &rec.Input, &out)
		}
	})
}

// BenchmarkReplay reads batches of two reports and steps a machine with them. The time is per
// batch.
func BenchmarkReplay(b *testing.B) {
	lines := bytes.SplitAfter(shortJournal(b), []byte("\n"))
	batches := io.MultiReader(bytes.NewReader(lines[0]), bytes.NewReader(bytes.Repeat(lines[2], b.N)))
	j, err := journal.Read(batches)
	if err != nil {
		b.Fatal(err)
	}
	core := synccore.New(j.Level, j.Header.Options)
	var out synccore.Output
	var rec journal.Record
	b.ResetTimer()
	for j.Next(&rec) == nil {
		core.Step(rec.Now, &rec.Input, &out)
	}
	if j.Inputs != uint64(b.N) {
		b.Fatalf("%d inputs of %d", j.Inputs, b.N)
	}
}

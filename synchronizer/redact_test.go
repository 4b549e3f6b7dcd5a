package synchronizer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/synchronizer"
)

// unread has a redacted field that no predicate depends on.
const unread = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 5s, then: drop}
    state: {idle: bool, n: {type: int, redact: true}}
    memory: {seen: {type: int, initial: 0}, times: {type: int, initial: 0}}
    predicates:
      all-idle:
        when: all(members, .idle)
        set: {times: memory.times + 1}
        signal: []
      after-all: {when: "all(members, .idle)", after: {all-idle: 1ms}, signal: []}
`

// redacted also has predicates that depend on the redacted field in each way.
const redacted = unread + `      many: {when: "sum(members, .n) > 5", set: {seen: "1"}, signal: []}
      marked: {when: memory.seen == 1, signal: []}
      later: {when: "all(members, .idle)", after: {many: 1ms}, signal: []}
      until: {when: "all(members, .idle)", until: "any(members, .n == 0)", signal: []}
`

// recordRedacted runs two members with the configuration and returns the journal.
func recordRedacted(t *testing.T, config string, opt synchronizer.Options) []byte {
	t.Helper()
	server := serve(t, 0)
	w := newWatch()
	var text bytes.Buffer
	opt.Observe, opt.Journal = w.observe, &text
	s := start(t, server.URL(), config, opt)
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	for _, m := range []*agent.Member{a, b} {
		set(t, m, state{N: 8641})
		set(t, m, state{Idle: true, N: 8641})
	}
	_, _ = w.await(t, 0, "firing of all-idle", func(e monitor.Event) bool {
		v, ok := e.(monitor.Verdict)
		return ok && v.Fired && v.Predicate == "all-idle"
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return text.Bytes()
}

// TestReplayWithoutRedactedValues wants predicates that depend on a redacted field to be
// unknown with the reason, and the others as they were.
func TestReplayWithoutRedactedValues(t *testing.T) {
	journal := recordRedacted(t, redacted, synchronizer.Options{})
	if hasSecret(journal) || !bytes.Contains(journal, []byte(`"state":[true,null]`)) {
		t.Errorf("the journal has the value, or no null in its place:\n%s", journal)
	}
	outs := regexp.MustCompile(`"out":"[0-9a-f]*"`).FindAll(journal, -1)
	if n := len(slices.CompactFunc(outs, bytes.Equal)); n != 1 {
		t.Errorf("the journal has %d hashes of outputs, with which values can be guessed", n)
	}
	truths, firings := map[string]string{}, map[string]int{}
	got, err := synchronizer.Replay(bytes.NewReader(journal), synchronizer.ReplayOptions{Observe: func(_ time.Time, e monitor.Event) {
		if v, ok := e.(monitor.Verdict); ok {
			truths[v.Predicate] = strings.TrimSuffix(v.Truth.String()+": "+v.Reason, ": ")
			if v.Fired {
				firings[v.Predicate]++
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{
		"later":  "the predicate fires after many, which depends on redacted fields",
		"many":   "the predicate reads the redacted .n, whose values are not recorded",
		"marked": "the predicate reads memory.seen, set by predicate many, which depends on redacted fields",
		"until":  "the predicate reads the redacted .n, whose values are not recorded",
	}
	var want []synchronizer.NotJudged
	for _, name := range []string{"later", "many", "marked", "until"} {
		want = append(want, synchronizer.NotJudged{Predicate: name, Reason: reasons[name]})
		if truths[name] != "unknown: "+reasons[name] || firings[name] > 0 {
			t.Errorf("%s is %q and has fired %d times", name, truths[name], firings[name])
		}
	}
	if d := cmp.Diff(want, got.NotJudged); d != "" || got.FirstDifference != 0 || !got.Complete {
		t.Errorf("%+v\n%s", got, d)
	}
	if truths["all-idle"] != "true" || firings["all-idle"] != 1 {
		t.Errorf("all-idle is %q and has fired %d times", truths["all-idle"], firings["all-idle"])
	}

	// The same with another configuration, where the field is not redacted and another predicate reads it.
	cfg, err := synchronizer.ParseConfig("changed.yaml", []byte(strings.NewReplacer("{type: int, redact: true}", "int", "until: {", "new: {", ".n == 0", ".n == 1").Replace(redacted)))
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	got, err = synchronizer.Replay(bytes.NewReader(journal), synchronizer.ReplayOptions{Changed: cfg, Differ: func(d synchronizer.Difference) {
		differ = append(differ, d.Predicate)
	}})
	if err != nil || len(differ) > 0 || len(got.NotJudged) != 5 {
		t.Errorf("%+v, %v, differences in %q", got, err, differ)
	}
}

// TestReplayComparesWithRedactedFields: if no predicate depends on a redacted field, all
// that comes out is as recorded.
func TestReplayComparesWithRedactedFields(t *testing.T) {
	journal := recordRedacted(t, unread, synchronizer.Options{})
	if hasSecret(journal) {
		t.Error("the journal has the value")
	}
	got, err := synchronizer.Replay(bytes.NewReader(journal), synchronizer.ReplayOptions{})
	if err != nil || got.FirstDifference != 0 || len(got.NotJudged) > 0 || got.Decisions == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	changed := bytes.Replace(journal, []byte(`"state":[true,null]`), []byte(`"state":[false,null]`), 1)
	if got, err := synchronizer.Replay(bytes.NewReader(changed), synchronizer.ReplayOptions{}); err != nil || got.FirstDifference == 0 {
		t.Errorf("a changed journal replays to %+v, %v", got, err)
	}
}

// TestReplayOfGoPredicatesWithRedactedFields: what a function reads is not known.
func TestReplayOfGoPredicatesWithRedactedFields(t *testing.T) {
	list := []synchronizer.Predicate{{Name: "go", Judge: func(g monitor.GlobalState) (predicates.Truth, string) {
		if g.Value(0, "n").Int() == 8641 {
			return predicates.True, ""
		}
		return predicates.False, ""
	}}}
	journal := recordRedacted(t, unread, synchronizer.Options{Predicates: list})
	got, err := synchronizer.Replay(bytes.NewReader(journal), synchronizer.ReplayOptions{Predicates: list})
	want := []synchronizer.NotJudged{{Predicate: "go", Reason: "the predicate is a function of the program, which may read redacted fields, whose values are not recorded"}}
	if err != nil || cmp.Diff(want, got.NotJudged) != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestResumeWithoutRedactedValues: a run does not continue from a journal that lacks a field that
// its predicates read, and does from a journal that has all of them.
func TestResumeWithoutRedactedValues(t *testing.T) {
	const refused = "the journal does not tell how the run stood: predicate later cannot be judged: the predicate fires after many, which depends on redacted fields: start without --resume"
	for config, want := range map[string]string{redacted: refused, unread: ""} {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, recordRedacted(t, config, synchronizer.Options{}), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		cfg, err := synchronizer.ParseConfig("test.yaml", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		s, err := synchronizer.Start(t.Context(), serve(t, 0).URL(), cfg, synchronizer.Options{Resume: file})
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if text := ""; want != "" {
			if err != nil {
				text = err.Error()
			}
			if !strings.HasSuffix(text, want) {
				t.Errorf("%q, want %q", text, want)
			}
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestReplayOfAProgramThatReadsARedactedField is refused: nothing of it could be told.
func TestReplayOfAProgramThatReadsARedactedField(t *testing.T) {
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(strings.Replace(roundsProgram, "{error: float}", "{error: {type: float, redact: true}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	s, err := synchronizer.Start(t.Context(), serve(t, 0).URL(), cfg, synchronizer.Options{Journal: &text})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `replay of "gsync": predicate precise, which the program reads, cannot be judged: the predicate reads the redacted .error, whose values are not recorded: run the program without redact to replay it`
	if _, err := synchronizer.Replay(&text, synchronizer.ReplayOptions{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// hasSecret reports whether a text has the value 8641 of a redacted field: not as a part of an instant or of a digest.
func hasSecret(text []byte) bool { return secret.Match(text) }

var secret = regexp.MustCompile(`(^|[^0-9a-f])8641([^0-9a-f]|$)`)

package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A retired word stood for something that has a plain or a usual name; the
// glossary of docs/model.md says which.
type retired struct {
	pattern string // a regular expression, matched within a line
	use     string // what to write instead
	// pending lists the directories, relative to the root, that still have the
	// word. A directory stands for its own files alone. It may only shrink: one
	// that is clean must be taken out.
	pending []string
}

// keptWords are keys of the journal's format, by file.
var keptWords = map[string]string{"internal/journal/write.go": `json:"carrier,omitempty"`, "docs/journal.md": "`carrier` |"}

// retiredWords holds for Go files, comments, strings and names alike, and for
// Markdown; history does not change and may keep its words.
var retiredWords = []retired{
	{`\btracecore\b|\binternal/trace\b`, "tracedetect, internal/tracefile", nil},
	{`\bpredicates\.(Member)?Program\b|\[Program\.(Cost|Explain|Threshold)`, "predicates.Expression", nil},
	{`\bprogram\.(Plan|Standing)\b`, "program.Compiled, program.BlockStatus", nil},
	{`\bclocksync\.((New)?Weave|(Server)?Report)\b|\bsource\.(Source)?Report\b`, "clocksync.MonotoneMerger, clocksync.Diagnostics, source.Diagnostics", nil},
	{`\b[Ff]euds?\b|\bfoes?\b`, "conflict", nil},
	{`\b[Ww]eav(e|es|ing)\b|\bwove\b`, "merge", nil},
	{`\bstrands?\b|\bknots?\b`, "endpoints", nil},
	{`\bspells\b|\ba spell\b|\bcrest\b`, "candidate, sliding maximum", nil},
	{`\bby fiat\b`, "assumed", nil},
	{`\bbeyond belief\b`, "implausible", nil},
	{`\bis a truth\b|\bnumbers, truths\b`, "boolean", nil},
	{`\b(over|of) nobody\b`, "an empty group", nil},
	{`\bkept from change to change\b|\bwhat is kept changes\b`, "incremental", nil},
	{`\bsigns? of life\b`, "heartbeat", nil},
	{`\btimes? round\b`, "iteration", nil},
	{`\bneglect(s|ed|ing)?\b`, "ignore", nil},
	{`\bstands? twice\b`, "is given twice", nil},
	{`\bis none of %|\bis none of (its|the)\b`, "is not one of", nil},
	{`\b(let|lets|letting) go of\b`, "drop, release", nil},
	{`\b(ride|rides|riding) (with|along)\b`, "piggyback, carry", nil},
	{`\bat hand\b`, "current", nil},
	{`\btaken? up\b|\btak(es|ing) up\b`, "resume", nil},
	{`\btowns?\b`, "city", nil},
	{`\banew\b`, "again", nil},
	{`\b[Cc]arriers?\b|[Ss]peakers?\b`, "multiplexer", nil},
}

// history lists the files that may keep the words of their time, and this one.
var history = []string{"CHANGELOG.md", "docs/decisions.md", "internal/archtest/words_test.go"}

// TestWords finds retired words, and pending directories that have none left.
func TestWords(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(retiredWords))
	stillUsed := make([]map[string]bool, len(retiredWords))
	for i, w := range retiredWords {
		patterns[i], stillUsed[i] = regexp.MustCompile(w.pattern), map[string]bool{}
	}
	read := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		if entry.IsDir() {
			if base := entry.Name(); base == ".git" || base == "testdata" || base == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" || slices.Contains(history, name) {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		src, _, _ = bytes.Cut(src, []byte("\n## Glossary\n")) // It names them all.
		if kept := keptWords[name]; kept != "" {
			src = bytes.Replace(src, []byte(kept), nil, 1)
		}
		read++
		dir := filepath.ToSlash(filepath.Dir(name))
		for i, re := range patterns {
			pending := slices.Contains(retiredWords[i].pending, dir)
			if !re.Match(src) {
				continue
			}
			for n, line := range bytes.Split(src, []byte("\n")) {
				if found := re.Find(line); found != nil {
					if stillUsed[i][dir] = true; !pending {
						t.Errorf("%s:%d: %q is retired: use %s", name, n+1, found, retiredWords[i].use)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 100 {
		t.Errorf("read only %d files; the test looks at the wrong tree", read)
	}
	for i, w := range retiredWords {
		for _, dir := range w.pending {
			if !stillUsed[i][dir] {
				t.Errorf("%s has no %q any more: take it out of the pending directories", dir, w.pattern)
			}
		}
	}
}

package journal_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// TestOldJournals replays journals that commit 6ead95c has written: a run of the tsp
// on kroA100, and one of examples/integration in which two nodes and two synchronizers
// were killed. Every output is what it was, byte for byte.
func TestOldJournals(t *testing.T) {
	files, err := filepath.Glob("testdata/format1/*.jsonl.gz")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if j := replay(t, unzipped(t, path)); j.Inputs < 200 {
				t.Errorf("%d inputs", j.Inputs)
			}
		})
	}
}

func unzipped(t *testing.T, path string) io.Reader {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	lines, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// replay steps a fresh machine through a journal and wants the same outputs.
func replay(t *testing.T, lines io.Reader) *journal.Reader {
	t.Helper()
	j, err := journal.Read(lines)
	if err != nil {
		t.Fatal(err)
	}
	core := synccore.New(j.Level, j.Header.Options)
	var rec journal.Record
	var out synccore.Output
	var digest journal.Digest
	for {
		if err := j.Next(&rec); errors.Is(err, io.EOF) {
			return j
		} else if err != nil {
			t.Fatal(err)
		}
		core.Step(rec.Now, &rec.Input, &out)
		if digest.Add(&out); digest.Sum() != rec.Out && !rec.Broken {
			t.Fatalf("line %d comes to other outputs: %+v", j.Line(), out)
		}
	}
}

// TestLastTerm: a term that no later life can follow is no term of a journal.
func TestLastTerm(t *testing.T) {
	text, err := io.ReadAll(unzipped(t, "testdata/format1/tsp.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	const last = "term 18446744073709551615 is the greatest there is: no later one can follow"
	broken := regexp.MustCompile(`"term":\d+`).ReplaceAllString(first, `"term":18446744073709551615`)
	if _, err := journal.Read(strings.NewReader(broken + "\n")); err == nil || err.Error() != "line 1: "+last {
		t.Errorf("header: %v", err)
	}
	j, err := journal.Read(strings.NewReader(first + "\n" + `{"now":99999999999,"restart":{"term":18446744073709551615}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var rec journal.Record
	if err := j.Next(&rec); err == nil || err.Error() != "line 2: "+last {
		t.Errorf("restart: %v", err)
	}
}

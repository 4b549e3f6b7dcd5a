package journal_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
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
		t.Run(filepath.Base(path), func(t *testing.T) { replay(t, path) })
	}
}

func replay(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Read(lines)
	if err != nil {
		t.Fatal(err)
	}
	core := synccore.New(j.Level, j.Header.Options())
	var rec journal.Record
	var out synccore.Output
	var digest journal.Digest
	for {
		if err := j.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		core.Step(rec.Now, &rec.Input, &out)
		if digest.Add(&out); digest.Sum() != rec.Out && !rec.Broken {
			t.Fatalf("line %d comes to other outputs: %+v", j.Line(), out)
		}
	}
	if j.Inputs < 200 {
		t.Errorf("%d inputs", j.Inputs)
	}
}

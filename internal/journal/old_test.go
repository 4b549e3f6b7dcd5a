package journal_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
)

var rewrite = flag.Bool("rewrite", false, "write the digests and testdata/outputs again, by which TestOldJournals tells what differs")

// TestOldJournals replays journals whose inputs commit 6ead95c has written: a run of the tsp
// on kroA100, and one of examples/integration in which two nodes and two synchronizers
// were killed. Every output is what it was when format 2 began, byte for byte, by the digests
// in the journals; the outputs themselves are in testdata/outputs to tell what differs.
func TestOldJournals(t *testing.T) {
	files, err := filepath.Glob("testdata/format2/*.jsonl.gz")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			kept := filepath.Join("testdata", "outputs", strings.TrimSuffix(filepath.Base(path), ".jsonl.gz")+".gz")
			if *rewrite {
				redigest(t, path)
			}
			var text bytes.Buffer
			j := replay(t, unzipped(t, path), func(line int, out *synccore.Output, _ uint64, same bool) {
				list := parts(nil, strconv.Itoa(line), reflect.ValueOf(out))
				for _, part := range list {
					fmt.Fprintln(&text, part)
				}
				if !same {
					t.Fatalf("%s does not come to the output that it came to:\n%s", path, difference(outputs(t, kept, line), list))
				}
			})
			if j.Inputs < 200 {
				t.Errorf("%d inputs", j.Inputs)
			}
			if *rewrite {
				zip(t, kept, text.Bytes())
			}
		})
	}
}

// redigest writes the header and the digests of a journal again: a new format begins.
func redigest(t *testing.T, path string) {
	t.Helper()
	text, err := io.ReadAll(unzipped(t, path))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	lines[0] = regexp.MustCompile(`"journal":\d+`).ReplaceAllString(lines[0], fmt.Sprintf(`"journal":%d`, journal.Format))
	digest := regexp.MustCompile(`"out":"[0-9a-f]{16}"`)
	replay(t, strings.NewReader(strings.Join(lines, "")), func(line int, _ *synccore.Output, sum uint64, _ bool) {
		lines[line-1] = digest.ReplaceAllString(lines[line-1], fmt.Sprintf(`"out":"%016x"`, sum))
	})
	zip(t, path, []byte(strings.Join(lines, "")))
}

// parts appends what of a value is not zero, a line each, by the names of fields. What is
// no part of a digest is left out.
func parts(list []string, name string, v reflect.Value) []string {
	text := v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
	switch {
	case v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
	case v.Kind() == reflect.Pointer:
		list = parts(list, name, v.Elem())
	case v.Kind() == reflect.Struct:
		for f, value := range v.Fields() {
			if f.Tag.Get("digest") != "-" {
				list = parts(list, name+" "+f.Name, value)
			}
		}
	case v.Kind() == reflect.Slice && !text:
		for i := range v.Len() {
			list = parts(list, fmt.Sprintf("%s %d", name, i), v.Index(i))
		}
	case text || v.Kind() == reflect.String:
		list = append(list, fmt.Sprintf("%s: %q", name, v))
	default:
		list = append(list, fmt.Sprintf("%s: %v", name, v))
	}
	return list
}

// outputs are the parts of the output that a line of a journal came to.
func outputs(t *testing.T, kept string, line int) (list []string) {
	t.Helper()
	text, err := io.ReadAll(unzipped(t, kept))
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.Lines(string(text)) {
		if strings.HasPrefix(part, fmt.Sprint(line, " ")) {
			list = append(list, strings.TrimSuffix(part, "\n"))
		}
	}
	return list
}

// difference tells the first part in which two outputs differ, from shortly before it.
func difference(was, is []string) string {
	was, is = slices.Concat(was, []string{"nothing more"}), slices.Concat(is, []string{"nothing more"})
	i := 0
	for i < min(len(was), len(is))-1 && was[i] == is[i] {
		i++
	}
	from := 0
	for from < min(len(was[i]), len(is[i])) && was[i][from] == is[i][from] {
		from++
	}
	return "was " + around(was[i], from) + "\nis  " + around(is[i], from)
}

// around is the name of a part, and what stands near a place of its value.
func around(part string, at int) string {
	name, _, _ := strings.Cut(part, ": ")
	from, to := at-60, min(at+60, len(part))
	if from <= len(name)+len(": ") {
		return part[:max(to, len(name))]
	}
	return name + ": ..." + part[from:to]
}

// TestDifference shows what TestOldJournals tells.
func TestDifference(t *testing.T) {
	const name = "2 Welcomes 0 Msg Section: "
	long := strings.Repeat("a", 200)
	near := long[:60]
	for _, c := range []struct{ was, is, want string }{
		{"2 Wake: 5", "2 Wake: 6", "was 2 Wake: 5\nis  2 Wake: 6"},
		{"2 Wake: 5", "2 Failed: \"p\"\n2 Wake: 5", "was 2 Wake: 5\nis  2 Failed: \"p\""},
		{"2 Wake: 5\n2 Failed: \"p\"", "2 Wake: 5", "was 2 Failed: \"p\"\nis  nothing more"},
		{name + long + "b" + long, name + long + "c" + long, "was " + name + "..." + near + "b" + near[1:] + "\nis  " + name + "..." + near + "c" + near[1:]},
	} {
		if got := difference(strings.Split(c.was, "\n"), strings.Split(c.is, "\n")); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
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

func zip(t *testing.T, path string, text []byte) {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// sameOutput fails if a line does not come to the same output.
func sameOutput(t *testing.T) func(int, *synccore.Output, uint64, bool) {
	t.Helper()
	return func(line int, out *synccore.Output, _ uint64, same bool) {
		if !same {
			t.Fatalf("line %d comes to another output: %s", line, strings.Join(parts(nil, "", reflect.ValueOf(out)), "\n"))
		}
	}
}

// replay steps a fresh machine through a journal and tells each output, the digest of all so far,
// and whether that is the one in the journal.
func replay(t *testing.T, lines io.Reader, told func(line int, out *synccore.Output, sum uint64, same bool)) *journal.Reader {
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
		digest.Add(&out)
		told(j.Line(), &out, digest.Sum(), rec.Broken || digest.Sum() == rec.Out)
	}
}

// TestLastTerm: a term that no later life can follow is no term of a journal.
func TestLastTerm(t *testing.T) {
	text, err := io.ReadAll(unzipped(t, "testdata/format2/tsp.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	const last = "no term that members accept can follow term 4611686018427387903"
	broken := regexp.MustCompile(`"term":\d+`).ReplaceAllString(first, `"term":4611686018427387903`)
	if _, err := journal.Read(strings.NewReader(broken + "\n")); err == nil || err.Error() != "line 1: "+last {
		t.Errorf("header: %v", err)
	}
	j, err := journal.Read(strings.NewReader(first + "\n" + `{"now":99999999999,"restart":{"term":4611686018427387903}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var rec journal.Record
	if err := j.Next(&rec); err == nil || err.Error() != "line 2: "+last {
		t.Errorf("restart: %v", err)
	}
}

// TestEndOfAStream: lines that come one by one have no end.
func TestEndOfAStream(t *testing.T) {
	j := journal.Follow(&plan.Level{})
	var rec journal.Record
	if err := j.Take([]byte(`{"end":0}`), &rec); err == nil || err.Error() != "line 0: the line is the end of a file, and these lines come one by one" {
		t.Error(err)
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gopegasus/pegasus/internal/draw"
)

const leaders = "testdata/traces/leaders.jsonl"

// detect runs detect on an input.
func detect(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Execute(t.Context(), append([]string{"detect"}, args...), stdin, &out, &errs)
	return code, out.String(), errs.String()
}

// TestDetectInput reads the same trace in each way; no temporary file
// is left.
func TestDetectInput(t *testing.T) {
	kept := t.TempDir()
	t.Setenv("TMPDIR", kept)
	t.Setenv("TMP", kept)
	trace, err := os.ReadFile(leaders)
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := detect(t, nil, leaders)
	if strings.Count(want, "\n") != 4 {
		t.Fatalf("from a file: %s", want)
	}
	file, err := os.Open(leaders)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for name, c := range map[string]struct {
		stdin io.Reader
		args  string
	}{
		"no argument":  {bytes.NewReader(trace), ""},
		"a dash":       {iotest.OneByteReader(bytes.NewReader(trace)), "-"},
		"a redirect":   {file, "-"},
		"members":      {bytes.NewReader(trace), "--members n3,n1,n2"},
		"members file": {nil, "--members n1,n2 --members n3 " + leaders},
		"crlf, mark":   {strings.NewReader("\ufeff" + strings.ReplaceAll(string(trace), "\n", "\r\n\r\n")), "-"},
		"no last end":  {bytes.NewReader(bytes.TrimSpace(trace)), ""},
	} {
		code, stdout, stderr := detect(t, c.stdin, strings.Fields(c.args)...)
		if code != exitOK || stdout != want || stderr != "" {
			t.Errorf("%s: exit %d\n%s%s", name, code, stdout, stderr)
		}
	}
	for _, empty := range []string{"", "\n", " \n\n"} {
		if code, stdout, stderr := detect(t, strings.NewReader(empty), "--format", "text"); code != exitOK || stdout+stderr != "" {
			t.Errorf("%q: exit %d\n%s%s", empty, code, stdout, stderr)
		}
	}
	broken := io.MultiReader(bytes.NewReader(trace), iotest.ErrReader(errors.New("disk on fire")))
	if code, stdout, stderr := detect(t, broken, "--members", "n1,n2,n3"); code != exitFailure || stdout != want || stderr != "pegasus: disk on fire\n" {
		t.Errorf("broken: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := detect(t, iotest.ErrReader(errors.New("disk on fire"))); code != exitFailure || stdout != "" || stderr != "pegasus: disk on fire\n" {
		t.Errorf("broken: exit %d\n%s%s", code, stdout, stderr)
	}
	if left, err := os.ReadDir(kept); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

// TestDetectOnlyLineIsFaulty has a participant that says nothing else: it counts
// as one unless its line is to be skipped.
func TestDetectOnlyLineIsFaulty(t *testing.T) {
	trace := stamped("n1", 1, "state", 1) +
		`{"participant":"n2","domain":"n2","mono":1,"earliest":5,"latest":0,"type":"state","seq":1}` + "\n" +
		stamped("n1", 2, "alive", 1)
	code, stdout, stderr := detect(t, strings.NewReader(trace))
	if code != exitFailure || stdout != "" || stderr != "pegasus: stdin:2: earliest 5 is after latest 0\n" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	want := `{"members":{"n1":1},"open":["n1"],"core":[1,2],"envelope":[1,null]}` + "\n"
	if code, stdout, stderr := detect(t, strings.NewReader(trace), "--lenient"); code != exitOK || stdout != want {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

// stamped is a line of a trace, at a time that is exact.
func stamped(name string, at int, kind string, seq int) string {
	return fmt.Sprintf(`{"participant":%q,"domain":%q,"mono":%d,"earliest":%d,"latest":%d,"type":%q,"seq":%d}`+"\n", name, name, at, at, at, kind, seq)
}

// TestDetectStreams wants each line as soon as it is certain, and what has been
// found when it is interrupted.
func TestDetectStreams(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	out, w := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Execute(ctx, []string{"detect", "--members", "a,b"}, in, w, &stderr)
		_ = w.Close()
	}()
	found := bufio.NewScanner(out)
	write := func(lines ...string) {
		t.Helper()
		if _, err := io.WriteString(feed, strings.Join(lines, "")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		at := 10 * i
		write(stamped("a", at, "state", i+1))
		write(stamped("b", at, "state", i+1))
		write(stamped("a", at+5, "alive", i+1), stamped("b", at+5, "alive", i+1))
		want := fmt.Sprintf(`{"members":{"a":%d,"b":%d},"open":["a","b"],"core":[%d,%d],"envelope":[%d,null]}`, i+1, i+1, at, at+5, at)
		if !found.Scan() || found.Text() != want {
			t.Fatalf("got %s, want %s", found.Text(), want)
		}
	}
	cancel()
	for found.Scan() {
		t.Errorf("after the end: %s", found.Text())
	}
	if got := <-code; got != exitFailure || stderr.String() != "pegasus: interrupted: the input was not read to its end\n" {
		t.Errorf("exit %d, stderr %q", got, stderr.String())
	}
	_ = feed.Close()
}

// TestDetectIsInterruptedWhileItKeepsStdin leaves nothing behind.
func TestDetectIsInterruptedWhileItKeepsStdin(t *testing.T) {
	kept := t.TempDir()
	t.Setenv("TMPDIR", kept)
	t.Setenv("TMP", kept)
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- Execute(ctx, []string{"detect"}, in, io.Discard, io.Discard) }()
	for range 2 { // The second write is taken after the first was kept.
		if _, err := io.WriteString(feed, stamped("a", 1, "state", 1)); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if got := <-code; got != exitFailure {
		t.Errorf("exit %d", got)
	}
	if left, err := os.ReadDir(kept); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
	_ = feed.Close()
}

// TestDetectOutput has a reader that goes away, and a full disk.
func TestDetectOutput(t *testing.T) {
	out, w := io.Pipe()
	_ = out.Close()
	var stderr bytes.Buffer
	if code := Execute(t.Context(), []string{"detect", leaders}, nil, w, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
	if code := Execute(t.Context(), []string{"detect", leaders}, nil, brokenWriter{}, &stderr); code != exitFailure || stderr.String() != "pegasus: no space left\n" {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}

// endless is a well-behaved trace: n rounds in which each member changes its
// state and some lines are lost.
type endless struct {
	n, round int
	rest     []byte
	watch    func(round int)
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.round == e.n {
			return 0, io.EOF
		}
		e.watch(e.round)
		e.rest = e.rest[:0]
		for m := range 4 {
			if at, seq := 10*e.round+m, e.round+1; (seq+m)%13 > 0 {
				e.rest = fmt.Appendf(e.rest, `{"participant":"p%d","domain":"h%d","mono":%d,"earliest":%d,"latest":%d,"type":"state","seq":%d,"state":{"x":%d}}`+"\n", m, m, at, at-1, at+1, seq, seq%3)
			}
		}
		e.round++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestDetectIsOfConstantSize reads a million lines in all and wants the heap to be no
// larger late than early.
func TestDetectIsOfConstantSize(t *testing.T) { // Nothing runs beside it: it reads the size of the heap.
	for _, args := range []string{
		"--when any(members,.x>1)", "--final", "--modality definitely --where state.x>0",
		"--modality possibly --where state.x>0", "--modality atleast --k 2 --where state.x>0",
	} {
		t.Run(args, func(t *testing.T) {
			const rounds = 20_000
			var heap [2]uint64 // at a quarter, and at the end
			watch := func(round int) {
				if round != rounds/4 && round != rounds-1 {
					return
				}
				var s runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&s)
				heap[round/(rounds/2)] = s.HeapAlloc
			}
			in := &endless{n: rounds, watch: watch}
			var out counter
			var stderr bytes.Buffer
			code := Execute(t.Context(), append(strings.Fields("detect --members p0,p1,p2,p3"), strings.Fields(args)...), in, &out, &stderr)
			if code != exitOK || out < rounds/8 || stderr.Len() > 0 {
				t.Errorf("exit %d after %d lines of output: %s", code, out, &stderr)
			}
			if heap[1] > 2*heap[0] {
				t.Errorf("the heap has %d bytes at a quarter and %d at the end", heap[0], heap[1])
			}
		})
	}
}

// counter counts the lines that are written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

// TestDetectNamesAbsentMembers tells of a name that was mistyped.
func TestDetectNamesAbsentMembers(t *testing.T) {
	code, stdout, stderr := detect(t, nil, leaders, "--members", "n1,n9")
	if code != exitOK || stdout != "" || stderr != "pegasus: the trace has no line of n9, which --members names\n" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

// TestDetectNamesRoundedFields: ids that would be equal as floats are unknown, and the
// error names the type that holds them.
func TestDetectNamesRoundedFields(t *testing.T) {
	const (
		trace = `{"participant":"n1","domain":"h1","mono":1,"earliest":1,"latest":2,"type":"state","seq":1,"state":{"id":9007199254740993,"ids":[9007199254740993]}}
{"participant":"n2","domain":"h1","mono":2,"earliest":2,"latest":3,"type":"state","seq":1,"state":{"id":9007199254740992,"ids":[9007199254740992]}}
{"participant":"n1","domain":"h1","mono":5,"earliest":5,"latest":6,"type":"leave","seq":2}
{"participant":"n2","domain":"h1","mono":6,"earliest":6,"latest":7,"type":"leave","seq":2}
`
		told  = "pegasus: field id has whole numbers that a float does not hold exactly, and is unknown there: use --schema id:int\n"
		equal = `let x = find(members, .name == "n1").id; all(members, .id == x)`
		found = "{\"members\":{\"n1\":1,\"n2\":1},\"open\":[],\"core\":[3,5],\"envelope\":[2,6]}\n"
	)
	for name, c := range map[string]struct{ when, schema, stdout, stderr string }{
		"guessed":        {equal, "", "", told},
		"declared float": {equal, "id:float", "", told},
		"declared int":   {equal, "id:int", "", ""},
		"other ids":      {`let x = find(members, .name == "n1").id; all(members, .id <= x)`, "id:int", found, ""},
		"a literal":      {`any(members, .id == 9007199254740993)`, "id:int", found, ""},
		"a list":         {`any(members, 9007199254740993 in .ids)`, "ids:list(float)", "", strings.NewReplacer("id ", "ids ", "id:int", "ids:list(int)").Replace(told)},
		"a list of ints": {`any(members, 9007199254740993 in .ids)`, "ids:list(int)", found, ""},
		"not read":       {`all(members, .online)`, "", found, ""},
	} {
		args := []string{"--when", c.when}
		if c.schema != "" {
			args = append(args, "--schema", c.schema)
		}
		code, stdout, stderr := detect(t, strings.NewReader(trace), args...)
		if code != exitOK || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%s: exit %d\n%s%s", name, code, stdout, stderr)
		}
	}
}

// TestDetectNamesMissingFields tells of a condition that can never be known.
func TestDetectNamesMissingFields(t *testing.T) {
	code, stdout, stderr := detect(t, nil, leaders, "--modality", "definitely", "--where", `state.rol == "leader"`)
	if code != exitOK || stdout != "" || stderr != "pegasus: no state has a field rol, which the condition reads\n" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, _, stderr := detect(t, nil, leaders, "--when", `any(members, .name == "n1" and .role == "leader")`); stderr != "" {
		t.Errorf("told of what is there: %s", stderr)
	}
}

// TestDetectPicture: the output stays, and the picture has the states and global states with their numbers. No label overlaps,
// with 3 to 1,000 members. A file that cannot be written is refused after the output.
func TestDetectPicture(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "trace.svg")
	_, want, _ := detect(t, nil, leaders)
	drawn := func(stdin io.Reader, args ...string) string {
		t.Helper()
		code, _, stderr := detect(t, stdin, append(args, "--svg", file)...)
		svg, err := os.ReadFile(file)
		if code != exitOK || stderr != "" || err != nil {
			t.Fatalf("exit %d: %s%v", code, stderr, err)
		}
		if faults, err := draw.Overlaps(string(svg)); err != nil || len(faults) > 0 {
			t.Errorf("%q: %v %q", args, err, faults)
		}
		return string(svg)
	}
	svg := drawn(nil, leaders, "--schema", "role:string")
	for _, want := range []string{
		">testdata/traces/leaders.jsonl: 3 members, 6 states, 4 global states; 0s is -2000000 ns<",
		"<title>core, envelope, members: [4000000, 18000000) [0, 22000000) n1:1 n2:1+ n3:1+</title>",
		"<title>n1:1 began [-2000000,2000000], ended [18000000,22000000] ns: role=&#34;follower&#34;</title>",
		"<title>n3:1 began [0,4000000], still held [69000000,73000000] ns: role=&#34;follower&#34;</title>",
		">role=&#34;leader&#34;<", `<rect class="band"`, `<rect class="true"`, `<rect class="unknown"`, ">n3<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	var trace strings.Builder
	for i := range 4000 {
		from := i*1000 + i%7
		fmt.Fprintf(&trace, `{"participant":"<m> %d","domain":"h","mono":%d,"earliest":%d,"latest":%d,"type":"state","seq":%d,"state":{"n":%d}}`+"\n", i%1000, from, from-50, from+50, i/1000+1, i)
	}
	svg = drawn(strings.NewReader(trace.String()), "-", "--schema", "n:int")
	if n := strings.Count(svg, "<text "); n < 1000 || !strings.Contains(svg, "stdin: 1000 members, 4000 states, 1000 global states; 0s is ") ||
		!strings.Contains(svg, ">left out: 0 members, 0 states, 1001 global states<") {
		t.Errorf("%d texts, %.4000s", n, svg)
	}
	missing := filepath.Join(dir, "no", "trace.svg")
	if code, stdout, stderr := detect(t, nil, leaders, "--svg", missing); code != exitFailure || stdout != want ||
		stderr != "pegasus: --svg: open "+missing+": no such file or directory: give the path of a file that can be written\n" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

package journal

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// Lines at the borders of the quick decoder: those that it decodes, and those that it leaves to encoding/json.
var (
	handQuick = []string{
		`{"now":1,"tick":true}`,
		`{"now":-9223372036854775807,"more":true,"reached":5,"watched":true,"tick":true,"out":"3f93d0697a1cea7d"}`,
		`{"now":9223372036854775807,"tick":true,"out":"x"}`,
		`{"now":1,"from":"a","group":"g","by":"p","batch":{"member":"a","incarnation":18446744073709551615}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"domain":"d","again":true,"leaving":true,"reports":[{"seq":1,"at":[5,null,7],"end":true}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":["x",-0,-1.5e-7,1E+9,null,true,false,[1,null],"+Inf"]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[1],"state":[1]},{"seq":2,"at":[2],"state":[2]}],"evidence":{"seq":2,"at":[3]}}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"regions":[{"name":"r","entry":1,"since":0},{"name":"s","entry":2,"since":3}]},"out":"x"}`,
	}
	handSlow = []string{
		`{"now":9223372036854775808,"tick":true}`,
		`{"now":01,"tick":true}`,
		`{"now":1.0,"tick":true}`,
		`{"now": 1,"tick":true}`,
		`{"now":1,"tick":true} `,
		`{"now":1,"tick":true}{}`,
		`{"now":1,"tick":false}`,
		`{"now":1,"out":"x","tick":true}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":18446744073709551616}}`,
		`{"now":1,"from":"ä","batch":{"member":"a","incarnation":1}}`,
		`{"now":1,"from":"a\n","batch":{"member":"a","incarnation":1}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"quality":{}}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[],"state":[1]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":[01]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":[1.]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":[+1]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":[1e]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":[[[1]]]}]}}`,
		`{"now":1,"from":"a","batch":{"member":"a","incarnation":1,"reports":[{"seq":1,"at":[5],"state":[{}]}]}}`,
	}
)

// TestQuickLine: the quick decoder comes to what encoding/json comes to. It decodes the ticks and batches of recorded runs.
func TestQuickLine(t *testing.T) {
	var q quickLine
	for i, text := range slices.Concat(handQuick, handSlow) {
		if quick := sameLine(t, &q, []byte(text)); quick != (i < len(handQuick)) {
			t.Errorf("decoded quickly: %t: %s", quick, text)
		}
	}
	quick, plain := 0, 0
	recordedLines(t, func(line []byte) {
		is := sameLine(t, &q, line)
		usual := bytes.Contains(line, []byte(`,"tick":true`)) || bytes.Contains(line, []byte(`"batch":{`))
		switch {
		case is:
			quick++
		case usual && !bytes.Contains(line, []byte(`"quality":{`)):
			t.Errorf("it is not decoded quickly: %s", line)
		default:
			plain++
		}
	})
	if quick < 300 || plain < 10 {
		t.Errorf("%d lines of recorded runs are decoded quickly, %d are not", quick, plain)
	}
}

// FuzzQuickLine: as TestQuickLine, for any text, after another line with the same decoder.
func FuzzQuickLine(f *testing.F) {
	for _, text := range slices.Concat(handQuick, handSlow) {
		f.Add([]byte(text))
	}
	n := 0
	recordedLines(f, func(line []byte) {
		if n++; n%20 == 0 {
			f.Add(bytes.Clone(line))
		}
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		var q quickLine
		sameLine(t, &q, text)
		q.decode([]byte(`{"now":7,"from":"z","batch":{"member":"z","incarnation":7,"reports":[{"seq":7,"at":[7,8,9],"state":["z"]}],"evidence":{"seq":7,"at":[7]}},"out":"z"}`))
		sameLine(t, &q, text)
	})
}

// sameLine reports whether the line is decoded quickly, and then wants the result of encoding/json.
func sameLine(t *testing.T, q *quickLine, text []byte) bool {
	t.Helper()
	got := q.decode(text)
	if got == nil {
		return false
	}
	var want journalLine
	if err := strict(text, &want); err != nil {
		t.Errorf("encoding/json refuses it: %v: %s", err, text)
	} else if !reflect.DeepEqual(*got, want) {
		t.Errorf("encoding/json decodes it as\n%+v, not\n%+v: %s", want, *got, text)
	}
	return true
}

// recordedLines calls each with the lines of the journals in testdata, but for their first and last one.
func recordedLines(tb testing.TB, each func([]byte)) {
	tb.Helper()
	files, err := filepath.Glob("testdata/format2/*.jsonl.gz")
	if err != nil || len(files) == 0 {
		tb.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		unzip, err := gzip.NewReader(f)
		if err != nil {
			tb.Fatal(err)
		}
		scan := bufio.NewScanner(unzip)
		scan.Buffer(nil, MaxLine)
		for scan.Scan() {
			if !bytes.HasPrefix(scan.Bytes(), []byte(`{"journal"`)) && !bytes.HasPrefix(scan.Bytes(), []byte(`{"end"`)) {
				each(scan.Bytes())
			}
		}
		if err := scan.Err(); err != nil {
			tb.Fatal(err)
		}
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
	}
}

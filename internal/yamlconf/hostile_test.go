package yamlconf_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// decode runs Decode and checks what holds for every input: faults have a place
// inside the file, a Doc is missing only with faults, every text has a place
// for each of its bytes.
func decode(t *testing.T, src string) error {
	t.Helper()
	var c config
	doc, err := yamlconf.Decode("f", []byte(src), &c)
	if doc == nil && err == nil {
		t.Fatalf("no document and no fault for %q", src)
	}
	if doc != nil {
		err = c.check(doc)
		checkNode(t, doc, doc.Root(), src)
	}
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*yamlconf.Error](err)
	if !ok || len(e.Faults) == 0 || e.Error() == "" {
		t.Fatalf("%q: %T without faults", src, err)
	}
	lines := strings.Split(src, "\n")
	for _, f := range e.Faults {
		if f.Line < 1 || f.Column < 1 || f.Line > len(lines) || f.Column > len(lines[f.Line-1])+2 {
			t.Fatalf("%q: %v is outside of the file", src, f)
		}
	}
	return err
}

// starts reports whether a text or key may start at a place of the source.
func starts(src string, at yamlconf.Pos, text string) bool {
	line := []rune(strings.TrimSuffix(strings.Split(src, "\n")[at.Line-1], "\r"))
	if at.Column > len(line) {
		return false
	}
	r := line[at.Column-1]
	return strings.ContainsRune(`\'"|>`, r) || strings.HasPrefix(text, string(r))
}

func checkNode(t *testing.T, doc *yamlconf.Doc, n yamlconf.Node, src string) {
	t.Helper()
	for _, item := range n.Items() {
		checkNode(t, doc, item, src)
	}
	if key, _ := n.Key(); key != "" && doc.KeyPos(n.Path()) == (yamlconf.Pos{}) {
		t.Fatalf("%q: path %s leads nowhere", src, n.Path())
	}
	if key, at := n.Key(); strings.TrimSpace(key) != "" && !starts(src, at, key) {
		t.Fatalf("%q: key %q is not at %v", src, key, at)
	}
	if text := n.Text(); strings.TrimSpace(text) != "" && !starts(src, n.Pos(), text) {
		t.Fatalf("%q: text %q is not at %v", src, text, n.Pos())
	}
	for i := 0; i <= len(n.Text()); i += len(n.Text())/4 + 1 {
		if p := doc.PosIn(n.Path(), i); p.Line < n.Pos().Line {
			t.Fatalf("%q: offset %d of %s is at %v", src, i, n.Path(), p)
		}
	}
}

// TestTruncated cuts a good file at every byte. What is left is refused with a
// place, or is a complete smaller file: cut between two entries, or inside a
// scalar that is still well formed.
func TestTruncated(t *testing.T) {
	if err := decode(t, good); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for i := range len(good) {
		if decode(t, good[:i]) == nil {
			accepted++
		}
	}
	if accepted < 10 || accepted > len(good)/2 {
		t.Errorf("%d of %d cuts were accepted", accepted, len(good))
	}
}

// TestDamaged replaces every byte of a good file by a few characters with a
// meaning, in turn.
func TestDamaged(t *testing.T) {
	const characters = "\n :-[{}]'\"#&*!|>?,%@`\\\x00"
	for i := range len(good) {
		for j := range 3 {
			c := characters[(3*i+j)%len(characters)]
			_ = decode(t, good[:i]+string(c)+good[i+1:])
		}
	}
}

// TestOffsets follows every byte of each text of the good file to its place and
// compares what stands there.
func TestOffsets(t *testing.T) {
	const src = `a: plain text
b: 'it''s "one" é line'
c: "\u00e9\t\x41 \\ \"q\" \U0001F600 end"
d: |
  first

    second é
  third
e: >-
  folded
  text

  next
f: plain over
  two lines

  and a third
g: "quoted over
  two lines \
  continued"
h: |2
    indented
   less
i: [x y, 'z', é]
`
	doc, err := yamlconf.Decode("f", []byte(src), &struct{}{})
	if doc == nil {
		t.Fatal(err)
	}
	lines := strings.Split(src, "\n")
	var check func(n yamlconf.Node)
	check = func(n yamlconf.Node) {
		for _, item := range n.Items() {
			check(item)
		}
		exact := 0
		for i, r := range n.Text() {
			p := doc.PosIn(n.Path(), i)
			rest := string([]rune(lines[p.Line-1])[p.Column-1:])
			switch {
			case strings.HasPrefix(rest, string(r)), strings.HasPrefix(rest, `\`), r == '\n' && rest == "":
				exact++
			case r != ' ' && r != '\n':
				t.Errorf("%s: %q at offset %d is not at %v, where %q stands", n.Path(), r, i, p, rest)
			}
		}
		if exact < len([]rune(n.Text()))-3 {
			t.Errorf("%s: only %d characters of %q have a place", n.Path(), exact, n.Text())
		}
	}
	check(doc.Root())
	for at, want := range map[string]string{
		"a 0": "1:4", "a 6": "1:10", "a 9": "1:13", "a 99": "1:14",
		"b 2": "2:7", "b 3": "2:9", "b 5": "2:11", "c 0": "3:5", "c 2": "3:11", "c 3": "3:13",
		"d 0": "5:3", "d 7": "7:3", "d 9": "7:5", "d 19": "8:3", "e 7": "11:3", "f 11": "15:3", "g 12": "19:3",
		"h 0": "22:3", "h 2": "22:5", "h 11": "23:3", "h 12": "23:4",
	} {
		var path string
		var offset int
		if _, err := fmt.Sscan(at, &path, &offset); err != nil {
			t.Fatal(err)
		}
		if got := doc.PosIn(path, offset).String(); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}

func TestOffset(t *testing.T) {
	const text = "é1\n\nabc"
	for _, c := range []struct{ line, column, want int }{
		{1, 1, 0}, {1, 2, 2}, {1, 9, 3}, {2, 1, 4}, {2, 2, 4}, {3, 1, 5}, {3, 3, 7}, {3, 9, 8}, {4, 1, 8}, {0, 0, 0},
	} {
		if got := yamlconf.Offset(text, c.line, c.column); got != c.want {
			t.Errorf("%d:%d: %d, want %d", c.line, c.column, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(good)
	for _, s := range []string{
		"a: [b, {c: d}]\n", "a: |2-\n   b\n", "a: >+\n  b\n\n  c\n", "- - a\n  - b: c\n", "a: 'b\n  c'", "{\n", "? a\n: b\n",
		"a:\n- b\n-\n", "\"\\", "a: \"\\u12", "[[[[", "&a *a !b", "%a\n---\n", "---\n...\n", "a: b #c\n #d\n", "{a: , b}", "- \n\n- a", "a: - b", ": a", "- : b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) { _ = decode(t, src) })
}

// hostile are files made to be slow, at the size limit or below.
var hostile = map[string]string{
	"oversize":    strings.Repeat("a: b\n", 1<<18),
	"oneline":     strings.Repeat("[", 20_000),
	"brackets":    strings.Repeat("[\n", 20_000),
	"braces":      strings.Repeat("{a:\n", 20_000),
	"dashes":      strings.Repeat("- ", 2000),
	"anchors":     "a: &a [x]\n" + strings.Repeat("b: [*a, *a]\n", 1000),
	"tabs":        "a: \"" + strings.Repeat("\t\n", 1<<18),
	"blank":       "a: |+\n" + strings.Repeat("\n", 1<<19),
	"less":        strings.Repeat("<<<<<<<<<<<<<<<<\n", 1<<15),
	"commas":      "a: [" + strings.Repeat(",\n", 1<<18),
	"keys":        strings.Repeat("a:\n", 1<<18),
	"unknown":     strings.Repeat(strings.Repeat("a", 100)+": b\n", 9000),
	"items":       "a: [" + strings.Repeat(strings.Repeat("é,", 1000)+"\n", 199) + "]",
	"drift":       "a: [" + strings.Repeat(strings.Repeat("é    ,", 500)+"\n", 199) + "]",
	"flat":        flat(10_000),
	"bom":         "\ufeff" + good,
	"good":        good,
	"predicates":  "synchronizers:\n  g:\n    members: 1\n    predicates:\n" + strings.Repeat("      p: {when: a}\n", 2000),
	"longliteral": "synchronizers:\n  g:\n    members: 1\n    extra: |\n" + strings.Repeat("      some text here\n", 40_000),
}

func flat(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: value\n", i)
	}
	return b.String()
}

func BenchmarkDecode(b *testing.B) {
	for name, src := range hostile {
		b.Run(fmt.Sprintf("case=%s/bytes=%d", name, len(src)), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				var c config
				_, _ = yamlconf.Decode("f", []byte(src), &c)
			}
		})
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slower is how much longer a hostile file may take than a good one of its size.
// Both are measured in the same run.
const slower = 20

// placed is the place at the start of a fault.
var placed = regexp.MustCompile(`(?m)^\S+:([1-9][0-9]*):([1-9][0-9]*): `)

// goodOfSize is a good configuration of about that many bytes.
func goodOfSize(size int) string {
	var b strings.Builder
	b.WriteString("synchronizers:\n  g:\n    members: {group: w}\n    state: {load: float, phase: {enum: [idle, search]}}\n    memory: {limit: {type: float, initial: 1}}\n    predicates:\n")
	condition := "all(members, .phase == \"idle\")" + " and sum(members, .load) > memory.limit" + strings.Repeat(" and memory.limit != 12345.5", 24)
	for i := 0; i == 0 || b.Len() < size; i++ {
		text := condition
		if size-b.Len() < len(text) {
			text = condition[:30]
		}
		fmt.Fprintf(&b, "      p%d:\n        when: %s\n        signal: {kind: cancel, region: r}\n", i, text)
	}
	return b.String()
}

// checkFiles checks files in one command.
func checkFiles(t *testing.T, files []string) (took time.Duration, code int, stdout, stderr string) {
	t.Helper()
	begin := time.Now()
	code, stdout, stderr = execute(t, append([]string{"check"}, files...)...)
	return time.Since(begin), code, stdout, stderr
}

// compareTimes wants hostile files to take no more than a few times what good ones
// take. Other work on the machine can spoil a measurement, but not each of many.
func compareTimes(t *testing.T, hostile, good []string) {
	t.Helper()
	for attempt := range 10 {
		took, _, _, _ := checkFiles(t, hostile)
		as, code, _, stderr := checkFiles(t, good)
		if code != exitOK {
			t.Fatalf("a good file is refused: %.300s", stderr)
		}
		if attempt == 0 {
			t.Logf("%.2f ms, good files of these sizes %.2f ms", ms(took), ms(as))
		}
		if took <= slower*as {
			return
		}
	}
	t.Errorf("ten times in a row it took more than %d times as long as good files of these sizes", slower)
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// writeFile writes a file into a directory of the test.
func writeFile(t *testing.T, dir, name, src string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHostileFiles checks files made to be slow or to slip through: each is
// refused with a place, in no more than a few times what a good file of its size
// takes.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	good := goodOfSize(2000)
	for name, src := range map[string]string{
		"over 1 MiB":           goodOfSize(1<<20 + 1),
		"over 1 MiB on a line": strings.Repeat("a", 1<<20+1),
		"anchors":              "a: &a [x]\n" + strings.Repeat("b: [*a, *a]\n", 1000),
		"laughs":               "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\n" + good,
		"20,000 brackets":      "a: " + strings.Repeat("[", 20_000),
		"20,000 bracket lines": "a:\n" + strings.Repeat(" [\n", 20_000),
		"20,000 braces":        "a:\n" + strings.Repeat(" {a:\n", 20_000),
		"20,000 dashes":        strings.Repeat(strings.Repeat("- ", 1000)+"\n", 20),
		"20,000 pairs":         "a:\n" + strings.Repeat(" []\n", 20_000),
		"duplicate keys":       good + "synchronizers: {}\n",
		"duplicate predicates": strings.Replace(good, "p1:", "p0:", 1),
		"many duplicate keys":  good + strings.Repeat("a: b\n", 9000),
		"tabs":                 strings.ReplaceAll(good, "    members", "\tmembers"),
		"a tab in a text":      strings.Replace(good, "sum(members", "sum(\tmembers", 1),
		"byte order mark":      "\ufeff" + good,
		"a second mark":        good + "# \ufeff\n",
		"zero bytes":           good + "\x00\x00",
		"not UTF-8":            good + "# \xff\xfe\n",
		"tags":                 strings.Replace(good, "members: {", "members: !!map {", 1),
		"merge keys":           good + "x: {<<: {a: b}}\n",
		"two documents":        good + "---\n" + good,
		"directives":           "%YAML 1.2\n---\n" + good,
		"blank lines":          good + strings.Repeat("\n", 100_000) + "x: y\n",
		"commas":               "a: [" + strings.Repeat(strings.Repeat(",", 1000)+"\n", 100) + "]\n",
		"quotes":               "a: \"" + strings.Repeat(strings.Repeat("\\\"", 1000)+"\n", 100),
		"less than":            strings.Repeat(strings.Repeat("<", 60)+"\n", 5000),
		"unknown keys": strings.Repeat("x", 3) + good + func() string {
			var b strings.Builder
			for i := range 9000 {
				fmt.Fprintf(&b, "k%d: v\n", i)
			}
			return b.String()
		}(),
		"unfinished flow": strings.TrimSuffix(good, "}\n"),
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			hostile := []string{writeFile(t, dir, "hostile.yaml", src)}
			_, code, stdout, stderr := checkFiles(t, hostile)
			if code != exitFailure || stdout != "" || !placed.MatchString(stderr) {
				t.Errorf("exit %d without a place: %.300s", code, stderr)
			}
			size := min(len(src), 1<<20-1000)
			compareTimes(t, hostile, []string{writeFile(t, dir, "good.yaml", goodOfSize(size))})
		})
	}
}

// hostileConditions draws conditions that would cost an evaluator memory, time or
// its stack: nesting, loops, strings, patterns and variables.
func hostileConditions(r *rand.Rand, n int) []string {
	between := func(a, b int) int { return a + r.IntN(b-a+1) }
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	nested := func(open, core, end string) string {
		depth := between(65, 3500/(len(open)+len(end)))
		return strings.Repeat(open, depth) + core + strings.Repeat(end, depth)
	}
	chain := func(name, first, step string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "let %s0 = %s; ", name, first)
		length := between(10, 40)
		for i := range length {
			b.WriteString(fmt.Sprintf("let %s%d = ", name, i+1) + strings.ReplaceAll(step, "#", fmt.Sprintf("%s%d", name, i)) + "; ")
		}
		return b.String() + fmt.Sprintf("%%s%s%d%%s", name, length)
	}
	kinds := []func() string{
		func() string { return nested(pick("(", "((", "( "), "true", pick(")", "))")) },
		func() string { return nested(pick("!", "not ", "!!", "-", "+ ", "not not "), "true", "") },
		func() string { return nested(pick("[", "[[", "[(", "{a: "), "1", "") + " == 1" },
		func() string { return nested(pick("abs(", "len(", "max(1, ", "int("), "1", ")") + " > 0" },
		func() string { return nested("true ? true : (", "true", ")") },
		func() string { return "1" + strings.Repeat(pick("+1", "*2", "-1"), between(501, 1500)) + " > 0" },
		func() string {
			return strings.Repeat(pick("true and ", "true or ", "members != members ? false : "), between(300, 120*3)) + "true"
		},
		func() string {
			loop := pick("all", "any", "none", "one")
			return strings.Repeat(loop+"(members, ", between(3, 30)) + ".on" + strings.Repeat(")", 3)
		},
		func() string {
			return pick("all", "any", "count", "sum") + "(members, let x = .load; any(members, .load > x + " + strconv.Itoa(r.IntN(1000)) + "))"
		},
		func() string {
			return fmt.Sprintf("len(map(members, %s(members, .load > %d))) > 0", pick("sortBy", "filter", "map", "groupBy"), r.IntN(1000))
		},
		func() string {
			return fmt.Sprintf(`len(repeat(repeat("x", %d), %d)) > 0`, between(1000, 900_000), between(1000, 900_000))
		},
		func() string {
			return fmt.Sprintf(`len(replace(repeat("a", %d), "a", repeat("b", %d))) > 0`, between(1000, 400_000), between(1000, 90_000))
		},
		func() string {
			return fmt.Sprintf(`any(members, .name + .name%s == "x")`, strings.Repeat(" + .name", between(1, 60)))
		},
		func() string {
			return `any(members, .name == "` + strings.Repeat(pick("x", "é", "😀"), between(300, 900)) + `")`
		},
		func() string { return fmt.Sprintf("len(%d..%d) > 0", r.IntN(10), between(1000, 1<<50)) },
		func() string {
			return fmt.Sprintf("sum(map(1..%d, map(1..%d, #))) > 0", between(1000, 1<<30), between(1000, 1<<30))
		},
		func() string {
			return "any(members, .name matches " + pick(".name", `"(a+)+$"`, `"a{1000}"`, `("a" + .name)`, `"`+strings.Repeat("(x|", 50)+`"`) + fmt.Sprintf(" or .load > %d)", r.IntN(1000))
		},
		func() string { return fmt.Sprintf(chain("s", `"x"`, "# + #"), "len(", ") > 0") },
		func() string { return fmt.Sprintf(chain("g", "members", "filter(#, any(#, .on))"), "len(", ") > 0") },
		func() string { return fmt.Sprintf(chain("l", "[1]", "concat(#, #)"), "len(", ") > 0") },
		func() string { return fmt.Sprintf(chain("m", "[1]", "[#, #]"), "len(", ") > 0") },
		func() string {
			return fmt.Sprintf("%s(members, .on) > %d", pick("groupBy", "reduce", "keys", "toPairs", "flatten", "fromJSON", "toJSON", "now", "env", "get", "median", "sort"), r.IntN(1000))
		},
		func() string { return strings.Repeat(pick("#", "@", "$", "`", "\\", "§"), between(1, 200)) },
		func() string {
			return "true" + strings.Repeat(" ", between(1, 50)) + strings.Repeat(pick(")", "]", "}", "\""), between(1, 100))
		},
	}
	seen := map[string]bool{}
	var list []string
	for i := 0; len(list) < n; i++ {
		if src := kinds[i%len(kinds)](); !seen[src] {
			seen[src] = true
			list = append(list, src)
		}
	}
	return list
}

// deadlyConditions are the conditions that were seen to kill or to stall a process.
func deadlyConditions() []string {
	var doubling strings.Builder
	doubling.WriteString("let a0 = \"x\"; ")
	for i := range 26 {
		fmt.Fprintf(&doubling, "let a%d = a%d + a%d; ", i+1, i, i)
	}
	return []string{
		`len(repeat(repeat("x",900000),900000)) > 0`,
		`len(replace(repeat("a",400000),"a",repeat("b",90000))) > 0`,
		strings.Repeat("(", 1_000_000), strings.Repeat("!", 1_000_000), strings.Repeat("[", 1_000_000),
		doubling.String() + "len(a26) > 0",
		"all(members, all(members, all(members, .on)))",
		"any(members, .name matches .name)",
		"len(map(1..1000, map(1..1000, #))) > 0", "len(map(members, sortBy(members, .load))) > 0", "len(concat(members, members)) > 0",
		"1..9223372036854775807", `repeat("x", 1000000) == ""`, `fromJSON("[[[[") == 1`,
	}
}

// withCondition is a configuration with a condition as a block of lines.
func withCondition(condition string) string {
	var lines strings.Builder
	for len(condition) > 4000 {
		lines.WriteString("          " + condition[:4000] + "\n")
		condition = condition[4000:]
	}
	lines.WriteString("          " + condition + "\n")
	return "synchronizers:\n  g:\n    members: {group: w}\n    state: {load: float, on: bool}\n    predicates:\n      p:\n        signal: {kind: cancel, region: r}\n        when: |-\n" + lines.String()
}

// TestHostileConditions checks a file for each condition, all in one command: all
// are refused at their place, in no more than a few times what good ones take.
func TestHostileConditions(t *testing.T) {
	t.Parallel()
	conditions := append(deadlyConditions(), hostileConditions(rand.New(rand.NewPCG(1, 2)), 200)...)
	dir := t.TempDir()
	var hostile, good []string
	for i, c := range conditions {
		src := withCondition(c)
		hostile = append(hostile, writeFile(t, dir, fmt.Sprintf("hostile%d.yaml", i), src))
		good = append(good, writeFile(t, dir, fmt.Sprintf("good%d.yaml", i), goodOfSize(min(len(src), 1<<20-1000))))
	}
	_, code, stdout, stderr := checkFiles(t, hostile)
	if code != exitFailure || stdout != "" {
		t.Errorf("exit %d, these are accepted:\n%s", code, stdout)
	}
	told := map[string]bool{}
	for line := range strings.Lines(stderr) {
		if file, _, ok := strings.Cut(line, ":"); ok && placed.MatchString(line) {
			told[file] = true
		}
	}
	for i, file := range hostile {
		if !told[file] {
			t.Errorf("no place is told for %.200s", conditions[i])
		}
	}
	compareTimes(t, hostile, good)
}

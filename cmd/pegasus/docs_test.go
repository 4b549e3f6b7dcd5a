package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsAreDocumented renders the tables of flags of docs/cli.md from the commands. A table
// stands between <!-- flags: pegasus run --> and <!-- end of flags -->, in the part of its command.
// Its third column is written by hand and kept. A table "pegasus node, beside pegasus status" has
// the flags that differ from the flags of status, and one row with the names of the others. A command
// without a table has the flags of "pegasus status".
func TestFlagsAreDocumented(t *testing.T) {
	const path = "../../docs/cli.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]*cobra.Command{}
	for list := newRoot().Commands(); len(list) > 0; list = list[1:] {
		list = append(list, list[0].Commands()...)
		commands[list[0].CommandPath()] = list[0]
	}
	table := regexp.MustCompile(`(?s)<!-- flags: ([^,>]+)(?:, beside ([^>]+))? -->\n(.*?)<!-- end of flags -->\n`)
	tables := map[string]bool{}
	page := table.ReplaceAllStringFunc(string(raw), func(old string) string {
		m := table.FindStringSubmatch(old)
		cmd, beside := commands[m[1]], commands[m[2]]
		if cmd == nil || m[2] != "" && beside == nil {
			t.Fatalf("docs/cli.md has flags of %q beside %q: there is no such command", m[1], m[2])
		}
		tables[m[1]] = true
		marker, _, _ := strings.Cut(old, "\n")
		return marker + "\n" + flagTable(t, cmd, beside, m[3]) + "<!-- end of flags -->\n"
	})
	if flag.Lookup("rewrite").Value.String() == "true" && !t.Failed() {
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if page != string(raw) {
		t.Error("docs/cli.md has other tables of flags than the commands: go test ./cmd/pegasus -run TestFlagsAreDocumented -rewrite")
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(page, "\n## ") {
		title, text, _ := strings.Cut(part, "\n")
		parts[title] = text
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		cmd := commands[name]
		if onlyGroups := cmd.HasSubCommands() && !cmd.HasLocalFlags(); onlyGroups || !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		words := strings.TrimPrefix(name, "pegasus ")
		part, ok := parts[words]
		if !ok {
			part, ok = parts[strings.Fields(words)[0]]
		}
		if !ok || !strings.Contains(part, name) {
			t.Errorf("docs/cli.md has no part with %s", name)
		}
		if table := "<!-- flags: " + name; tables[name] && name != "pegasus status" && !strings.Contains(part, table) {
			t.Errorf("docs/cli.md has the flags of %s in another part", name)
		}
		if rows, _ := flagRows(cmd, commands["pegasus status"]); !tables[name] && len(rows) > 0 {
			t.Errorf("docs/cli.md has no table of flags of %s, which has %v", name, slices.Sorted(maps.Keys(rows)))
		} else if !tables[name] && cmd.LocalFlags().Lookup("nats") != nil && !strings.Contains(part, "(#asking-a-run)") {
			t.Errorf("docs/cli.md does not say that the flags of %s are in asking a run", name)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if len(f.Usage) > 120 {
				t.Errorf("--%s of %s has %d characters of usage: use at most 120, and move the rest into the notes of docs/cli.md", f.Name, name, len(f.Usage))
			}
		})
	}
	if len(tables) < 20 {
		t.Errorf("docs/cli.md has only %d tables of flags", len(tables))
	}
}

// flagRows returns the first two cells of each flag of cmd by its name, and the names of the
// flags that beside, if it is not nil, has with the same cells.
func flagRows(cmd, beside *cobra.Command) (rows map[string]string, same []string) {
	other := map[string]string{}
	if beside != nil {
		other, _ = flagRows(beside, nil)
	}
	rows = map[string]string{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, _ := pflag.UnquoteUsage(f)
		switch {
		case f.NoOptDefVal != "" && f.Value.Type() != "bool":
			value = "[=" + cmp.Or(value, f.NoOptDefVal) + "]"
		case value != "":
			value = " " + value
		}
		first := "`--" + f.Name + value + "`"
		if f.Shorthand != "" {
			first = "`-" + f.Shorthand + "`, " + first
		}
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.AddFlag(f)
		_, usage, _ := strings.Cut(strings.TrimSpace(one.FlagUsages()), "   ")
		row := "| " + escapeCell(first) + " | " + escapeCell(strings.TrimSpace(usage)) + " |"
		if other[f.Name] == row {
			same = append(same, "`--"+f.Name+"`")
			return
		}
		rows[f.Name] = row
	})
	return rows, same
}

// escapeCell returns text as it stands in a cell of a table.
func escapeCell(text string) string {
	return strings.ReplaceAll(text, "|", `\|`)
}

var (
	flagName = regexp.MustCompile("^\\| (?:`-.`, )?`--([a-z0-9-]+)")
	flagNote = regexp.MustCompile(`(?:[^|\\]|\\.)*\|$`)
)

// flagTable returns the table of the flags of cmd, with the notes of the old one.
func flagTable(t *testing.T, cmd, beside *cobra.Command, old string) string {
	t.Helper()
	rows, same := flagRows(cmd, beside)
	notes := map[string]string{}
	for line := range strings.Lines(old) {
		line = strings.TrimSpace(line)
		name, note := flagName.FindStringSubmatch(line), strings.TrimSpace(strings.TrimSuffix(flagNote.FindString(line), "|"))
		switch {
		case name == nil:
		case strings.Contains(line, "| as for `"):
			notes["same"] = note
		case rows[name[1]] == "" && note != "":
			t.Errorf("docs/cli.md has a note on --%s of %s, which has no such flag: remove the row, or move its note", name[1], cmd.CommandPath())
		default:
			notes[name[1]] = note
		}
	}
	var out strings.Builder
	out.WriteString("| flag | help | notes |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		out.WriteString(strings.TrimSuffix(rows[name]+" "+notes[name], " ") + " |\n")
	}
	if len(same) > 0 {
		out.WriteString("| " + strings.Join(same, ", ") + " | as for `" + beside.CommandPath() + "` | " + notes["same"] + " |\n")
	}
	return out.String()
}

// TestManPages writes them where nothing is yet.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if code, stdout, stderr := execute(t, "man", dir); code != exitOK || stdout+stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "pegasus-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`.TH "PEGASUS-RUN" "1"`, "pegasus-run - Run the synchronizers", `\fB--http\fP`} {
		if !strings.Contains(string(page), text) {
			t.Errorf("the page has no %q:\n%s", text, page)
		}
	}
	if hidden, err := filepath.Glob(filepath.Join(dir, "pegasus-man*")); err != nil || hidden != nil {
		t.Errorf("pages of hidden commands: %v, %v", hidden, err)
	}
	file := filepath.Join(dir, "pegasus.1")
	if code, _, stderr := execute(t, "man", file); code != exitFailure || !strings.HasPrefix(stderr, "pegasus: mkdir "+file) {
		t.Errorf("into a file: exit %d, %q", code, stderr)
	}
}

// TestCompletion asks as a shell does.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"run ":                              "yaml yml :8",
		"run " + goodConfig + " --name ":    "gsync :4",
		"run " + goodConfig + " --member":   "--members :4",
		"run " + goodConfig + " --members ": "gsync=2 :4",
		"run " + levelsConfig + " --name ":  "gsync other :4",
		"run missing.yaml --name ":          ":4",
		"run --name ":                       ":4",
		"run --timeline ":                   "utc utc-smeared :4",
		"detect --modality ":                "inst definitely possibly atleast :4",
		"completion ":                       "bash fish powershell zsh :4",
		"health ":                           ":4",
		"hea":                               "health :4",
	} {
		code, stdout, _ := execute(t, append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
		if got := strings.Join(strings.Fields(stdout), " "); code != exitOK || got != want {
			t.Errorf("%q: exit %d, %q, want %q", line, code, got, want)
		}
	}
	for shell := range shells {
		code, stdout, stderr := execute(t, "completion", shell)
		if code != exitOK || !strings.Contains(stdout, "__complete") || stderr != "" {
			t.Errorf("%s: exit %d, %d bytes, %q", shell, code, len(stdout), stderr)
		}
	}
}

// TestConfigPage wants every key of the configuration in a table of docs/config.md,
// and that check accepts its first example.
func TestConfigPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	code, stdout, stderr := execute(t, "config", "schema")
	var schema any
	if err := json.Unmarshal([]byte(stdout), &schema); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v, %s", code, err, stderr)
	}
	var tables strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `") {
			tables.WriteString(line)
		}
	}
	keys := map[string]bool{}
	properties(schema, keys)
	if len(keys) < 30 {
		t.Errorf("the schema has the keys %v", keys)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inTable := regexp.MustCompile("`[^`]*\\b" + key + "\\b[^`]*`").MatchString(tables.String())
		if !inTable && !strings.Contains(page, "one key, `"+key+"`") && key != "default" {
			t.Errorf("docs/config.md has no key %s in a table", key)
		}
	}
	_, example, _ := strings.Cut(page, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	file := filepath.Join(t.TempDir(), "pegasus.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := execute(t, "check", "--strict", file); code != exitOK {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// properties collects the keys that a JSON Schema names.
func properties(schema any, keys map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, x := range s {
			properties(x, keys)
		}
	case map[string]any:
		for name, x := range s {
			if named, ok := x.(map[string]any); ok && name == "properties" {
				for key := range named {
					keys[key] = true
				}
			}
			properties(x, keys)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestLinks follows the links between the pages, to their headings.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	anchors, texts := map[string][]string{}, map[string]string{}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(raw)
		for _, h := range heading.FindAllStringSubmatch(string(raw), -1) {
			anchor := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
			anchors[page] = append(anchors[page], anchor)
		}
	}
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`") // Go has [ ]( ), too.
	followed := 0
	for _, page := range pages {
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(texts[page], ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			followed++
			path, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, l[1])
			} else if anchor != "" && !slices.Contains(anchors[target], anchor) {
				t.Errorf("%s: %s has no heading for %s, it has %v", page, target, l[1], anchors[target])
			}
		}
	}
	if followed < 50 {
		t.Errorf("only %d links were found", followed)
	}
}

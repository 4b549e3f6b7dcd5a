package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsAreDocumented wants every subcommand that help shows in docs/cli.md, and its
// flags in the part that has its name.
func TestFlagsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(string(raw), "\n## ") {
		title, text, _ := strings.Cut(part, "\n")
		parts[title] = text
	}
	flags := 0
	for list := newRoot().Commands(); len(list) > 0; list = list[1:] {
		cmd := list[0]
		list = append(list, cmd.Commands()...)
		path := strings.TrimPrefix(cmd.CommandPath(), "pegasus ")
		part, ok := parts[path]
		if !ok {
			part, ok = parts[strings.Fields(path)[0]]
		}
		if strings.Contains(part, "(#asking-a-run)") {
			part += parts["Asking a run"]
		}
		if onlyGroups := cmd.HasSubCommands() && !cmd.HasLocalFlags(); onlyGroups || !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		if !ok || !strings.Contains(part, "pegasus "+path) {
			t.Errorf("docs/cli.md has no part with pegasus %s", path)
			continue
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if flags++; !f.Hidden && f.Name != "help" && !regexp.MustCompile("--"+f.Name+`\b`).MatchString(part) {
				t.Errorf("docs/cli.md does not have --%s of pegasus %s", f.Name, path)
			}
		})
	}
	if flags < 100 {
		t.Errorf("only %d flags were looked for", flags)
	}
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
// and its first example to be one that check takes.
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

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/worksim"
)

// TestWorkSimPage runs what docs/cli.md shows of work sim, and wants every key of a scenario there.
func TestWorkSimPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(raw), "\n## work sim\n")
	page, _, _ = strings.Cut(page, "\n## ")
	_, shown, _ := strings.Cut(page, "\n$ pegasus work sim farm16.yaml\n")
	want, _, ok := strings.Cut(shown, "```\n")
	code, stdout, stderr := execute(t, "work", "sim", filepath.FromSlash("../../internal/worksim/testdata/farm16.yaml"))
	if !ok || code != exitOK || stderr != "" || stdout != want {
		t.Errorf("exit %d, %s\n%s\nthe page has\n%s", code, stderr, stdout, want)
	}
	_, scenario, _ := strings.Cut(page, "```yaml\n")
	scenario, _, _ = strings.Cut(scenario, "```\n")
	if _, err := worksim.Parse("page.yaml", []byte(scenario)); err != nil {
		t.Error(err)
	}
	keys := 0
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[config.Work]() {
			return
		}
		for f := range of.Fields() {
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" {
				if keys++; !regexp.MustCompile("[`.{]" + key + "[`.:]").MatchString(page) {
					t.Errorf("the page has no key %q of %v", key, of)
				}
			}
			look(f.Type)
		}
	}
	if look(reflect.TypeFor[worksim.Scenario]()); keys < 30 {
		t.Errorf("only %d keys were looked for", keys)
	}
}

package configs_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/internal/ruletest"
	"github.com/gopegasus/pegasus/synchronizer"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	src, err := configs.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestFiles loads each configuration without a warning, and runs the rule tests
// that each has beside it.
func TestFiles(t *testing.T) {
	files, err := fs.Glob(configs.Files, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.yaml") {
			continue
		}
		cfg, err := synchronizer.ParseConfig(name, read(t, name))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, w := range cfg.Warnings() {
			t.Errorf("%v", &w)
		}
		rules := strings.TrimSuffix(name, ".yaml") + "_test.yaml"
		tests, err := ruletest.Parse(rules, read(t, rules), func(path string) (string, []byte, error) {
			src, err := configs.Files.ReadFile(path)
			return path, src, err
		})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, test := range tests.Tests {
			r := test.Run()
			for i := range r.Failures {
				t.Errorf("%s\n%v", test.Name, &r.Failures[i])
			}
		}
	}
}

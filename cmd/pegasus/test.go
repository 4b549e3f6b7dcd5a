package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/ruletest"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

const testHelp = `test runs the rule tests of files: timelines of members' states, the clocks and
the network between them, and what the predicates of a configuration have to
come to. It runs them in a simulated world: nothing is started, no time is
waited for, and the result is the same each time.

Exit codes: 0 every test has passed, 1 a test has failed or a file is refused,
2 wrong usage.`

type testFlags struct {
	run, junit    string
	svg           string // directory of pictures
	json, verbose bool
}

func newTest() *cobra.Command {
	var flags testFlags
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Test the rules of a configuration",
		Long:  testHelp,
		Example: `  pegasus test pegasus_test.yaml
  pegasus test --run 'idle' -v pegasus_test.yaml
  pegasus test --junit report.xml configs/*_test.yaml`,
		Args:              someArguments("test needs a file of rule tests: pegasus test pegasus_test.yaml"),
		ValidArgsFunction: configFiles(),
		RunE:              func(cmd *cobra.Command, files []string) error { return runTests(cmd, files, &flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.run, "run", "", "run only the tests whose names match the regular `EXPRESSION`, in the syntax of Go")
	f.StringVar(&flags.junit, "junit", "", "write the results as JUnit to `FILE`")
	f.StringVar(&flags.svg, "svg", "", "draw each failure: write an SVG file into `DIR` (default no files)")
	f.BoolVar(&flags.json, "json", false, "print one JSON object a file")
	f.BoolVarP(&flags.verbose, "verbose", "v", false, "print everything that happened in each test")
	return cmd
}

func runTests(cmd *cobra.Command, files []string, flags *testFlags) error {
	only, err := regexp.Compile(flags.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	suites, passed, failed, refused := make([]ruletest.Suite, len(files)), 0, 0, false
	for i, path := range files {
		s := &suites[i]
		s.Name = path
		var file *ruletest.File
		if file, s.Err = loadTests(path); s.Err != nil {
			refused = true
			continue
		}
		for _, t := range file.Tests {
			if !only.MatchString(t.Name) {
				continue
			}
			r := t.Run()
			if s.Results = append(s.Results, r); r.OK() {
				passed++
			} else {
				failed++
			}
		}
	}
	if passed+failed == 0 && !refused {
		return fmt.Errorf("--run: no test has a name that matches %q", flags.run)
	}
	if flags.svg != "" {
		if err := drawFailures(flags.svg, suites); err != nil {
			return fail(fmt.Errorf("--svg: %w", err))
		}
	}
	if flags.junit != "" {
		if err := os.WriteFile(flags.junit, ruletest.JUnit(suites), 0o666); err != nil { //nolint:gosec // A report is for everybody, as the umask allows.
			return fail(fmt.Errorf("--junit: %w", err))
		}
	}
	if err := printTests(cmd, suites, flags, passed, failed); err != nil {
		return fail(err)
	}
	if refused || failed > 0 {
		return errTold
	}
	return nil
}

// drawFailures writes a file for each failure, named by the file of the test and by line and column of the expectation.
func drawFailures(dir string, suites []ruletest.Suite) error {
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // As a report.
		return err
	}
	for _, s := range suites {
		for _, r := range s.Results {
			for i := range r.Failures {
				f := &r.Failures[i]
				name := fmt.Sprintf("%s-%d-%d.svg", strings.ReplaceAll(filepath.ToSlash(filepath.Clean(s.Name)), "/", "_"), f.Line, f.Column)
				f.Drawn = filepath.Join(dir, name)
				if err := os.WriteFile(f.Drawn, []byte(f.SVG()), 0o666); err != nil { //nolint:gosec // As a report.
					return err
				}
			}
		}
	}
	return nil
}

// loadTests reads a file of tests, and the configuration beside it.
func loadTests(path string) (*ruletest.File, error) {
	src, err := readYAML(path)
	if err != nil {
		return nil, fmt.Errorf("rule tests: %w", err)
	}
	return ruletest.Parse(path, src, func(config string) (string, []byte, error) {
		if !filepath.IsAbs(config) {
			config = filepath.Join(filepath.Dir(path), config)
		}
		src, err := readYAML(config)
		return config, src, err
	})
}

func printTests(cmd *cobra.Command, suites []ruletest.Suite, flags *testFlags, passed, failed int) error {
	out := cmd.OutOrStdout()
	if flags.json {
		return testsJSON(out, suites)
	}
	for _, s := range suites {
		if s.Err != nil {
			_ = told(cmd.ErrOrStderr(), s.Err) // The others are printed all the same.
		}
		for _, r := range s.Results {
			if _, err := io.WriteString(out, resultText(s.Name, r, flags.verbose)); err != nil {
				return err
			}
		}
	}
	if passed+failed == 0 {
		return nil // Nothing but files that are refused.
	}
	line := show.Count(passed+failed, "test") + " passed"
	if failed > 0 {
		line = fmt.Sprintf("%s: %d passed, %d failed", show.Count(passed+failed, "test"), passed, failed)
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

func resultText(file string, r *ruletest.Result, verbose bool) string {
	var b strings.Builder
	word := "PASS"
	if !r.OK() {
		word = "FAIL"
	}
	fmt.Fprintf(&b, "%s %s: %s", word, file, r.Test.Name)
	if r.Seed > 1 && !r.OK() {
		fmt.Fprintf(&b, " (seed %d)", r.Seed)
	}
	b.WriteString("\n")
	for _, f := range r.Failures {
		if verbose {
			f.Log = nil // All of it follows.
		}
		b.WriteString(f.String())
	}
	if verbose {
		if !r.OK() {
			b.WriteString("  what happened:\n")
		}
		for _, line := range r.Log {
			b.WriteString("    " + line + "\n")
		}
	}
	return show.PrintableLines(b.String())
}

// testsJSON prints an object a file.
func testsJSON(out io.Writer, suites []ruletest.Suite) error {
	type result struct {
		Name     string             `json:"name"`
		Line     int                `json:"line"`
		OK       bool               `json:"ok"`
		Seed     uint64             `json:"seed"`
		Failures []ruletest.Failure `json:"failures"`
	}
	type suite struct {
		File   string           `json:"file"`
		OK     bool             `json:"ok"`
		Faults []yamlconf.Fault `json:"faults"`
		Tests  []result         `json:"tests"`
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for _, s := range suites {
		o := suite{File: s.Name, OK: s.Err == nil, Faults: faultList(s.Name, s.Err), Tests: []result{}}
		for _, r := range s.Results {
			o.Tests = append(o.Tests, result{r.Test.Name, r.Test.Line, r.OK(), r.Seed, append([]ruletest.Failure{}, r.Failures...)})
			o.OK = o.OK && r.OK()
		}
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

package ruletest

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// shown is how many lines about its subject a failure shows.
const shown = 20

// String gives the failure as it is printed: the place with a caret, the wanted and the found
// value, and what happened on the way.
func (f *Failure) String() string {
	place := yamlconf.Fault{
		File: f.File, Pos: yamlconf.Pos{Line: f.Line, Column: f.Column}, Source: f.Source,
		Message: "not as expected",
	}
	var b strings.Builder
	b.WriteString(place.String() + "\n")
	for _, w := range f.Want {
		b.WriteString("  - expected " + w + "\n")
	}
	for _, g := range f.Got {
		b.WriteString("  + got      " + g + "\n")
	}
	if f.Drawn != "" {
		b.WriteString("  picture: " + f.Drawn + "\n")
	}
	if len(f.Log) > 0 {
		b.WriteString("  what happened:\n")
	}
	for i, line := range f.Log {
		if i == shown {
			fmt.Fprintf(&b, "    and %d more lines, see -v\n", len(f.Log)-shown)
			break
		}
		b.WriteString("    " + line + "\n")
	}
	return b.String()
}

// Message gives the wanted and the found value on one line.
func (f *Failure) Message() string {
	return "expected " + strings.Join(f.Want, ", ") + "; got " + strings.Join(f.Got, ", ")
}

// Suite is the results of a file.
type Suite struct {
	Name    string
	Err     error // why the file was refused; then there are no results
	Results []*Result
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit gives results in the form that CI systems read: a suite a file, a case a
// test. A file that was refused is one case with an error.
func JUnit(suites []Suite) []byte {
	var all junitSuites
	for _, s := range suites {
		js := junitSuite{Name: s.Name, Tests: len(s.Results)}
		if s.Err != nil {
			js.Tests, js.Errors = 1, 1
			js.Cases = []junitCase{{Name: s.Name, Class: s.Name, File: s.Name, Error: &junitProblem{"the file is refused", s.Err.Error()}}}
		}
		for _, r := range s.Results {
			c := junitCase{Name: r.Test.Name, Class: s.Name, File: s.Name, Line: r.Test.Line}
			if !r.OK() {
				js.Failures++
				c.Failure = &junitProblem{Message: r.Failures[0].Message()}
				for i := range r.Failures {
					c.Failure.Text += r.Failures[i].String()
				}
			}
			js.Cases = append(js.Cases, c)
		}
		all.Suites = append(all.Suites, js)
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("ruletest: results do not encode: %v", err))
	}
	return append([]byte(xml.Header), append(out, '\n')...)
}

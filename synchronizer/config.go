package synchronizer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/executor"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// maxConfigBytes is one byte more than a configuration may have.
const maxConfigBytes = 1<<20 + 1

// Config is a checked configuration of all levels. It does not change and may
// be used for several synchronizers.
type Config struct {
	name  string
	hash  string // of the text
	plans plan.Levels
}

// Override changes a configuration as it is loaded; see [Members].
type Override = plan.Override

// Members replaces the number of members that the named synchronizer awaits, as
// a flag of a program does.
func Members(synchronizer string, count int) Override {
	return Override{Synchronizer: synchronizer, Count: count}
}

// LoadConfig reads and checks a configuration file. The error lists every fault
// of the file with line, column and a caret.
func LoadConfig(path string, overrides ...Override) (*Config, error) {
	src, err := read("configuration", path)
	if err != nil {
		return nil, err
	}
	return ParseConfig(path, src, overrides...)
}

func read(what, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: give the path of a YAML file", what, err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	src, err := io.ReadAll(io.LimitReader(f, maxConfigBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return src, nil
}

// ParseConfig checks a configuration that is in memory; name stands for the
// file in its faults.
func ParseConfig(name string, src []byte, overrides ...Override) (*Config, error) {
	plans, err := configfile.Parse(name, src, overrides...)
	if err != nil {
		return nil, err
	}
	return newConfig(name, src, plans), nil
}

func newConfig(name string, src []byte, plans plan.Levels) *Config {
	sum := sha256.Sum256(src)
	return &Config{name, hex.EncodeToString(sum[:8]), plans}
}

// LoadProgram reads and checks a file with a program and the synchronizer that runs
// it, as LoadConfig does.
func LoadProgram(path string, overrides ...Override) (*Config, error) {
	src, err := read("program", path)
	if err != nil {
		return nil, err
	}
	return ParseProgram(path, src, overrides...)
}

// ParseProgram checks a program that is in memory; name stands for the file in its
// faults. The only synchronizer of processes in it runs the program, or one for the
// group "processors" where it declares none.
func ParseProgram(name string, src []byte, overrides ...Override) (*Config, error) {
	file, err := configfile.ParseToRun(name, src, overrides...)
	if err != nil {
		return nil, err
	}
	return newConfig(name, src, plan.Levels{file.Host}), nil
}

// FormatProgram writes the file of a program that is a Go value: for people, for
// "pegasus program", and for [ParseProgram], which is how a Go program runs it.
// synchronizers is the text of the file's section of that name, and may be empty; name
// stands for it in its faults. Faults of the program tell the constructs they are in, as
// in body.seq[1].par. A file holds about 60 constructs inside each other and 1 MiB.
func FormatProgram(name string, synchronizers []byte, p *program.Program) ([]byte, error) {
	return configfile.FormatFile(name, synchronizers, p)
}

// Program is the plan of the program that a configuration of [LoadProgram] or
// [ParseProgram] is of, and nil for others.
func (c *Config) Program() *program.Compiled {
	p, _ := c.plans[0].Program.(executor.Program)
	return p.Compiled
}

// Warning is something in a configuration that can be run and is likely a
// mistake, with its place.
type Warning = yamlconf.Fault

// Warnings lists what "pegasus check" warns of, in the order of the file. None of
// it keeps a synchronizer from starting.
func (c *Config) Warnings() []Warning {
	return c.advice(func(p *plan.Level) []Warning { return p.Warnings })
}

// Notes lists what "pegasus check" notes, in the order of the file: text that is better written
// in another way. No note is a mistake.
func (c *Config) Notes() []Warning {
	return c.advice(func(p *plan.Level) []Warning { return p.Notes })
}

func (c *Config) advice(of func(*plan.Level) []Warning) []Warning {
	var list []Warning
	for _, p := range c.plans {
		list = append(list, of(p)...)
	}
	slices.SortStableFunc(list, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
	return list
}

// Hash tells texts of configurations apart: 16 hexadecimal digits of the SHA-256 of
// the text, which overrides do not change.
func (c *Config) Hash() string { return c.hash }

// Level describes one synchronizer of a configuration.
type Level struct {
	Name       string   // of the synchronizer
	Parent     string   // empty at the top
	Group      string   // whose members it has; empty if they are threads of a process
	Count      int      // members awaited before the first epoch
	Predicates []string // by name
	Work       bool     // it has a section work, whose predicate end is one of Predicates
	Redacted   []string // fields and variables whose values are not shown, as expressions read them without the first dot
}

// Levels lists the synchronizers of the configuration, parents before children.
func (c *Config) Levels() []Level {
	levels := make([]Level, len(c.plans))
	for i, p := range c.plans {
		levels[i] = Level{p.Name, p.Parent, p.Members.Group, p.Members.Count, p.Predicates(), p.Work != nil, p.Redacted()}
	}
	return levels
}

// planOf finds the synchronizer to run: the named synchronizer, or the only synchronizer that
// does not run inside its members.
func (c *Config) planOf(name string) (*plan.Level, error) {
	var names []string
	for _, p := range c.plans {
		if p.Members.Threads {
			if p.Name == name {
				return nil, fmt.Errorf("synchronizer %q is a thread-level one: it runs inside the members of %q", name, p.Parent)
			}
			continue
		}
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	switch {
	case name != "":
		return nil, fmt.Errorf("%s has no synchronizer %q: it has %s", c.name, name, strings.Join(names, ", "))
	case len(names) > 1:
		return nil, fmt.Errorf("%s has several synchronizers: name one of %s", c.name, strings.Join(names, ", "))
	case len(names) == 0:
		return nil, errors.New(c.name + " has no synchronizer to run: all are thread-level ones")
	}
	return c.plans.Get(names[0]), nil
}

package scgs

import (
	"fmt"
	"strings"
)

// Match checks the fields of a program's state type against the declared state and names the
// first that does not fit. A string field of the program may carry an enum, and a declared
// field with a default may be missing.
func (s Schema) Match(program Schema) error {
	for _, f := range program {
		i := s.Index(f.Name)
		if i < 0 {
			return fmt.Errorf("field %q of the program's state is not declared: declared are %s", f.Name, s.Names())
		}
		if d := s[i]; !d.Carries(f.Type) {
			return fmt.Errorf("field %q is declared as %s, the program's state has %s", f.Name, d.Type, f.Type)
		}
	}
	for _, d := range s {
		if program.Index(d.Name) < 0 && d.Default.Type() == Invalid {
			return fmt.Errorf("the declared field %q has no default and is missing in the program's state, which has %s", d.Name, program.Names())
		}
	}
	return nil
}

// Names lists the names of the fields for people: "phase, load", or "no fields".
func (s Schema) Names() string {
	if len(s) == 0 {
		return "no fields"
	}
	names := make([]string, len(s))
	for i, f := range s {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

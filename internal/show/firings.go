package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/monitor"
)

// Firings says which lines of predicates are shown.
type Firings struct {
	Predicates []string // those of these alone, and all of them; none: those that send signals
	Verbose    bool     // all of all predicates
}

// Check refuses the name of a predicate that is not there.
func (f *Firings) Check(known []string) error {
	if i := slices.IndexFunc(f.Predicates, func(name string) bool { return !slices.Contains(known, name) }); i >= 0 {
		name, hint := f.Predicates[i], "there are "+cmp.Or(strings.Join(known, ", "), "none")
		if near := nearest.Name(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near, hint)
		}
		return fmt.Errorf("--predicate %q: no synchronizer of this run has a predicate of that name: %s", name, hint)
	}
	return nil
}

// Shows reports whether a line about a predicate is shown. Silent are firings of predicates that only set memory.
func (f *Firings) Shows(predicate string, silent bool) bool {
	if len(f.Predicates) > 0 {
		return slices.Contains(f.Predicates, predicate)
	}
	return f.Verbose || !silent
}

// ShowsLine is Shows for a line that a watcher is told.
func (f *Firings) ShowsLine(l *monitor.Line) bool {
	switch b := l.Body.(type) {
	case *monitor.VerdictLine:
		return f.Shows(b.Predicate, b.Firing != nil && b.Silent)
	case *monitor.SignalLine:
		return f.Shows(b.Predicate, false)
	default:
		return true
	}
}

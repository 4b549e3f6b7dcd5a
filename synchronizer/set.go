package synchronizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
)

// Set gives a parameter of the configuration a value as it is loaded, written as in the
// file, as "pegasus run --set" does.
func Set(param, value string) Override { return Override{Param: param, Value: value} }

// Setting asks for values of parameters while a synchronizer runs.
type Setting struct {
	Values map[string]string `json:"values,omitempty"` // by name, written as in the file
	Reset  []string          `json:"reset,omitempty"`  // these have the value again that the file, or the command, gives them
	By     string            `json:"by,omitempty"`     // who asks, for people; at most 200 bytes
}

// maxBy bounds the text that names the caller.
const maxBy = 200

// Set gives parameters other values while the synchronizer runs, between two inputs: all of
// them or, with an error, none. It returns what has changed, a short text each. Predicates
// stand as they stood and are judged with the new values at once; one whose hold time,
// cooldown or another number is a parameter that has changed begins again as after
// [Synchronizer.Reload], and so does one with runs of its own that reads one. The values are
// a part of the journal, stay over reloads and takeovers, and are kept in Options.State for
// the next start. It must not be called by the observer, and fails as Reload does.
func (s *Synchronizer) Set(what Setting) ([]string, error) { return s.setBy(what, "") }

// setBy is Set for another process. The person is proven by the subject, where the server has permissions.
func (s *Synchronizer) setBy(what Setting, person string) ([]string, error) {
	if len(what.By) > maxBy || !utf8.ValidString(what.By) || strings.ContainsFunc(what.By, unicode.IsControl) {
		return nil, fmt.Errorf("synchronizer %q: set: the caller's name must be at most %d bytes of plain text", s.name, maxBy)
	}
	var changes []string
	err := s.callOwner("set", func(l *loop) error {
		var err error
		changes, err = l.set(&what, person)
		return err
	})
	return changes, err
}

// set has the core follow the active configuration with other values.
func (l *loop) set(what *Setting, person string) ([]string, error) {
	source := *l.level.Source
	source.Overrides = slices.DeleteFunc(slices.Clone(source.Overrides), func(o plan.Override) bool {
		_, again := what.Values[o.Param]
		return o.Live && (again || slices.Contains(what.Reset, o.Param))
	})
	for _, name := range what.Reset {
		if !slices.ContainsFunc(l.level.Params, func(p config.Param) bool { return p.Field.Name == name }) {
			return nil, fmt.Errorf("synchronizer %q: set: the configuration declares no parameter %q", l.name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(what.Values)) {
		source.Overrides = append(source.Overrides, plan.Override{Param: name, Value: what.Values[name], Live: true})
	}
	next, err := configfile.Recompile(&source, l.name)
	if err == nil {
		next, err = l.addPredicates(next)
	}
	var changes []string
	if err == nil {
		changes, err = l.level.Changes(next)
	}
	if err != nil {
		return nil, fmt.Errorf("synchronizer %q: set: %w", l.name, err)
	}
	if err := l.store.keepParameters(source.Live()); err != nil {
		return nil, fmt.Errorf("synchronizer %q: set: %w", l.name, err)
	}
	for _, c := range changes {
		l.opt.Logger.Info("a parameter is set", "change", c, "by", what.By, "person", person)
	}
	l.input = synccore.Input{Kind: synccore.InLevel, Level: next, Person: person}
	l.stepCore(l.opt.now())
	return changes, nil
}

// carryValues is a level with the values that were set while it, or the level before it, ran. It
// drops and logs the values of parameters that the level does not declare.
func (s *Synchronizer) carryValues(level *plan.Level, live []plan.Override) (*plan.Level, error) {
	live = slices.DeleteFunc(slices.Clone(live), func(o plan.Override) bool {
		known := slices.ContainsFunc(level.Params, func(p config.Param) bool { return p.Field.Name == o.Param })
		if !known {
			s.opt.Logger.Warn("a parameter that was set is not declared any more", "param", o.Param, "value", o.Value)
		}
		return !known
	})
	if len(live) == 0 {
		return level, nil
	}
	source := *level.Source
	source.Overrides = slices.Concat(source.Overrides, live)
	next, err := configfile.Recompile(&source, level.Name)
	if err != nil {
		return nil, fmt.Errorf("a value stored by \"pegasus set\" is refused: %w: set it to another value, or take it back with \"pegasus set --reset\"", err)
	}
	return next, nil
}

// maxSetting bounds the text of a Setting.
const maxSetting = 64 << 10

// answerSet answers another process that sets parameters.
func (s *Synchronizer) answerSet(m bus.Message, person string) (any, error) {
	var what Setting
	if len(m.Data) > maxSetting {
		return nil, fmt.Errorf("synchronizer %q: set: at most %d bytes are taken, and these are %d", s.name, maxSetting, len(m.Data))
	}
	if err := json.Unmarshal(m.Data, &what); err != nil {
		return nil, fmt.Errorf("synchronizer %q: set: %w", s.name, err)
	}
	if len(what.Values) == 0 && len(what.Reset) == 0 {
		return nil, errors.New("nothing is to be set")
	}
	changes, err := s.setBy(what, person)
	if err != nil {
		return nil, err
	}
	return Changed{Synchronizer: s.name, Changes: changes}, nil
}

// Changed is the answer to a Setting, and to a request to reload.
type Changed struct {
	Synchronizer string   `json:"synchronizer"` // which has it
	Changes      []string `json:"changes"`      // a short text each; none if nothing is different
}

// keptParam is a parameter as the store has it.
type keptParam struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// keepParameters stores the parameters that were set.
func (st *store) keepParameters(live []plan.Override) error {
	if st == nil {
		return nil
	}
	var list []keptParam
	for _, o := range live {
		list = append(list, keptParam{o.Param, o.Value})
	}
	if slices.Equal(list, st.is.Params) {
		return nil
	}
	return st.changeContent(func(next *stored) { next.Params = list })
}

// liveParameters are the parameters that the store has.
func (st *store) liveParameters() []plan.Override {
	if st == nil {
		return nil
	}
	var list []plan.Override
	for _, p := range st.is.Params {
		list = append(list, plan.Override{Param: p.Name, Value: p.Value, Live: true})
	}
	return list
}

// checkParams refuses what could not have been stored.
func checkParams(list []keptParam) error {
	if len(list) > config.MaxParams {
		return fmt.Errorf("%d parameters, and a configuration has at most %d", len(list), config.MaxParams)
	}
	for _, p := range list {
		if len(p.Name) > scgs.MaxNameBytes || len(p.Value) > scgs.MaxTextBytes {
			return fmt.Errorf("the parameter %q is longer than any", p.Name[:min(len(p.Name), scgs.MaxNameBytes)])
		}
	}
	return nil
}

package tracedetect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// condition is the text of Options.Where or Options.When, compiled again whenever
// the type of a field becomes known.
type condition struct {
	name    string
	source  string
	prefix  string // what is compiled before the source
	members int    // that it is judged on at once, at most

	program *predicates.Expression
	scope   *predicates.Scope
}

// local makes state the name of the one member that a local condition is about.
const local = "let state = find(members, true); "

// The types that a field's first value can give it. Until there is one the field
// has no value, and any type will do that the condition makes sense with.
var guesses = []scgs.Type{scgs.Float, scgs.String, scgs.Bool}

// maxGuessed is the number of fields whose types can be guessed at once.
const maxGuessed = 8

// compile compiles the condition for the schema, in which some types may not be
// known.
func (c *condition) compile(schema scgs.Schema) error {
	guessed := c.guess(schema)
	if len(guessed) > maxGuessed {
		return fmt.Errorf("%s: it reads %d fields whose types are not known: declare them, as in role:string,load:float", c.name, len(guessed))
	}
	attempts := 1
	for range guessed {
		attempts *= len(guesses)
	}
	var worst fault
	for n := range attempts {
		for rest, i := n, 0; i < len(guessed); i++ {
			schema[guessed[i]].Type = guesses[rest%len(guesses)]
			rest /= len(guesses)
		}
		env := &predicates.Env{State: schema, MaxMembers: max(1, c.members)}
		program, err := env.Bool(c.prefix + c.source)
		if err == nil {
			c.program, c.scope = program, predicates.NewScope(env)
			return nil
		}
		worst.add(c.fault(env, err))
	}
	return fmt.Errorf("%s: %w", c.name, c.shift(worst.Error))
}

// fault is why an attempt failed: it makes sense as a value, but is neither true
// nor false; or it makes no sense, from some place on.
type fault struct {
	*predicates.Error
	value bool
}

func (c *condition) fault(env *predicates.Env, err error) fault {
	e, ok := errors.AsType[*predicates.Error](err)
	if !ok {
		panic(fmt.Sprintf("tracedetect: %q: %T: %v", c.source, err, err))
	}
	_, err = env.Value(c.prefix+c.source, scgs.Field{})
	return fault{e, err == nil}
}

// add keeps of two faults the one that says more: it has come further.
func (f *fault) add(g fault) {
	switch {
	case f.Error == nil, g.value && !f.value:
	case f.value && !g.value, g.Line < f.Line, g.Line == f.Line && g.Column <= f.Column:
		return
	}
	*f = g
}

// guess gives types to the fields that have none and returns those of them that
// the condition reads.
func (c *condition) guess(schema scgs.Schema) (guessed []int) {
	read := fieldsRead(c.source)
	for i := range schema {
		if schema[i].Type != scgs.Invalid {
			continue
		}
		schema[i].Type = guesses[0]
		if slices.Contains(read, schema[i].Name) {
			guessed = append(guessed, i)
		}
	}
	return guessed
}

// shift makes an error one of the source alone.
func (c *condition) shift(e *predicates.Error) *predicates.Error {
	shifted := *e
	shifted.Source = c.source
	var word string
	if _, err := fmt.Sscanf(e.Message, "unknown name %q", &word); err == nil && c.prefix == local && !strings.HasPrefix(e.Hint, "did you mean") {
		shifted.Hint = "the fields of a state are written state." + word
	}
	if e.Line == 1 {
		shifted.Column = max(1, e.Column-utf8.RuneCountInString(c.prefix))
	}
	return &shifted
}

// holds judges the condition on these members, and on their values.
func (c *condition) holds(members []predicates.Member, row func(i int) []scgs.Value) bool {
	c.scope.Reset(members)
	for i := range members {
		c.scope.Set(i, row(i))
	}
	return c.program.Eval(c.scope).Truth == predicates.True
}

// fieldsRead returns, in ascending order, the names that stand in the texts
// where that of a field can: after a dot, or as in state["x"]. There may be more
// than are read.
func fieldsRead(texts ...string) (names []string) {
	for _, text := range texts {
		for i := 0; i < len(text); i++ {
			switch c := text[i]; c {
			case '"', '\'', '`':
				from := i + 1
				i = closing(text, i)
				if from >= 3 && text[from-2] == '[' && (letter(text[from-3]) || text[from-3] == ')') {
					names = append(names, text[from:min(i, len(text))])
				}
			case '.':
				from := i + 1
				for i+1 < len(text) && letter(text[i+1]) {
					i++
				}
				names = append(names, text[from:i+1])
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return scgs.Schema{{Name: name, Type: scgs.Float}}.Validate() != nil
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// closing returns where the quotes that open at the offset close.
func closing(text string, open int) int {
	for i := open + 1; i < len(text); i++ {
		switch {
		case text[i] == text[open]:
			return i
		case text[i] == '\\' && text[open] != '`':
			i++
		}
	}
	return len(text)
}

func letter(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

package predicates

import (
	"fmt"
)

// cause says why a value is not known. The zero cause is of a known value. It
// is small and holds no text, so that a loop over unknown members stays cheap.
type cause struct {
	code   causeCode
	member int32 // member index; parent signal index; or offset in the text
	field  int32 // index of the field or variable
}

type causeCode uint8

const (
	noCause causeCode = iota
	memberUnknown
	fieldMissing
	prevMissing
	prevUnknown
	prevFieldMissing
	memoryMissing
	processMissing
	signalMissing
	signalFieldMissing
	emptyGroup
	emptyList
	noElement
	noMatch
	divisionByZero
	notANumber
	intOverflow
)

func (c cause) isSet() bool { return c.code != noCause }

// causeAt makes a cause that names a place in the text.
func causeAt(code causeCode, offset int) cause { return cause{code: code, member: int32(offset)} }

// describeCause writes a cause for a person.
func (p *Expression) describeCause(c cause, s *Scope) string {
	e := p.env
	switch c.code {
	case memberUnknown:
		return fmt.Sprintf("the state of member %s is unknown", s.members[c.member].Name)
	case fieldMissing:
		return fmt.Sprintf("member %s has no value for %s", s.members[c.member].Name, e.State[c.field].Name)
	case memoryMissing:
		return fmt.Sprintf("memory.%s has no value yet", e.Memory[c.field].Name)
	case processMissing:
		return fmt.Sprintf("process.%s has no value yet", e.Process[c.field].Name)
	case signalMissing:
		return fmt.Sprintf("the parent has sent no signal %s yet", e.Parent[c.member].Name)
	case signalFieldMissing:
		signal := e.Parent[c.member]
		return fmt.Sprintf("the parent's last signal %s has no value for %s", signal.Name, signal.Fields[c.field].Name)
	case prevMissing:
		return "there is no global state before this one in the epoch"
	case prevUnknown:
		return fmt.Sprintf("the state of member %s was unknown in the global state before", s.members[c.member].Name)
	case prevFieldMissing:
		return fmt.Sprintf("member %s had no value for %s in the global state before", s.members[c.member].Name, e.State[c.field].Name)
	case noCause, emptyGroup, emptyList, noElement, noMatch, divisionByZero, notANumber, intOverflow:
	}
	line, column := positionOf(p.src, int(c.member)-p.shift)
	return fmt.Sprintf("%s at %d:%d", faults[c.code], line, column)
}

var faults = [...]string{
	noCause:        "not decided",
	emptyGroup:     "no member is in the group",
	emptyList:      "no element is in the list",
	noElement:      "the list has no element at this index",
	noMatch:        "no member matches",
	divisionByZero: "division by zero",
	notANumber:     "the result is not a number",
	intOverflow:    "the result does not fit an int",
}

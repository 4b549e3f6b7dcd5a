package tracefile

import (
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
)

// The limits of a line.
const (
	MaxLine    = 1 << 20 // bytes, without what ends the line
	MaxFields  = 256     // of one state
	MaxNesting = 64      // arrays and objects inside of a field's value
)

// Type is the type of a line.
type Type uint8

// The types of lines.
const (
	State Type = iota + 1 // a state begins, and the one before it ends
	Alive                 // the state still holds
	Leave                 // the last state ends
)

var typeNames = [...]string{"none", "state", "alive", "leave"}

// String gives the word that stands in a line.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type(" + strconv.Itoa(int(t)) + ")"
}

// Line is one line of a trace. What it refers to lasts until the Scanner that
// filled it reads the next line.
type Line struct {
	Participant []byte            // not empty
	Domain      []byte            // not empty
	Mono        clocksync.Instant // the reading, ns
	// Within has MinInstant and MaxInstant where a bound is missing. Whether
	// Earliest is after Latest is not checked.
	Within      clocksync.Interval
	Type        Type    // state, alive or leave
	Seq         uint64  // at least 1
	Incarnation uint64  // at least 1
	State       []Datum // one Datum for each field of the Scanner, in its order
}

// Kind is what stands as the value of a field.
type Kind uint8

// The kinds of values.
const (
	Missing Kind = iota // no such field
	Null
	True
	False
	Number
	Text
	Nested // an object
	Array
)

// Datum is the value of one of the fields that a Scanner was made for.
type Datum struct {
	Kind Kind   // Missing where the line lacks the field
	Text []byte // of a Text, without quotes and escapes; of a Number and an Array, as it stands
}

// Error tells why a line is refused.
type Error struct {
	Column int    // from 1, in characters; 0 is the line as a whole
	Reason string // one line of text
}

// Error gives the column, if there is one, and the reason.
func (e *Error) Error() string {
	if e.Column == 0 {
		return e.Reason
	}
	return strconv.Itoa(e.Column) + ": " + e.Reason
}

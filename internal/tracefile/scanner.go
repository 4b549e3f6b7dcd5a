package tracefile

import (
	"bytes"
	"math"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
)

// Scanner reads lines. It must not be used by two goroutines at once.
type Scanner struct {
	fields []string
	reader
	names [][]byte // of the fields of the current state
	found keys     // in the current line
}

// NewScanner returns a Scanner for lines of whose states these fields matter.
// The State of a Line has a Datum for each, in their order.
func NewScanner(fields []string) *Scanner { return &Scanner{fields: fields} }

// keys is a set of the keys of a line.
type keys uint16

const (
	participant keys = 1 << iota
	domain
	mono
	earliest
	latest
	kind
	seq
	incarnation
	state

	required = participant | domain | mono | earliest | latest | kind | seq
)

var keyNames = []string{"participant", "domain", "mono", "earliest", "latest", "type", "seq", "incarnation", "state"}

func keyOf(name []byte) keys {
	switch string(name) {
	case "participant":
		return participant
	case "domain":
		return domain
	case "mono":
		return mono
	case "earliest":
		return earliest
	case "latest":
		return latest
	case "type":
		return kind
	case "seq":
		return seq
	case "incarnation":
		return incarnation
	case "state":
		return state
	}
	return 0
}

// Scan reads one line into l. The error is an *Error; then l is not to be used.
func (s *Scanner) Scan(line []byte, l *Line) error {
	s.begin(line)
	s.found, s.names = 0, s.names[:0]
	*l = Line{Incarnation: 1, State: s.reset(l.State)}
	at := s.next()
	if err := s.begins(); err != nil {
		return err
	}
	if err := s.object(func(name []byte, at int) error { return s.pair(name, at, l) }); err != nil {
		return err
	}
	if rest := bytes.TrimLeft(line[s.decoder.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return s.errorf(len(line)-len(rest), "there is more after the object: a line holds one object")
	}
	return s.check(at, l)
}

// reset makes room for the values of the fields.
func (s *Scanner) reset(state []Datum) []Datum {
	if len(state) != len(s.fields) {
		return make([]Datum, len(s.fields))
	}
	clear(state)
	return state
}

// pair reads the value of one key.
func (s *Scanner) pair(name []byte, at int, l *Line) (err error) {
	key := keyOf(name)
	switch {
	case key == 0:
		return s.errorf(at, "unknown key %s: the keys are %s", excerpt(name), strings.Join(keyNames, ", "))
	case s.found&key != 0:
		return s.errorf(at, "key %s is given twice", excerpt(name))
	}
	s.found |= key
	switch key {
	case participant:
		l.Participant, err = s.name("participant")
	case domain:
		l.Domain, err = s.name("domain")
	case mono:
		l.Mono, err = s.stamp("mono")
	case earliest:
		l.Within.Earliest, err = s.bound("earliest", clocksync.MinInstant)
	case latest:
		l.Within.Latest, err = s.bound("latest", clocksync.MaxInstant)
	case kind:
		l.Type, err = s.kind()
	case seq:
		l.Seq, err = s.count("seq")
	case incarnation:
		l.Incarnation, err = s.count("incarnation")
	default: // state
		err = s.state(l)
	}
	return err
}

// check looks at the line as a whole; it begins at the offset.
func (s *Scanner) check(at int, l *Line) error {
	if missing := required &^ s.found; missing != 0 {
		var names []string
		for i, name := range keyNames {
			if missing&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		return s.errorf(at, "the object lacks %s", strings.Join(names, ", "))
	}
	if l.Type != State && len(s.names) > 0 {
		return s.errorf(at, "a line of type %v has a state: only lines of type state have one", l.Type)
	}
	return nil
}

// name reads a string that is not empty.
func (s *Scanner) name(key string) ([]byte, error) {
	at := s.next()
	text, err := s.text(key)
	if err == nil && len(text) == 0 {
		return nil, s.errorf(at, "%s is empty", key)
	}
	return text, err
}

func (s *Scanner) kind() (Type, error) {
	at := s.next()
	word, err := s.text("type")
	if err != nil {
		return 0, err
	}
	for t := State; t <= Leave; t++ {
		if string(word) == typeNames[t] {
			return t, nil
		}
	}
	return 0, s.errorf(at, "type is %s: it is state, alive or leave", excerpt(word))
}

// stamp reads an instant that something can have happened at.
func (s *Scanner) stamp(key string) (clocksync.Instant, error) {
	at := s.next()
	n, err := s.integer(key)
	if err == nil && n == math.MaxInt64 {
		return 0, s.errorf(at, "%s is the greatest 64-bit integer, which is later than every event", key)
	}
	return clocksync.Instant(n), err
}

// bound reads an instant or null, which stands for none.
func (s *Scanner) bound(key string, none clocksync.Instant) (clocksync.Instant, error) {
	at := s.next()
	switch {
	case s.decoder.PeekKind() == 'n':
		return none, s.token()
	case key == "earliest":
		return s.stamp(key)
	}
	n, err := s.integer(key)
	if err == nil && n == math.MinInt64 {
		return 0, s.errorf(at, "%s is the least 64-bit integer, which is earlier than every event", key)
	}
	return clocksync.Instant(n), err
}

// count reads a number from 1.
func (s *Scanner) count(key string) (uint64, error) {
	at := s.next()
	n, err := s.integer(key)
	if err == nil && n < 1 {
		return 0, s.errorf(at, "%s is %d: it counts from 1", key, n)
	}
	return uint64(n), err
}

// state reads the fields of a state.
func (s *Scanner) state(l *Line) error {
	if s.decoder.PeekKind() == 'n' {
		return s.token()
	}
	if err := s.want('{', "state", "an object"); err != nil {
		return err
	}
	return s.object(func(name []byte, at int) error {
		for _, other := range s.names {
			if bytes.Equal(other, name) {
				return s.errorf(at, "field %s is given twice", excerpt(name))
			}
		}
		if len(s.names) == MaxFields {
			return s.errorf(at, "a state has at most %d fields", MaxFields)
		}
		s.names = append(s.names, name)
		value, err := s.value()
		if err != nil {
			return err
		}
		for i, field := range s.fields {
			if field == string(name) {
				l.State[i] = value
			}
		}
		return nil
	})
}

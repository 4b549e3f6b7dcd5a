package tracedetect

import (
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
)

// Read takes in the lines of r to its end. fault is called for a line that is refused,
// and for a condition that fails on one, with the number of the line from 1: what it
// returns ends the reading, nil continues. So does an error of r.
func (c *Core) Read(r io.Reader, fault func(line int, err error) error) error {
	lines, scanner := tracefile.NewLines(r), tracefile.NewScanner(c.Fields())
	var l tracefile.Line
	for {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, refused := errors.AsType[*tracefile.Error](err); err != nil && !refused {
			return err
		}
		if err == nil {
			err = scanner.Scan(text, &l)
		}
		if err == nil {
			err = c.Line(&l)
		}
		if err == nil {
			continue
		}
		if err = fault(lines.Number(), err); err != nil {
			return err
		}
	}
}

// Participants returns those of all the lines that can be read, by name; of a line
// that will be skipped if lenient, not. It fails where r does.
func Participants(r io.Reader, lenient bool) ([]Participant, error) {
	domains := make(map[string]clocksync.Domain)
	lines, scanner := tracefile.NewLines(r), tracefile.NewScanner(nil)
	var l tracefile.Line
	for {
		line, err := lines.Next()
		_, refused := errors.AsType[*tracefile.Error](err)
		switch {
		case errors.Is(err, io.EOF):
			var list []Participant
			for _, name := range slices.Sorted(maps.Keys(domains)) {
				list = append(list, Participant{Name: name, Domain: domains[name]})
			}
			return list, nil
		case refused:
			continue
		case err != nil:
			return nil, err
		}
		if err := scanner.Scan(line, &l); err != nil || lenient && !l.Within.Valid() {
			continue // Told when it is read again.
		}
		if _, known := domains[string(l.Participant)]; !known {
			domains[string(l.Participant)] = clocksync.Domain(l.Domain)
		}
	}
}

package workreport

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// MaxCallsText bounds the text of [CallsText], as strings in states are bounded.
const MaxCallsText = 256

// CallsText has the figures of calls, without those of Lost and Full, in lines such as "3/0/1/1/12/0.25 row": open, held,
// waiting, running, served, seconds, and the name. Functions whose lines do not fit, or whose names have several lines, are left out.
func CallsText(list []Calls) string {
	var text []byte
	for i := range list {
		c := &list[i]
		line := strconv.AppendInt(nil, int64(c.Open), 10)
		for _, n := range []int{c.Held, c.Waiting, c.Running} {
			line = strconv.AppendInt(append(line, '/'), int64(n), 10)
		}
		line = strconv.AppendUint(append(line, '/'), c.Served, 10)
		line = strconv.AppendFloat(append(line, '/'), c.Seconds, 'g', 6, 64)
		line = append(append(append(line, ' '), c.Name...), '\n')
		if len(text)+len(line) <= MaxCallsText && !strings.Contains(c.Name, "\n") {
			text = append(text, line...)
		}
	}
	return string(text)
}

var errCalls = errors.New("figures of calls: the text is damaged: let all members run the same version as this command")

// ParseCalls reads the text of [CallsText].
func ParseCalls(text string) (list []Calls, err error) {
	for line := range strings.Lines(text) {
		figures, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		parts := strings.Split(figures, "/")
		if !ok || len(parts) != 6 || len(list) == MaxCalls {
			return nil, errCalls
		}
		c := Calls{Name: name}
		for i, into := range []*int{&c.Open, &c.Held, &c.Waiting, &c.Running} {
			n, bad := strconv.ParseUint(parts[i], 10, 31)
			if bad != nil {
				return nil, errCalls
			}
			*into = int(n) //nolint:gosec // It has 31 bits.
		}
		served, bad := strconv.ParseUint(parts[4], 10, 63)
		seconds, wrong := strconv.ParseFloat(parts[5], 64)
		if c.Served, c.Seconds = served, seconds; errors.Join(bad, wrong) != nil || !(seconds >= 0 && seconds <= math.MaxInt32) || !c.plausible() {
			return nil, errCalls
		}
		list = append(list, c)
	}
	return list, nil
}

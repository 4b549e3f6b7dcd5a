package local

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/clocksync"
)

// Threshold is a bound on a load value of a member (ALDY, section 4.2), as the package
// comment lists them. Two uses have two meanings: a member below its threshold asks,
// a member above it gives.
type Threshold struct {
	word string
	part float64       // of avg
	over time.Duration // of idle, free, avg
}

// MaxOver is the longest time that a threshold may look back.
const MaxOver = time.Hour

// thresholdWords are the load values, with their arguments.
var thresholdWords = map[string]string{"idle": "x", "free": "x", "activity": "", "avg": "a, x"}

// ParseThreshold reads a threshold such as "avg(0.6, 5)". The error is a *Fault
// without a key.
func ParseThreshold(text string) (Threshold, error) {
	c, fault := parseCall(text, "load value", thresholdWords)
	if fault != nil {
		return Threshold{}, fault
	}
	t := Threshold{word: c.word}
	if c.word == "avg" {
		v, err := strconv.ParseFloat(c.args[0].text, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return Threshold{}, c.args[0].makeFault("%q is not a part of the time: write a number from 0 to 1, such as 0.6", c.args[0].text)
		}
		t.part = v
	}
	if n := len(c.args); n > 0 {
		if t.over, fault = c.args[n-1].seconds(); fault != nil {
			return Threshold{}, fault
		}
		if c.word == "avg" && t.over == 0 {
			return Threshold{}, c.args[n-1].makeFault("an average over no time has no value: write more than 0, such as 5")
		}
	}
	return t, nil
}

// Below reports whether the member is short of work.
func (t Threshold) Below(now clocksync.Instant, a *Activity) bool {
	switch t.word {
	case "idle":
		return a.Idle(now) >= t.over && !a.Active()
	case "free":
		d, ok := a.freeFor(now)
		return ok && d >= t.over
	case "avg":
		return a.Busy(now, t.over) < t.bound()
	}
	return !a.Active()
}

// Exceeded reports whether the member has had enough work to give some.
func (t Threshold) Exceeded(now clocksync.Instant, a *Activity) bool {
	if t.word == "avg" {
		return a.Busy(now, t.over) > t.bound()
	}
	return !t.Below(now, a)
}

// bound is the time of avg, rounded to the nanosecond as Busy is.
func (t Threshold) bound() time.Duration {
	return time.Duration(math.Round(t.part * float64(t.over)))
}

// nextBelow is when a member that is not below may be, if nothing changes: at the latest
// after every for an average, which falls all the time.
func (t Threshold) nextBelow(now clocksync.Instant, a *Activity, every time.Duration) clocksync.Instant {
	switch t.word {
	case "idle":
		if !a.Active() {
			return now.Add(t.over - a.Idle(now))
		}
	case "free":
		if d, ok := a.freeFor(now); ok {
			return now.Add(t.over - d)
		}
	case "avg":
		if !a.Active() {
			return now.Add(every)
		}
	}
	return clocksync.MaxInstant
}

// exceededAgain is when a member that is not above the threshold may be, if nothing changes.
func (t Threshold) exceededAgain(now clocksync.Instant, a *Activity, every time.Duration) clocksync.Instant {
	if t.word == "avg" && a.Active() {
		return now.Add(every)
	}
	return clocksync.MaxInstant
}

// call is a word with arguments in brackets, such as "tss(13, 1)".
type call struct {
	word string
	args []argument
}

// argument is a text and the column where it begins, in characters from 1.
type argument struct {
	text   string
	column int
}

func (a argument) makeFault(format string, args ...any) *Fault {
	return &Fault{Column: a.column, Message: fmt.Sprintf(format, args...)}
}

// parseCall reads one of the words, which have the arguments that they list; what says
// in a fault what the words are. "[...]" around a list allows to leave it out.
func parseCall(text, what string, words map[string]string) (call, *Fault) {
	head, rest, brackets := strings.Cut(text, "(")
	at := argument{strings.TrimSpace(head), columnOf(text, len(head)-len(strings.TrimLeft(head, " \t")))}
	c := call{word: at.text}
	list, known := words[c.word]
	if !known {
		return c, at.makeFault("%s", notOneOf(c.word, what, slices.Sorted(maps.Keys(words))))
	}
	needed, optional := strings.CutPrefix(list, "[")
	needed = strings.TrimSuffix(needed, "]")
	usage, want := c.word, 0
	if needed != "" {
		usage, want = c.word+"("+needed+")", strings.Count(needed, ",")+1
	}
	if optional {
		usage = c.word + " or " + usage
	}
	inside, after, closed := strings.Cut(rest, ")")
	switch {
	case brackets && !closed:
		return c, argument{"", columnOf(text, len(text))}.makeFault("a closing bracket is missing: write %s", usage)
	case strings.TrimSpace(after) != "":
		return c, argument{"", columnOf(text, len(text)-len(strings.TrimLeft(after, " \t")))}.makeFault("text follows the closing bracket: write %s", usage)
	}
	if brackets && strings.TrimSpace(inside) != "" {
		offset := len(head) + 1
		for part := range strings.SplitSeq(inside, ",") {
			c.args = append(c.args, argument{strings.TrimSpace(part), columnOf(text, offset+len(part)-len(strings.TrimLeft(part, " \t")))})
			offset += len(part) + 1
		}
	}
	if n := len(c.args); n != want && (!optional || n > 0) {
		return c, at.makeFault("%s has %d arguments here: write %s", c.word, n, usage)
	}
	return c, nil
}

// columnOf is the place of a byte, in characters from 1.
func columnOf(text string, offset int) int { return utf8.RuneCountInString(text[:offset]) + 1 }

// seconds reads a number of seconds, or a duration with a unit.
func (a argument) seconds() (time.Duration, *Fault) {
	d, err := time.ParseDuration(a.text)
	if v, bad := strconv.ParseFloat(a.text, 64); bad == nil {
		err = nil
		if d = -1; v >= 0 && v <= MaxOver.Seconds() {
			d = time.Duration(math.Round(v * float64(time.Second)))
		}
	}
	if err != nil || d < 0 || d > MaxOver {
		return 0, a.makeFault("%q is not a time: write seconds or a duration from 0 to 1h, such as 1.5 or 500ms", a.text)
	}
	return d, nil
}

// readCount reads a whole number from 1.
func (a argument) readCount() (int, *Fault) {
	n, err := strconv.Atoi(a.text)
	if err != nil || n < 1 {
		return 0, a.makeFault("%q is not a number of tasks: write a whole number from 1", a.text)
	}
	return n, nil
}

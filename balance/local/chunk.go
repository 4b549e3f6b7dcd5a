package local

import (
	"math"

	"github.com/gopegasus/pegasus/clocksync"
)

// The rules that cut chunks, with their arguments in parentheses.
var cutWords = map[string]string{"ss": "", "css": "k", "gss": "", "tss": "[first, last]", "fac2": ""}

// Cutter cuts chunks from a number of tasks, by one of the rules of self-scheduling.
// It begins again when tasks are put in between.
type Cutter struct {
	rule        string
	first, last int // of css and tss as configured; 0: by the number of tasks
	left        int // tasks after the last chunk
	size, step  int // of the next chunk; how much less each one is
	batch       int // chunks of this size, of fac2
}

// ParseCutter reads a rule: "ss" cuts one task, "css(k)" k of them, "gss" cuts
// ceil(remaining / processors), "tss" from ceil(tasks / 2 processors) down to 1 in equal
// steps, "tss(first, last)" between two numbers, and "fac2" cuts half of the remaining
// into a chunk a processor. The error is a *Fault without a key.
func ParseCutter(text string) (Cutter, error) {
	c, fault := parseCall(text, "way to cut", cutWords)
	if fault != nil {
		return Cutter{}, fault
	}
	cut := Cutter{rule: c.word}
	for i, into := range []*int{&cut.first, &cut.last}[:len(c.args)] {
		if *into, fault = c.args[i].readCount(); fault != nil {
			return Cutter{}, fault
		}
	}
	if len(c.args) == 2 && cut.last > cut.first {
		return Cutter{}, c.args[1].makeFault("the last chunk %d is larger than the first one %d: exchange them", cut.last, cut.first)
	}
	return cut, nil
}

// Next returns the size of the next chunk: from 1 to remaining, and 0 if nothing
// remains. Less than one processor counts as one.
func (c *Cutter) Next(remaining, processors int) int {
	if remaining <= 0 {
		return 0
	}
	processors = max(1, processors)
	if remaining > c.left {
		c.batch = 0
		c.begin(remaining, processors)
	}
	size := 1
	switch c.rule {
	case "css":
		size = c.first
	case "gss":
		size = ceil(remaining, processors)
	case "tss":
		size = max(c.size, c.last, 1)
		c.size -= c.step
	case "fac2":
		if c.batch == 0 {
			c.batch, c.size = processors, ceil(ceil(remaining, 2), processors)
		}
		c.batch--
		size = c.size
	}
	size = min(size, remaining)
	c.left = remaining - size
	return size
}

// begin sets the sizes of tss: n = ceil(2 I / (f+l)) chunks from f to l, each less by
// floor((f-l) / (n-1)).
func (c *Cutter) begin(tasks, processors int) {
	first, last := c.first, max(1, c.last)
	if first == 0 {
		first = ceil(ceil(tasks, 2), processors)
	}
	chunks := math.Ceil(2 * float64(tasks) / (float64(first) + float64(last)))
	c.size, c.step = first, int(float64(first-last)/max(1, chunks-1))
}

// ceil is a/b rounded up, of a >= 0 and b > 0.
func ceil(a, b int) int {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// chunker is self-scheduling: a member that is short asks, and the members that have
// put tasks cut them.
type chunker struct {
	asker
	cut Cutter
}

// Answer gives a chunk of the tasks that this member has put and that no slot of it can start;
// without such a task, of the running divisible task. A given chunk stays with its receiver,
// unless the receiver has no slots any more.
func (c *chunker) Answer(_ clocksync.Instant, v *View, d Demand) Share {
	if d.Member == v.Self {
		return Share{}
	}
	n := v.countSpare()
	if v.Activity.Slots() > 0 {
		n = min(n, v.Put)
	}
	if n > 0 {
		return Share{Tasks: d.limitWanted(c.cut.Next(n, v.Members))}
	}
	if v.Items > 1 {
		return Share{Part: float64(c.cut.Next(v.Items, v.Members)) / float64(v.Items)}
	}
	return Share{}
}

package local

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The kinds of strategies.
const (
	Receiver = "receiver" // a member short of work asks, one with much gives a share (ALDY, section 4.2)
	Chunk    = "chunk"    // a member short of work asks the member that put the tasks, which cuts a chunk
	Sender   = "sender"   // a member with much offers a share, one short of work takes it (ALDY, section 7)
	// Diffusion: a member with less than the mean of its neighbourhood asks for the difference (TDC, section 4.2).
	Diffusion = "diffusion"
	Links     = "links"  // tasks move along links between pairs of members (CORD, section 4.1.2)
	Tree      = "tree"   // a member short of work asks its partners in a tree of clusters (CORD, section 6.2)
	Market    = "market" // members trade tasks if both gain (ALDY, section 7)
	Field     = "field"  // load flows to all neighbours with less, as heat does (ALDY, section 7)
	// Pegasus and Greedy: the synchronizer plans the moves of objects, by the strategies of that name in package
	// balance. Members ask for tasks, and for objects that have not begun, as with Receiver.
	Pegasus = "pegasus"
	Greedy  = "greedy"
)

// Kinds lists the kinds.
var Kinds = []string{Receiver, Chunk, Sender, Diffusion, Links, Tree, Market, Field, Pegasus, Greedy}

// keysOf has the keys that only some kinds have.
var keysOf = map[string][]string{
	Receiver:  {"below", "from", "share"},
	Sender:    {"below", "from", "share"},
	Chunk:     {"below", "cut"},
	Diffusion: {"factor", "latency", "start"},
	Links:     {"links"},
	Tree:      {"below", "share", "speeds"},
	Market:    {"below", "latency"},
	Field:     {"below", "share"},
	Pegasus:   {"alpha", "beta", "gamma", "below", "from", "share"},
	Greedy:    {"below", "from", "share"},
}

// Config is a strategy in the words of a configuration file. A value that is left out is the
// value of [Default]; the tags are the keys.
type Config struct {
	// Kind is one of Kinds.
	Kind string `json:",omitempty" yaml:"kind"`
	// Below is when a member asks: a [Threshold]. aldyRecvTS of ALDY.
	Below string `json:",omitempty" yaml:"below"`
	// From is above which threshold a member gives, of [Receiver] and [Sender]. aldySendTS of ALDY.
	From string `json:",omitempty" yaml:"from"`
	// Again is how long a neighbour that refused is left alone: 1ms to 1h.
	// aldyWaitRepeat of ALDY.
	Again time.Duration `json:",omitempty" yaml:"again"`
	// Longest is up to where that wait doubles, with each refusal in a row: Again to
	// 1h. Left out where Again is given, it is Again: the wait does not grow.
	Longest time.Duration `json:",omitempty" yaml:"longest"`
	// Share is the part of its spare tasks that a member gives or offers, of [Receiver] and [Sender]: above 0,
	// at most 1. It is rounded up. Of [Field] it is the part of a difference of loads that flows, at most 0.5.
	Share float64 `json:",omitempty" yaml:"share"`
	// Cut is how chunks are cut, of [Chunk]: as [ParseCutter] reads it.
	Cut string `json:",omitempty" yaml:"cut"`
	// Factor is how much the load at which phase 1 looks next falls with each look, of
	// [Diffusion]: above 0, below 1. f_a of TDC.
	Factor float64 `json:",omitempty" yaml:"factor"`
	// Latency is how long a member waits for tasks that it asked for, of [Diffusion]: 1us
	// to 1h. t_latency of TDC. Of [Market] it is what a move costs.
	Latency time.Duration `json:",omitempty" yaml:"latency"`
	// Start is the load at which phase 1 looks first, of [Diffusion]: 1 to 1,000,000.
	Start int `json:",omitempty" yaml:"start"`
	// Links are paths between members, of [Links]: with commas between them.
	Links string `json:",omitempty" yaml:"links"`
	// Speeds are throughputs of members, of [Tree], such as "harvey: 125, bugs: 59", in any
	// unit. A member that is not there has 1.
	Speeds string `json:",omitempty" yaml:"speeds"`
	// Alpha is how many times the least availability the greatest is at an imbalance, of [Pegasus]: above 1.
	Alpha float64 `json:",omitempty" yaml:"alpha"`
	// Beta is how much attraction counts in the choice of the object that moves, of [Pegasus]: above 0, at most 1.
	Beta float64 `json:",omitempty" yaml:"beta"`
	// Gamma is how much attraction counts in the choice of the target, of [Pegasus]: above 0, at most 1.
	Gamma float64 `json:",omitempty" yaml:"gamma"`
}

// Central reports whether the synchronizer plans the moves of objects.
func (c Config) Central() bool { return c.Kind == Pegasus || c.Kind == Greedy }

// Default returns a receiver that asks as soon as a slot is free. The values are for tasks of
// milliseconds; the values of ALDY are in the package comment.
func Default() Config {
	return Config{
		Kind: Receiver, Below: "free(0)", From: "activity",
		Again: 10 * time.Millisecond, Longest: 10 * time.Second, Share: 0.5,
	}
}

// WithDefaults returns the configuration with every value that its kind has.
func (c Config) WithDefaults() Config {
	d := Default()
	setDefault(&c.Kind, d.Kind)
	if slices.Contains(keysOf[c.Kind], "below") {
		setDefault(&c.Below, d.Below)
	}
	if c.Longest == 0 && c.Again != 0 {
		c.Longest = c.Again
	}
	setDefault(&c.Again, d.Again)
	if c.Kind == Sender || c.Kind == Market || c.Kind == Field { // A neighbour does not tell when it is short of work, so it is asked soon again.
		d.Longest = 100 * time.Millisecond
	}
	setDefault(&c.Longest, max(c.Again, d.Longest))
	switch c.Kind {
	case Receiver, Sender, Greedy, Pegasus:
		setDefault(&c.From, d.From)
		setDefault(&c.Share, d.Share)
		if c.Kind == Pegasus {
			setDefault(&c.Alpha, 1.5)
			setDefault(&c.Beta, 0.5)
			setDefault(&c.Gamma, 0.5)
		}
	case Chunk:
		setDefault(&c.Cut, "gss")
	case Market:
		setDefault(&c.Latency, 10*time.Millisecond)
	case Diffusion:
		setDefault(&c.Factor, 0.5)
		setDefault(&c.Latency, 10*time.Millisecond)
		setDefault(&c.Start, 64)
	}
	return c
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// leastAgain is the least wait after a refusal.
const leastAgain = time.Millisecond

// maxLinks is how many links there may be.
const maxLinks = 1024

// maxAlpha is the largest imbalance that is let be.
const maxAlpha = 1000.0

// maxStart is the largest load at which phase 1 of diffusion looks first.
const maxStart = 1_000_000

// Fault is one value of a configuration that is refused.
type Fault struct {
	Key     string // as in the configuration file
	Column  int    // where in the text of the value, in characters from 1; 0: the whole value
	Message string // what is wrong with it, and what to write
}

// Error tells key, place and reason.
func (f *Fault) Error() string {
	where := "strategy"
	if f.Key != "" {
		where += ": " + f.Key
	}
	if f.Column > 0 {
		where += fmt.Sprintf(", column %d", f.Column)
	}
	return where + ": " + f.Message
}

// Faults returns the faults, by key, or nothing.
func (c Config) Faults() []Fault {
	_, list := c.compile()
	return list
}

// New makes the strategy of a configuration. The error is all Faults, joined.
func New(c Config) (Local, error) {
	strategy, list := c.compile()
	faults := make([]error, len(list))
	for i := range list {
		faults[i] = &list[i]
	}
	return strategy, errors.Join(faults...)
}

// strangers are the keys that have a value, and that the kind does not have.
func (c Config) strangers() (list []string) {
	for key, given := range map[string]bool{
		"below": c.Below != "", "from": c.From != "", "share": c.Share != 0, "cut": c.Cut != "", "factor": c.Factor != 0, "latency": c.Latency != 0, "start": c.Start != 0,
		"links": c.Links != "", "speeds": c.Speeds != "", "alpha": c.Alpha != 0, "beta": c.Beta != 0, "gamma": c.Gamma != 0,
	} {
		if given && !slices.Contains(keysOf[c.Kind], key) {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}

// compile makes the strategy, or returns the faults.
func (c Config) compile() (Local, []Fault) {
	full := c.WithDefaults()
	var list []Fault
	need := func(ok bool, key, format string, args ...any) {
		if !ok {
			list = append(list, Fault{Key: key, Message: fmt.Sprintf(format, args...)})
		}
	}
	keep := func(key string, err error) {
		if fault, ok := errors.AsType[*Fault](err); ok {
			list = append(list, Fault{key, fault.Column, fault.Message})
		}
	}
	if !slices.Contains(Kinds, full.Kind) {
		list = append(list, Fault{Key: "kind", Message: notOneOf(full.Kind, "strategy", Kinds)})
		return nil, list
	}
	var below Threshold
	var err error
	if full.Below != "" {
		below, err = ParseThreshold(full.Below)
		keep("below", err)
	}
	need(err != nil || below.word != "avg" || below.part > 0, "below", "an average is never below 0: write a part above 0")
	need(full.Again >= leastAgain && full.Again <= MaxOver, "again", "%v is out of range: write 1ms to 1h", full.Again)
	need(c.Longest == 0 || full.Longest >= full.Again && full.Longest <= MaxOver, "longest", "%v is out of range: write %v, which is again, to 1h", full.Longest, full.Again)
	for _, key := range full.strangers() {
		kind := slices.IndexFunc(Kinds, func(kind string) bool { return slices.Contains(keysOf[kind], key) })
		need(false, key, "the kind %s has no such key: leave it out, or write kind: %s", full.Kind, Kinds[kind])
	}
	asks := asker{below: below, again: full.Again, longest: full.Longest}
	var strategy Local
	switch full.Kind {
	case Receiver, Sender, Pegasus, Greedy:
		from, err := ParseThreshold(full.From)
		keep("from", err)
		need(err != nil || from.word != "avg" || from.part < 1, "from", "an average is never above 1: write a part below 1")
		need(full.Share > 0 && full.Share <= 1, "share", "%v is out of range: write a part above 0, at most 1", full.Share)
		r := receiver{asks, from, full.Share}
		if strategy = &r; full.Kind == Sender {
			strategy = &sender{r}
		}
		if full.Kind == Pegasus {
			need(full.Alpha > 1 && full.Alpha <= maxAlpha, "alpha", "%v is out of range: write a number above 1, at most %v", full.Alpha, maxAlpha)
			need(full.Beta > 0 && full.Beta <= 1, "beta", "%v is out of range: write a part above 0, at most 1, or use kind: greedy, which knows no attraction", full.Beta)
			need(full.Gamma > 0 && full.Gamma <= 1, "gamma", "%v is out of range: write a part above 0, at most 1", full.Gamma)
		}
	case Chunk:
		cut, err := ParseCutter(full.Cut)
		keep("cut", err)
		strategy = &chunker{asks, cut}
	case Diffusion:
		need(full.Factor > 0 && full.Factor < 1, "factor", "%v is out of range: write a number above 0 and below 1", full.Factor)
		need(full.Latency >= time.Microsecond && full.Latency <= MaxOver, "latency", "%v is out of range: write 1us to 1h", full.Latency)
		need(full.Start >= 1 && full.Start <= maxStart, "start", "%d is out of range: write 1 to %d", full.Start, maxStart)
		strategy = newDiffusion(&full)
	case Links:
		links, err := parseLinks(full.Links)
		keep("links", err)
		strategy = &linked{asks, links}
	case Market:
		need(full.Latency >= time.Microsecond && full.Latency <= MaxOver, "latency", "%v is out of range: write 1us to 1h", full.Latency)
		strategy = &market{asks, full.Latency}
	case Field:
		need(full.Share == 0 || full.Share > 0 && full.Share <= 0.5, "share", "%v is out of range: write a part above 0, at most 0.5, or leave it out", full.Share)
		strategy = &field{asks, full.Share}
	case Tree:
		speeds := map[string]float64{}
		if full.Speeds != "" {
			var fault *Fault
			if speeds, fault = parseSpeeds(full.Speeds); fault != nil {
				keep("speeds", fault)
			}
		}
		need(full.Share == 0 || full.Share > 0 && full.Share <= 1, "share", "%v is out of range: write a part above 0, at most 1, or leave it out to share by throughput", full.Share)
		strategy = &tree{asker: asks, share: full.Share, speeds: speeds}
	}
	if len(list) > 0 {
		return nil, list
	}
	return strategy, nil
}

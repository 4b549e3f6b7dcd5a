package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WorkCall says how the calls of a function travel.
type WorkCall struct {
	// Style says when a member sends its next call: StyleSync, StyleAsync, or async-demand(L:U). Empty: StyleAsync.
	Style string `yaml:"style"`
	// Ratio is the share of each of the Replicas, such as 1:2:3. Empty: the one with the fewest calls is next.
	Ratio string `yaml:"ratio"`
	// Replicas are the members that serve it; empty: all that have opened the space with that server.
	Replicas []string `yaml:"replicas"`
	// Priority is an expression on a waiting call and its server; those with smaller values run first.
	Priority string `yaml:"priority"`
	// Traffic is Intermittent, Incremental or Bulk. Empty: Intermittent.
	Traffic string `yaml:"traffic"`
	// Batch is how many calls go to a server together; 0: as Traffic has it.
	Batch int `yaml:"batch"`
	// Retry is how many servers may be lost with a call, from 1; 0: as often as a task is run.
	Retry int `yaml:"retry"`
	// Service offers the function as a service of NATS.
	Service bool `yaml:"service"`
}

// The values of WorkCall.Style, without async-demand(L:U), and of WorkCall.Traffic.
const (
	StyleSync    = "sync"
	StyleAsync   = "async"
	Intermittent = "intermittent"
	Incremental  = "incremental"
	Bulk         = "bulk"
)

// The largest numbers of a WorkCall.
const (
	MaxMark  = 1024
	MaxShare = 1000
	MaxBatch = 1024
)

// ParseStyle reads a style. Demand: calls go to a server while fewer than high are there, and first to one with fewer than
// low; 0 stands for an open mark.
func ParseStyle(style string) (sync, demand bool, low, high int, err error) {
	switch style {
	case StyleSync:
		return true, false, 0, 0, nil
	case "", StyleAsync:
		return false, false, 0, 0, nil
	}
	marks, begins := strings.CutPrefix(style, "async-demand(")
	marks, ends := strings.CutSuffix(marks, ")")
	lowText, highText, two := strings.Cut(marks, ":")
	if !begins || !ends || !two {
		return false, false, 0, 0, fmt.Errorf("%q is no style of calls: use sync, async, or async-demand(L:U) with water marks, such as async-demand(2:5)", style)
	}
	if low, err = parseMark(lowText); err == nil {
		high, err = parseMark(highText)
	}
	switch {
	case err != nil:
	case low == 0 && high == 0:
		err = fmt.Errorf("both water marks of %q are open: give one of them a number, such as async-demand(*:5)", style)
	case high > 0 && low > high:
		err = fmt.Errorf("the lower water mark of %q is above the upper one: write the smaller number first", style)
	}
	return false, true, low, high, err
}

func parseMark(text string) (int, error) {
	if text = strings.TrimSpace(text); text == "*" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxMark {
		return 0, fmt.Errorf("%q is no water mark: use 1 to %d, or * for none", text, MaxMark)
	}
	return n, nil
}

// ParseRatio reads a ratio, such as 1:2:3. Empty: nil.
func ParseRatio(ratio string) (shares []int, err error) {
	if ratio == "" {
		return nil, nil
	}
	sum := 0
	for part := range strings.SplitSeq(ratio, ":") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || n > MaxShare {
			return nil, fmt.Errorf("%q is no share of the ratio %q: use numbers of 0 to %d with colons between them, such as 1:2:3", part, ratio, MaxShare)
		}
		shares = append(shares, n)
		sum += n
	}
	if sum == 0 {
		return nil, fmt.Errorf("the ratio %q gives no server a call: give one of them a share above 0", ratio)
	}
	return shares, nil
}

// BatchOf is how many calls go to a server together, and how long the first of them waits.
func (c *WorkCall) BatchOf() (batch int, linger time.Duration) {
	switch batch = 1; c.Traffic {
	case Incremental:
		batch, linger = 32, time.Millisecond
	case Bulk:
		batch, linger = 256, 5*time.Millisecond
	}
	if c.Batch > 0 {
		batch = c.Batch
	}
	return batch, linger
}

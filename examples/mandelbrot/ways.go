package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/examples/crew"
)

// way is one configuration of the program.
type way struct {
	name    string
	section string // work of the configuration
	tasks   bool   // a row is a task, and not a call
	paper   string // the efficiency that CORD has measured (table 4.2); empty: none
}

// ways are the configurations that -table compares. The members are w1 to w4, as the machines of the paper: harvey, rimfire,
// thumper and highpower.
func (o *options) ways() []way {
	calls := func(name, call, paper string) way {
		return way{name, "{slots: 1, calls: {row: {" + call + "}}}", false, paper}
	}
	tasks := func(name, strategy, paper string) way {
		return way{name, "{slots: 1, strategy: {" + strategy + "}}", true, paper}
	}
	const all = "replicas: [w1, w2, w3, w4]"
	return []way{
		calls("sync", "style: sync", ""),
		calls("equal", all+`, ratio: "1:1:1:1"`, "0.38"),
		calls("equal3", `replicas: [w2, w3, w4], ratio: "1:1:1"`, ""),
		calls("ratio", all+`, ratio: "24:51:58:100"`, ""),
		calls("async", "style: async", ""),
		calls("demand", `style: "async-demand(*:1)"`, ""),
		calls("marks", `style: "async-demand(2:5)"`, ""),
		tasks("ss", "kind: chunk, cut: ss", ""),
		tasks("css", fmt.Sprintf("kind: chunk, cut: css(%d)", max(1, o.size/20)), ""),
		tasks("gss", "kind: chunk, cut: gss", ""),
		tasks("tss", "kind: chunk, cut: tss", ""),
		tasks("fac2", "kind: chunk, cut: fac2", ""),
		tasks("quarter", fmt.Sprintf("kind: chunk, cut: css(%d)", (o.size+3)/4), ""),
		tasks("chain", `kind: links, links: "`+link("w1", "w2")+", "+link("w2", "w3")+", "+link("w3", "w4")+`"`, "0.50"),
		tasks("ring", `kind: links, links: "`+link("w1", "w2")+", "+link("w2", "w3")+", "+link("w3", "w4")+", "+link("w4", "w1")+`"`, "0.76"),
		tasks("tree", `kind: tree, speeds: "w1: 24, w2: 51, w3: 58, w4: 100"`, ""),
	}
}

// link is a link over which tasks go from one member to another, once that one is short of them.
func link(from, to string) string { return from + "()[1/2]#" + to + "(u=(L<2))" }

func find(list []way, name string) (*way, error) {
	i := slices.IndexFunc(list, func(w way) bool { return w.name == name })
	if i >= 0 {
		return &list[i], nil
	}
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = w.name
	}
	return nil, fmt.Errorf("-way %s: use one of %s", name, strings.Join(names, ", "))
}

// compare runs the program once in each way.
func (o *options) compare(ctx context.Context) (object any, text string, err error) {
	type line struct {
		Way        string  `json:"way"`
		Seconds    float64 `json:"seconds"`
		Efficiency float64 `json:"efficiency"`
		Moves      int64   `json:"migrations"`
		Paper      string  `json:"paper,omitempty"`
		Section    string  `json:"section"`
	}
	var lines []line
	var table strings.Builder
	fmt.Fprintf(&table, "%-8s %7s %10s %6s %6s  %s\n", "way", "seconds", "efficiency", "paper", "moves", "work")
	result := ""
	for _, w := range o.ways() {
		r, err := crew.Again(ctx, "-table=false", "-way", w.name)
		if err != nil {
			return nil, "", err
		}
		if result != "" && r.Result != result {
			return nil, "", fmt.Errorf("way %s: its image differs from the image of the way before", w.name)
		}
		result = r.Result
		lines = append(lines, line{w.name, r.Seconds, r.Efficiency, r.Migrations, w.paper, w.section})
		fmt.Fprintf(&table, "%-8s %7.2f %10.2f %6s %6d  %s\n", w.name, r.Seconds, r.Efficiency, w.paper, r.Migrations, w.section)
	}
	return map[string]any{"name": "mandelbrot", "ways": lines, "result": result}, table.String(), nil
}

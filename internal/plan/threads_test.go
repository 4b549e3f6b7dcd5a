package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

const blockThreads = `synchronizers:
  gsync:
    members: {group: g}
    state: {best: float, left: int}
    predicates:
      low: {when: "any(members, .best < 1)", signal: {kind: activate, region: a, to: all, data: {best: "min(map(members, .best))"}}}
  tsync:
    parent: gsync
    members: {threads: {min: 2, max: 8}}
    state: {best: float}
    predicates:
      told: {when: from_parent.low.best < 1, signal: {kind: activate, region: r, to: all}}
    summary: {best: "min(map(members, .best))"}
  idle:
    parent: gsync
    members: {threads: 1}
program:
  name: p
  blocks: {a: {threads: 3, synchronizer: tsync}, b: {threads: 2, synchronizer: tsync}, c: {threads: 5}, d: {}}
  body: {seq: [a, b, c, d]}
`

// welcomed is what a processor is told by the synchronizer of a program.
func welcomed(t *testing.T, src string) *wire.Welcome {
	t.Helper()
	file, err := configfile.ParseProgram("test.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	host := file.Host
	var out synccore.Output
	in := synccore.Input{Kind: synccore.InHello, From: "m", Hello: &wire.Hello{Member: "m", Incarnation: 1, Domain: "d"}}
	synccore.New(host, synccore.Options{Term: 1}).Step(0, &in, &out)
	if len(out.Welcomes) != 1 {
		t.Fatalf("%d welcomes, rejected %v", len(out.Welcomes), out.Rejected)
	}
	return &out.Welcomes[0].Msg
}

// TestBlocksWithThreads: each block with threads has a level for as many as the program
// gives it, made of what comes with the welcome.
func TestBlocksWithThreads(t *testing.T) {
	w := welcomed(t, blockThreads)
	plans, err := plan.FromBlocks(w.Section)
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) != 3 {
		t.Errorf("%d blocks have threads, want 3", len(plans))
	}
	for block, want := range map[string]struct {
		level   string
		threads int
		summary bool
	}{"a": {"tsync", 3, true}, "b": {"tsync", 2, true}, "c": {"c", 5, false}} {
		p := plans[block]
		if p == nil || p.Name != want.level || p.Summary() != want.summary || p.Members != (config.Members{Threads: true, Min: want.threads, Count: want.threads, Max: want.threads}) {
			t.Errorf("block %s: %+v, want %+v", block, p, want)
		}
	}
	for i, f := range w.Schema {
		if got := plans["a"].Summarizes(i); got != (f.Name == "best") {
			t.Errorf("the summary has field %s: %t", f.Name, got)
		}
	}
	// Where no block has threads there is nothing to tell.
	w = welcomed(t, strings.NewReplacer("threads: 3, synchronizer: tsync", "", "threads: 2, synchronizer: tsync", "", "threads: 5", "").Replace(blockThreads))
	if plans, err := plan.FromBlocks(w.Section); len(w.Section) > 0 || len(plans) > 0 || err != nil {
		t.Errorf("without threads: %q, %v, %v", w.Section, plans, err)
	}
	for raw, want := range map[string]string{
		"[]": "the threads of blocks: json: ",
		`{"Blocks": [{"Block": "b", "Threads": 1, "Synchronizer": "t"}], "Sections": [{"Name": "t", "Synchronizer": {"Predicates": [{"Key": "p", "Value": {"When": "1 +"}}]}}]}`: `block "b": section t: predicates.p.when: `,
	} {
		if _, err := plan.FromBlocks([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", raw, err, want)
		}
	}
}

// TestMuchOfThreads: what blocks have for threads must fit the welcome. Blocks of one
// synchronizer share its section.
func TestMuchOfThreads(t *testing.T) {
	var blocks, body []string
	for i := range 100 {
		blocks = append(blocks, fmt.Sprintf("b%d: {threads: %d, synchronizer: tsync}", i, i%7+2))
		body = append(body, fmt.Sprintf("b%d", i))
	}
	src := strings.NewReplacer("a: {threads: 3, synchronizer: tsync}, b: {threads: 2, synchronizer: tsync}, c: {threads: 5}, d: {}",
		strings.Join(blocks, ",\n    "), "[a, b, c, d]", "["+strings.Join(body, ",\n    ")+"]").Replace(blockThreads)
	if plans, err := plan.FromBlocks(welcomed(t, src).Section); err != nil || len(plans) != 100 || plans["b3"].Members.Count != 5 {
		t.Errorf("100 blocks: %d levels, %v", len(plans), err)
	}
	var more strings.Builder
	for i := range 400 {
		fmt.Fprintf(&more, "      p%d: {when: \"len(members) > %d\", signal: {kind: activate, region: r, to: all}}\n", i, i)
	}
	_, err := configfile.ParseProgram("test.yaml", []byte(strings.Replace(src, "      told:", more.String()+"      told:", 1)))
	if want := "synchronizers.gsync: the declared state and the section below do not fit the message that tells members of them: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}

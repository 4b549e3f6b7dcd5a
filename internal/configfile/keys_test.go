package configfile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/configfile"
)

// keysOf are the keys of the schema's parts, with what it says of them.
func keysOf(t *testing.T, part string) map[string]map[string]any {
	t.Helper()
	var schema struct {
		Defs map[string]struct {
			Properties map[string]map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(configfile.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := schema.Defs[part].Properties
	if len(keys) < 3 {
		t.Fatalf("the schema of a %s has %d keys", part, len(keys))
	}
	return keys
}

func TestEveryKeyIsDescribed(t *testing.T) {
	for _, part := range []string{"synchronizer", "predicate", "signal", "balance", "work", "log", "call", "strategy"} {
		for key, schema := range keysOf(t, part) {
			if text, _ := schema["description"].(string); text == "" {
				t.Errorf("the schema does not say what the key %s of a %s is for", key, part)
			}
		}
	}
}

// everyKey has each key of a synchronizer, and of its parts those that they must have.
const everyKey = `synchronizers:
  g:
    members: {group: w, count: 2}
    silence: {after: 3s, then: drop}
    state: {x: int, zone: {type: bool, default: false}, names: {type: {list: int}, default: []}, others: {type: {list: int}, default: []}}
    memory: {m: int}
    let: {zoned: .zone}
    predicates:
      q: {when: "any(members, zoned)", signal: []}
      p: {when: "all(members, .x > 1)", set: {m: "1"}, signal: {kind: cancel, region: r}}
    balance: {loads: .names, region: r}
    work: {store: jetstream, strategy: {kind: receiver}}
  t:
    parent: g
    members: {threads: 2}
    process: {a: int}
    summary: {x: "1"}
`

// TestEveryDefaultIsShown wants the defaults that the schema tells in what is shown of a
// configuration that leaves their keys out.
func TestEveryDefaultIsShown(t *testing.T) {
	shown, err := configfile.Show("c", []byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	other, err := configfile.Show("c", []byte(strings.Replace(everyKey, "store: jetstream, ", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	shown = append(shown, other...) // A log is shown with one store, and the other store is the default.
	checked := 0
	for _, part := range []string{"predicate", "signal", "balance", "work", "log", "strategy"} {
		for key, schema := range keysOf(t, part) {
			value, ok := schema["default"]
			if !ok || part == "strategy" && slices.Contains([]string{"cut", "factor", "latency", "start", "links", "speeds", "alpha", "beta", "gamma"}, key) { // Which other kinds have.
				continue
			}
			checked++
			if want := fmt.Sprint(key, ": ", value); !strings.Contains(strings.ReplaceAll(string(shown), "'", ""), want) {
				t.Errorf("the schema says that the default of a %s is %s, and this is shown:\n%s", part, want, shown)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d defaults were looked for", checked)
	}
}

// pooled is a text of everyKey: only one section plans moves.
const pooled = "balance: {loads: .names, region: r}\n    work: {store: jetstream, strategy: {kind: receiver}}\n  t:\n    parent: g\n    members: {threads: 2}\n    process: {a: int}\n    summary: {x: \"1\"}\n"

// keyChanges is a change of each key in everyKey: a text of it, and what stands there then.
var keyChanges = map[string]map[string][2]string{
	"synchronizer": {
		"members": {"count: 2", "count: 3"}, "silence": {"3s", "4s"}, "state": {"x: int", "y: {type: int, default: 0}, x: int"}, "memory": {"m: int", "m: float"},
		"predicates": {"cancel", "activate"}, "balance": {"loads:", "every: 1s, loads:"},
		"parent": {"g\n", "g2\n"}, "process": {"a: int", "b: int"}, "summary": {`x: "1"`, `x: "2"`},
		"let": {"zoned: .zone", "zoned: not .zone"}, "work": {"work: {", "work: {slots: 2, "},
	},
	"predicate": {
		"when": {".x > ", ".x < "}, "modality": {"set:", "modality: definitely, set:"}, "for": {"set:", "for: 1s, set:"}, "every": {"set:", "every: true, set:"},
		"until": {"set:", `until: "none(members, .x > 1)", set:`}, "cooldown": {"set:", "cooldown: 1s, set:"}, "priority": {"set:", "priority: 1, set:"},
		"let": {"set:", "let: {y: \"1\"}, set:"}, "by": {"set:", "by: .zone, set:"}, "each": {`when: "all(members, .x > 1)"`, `each: members, when: .x > 1`},
		"once": {"set:", "once: run, set:"}, "after": {"set:", "after: {q: 1s}, set:"}, "refire": {"set:", "refire: epoch, set:"},
		"set": {`m: "1"`, `m: "2"`}, "signal": {"signal: {kind: cancel, region: r}", "signal: []"},
	},
	"signal": {
		"name": {"kind:", "name: n, kind:"}, "kind": {"cancel", "activate"}, "region": {"region: r", "region: q"}, "to": {"kind:", "to: [a], kind:"},
		"data": {"kind:", `data: {d: "1"}, kind:`}, "expires": {"kind:", "expires: 1s, kind:"},
	},
	"balance": {
		"loads": {".names", ".others"}, "region": {"region: r}\n    work:", "region: q}\n    work:"}, "strategy": {"loads:", `strategy: greedy, loads:`}, "weights": {"loads:", `weights: "2", loads:`},
		"rest": {"loads:", `rest: "1", loads:`}, "power": {"loads:", `power: "2", loads:`}, "share": {"loads:", `share: "0.5", loads:`}, "when": {"loads:", `when: "true", loads:`},
		"every": {"loads:", `every: 1s, loads:`}, "name": {"loads:", `name: n, loads:`}, "expires": {"loads:", `expires: 1s, loads:`}, "transit": {"loads:", `transit: 1s, loads:`},
		"transfer": {"loads:", `transfer: 1s, loads:`}, "alpha": {"loads:", `alpha: 3, loads:`}, "beta": {"loads:", `beta: 0.1, loads:`}, "gamma": {"loads:", `gamma: 0.1, loads:`},
		"waiting": {"loads:", `waiting: count, loads:`}, "margin": {"loads:", `margin: 0.3, loads:`}, "cooldown": {"loads:", `cooldown: 7s, loads:`}, "outlier": {"loads:", `outlier: 9, loads:`},
		"moves": {"loads:", `moves: 7, loads:`}, "return": {"loads:", `return: 0.3, loads:`},
	},
	"work": {
		"store": {"store: jetstream, ", ""}, "log": {"work: {", "work: {log: {replicas: 3}, "},
		"slots": {"work: {", "work: {slots: 2, "}, "retry": {"work: {", "work: {retry: 2, "}, "losses": {"work: {", "work: {losses: 2, "},
		"calls": {"work: {", "work: {calls: {f: {style: sync}}, "},
		"open":  {"work: {", "work: {open: 2, "}, "order": {"work: {", "work: {order: -weight, "}, "lost": {"work: {", "work: {lost: go on, "},
		"data":    {"work: {", "work: {data: {cache: 3, classes: 2}, "},
		"objects": {"work: {", "work: {objects: {save: {tasks: 3}}, "},
		"stuck":   {"work: {", "work: {stuck: 2s, "}, "topology": {"work: {", "work: {topology: ring, "}, "strategy": {"receiver", "chunk"},
		"record": {"work: {", "work: {record: true, "},
		"end":    {"work: {", `work: {end: "true", `}, "withdraw": {"work: {", `work: {withdraw: {when: .work.idle, for: 5s, back: not .work.idle}, `},
	},
	"call": {
		"style": {"work: {", "work: {calls: {f: {style: sync}}, "}, "ratio": {"work: {", "work: {calls: {f: {replicas: [a, b], ratio: 1:2}}, "},
		"replicas": {"work: {", "work: {calls: {f: {replicas: [a]}}, "}, "priority": {"work: {", "work: {calls: {f: {priority: -size}}, "},
		"traffic": {"work: {", "work: {calls: {f: {traffic: bulk}}, "}, "batch": {"work: {", "work: {calls: {f: {traffic: bulk, batch: 8}}, "},
		"retry": {"work: {", "work: {calls: {f: {retry: 7}}, "}, "service": {"work: {", "work: {calls: {f: {service: true}}, "},
	},
	"log": {
		"stream": {"work: {", "work: {log: {stream: s}, "}, "replicas": {"work: {", "work: {log: {replicas: 3}, "},
		"most": {"work: {", "work: {log: {most: 7}, "},
	},
	"strategy": {
		"kind": {"receiver", "chunk"}, "below": {"receiver", "receiver, below: free(1)"}, "from": {"receiver", "receiver, from: idle(2)"},
		"again": {"receiver", "receiver, again: 1s"}, "longest": {"receiver", "receiver, longest: 2s"}, "share": {"receiver", "receiver, share: 0.25"},
		"cut": {"receiver", "chunk, cut: tss"}, "factor": {"receiver", "diffusion, factor: 0.7"}, "latency": {"receiver", "diffusion, latency: 2s"}, "start": {"receiver", "diffusion, start: 3"},
		"alpha": {pooled, "work: {store: jetstream, strategy: {kind: pegasus, alpha: 2}}\n"}, "beta": {pooled, "work: {store: jetstream, strategy: {kind: pegasus, beta: 0.7}}\n"}, "gamma": {pooled, "work: {store: jetstream, strategy: {kind: pegasus, gamma: 0.7}}\n"},
		"speeds": {"receiver", "tree, speeds: 'a: 2'"},
		"links":  {"receiver", "links, links: 'a(u=(L<1))#b[1/2]'"},
	},
}

// TestEveryKeyChanges changes each key, and wants a machine to go over to it with a line
// for people, or to refuse it.
func TestEveryKeyChanges(t *testing.T) {
	before, err := configfile.Parse("c", []byte(everyKey))
	if err != nil {
		t.Fatal(err)
	}
	for part, changes := range keyChanges {
		for key := range keysOf(t, part) {
			change, ok := changes[key]
			if !ok {
				t.Errorf("what a change of the key %s of a %s comes to is not tried: add one", key, part)
				continue
			}
			changed := strings.Replace(everyKey, change[0], change[1], 1)
			if key == "parent" {
				changed = strings.Replace(changed, "  g:", "  g2:", 1)
			}
			after, err := configfile.Parse("c", []byte(changed))
			if err != nil {
				t.Errorf("the key %s of a %s: %v", key, part, err)
				continue
			}
			if list, err := before[0].Changes(after[0]); len(list) == 0 && err == nil {
				t.Errorf("a changed %s of a %s is not noticed", key, part)
			}
		}
	}
}

package configfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/scgs"
)

// decoded reads a good configuration, with the defaults of the compiler.
func decoded(t interface{ Fatalf(string, ...any) }, src []byte) config.Config {
	var c config.Config
	if _, err := yamlconf.Decode("c", src, &c); err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	plans, err := configfile.Parse("c", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	for i := range c.Synchronizers {
		s := &c.Synchronizers[i].Value
		words := map[string]string{}
		for _, r := range plans.Get(c.Synchronizers[i].Key).Rules {
			words[r.Name] = r.Detector.Word()
		}
		if s.Silence.After == 0 {
			s.Silence.After, s.Silence.Then = 3e9, config.Drop
		}
		for j := range s.Predicates {
			p := &s.Predicates[j]
			if p.Value.Modality == "" {
				p.Value.Modality = words[p.Key]
			}
			if !p.Value.Every && p.Value.Each == "" {
				p.Value.Refire = config.RefireNewcomers // As if it were left out.
			}
			for k := range p.Value.Signal {
				if p.Value.Signal[k].Name == "" {
					p.Value.Signal[k].Name = p.Key
				}
			}
		}
	}
	return c
}

// sameShown wants what is shown of a configuration to be the same configuration,
// and to be shown as it is.
func sameShown(t interface{ Fatalf(string, ...any) }, src []byte) []byte {
	shown, err := configfile.Show("c", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	noPlaces := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Pos" || p.Last().String() == ".ToDefault" }, cmp.Ignore())
	if d := cmp.Diff(decoded(t, src), decoded(t, shown), noPlaces, cmp.AllowUnexported(scgs.Value{})); d != "" {
		t.Fatalf("%s\n%s\nis shown as\n%s", d, src, shown)
	}
	again, err := configfile.Show("c", shown)
	if err != nil || string(again) != string(shown) {
		t.Fatalf("%v\n%s\nis shown as\n%s", err, shown, again)
	}
	return shown
}

// shipped are the configurations of this repository.
func shipped(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"../../configs/*.yaml", "../../cmd/pegasus/testdata/configs/*.yaml", "../ruletest/testdata/configs/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := configfile.Parse(name, src); err == nil {
				files[name] = src
			}
		}
	}
	if len(files) < 6 {
		t.Fatalf("only %d good configurations", len(files))
	}
	return files
}

func TestShowShipped(t *testing.T) {
	for name, src := range shipped(t) {
		t.Run(filepath.Base(name), func(t *testing.T) { sameShown(t, src) })
	}
}

// TestShow has every form of a section.
func TestShow(t *testing.T) {
	const src = `# A comment.
synchronizers:
  g:
    members: {group: w, count: {min: 2, max: 5}}
    state: {phase: {enum: [idle, "on"]}, x: float, ns: {type: {list: int}, default: [1]}, d: {type: duration, default: 5s}}
    predicates:
      p:
        when: >-
          all(members, .phase == "on" and .x > 0.25) or count(members, .phase == 'idle' and .x <= 1e-3) == 2 or mean(map(members, .x)) > 1
        signal: {kind: cancel, region: r, data: {x: 'max(map(members, .x))'}}
      q:
        when: |
          let n = len(members); # A comment in the text? No: a part of it would be.
          n > 2
        every: true
        set: {m: "1"}
        signal:
          - {name: s, kind: activate, region: r, expires: 1s}
          - {name: u, kind: activate, region: r, to: {group: others}}
    memory: {m: {type: int, initial: 0}}
  t:
    parent: g
    members: {threads: 3}
    process: {tags: {list: string}}
    summary: {phase: '"on"', x: "1.5"}
`
	const want = `synchronizers:
  g:
    members: {group: w, count: 2, min: 2, max: 5}
    state:
      phase: {enum: [idle, on]}
      x: float
      ns: {type: {list: int}, default: [1]}
      d: {type: duration, default: 5s}
    predicates:
      p:
        when: >-
          all(members, .phase == "on" and .x > 0.25) or count(members, .phase == 'idle' and .x <= 1e-3)
          == 2 or mean(map(members, .x)) > 1
        signal:
          kind: cancel
          region: r
          data: {x: 'max(map(members, .x))'}
          name: p
          to: all
          expires: 30s
        modality: inst
        for: 0s
        every: false
        cooldown: 0s
        refire: newcomers
        priority: 0
      q:
        when: |
          let n = len(members);
          n > 2
        every: true
        set: {m: '1'}
        signal:
        - {name: s, kind: activate, region: r, expires: 1s, to: all}
        - name: u
          kind: activate
          region: r
          to: {group: others, max: 1000}
          expires: 30s
        modality: inst
        for: 0s
        cooldown: 0s
        priority: 0
    memory: {m: {type: int, initial: 0}}
    silence: {after: 3s, then: drop}
  t:
    parent: g
    members: {threads: 3, min: 1, max: 1000}
    process: {tags: {list: string}}
    summary: {phase: '"on"', x: '1.5'}
`
	got := sameShown(t, []byte(strings.Replace(src, " # A comment in the text? No: a part of it would be.", "", 1)))
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	if _, err := configfile.Show("c", []byte("synchronizers: {}")); err == nil {
		t.Error("a configuration that is refused is shown")
	}
}

// TestShowGenerated shows configurations of any form.
func TestShowGenerated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sameShown(t, []byte(anyConfig(t))) })
}

// anyConfig draws the text of a good configuration.
func anyConfig(t *rapid.T) string {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	var b strings.Builder
	b.WriteString("synchronizers:\n")
	for i := range rapid.IntRange(1, 3).Draw(t, "sections") {
		fmt.Fprintf(&b, "  g%d:\n", i)
		members := "{group: w}"
		if i == 1 {
			b.WriteString("    parent: g0\n    summary: {x: \"1.5\", phase: '\"a\"'}\n")
			members = pick("threads", "{threads: 2}", "{threads: {min: 1, max: 3}}")
		} else {
			members = pick("members", members, "{group: w, count: 7}", "{group: w, count: {min: 2}}", "{group: w, count: {max: 9}}", "{group: w, min: 2, max: 2000}", "{group: w, count: 2000}")
		}
		fmt.Fprintf(&b, "    members: %s\n", strings.Replace(members, "group: w", fmt.Sprintf("group: w%d", i), 1)) // A group has one synchronizer.
		b.WriteString(pick("silence", "", "    silence: {after: 1s}\n", "    silence: {then: block}\n", "    silence:\n      after: 1.5s\n      then: fail\n"))
		b.WriteString(pick("state", "    state: {x: float, phase: {enum: [a, b]}}\n", "    state:\n      x: float\n      phase:\n        enum:\n        - a\n        - 'b'\n"))
		b.WriteString(pick("memory", "    memory: {m: int, n: {type: float, initial: +inf}, o: {type: {enum: [u, v]}, initial: u}}\n", "    memory: {m: {type: int, initial: -3}, n: {type: float, initial: 1.5}}\n"))
		if n := rapid.IntRange(0, 3).Draw(t, "predicates"); n > 0 {
			b.WriteString("    predicates:\n")
			for j := range n {
				anyPredicate(t, &b, j, i != 1, pick)
			}
		}
	}
	return b.String()
}

// anyPredicate draws a predicate; that of threads sends to no other group.
func anyPredicate(t *rapid.T, b *strings.Builder, number int, groups bool, pick func(string, ...string) string) {
	fmt.Fprintf(b, "      p%d:\n        when: %s\n", number, pick("when",
		`all(members, .phase == "a")`, `'all(members, .phase == "a")'`, `"any(members, .x > 1) or\n memory.m == 3"`,
		">-\n          any(members,\n            .x > 1)", "|\n          any(members, .x > 1)\n          // it's a comment: here\n", "|-\n          any(members, .x > 1) and\n            memory.n > 2",
		`any(members, .x > 1)`+strings.Repeat(` and memory.m != 12345`, rapid.IntRange(0, 20).Draw(t, "length")),
	))
	b.WriteString(pick("how", "", "        for: 1.5s\n", "        every: true\n", "        priority: -2\n        modality: inst\n",
		"        until: none(members, .x > 1)\n        cooldown: 1m\n"))
	b.WriteString(pick("set", "", "        set: {m: '1'}\n", "        set:\n          n: memory.n +\n             1.0\n"))
	to := []string{"", ", to: all", `, to: "filter(members, .x > 2)"`, ", to: [w1, w2]"}
	if groups {
		to = append(to, ", to: {group: others}", ", to: {group: more, max: 7}")
	}
	one := "{kind: cancel, region: r" + pick("to", to...) + pick("more", "", ", expires: 2m", ", data: {y: '1', z: \"memory.n\"}") + pick("name", "", ", name: s"+strconv.Itoa(number)) + "}"
	switch pick("signals", "none", "one", "list", "empty") {
	case "one":
		b.WriteString("        signal: " + one + "\n")
	case "list":
		b.WriteString("        signal:\n        - " + one + "\n        - {kind: activate, region: q, name: t" + strconv.Itoa(number) + "}\n")
	case "empty":
		b.WriteString("        signal: []\n")
	}
}

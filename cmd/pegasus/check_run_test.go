package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestCheckAgreesWithRun: what check finds good starts, and takes members; what does
// not start is refused by check, with its place.
func TestCheckAgreesWithRun(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var many strings.Builder
	for i := range 60 {
		fmt.Fprintf(&many, "f%d: int, ", i)
	}
	const below = "synchronizers:\n  s: {members: {group: g}, state: {idle: bool}}\n" +
		"  t:\n    parent: s\n    members: {threads: 2}\n    summary: {idle: \"true\"}\n    predicates: {p: {when: len(members) > 1, signal: {kind: cancel, region: a}}}\n"
	const rest = "program: {name: x, blocks: {a: {}}, body: a}\n"
	dir := t.TempDir()
	for name, src := range map[string]string{
		"good":                            below,
		"two-groups":                      "synchronizers: {s: {members: {group: g}}, u: {members: {group: h}}}\n",
		"two-of-a-group":                  "synchronizers: {s: {members: {group: g}}, u: {members: {group: g}}}\n",
		"threads-only":                    "synchronizers: {t: {members: {threads: 2}}}\n",
		"threads-of-threads":              below + "  v: {parent: t, members: {threads: 2}}\n",
		"parents-in-a-circle":             "synchronizers: {t: {parent: u, members: {threads: 2}}, u: {parent: t, members: {threads: 2}}}\n",
		"two-levels-below":                below + "  v: {parent: s, members: {threads: 2}, summary: {idle: \"true\"}}\n",
		"no-synchronizer":                 "synchronizers: {}\n",
		"with-a-program":                  "synchronizers: {s: {members: {group: g}}}\n" + rest,
		"guessed-threshold":               "synchronizers: {s: {members: {group: g}, state: {on: bool}, predicates: {p: {when: \"count(members, .on) >= 2\", signal: []}}}}\n",
		"threshold-of-nothing":            "synchronizers: {s: {members: {group: g}, predicates: {p: {when: len(members) > 1, modality: atleast}}}}\n",
		"program-alone":                   rest,
		"program-beside-threads":          below + rest,
		"program-of-threads":              below + "program: {name: x, blocks: {a: {threads: 2, synchronizer: t}}, body: a}\n",
		"program-of-free-threads":         "program: {name: x, blocks: {a: {threads: 2}}, body: a}\n",
		"program-of-too-many-threads":     below + "program: {name: x, blocks: {a: {threads: 2000, synchronizer: t}}, body: a}\n",
		"program-of-threads-only":         "synchronizers: {t: {members: {threads: 2}}}\n" + rest,
		"program-of-two":                  "synchronizers: {s: {members: {group: g}}, u: {members: {group: h}}}\n" + rest,
		"program-reads-another":           "synchronizers: {s: {members: {group: g}}, u: {members: {group: h}, predicates: {p: {when: len(members) > 1}}}}\nprogram: {name: x, blocks: {a: {}}, body: {if: u.p, then: a}}\n",
		"program-reads-threads":           below + "program: {name: x, blocks: {a: {}}, body: {if: t.p, then: a}}\n",
		"program-under-threads":           below + "program: {name: x, blocks: {a: {threads: 2, synchronizer: t}}, body: {do: a, async: [t.p]}}\n",
		"program-with-too-many-fields":    "synchronizers: {s: {members: {group: g}, state: {" + strings.TrimSuffix(many.String(), ", ") + "}}}\n" + rest,
		"program-with-a-processors-field": "synchronizers: {s: {members: {group: g}, state: {block: string}}}\n" + rest,
		"program-with-a-processors-name":  "program: {name: x, blocks: {processor: {}}, body: processor}\n",
	} {
		agrees(t, srv.URL(), writeFile(t, dir, name+".yaml", src), strings.HasPrefix(name, "program"))
	}
	for _, pattern := range []string{"../../configs/*.yaml", "../../configs/programs/*.yaml", "testdata/configs/*.yaml", "testdata/programs/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			agrees(t, srv.URL(), file, strings.Contains(pattern, "programs"))
		}
	}
}

func agrees(t *testing.T, url, file string, program bool) {
	t.Helper()
	if strings.HasSuffix(file, "_test.yaml") {
		return // Of rules.
	}
	t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
		args, start := []string{"check", file}, startConfig
		if program {
			args, start = []string{"program", "check", file}, startProgram
		}
		code, _, stderr := execute(t, args...)
		tenant := strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())
		err := start(t.Context(), url, file, tenant[max(0, len(tenant)-60):])
		place := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + `:\d+:\d+: `)
		switch {
		case (code == exitOK) != (err == nil):
			t.Errorf("check: exit %d, %s\nrun: %v", code, stderr, err)
		case code != exitOK && !place.MatchString(stderr):
			t.Errorf("check refuses it without a place: %s", stderr)
		}
	})
}

// startConfig starts what run would, and joins a member to each.
func startConfig(ctx context.Context, url, file, tenant string) error {
	var f runFlags
	cfg, levels, err := f.load(file, io.Discard)
	if err != nil {
		return err
	}
	for _, l := range levels {
		if err := taken(ctx, url, cfg, synchronizer.Options{Name: l.Name, Tenant: tenant}, func() (io.Closer, error) {
			return agent.Join(ctx, url, agent.Config{Group: l.Group, Name: "m", Tenant: tenant})
		}); err != nil {
			return err
		}
	}
	return nil
}

// startProgram starts what program run would, and joins a node.
func startProgram(ctx context.Context, url, file, tenant string) error {
	cfg, err := synchronizer.LoadProgram(file)
	if err != nil {
		return err
	}
	return taken(ctx, url, cfg, synchronizer.Options{Tenant: tenant}, func() (io.Closer, error) {
		block := agent.Block("idle", func(context.Context, *agent.Run, any) (any, error) { return struct{}{}, nil })
		return agent.JoinNode(ctx, url, agent.NodeConfig{Group: cfg.Levels()[0].Group, Name: "n", Tenant: tenant}, block)
	})
}

func taken(ctx context.Context, url string, cfg *synchronizer.Config, opt synchronizer.Options, join func() (io.Closer, error)) error {
	s, err := synchronizer.Start(ctx, url, cfg, opt)
	if err != nil {
		return err
	}
	defer s.Close()
	m, err := join()
	if err != nil {
		return err
	}
	return m.Close()
}

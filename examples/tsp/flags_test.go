package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFlags(t *testing.T) {
	o, err := parseFlags(strings.Fields("-instance x.tsp -processes 4 -threads 1 -nats nats://h:1 -config c.yaml -gap 0.05 -time 2m -seed 7 -subtasks prefix -strategy receiver -tour t -journal d -v -json"))
	if err != nil {
		t.Fatal(err)
	}
	want := &options{
		instance: "x.tsp", processes: 4, threads: 1, nats: "nats://h:1", config: "c.yaml", gap: 0.05, time: 2 * time.Minute,
		seed: 7, subtasks: "prefix", strategy: "receiver", tour: "t", journal: "d", verbose: true, json: true,
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
	o, err = parseFlags(nil)
	if err != nil || o.instance != "kroA100" || o.processes != 3 || o.threads != 2 || o.strategy != bySignals || o.nats != "" || o.gap != 0 || o.time != 0 {
		t.Errorf("without flags: %+v, %v", o, err)
	}
}

func TestWrongUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-frob":                          "flag provided but not defined: -frob",
		"kroA100":                        `unexpected argument "kroA100": every setting is a flag`,
		"-processes x":                   `invalid value "x" for flag -processes: parse error`,
		"-processes 0":                   "-processes 0: use 1 to 256; 0 needs -nats",
		"-processes 257":                 "-processes 257: use 1 to 256",
		"-processes -1 -nats u":          "-processes -1: use 0 to 256",
		"-program -threads 2":            "-threads does not go with -program: examples/tsp/program.yaml decides that",
		"-program -nats u":               "-nats does not go with -program: examples/tsp/program.yaml decides that",
		"-program -worker":               "-worker needs -nats URL: the server of the run, as its first line shows it",
		"-threads 0":                     "-threads 0: use 1 to 256",
		"-gap -0.1":                      "-gap -0.1: use a fraction from 0 to 1, such as 0.01 for one percent",
		"-gap NaN":                       "-gap NaN: use a fraction from 0 to 1, such as 0.01 for one percent",
		"-time -1s":                      "-time -1s: a limit is not negative",
		"-strategy links":                `-strategy "links": use signals or a strategy that needs no keys, such as receiver: strategy: links, column 1: "" is not a member: write its name, as in M1(u=(L<1), o=(L>=10))[1/2]#M2`,
		"-strategy x":                    `-strategy "x": use signals or a strategy that needs no keys, such as receiver: strategy: kind: "x" is not a strategy: write one of receiver, chunk, sender, diffusion, links, tree, market, field, pegasus, greedy`,
		"-subtasks halves":               `-subtasks "halves": use edges or prefix`,
		"-instance=":                     "-instance is empty: name one, or leave it out",
		"-run x":                         "-run is for workers: add -worker",
		"-worker":                        "-worker needs -nats URL: the server of the run, as its first line shows it",
		"-worker -nats nats://h -gap .1": "-gap does not go with -worker: the run decides that",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(strings.Fields(args), &out, &errs); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if got, rest, _ := strings.Cut(errs.String(), "\n"); got != "tsp: "+want || !strings.Contains(rest, "Usage: ") || out.Len() > 0 {
				t.Errorf("error %q, want %q and then the usage", got, want)
			}
		})
	}
}

// TestHelp: the help names every flag, and what every flag is is in the help.
func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-h"}, &out, &errs); code != exitGood || errs.Len() > 0 || out.String() != usage {
		t.Errorf("exit code %d, %s", code, &errs)
	}
	for name := range strings.FieldsSeq("instance processes threads nats config gap time seed subtasks journal v worker program run json h") {
		if !strings.Contains(usage, "\n  -"+name+" ") {
			t.Errorf("the help does not explain -%s", name)
		}
	}
	if _, err := parseFlags([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

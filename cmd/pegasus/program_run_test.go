//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
)

const pairProgram = `
synchronizers:
  gsync:
    members: {group: pairs, count: 2}
    state: {load: {type: float, default: 0.0}}
    predicates: {high: {when: "any(members, .load > 0.9)"}}
program:
  name: pair
  blocks: {b: {group: pairs, input: any, output: any}, slow: {output: any}}
  body:
    seq:
      - {name: two, par: {do: b, input: 7}, times: 2}
      - {name: which, if: high, then: {do: b, from: two.result}, else: slow}
  result: which.result
`

const pairScript = `#!/bin/sh
read x
[ "$PEGASUS_BLOCK" = slow ] && sleep 1000
echo '{"load": '$LOAD'}' >&3
echo '{"got": '$x', "replica": "'$PEGASUS_REPLICA'"}'
`

// pair writes the program and its executable.
func pair(t *testing.T, load string) (file, command string) {
	t.Helper()
	t.Setenv("LOAD", load)
	file, command = filepath.Join(t.TempDir(), "pair.yaml"), filepath.Join(t.TempDir(), "b.sh")
	for name, text := range map[string]string{file: pairProgram, command: pairScript} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // It is executed.
			t.Fatal(err)
		}
	}
	return file, command
}

func startNode(t *testing.T, url, command string) *process {
	t.Helper()
	p := launch(t, "node", "--nats", url, "--group", "pairs", "--name", "n", "--processors", "2", "--grace", "50ms", "--block", "b="+command, "--block", "slow="+command)
	p.line("node n on pid ", ": 2 processors in group pairs: n-0, n-1")
	return p
}

// endNode ends a node as a signal does; it logs that its server was away.
func endNode(t *testing.T, p *process) {
	t.Helper()
	p.cancel()
	if code, stderr := p.exit(); code != exitOK {
		t.Errorf("node: exit %d, %s", code, stderr)
	}
}

// TestProgramRun runs a program on a node to its end, in text and in JSON.
func TestProgramRun(t *testing.T) {
	file, command := pair(t, "0.95")
	run := launch(t, "program", "run", file)
	url := run.url()
	run.line("pair: gsync awaits 2 processors of group pairs. Nodes join with: pegasus node --nats " + url + " --group pairs --name n1 --block NAME=COMMAND")
	node := startNode(t, url, command)
	run.line("start do b[0] (1.1) on n-")
	run.line("passed par two (decision gsync/1/")
	run.line("passed if which by gsync.high, branch 0 (decision gsync/1/")
	run.line(`the program is done: {"got":[{"got":7,"replica":"`, `"replica":""}`)
	if code, stderr := run.exit(); code != exitOK || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	endNode(t, node)

	run = launch(t, "program", "run", "--json", file)
	node = startNode(t, run.object("ready")["url"].(string), command)
	if start := run.object("start"); start["construct"] != "do" || start["name"] != "b" || start["block"] != "1.1" || start["run"] != 1.0 {
		t.Errorf("start: %v", start)
	}
	if finish := run.object("finish"); finish["outcome"] != "done" || !strings.Contains(finish["result"].(string), `"got":7`) {
		t.Errorf("finish: %v", finish)
	}
	if code, stderr := run.exit(); code != exitOK || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	endNode(t, node)
}

const observedProgram = `
synchronizers:
  gsync:
    members: {group: pairs, count: 2}
    state: {power: float, share: float, load: {type: float, default: 0.0}}
    predicates: {known: {when: "all(members, .power == 500.0 and .share >= 0.0 and .share <= 1.0)"}}
program:
  name: observed
  blocks: {b: {group: pairs, output: any}}
  body: {seq: [{name: two, par: b, times: 2}, {if: known, then: b, else: {par: b, times: 2}}]}
`

// TestNodeObserves has a predicate decide on what nodes observe.
func TestNodeObserves(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // The share is known there only.
	}
	file, command := pair(t, "0.1")
	if err := os.WriteFile(file, []byte(observedProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	run := launch(t, "program", "run", file)
	node := launch(t, "node", "--nats", run.url(), "--group", "pairs", "--name", "n", "--processors", "2", "--block", "b="+command, "--observe", "--power", "1000")
	node.line(" core", ": power 1000, share ")
	run.line(" by gsync.known, branch 0")
	run.line("the program is done")
	if code, stderr := run.exit(); code != exitOK || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	endNode(t, node)
}

// TestProgramRunEnds ends a run that hangs: without a journal its blocks are
// cancelled; with one it is left, and another run continues.
func TestProgramRunEnds(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // No other run is noted.
	file, command := pair(t, "0.1")
	run := launch(t, "program", "run", file)
	url := run.url()
	node := startNode(t, url, command)
	run.line("start do slow")
	show := launch(t, "program", "show")
	show.line("program pair is running")
	show.line("BLOCK  STARTS  DONE  FAILED  CANCELLED  LOST  TWICE?  MEAN ", "LONGEST  NOW ")
	show.line("b      2       2     0       0          0     0       ", "body.seq[0].par")
	show.line("slow   1       0     0       0          0     ", "ing on n-", "body.seq[1]")
	run.cancel()
	run.line("cancel do slow (3.1) on n-", ": the run was ended by a signal")
	run.line("the program is cancelled: the run was ended by a signal")
	code, stderr := run.exit()
	if want := "pegasus: the program was cancelled: the run was ended by a signal\n"; code != exitFailure || stderr != want {
		t.Errorf("exit %d, %s", code, stderr)
	}
	endNode(t, node)

	server := launch(t, "run", serverFile(t))
	url = server.url()
	journals := t.TempDir()
	run = launch(t, "program", "run", file, "--nats", url, "--tenant", "blue", "--journal", journals)
	node = launch(t, "node", "--nats", url, "--tenant", "blue", "--group", "pairs", "--name", "n", "--processors", "2", "--grace", "50ms", "--block", "b="+command, "--block", "slow="+command)
	run.line("start do slow")
	kept, _ := filepath.Glob(filepath.Join(journals, "*"))
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	code, _, stderr = execute(t, "program", "run", file, "--nats", url, "--tenant", "green", "--resume", kept[0])
	if want := "pegasus: resume " + kept[0] + ": a run that has not ended writes this journal: end that first\n"; code != exitFailure || stderr != want {
		t.Errorf("resume of a run that goes on: exit %d, %s", code, stderr)
	}
	run.cancel()
	code, stderr = run.exit()
	if code != exitFailure || stderr != "pegasus: the program was left before its end: continue it with --resume "+kept[0]+"\n" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	run = launch(t, "program", "run", file, "--nats", url, "--tenant", "blue", "--resume", kept[0])
	run.line("epoch 1 with 2 members")
	endNode(t, node)
	run.line("lost do slow (3.1) on n-", ": left")
	run.line("the program is failed: do slow: its node n-", " was lost")
	if code, stderr := run.exit(); code != exitFailure || !strings.HasPrefix(stderr, "pegasus: the program has failed: do slow: its node n-") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	server.stop()
}

// TestResumeLeavesWhatIsNoJournal: what cannot be carried on stays as it is.
func TestResumeLeavesWhatIsNoJournal(t *testing.T) {
	file, _ := pair(t, "0.1")
	server := launch(t, "run", serverFile(t))
	url := server.url()
	empty := writeFile(t, t.TempDir(), "empty", "")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		empty: ": resume: the journal is empty, or its first line was not written to the end: nothing can be replayed\n",
		pipe:  "resume " + pipe + ": not a regular file: give the journal of a run\n",
	} {
		code, _, stderr := execute(t, "program", "run", file, "--nats", url, "--resume", path)
		if code != exitFailure || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %s, want %s", code, stderr, want)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	server.stop()
}

// serverFile is a configuration whose run is a server for others.
func serverFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(name, []byte("synchronizers: {other: {members: {group: other}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestProgramFromAPipe: the file of a program is read once.
func TestProgramFromAPipe(t *testing.T) {
	file, command := pair(t, "0.95")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(pipe, text, 0o600)
		}
		written <- err
	}()
	run := launch(t, "program", "run", pipe)
	node := startNode(t, run.url(), command)
	run.line("the program is done")
	if code, stderr := run.exit(); code != exitOK || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	endNode(t, node)
}

// TestProgramWaits: show tells what waits, and for what.
func TestProgramWaits(t *testing.T) {
	text := show.Program(&monitor.ProgramStatus{
		Name: "p", Outcome: "running", WaitsMore: 3,
		Waits: []monitor.WaitStatus{
			{Path: "body.seq[0].par", Name: "b", Replica: "2.1", For: "nodes labelled gpu: 0 of 1 are there"},
			{Path: "body.seq[1]", Name: "if", For: "s.p, which is unknown"},
		},
	})
	const want = "b[2.1] waits for nodes labelled gpu: 0 of 1 are there  (body.seq[0].par)\n" +
		"if waits for s.p, which is unknown  (body.seq[1])\nand 3 more wait\n"
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant at its end\n%s", text, want)
	}
}

// TestProgramTimes: show tells how long runs took and take, and which attempt each is.
func TestProgramTimes(t *testing.T) {
	text := show.Program(&monitor.ProgramStatus{
		Name: "p", Outcome: "running",
		Blocks: []monitor.BlockStatus{
			{Path: "body.seq[0]", Name: "a", RunCounts: monitor.RunCounts{Starts: 3, Done: 2, Lost: 1}, Mean: 1.5, Longest: 2, Runs: []monitor.RunStatus{
				{Attempt: 2, Replica: "1", Processor: "n1", Seconds: 0.25, Phase: "running"}, {Attempt: 1, Processor: "n2", Seconds: 3, Phase: "starting"},
			}},
			{Path: "body.seq[1]", Name: "b", RunCounts: monitor.RunCounts{Starts: 1}},
		},
	})
	const want = `program p is running
BLOCK  STARTS  DONE  FAILED  CANCELLED  LOST  TWICE?  MEAN  LONGEST  NOW                                                             PATH
a      3       2     0       0          1     0       1.5s  2s       [1] running on n1 for 250ms (attempt 2), starting on n2 for 3s  body.seq[0]
b      1       0     0       0          0     0       -     -        -                                                               body.seq[1]
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestProgramOfSeveral: a file that declares two synchronizers of processes can be
// drawn, and neither run nor found good.
func TestProgramOfSeveral(t *testing.T) {
	file := writeFile(t, t.TempDir(), "two.yaml", "synchronizers: {s: {members: {group: g}}, u: {members: {group: h}}}\nprogram: {name: x, blocks: {a: {}}, body: a}\n")
	const want = "the members of s and of u are processes: a program has one synchronizer of processes, which runs its blocks and judges the predicates of its switches: leave one, and run the others from a file of their own\n"
	for _, args := range [][]string{{"program", "check", file}, {"program", "run", "--dry-run", file}, {"program", "run", file}} {
		if code, stdout, stderr := execute(t, args...); code != exitFailure || stdout != "" || !strings.HasPrefix(stderr, file+":1:56: synchronizers.u.members: "+want) {
			t.Errorf("%v: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	if code, _, stderr := execute(t, "program", "graph", file); code != exitOK {
		t.Errorf("graph: exit %d, %s", code, stderr)
	}
}

// TestNodePower refuses powers that no strategy believes.
func TestNodePower(t *testing.T) {
	for power, want := range map[string]string{
		"-1":    "pegasus: --power -1: it is how many units of work the machine does in a second, above 0 and at most 1e+100\n",
		"NaN":   "pegasus: --power NaN: it is how many units of work the machine does in a second, above 0 and at most 1e+100\n",
		"1e300": "pegasus: --power 1e+300: it is how many units of work the machine does in a second, above 0 and at most 1e+100\n",
	} {
		code, stdout, stderr := execute(t, "node", "--nats", "nats://127.0.0.1:1", "--group", "g", "--name", "n", "--block", "b=./b", "--observe", "--power", power)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: exit %d, %s%s", power, code, stdout, stderr)
		}
	}
}

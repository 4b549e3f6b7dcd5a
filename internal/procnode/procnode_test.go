//go:build linux || darwin

package procnode_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/procnode"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const (
	nodeEnv  = "PEGASUS_PROCNODE_TEST"
	leaveEnv = "PEGASUS_PROCNODE_LEAVES"
)

// TestMain is also the node that TestKilledNode kills, and what leaves its process
// group in TestLeavesItsGroup.
func TestMain(m *testing.M) {
	if file, leaves := os.LookupEnv(leaveEnv); leaves {
		leave(file)
		return
	}
	url, script, isNode := strings.Cut(os.Getenv(nodeEnv), "\n")
	if !isNode {
		if err := flag.Set("test.parallel", "16"); err != nil { // They wait, and leave the cores alone.
			panic(err)
		}
		os.Exit(m.Run())
	}
	block, err := procnode.Block("b", []string{"sh", "-c", script}, 0)
	if err == nil {
		_, err = agent.JoinNode(context.Background(), url, agent.NodeConfig{Group: "processors", Name: "a"}, block)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// world is a server and the synchronizer of a program.
type world struct {
	url      string
	finished chan monitor.ProgramEvent
}

func start(t *testing.T, text string) *world {
	t.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{server.URL(), make(chan monitor.ProgramEvent, 1)}
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: func(e monitor.Event) {
		if p, ok := e.(monitor.ProgramEvent); ok && p.Kind == monitor.ProgramFinish {
			w.finished <- p
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return w
}

// node runs a script as block b.
func (w *world) node(t *testing.T, script string, grace time.Duration) *agent.Node {
	t.Helper()
	block, err := procnode.Block("b", []string{"sh", "-c", script}, grace)
	if err != nil {
		t.Fatal(err)
	}
	n, err := agent.JoinNode(t.Context(), w.url, agent.NodeConfig{Group: "processors", Name: "a"}, block)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func (w *world) end(t *testing.T) monitor.ProgramEvent {
	t.Helper()
	select {
	case p := <-w.finished:
		return p
	case <-time.After(time.Minute):
		t.Fatal("the program does not end")
		return monitor.ProgramEvent{}
	}
}

const oneBlock = `
synchronizers:
  gsync:
    members: {group: processors}
    state: {load: float, note: {type: string, default: ""}}
    predicates: {high: {when: "any(members, .load > 0.9)"}}
program:
  name: one
  blocks: {b: {group: processors, input: any, output: any}}
  body:
    seq:
      - {do: b, input: {x: [1, 2]}}
      - {name: which, if: high, then: {do: b, input: 1}, else: {do: b, input: 2}}
  result: which.result
`

// TestProtocol: input, states, result and environment of a process.
func TestProtocol(t *testing.T) {
	w := start(t, oneBlock)
	w.node(t, `read x
echo '{"load": 0.95, "note": "'$PEGASUS_BLOCK'"}' >&3
echo noise >&2
echo '["'$PEGASUS_PROCESSOR'", '$PEGASUS_RUN', '$x']'`, 0)
	if end := w.end(t); end.Outcome != program.Done || end.Result != `["a-0",2,1]` {
		t.Fatalf("%v, %s, %s", end.Outcome, end.Result, end.Reason)
	}
}

// TestStoppedByPredicate: a process that a predicate cancels is done with what it
// wrote if it ends with 0, and with null otherwise.
func TestStoppedByPredicate(t *testing.T) {
	const text = `
synchronizers:
  gsync:
    members: {group: processors}
    state: {load: {type: float, default: 0.0}}
    predicates: {enough: {when: "any(members, .load > 0.9)", signal: {kind: cancel, region: b, to: all}}}
program:
  name: stopped
  blocks: {b: {group: processors, output: any}}
  body: b
  result: b.result
`
	for end, want := range map[string]string{`echo '{"best": 3}'; exit 0`: `{"best":3}`, "echo 3; exit 1": "null", "echo three; exit 0": "null"} {
		w := start(t, text)
		w.node(t, `trap '`+strings.ReplaceAll(end, "'", `'"'"'`)+`' TERM; echo '{"load": 1}' >&3; while :; do sleep 0.01; done`, 0)
		if end := w.end(t); end.Outcome != program.Done || end.Result != want {
			t.Errorf("%v, %s, %s; want %s", end.Outcome, end.Result, end.Reason, want)
		}
	}
}

const onlyBlock = `
program:
  name: only
  blocks: {b: {output: any}}
  body: {do: b%s}
`

// TestHostile: what a process does wrong is contained, and told.
func TestHostile(t *testing.T) {
	dir, scripts := t.TempDir(), 0
	for script, want := range map[string]string{
		"echo no disk >&2; exit 3":              "command sh: ended with exit status 3; stderr: no disk",
		"kill -9 $$":                            "command sh: ended with signal: killed",
		`printf '\001\377x'`:                    `command sh: the output on stdout is no JSON value: it begins with "\x01\xffx"`,
		`printf '"\377"'`:                       `command sh: the output on stdout is no JSON value: it begins with "\"\xff\""`,
		"yes":                                   "command sh: wrote more than 1048576 bytes to stdout: let it result in a reference",
		`printf '{"loud": 1}\n' >&3; sleep 100`: `command sh: line 1 of its states: agent: the configuration declares no field "loud" of blocks, but none`,
		"yes >&3":                               `command sh: line 1 of its states: agent: a state is one JSON object, such as {"load": 0.5}, and not "y"`,
		"head -c 100000 /dev/zero >&3; sleep 100":      "command sh: a line of its states has more than 16384 bytes",
		"head -c 5000 /dev/zero >&2; exit 1":           "command sh: ended with exit status 1; stderr: (2952 bytes before) ????????",
		"exec /nonexistent/program 2>/dev/null":        "command sh: ended with exit status 127",
		"head -c 3000000 /dev/zero":                    "command sh: wrote more than 1048576 bytes to stdout: let it result in a reference",
		"printf '\\377\\000\\n' >&3; sleep 100":        `command sh: line 1 of its states: agent: a state is one JSON object, such as {"load": 0.5}, and not "\xff\x00"`,
		"head -c 5000 /dev/zero >&2; yes >&2 & exit 4": "command sh: ended with exit status 4; stderr: (",
	} {
		t.Run(script, func(t *testing.T) {
			scripts++
			file := filepath.Join(dir, strconv.Itoa(scripts))
			w := start(t, fmt.Sprintf(onlyBlock, ""))
			w.node(t, "echo $$ >"+file+"; "+script, 0)
			if end := w.end(t); end.Outcome != program.Failed || !strings.HasPrefix(end.Reason, want) {
				t.Errorf("%v, %s\nwant %s", end.Outcome, end.Reason, want)
			}
			gone(t, pid(t, file))
		})
	}
	w := start(t, fmt.Sprintf(onlyBlock, ""))
	w.node(t, "true", 0)
	if end := w.end(t); end.Outcome != program.Done {
		t.Errorf("a process that writes nothing: %v, %s", end.Outcome, end.Reason)
	}
}

// TestNothingIsLeft: however a block ends, its process group is gone.
func TestNothingIsLeft(t *testing.T) {
	const deadline = ", deadline: 2s" // The script has begun by then, on a slow machine too.
	const stubborn = `trap '' TERM; echo $$ >%[1]s.new; (sleep 1000 & sleep 1000) & mv %[1]s.new %[1]s; `
	for name, c := range map[string]struct {
		script, deadline string
		outcome          program.Outcome
	}{
		"deadline":   {stubborn + "while :; do sleep 1; done", deadline, program.Failed},
		"polite":     {`trap 'exit 0' TERM; echo $$ >%[1]s; while :; do sleep 0.01; done`, deadline, program.Failed},
		"background": {stubborn + "echo 1", "", program.Done},
		"failure":    {stubborn + "exit 1", "", program.Failed},
		"forks":      {stubborn + "for i in 1 2 3 4 5 6 7 8; do (while :; do sleep 1; done) & done; wait", deadline, program.Failed},
		"states":     {stubborn + "while :; do echo '{}' >&3; done", deadline, program.Failed},
		"noise":      {stubborn + "yes >&2", deadline, program.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			w := start(t, fmt.Sprintf(onlyBlock, c.deadline))
			w.node(t, fmt.Sprintf(c.script, file), 50*time.Millisecond)
			if end := w.end(t); end.Outcome != c.outcome {
				t.Errorf("%v, %s", end.Outcome, end.Reason)
			}
			gone(t, pid(t, file))
		})
	}
	t.Run("close", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		w := start(t, fmt.Sprintf(onlyBlock, ""))
		n := w.node(t, fmt.Sprintf(stubborn+"sleep 1000", file), 50*time.Millisecond)
		group := pid(t, file)
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		gone(t, group)
	})
}

// leave goes into a session of its own, says so, and keeps its output until the test
// has ended.
func leave(file string) {
	_, err := syscall.Setsid()
	if err == nil {
		err = os.WriteFile(file, nil, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testwait.Within(time.Hour, func() bool { // The file goes with the test.
		_, err = os.Stat(file)
		return err != nil
	})
}

// TestLeavesItsGroup: a process that has left its group is not followed, and does not
// keep the block for ever.
func TestLeavesItsGroup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "left")
	w := start(t, fmt.Sprintf(onlyBlock, ""))
	w.node(t, fmt.Sprintf("%s=%s %s & until [ -e %[2]s ]; do sleep 0.01; done", leaveEnv, file, self), 0)
	const want = "command sh: has ended, and a process that left its process group still holds its output"
	if end := w.end(t); end.Outcome != program.Failed || end.Reason != want {
		t.Errorf("%v, %s\nwant %s", end.Outcome, end.Reason, want)
	}
}

// TestKilledNode: on Linux the process ends with its node, even a node that is killed.
func TestKilledNode(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // Nothing is promised there.
	}
	file := filepath.Join(t.TempDir(), "pid")
	w := start(t, fmt.Sprintf(onlyBlock, ""))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), program)
	node.Env = append(os.Environ(), nodeEnv+"="+w.url+"\n"+fmt.Sprintf("echo $$ >%[1]s.new; mv %[1]s.new %[1]s; exec sleep 1000", file))
	node.Stderr = os.Stderr
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	group := pid(t, file)
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait()
	gone(t, group)
}

// pid waits for the number of the process group that a script writes.
func pid(t *testing.T, file string) (n int) {
	t.Helper()
	testwait.Until(t, "the script to start", func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	return n
}

// gone waits until there is no process of a group.
func gone(t *testing.T, group int) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("the end of group %d", group), func() bool { return !lives(group) })
}

// lives reports whether a process of a group runs. A process that has ended does not count,
// also where the first process of the machine, or container, does not wait for it.
func lives(group int) bool {
	if err := syscall.Kill(-group, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is a good one.
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // It is gone by now.
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" && f[0] != "X" {
			return true
		}
	}
	return len(stats) == 0 // Elsewhere than on Linux there is a process that waits.
}

func TestBadCommands(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{nil, `block "b" has no command: give NAME=COMMAND`},
		{[]string{"no-such-command"}, `block "b": exec: "no-such-command": executable file not found in $PATH: give the path of a file that can be executed`},
	} {
		if _, err := procnode.Block("b", c.argv, 0); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.argv, err, c.want)
		}
	}
}

// TestNoThreads: an executable is no block with threads.
func TestNoThreads(t *testing.T) {
	w := start(t, "program: {name: p, blocks: {b: {output: any, threads: 2}}, body: b}")
	w.node(t, "true", 0)
	want := `block "b" has 2 threads, and its code on node a-0 has none: an executable cannot have them, and a Go node needs agent.ThreadBlock; keep it off other nodes by a label`
	if end := w.end(t); end.Outcome != program.Failed || end.Reason != want {
		t.Errorf("%v, %s; want %s", end.Outcome, end.Reason, want)
	}
}

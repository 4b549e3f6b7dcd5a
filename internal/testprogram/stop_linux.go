package testprogram

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testcount"
)

// TestStopped runs the program with arguments, as often as PEGASUS_STOPS says, and stops one of its child processes
// each time, for longer than the others wait for it. The program has to print an object of JSON with the result, and
// nothing lost.
func TestStopped(t *testing.T, result int64, args ...string) {
	t.Helper()
	for seed := range uint64(testcount.Of(t, "STOPS", 1)) { //nolint:gosec // Above 0.
		out := stopped(t, seed, args...)
		var got struct{ Result, Lost int64 }
		if err := json.Unmarshal(out, &got); err != nil || got.Lost != 0 || got.Result != result {
			t.Errorf("seed %d: %v: %s", seed, err, out)
		}
	}
}

// stopped runs the program, stops a child at a random time within a second of the first one's start, lets it
// continue after a second, and returns what the program has printed.
func stopped(tb testing.TB, seed uint64, args ...string) []byte {
	tb.Helper()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	cmd := Command(tb, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var list []int
	for deadline := time.Now().Add(10 * time.Second); len(list) == 0; list = children(cmd.Process.Pid) {
		select {
		case err := <-ended:
			tb.Fatalf("%v ended before it had started a process: %v: %s", args, err, &stderr)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%v has started no process", args)
		}
	}
	time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
	list = children(cmd.Process.Pid)
	if len(list) > 0 { // Else the work is done, which is no fault.
		pid := list[random.IntN(len(list))]
		_ = syscall.Kill(pid, syscall.SIGSTOP) // It may have ended.
		time.Sleep(time.Second)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	if err := <-ended; err != nil {
		tb.Fatalf("%v: %v: %s", args, err, &stderr)
	}
	return stdout.Bytes()
}

// TestKilledAll runs the program with arguments and a directory, kills all its processes after a random time within a second,
// and runs it again with the same directory, as often as PEGASUS_STOPS says. The second run has to print an object
// of JSON with the result.
func TestKilledAll(t *testing.T, result int64, args ...string) {
	t.Helper()
	for seed := range uint64(testcount.Of(t, "STOPS", 1)) { //nolint:gosec // Above 0.
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // It is to be repeatable.
		all := append(slices.Clone(args), "-json", "-store", "jetstream", "-dir", t.TempDir())
		cmd := Command(t, all...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		list := append(children(cmd.Process.Pid), cmd.Process.Pid)
		for _, pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL) // It may have ended.
		}
		_ = cmd.Wait()
		var stderr bytes.Buffer
		cmd = Command(t, all...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var got struct{ Result int64 }
		if err != nil || json.Unmarshal(out, &got) != nil || got.Result != result {
			t.Errorf("seed %d: %v: %s%s", seed, err, out, &stderr)
		}
	}
}

// children are the processes that a process has started and that have not ended.
func children(pid int) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // The pattern is right.
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // It is a process of this machine.
		if err != nil {
			continue // It has ended.
		}
		// The name in parentheses may have any characters: state and parent follow the last one.
		after := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && len(after) > 1 && after[0] != "Z" && after[1] == strconv.Itoa(pid) {
			list = append(list, child)
		}
	}
	return list
}

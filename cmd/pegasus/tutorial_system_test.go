//go:build system && unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/testwait"
)

// TestTutorial does what docs/tutorial.md says, in its order, and compares what the
// commands print. What differs from run to run is left out: times, numbers, the
// drawings. The commands before the run are compared to the letter.
func TestTutorial(t *testing.T) {
	r := newReader(t)
	for _, b := range tutorial(t) {
		switch {
		case b.language == "go" || strings.HasPrefix(b.text, "go install"):
		case b.language == "yaml" && b.file == "":
			t.Errorf("no file name before the block\n%s", b.text)
		case b.language == "yaml":
			r.write(b.file, b.text)
		case strings.HasPrefix(b.text, "$ "):
			for command := range strings.SplitSeq("\n"+b.text, "\n$ ") {
				if line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n"), "\n"); line != "" {
					r.command(line, want)
				}
			}
		case strings.Contains(b.text, "stopped after"):
			r.end(r.run)
			r.told(b.text, r.run)
		case strings.Contains(b.text, " gsync: "):
			r.told(b.text, r.run)
		default:
			r.told(b.text, r.workers...)
		}
	}
	if len(r.workers) != 3 || r.run == nil {
		t.Errorf("the page starts %d workers and the run %v", len(r.workers), r.run)
	}
	for _, w := range r.workers {
		if err := w.Wait(); err != nil {
			t.Errorf("a worker: %v", err)
		}
	}
}

// reader follows the page in a directory of its own.
type reader struct {
	t       *testing.T
	dir     string
	address string
	env     []string
	run     *exec.Cmd
	workers []*exec.Cmd
}

const documentedAddress = "127.0.0.1:4222"

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".", "../../examples/tutorial").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+t.TempDir(), "CI=", "TZ=UTC")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reader) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// start begins a command that keeps running. What it prints is in the file that output reads.
func (r *reader) start(line string) *exec.Cmd {
	r.t.Helper()
	words := strings.Fields(strings.ReplaceAll(strings.TrimSuffix(line, "&"), documentedAddress, r.address))
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", `exec "$@"`, "sh")
	cmd.Args = append(cmd.Args, words...)
	cmd.Dir, cmd.Env = r.dir, r.env
	file, err := os.Create(filepath.Join(r.t.TempDir(), "output"))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill() // Kill does nothing if the process has ended.
		_ = file.Close()
	})
	return cmd
}

func (r *reader) output(cmds ...*exec.Cmd) string {
	r.t.Helper()
	var all strings.Builder
	for _, cmd := range cmds {
		text, err := os.ReadFile(cmd.Stdout.(*os.File).Name())
		if err != nil {
			r.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// end interrupts a command and waits for it.
func (r *reader) end(cmd *exec.Cmd) {
	r.t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		r.t.Errorf("%v: %v\n%s", cmd.Args, err, r.output(cmd))
	}
}

// command does what stands after a $ and wants what stands below it.
func (r *reader) command(line, want string) {
	r.t.Helper()
	switch {
	case strings.HasPrefix(line, "pegasus run "):
		r.run = r.start(line)
		r.told(want, r.run)
	case strings.HasSuffix(line, "&"):
		r.workers = append(r.workers, r.start(line))
	case strings.HasPrefix(line, "pegasus watch "):
		watch := r.start(line)
		r.told(want, watch)
		r.end(watch)
	case line == "pegasus reload":
		cmd := r.start(line)
		if err := cmd.Wait(); err != nil || strings.TrimSuffix(r.output(cmd), "\n") != want {
			r.t.Errorf("%s: %v\n%s\nthe page has\n%s", line, err, r.output(cmd), want)
		}
	default:
		r.shell(line, want)
	}
}

// shell runs a command until it prints the wanted text: a run that has just begun takes
// a moment to be known.
func (r *reader) shell(line, want string) {
	r.t.Helper()
	got := ""
	r.wait(func() bool {
		cmd := exec.CommandContext(r.t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = r.dir, r.env
		out, _ := cmd.CombinedOutput() // Its exit code follows from what it prints.
		got = strings.TrimSuffix(string(out), "\n")
		if r.run == nil && got != want {
			r.t.Fatalf("%s:\n%s\nthe page has\n%s", line, got, want)
		}
		return stable(got) == stable(want)
	}, func() string { return fmt.Sprintf("%s:\n%s\nthe page has\n%s", line, got, want) })
}

// told waits until commands have printed all these lines, in any order.
func (r *reader) told(lines string, cmds ...*exec.Cmd) {
	r.t.Helper()
	r.wait(func() bool {
		left := map[string]int{}
		for line := range strings.SplitSeq(stable(r.output(cmds...)), "\n") {
			left[line]++
		}
		for line := range strings.SplitSeq(stable(strings.TrimSuffix(lines, "\n")), "\n") {
			if left[line]--; left[line] < 0 {
				return false
			}
		}
		return true
	}, func() string { return fmt.Sprintf("it was told:\n%s\nthe page has\n%s", r.output(cmds...), lines) })
}

func (r *reader) wait(done func() bool, text func() string) {
	r.t.Helper()
	if !testwait.Within(3*patience, done) {
		r.t.Fatal(text())
	}
}

var (
	drawing = regexp.MustCompile(`[<\[][-=]+[\]>+]`)
	varying = regexp.MustCompile(`\b[0-9a-f]{16}\b|[+-]?[0-9][0-9:.TZ-]*(ns|µs|ms|s)?`)
	hosts   = regexp.MustCompile(`(?m)^(w# +)\S+( +(?:in|ready|gone) )`)
	blanks  = regexp.MustCompile(` +`)
)

// stable is what does not change from run to run.
func stable(text string) string {
	text = drawing.ReplaceAllString(text, "DRAWING")
	text = varying.ReplaceAllString(text, "#")
	text = hosts.ReplaceAllString(text, "${1}HOST${2}")
	return blanks.ReplaceAllString(text, " ")
}

//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestBinary runs main in a process of its own, and looks at the exit codes.
func TestBinary(t *testing.T) {
	t.Setenv(commandEnv, "1")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{
		"":                                    exitOK,
		"version":                             exitOK,
		"check " + goodConfig:                 exitOK,
		"check testdata/configs/missing.yaml": exitFailure,
		"run testdata/configs/faulty.yaml":    exitFailure,
		"detect " + leaders:                   exitOK,
		"detect testdata/traces/faulty.jsonl": exitFailure,
		"detect --k 2":                        exitUsage,
		"clock --bound 1ms":                   exitOK,
		"clock --bound 1ms --limit 1us --timeout 20ms": exitFailure,
		"clock --bound 1ms --watch --timeout 1s":       exitUsage,
		"status":                                       exitFailure,
		"why":                                          exitUsage,
		"watch --synchronizer a.b":                     exitUsage,
		"chek":                                         exitUsage,
		"run --listen 0.0.0.0:1 x":                     exitUsage,
	} {
		err := exec.CommandContext(t.Context(), binary, strings.Fields(args)...).Run()
		if got := exitCode(t, err); got != want {
			t.Errorf("pegasus %s: exit %d, want %d", args, got, want)
		}
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) { testSignal(t, binary, signal) })
	}
}

// testSignal ends a run by a signal.
func testSignal(t *testing.T, binary string, signal os.Signal) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "run", goodConfig)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "nats://127.0.0.1:") {
		t.Errorf("the first line is %q", lines.Text())
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.Contains(last, "gsync: stopped after") {
		t.Errorf("the last line is %q", last)
	}
	if got := exitCode(t, cmd.Wait()); got != exitOK {
		t.Errorf("exit %d", got)
	}
}

// TestNoFileDescriptors: the server of a run that has no file descriptors left says so, with how many are enough.
func TestNoFileDescriptors(t *testing.T) {
	t.Setenv(commandEnv, "1")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // Then the run is killed, and its output ends.
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -n 40 && exec "$0" run "$1"`, binary, goodConfig)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	next := func(text string) string {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return lines.Text()
			}
		}
		t.Errorf("the output ended without a line with %q", text)
		return ""
	}
	address := strings.TrimPrefix(next("nats://"), "nats://")
	next("agent.Join") // The run has its own connections.
	var clients []net.Conn
	for range 60 {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			t.Error(err)
			break
		}
		clients = append(clients, c)
	}
	next("the NATS server in this process cannot take another connection, as no file descriptors are left: allow 16512, which is enough for its limit of 16384 connections, with ulimit -n 16512, and start again: accept ")
	for _, c := range clients {
		_ = c.Close()
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	next("stopped after")
	if got := exitCode(t, cmd.Wait()); got != exitOK {
		t.Errorf("exit %d", got)
	}
}

// exitCode of a process that has ended.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return failed.ExitCode()
}

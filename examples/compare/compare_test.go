package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/peers"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerArgument {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRuns runs every controller with processes.
func TestRuns(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-json", "-time", "1s", "-seed", "7"}, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var c comparison
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	want := []string{"pegasus", "nats", "nats-kv", "poll-nats", "poll-kv", "etcd"}
	if _, err := exec.LookPath("redis-server"); err == nil {
		want = append(want, "redis")
	} else if len(c.LeftOut) != 1 {
		t.Errorf("Redis was not run, and left out is %q", c.LeftOut)
	}
	if len(c.Legs) != 2*len(want) || c.Time != "1s" || c.Seed != 7 || c.Workers != 10 || c.Pegasus == "" || c.Machine.CPUs == 0 {
		t.Fatalf("%s", out.Bytes())
	}
	for i, l := range c.Legs {
		if l.Controller != want[i%len(want)] || l.Delayed != (i >= len(want)) {
			t.Errorf("leg %d: %+v", i, l)
		}
		if l.Controller != "etcd" && l.Controller != "redis" {
			continue
		}
		// With a delay all firings of so short a run may be false, which have no latency.
		if l.Firings == 0 || l.CPU <= 0 || !l.Delayed && (l.P50 <= 0 || l.OverBare <= 0) {
			t.Errorf("nothing was fired or received: %+v", l)
		}
		// A change is one put of etcd, and two commands of Redis. A few may still wait at the end.
		if a := map[string]float64{"etcd": 1, "redis": 2}[l.Controller]; l.Messages < 0.9*a || l.Messages > a+0.5 {
			t.Errorf("messages for each change: %+v", l)
		}
	}
}

// TestNoRedis: without a redis-server the output says so.
func TestNoRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	more, leftOut := available()
	if len(more) != 1 || more[0].Name != "etcd" {
		t.Errorf("%d controllers", len(more))
	}
	c := comparison{Result: &peers.Result{Legs: []peers.Leg{{Controller: "etcd", Messages: 1.1}}}, LeftOut: leftOut}
	var text, object strings.Builder
	if err := errors.Join(c.write(&text, false), c.write(&object, true)); err != nil {
		t.Fatal(err)
	}
	const said = "redis: there is no redis-server on the PATH; install it to compare with Redis"
	if !strings.Contains(text.String(), "\nleft out: "+said+"\n\ncontroller ") || !strings.Contains(text.String(), "\netcd ") {
		t.Errorf("%s", text.String())
	}
	if !strings.Contains(object.String(), `"left_out":["`+said+`"]`) {
		t.Errorf("%s", object.String())
	}
}

// TestFlagsAreRefused shows the text of each refusal.
func TestFlagsAreRefused(t *testing.T) {
	for arg, want := range map[string]string{
		"etcd":      `argument "etcd": there are no arguments, only flags; see -help`,
		"-time=1ms": "-time 1ms: it must be 200ms to 10m",
		"-time=1h":  "-time 1h0m0s: it must be 200ms to 10m",
	} {
		if err := run(t.Context(), []string{arg}, nil, io.Discard, io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// TestOtherProgram: a program that is not redis-server is an error, which shows its output.
func TestOtherProgram(t *testing.T) {
	script := filepath.Join(t.TempDir(), "redis-server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no such server\nexit 1\n"), 0o700); err != nil { //nolint:gosec // It is started.
		t.Fatal(err)
	}
	_, err := serveRedis(t.Context(), script)
	if want := "redis-server: the program ended at once: check that redis-server on the PATH is of Redis: no such server"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = serveRedis(t.Context(), script+"-that-is-not-there")
	if err == nil || !strings.HasPrefix(err.Error(), "redis-server: the program cannot start: ") {
		t.Errorf("%v", err)
	}
}

// TestInfo reads what INFO answers.
func TestInfo(t *testing.T) {
	cpu, commands, err := parseInfo("# CPU\r\nused_cpu_sys:0.25\r\nused_cpu_user:1.5\r\nused_cpu_sys_children:9\r\n\r\n# Stats\r\ntotal_commands_processed:42\r\n")
	if err != nil || cpu.String() != "1.75s" || commands != 42 {
		t.Errorf("%v, %d, %v", cpu, commands, err)
	}
	for _, text := range []string{"", "used_cpu_sys:1\nused_cpu_user:1\n"} {
		if _, _, err := parseInfo(text); err == nil || !strings.HasPrefix(err.Error(), "the answer of INFO lacks ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := parseInfo("used_cpu_sys:x\n"); !errors.Is(err, strconv.ErrSyntax) {
		t.Errorf("%v", err)
	}
}

// TestSender: texts are sent in order, the queue has a bound, and an error is reported once.
func TestSender(t *testing.T) {
	sent, failed := make(chan string), make(chan error, 1)
	s := newSender(t.Context(), func(ctx context.Context, text string) error {
		select {
		case sent <- text:
		case <-ctx.Done():
			return ctx.Err()
		}
		if text == "1" {
			return errors.New("broken")
		}
		return nil
	}, func(err error) { failed <- err })
	full := 0
	for i := range waiting + 10 {
		if err := s.enqueue(strconv.Itoa(i)); err != nil {
			full++
			if want := "queue to the server: 1024 messages wait in it: the server does not answer fast enough; end other programs on this machine"; err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	if full < 9 || full > 10 { // One may be at send.
		t.Errorf("%d were refused", full)
	}
	if got := fmt.Sprint(<-sent, <-sent); got != "01" && got != "0 1" {
		t.Errorf("sent %s", got)
	}
	if err := <-failed; err.Error() != `message "1" to the server: broken` {
		t.Error(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testprogram"
	"github.com/gopegasus/pegasus/synchronizer"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestFirstProgram runs the program and the configuration of docs/work.md as they are printed there.
func TestFirstProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/work.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if block(string(page), "go") != string(program) {
		t.Error("the first Go block of docs/work.md is not examples/squares/main.go: copy it there")
	}
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	cfg, err := synchronizer.ParseConfig("docs/work.md", []byte(block(string(page), "yaml")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	helper := testprogram.Command(t, server.URL(), "w2", "help")
	var said strings.Builder
	helper.Stdout, helper.Stderr = &said, &said
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := testprogram.Command(t, server.URL(), "w1", "lead").CombinedOutput()
	want := "the sum of 100 squares is 328350\n"
	if err != nil || string(out) != want || !strings.Contains(string(page), "`"+strings.TrimSpace(want)+"`") {
		t.Errorf("%v: %s; want %s, and that in docs/work.md", err, out, want)
	}
	want = "the phase is over\n"
	if err := helper.Wait(); err != nil || said.String() != want {
		t.Errorf("%v: %s; want %s", err, &said, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// block is the first fenced block of a language.
func block(page, language string) string {
	_, rest, _ := strings.Cut(page, "```"+language+"\n")
	text, _, _ := strings.Cut(rest, "```\n")
	return text
}

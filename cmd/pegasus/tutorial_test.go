package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// documentedBlock is a fenced block: the name of the file that it is, if a line
// before it ends with one, its language and its text.
var documentedBlock = regexp.MustCompile("(?s)(?:`([a-z_]+\\.yaml)`[^`\n]*:\n\n)?```([a-z]*)\n(.*?)```\n")

// tutorial reads the blocks of docs/tutorial.md.
func tutorial(t *testing.T) (blocks []block) {
	t.Helper()
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range documentedBlock.FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, block{file: b[1], language: b[2], text: b[3]})
	}
	if strings.Count(string(page), "\n```\n") != 2*len(blocks)-countLanguages(blocks) {
		t.Fatalf("docs/tutorial.md has blocks that are none of the %d", len(blocks))
	}
	return blocks
}

type block struct{ file, language, text string }

func countLanguages(blocks []block) (n int) {
	for _, b := range blocks {
		if b.language != "" {
			n++
		}
	}
	return n
}

// TestTutorialShowsTheProgram keeps the shown program equal to the installed one.
func TestTutorialShowsTheProgram(t *testing.T) {
	program, err := os.ReadFile("../../examples/tutorial/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range tutorial(t) {
		if b.language != "go" {
			continue
		}
		if b.text != string(program) {
			t.Error("the program in docs/tutorial.md is not examples/tutorial/main.go: copy it there")
		}
		return
	}
	t.Error("docs/tutorial.md has no program")
}

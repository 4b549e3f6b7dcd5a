//go:build linux || darwin

package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUIOfALongJournal: the page opens before its journal is read, and shows how far reading is and then the run. A
// damaged line ends the command.
func TestUIOfALongJournal(t *testing.T) {
	text, err := os.ReadFile(writeLongJournal(t, 300))
	if err != nil {
		t.Fatal(err)
	}
	half := bytes.LastIndexByte(text[:len(text)/2], '\n') + 1
	for _, damaged := range []bool{false, true} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if _, err := out.Write(text[:half]); err != nil {
			t.Fatal(err)
		}
		ui := launch(t, "ui", "--journal", pipe)
		page, rest, _ := strings.Cut(ui.line("/#key="), " ")
		if want := "reads " + pipe + ", and then shows it; Ctrl-C ends it"; rest != want {
			t.Errorf("%s, want %s", rest, want)
		}
		base, key, _ := strings.Cut(page, "/#key=")
		if f := openPageStream(t, base+"/stream?key="+key).next(`"kind":"reading"`); f["text"] != "reading "+pipe {
			t.Errorf("%v", f)
		}
		answer, err := http.Get(base + "/states?key=" + key) //nolint:noctx // The test bounds it.
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		if want := "reading " + pipe + ": wait until it is done\n"; err != nil || answer.StatusCode != http.StatusServiceUnavailable || string(said) != want {
			t.Errorf("%d %s %v, want %s", answer.StatusCode, said, err, want)
		}
		_ = answer.Body.Close()
		if damaged {
			if _, err := out.WriteString("{]\n"); err != nil {
				t.Fatal(err)
			}
			if code, stderr := ui.exit(); code != exitFailure || !strings.HasPrefix(stderr, "pegasus: "+pipe+": line ") {
				t.Errorf("exit %d, %s", code, stderr)
			}
			continue
		}
		if _, err := out.Write(text[half:]); err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		for f := (map[string]any{"kind": "reading"}); f["kind"] == "reading"; {
			if f = openPageStream(t, base+"/stream?key="+key).next(`"kind":`); f["kind"] != "reading" && f["record"] == nil {
				t.Errorf("%v", f)
			}
		}
		ui.stop()
	}
}

// TestReadingProgress: the part of the bytes that were read.
func TestReadingProgress(t *testing.T) {
	r := &recordings{path: "journals", size: 200 << 20}
	in := counted{strings.NewReader(strings.Repeat("x", 50)), &r.count}
	if _, err := io.ReadAll(in); err != nil || r.count.Load() != 50 {
		t.Errorf("%d %v", r.count.Load(), err)
	}
	r.count.Store(50 << 20)
	if got := r.progress(); got != "reading journals: 25 % of 200 MiB" {
		t.Error(got)
	}
}

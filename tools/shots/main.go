// Command shots records a run of examples/tsp, and runs the program configs/programs/search.yaml. It opens their pages in a
// headless Chromium, checks what they say, and writes a picture of each, light and dark. "make shots" calls it. It needs
// chromium in the PATH.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// page is a picture: what is opened, what is done there, and what has to be on it then.
type page struct {
	name, hash, click, text string
	whole                   bool // not only what the window shows
}

func pages() []page {
	return []page{
		{"overview", "#overview", "", "NewSubtask", false},
		{"timeline", "#timeline", "", "gsync", false},
		{"why", "#why/tsp/gsync/Done", ".cursor button", "Why they held at one instant", true},
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: shots DIR, of the root of the project")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		cancel()
		log.Fatal("shots: ", err)
	}
}

func run(ctx context.Context, dir string) error {
	journal, err := os.MkdirTemp("", "shots")
	if err != nil {
		return err
	}
	defer os.RemoveAll(journal) //nolint:errcheck // It is temporary.
	record := exec.CommandContext(ctx, "go", "run", "./examples/tsp", "-instance", "kroA100", "-journal", journal)
	record.Stderr = os.Stderr
	if err := record.Run(); err != nil {
		return fmt.Errorf("examples/tsp: %w", err)
	}
	binary := filepath.Join(journal, "pegasus")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/pegasus").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, text)
	}
	home := filepath.Join(journal, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if err := shootProgram(ctx, binary, dir, home); err != nil {
		return err
	}
	ui := exec.CommandContext(ctx, binary, "ui", "--journal", journal)
	ui.Stderr = os.Stderr
	out, err := ui.StdoutPipe()
	if err != nil {
		return err
	}
	if err := ui.Start(); err != nil {
		return err
	}
	defer func() {
		_ = ui.Process.Signal(os.Interrupt)
		_ = ui.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("pegasus ui: %w", err)
	}
	url, _, _ := strings.Cut(line, " ")
	return shootPages(ctx, url, dir, pages())
}

// shootProgram runs a program on three processors and writes a picture of its page, at the first block that is done.
func shootProgram(ctx context.Context, binary, dir, home string) error {
	environment := append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_STATE_HOME="+home) // Of the key of its server.
	start := func(args ...string) (out *bufio.Reader, end func(), err error) {
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Env, cmd.Stderr = environment, os.Stderr
		pipe, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		return bufio.NewReader(pipe), func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}, err
	}
	out, end, err := start("program", "run", filepath.Join("configs", "programs", "search.yaml"), "--ui")
	if err != nil {
		return err
	}
	defer end()
	server, err := out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("pegasus program run: %w", err)
	}
	url := ""
	for url == "" {
		line, err := out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("pegasus program run: %w", err)
		}
		_, url, _ = strings.Cut(strings.TrimSpace(line), "page of this run: ")
	}
	script := filepath.Join(home, "sample.sh")
	if err := os.WriteFile(script, []byte("sleep 3\necho 0.5\n"), 0o600); err != nil {
		return err
	}
	_, end, err = start("node", "--nats", strings.TrimSpace(server), "--group", "searchers", "--name", "n1", "--processors", "3",
		"--block", "sample=sh "+script, "--block", "climb=sleep 300", "--block", "report=true", "--block", "give-up=true")
	if err != nil {
		return err
	}
	defer end()
	return shootPages(ctx, url, dir, []page{{"program", "#program", "", " done in ", true}})
}

// shootPages writes pictures of pages, light and dark.
func shootPages(ctx context.Context, url, dir string, list []page) error {
	for _, scheme := range []string{"light", "dark"} {
		for _, p := range list {
			picture, err := shoot(ctx, url, scheme, p)
			if err != nil {
				return fmt.Errorf("page %s: %w", p.name, err)
			}
			if err := os.WriteFile(filepath.Join(dir, p.name+"-"+scheme+".png"), picture, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// shoot opens a page in a browser of its own.
func shoot(ctx context.Context, url, scheme string, p page) (picture []byte, err error) {
	ctx, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))...)
	defer end()
	quiet := func(string, ...any) {} // A newer Chromium has values that the library does not know.
	ctx, end = chromedp.NewContext(ctx, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	defer end()
	ctx, end = context.WithTimeout(ctx, 30*time.Second)
	defer end()
	do := []chromedp.Action{
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(url),
		chromedp.WaitVisible("section h2"), // The stream has come.
		chromedp.Evaluate(fmt.Sprintf("location.hash = %q", p.hash), nil),
	}
	if p.click != "" {
		do = append(do, chromedp.WaitVisible(p.click), chromedp.Click(p.click))
	}
	var is bool
	shot := chromedp.CaptureScreenshot(&picture)
	if p.whole {
		shot = chromedp.FullScreenshot(&picture, 100)
	}
	do = append(do,
		chromedp.Poll(fmt.Sprintf("document.body.textContent.includes(%q)", p.text), &is),
		chromedp.Sleep(time.Second), // What is drawn is drawn soon after.
		shot)
	return picture, chromedp.Run(ctx, do...)
}

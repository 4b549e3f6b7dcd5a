// Images: a pipeline in which four processes look at strips of each image, IF smooths
// it where they have seen noise, and CASE stores it in the form for what they have seen:
// photo, drawing or text (PEGASUS paper, section 2.2, figure 2.6). Pixels stay in files,
// and results are references to them.
//
// The program is in program.yaml, its blocks in blocks.go, what they compute in
// pixels.go; this file starts the processes and says what came of it.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

//go:embed program.yaml
var config []byte

func main() {
	url := flag.String("url", "", "`URL` of the server: be a node (default: start the server and the nodes)")
	name := flag.String("name", "", "`NAME` of the node")
	dir := flag.String("dir", "", "`DIR` for the images (default: one that is removed in the end)")
	flag.Parse()
	log.SetFlags(0)
	run := func() error { return lead(*dir) }
	if *url != "" {
		run = func() error { return node(*url, *name, *dir) }
	}
	if err := run(); err != nil {
		log.Fatalf("images: %v", err)
	}
}

// lead runs the program on child processes and gives the verdict.
func lead(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "images"); err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // It is the system's to clean.
	}
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		return err
	}
	defer server.Close()
	cfg, err := synchronizer.ParseProgram("program.yaml", config)
	if err != nil {
		return err
	}
	w := watch{finished: make(chan struct{})}
	s, err := synchronizer.Start(ctx, server.URL(), cfg, synchronizer.Options{Observe: w.observe})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // The program has ended, or failed for another reason.
	for i := range strips {
		end, err := child("-url", server.URL(), "-name", "n"+strconv.Itoa(i), "-dir", dir)
		if err != nil {
			return err
		}
		defer end()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	case <-w.finished:
	}
	return w.verdict()
}

// watch keeps what the synchronizer tells of the program.
type watch struct {
	finished  chan struct{}
	end       monitor.ProgramEvent
	decisions []string // of IF and CASE, in turns
	taken     []string // the predicates that were true; empty for else
}

func (w *watch) observe(e monitor.Event) {
	p, ok := e.(monitor.ProgramEvent)
	switch {
	case !ok:
	case p.Kind == monitor.ProgramPass && (p.Construct == "if" || p.Construct == "case"):
		if p.Branch == program.Otherwise {
			p.Predicate = ""
		}
		w.decisions, w.taken = append(w.decisions, p.Decision.String()), append(w.taken, p.Predicate)
	case p.Kind == monitor.ProgramFinish:
		w.end = p
		close(w.finished)
	}
}

// verdict compares every image with what one process makes of it.
func (w *watch) verdict() error {
	if w.end.Outcome != program.Done {
		return fmt.Errorf("the program did not end well: %s", w.end.Reason)
	}
	var t ticket
	if err := json.Unmarshal([]byte(w.end.Result), &t); err != nil {
		return err
	}
	if len(t.Stored) != len(scenes) || len(w.decisions) != 2*len(scenes) {
		return fmt.Errorf("%d images are stored by %d decisions, of %d", len(t.Stored), len(w.decisions), len(scenes))
	}
	smooth := 0
	for i, file := range t.Stored {
		got, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		want, kind, noisy, err := alone(i)
		if err != nil {
			return err
		}
		did := "kept"
		if w.taken[2*i] != "" {
			did = "smoothed"
			smooth++
		}
		fmt.Printf("image %d: %s by decision %s, %d bytes as %s by decision %s\n", i, did, w.decisions[2*i], len(got), filepath.Ext(file)[1:], w.decisions[2*i+1])
		if !bytes.Equal(got, want) || filepath.Ext(file) != "."+kind || noisy != (did == "smoothed") {
			return fmt.Errorf("image %d: one process makes a %s of %d bytes of it, noisy: %v", i, kind, len(want), noisy)
		}
	}
	fmt.Printf("ok: %d images, %d smoothed, by %d decisions; one process makes the same of each, byte for byte\n", len(t.Stored), smooth, len(w.decisions))
	return nil
}

// child runs this program once more; end lets it end.
func child(args ...string) (end func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, args...) //nolint:gosec,noctx // It is this program, and end ends it.
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = in.Close()
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
	}, nil
}

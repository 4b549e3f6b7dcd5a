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
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/examples/nodes"
	"github.com/gopegasus/pegasus/monitor"
)

//go:embed program.yaml
var config []byte

func main() {
	dir := flag.String("dir", "", "`DIR` for the images (default: a new directory that is removed at the end)")
	nodes.Main("images", func(ctx context.Context) error { return lead(ctx, *dir) },
		func(url, name string) error { return node(url, name, *dir) })
}

// lead runs the program on child processes and gives the verdict.
func lead(ctx context.Context, dir string) error {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "images"); err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // It is the system's to clean.
	}
	var w watch
	var t ticket
	if _, err := nodes.Run(ctx, config, strips, w.observe, &t, "-dir", dir); err != nil {
		return err
	}
	return w.verdict(t)
}

// watch keeps what the synchronizer tells of the program.
type watch struct {
	decisions []string // of IF and CASE, in turns
	taken     []string // the predicates that were true; empty for else
}

func (w *watch) observe(p monitor.ProgramEvent) {
	if p.Kind == monitor.ProgramPass && (p.Construct == "if" || p.Construct == "case") {
		if p.Branch == program.Otherwise {
			p.Predicate = ""
		}
		w.decisions, w.taken = append(w.decisions, p.Decision.String()), append(w.taken, p.Predicate)
	}
}

// verdict compares every image with what one process makes of it.
func (w *watch) verdict(t ticket) error {
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

package crew

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Run is what one run of an example has printed.
type Run struct {
	Seconds    float64 // that the work took
	Efficiency float64 // the bound as a part of them
	Migrations int64   // of tasks
	Result     string  // of the example
}

// Again runs this program once more, with its flags and further ones, and returns what it has printed. The result of
// the example has to be a text.
func Again(ctx context.Context, flags ...string) (*Run, error) {
	r := new(Run)
	if err := runSelf(ctx, r, append(flags, "-json")...); err != nil {
		return nil, err
	}
	if r.Seconds <= 0 || r.Result == "" {
		return nil, fmt.Errorf("run %v: its output has no time or no result", flags)
	}
	return r, nil
}

// runSelf runs this program once more, with its flags and further ones, and reads the object that it prints.
func runSelf(ctx context.Context, into any, flags ...string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, append(slices.Clone(os.Args[1:]), flags...)...) //nolint:gosec // It is this program.
	var fault bytes.Buffer
	cmd.Stderr = &fault
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run %v: %w: %s", flags, err, strings.TrimSpace(fault.String()))
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("run %v: its output %.200q: %w", flags, out, err)
	}
	return nil
}

// compare prints what a comparison of runs has come to.
func compare(ctx context.Context, f *flags, job *Job) error {
	object, text, err := job.Compare(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(os.Stdout).Encode(object)
	}
	_, err = fmt.Print(text)
	return err
}

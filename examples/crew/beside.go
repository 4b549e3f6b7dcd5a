package crew

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// partAlone is a process that does the whole work itself, without a space.
const partAlone = "alone"

// alone is the output of a sequential run, and a part of the output of the program.
type alone struct {
	Seconds float64 `json:"seconds"` // that the work took
	Result  any     `json:"result"`  // as in [Report]
}

// runAlone does the whole work in this process, and prints its time and result.
func runAlone(job *Job) error {
	result, took, err := job.Alone()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(alone{took.Seconds(), result})
}

// round is one measurement.
type round struct {
	Alone      []float64 `json:"alone"`      // seconds of each of the sequential runs, side by side
	Together   float64   `json:"together"`   // seconds of the program, on as many processes
	Efficiency float64   `json:"efficiency"` // the speed of the program as a part of the speeds of the sequential runs together
}

// measureBeside runs as many independent sequential runs as processes side by side, and then the program on these
// processes, and this several times. So both share the machine, its memory and its other load in the same way.
func measureBeside(ctx context.Context, p *Program, f *flags) error {
	rounds := make([]round, f.beside)
	for i := range rounds {
		runs, result, err := runSequential(ctx, f.processes)
		if err != nil {
			return err
		}
		var together alone
		if err := runSelf(ctx, &together, "-beside", "0", "-json"); err != nil {
			return err
		}
		if fmt.Sprint(together.Result) != fmt.Sprint(result) {
			return fmt.Errorf("round %d: the result %v differs from %v of a sequential run", i+1, together.Result, result)
		}
		speed := 0.0
		for _, s := range runs {
			speed += 1 / s
		}
		rounds[i] = round{runs, together.Seconds, 1 / together.Seconds / speed}
	}
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b round) int {
		if a.Efficiency < b.Efficiency {
			return -1
		}
		return 1
	})
	median := sorted[len(sorted)/2].Efficiency
	if f.json {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"name": p.Name, "processes": f.processes, "rounds": rounds, "efficiency": median})
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-6s %-24s %9s %10s\n", "round", "alone, side by side", "together", "efficiency")
	for i, r := range rounds {
		var texts []string
		for _, s := range r.Alone {
			texts = append(texts, fmt.Sprintf("%.2fs", s))
		}
		fmt.Fprintf(&table, "%-6d %-24s %8.2fs %10.3f\n", i+1, strings.Join(texts, " "), r.Together, r.Efficiency)
	}
	fmt.Fprintf(&table, "ok: %s on %d processes has an efficiency of %.3f in the middle of %d rounds\n", p.Name, f.processes, median, len(rounds))
	_, err := fmt.Print(table.String())
	return err
}

// runSequential runs n sequential runs side by side, and returns the seconds of each, and their result.
func runSequential(ctx context.Context, n int) (seconds []float64, result any, err error) {
	type ended struct {
		alone
		err error
	}
	all := make(chan ended)
	for range n {
		go func() {
			var e ended
			e.err = runSelf(ctx, &e.alone, "-part", partAlone)
			all <- e
		}()
	}
	for range n {
		e := <-all
		if err == nil {
			err = e.err
		}
		seconds, result = append(seconds, e.Seconds), e.Result
	}
	return seconds, result, err
}

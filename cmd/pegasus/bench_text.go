package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/bench"
)

// benchResult and loadResult are the results with their texts.
type (
	benchResult bench.Result
	loadResult  bench.LoadResult
)

func (r *benchResult) text() string {
	return aligned(func(row func(...string)) {
		row("figure", "ratio", "pegasus", "bare", "unit")
		for _, l := range []struct {
			name, unit string
			bench.Ratio
		}{
			{"reports_ratio", "reports/s", r.Reports},
			{"batched_ratio", "reports/s", r.Batched},
			{"signal_p50_ratio", "µs", r.SignalP50},
			{"signal_p99_ratio", "µs", r.SignalP99},
			{"probe_p50_ratio", "µs", r.ProbeP50},
		} {
			row(l.name, fmt.Sprintf("%.2f", l.Ratio.Ratio), short(l.Product), short(l.Raw), l.unit)
		}
		row("thread_signal_us p50", "", short(r.ThreadSignal.P50), "", "µs")
		row("thread_signal_us p99", "", short(r.ThreadSignal.P99), "", "µs")
		row("check_ns", fmt.Sprintf("%.2f", r.Check/r.AtomicLoad), short(r.Check), short(r.AtomicLoad), "ns, over an atomic load")
		row("stamp_ns", "", short(r.Stamp), "", "ns")
		row("allocs_per_report", "", short(r.Allocs), "", "")
	})
}

func (r *loadResult) text() string {
	return aligned(func(row func(...string)) {
		row("figure", "value", "unit")
		row("asked", short(r.Asked), "reports/s")
		row("told", short(r.Told), "reports/s")
		row("taken in", short(r.Taken), "reports/s")
		row("verdicts", strconv.Itoa(r.Verdicts), "timed")
		row("verdict p50", short(r.Latency.P50), "µs after the change of state")
		row("verdict p99", short(r.Latency.P99), fmt.Sprintf("µs, %.1f times p50", r.Latency.P99/r.Latency.P50))
		row("shed", strconv.FormatUint(r.Shed, 10), "states or messages given up")
	})
}

// aligned lays out rows; cells of one column begin at one place.
func aligned(fill func(row func(cells ...string))) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fill(func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) }) // To a buffer.
	_ = w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// short gives a figure with three digits or so, and no exponent.
func short(x float64) string {
	switch {
	case x >= 100 || x == float64(int(x)):
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// setFlags are the flags that were given, as on the command line but for
// passwords in URLs.
func setFlags(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if f.Name == "nats" {
			value = withUser(value, nil)
		}
		fmt.Fprintf(&b, " --%s %s", f.Name, value)
	})
	return b.String()
}

// machine tells what the figures were measured on.
func machine() string {
	v := ownVersion()
	processor := ""
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil { // Elsewhere its name is left out.
		for line := range strings.Lines(string(info)) {
			if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				processor = strings.TrimSpace(model) + ", "
				break
			}
		}
	}
	return printable(fmt.Sprintf("%s%s, %s/%s, %s", processor, count(runtime.NumCPU(), "CPU"), v.OS, v.Arch, v.Go))
}

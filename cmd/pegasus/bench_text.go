package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/bench"
	"github.com/gopegasus/pegasus/internal/show"
)

// busyThreads is the median of thread_signal_us, in microseconds, above which the threads
// have waited for a processor: on two that are free it is some 2.
const busyThreads = 20

func benchText(r *bench.Result) string {
	rows := [][]string{{"figure", "ratio", "least-most", "pegasus", "bare", "unit", "pegasus cpu", "bare cpu", "of"}}
	for _, l := range []struct {
		name, unit, of string
		bench.Ratio
	}{
		{"reports_ratio", "reports/s", "ns a state, message", r.Reports},
		{"reports_one_connection_ratio", "reports/s", "ns a state, message", r.OneConnection},
		{"batched_ratio", "reports/s", "ns a state, message", r.Batched},
		{"signal_p50_ratio", "µs", "ns a round trip", r.SignalP50},
		{"signal_p99_ratio", "µs", "ns a round trip", r.SignalP99},
		{"probe_p50_ratio", "µs", "ns a round trip", r.ProbeP50},
		{"probe_apart_p50_ratio", "µs", "ns a round trip", r.ApartP50},
	} {
		rows = append(rows, []string{
			l.name, fmt.Sprintf("%.2f", l.Ratio.Ratio), fmt.Sprintf("%.2f-%.2f", l.Least, l.Most), short(l.Pegasus), short(l.Bare), l.unit,
			short(l.PegasusCPU), short(l.BareCPU), l.of,
		})
	}
	hint := ""
	if r.ThreadSignal.P50 > busyThreads {
		hint = "\nthread_signal_us: both threads need a processor of their own, and something else kept one busy\n"
	}
	return show.Table(append(rows,
		[]string{"reports_states_per_message", "", "", short(r.ReportsMessage), "", "", "", "", ""},
		[]string{"batched_states_per_message", "", "", short(r.BatchedMessage), "", "", "", "", ""},
		[]string{"thread_signal_us p50", "", "", short(r.ThreadSignal.P50), "", "µs", "", "", ""},
		[]string{"thread_signal_us p99", "", "", short(r.ThreadSignal.P99), "", "µs", "", "", ""},
		[]string{"check_ns", fmt.Sprintf("%.2f", r.Check/r.AtomicLoad), "", short(r.Check), short(r.AtomicLoad), "ns, over an atomic load", "", "", ""},
		[]string{"stamp_ns", "", "", short(r.Stamp), "", "ns", "", "", ""},
		[]string{"allocs_per_report", "", "", short(r.Allocs), "", "", "", "", ""},
	)) + hint
}

func loadText(r *bench.LoadResult) string {
	return show.Table([][]string{
		{"figure", "value", "unit"},
		{"asked", short(r.Asked), "reports/s"},
		{"told", short(r.Told), "reports/s"},
		{"taken in", short(r.Taken), "reports/s"},
		{"verdicts", strconv.Itoa(r.Verdicts), "timed"},
		{"verdict p50", short(r.Latency.P50), "µs after the change of state"},
		{"verdict p99", short(r.Latency.P99), fmt.Sprintf("µs, %.1f times p50", r.Latency.P99/r.Latency.P50)},
		{"shed", strconv.FormatUint(r.Shed, 10), "states or messages given up"},
	})
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
		if f.Value.Type() == "bool" {
			b.WriteString(" --" + f.Name)
			return
		}
		value := f.Value.String()
		if f.Name == "nats" {
			value = withUser(value, nil)
		}
		fmt.Fprintf(&b, " --%s %s", f.Name, value)
	})
	return b.String()
}

// machine is what the figures are measured on.
func machine() bench.Machine {
	v := ownVersion()
	m := bench.Machine{CPUs: runtime.NumCPU(), OS: v.OS, Arch: v.Arch, Go: v.Go}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil { // Elsewhere its name is left out.
		for line := range strings.Lines(string(info)) {
			if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(model)
				break
			}
		}
	}
	return m
}

func machineText(m bench.Machine) string {
	processor := ""
	if m.CPU != "" {
		processor = m.CPU + ", "
	}
	return show.Printable(fmt.Sprintf("%s%s, %s/%s, %s", processor, show.Count(m.CPUs, "CPU"), m.OS, m.Arch, m.Go))
}

package show

import (
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/internal/bench"
)

// busyThreads is the median of thread_signal_us, in microseconds, above which the threads
// have waited for a processor: on two that are free it is some 2.
const busyThreads = 20

// Machine is what figures were measured on.
func Machine(m *bench.Machine) string {
	processor := ""
	if m.CPU != "" {
		processor = m.CPU + ", "
	}
	return Printable(fmt.Sprintf("%s%s, %s/%s, %s", processor, Count(m.CPUs, "CPU"), m.OS, m.Arch, m.Go))
}

// Bench tells what a comparison with bare NATS has come to.
func Bench(r *bench.Result) string {
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
	return Table(append(rows,
		[]string{"reports_states_per_message", "", "", short(r.ReportsMessage), "", "", "", "", ""},
		[]string{"batched_states_per_message", "", "", short(r.BatchedMessage), "", "", "", "", ""},
		[]string{"thread_signal_us p50", "", "", short(r.ThreadSignal.P50), "", "µs", "", "", ""},
		[]string{"thread_signal_us p99", "", "", short(r.ThreadSignal.P99), "", "µs", "", "", ""},
		[]string{"check_ns", fmt.Sprintf("%.2f", r.Check/r.AtomicLoad), "", short(r.Check), short(r.AtomicLoad), "ns, over an atomic load", "", "", ""},
		[]string{"stamp_ns", "", "", short(r.Stamp), "", "ns", "", "", ""},
		[]string{"allocs_per_report", "", "", short(r.Allocs), "", "", "", "", ""},
	)) + hint
}

// Load tells what a synchronizer did under load.
func Load(r *bench.LoadResult) string {
	rows := [][]string{
		{"figure", "value", "unit"},
		{"asked", short(r.Asked), "reports/s"},
		{"told", short(r.Told), "reports/s"},
		{"taken in", short(r.Taken), "reports/s"},
		{"verdicts", strconv.Itoa(r.Verdicts), "timed"},
		{"verdict p50", short(r.Latency.P50), "µs after the change of state"},
		{"verdict p99", short(r.Latency.P99), fmt.Sprintf("µs, %.1f times p50", r.Latency.P99/r.Latency.P50)},
		{"shed", strconv.FormatUint(r.Shed, 10), fmt.Sprintf("states or messages given up: %d unread, %d gaps", r.Unread, r.Gaps)},
		{"memory", short(r.Growth), "MiB more than at the beginning"},
	}
	if o := r.Overload; o != nil {
		rows = append(rows, [][]string{
			{"told too much", short(o.Told), fmt.Sprintf("reports/s, for %s", o.Time)},
			{"taken of that", short(o.Taken), "reports/s"},
			{"shed unread", strconv.FormatUint(o.Unread, 10), "messages"},
			{"gaps", strconv.FormatUint(o.Gaps, 10), ""},
			{"memory then", short(o.Growth), "MiB more than at the beginning"},
			{"right again", fmt.Sprintf("%.2f", o.Right), "s after that"},
			{"prompt again", fmt.Sprintf("%.2f", o.Prompt), "s after that: p50 below p99 of before"},
		}...)
	}
	return Table(rows)
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

package observe

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// core holds the kernel's counts for a single core, in ticks since the boot.
type core struct {
	id                 int
	total, idle, steal uint64
}

// parseStat reads the lines of cores, which /proc/stat begins with.
func parseStat(dst []core, text []byte) ([]core, error) {
	for line := range bytes.Lines(text) {
		name, counts, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		id, ofCore := strings.CutPrefix(name, "cpu")
		switch {
		case !ofCore:
			return dst, nil
		case id == "": // the sum
			continue
		}
		var err error
		c := core{}
		if c.id, err = strconv.Atoi(id); err != nil || c.id < 0 {
			return dst, fmt.Errorf("%.40q: %q is no number of a core", line, id)
		}
		// user nice system idle iowait irq softirq steal; guests are counted in user.
		fields := strings.Fields(counts)
		if len(fields) < 4 {
			return dst, fmt.Errorf("%.40q has %d counts of a core, at least 4 are there", line, len(fields))
		}
		for i, f := range fields[:min(len(fields), 8)] {
			n, err := strconv.ParseUint(f, 10, 60)
			if err != nil {
				return dst, fmt.Errorf("%.40q: %q is no count of ticks", line, f)
			}
			c.total += n
			switch i {
			case 3, 4:
				c.idle += n
			case 7:
				c.steal = n
			}
		}
		dst = append(dst, c)
	}
	return dst, nil
}

// parsePressure reads the shares of the last 10 s in which some task, and all tasks,
// waited for a core. full is NaN where the kernel does not tell it.
func parsePressure(text []byte) (some, full float64, err error) {
	some, full = math.NaN(), math.NaN()
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(line, " ")
		if kind != "some" && kind != "full" {
			continue // A later kernel may tell more.
		}
		value, ok := strings.CutPrefix(rest, "avg10=")
		value, _, _ = strings.Cut(value, " ")
		percent, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || !(percent >= 0 && percent <= 100) {
			return math.NaN(), math.NaN(), fmt.Errorf("%.40q does not begin with avg10 from 0 to 100", line)
		}
		if kind == "some" {
			some = percent / 100
		} else {
			full = percent / 100
		}
	}
	if math.IsNaN(some) {
		return some, math.NaN(), fmt.Errorf("%.40q has no line \"some\"", text)
	}
	return some, full, nil
}

// parseMax reads cpu.max of cgroup v2: how many cores the group may use at a time,
// infinite if that is not limited.
func parseMax(text []byte) (float64, error) {
	quota, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if quota == "max" {
		quota = "-1"
	}
	return parseQuota([]byte(quota), []byte(period))
}

// parseQuota is parseMax for cpu.cfs_quota_us and cpu.cfs_period_us of v1.
func parseQuota(quota, period []byte) (float64, error) {
	q, err := strconv.ParseInt(string(bytes.TrimSpace(quota)), 10, 64)
	if err == nil && q < 0 {
		return math.Inf(1), nil
	}
	p, err2 := strconv.ParseInt(string(bytes.TrimSpace(period)), 10, 64)
	if err != nil || err2 != nil || q == 0 || p <= 0 {
		return 0, fmt.Errorf("%.40q in %.40q is no quota: both are microseconds above 0", quota, period)
	}
	return float64(q) / float64(p), nil
}

// parseUsage reads the CPU time of a group: of cpu.stat of v2.
func parseUsage(text []byte) (time.Duration, error) {
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "usage_usec "); ok {
			return parseTime([]byte(v), time.Microsecond)
		}
	}
	return 0, fmt.Errorf("%.40q has no usage_usec", text)
}

// parseTime reads a count of units of time.
func parseTime(text []byte, unit time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%.40q is no count of %v", text, unit)
	}
	return time.Duration(n) * unit, nil
}

// parseDelay reads how long a thread was ready and no core ran it, of schedstat.
func parseDelay(text []byte) (time.Duration, error) {
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("%.40q does not tell how long a thread waited", text)
	}
	return parseTime([]byte(fields[1]), time.Nanosecond)
}

// tick is the unit of CPU time in /proc/PID/stat: 1/100 s on every architecture that
// Go supports.
const tick = 10 * time.Millisecond

// parseProcess reads the CPU time of a process, and of those that it has started and
// waited for, of /proc/PID/stat. The name in it may have any character.
func parseProcess(text []byte) (self, waited time.Duration, err error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("%.40q is no state of a process", text)
	}
	var times [4]time.Duration // utime stime cutime cstime
	for i := range times {
		if times[i], err = parseTime([]byte(fields[11+i]), tick); err != nil {
			return 0, 0, fmt.Errorf("%.40q: %w", text, err)
		}
		times[i] = min(times[i], math.MaxInt64/4) // No sum overflows.
	}
	return times[0] + times[1], times[2] + times[3], nil
}

// group is where the control group of this process has its files.
type group struct {
	version int      // 1 or 2
	dirs    []string // of its quota: its own directory and those above it, as far as they are to be seen
	usage   []string // likewise, of its CPU time
}

var errNoGroup = errors.New("no control group limits cores here")

// parseGroup finds the control group for cores from /proc/self/cgroup and
// /proc/self/mountinfo: that of v1 where its controllers are mounted, and of v2
// otherwise.
func parseGroup(cgroup, mountinfo []byte) (group, error) {
	paths := map[string]string{} // by controller; "" is v2
	for line := range strings.Lines(string(cgroup)) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 {
			for controller := range strings.SplitSeq(parts[1], ",") {
				paths[controller] = parts[2]
			}
		}
	}
	dirs := map[string][]string{}
	for line := range strings.Lines(string(mountinfo)) {
		before, after, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		mount, fs := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(fs) < 3 {
			continue
		}
		controllers := []string{""}
		switch fs[0] {
		case "cgroup2":
		case "cgroup":
			controllers = strings.Split(fs[2], ",")
		default:
			continue
		}
		for _, c := range controllers {
			p, ok := paths[c]
			if (c == "" || c == "cpu" || c == "cpuacct") && ok && dirs[c] == nil {
				dirs[c] = upwards(unescape(mount[4]), unescape(mount[3]), p)
			}
		}
	}
	switch {
	case dirs["cpu"] != nil:
		return group{1, dirs["cpu"], dirs["cpuacct"]}, nil
	case dirs[""] != nil:
		return group{2, dirs[""], dirs[""]}, nil
	}
	return group{}, errNoGroup
}

// upwards lists the directories of a group, from its own to the one that is mounted.
// A group outside of what is mounted has that one.
func upwards(mount, root, p string) []string {
	outside := strings.HasPrefix(p, "/..")
	p, root = path.Clean("/"+p), path.Clean("/"+root)
	rel, inside := strings.CutPrefix(p+"/", strings.TrimSuffix(root, "/")+"/")
	if rel = strings.TrimSuffix("/"+rel, "/"); !inside || outside {
		rel = ""
	}
	var dirs []string
	for rel = strings.TrimSuffix(rel, "/"); rel != ""; rel = strings.TrimSuffix(path.Dir(rel), "/") {
		dirs = append(dirs, mount+rel)
	}
	return append(dirs, mount)
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

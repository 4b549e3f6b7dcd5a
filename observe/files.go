package observe

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// files reads what the kernel tells in files, below a root that is / but in tests.
// They stay open. (github.com/prometheus/procfs takes five times as long for /proc/stat,
// and knows neither the quota nor the pressure of a control group.)
type files struct {
	root  string
	cores []int // those that count
	tree  bool  // the processes that this one has started are part of the program
	group group
	open  map[string]*os.File
	buf   []byte

	missing map[string]string // why, by field
}

func newFiles(root string, cores []int, tree bool) *files {
	f := &files{root: root, cores: cores, tree: tree, open: map[string]*os.File{}, buf: make([]byte, 8<<10), missing: map[string]string{}}
	cgroup, err := f.read("/proc/self/cgroup")
	cgroup = slices.Clone(cgroup)
	var mounts []byte
	if err == nil {
		mounts, err = f.read("/proc/self/mountinfo")
	}
	if err == nil {
		f.group, err = parseGroup(cgroup, mounts)
	}
	f.note(FieldUsage, err)
	return f
}

func (f *files) close() error {
	var errs []error
	for _, file := range f.open {
		errs = append(errs, file.Close())
	}
	f.open = nil
	return errors.Join(errs...)
}

// read reads a file that is kept open. The text is valid until the next call.
func (f *files) read(name string) ([]byte, error) {
	file := f.open[name]
	if file == nil {
		var err error
		if file, err = os.Open(filepath.Join(f.root, name)); err != nil {
			return nil, err
		}
		f.open[name] = file
	}
	for {
		n, err := file.ReadAt(f.buf, 0)
		if n < len(f.buf) {
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return f.buf[:n], nil
		}
		if len(f.buf) >= maxFile {
			return nil, fmt.Errorf("%s is longer than %d bytes", name, maxFile)
		}
		f.buf = make([]byte, 2*len(f.buf))
	}
}

// maxFile is more than /proc/stat has of any machine.
const maxFile = 16 << 20

// sample reads all files. own is the CPU time of this process.
func (f *files) sample(s *sample, own time.Duration) {
	f.note(FieldShare, f.stat(s))
	s.own = own
	if f.tree {
		s.own += f.descendants()
	}
	f.quota(s)
	f.pressure(s)
}

func (f *files) note(field string, err error) {
	if err != nil {
		f.missing[field] = err.Error()
	} else {
		delete(f.missing, field)
	}
}

func (f *files) stat(s *sample) error {
	text, err := f.read("/proc/stat")
	if err != nil {
		s.cores = s.cores[:0]
		return err
	}
	if s.cores, err = parseStat(s.cores[:0], text); err != nil {
		s.cores = s.cores[:0]
		return fmt.Errorf("/proc/stat: %w", err)
	}
	s.cores = slices.DeleteFunc(s.cores, func(c core) bool { return !slices.Contains(f.cores, c.id) })
	if len(s.cores) == 0 {
		return errors.New("/proc/stat tells nothing of the cores that this process may use")
	}
	return nil
}

// quota reads the least quota of the group and those above it, and what that one has
// used.
func (f *files) quota(s *sample) {
	s.quota, s.used, s.usedUnknown = math.Inf(1), 0, false
	least := -1
	for i, dir := range f.group.dirs {
		// The root has no such file; nor has v2 where the controller is off.
		if q, err := f.limit(dir); err == nil && q < s.quota {
			s.quota, least = q, i
		}
	}
	if least < 0 {
		if f.group.version != 0 {
			f.missing[FieldUsage] = "the control group has no quota"
		}
		return
	}
	var err error
	s.used, err = f.used(least)
	s.usedUnknown = err != nil
	f.note(FieldUsage, err)
}

func (f *files) limit(dir string) (float64, error) {
	if f.group.version == 2 {
		return readAs(f, dir+"/cpu.max", parseMax)
	}
	text, err := f.read(dir + "/cpu.cfs_quota_us")
	if err != nil {
		return 0, err
	}
	quota := slices.Clone(text)
	return readAs(f, dir+"/cpu.cfs_period_us", func(period []byte) (float64, error) { return parseQuota(quota, period) })
}

func (f *files) used(i int) (time.Duration, error) {
	switch {
	case i >= len(f.group.usage):
		return 0, errors.New("no controller cpuacct tells what the control group uses")
	case f.group.version == 2:
		return readAs(f, f.group.usage[i]+"/cpu.stat", parseUsage)
	}
	return readAs(f, f.group.usage[i]+"/cpuacct.usage", func(text []byte) (time.Duration, error) { return parseTime(text, time.Nanosecond) })
}

// readAs reads a file and what it says.
func readAs[T any](f *files, name string, parse func([]byte) (T, error)) (v T, err error) {
	text, err := f.read(name)
	if err != nil {
		return v, err
	}
	return parse(text)
}

// pressure reads that of the group, or of the machine where it has none of its own.
func (f *files) pressure(s *sample) {
	s.pressure, s.stalled = math.NaN(), math.NaN()
	name := "/proc/pressure/cpu"
	if f.group.version == 2 {
		if _, err := f.read(f.group.dirs[0] + "/cgroup.type"); err == nil { // The root has none.
			name = f.group.dirs[0] + "/cpu.pressure"
		}
	}
	text, err := f.read(name)
	if err == nil {
		s.pressure, s.stalled, err = parsePressure(text)
	}
	f.note(FieldPressure, err)
	if name == "/proc/pressure/cpu" && err == nil {
		s.stalled = math.NaN() // It is 0 there, whatever happens.
		err = errors.New("the kernel tells it of control groups of v2 only")
	}
	f.note(FieldStalled, err)
}

// maxProcesses is how many processes are looked at, so that a program that starts
// very many does not make observation dear.
const maxProcesses = 1024

// descendants is the CPU time of the processes that this one has started, and of those
// that they have. One that has ended counts through the process that waited for it.
func (f *files) descendants() time.Duration {
	var sum time.Duration
	if text, err := f.read("/proc/self/stat"); err == nil {
		_, sum, _ = parseProcess(text)
	}
	next := f.children("self")
	for n := 0; len(next) > 0 && n < maxProcesses; n++ {
		pid := next[0]
		next = next[1:]
		text, err := os.ReadFile(filepath.Join(f.root, "proc", pid, "stat"))
		if err != nil {
			continue // It has just ended.
		}
		if self, waited, err := parseProcess(text); err == nil {
			sum += self + waited
		}
		next = append(next, f.children(pid)...)
	}
	return sum
}

// children lists the processes that the threads of one have started.
func (f *files) children(pid string) []string {
	var pids []string
	dir := filepath.Join(f.root, "proc", pid, "task")
	threads, _ := os.ReadDir(dir)
	for _, t := range threads {
		if text, err := os.ReadFile(filepath.Join(dir, t.Name(), "children")); err == nil {
			for p := range strings.FieldsSeq(string(text)) {
				if _, err := strconv.Atoi(p); err == nil {
					pids = append(pids, p)
				}
			}
		}
	}
	return pids
}

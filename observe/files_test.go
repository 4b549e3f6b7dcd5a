package observe

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// tree makes a root of files: a line "-- name --" before the text of each.
func tree(t *testing.T, text string) string {
	t.Helper()
	root := t.TempDir()
	for _, part := range strings.Split(text, "-- ")[1:] {
		name, body, _ := strings.Cut(part, " --\n")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const machine = `-- proc/stat --
cpu  1 1 1 1
cpu0 10 20 30 40 5 6 7 8 9 9
cpu1 1 1 1 1
cpu2 5 5 5 5
intr 5
-- proc/pressure/cpu --
some avg10=50.00 avg60=42.77 avg300=33.17 total=193969482
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
`

func TestFiles(t *testing.T) {
	cores := []core{{0, 126, 45, 8}, {2, 20, 5, 0}}
	const wholeOnly = "the kernel tells it of control groups of v2 only"
	for _, c := range []struct {
		name, text string
		want       sample
		missing    map[string]string
	}{
		{
			"v2", machine + `-- proc/self/cgroup --
0::/app/x
-- proc/self/mountinfo --
30 25 0:26 / /cg rw - cgroup2 none rw
-- cg/app/x/cgroup.type --
domain
-- cg/app/x/cpu.max --
max 100000
-- cg/app/x/cpu.pressure --
some avg10=20.00 avg60=0.00 avg300=0.00 total=0
full avg10=10.00 avg60=0.00 avg300=0.00 total=0
-- cg/app/cpu.max --
150000 100000
-- cg/app/cpu.stat --
usage_usec 3000000
-- cg/cgroup.procs --
`,
			sample{cores: cores, quota: 1.5, used: 3 * time.Second, pressure: 0.2, stalled: 0.1},
			map[string]string{},
		},
		{
			"v2 root", machine + `-- proc/self/cgroup --
0::/
-- proc/self/mountinfo --
30 25 0:26 / /cg rw - cgroup2 none rw
-- cg/cpu.pressure --
some avg10=99.00 avg60=0.00 avg300=0.00 total=0
full avg10=99.00 avg60=0.00 avg300=0.00 total=0
`,
			sample{cores: cores, quota: math.Inf(1), pressure: 0.5, stalled: math.NaN()},
			map[string]string{"stalled": wholeOnly, "usage": "the control group has no quota"},
		},
		{
			"v1", machine + `-- proc/self/cgroup --
2:cpuacct:/b
1:cpu:/a
0::/
-- proc/self/mountinfo --
31 30 0:28 / /c/cpu rw - cgroup cgroup rw,cpu
32 30 0:29 / /c/acct rw - cgroup cgroup rw,cpuacct
33 30 0:30 / /c/unified rw - cgroup2 none rw
-- c/cpu/cpu.cfs_quota_us --
-1
-- c/cpu/cpu.cfs_period_us --
100000
-- c/cpu/a/cpu.cfs_quota_us --
50000
-- c/cpu/a/cpu.cfs_period_us --
100000
-- c/acct/b/cpuacct.usage --
2000000000
`,
			sample{cores: cores, quota: 0.5, used: 2 * time.Second, pressure: 0.5, stalled: math.NaN()},
			map[string]string{"stalled": wholeOnly},
		},
		{
			"v1 without cpuacct", machine + `-- proc/self/cgroup --
1:cpu:/
-- proc/self/mountinfo --
31 30 0:28 / /c/cpu rw - cgroup cgroup rw,cpu
-- c/cpu/cpu.cfs_quota_us --
50000
-- c/cpu/cpu.cfs_period_us --
100000
`,
			sample{cores: cores, quota: 0.5, usedUnknown: true, pressure: 0.5, stalled: math.NaN()},
			map[string]string{"stalled": wholeOnly, "usage": "no controller cpuacct tells what the control group uses"},
		},
		{
			"no groups", machine + "-- proc/self/cgroup --\n-- proc/self/mountinfo --\n",
			sample{cores: cores, quota: math.Inf(1), pressure: 0.5, stalled: math.NaN()},
			map[string]string{"stalled": wholeOnly, "usage": "no control group limits cores here"},
		},
		{
			"a strange machine", "-- proc/stat --\ncpu0 1 2\nx\n-- proc/pressure/cpu --\nno\n-- proc/self/cgroup --\n-- proc/self/mountinfo --\n",
			sample{quota: math.Inf(1), pressure: math.NaN(), stalled: math.NaN()},
			map[string]string{
				"share":    `/proc/stat: "cpu0 1 2\n" has 2 counts of a core, at least 4 are there`,
				"pressure": `"no\n" has no line "some"`, "stalled": `"no\n" has no line "some"`,
				"usage": "no control group limits cores here",
			},
		},
		{
			"other cores", "-- proc/stat --\ncpu1 1 2 3 4\nx\n-- proc/pressure/cpu --\nsome avg10=0.00 avg60=1\n-- proc/self/cgroup --\n-- proc/self/mountinfo --\n",
			sample{quota: math.Inf(1), pressure: 0, stalled: math.NaN()},
			map[string]string{
				"share":   "/proc/stat tells nothing of the cores that this process may use",
				"stalled": wholeOnly, "usage": "no control group limits cores here",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFiles(tree(t, c.text), []int{0, 2}, false)
			var s sample
			for range 2 { // The second time the files are open.
				f.sample(&s, 7*time.Second)
				c.want.own = 7 * time.Second
				if diff := cmp.Diff(c.want, s, cmp.AllowUnexported(sample{}, core{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
			}
			if diff := cmp.Diff(c.missing, f.missing); diff != "" {
				t.Errorf("missing: want -, got +:\n%s", diff)
			}
			if err := f.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLongFile reads what does not fit the buffer, and refuses what cannot be true.
func TestLongFile(t *testing.T) {
	text := strings.Repeat("x", 3<<13)
	f := newFiles(tree(t, "-- long --\n"+text), nil, false)
	defer f.close()
	if got, err := f.read("long"); string(got) != text || err != nil {
		t.Errorf("%d bytes of %d, error %v", len(got), len(text), err)
	}
}

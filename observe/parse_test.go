package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		what, text, want string
	}{
		{"stat", "cpu  1 2 3 4\ncpu0 10 20 30 40 5 6 7 8 9 9\ncpu12 1 1 1 1\nintr 5", "{0 126 45 8} {12 4 1 0}"},
		{"stat", "", ""},
		{"stat", "cpu0 1 2 3\nx", `"cpu0 1 2 3\n" has 3 counts of a core, at least 4 are there`},
		{"stat", "cpu0 1 -2 3 4\nx", `"cpu0 1 -2 3 4\n": "-2" is no count of ticks`},
		{"stat", "cpux 1 2 3 4\nx", `"cpux 1 2 3 4\n": "x" is no number of a core`},
		{"pressure", "some avg10=31.45 avg60=42.77 avg300=33.17 total=193969482\nfull avg10=1.50 avg60=0.00 avg300=0.00 total=0\n", "0.3145 0.015"},
		{"pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "0 NaN"},
		{"pressure", "full avg10=0.00 avg60=1\n", `"full avg10=0.00 avg60=1\n" has no line "some"`},
		{"pressure", "some avg10=101 avg60=1\n", `"some avg10=101 avg60=1\n" does not begin with avg10 from 0 to 100`},
		{"pressure", "some avg60=1 avg10=1\n", `"some avg60=1 avg10=1\n" does not begin with avg10 from 0 to 100`},
		{"max", "max 100000\n", "+Inf"},
		{"max", "150000 100000\n", "1.5"},
		{"max", "0 100000\n", `"0" in "100000" is no quota: both are microseconds above 0`},
		{"max", "150000\n", `"150000" in "" is no quota: both are microseconds above 0`},
		{"quota", "-1\n 100000\n", "+Inf"},
		{"quota", "50000\n 100000\n", "0.5"},
		{"quota", "50000\n 0\n", `"50000\n" in "0\n" is no quota: both are microseconds above 0`},
		{"usage", "usage_usec 1500000\nuser_usec 1\n", "1.5s"},
		{"usage", "nr_periods 0\n", `"nr_periods 0\n" has no usage_usec`},
		{"usage", "usage_usec -5\n", `"-5\n" is no count of 1µs`},
		{"usage", "usage_usec 9223372036854775807\n", `"9223372036854775807\n" is no count of 1µs`},
		{"delay", "1463273 25000 7\n", "25µs"},
		{"delay", "1463273\n", `"1463273\n" does not tell how long a thread waited`},
		{"process", "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 30 5 200 40 20 0 1 0 1\n", "350ms 2.4s"},
		{"process", "7 (a) S 1 7\n", `"7 (a) S 1 7\n" is no state of a process`},
		{"process", "7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 x 5 200 40 20 0\n", `"7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 x 5": "x" is no count of 10ms`},
	} {
		if got := parsed(c.what, c.text); got != c.want {
			t.Errorf("%s %q:\n got %s\nwant %s", c.what, c.text, got, c.want)
		}
	}
}

// parsed shows what a parser makes of a text.
func parsed(what, text string) string {
	var got []any
	var err error
	one := func(v any, e error) { got, err = []any{v}, e }
	switch what {
	case "stat":
		cores, e := parseStat(nil, []byte(text))
		got, err = []any{strings.Trim(fmt.Sprint(cores), "[]")}, e
	case "pressure":
		some, full, e := parsePressure([]byte(text))
		got, err = []any{some, full}, e
	case "max":
		one(parseMax([]byte(text)))
	case "quota":
		quota, period, _ := strings.Cut(text, " ")
		one(parseQuota([]byte(quota), []byte(period)))
	case "usage":
		one(parseUsage([]byte(text)))
	case "delay":
		one(parseDelay([]byte(text)))
	case "process":
		self, waited, e := parseProcess([]byte(text))
		got, err = []any{self, waited}, e
	}
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(fmt.Sprintln(got...), "\n")
}

func TestParseGroup(t *testing.T) {
	const (
		v2 = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
		v1 = "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n" +
			"32 30 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	for _, c := range []struct {
		name, cgroup, mounts string
		want                 group
		err                  error
	}{
		{"v2", "0::/user.slice/app\n", v2, group{2, []string{"/sys/fs/cgroup/user.slice/app", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}, nil}, nil},
		{"v2 root", "0::/\n", v2, group{2, []string{"/sys/fs/cgroup"}, nil}, nil},
		{"v1 beside v2", "4:cpu,cpuacct:/a\n3:memory:/m\n0::/u\n", v1, group{1, []string{"/sys/fs/cgroup/cpu,cpuacct/a", "/sys/fs/cgroup/cpu,cpuacct"}, nil}, nil},
		{
			"v1 apart", "2:cpuacct:/b\n1:cpu:/a\n",
			"31 30 0:28 / /c/cpu rw - cgroup cgroup rw,cpu\n32 30 0:29 / /c/acct rw - cgroup cgroup rw,cpuacct\n",
			group{1, []string{"/c/cpu/a", "/c/cpu"}, []string{"/c/acct/b", "/c/acct"}},
			nil,
		},
		{"part is mounted", "0::/docker/x/y\n", "30 25 0:26 /docker/x /cg rw - cgroup2 none rw\n", group{2, []string{"/cg/y", "/cg"}, nil}, nil},
		{"a name that only begins so", "0::/docker/xy\n", "30 25 0:26 /docker/x /cg rw - cgroup2 none rw\n", group{2, []string{"/cg"}, nil}, nil},
		{"outside of the namespace", "0::/../other\n", v2, group{2, []string{"/sys/fs/cgroup"}, nil}, nil},
		{"escaped", "0::/a\n", `30 25 0:26 / /my\040groups rw - cgroup2 none rw` + "\n", group{2, []string{"/my groups/a", "/my groups"}, nil}, nil},
		{"not mounted", "0::/a\n", "30 25 0:26 / /tmp rw - tmpfs none rw\n", group{}, errNoGroup},
		{"none", "", "", group{}, errNoGroup},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want.usage == nil {
				c.want.usage = c.want.dirs
			}
			got, err := parseGroup([]byte(c.cgroup), []byte(c.mounts))
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(group{})); diff != "" || err != c.err { //nolint:errorlint // It is this one.
				t.Errorf("error %v, want %v; want -, got +:\n%s", err, c.err, diff)
			}
		})
	}
}

// FuzzParse gives every parser any text: none panics, and what is taken makes sense.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"cpu  1 2 3 4\ncpu0 10 20 30 40 5 6 7 8 9 9\nintr 5", "some avg10=31.45 avg60=1\nfull avg10=1.50\n", "150000 100000\n", "max 100000",
		"usage_usec 1500000\n", "1463273 25000 7\n", "7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 30 5 200 40 20 0 1 0 1\n", "0::/user.slice/app\n4:cpu,cpuacct:/a",
		`30 25 0:26 / /my\040groups rw - cgroup2 none rw`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cores, err := parseStat(nil, text)
		for _, c := range cores {
			if err == nil && (c.id < 0 || c.idle > c.total || c.steal > c.total) {
				t.Errorf("core %+v", c)
			}
		}
		if some, full, err := parsePressure(text); err == nil && (!(some >= 0 && some <= 1) || full < 0 || full > 1) {
			t.Errorf("pressure %v %v", some, full)
		}
		if q, err := parseMax(text); err == nil && !(q > 0) {
			t.Errorf("quota %v", q)
		}
		for _, parse := range []func([]byte) (time.Duration, error){parseUsage, parseDelay} {
			if d, err := parse(text); err == nil && d < 0 {
				t.Errorf("time %v", d)
			}
		}
		if self, waited, err := parseProcess(text); err == nil && (self < 0 || waited < 0 || self+waited < 0) {
			t.Errorf("process %v %v", self, waited)
		}
		for _, g := range [][2][]byte{
			{text, []byte("31 30 0:28 / /c/cpu rw - cgroup cgroup rw,cpu\n30 25 0:26 /x /cg rw - cgroup2 none rw\n")},
			{[]byte("1:cpu,cpuacct:/a\n0::/b\n"), text},
		} {
			got, err := parseGroup(g[0], g[1])
			if err == nil && len(got.dirs) == 0 {
				t.Errorf("group %+v", got)
			}
		}
	})
}

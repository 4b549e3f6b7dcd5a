package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestPartitions: each partition counts each of its accesses once, also if a process is killed, or the one that has
// created them. None goes back to a member that lives and that it came from.
func TestPartitions(t *testing.T) {
	for _, args := range [][]string{
		{"-processes", "3"},
		{"-processes", "4", "-kill", "1"},
		{"-processes", "3", "-store", "jetstream"},
		{"-processes", "4", "-store", "jetstream", "-kill-creator"},
		{"-processes", "3", "-store", "jetstream", "-kill-server"},
	} {
		out, err := testprogram.Command(t, append(args, "-json", "-partitions", "20", "-accesses", "1200", "-cost", "3ms", "-over", "1200ms")...).CombinedOutput()
		var got struct {
			Result, Processes, Redone, Lost int64
			Figures                         struct {
				Returns int
				Static  *struct{ P99, Idle float64 }
			}
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Result != 1200 || got.Lost != 0 || got.Figures.Returns != 0 && !strings.Contains(strings.Join(args, " "), "-kill") || slices.Contains(args, "-kill") && got.Redone == 0 ||
			slices.Contains(args, "jetstream") != (got.Figures.Static == nil) {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	out, err := testprogram.Command(t, "-accesses", "0").CombinedOutput()
	want := "partitions: -partitions 100 -accesses 0 -cost 2ms -over 5s: use 1 to 10000, 1 to 10000000, and no negative time\n"
	if err == nil || string(out) != want {
		t.Errorf("%v: %s; want %s", err, out, want)
	}
}

// TestLoad: the same seed has the same accesses, and the first partition gets its share by Zipf's law.
func TestLoad(t *testing.T) {
	a, err := loadOf(100, 10_000, 0, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := loadOf(100, 10_000, 0, 0, 7)
	c, _ := loadOf(100, 10_000, 0, 0, 8)
	counts := make([]float64, 100)
	for _, p := range a.of {
		counts[p]++
	}
	if !slices.Equal(a.of, b.of) || slices.Equal(a.of, c.of) || math.Abs(counts[0]-1928) > 150 || math.Abs(counts[1]-964) > 120 {
		t.Errorf("the first partitions have %v accesses", counts[:2])
	}
	for _, l := range [][2]int{{0, 1}, {1, 0}, {10_001, 1}, {1, 10_000_001}} {
		if _, err := loadOf(l[0], l[1], 0, 0, 1); err == nil || !strings.HasPrefix(err.Error(), "-partitions") {
			t.Errorf("%v: %v", l, err)
		}
	}
}

// TestPercentile: the classes of latencies are at most 2 % wide, and a percentile is the class in which that part ends.
func TestPercentile(t *testing.T) {
	for us := int64(1); us < 10_000_000; us += us/3 + 1 {
		is := time.Duration(us) * time.Microsecond
		if got := latencyOf(classOf(us)); got < is-is/1000-1 || got > is+is*3/100+time.Microsecond {
			t.Errorf("%v is counted as %v", is, got)
		}
	}
	late := map[int]uint32{3: 1, 1: 90, 2: 9}
	for part, want := range map[float64]int{0.5: 1, 0.9: 1, 0.91: 2, 0.99: 2, 1: 3} {
		if got := percentile(late, 100, part); got != want {
			t.Errorf("%v of all end in class %d, want %d", part, got, want)
		}
	}
}

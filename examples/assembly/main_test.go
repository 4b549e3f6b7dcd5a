package main

import (
	"encoding/json"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestAssembly: the configuration alone makes the program at least twice as fast, with the same result.
func TestAssembly(t *testing.T) {
	out, err := testprogram.Command(t, "-parts", "60", "-json").CombinedOutput()
	var got struct {
		Seconds map[string]float64
		Ratio   float64
		Result  string
	}
	if err != nil || json.Unmarshal(out, &got) != nil || got.Result == "" || got.Ratio < leastRatio || got.Seconds["async"] >= got.Seconds["sync"] || got.Seconds["demand"] >= got.Seconds["async"] {
		t.Errorf("%v: %s", err, out)
	}
	for _, c := range []struct{ flag, value, want string }{
		{"-parts", "0", "assembly: -parts, -pause: give 1 to 1000000 parts, and a time above 0\n"},
		{"-config", "best", "assembly: -config best: use sync, async or demand\n"},
		{"-processes", "4", "assembly: -processes 4: the configuration names the members w1 to w5: run at least 5 processes\n"},
	} {
		out, err := testprogram.Command(t, c.flag, c.value).CombinedOutput()
		if err == nil || string(out) != c.want {
			t.Errorf("%s %s: %v: %s; want %s", c.flag, c.value, err, out, c.want)
		}
	}
}

// TestJudge: a configuration that is not fast enough is a fault.
func TestJudge(t *testing.T) {
	if ratio, err := judge(8, 4); ratio != 2 || err != nil {
		t.Error(ratio, err)
	}
	const want = "configuration demand: it takes 4.00 s and sync 7.90 s, but it has to be 2 times as fast: run more parts, or look at what else the machine does"
	if _, err := judge(7.9, 4); err == nil || err.Error() != want {
		t.Error(err)
	}
}

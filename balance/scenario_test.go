package balance_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
)

// TestScenarios runs the states of testdata: "strategy" makes one from the values
// that differ from the defaults, "plan" lets it plan, "against" shows what a newer
// state leaves of the last plan.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		t.Helper()
		var strategy balance.Strategy
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "strategy":
				var err error
				if strategy, err = balance.New(config(t, d)); err != nil {
					return err.Error() + "\n"
				}
				return strategy.Name() + "\n"
			case "plan":
				var at string
				d.ScanArgs(t, "at", &at)
				plan := strategy.Plan(clocksync.Instant(duration(t, d, at)), state(t, d))
				return plan.String()
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	t.Helper()
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

func float(t *testing.T, d *datadriven.TestData, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

func config(t *testing.T, d *datadriven.TestData) balance.Config {
	t.Helper()
	c := balance.Default()
	for _, a := range d.CmdArgs {
		value := strings.Join(a.Vals, " ")
		switch a.Key {
		case "name":
			c.Strategy = value
		case "waiting":
			c.Waiting = value
		case "cooldown":
			c.Cooldown = duration(t, d, value)
		case "moves":
			c.Moves = int(float(t, d, value))
		default:
			p := map[string]*float64{
				"alpha": &c.Alpha, "beta": &c.Beta, "gamma": &c.Gamma, "margin": &c.Margin, "return": &c.Return, "outlier": &c.Outlier,
			}[a.Key]
			if p == nil {
				d.Fatalf(t, "unknown value %s", a.Key)
			}
			*p = float(t, d, value)
		}
	}
	return c
}

// state reads lines: "node NAME power=P share=S note=WORD", "load NAME on=NODE weight=W
// size=B to=NODE running", "traffic LOAD LOAD VOLUME", "link NODE NODE SECONDS".
// Nodes without a link have no way, if there are any links.
func state(t *testing.T, d *datadriven.TestData) *balance.State {
	t.Helper()
	var s balance.State
	links := map[[2]string]float64{}
	for line := range strings.SplitSeq(d.Input, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) == 1 {
			words = append(words, "") // A name that is missing.
		}
		values := map[string]string{}
		for _, word := range words[2:] {
			key, value, _ := strings.Cut(word, "=")
			values[key] = value
		}
		number := func(key string, otherwise float64) float64 {
			if text, ok := values[key]; ok {
				return float(t, d, text)
			}
			return otherwise
		}
		switch words[0] {
		case "node":
			s.Nodes = append(s.Nodes, balance.Node{Name: words[1], Power: number("power", 1), Share: number("share", 1), Note: values["note"]})
		case "load":
			_, running := values["running"]
			s.Loads = append(s.Loads, balance.Load{
				Name: words[1], Node: values["on"], To: values["to"], Weight: number("weight", 1), Size: number("size", 0), Running: running,
			})
		case "traffic":
			s.Traffic = append(s.Traffic, balance.Traffic{From: words[1], To: words[2], Volume: float(t, d, words[3])})
		case "link":
			cost := float(t, d, words[3])
			links[[2]string{words[1], words[2]}], links[[2]string{words[2], words[1]}] = cost, cost
		default:
			d.Fatalf(t, "unknown line %s", line)
		}
	}
	if len(links) > 0 {
		s.Transfer = func(from, to int, _ float64) float64 {
			if cost, ok := links[[2]string{s.Nodes[from].Name, s.Nodes[to].Name}]; ok {
				return cost
			}
			return -1 // As good as infinite.
		}
	}
	return &s
}

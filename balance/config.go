package balance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// The strategies.
const (
	Pegasus = "pegasus" // the strategy of the PEGASUS paper, section 3
	Greedy  = "greedy"  // the largest load from the longest to the shortest queue, until nothing is gained
	Largest = "largest" // the most loaded node evens out with the least loaded one, one pair a plan
	None    = "none"    // nothing moves
)

// Names lists the strategies.
var Names = []string{Pegasus, Greedy, Largest, None}

// How loads that wait lower the availability of a node.
const (
	// ByWeight counts the work that waits, also for the imbalance and the
	// classes: equation 3.4 with weights in place of numbers of threads.
	ByWeight = "weight"
	// ByCount is the paper as printed: the imbalance and the classes look at
	// availability alone, and equation 3.4 counts threads.
	ByCount = "count"
)

// Config picks a strategy and its parameters. The tags are the keys of a
// configuration file.
type Config struct {
	// Strategy is one of Names.
	Strategy string `yaml:"strategy"`
	// Alpha is how many times the least availability the greatest may be before
	// that is an imbalance: above 1; the paper uses 1.5 to 2.5 (section 3.3).
	Alpha float64 `yaml:"alpha"`
	// Beta, from 0 to 1, is what attraction counts in the choice of the load;
	// 1-Beta is what the deviation from the mean weight counts (equation 3.2).
	Beta float64 `yaml:"beta"`
	// Gamma, from 0 to 1, is what attraction counts in the choice of the target;
	// 1-Gamma is what availability counts (equation 3.3).
	Gamma float64 `yaml:"gamma"`
	// Waiting is ByWeight or ByCount.
	Waiting string `yaml:"waiting"`
	// Margin, from 0 and below 1, is by which part of the source's queue the
	// target's queue has to stay shorter, with the load on it.
	Margin float64 `yaml:"margin"`
	// Cooldown is how long a load that was moved rests, 0 or more.
	Cooldown time.Duration `yaml:"cooldown"`
	// Return, from 0 to 1, is to which part of its availability a node has to
	// fall before a load that was moved there may go back where it came from. At
	// 0 only a node that has nothing left gives loads back.
	Return float64 `yaml:"return"`
	// Outlier is by how many times a node may differ from the median of all, in
	// its power or in the weights it reports, and still be believed: above 1.
	// Nodes beyond are left alone. It takes three nodes to judge one.
	Outlier float64 `yaml:"outlier"`
	// Moves is the most moves of a plan, from 1 to 100000.
	Moves int `yaml:"moves"`
}

// Default returns the PEGASUS strategy with the values that docs/balance.md
// gives figures for.
func Default() Config {
	return Config{
		Strategy: Pegasus, Alpha: 1.5, Beta: 0.5, Gamma: 0.5, Waiting: ByWeight,
		Margin: 0.05, Cooldown: time.Second, Return: 0.25, Outlier: 200, Moves: 1000,
	}
}

const maxMoves = 100_000

// Fault is one value of a configuration that is refused.
type Fault struct {
	Key     string // as in the configuration file
	Message string // what is wrong with its value
}

// Error tells key and reason.
func (f *Fault) Error() string { return "balance: " + f.Key + ": " + f.Message }

// Faults returns the faults, by key, or nothing.
func (c *Config) Faults() []Fault {
	var list []Fault
	need := func(ok bool, key, format string, args ...any) {
		if !ok {
			list = append(list, Fault{key, fmt.Sprintf(format, args...)})
		}
	}
	need(slices.Contains(Names, c.Strategy), "strategy", "%q is not one of %s", c.Strategy, strings.Join(Names, ", "))
	need(c.Alpha > 1 && finite(c.Alpha), "alpha", "%v must be above 1; 1.5 to 2.5 is usual", c.Alpha)
	need(c.Beta >= 0 && c.Beta <= 1, "beta", "%v must be from 0 to 1", c.Beta)
	need(c.Gamma >= 0 && c.Gamma <= 1, "gamma", "%v must be from 0 to 1", c.Gamma)
	need(c.Waiting == ByWeight || c.Waiting == ByCount, "waiting", "%q is neither %s nor %s", c.Waiting, ByWeight, ByCount)
	need(c.Margin >= 0 && c.Margin < 1, "margin", "%v must be from 0 and below 1", c.Margin)
	need(c.Cooldown >= 0, "cooldown", "%v must be 0 or more", c.Cooldown)
	need(c.Return >= 0 && c.Return <= 1, "return", "%v must be from 0 to 1", c.Return)
	need(c.Outlier > 1 && finite(c.Outlier), "outlier", "%v must be above 1", c.Outlier)
	need(c.Moves >= 1 && c.Moves <= maxMoves, "moves", "%d must be from 1 to %d", c.Moves, maxMoves)
	return list
}

// New makes the strategy of a configuration. The error is all Faults, joined.
func New(c Config) (Strategy, error) {
	list := c.Faults()
	faults := make([]error, len(list))
	for i := range list {
		faults[i] = &list[i]
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	b := &base{cfg: c, memory: map[string]lastMove{}}
	b.plan = map[string]func(clocksync.Instant, *State) Plan{Pegasus: b.planPegasus, Greedy: b.planGreedy, Largest: b.planLargest, None: b.planNone}[c.Strategy]
	return b, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

package config

import (
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// BalanceName is the name under which the section balance of a synchronizer
// explains itself, and the predicate of its signals. No predicate has it beside
// the section.
const BalanceName = "balance"

// Balance is the section of a synchronizer that has loads moved between its
// members.
type Balance struct {
	Strategy string `yaml:"strategy"` // one of balance.Names
	// Loads names what a member has waiting, Weights tells the work in each, Rest
	// the work that stays; an expression on a member each.
	Loads   string `yaml:"loads,required"`
	Weights string `yaml:"weights"` // a list as long as Loads, or one number for all; default 1
	Rest    string `yaml:"rest"`    // default 0
	// Power and Share make up what a member can do, an expression on it each.
	Power string `yaml:"power"` // work in a second, default 1
	Share string `yaml:"share"` // of it, from 0 to 1, default 1
	// When is a condition on the global state without which no plan is made.
	When string `yaml:"when"`
	// Every is the least time between two looks.
	Every time.Duration `yaml:"every"`
	// Region is where orders go, Name selects the handler, and Expires is how long
	// they are tried.
	Region  string        `yaml:"region,required"`
	Name    string        `yaml:"name"`    // default BalanceName
	Expires time.Duration `yaml:"expires"` // more than 0, at most MaxExpiry
	// Transit is how long a load that was ordered away counts as under way, unless it
	// shows where it goes to.
	Transit time.Duration `yaml:"transit"`
	// Transfer is the time that a move takes.
	Transfer time.Duration `yaml:"transfer"`

	// The fields of balance.Config, with its ranges and defaults.
	Alpha    float64       `yaml:"alpha"`    // imbalance: how many times the least availability the greatest is; over 1
	Beta     float64       `yaml:"beta"`     // attraction in the choice of the load, from 0 to 1
	Gamma    float64       `yaml:"gamma"`    // attraction in the choice of the target, from 0 to 1
	Waiting  string        `yaml:"waiting"`  // how loads that wait lower availability: balance.ByWeight or ByCount
	Margin   float64       `yaml:"margin"`   // the part by which the target's queue stays shorter, from 0, below 1
	Cooldown time.Duration `yaml:"cooldown"` // how long a load rests after a move
	Return   float64       `yaml:"return"`   // the part of its availability below which a member gives loads back, from 0 to 1
	Outlier  float64       `yaml:"outlier"`  // how many times a member may differ from the median and be believed; over 1
	Moves    int           `yaml:"moves"`    // the most moves of a plan, from 1
}

// LeastEvery is the least time between two looks that a section may ask for.
const LeastEvery = time.Millisecond

const (
	balanceEvery   = 250 * time.Millisecond
	balanceExpires = 5 * time.Second
	balanceTransit = 2 * time.Second
)

// DefaultBalance is a section with its defaults: without loads and region, which are
// needed.
func DefaultBalance() Balance {
	d := balance.Default()
	return Balance{
		Strategy: d.Strategy, Weights: "1", Rest: "0", Power: "1", Share: "1",
		Every: balanceEvery, Name: BalanceName, Expires: balanceExpires, Transit: balanceTransit,
		Alpha: d.Alpha, Beta: d.Beta, Gamma: d.Gamma, Waiting: d.Waiting, Margin: d.Margin,
		Cooldown: d.Cooldown, Return: d.Return, Outlier: d.Outlier, Moves: d.Moves,
	}
}

// UnmarshalNode fills in the defaults.
func (b *Balance) UnmarshalNode(n yamlconf.Node) error {
	type plain Balance // Without this method.
	raw := plain(DefaultBalance())
	err := n.Decode(&raw)
	*b = Balance(raw)
	return err
}

// Config is what of the section the strategy takes.
func (b *Balance) Config() balance.Config {
	return balance.Config{
		Strategy: b.Strategy, Alpha: b.Alpha, Beta: b.Beta, Gamma: b.Gamma, Waiting: b.Waiting, Margin: b.Margin,
		Cooldown: b.Cooldown, Return: b.Return, Outlier: b.Outlier, Moves: b.Moves,
	}
}

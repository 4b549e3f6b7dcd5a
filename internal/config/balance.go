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
	Strategy string `yaml:"strategy"`
	// Loads names what a member has waiting, Weights tells the work in each, Rest
	// the work that stays; an expression on a member each.
	Loads   string `yaml:"loads,required"`
	Weights string `yaml:"weights"`
	Rest    string `yaml:"rest"`
	// Power and Share make up what a member can do, an expression on it each.
	Power string `yaml:"power"`
	Share string `yaml:"share"`
	// When is a condition on the global state without which no plan is made.
	When string `yaml:"when"`
	// Every is the least time between two looks.
	Every time.Duration `yaml:"every"`
	// Region is where orders go, Name selects the handler, and Expires is how long
	// they are tried.
	Region  string        `yaml:"region,required"`
	Name    string        `yaml:"name"`
	Expires time.Duration `yaml:"expires"`
	// Transit is how long a load that was ordered away counts as under way, unless it
	// shows where it goes to.
	Transit time.Duration `yaml:"transit"`
	// Transfer is the time that a move takes.
	Transfer time.Duration `yaml:"transfer"`

	Alpha    float64       `yaml:"alpha"`
	Beta     float64       `yaml:"beta"`
	Gamma    float64       `yaml:"gamma"`
	Waiting  string        `yaml:"waiting"`
	Margin   float64       `yaml:"margin"`
	Cooldown time.Duration `yaml:"cooldown"`
	Return   float64       `yaml:"return"`
	Outlier  float64       `yaml:"outlier"`
	Moves    int           `yaml:"moves"`
}

const (
	balanceEvery   = 250 * time.Millisecond
	balanceExpires = 5 * time.Second
	balanceTransit = 2 * time.Second
	LeastEvery     = time.Millisecond
)

// defaultBalance has no loads and no region, which are needed.
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

func (b *Balance) Config() balance.Config {
	return balance.Config{
		Strategy: b.Strategy, Alpha: b.Alpha, Beta: b.Beta, Gamma: b.Gamma, Waiting: b.Waiting, Margin: b.Margin,
		Cooldown: b.Cooldown, Return: b.Return, Outlier: b.Outlier, Moves: b.Moves,
	}
}

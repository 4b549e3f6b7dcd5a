package synccore

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
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
	leastEvery     = time.Millisecond
)

// defaultBalance has no loads and no region, which are needed.
func defaultBalance() Balance {
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
	raw := plain(defaultBalance())
	err := n.Decode(&raw)
	*b = Balance(raw)
	return err
}

func (b *Balance) config() balance.Config {
	return balance.Config{
		Strategy: b.Strategy, Alpha: b.Alpha, Beta: b.Beta, Gamma: b.Gamma, Waiting: b.Waiting, Margin: b.Margin,
		Cooldown: b.Cooldown, Return: b.Return, Outlier: b.Outlier, Moves: b.Moves,
	}
}

// Balancing is a compiled section balance. It does not change and may be shared.
type Balancing struct {
	set    Balance
	config balance.Config
	text   string // equal texts are equal sections
	when   *predicates.Expression

	loads, weights, rest, power, share *predicates.MemberExpression
	single                             bool // weights is one number for every load
}

// Config has the strategy and its values.
func (b *Balancing) Config() balance.Config { return b.config }

// Balancing is the section balance of the plan, nil if there is none.
func (p *Plan) Balancing() *Balancing { return p.balance }

// balance compiles the section.
func (c *compiler) balance() {
	s := c.sec.Synchronizer.Balance
	if s == nil {
		return
	}
	const at = "balance"
	if c.plan.Members.Threads {
		c.report(at, -1, "loads move between the members of a group, never between threads",
			"tell them in the summary, and let the parent balance its members")
		return
	}
	b := &Balancing{set: *s, config: s.config()}
	faults := b.config.Faults()
	for _, f := range faults {
		c.report(at+"."+f.Key, -1, f.Message, "")
	}
	if len(faults) == 0 {
		b.text = canonical(s) // Its numbers are finite.
	}
	c.balanceTimes(at, s)
	for _, t := range []struct{ what, token string }{{"name", s.Name}, {"region", s.Region}} {
		if err := wire.CheckToken(t.what, t.token); err != nil && t.token != "" {
			c.report(at+"."+t.what, -1, err.Error(), "")
		}
	}
	for _, e := range c.sec.Synchronizer.Predicates {
		if e.Key == BalanceName {
			c.report("predicates."+e.Key, -1, "the section balance has that name", "give the predicate another one")
		}
	}
	c.balanceTexts(at, s)
	b.loads = c.member(at+".loads", s.Loads, false, true)
	b.weights, b.single = c.weights(at+".weights", s.Weights)
	b.rest = c.member(at+".rest", s.Rest, true, false)
	b.power = c.member(at+".power", s.Power, true, false)
	b.share = c.member(at+".share", s.Share, true, false)
	if s.When != "" {
		b.when = c.program(at+".when", s.When, c.plan.env.Bool)
	}
	c.plan.balance = b
}

func (c *compiler) balanceTimes(at string, s *Balance) {
	if s.Every < leastEvery || s.Every > maxExpiry {
		c.report(at+".every", -1, fmt.Sprintf("%v between two looks: it has to be from %v to %v", s.Every, leastEvery, maxExpiry), "")
	}
	if s.Expires <= 0 || s.Expires > maxExpiry {
		c.report(at+".expires", -1, fmt.Sprintf("a signal expires after more than 0 and at most %v", maxExpiry), "")
	}
	if s.Transit <= 0 || s.Transit > maxExpiry {
		c.report(at+".transit", -1, fmt.Sprintf("a load is under way for more than 0 and at most %v", maxExpiry), "")
	}
	if s.Transfer < 0 || s.Transfer > maxExpiry {
		c.report(at+".transfer", -1, fmt.Sprintf("a move takes from 0 to %v", maxExpiry), "")
	}
}

// balanceTexts refuses keys that are there and say nothing.
func (c *compiler) balanceTexts(at string, s *Balance) {
	d := defaultBalance()
	for _, t := range []struct{ key, text, without string }{
		{"weights", s.Weights, d.Weights}, {"rest", s.Rest, d.Rest}, {"power", s.Power, d.Power}, {"share", s.Share, d.Share}, {"name", s.Name, d.Name},
	} {
		if strings.TrimSpace(t.text) == "" {
			c.report(at+"."+t.key, -1, "an empty text", "leave the key out: then it is "+t.without)
		}
	}
	if s.Loads != "" && strings.TrimSpace(s.Loads) == "" { // Nothing at all has been reported.
		c.report(at+".loads", -1, "an empty text", "it is required here")
	}
}

// weights compiles a list of weights, or one number for every load.
func (c *compiler) weights(at, src string) (program *predicates.MemberExpression, single bool) {
	if one, err := c.plan.env.Member(src, true, false); err == nil {
		c.account(at, one.Expression())
		return one, true
	}
	return c.member(at, src, true, true), false
}

// member compiles an expression on one member.
func (c *compiler) member(at, src string, numbers, lists bool) *predicates.MemberExpression {
	if strings.TrimSpace(src) == "" {
		return nil // Which has been reported.
	}
	m, err := c.plan.env.Member(src, numbers, lists)
	if err != nil {
		c.refuse(at, src, err)
		return nil
	}
	c.account(at, m.Expression())
	return m
}

// sent is the signal of the section.
func (b *Balancing) sent() Sent {
	return Sent{
		Predicate: BalanceName, Name: b.set.Name, Kind: control.Activate, Region: b.set.Region,
		Data: scgs.Schema{{Name: balance.OrdersDatum, Type: scgs.String}},
	}
}

// balanceTexts is the section by its keys, for comparing.
func (p *Plan) balanceTexts() map[string]string {
	if p.balance == nil {
		return nil
	}
	return map[string]string{"": p.balance.text}
}

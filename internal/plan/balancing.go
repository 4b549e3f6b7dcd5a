package plan

import (
	"fmt"
	"strings"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Balance is a compiled section balance. It does not change and may be shared.
type Balance struct {
	Set    config.Balance         // the section, with its defaults
	Config balance.Config         // what of it the strategy takes
	Text   string                 // equal texts are equal sections
	When   *predicates.Expression // nil: a plan is made on every global state

	// Loads names the loads that a member has waiting, Weights tells the work in each,
	// Rest the work that stays, Power the work that it does in a second, and Share the
	// part of that, from 0 to 1, which is left to the program.
	Loads, Weights, Rest, Power, Share *predicates.MemberExpression
	Single                             bool // Weights is one number for every load

	// Objects is more that members tell of the objects of a space; nil: the loads belong to a section balance.
	Objects *ObjectTexts
}

// compileBalance compiles the section balance of members, or of the objects of a space.
func (c *compiler) compileBalance() {
	s := c.balance
	if s == nil {
		return
	}
	const at = "balance"
	if c.plan.Members.Threads {
		c.report(at, -1, "loads move between the members of a group, never between threads",
			"tell them in the summary, and let the parent balance its members")
		return
	}
	b := &Balance{Set: *s, Config: s.Config()}
	faults := b.Config.Faults()
	for _, f := range faults {
		c.report(at+"."+f.Key, -1, f.Message, "")
	}
	if len(faults) == 0 {
		b.Text = string(Encode(s)) // Its numbers are finite.
	}
	c.balanceTimes(at, s)
	for _, t := range []struct{ what, token string }{{"name", s.Name}, {"region", s.Region}} {
		if err := wire.CheckToken(t.what, t.token); err != nil && t.token != "" {
			c.report(at+"."+t.what, -1, err.Error(), "")
		}
	}
	for _, e := range c.sec.Synchronizer.Predicates {
		if e.Key == config.BalanceName {
			c.report("predicates."+e.Key, -1, "the section balance has that name", "give the predicate another one")
		}
	}
	c.balanceTexts(at, s)
	b.Loads = c.compileMember(at+".loads", s.Loads, false, true)
	b.Weights, b.Single = c.weights(at+".weights", s.Weights)
	b.Rest = c.compileMember(at+".rest", s.Rest, true, false)
	b.Power = c.compileMember(at+".power", s.Power, true, false)
	b.Share = c.compileMember(at+".share", s.Share, true, false)
	if s.When != "" {
		b.When = c.compileProgram(at+".when", s.When, c.plan.Env.Bool)
	}
	if c.sec.Synchronizer.Balance == nil {
		b.Objects = c.compileObjects(at)
	}
	for _, u := range c.plan.Uses {
		if read := c.plan.Env.Redacts(u.Uses); read != "" && strings.HasPrefix(u.At, at+".") {
			c.report(u.At, -1, "plans and orders would show values of the redacted "+read, "leave out redact, or balance by another field")
		}
	}
	c.plan.Balance = b
}

func (c *compiler) balanceTimes(at string, s *config.Balance) {
	if s.Every < config.LeastEvery || s.Every > config.MaxExpiry {
		c.report(at+".every", -1, fmt.Sprintf("%v between two looks: it has to be from %v to %v", s.Every, config.LeastEvery, config.MaxExpiry), "")
	}
	if s.Expires <= 0 || s.Expires > config.MaxExpiry {
		c.report(at+".expires", -1, fmt.Sprintf("a signal expires after more than 0 and at most %v", config.MaxExpiry), "")
	}
	if s.Transit <= 0 || s.Transit > config.MaxExpiry {
		c.report(at+".transit", -1, fmt.Sprintf("a load is under way for more than 0 and at most %v", config.MaxExpiry), "")
	}
	if s.Transfer < 0 || s.Transfer > config.MaxExpiry {
		c.report(at+".transfer", -1, fmt.Sprintf("a move takes from 0 to %v", config.MaxExpiry), "")
	}
}

// balanceTexts refuses keys that are there and say nothing.
func (c *compiler) balanceTexts(at string, s *config.Balance) {
	d := config.DefaultBalance()
	for _, t := range []struct{ key, text, without string }{
		{"weights", s.Weights, d.Weights}, {"rest", s.Rest, d.Rest}, {"power", s.Power, d.Power}, {"share", s.Share, d.Share}, {"name", s.Name, d.Name},
	} {
		if strings.TrimSpace(t.text) == "" {
			c.report(at+"."+t.key, -1, "an empty text", "leave the key out: then it is "+t.without)
		}
	}
	if s.Loads != "" && strings.TrimSpace(s.Loads) == "" { // Nothing at all has been reported.
		c.report(at+".loads", -1, "an empty text", "the key needs a value here")
	}
}

// weights compiles a list of weights, or one number for every load.
func (c *compiler) weights(at, src string) (program *predicates.MemberExpression, single bool) {
	if one, err := c.plan.Env.Member(src, true, false); err == nil {
		c.accountProgram(at, one.Expression())
		return one, true
	}
	return c.compileMember(at, src, true, true), false
}

// compileMember compiles an expression on one member.
func (c *compiler) compileMember(at, src string, numbers, lists bool) *predicates.MemberExpression {
	if strings.TrimSpace(src) == "" {
		return nil // Which has been reported.
	}
	m, err := c.plan.Env.Member(src, numbers, lists)
	if err != nil {
		c.refuseText(at, src, err)
		return nil
	}
	c.accountProgram(at, m.Expression())
	return m
}

// sentSignal is the signal of the section.
func (b *Balance) sentSignal() Sent {
	return Sent{
		Predicate: config.BalanceName, Name: b.Set.Name, Kind: control.Activate, Region: b.Set.Region,
		Data: scgs.Schema{{Name: balance.OrdersDatum, Type: scgs.String}},
	}
}

// balanceTexts is the section by its keys, for comparing.
func (p *Level) balanceTexts() map[string]string {
	if p.Balance == nil {
		return nil
	}
	return map[string]string{"": p.Balance.Text}
}

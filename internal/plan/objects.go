package plan

import (
	"cmp"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/predicates"
)

// ObjectTexts are expressions on what a member tells of its objects beside their names and weights.
type ObjectTexts struct {
	// Labels are the names of the first objects for people.
	Labels *predicates.MemberExpression
	// Senders, Receivers and Volumes are pairs of objects, and how much the first sends to the second. The first is
	// at the member.
	Senders, Receivers, Volumes *predicates.MemberExpression
	// Refused are objects that the member was ordered to move and did not, and Reasons says why.
	Refused, Reasons *predicates.MemberExpression
}

// objectTexts are the texts of [ObjectTexts], in its order.
var objectTexts = []string{".work.names", ".work.senders", ".work.receivers", ".work.volumes", ".work.refused", ".work.reasons"}

// balanceSection returns the section balance, or one for the objects of a space whose strategy is central; nil if
// there is neither.
func (c *compiler) balanceSection() *config.Balance {
	s := &c.sec.Synchronizer
	if s.Balance != nil || s.Work == nil || !s.Work.Strategy.Central() {
		return s.Balance
	}
	b, d, strategy := config.DefaultBalance(), config.DefaultBalance(), &s.Work.Strategy
	b.Strategy, b.Loads, b.Weights, b.Power, b.Region = strategy.Kind, ".work.tasks", ".work.weights", ".work.slots", config.ObjectsRegion
	b.Alpha, b.Beta, b.Gamma = cmp.Or(strategy.Alpha, d.Alpha), cmp.Or(strategy.Beta, d.Beta), cmp.Or(strategy.Gamma, d.Gamma)
	return &b
}

// compileObjects compiles the texts of objects.
func (c *compiler) compileObjects(at string) *ObjectTexts {
	compiled := make([]*predicates.MemberExpression, len(objectTexts))
	for i, text := range objectTexts {
		compiled[i] = c.compileMember(at, text, text == ".work.volumes", true)
	}
	return &ObjectTexts{compiled[0], compiled[1], compiled[2], compiled[3], compiled[4], compiled[5]}
}

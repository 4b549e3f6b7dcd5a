package work

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// withdrawRule judges the conditions of the key withdraw on the state of this member.
type withdrawRule struct {
	state      workcore.Hysteresis
	when, back *predicates.Local // nil: there is no such condition
	declared   scgs.Schema       // that they were compiled for
	row        []scgs.Value
	due        bool              // the state or the rule has changed
	wake       clocksync.Instant // when to judge even if nothing changes
}

// compileRule has the conditions compiled again: the rule is another one. The time for which they have held begins again.
func (r *withdrawRule) compileRule() {
	r.when, r.back, r.declared, r.due = nil, nil, nil, true
	r.state.Restart()
}

// compile compiles the conditions for a declared state. Those that cannot be are left out: the synchronizer has refused
// them, so its section is for another state, and one for this state follows.
func (r *withdrawRule) compile(w *config.Withdraw, declared scgs.Schema) (err error) {
	r.when, r.back, r.declared = nil, nil, declared
	env := predicates.MemberEnv(declared, config.WorkFilled())
	if r.when, err = predicates.NewLocal(env, w.When); err == nil && w.Back != "" {
		r.back, err = predicates.NewLocal(env, w.Back)
	}
	return err
}

// judgeWithdraw judges the conditions if that is due, and has the machine follow. The lock is held.
func (s *Space) judgeWithdraw(now clocksync.Instant) {
	r, w := &s.rule, &s.section.Withdraw
	if !r.due && now < r.wake {
		return
	}
	r.due = false
	away := r.state.Away
	if w.When == "" { // It was removed: the member takes work again.
		r.state, r.wake = workcore.Hysteresis{}, clocksync.MaxInstant
	} else {
		declared, row, known := s.link.State(r.row)
		r.row = row
		if known && !sameSchema(declared, r.declared) {
			if err := r.compile(w, declared); err != nil {
				s.log.Warn("the conditions under withdraw do not fit the state of this member", "error", err)
			}
		}
		of := predicates.Member{Name: s.link.Self().Name, Host: s.link.Host()}
		holds := func(l *predicates.Local) bool { return known && l != nil && l.Holds(of, row) }
		r.wake = r.state.Judge(now, holds(r.when), holds(r.back), w.For)
	}
	if r.state.Away != away {
		s.withdraw(r.state.Away)
	}
}

// sameSchema compares by identity: a declaration is never changed in place.
func sameSchema(a, b scgs.Schema) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// withdraw has this member take no work, or take work again. The lock is held.
func (s *Space) withdraw(away bool) {
	if away {
		s.log.Info("member is withdrawn: it takes no work, and gives its tasks away")
	} else {
		s.log.Info("member takes work again")
	}
	_ = s.step(&workcore.Input{Kind: workcore.InWithdraw, Active: !away}) // It is never refused.
	s.withdrawLoops()
	s.withdrawCalls()
}

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
)

// The limits of the section work.
const (
	maxSlots   = 1024
	maxRetries = 1000
	leastStuck = 100 * time.Millisecond
	mostStuck  = time.Hour
	maxCache   = 1 << 20 // MiB
	maxServed  = 1024    // messages that an object serves before it is saved
	// Of a stream of JetStream; nats-server allows no more replicas.
	maxReplicas = 5
	maxLog      = 1 << 20 // MiB
	maxStream   = 100     // bytes of its name
)

// checkWork checks the section work.
func (c *compiler) checkWork() {
	s := c.sec.Synchronizer.Work
	const at = config.WorkName
	if s == nil {
		return
	}
	if c.plan.Members.Threads || c.plan.Parent != "" {
		c.report(at, -1, "tasks are shared among the members of a group, never among threads", "move the section to the parent, whose members are the processes")
		return
	}
	if m := c.plan.Members.Max; m > wire.MaxListed {
		c.report(at, -1, fmt.Sprintf("tasks are shared among at most %d members, and max is %d", wire.MaxListed, m), "lower max under members")
	}
	c.workNumbers(at, s)
	c.workStore(at, s)
	if s.Lost != config.LostFail && s.Lost != config.LostGoOn {
		c.report(at+".lost", -1, fmt.Sprintf("%q is nothing that can follow when tasks are lost", s.Lost), "use "+config.LostFail+" or "+config.LostGoOn)
	}
	if _, err := local.ParseTopology(s.Topology); err != nil {
		c.report(at+".topology", -1, strings.TrimPrefix(err.Error(), "topology: "), "")
	}
	if s.Order != "" {
		if _, err := predicates.CompileOrder(s.Order); err != nil {
			c.refuseText(at+".order", s.Order, err)
		}
	}
	c.withdraw(at+".withdraw", &s.Withdraw)
	c.workCalls(at+".calls", s)
	faults := s.Strategy.Faults()
	for _, f := range faults {
		where := at + ".strategy"
		if f.Key != "" {
			where += "." + f.Key
		}
		c.report(where, byteOf(f.Column, workText(s, f.Key)), f.Message, "")
	}
	if len(faults) > 0 {
		return
	}
	if c.sec.Synchronizer.Balance != nil && s.Strategy.Central() {
		c.report(at+".strategy.kind", -1, fmt.Sprintf("the strategy %s plans the moves of objects, and the section balance plans other moves: a synchronizer has one of them", s.Strategy.Kind), "leave out the section balance, or use another kind")
	}
	c.plan.Work, c.plan.WorkText = s, Encode(s) // Its numbers are finite.
	if n := len(c.plan.WorkText); n > wire.MaxWork {
		c.report(at, -1, fmt.Sprintf("the section takes %d bytes in the message that tells members of it, at most %d fit", n, wire.MaxWork), "shorten its texts")
	}
	c.plan.WorkHash = SectionHash(c.plan.WorkText)
}

// withdraw checks when a member takes no work. Each member judges the conditions alone, so these read neither
// params nor the names under let.
func (c *compiler) withdraw(at string, w *config.Withdraw) {
	env := predicates.MemberEnv(c.plan.State, config.WorkFilled())
	for _, e := range []struct{ key, text string }{{".when", w.When}, {".back", w.Back}} {
		if e.text == "" {
			continue
		}
		some, _, err := env.Each(e.text)
		if err != nil {
			c.refuseText(at+e.key, e.text, err)
			continue
		}
		c.plan.Uses = append(c.plan.Uses, Use{at + e.key, e.text, some.Uses()})
	}
	if w.When == "" && *w != (config.Withdraw{}) {
		c.report(at, -1, "the condition when is missing: members withdraw while it holds", "write when: CONDITION, such as .work.share < 0.2, or leave withdraw out")
	}
	if w.For < 0 || w.For > mostStuck {
		c.report(at+".for", -1, fmt.Sprintf("a condition has to hold for %v: use 0s to %v", w.For, mostStuck), "")
	}
	if w.When != "" && strings.TrimSpace(w.When) == strings.TrimSpace(w.Back) {
		c.report(at+".back", -1, "back is the same as when: a member would withdraw and come back again and again", "write the condition under which a member takes work again, such as .work.share > 0.6")
	}
}

// workStore checks where the tasks lie.
func (c *compiler) workStore(at string, s *config.Work) {
	switch s.Store {
	case config.Memory:
		if s.Log != config.DefaultWork().Log {
			c.report(at+".log", -1, "the store "+s.Store+" has no log", "use store: "+config.JetStream+", or leave log out")
		}
	case config.JetStream:
	default:
		c.report(at+".store", -1, fmt.Sprintf("%q is no store", s.Store), "use "+config.Memory+" or "+config.JetStream)
	}
	if l := &s.Log; l.Replicas < 1 || l.Replicas > maxReplicas {
		c.report(at+".log.replicas", -1, fmt.Sprintf("%d replicas: use 1 to %d", l.Replicas, maxReplicas), "")
	}
	if l := &s.Log; l.Most < 0 || l.Most > maxLog {
		c.report(at+".log.most", -1, fmt.Sprintf("a log of %d MiB: use 1 to %d, or 0 for no limit", l.Most, maxLog), "")
	}
	if name := s.Log.Stream; strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(".*>/\\", r) }) || len(name) > maxStream {
		c.report(at+".log.stream", -1, fmt.Sprintf("%q cannot name a stream", name), fmt.Sprintf("use at most %d bytes without spaces and . * > / \\", maxStream))
	}
}

func (c *compiler) workNumbers(at string, s *config.Work) {
	if s.Slots < 0 || s.Slots > maxSlots {
		c.report(at+".slots", -1, fmt.Sprintf("%d slots: use 1 to %d, or 0 for one for each processor", s.Slots, maxSlots), "")
	}
	if s.Retry < 1 || s.Retry > maxRetries {
		c.report(at+".retry", -1, fmt.Sprintf("a task is run %d times: use 1 to %d", s.Retry, maxRetries), "")
	}
	if s.Losses < 1 || s.Losses > maxRetries {
		c.report(at+".losses", -1, fmt.Sprintf("%d members may die with a task: use 1 to %d", s.Losses, maxRetries), "")
	}
	if s.Open < 0 {
		c.report(at+".open", -1, fmt.Sprintf("%d open tasks: use 1 or more, or 0 for no limit", s.Open), "")
	}
	if save := &s.Objects.Save; save.Tasks < 1 || save.Tasks > maxServed || save.Every < 0 || save.Every > mostStuck {
		c.report(at+".objects.save", -1, fmt.Sprintf("an object is saved after %d messages or %v: use 1 to %d messages, and at most %v", save.Tasks, save.Every, maxServed, mostStuck), "")
	}
	if stay := s.Objects.Stay; stay < 0 || stay > mostStuck {
		c.report(at+".objects.stay", -1, fmt.Sprintf("an object does not go back for %v: use 0s to %v", stay, mostStuck), "")
	}
	if d := &s.Data; d.Cache < 1 || d.Cache > maxCache || d.Classes < 0 {
		c.report(at+".data", -1, fmt.Sprintf("a member keeps %d MiB of data and works on %d classes: use 1 to %d MiB, and 0 or more classes", d.Cache, d.Classes, maxCache), "")
	}
	if s.Stuck < leastStuck || s.Stuck > mostStuck {
		c.report(at+".stuck", -1, fmt.Sprintf("a handler counts as stuck after %v: use %v to %v", s.Stuck, leastStuck, mostStuck), "")
	}
}

// workText is the text of a key of the strategy.
func workText(s *config.Work, key string) string {
	switch key {
	case "below":
		return s.Strategy.Below
	case "from":
		return s.Strategy.From
	case "cut":
		return s.Strategy.Cut
	case "speeds":
		return s.Strategy.Speeds
	case "links":
		return s.Strategy.Links
	}
	return ""
}

// byteOf is the place of a column, in characters from 1, in bytes; -1 for column 0.
func byteOf(column int, text string) int {
	if column == 0 {
		return -1
	}
	for i := range text {
		if column--; column == 0 {
			return i
		}
	}
	return len(text)
}

// workTexts is the section by its keys, for comparing.
func (p *Level) workTexts() map[string]string {
	if p.Work == nil {
		return nil
	}
	return map[string]string{"": string(p.WorkText)}
}

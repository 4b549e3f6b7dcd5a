package synchronizer

import (
	"context"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// Changes lists the differences between this configuration and another one, a short text each,
// if a running synchronizer can change to the other: predicates, variables of memory, numbers
// of members and policies of silence. The error joins every reason why it cannot: the group,
// the declared state and the thread-level section below need a restart.
//
// The name may be empty where there is one synchronizer to run.
func (c *Config) Changes(to *Config, name string) ([]string, error) {
	from, err := c.planOf(name)
	if err != nil {
		return nil, err
	}
	next, err := to.planOf(from.Name)
	if err != nil {
		return nil, err
	}
	return from.Changes(next)
}

// Reload applies another configuration while the synchronizer runs, between two inputs. A
// configuration that needs a restart, by [Config.Changes], is refused whole, and the old
// configuration stays active.
//
// Members, the epoch and signals under way stay as they are. A predicate with the same name and
// text keeps its state: it does not fire again for the same cause, and a hold time continues. A
// new or changed predicate begins again and is judged on the present global state at once. A
// threshold, or a predicate with a modality, looks at the states in that global state that have
// not ended, and at later reports. The predicates of Options.Predicates stay. Memory keeps the
// values of variables whose name and type are the same.
//
// A running program continues unchanged: another section program in the file is refused. Its
// predicates may change, also those that it reads. The program knows nothing of a predicate
// that begins again until that predicate is judged.
//
// The observer receives a [monitor.Reload]. Reload fails with [ErrEnded] and, if signals begin
// to go to a group whose synchronizer has the same name, [ErrNameTaken]. It returns when the
// configuration is active. The observer must not call it.
func (s *Synchronizer) Reload(cfg *Config) error {
	_, err := s.changeTo(cfg, "")
	return err
}

// changeTo is Reload, and returns what has changed.
func (s *Synchronizer) changeTo(cfg *Config, person string) (changes []string, err error) {
	if s.ended() {
		return nil, fmt.Errorf("synchronizer %q: reload: %w", s.name, ErrEnded)
	}
	if plan, err := cfg.planOf(s.name); err == nil { // Else the owner of the core refuses it.
		if err := s.listenAlso(plan.Groups()); err != nil {
			return nil, fmt.Errorf("synchronizer %q: reload: %w", s.name, err)
		}
	}
	err = s.callOwner("reload", func(l *loop) error {
		var err error
		changes, err = l.reload(cfg, person)
		return err
	})
	return changes, err
}

// maxRereads is how many requests to reload are answered within a second: each reads a file, makes a line of the
// journal and one of the log.
const maxRereads = 10

// rereads counts the rereads in the second that began at since. The goroutine that answers
// questions owns it.
type rereads struct {
	since clocksync.Instant
	count int
}

// answerReload answers another process that has the configuration read again.
func (s *Synchronizer) answerReload(person string, text []byte) (any, error) {
	if len(text) > 0 {
		return nil, fmt.Errorf("synchronizer %q: reload: the request has a text of %d bytes, and takes none: use pegasus reload of this release", s.name, len(text))
	}
	if now := s.opt.now(); now.Sub(s.rereads.since) >= time.Second {
		s.rereads.since, s.rereads.count = now, 0
	}
	if s.rereads.count++; s.rereads.count > maxRereads {
		s.mu.Lock()
		s.stats.Busy++
		s.mu.Unlock()
		return nil, fmt.Errorf("synchronizer %q: reload: more than %d were asked for within a second: ask again", s.name, maxRereads)
	}
	if s.opt.Reread == nil {
		return nil, fmt.Errorf("synchronizer %q: reload: its program reads no file again on request: set Options.Reread there, or restart it", s.name)
	}
	if !s.leads.Load() { // Its file may differ from what the leader runs.
		return nil, fmt.Errorf("reload: %w", s.beats.standsBy(s.name))
	}
	cfg, err := s.opt.Reread()
	if err != nil {
		return nil, fmt.Errorf("synchronizer %q: reload: refused, the old configuration is kept: %w", s.name, err)
	}
	changes, err := s.changeTo(cfg, person)
	if err != nil {
		return nil, err
	}
	return Changed{Synchronizer: s.name, Changes: changes}, nil
}

// ended reports whether the synchronizer has.
func (s *Synchronizer) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// callOwner has the owner of the core do something, and waits for it.
func (s *Synchronizer) callOwner(what string, do func(*loop) error) error {
	ended := fmt.Errorf("synchronizer %q: %s: %w", s.name, what, ErrEnded)
	if s.ended() {
		return ended
	}
	if !s.leads.Load() {
		return fmt.Errorf("%s: %w", what, s.beats.standsBy(s.name))
	}
	reply := make(chan error, 1)
	select {
	case s.calls <- func(l *loop) { reply <- do(l) }:
	case <-s.done:
		return ended
	}
	select {
	case err := <-reply:
		return err
	case <-s.done:
	}
	select {
	case err := <-reply:
		return err
	default: // It ended instead.
		return ended
	}
}

// listenAlso listens to groups that signals go to from now on, if the configuration
// is followed; if not, what they say is dropped.
func (s *Synchronizer) listenAlso(groups []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := s.subscribeGroups(ctx, groups); err != nil || len(groups) == 0 {
		return err
	}
	return s.bus.Flush(ctx)
}

// reload has the core follow another configuration.
func (l *loop) reload(cfg *Config, person string) ([]string, error) {
	plan, err := cfg.planOf(l.name)
	if err == nil {
		plan, err = l.carryValues(plan, l.level.Source.Live())
	}
	if err == nil {
		plan, err = plan.With(compilePredicates(l.opt.Predicates, l.countPanic))
	}
	var changes []string
	if err == nil {
		changes, err = l.level.Changes(plan)
	}
	if err != nil {
		return nil, fmt.Errorf("synchronizer %q: reload: %w", l.name, err)
	}
	l.input = synccore.Input{Kind: synccore.InLevel, Level: plan, Person: person}
	l.config = cfg.hash
	l.stepCore(l.opt.now())
	return changes, nil
}

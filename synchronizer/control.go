package synchronizer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

const (
	// maxQuestions is how many questions may wait, of this process and of others.
	maxQuestions = 16
	maxDenied    = 32 // subjects that are shown
	// questionTime is how long one of another process may wait for the owner of the
	// core.
	questionTime = 2 * time.Second
)

// question is put to the owner of the core, which alone may read it.
type question struct {
	synccore.Question
	answer synccore.Answer // once done is closed
	known  []string        // predicates
	config string          // the hash of the active configuration
	done   chan struct{}
}

// Status tells where the synchronizer stands. It fails with [ErrBusy] if 16
// questions wait already, with [ErrEnded], and when ctx ends.
func (s *Synchronizer) Status(ctx context.Context) (monitor.Status, error) {
	q, err := s.ask(ctx, synccore.Question{Status: true})
	if err != nil {
		return monitor.Status{}, err
	}
	status := q.answer.Status
	status.Tenant, status.Config, status.Time = s.opt.Tenant, q.config, time.Unix(0, source.WallNano())
	status.Counters, status.Fates = s.Stats().named()
	if status.Standbys = s.beats.listStandbys(s.opt.now()); len(status.Standbys) > 0 {
		status.Leader = s.ownBeat(false).String()
	}
	status.Shed, status.Denied = s.in.shedBy(), s.denials()
	return status, nil
}

// denials are the subjects that the server refuses to this synchronizer, by their names.
func (s *Synchronizer) denials() (list []monitor.DeniedStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.now()
	for d, at := range s.denied {
		list = append(list, monitor.DeniedStatus{Publish: d.Publish, Subject: d.Subject, Ago: now.Sub(at).Seconds()})
	}
	slices.SortFunc(list, func(a, b monitor.DeniedStatus) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), cmp.Compare(b.Ago, a.Ago))
	})
	return list
}

// Why explains a predicate. Beside the errors of Status it has [ErrNoPredicate],
// with the names that there are.
func (s *Synchronizer) Why(ctx context.Context, predicate string) (monitor.Explanation, error) {
	q, err := s.ask(ctx, synccore.Question{Explain: predicate})
	switch {
	case err != nil:
		return monitor.Explanation{}, err
	case q.answer.Explanation == nil:
		return monitor.Explanation{}, noPredicate(s.name, predicate, q.known)
	}
	return *q.answer.Explanation, nil
}

func noPredicate(synchronizer, name string, known []string) error {
	hint := "there are no predicates"
	if len(known) > 0 {
		hint = "known predicates: " + strings.Join(known, ", ")
	}
	if near := nearest.Name(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return fmt.Errorf("%w: synchronizer %q has no predicate %q: %s", ErrNoPredicate, synchronizer, name, hint)
}

// ask has the owner of the core answer.
func (s *Synchronizer) ask(ctx context.Context, what synccore.Question) (*question, error) {
	select {
	case <-s.done:
		return nil, ErrEnded
	default:
	}
	if !s.leads.Load() {
		return nil, s.beats.standsBy(s.name)
	}
	q := &question{Question: what, done: make(chan struct{})}
	select {
	case s.questions <- q:
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.Busy++
		return nil, ErrBusy
	}
	select {
	case <-q.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.Asked++
		return q, nil
	case <-s.done:
		return nil, ErrEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// named gives the counters by the names that they have in JSON.
func (s Stats) named() (counters, fates map[string]uint64) {
	fates = map[string]uint64{}
	for _, f := range control.Fates {
		if n := s.Fates[f]; n > 0 {
			fates[f.String()] = n
		}
	}
	return map[string]uint64{
		"frames": s.Frames, "malformed": s.Malformed, "refused": s.Rejected, "probes": s.Probes, "pings": s.Pings,
		"resends": s.Resends, "decisions": s.Decisions, "moves": s.Moves, "signals": s.Signals, "dropped": s.Dropped, "shed": s.Shed,
		"asked": s.Asked, "busy": s.Busy, "untold": s.Untold,
	}, fates
}

// Presence is a synchronizer's answer to the question which members are present.
type Presence struct {
	Synchronizer string `json:"synchronizer"` // its name
	Group        string `json:"group"`        // whose members it has
	Term         uint64 `json:"term"`         // of its present life

	// Lost counts the messages that it has lost because they were too many, and the questions that it has refused.
	Lost uint64 `json:"lost,omitempty"`
}

// answerPresence answers the question of presence, beside the owner of the core.
func (s *Synchronizer) answerPresence(m bus.Message) {
	s.mu.Lock()
	lost := s.stats.Busy
	s.mu.Unlock()
	s.reply(m, Presence{s.name, s.subjects.Group, s.term.Load(), lost + s.bus.Dropped()})
}

// passQuestion hands a question of another process on, unless too many wait.
func (s *Synchronizer) passQuestion(m bus.Message) {
	select {
	case s.asked <- m:
	default:
		s.mu.Lock()
		s.stats.Busy++
		s.mu.Unlock()
		s.reply(m, refused{ErrBusy.Error()})
	}
}

// refused is the answer to a question that has none.
type refused struct {
	Error string `json:"error"`
}

// answerAll answers the questions of other processes until the context ends.
func (s *Synchronizer) answerAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-s.asked:
			answer, err := s.answerOne(ctx, m)
			if err != nil {
				answer = refused{err.Error()}
			}
			s.reply(m, answer)
		}
	}
}

func (s *Synchronizer) answerOne(ctx context.Context, m bus.Message) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	verb, person, _ := s.subjects.ParseAsk(s.name, m.Subject)
	if verb.Changes() && person == "" {
		return nil, fmt.Errorf("synchronizer %q: %s: the subject does not name the caller, as with a command of an older release: use pegasus %s of this release", s.name, verb, verb)
	}
	if person == wire.Nobody {
		person = ""
	}
	switch verb {
	case wire.VerbStatus:
		return s.Status(ctx)
	case wire.VerbWatch:
		s.feed.extendLease(s.opt.now())
		return s.Status(ctx)
	case wire.VerbWhy:
		return s.Why(ctx, string(m.Data))
	case wire.VerbSet:
		return s.answerSet(m, person)
	case wire.VerbReload:
		return s.answerReload(person, m.Data) //nolint:contextcheck // What it subscribes to outlives the question.
	}
	return nil, fmt.Errorf("synchronizer %q knows no question %q: it may be older than the command that asks", s.name, verb)
}

// reply sends an answer in parts. What cannot be sent is asked for again.
func (s *Synchronizer) reply(m bus.Message, answer any) {
	rest, err := json.Marshal(answer)
	if err != nil {
		rest, _ = json.Marshal(refused{err.Error()})
	}
	for last := false; !last && err == nil; {
		var part []byte
		part, rest, last = wire.AppendPart(nil, rest)
		err = s.bus.Reply(m, part)
	}
	s.noteUnsentReply(m, err)
}

// noteUnsentReply notes an answer that could not be sent. An answer to a subject that is no inbox is
// counted: the client may try to use the permissions of the synchronizer.
func (s *Synchronizer) noteUnsentReply(m bus.Message, err error) {
	switch {
	case errors.Is(err, bus.ErrReply):
		s.mu.Lock()
		s.stats.Rejected++
		s.tally.rejected[monitor.RejectReply]++
		s.mu.Unlock()
		s.logRejected(monitor.Rejection{From: m.Subject, Reason: monitor.RejectReply, Detail: err.Error()})
	case err != nil:
		s.opt.Logger.Debug("not answered", "subject", m.Subject, "error", err)
	}
}

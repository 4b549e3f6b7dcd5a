// Package ask asks the synchronizers of a tenant and the members of a group how they stand.
package ask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/workreport"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const (
	// whoTime is how long synchronizers have to say that they are there.
	whoTime = 300 * time.Millisecond
	// answerTime is how long one has to answer.
	answerTime = 4 * time.Second
)

const (
	// reportTime is how long members have to say how their space stands.
	reportTime = time.Second
	// maxReport bounds the answer of a member, in bytes.
	maxReport = 64 << 10
)

// Asker asks on a connection.
type Asker struct {
	Bus    *bus.Bus
	Tenant string // of those who are asked
	Person string // who asks, as the credential says; empty: it does not

	// Strange counts what came as answers and is none. Everybody who may subscribe to a question can send it.
	Strange int

	patience time.Duration // instead of answerTime, if not 0
}

// Present asks which synchronizers are there, by name; none is no error.
func (a *Asker) Present(ctx context.Context) ([]synchronizer.Presence, error) {
	waiting, cancel := context.WithTimeout(ctx, whoTime)
	defer cancel()
	var all []synchronizer.Presence
	err := a.Bus.Gather(waiting, wire.Subjects{Tenant: a.Tenant}.Who(), nil, func(part []byte) bool {
		var reply wire.Reply
		var p synchronizer.Presence
		if done, err := reply.Add(part); err == nil && done && json.Unmarshal(reply.Text(), &p) == nil {
			all = append(all, p)
		}
		return true
	})
	if errors.Is(err, bus.ErrPermission) {
		return nil, fmt.Errorf("%s may not ask which synchronizers run in tenant %q: %w", a.user(), a.Tenant, needs(err, "viewer"))
	}
	over := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err != nil && !over && !errors.Is(err, bus.ErrNoResponders) {
		return nil, err
	}
	slices.SortFunc(all, func(p, q synchronizer.Presence) int {
		return cmp.Or(cmp.Compare(p.Synchronizer, q.Synchronizer), cmp.Compare(p.Group, q.Group))
	})
	return all, nil
}

// RefusedError says why a synchronizer does not answer a question.
type RefusedError struct{ text string }

func (r *RefusedError) Error() string { return r.text }

// Ask puts one question and fills the answer into an object. It fails with a
// *[RefusedError] if the synchronizer does not answer it.
func (a *Asker) Ask(ctx context.Context, p synchronizer.Presence, verb wire.Verb, text string, into any) error {
	patience := cmp.Or(a.patience, answerTime)
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	subjects := wire.Subjects{Tenant: a.Tenant, Group: p.Group}
	var reply wire.Reply
	var bad error
	strange := 0
	subject := subjects.Ask(p.Synchronizer, verb)
	if verb.Changes() {
		subject = subjects.AskBy(p.Synchronizer, verb, cmp.Or(a.Person, wire.Nobody))
	}
	err := a.Bus.Gather(waiting, subject, []byte(text), func(part []byte) bool {
		done := false
		if done, bad = reply.Add(part); errors.Is(bad, wire.ErrNoPart) {
			strange, bad = strange+1, nil
		}
		return !done && bad == nil
	})
	a.Strange += strange
	switch {
	case errors.Is(err, bus.ErrPermission):
		return a.refused(p.Synchronizer, verb, err)
	case errors.Is(err, bus.ErrNoResponders) && verb.Changes():
		return fmt.Errorf("synchronizer %q has gone, or is of a release before, which takes no %s from a named person: upgrade it", p.Synchronizer, verb)
	case errors.Is(err, bus.ErrNoResponders):
		return fmt.Errorf("synchronizer %q has gone", p.Synchronizer)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("synchronizer %q has not answered within %v: %s", p.Synchronizer, patience, a.whyNot(ctx, p, strange))
	case err != nil || bad != nil:
		return fmt.Errorf("synchronizer %q: %w", p.Synchronizer, errors.Join(err, bad))
	}
	var refused struct{ Error string }
	if err := json.Unmarshal(reply.Text(), &refused); err == nil && refused.Error != "" {
		return &RefusedError{refused.Error}
	}
	d := json.NewDecoder(bytes.NewReader(reply.Text()))
	d.UseNumber() // No digit of an int is lost.
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the answer of synchronizer %q cannot be read, it may be of another version: %w", p.Synchronizer, err)
	}
	return nil
}

// user names who asks.
func (a *Asker) user() string {
	if a.Person == "" {
		return "the user of this connection"
	}
	return "user " + a.Person
}

// refused says which role a question takes that the server has refused.
func (a *Asker) refused(synchronizer string, verb wire.Verb, err error) error {
	switch verb {
	case wire.VerbStatus, wire.VerbWhy, wire.VerbWatch:
	case wire.VerbSet:
		return fmt.Errorf("%s may not set parameters of %s: %w", a.user(), synchronizer, needs(err, "operator"))
	case wire.VerbReload:
		return fmt.Errorf("%s may not reload the configuration of %s: %w", a.user(), synchronizer, needs(err, "operator"))
	}
	return fmt.Errorf("%s may not ask %s for %s: %w", a.user(), synchronizer, verb, needs(err, "viewer"))
}

// permissionError is a refusal of the server, together with what to do.
type permissionError struct {
	text  string
	cause error
}

func (p *permissionError) Error() string { return p.text }
func (p *permissionError) Unwrap() error { return p.cause }

// needs says that a role is missing, or that answers cannot come.
func needs(err error, role string) error {
	text := err.Error()
	if _, inbox, found := strings.Cut(text, `Subscription to "`); found {
		inbox, _, _ = strings.Cut(inbox, `"`)
		if i := strings.LastIndexByte(inbox, '.'); i > 0 {
			inbox = inbox[:i]
		}
		return &permissionError{"the server does not let it hear answers below " + inbox + ": set inbox_prefix in the context to _INBOX.NAME with the name of the credential, or leave it out", err}
	}
	return &permissionError{"the credential needs the role " + role, err}
}

// whyNot finds out why a synchronizer has not answered, by asking once more whether it is there.
func (a *Asker) whyNot(ctx context.Context, p synchronizer.Presence, strange int) string {
	if strange > 0 {
		came := "1 message came instead that is"
		if strange > 1 {
			came = fmt.Sprintf("%d messages came instead that are", strange)
		}
		return fmt.Sprintf("%s no part of an answer: the synchronizer has another version (compare pegasus version), or another client answers its questions: permit only synchronizers to subscribe to ctl", came)
	}
	all, _ := a.Present(ctx) // Without an answer nobody is there.
	i := slices.IndexFunc(all, func(q synchronizer.Presence) bool { return q.Synchronizer == p.Synchronizer && q.Group == p.Group })
	switch {
	case i < 0:
		return "nor does it say any more that it is there: its process hangs, is stopped or has ended"
	case all[i].Lost > p.Lost:
		return fmt.Sprintf("the synchronizer is flooded, and has lost or refused %d messages meanwhile: find the client that sends so many (nats server report connections --sort in-msgs), end that, and ask again", all[i].Lost-p.Lost)
	}
	return "the synchronizer announces itself, so it is busy, or parts of its answer are lost; ask again"
}

// Space asks the members of a synchronizer's group how their space stands, and returns what those say that answer
// within a second, and the names of the others, both by name. It fails if nobody answers.
func (a *Asker) Space(ctx context.Context, status *monitor.Status) (answers []*workreport.Report, silent []string, err error) {
	subjects := wire.Subjects{Tenant: a.Tenant, Group: status.Group}
	var mu sync.Mutex
	reports, all := map[string]*workreport.Report{}, make(chan struct{})
	var members []string
	missing := map[string]bool{}
	for i := range status.Members {
		if m := &status.Members[i]; slices.Contains([]monitor.Standing{monitor.InEpoch, monitor.Ready, monitor.NoState}, m.Standing) {
			members, missing[m.Name] = append(members, m.Name), true
		}
	}
	if len(members) == 0 {
		return nil, nil, fmt.Errorf("synchronizer %q: group %q has no members, so it has no tasks: start its programs", status.Synchronizer, status.Group)
	}
	err = a.Bus.Subscribe(subjects.WorkTold("*"), bus.Limits{}, func(m bus.Message) {
		r := &workreport.Report{}
		name := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		if len(m.Data) > maxReport || json.Unmarshal(m.Data, r) != nil || !r.Plausible(name) {
			return // It is as if it had not answered.
		}
		mu.Lock()
		defer mu.Unlock()
		if !missing[name] {
			return // Another one has asked too.
		}
		reports[name] = r
		if delete(missing, name); len(missing) == 0 {
			close(all)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(a.Bus.Flush(ctx), a.Bus.Publish(subjects.WorkAsk(), nil)); err != nil {
		return nil, nil, err
	}
	over, again := time.NewTimer(reportTime), time.NewTimer(reportTime/3)
	defer over.Stop()
	defer again.Stop()
	for waits := true; waits; {
		select {
		case <-all:
			waits = false
		case <-again.C: // A message may have been lost.
			_ = a.Bus.Publish(subjects.WorkAsk(), nil)
		case <-over.C:
			waits = false
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	silent = []string{}
	for _, name := range members {
		if r := reports[name]; r != nil {
			answers = append(answers, r)
		} else {
			silent = append(silent, name)
		}
	}
	if len(answers) == 0 {
		return nil, nil, fmt.Errorf("synchronizer %q: none of the %d members of group %q answers how its tasks stand: add a section work to the configuration, and have the programs open the space", status.Synchronizer, len(members), status.Group)
	}
	return answers, silent, nil
}

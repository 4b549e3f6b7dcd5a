package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/worklog"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// logs keeps accounts in JetStream: the account of this member, and accounts that it takes over from members that are gone. What
// the machine puts into a log goes to the writer of that log; what rests on it waits in the machine until the writer
// says that it is there.
type logs struct {
	space   *Space
	log     *worklog.Log
	limits  workcore.Limits
	running sync.WaitGroup     // of the writers
	stop    context.CancelFunc // of the writers
	beside  context.Context    //nolint:containedctx // Of the writers, which begin one after the other.
	ends    chan struct{}      // capacity 1: look whether a phase is over
	valid   uint64             // the last phase without open tasks when this member came
	orphans chan struct{}      // capacity 1: look for accounts that nobody has

	// Guarded by the lock of the space:
	writers   map[string]*writer // by account
	signalled uint64             // the phase that the synchronizer has declared over
	unsure    bool               // accounts may have open tasks and no owner
	messages  uint64             // of the stream, as it was last told
	bytes     uint64             // of the stream then
	handed    uint64             // bytes of entries that were handed to writers so far
	written   uint64             // of them, those that the stream has taken
	counted   uint64             // written, before the stream was asked last: bytes has these
	closing   bool               // writers end once nothing is pending
	undecided string             // why it cannot be decided whether the phase is over; empty: it can
	unknown   string             // why accounts that nobody has cannot be looked for; empty: they can
}

const (
	// orphanPause is after what time the first of the roster looks again for accounts that nobody has.
	orphanPause = 5 * time.Second
	// retryPause is the pause after something has failed that has to work some time.
	retryPause = 250 * time.Millisecond
	// decidePatience bounds a decision: what has changed meanwhile is read again.
	decidePatience = 10 * time.Second
	// closePatience bounds how long Close waits for the logs.
	closePatience = 5 * time.Second
)

// streamOf is the name of the stream of a space.
func streamOf(section *config.Work, tenant, group string) string {
	if section.Log.Stream != "" {
		return section.Log.Stream
	}
	return "pegasus+" + tenant + "+" + group // A plus stands in no name.
}

// openLogs opens the stream, and this member's account in it.
func openLogs(ctx context.Context, s *Space) (l *logs, own *workcore.Store, phase uint64, err error) {
	conn, ok := s.conn.(worklog.Conn)
	if !ok {
		return nil, nil, 0, errors.New("the connection has no JetStream: use store: memory")
	}
	tenant, group := s.link.Group()
	settings := worklog.Settings{Stream: streamOf(&s.section, tenant, group), Replicas: s.section.Log.Replicas, MaxBytes: -1}
	if s.section.Log.Most > 0 {
		settings.MaxBytes = int64(s.section.Log.Most) << 20
	}
	l = &logs{
		space: s, limits: workcore.Limits{Retry: s.section.Retry, Losses: s.section.Losses, Open: s.section.Open, Batch: s.section.Objects.Save.Tasks},
		writers: map[string]*writer{}, ends: make(chan struct{}, 1), orphans: make(chan struct{}, 1),
	}
	if l.log, err = worklog.Open(ctx, conn.NATS(), settings); err != nil {
		return nil, nil, 0, err
	}
	own, w, d, err := l.keeper(ctx).Open()
	if err != nil {
		return nil, nil, 0, err
	}
	l.valid = d.Valid
	l.beside, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.begin(w)
	return l, own, d.Phase + 1, nil
}

// bound is the log with the context of its calls.
type bound struct {
	ctx context.Context //nolint:containedctx // The machine that calls it has none.
	*worklog.Log
}

func (b bound) Append(subject string, on uint64, body []byte) (uint64, error) {
	return b.Log.Append(b.ctx, subject, on, body, nil)
}

func (b bound) Fenced(err error) bool { return errors.Is(err, worklog.ErrFenced) }

func (b bound) Last(subject string) (uint64, []byte, error) { return b.Log.Last(b.ctx, subject) }

func (b bound) Read(subject string, take func(uint64, []byte) error) (uint64, error) {
	return b.Log.Read(b.ctx, subject, 0, take)
}

func (b bound) Barrier(filter string) ([]string, error) { return b.Log.Barrier(b.ctx, filter) }

func (b bound) Subjects(filter string) ([]string, error) {
	list, _, err := b.Log.Subjects(b.ctx, filter)
	return list, err
}

func (b bound) Purge(subject string, before uint64) error { return b.Log.Purge(b.ctx, subject, before) }

// keeper uses the log as long as ctx lasts.
func (l *logs) keeper(ctx context.Context) *workcore.Keeper {
	return &workcore.Keeper{Log: bound{ctx, l.log}, Stream: l.log.Name(), Self: workcore.Peer(l.space.link.Self()), Limits: l.limits, Lives: l.lives}
}

// lives reports whether a life is in the roster.
func (l *logs) lives(p workcore.Peer) bool {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	return l.space.roster[p]
}

// begin starts a writer.
func (l *logs) begin(of *workcore.Writer) {
	w := &writer{log: of, logs: l, kick: make(chan struct{}, 1)}
	l.writers[w.log.Account()] = w
	l.running.Go(func() { w.loop(l.beside) })
}

// writeEntries hands entries to their writers. The lock of the space is held.
func (l *logs) writeEntries(list []workcore.Append) {
	for i := range list {
		l.handed += uint64(len(list[i].Entries))
		if w := l.writers[list[i].Account]; w != nil {
			w.log.Add(&list[i])
			wake(w.kick)
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // It will look.
	}
}

// isFull reports whether Put has to wait for room: records need the last quarter. The lock of the space is held.
func (l *logs) isFull() bool {
	most := uint64(l.space.section.Log.Most) << 20 //nolint:gosec // It was checked.
	return most > 0 && l.bytes+l.handed-l.counted > most/4*3
}

// writer appends to the log of an account.
type writer struct {
	log     *workcore.Writer // guarded by the lock of the space; its account never changes
	logs    *logs
	kick    chan struct{} // capacity 1
	stalled bool          // that it has to wait was told; guarded by that lock
}

func (w *writer) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		}
		for {
			batch, on := w.compose()
			if batch == nil {
				if w.logs.isClosing() {
					return
				}
				break
			}
			seq, err := w.logs.log.Append(ctx, w.log.Subject(), on, batch, w.again)
			if err != nil {
				w.logs.failed(ctx, w, err)
				return
			}
			if trim := w.reached(seq); trim > 0 {
				w.trim(ctx, trim)
			}
		}
	}
}

func (l *logs) isClosing() bool {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	return l.closing
}

func (w *writer) compose() (batch []byte, on uint64) {
	w.logs.space.mu.Lock()
	defer w.logs.space.mu.Unlock()
	return w.log.Compose()
}

// again tells once that the log does not take a message.
func (w *writer) again(err error) {
	w.logs.space.mu.Lock()
	before := w.stalled
	w.stalled = true
	w.logs.space.mu.Unlock()
	if !before {
		w.logs.space.log.Warn("the log of tasks does not take a message: nothing counts before it does", "account", w.log.Account(), "error", err)
	}
}

// reached tells the machine what the log has, and returns up to where it may be trimmed.
func (w *writer) reached(seq uint64) (trim uint64) {
	s := w.logs.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.stalled {
		w.stalled = false
		s.log.Info("the log of tasks takes messages again", "account", w.log.Account())
	}
	w.logs.written += uint64(w.log.Bytes()) //nolint:gosec // It is not negative.
	ticket, trim := w.log.Took(seq)
	if s.err == nil && ticket > 0 {
		_ = s.step(&workcore.Input{Kind: workcore.InDurable, ID: w.log.Account(), Ticket: ticket}) // It is never refused.
		s.tell(s.now)
	}
	return trim
}

// trim removes the phase before the one that has just ended: whoever reads results of a phase reads them then.
func (w *writer) trim(ctx context.Context, before uint64) {
	if err := w.logs.log.Purge(ctx, w.log.Subject(), before); err != nil && ctx.Err() == nil {
		w.logs.space.log.Warn("the log of a phase that is over could not be removed", "account", w.log.Account(), "error", err)
	}
}

// failed ends what cannot go on without a log.
func (l *logs) failed(ctx context.Context, w *writer, err error) {
	s := l.space
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil || ctx.Err() != nil:
	case errors.Is(err, worklog.ErrFenced) && w.log.Account() != s.link.Self().Name:
		if l.writers[w.log.Account()] != w {
			return
		}
		delete(l.writers, w.log.Account())
		_ = s.step(&workcore.Input{Kind: workcore.InDisown, ID: w.log.Account()}) // It is never refused.
		s.tell(s.now)
	case errors.Is(err, worklog.ErrFenced):
		s.finishSpace(fmt.Errorf("%w: %w", ErrDropped, err))
	default:
		s.finishSpace(err)
	}
}

// notePhaseOver notes that a phase may be over: the synchronizer says so, or another member is ahead. The lock of the
// space is held.
func (l *logs) notePhaseOver(phase uint64, signalled bool) {
	if signalled {
		l.signalled = max(l.signalled, phase)
	}
	wake(l.ends)
}

// closePhases ends one phase after the other.
func (l *logs) closePhases(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.ends:
		}
		for {
			more, err := l.closePhase(ctx)
			if l.noteFailure(ctx, &l.undecided, err) {
				l.space.log.Warn("whether the phase is over cannot be decided without the log; it is tried again", "error", err)
			}
			if err != nil {
				sleep(ctx, retryPause)
				if ctx.Err() != nil {
					return
				}
				continue
			}
			if !more {
				break
			}
		}
	}
}

// noteFailure keeps why something fails that is tried again, and reports whether that is news.
func (l *logs) noteFailure(ctx context.Context, kept *string, err error) (news bool) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	news = text != "" && text != *kept
	*kept = text
	return news
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// closePhase ends the phases that are decided to be over, and decides on the present one if the synchronizer says
// that it is over. It reports whether there was one.
func (l *logs) closePhase(ctx context.Context) (more bool, err error) {
	s := l.space
	s.mu.Lock()
	phase, signalled, over := s.phase, l.signalled, s.err != nil
	s.mu.Unlock()
	if over {
		return false, nil
	}
	one, cancel := context.WithTimeout(ctx, decidePatience)
	defer cancel()
	k := l.keeper(one)
	seq, d, err := k.Decided()
	if err != nil {
		return false, err
	}
	if d.Phase < phase {
		if signalled < phase {
			return false, nil
		}
		if d, err = k.Decide(seq, d, phase); err != nil {
			return false, err
		}
	}
	if d.Valid >= phase {
		if err := l.readForeign(ctx, &d); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && s.phase <= d.Phase {
		s.endPhase(d.Valid < s.phase)
	}
	if d.Valid < d.Phase && s.isFirst() { // Somebody has to have those tasks.
		l.unsure = true
		wake(l.orphans)
	}
	s.tell(s.link.Now())
	return true, nil
}

// fillReport fills in what the stream is. The lock of the space is held.
func (l *logs) fillReport(r *workreport.LogReport) {
	r.Stream, r.Messages, r.Bytes = l.log.Name(), l.messages, l.bytes
	r.Fault = cmp.Or(l.undecided, l.unknown)
	for _, w := range l.writers {
		r.Stalled = r.Stalled || w.stalled
	}
}

// adoptOrphans has the first of the roster take over the accounts of members that are not in the roster and have
// open tasks.
func (l *logs) adoptOrphans(ctx context.Context) {
	ticker := time.NewTicker(orphanPause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		err := l.adopt(ctx)
		if l.noteFailure(ctx, &l.unknown, err) {
			l.space.log.Warn("tasks of members that are gone cannot be looked for; it is tried again", "error", err)
		}
		if err != nil {
			sleep(ctx, retryPause)
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.orphans:
		case <-ticker.C:
		}
	}
}

func (l *logs) adopt(ctx context.Context) error {
	s := l.space
	s.mu.Lock()
	written := l.written
	s.mu.Unlock()
	messages, bytes, err := l.log.Size(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	l.messages, l.bytes, l.counted = messages, bytes, written
	s.releaseCallers() // Some may wait for room.
	first, phase := s.isFirst(), s.phase
	s.mu.Unlock()
	wake(l.ends) // Others may be ahead.
	if !first {
		return nil
	}
	k := l.keeper(ctx)
	accounts, err := k.Orphans(func(account string) bool { return !l.orphan(account) })
	if err != nil {
		return err
	}
	for _, account := range accounts {
		if !l.orphan(account) {
			continue
		}
		store, w, err := k.Take(account, workcore.Decision{Phase: phase - 1}, func() bool { return l.orphan(account) })
		if errors.Is(err, worklog.ErrFenced) || errors.Is(err, workcore.ErrAhead) {
			continue // Its owner is back, or this member is to end a phase first.
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.err == nil && l.isOrphan(account) {
			l.begin(w)
			s.log.Info("tasks of a member that is gone continue here", "of", account, "tasks", store.Account().Counts().Open, "objects", store.Account().Counts().Objects)
			_ = s.step(&workcore.Input{Kind: workcore.InAdopt, ID: account, Account: store}) // It is never refused.
			s.tell(s.now)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.unsure = false
	s.tell(s.link.Now())
	return nil
}

func (l *logs) orphan(account string) bool {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	return l.isOrphan(account)
}

// isOrphan reports whether nobody in the roster has an account. The lock of the space is held.
func (l *logs) isOrphan(account string) bool {
	return l.writers[account] == nil && !hasName(l.space.roster, account)
}

// dropWriters ends the writers of accounts that are not this member's any more. The lock of the space is held.
func (l *logs) dropWriters() {
	for p := range l.space.roster {
		if w := l.writers[p.Name]; w != nil && p.Name != l.space.link.Self().Name {
			w.log.Drop()
			delete(l.writers, p.Name)
		}
	}
}

// closeLogs writes what is left, and that this member runs nothing any more.
func (l *logs) closeLogs(last []workcore.Append) {
	s := l.space
	s.mu.Lock()
	l.closing = true
	l.writeEntries(last)
	for _, w := range l.writers {
		wake(w.kick)
	}
	s.mu.Unlock()
	written := make(chan struct{})
	go func() { l.running.Wait(); close(written) }()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
		s.log.Warn("the log of tasks does not take the last messages: what they say is done again")
	}
	l.stop()
	<-written
}

// foreign names the results of a function that another member has put.
type foreign struct{ function, member string }

// readForeign reads the results of other members in a phase that has just ended, for those who ask for them.
func (l *logs) readForeign(ctx context.Context, d *workcore.Decision) error {
	s := l.space
	s.mu.Lock()
	members := map[string]bool{}
	for f, r := range s.foreign {
		if members[f.member] = true; r.ended {
			r.beginPhase()
		}
	}
	s.mu.Unlock()
	for member := range members {
		var found []workcore.Result
		r := workcore.NewRecovery(l.limits)
		last, err := l.log.Read(ctx, workcore.SubjectOf(member), 0, func(_ uint64, body []byte) error {
			list, err := r.Take(body)
			if p := r.Last().Phase; d.Before < p && p <= d.Valid {
				found = append(found, list...)
			}
			return err
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		for f, r := range s.foreign {
			if f.member != member {
				continue
			}
			r.beginPhase()
			if last == 0 {
				r.missing = fmt.Errorf("work: no member %q has ever opened the space: give Of the name of a member that has", member)
			}
			for i := range found {
				if found[i].Func == f.function {
					r.keepResult(&found[i])
				}
			}
		}
		s.mu.Unlock()
	}
	return nil
}

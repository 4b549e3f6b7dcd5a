package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/worklog"
)

// logs keeps accounts in JetStream: that of this member, and those that it takes over from members that are gone. What
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
	orphans chan struct{}      // capacity 1: look for accounts that nobody has

	// Guarded by the lock of the space:
	writers   map[string]*writer // by account
	signalled uint64             // the phase that the synchronizer has declared over
	unsure    bool               // accounts may have open tasks and no owner
	bytes     uint64             // of the stream, as it was last told
	since     uint64             // bytes that were written here since
	closing   bool               // writers end once nothing is pending
}

// Subjects of a stream, below its name.
const (
	accountPrefix = "a."     // and the name of a member: the log of its account
	phasesSubject = "phases" // a decision for each phase
)

const (
	// orphanPause is after what time the first of the roster looks again for accounts that nobody has.
	orphanPause = 5 * time.Second
	// retryPause is the pause after something has failed that has to work some time.
	retryPause = 250 * time.Millisecond
	// closePatience bounds how long Close waits for the logs.
	closePatience = 5 * time.Second
)

// decision says which phases are over. It is made once for each.
type decision struct {
	Phase  uint64 `json:"phase"`  // the last one that is over
	Valid  uint64 `json:"valid"`  // the last one in which no task was open then; in those behind it all go on
	Before uint64 `json:"before"` // the last valid one before that
}

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
	_, d, err := l.decided(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	l.beside, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	own, w, err := l.take(ctx, s.link.Self().Name, d.Phase+1)
	if err != nil {
		l.stop()
		return nil, nil, 0, err
	}
	l.begin(w)
	return l, own, d.Phase + 1, nil
}

// decided reads the last decision.
func (l *logs) decided(ctx context.Context) (seq uint64, d decision, err error) {
	seq, body, err := l.log.Last(ctx, phasesSubject)
	if err == nil && seq > 0 {
		if err = json.Unmarshal(body, &d); err != nil {
			err = fmt.Errorf("work: stream %s: message %d, which says what phase is over: %w: let all members run the same version", l.log.Name(), seq, err)
		}
	}
	return seq, d, err
}

// take makes this life the owner of an account: it folds the log, and appends that it has it now. If another
// process appends meanwhile, it begins again.
func (l *logs) take(ctx context.Context, account string, phase uint64) (*workcore.Store, *writer, error) {
	self := workcore.Peer(l.space.link.Self())
	for {
		w := &writer{logs: l, account: account, subject: accountPrefix + account, kick: make(chan struct{}, 1)}
		r, err := w.recover(ctx)
		if err != nil {
			return nil, nil, err
		}
		store := r.Own(self)
		for entries := store.TakeLog(); len(entries) > 0 && err == nil; {
			b := workcore.Batch{Owner: self, Phase: phase, Open: max(1, store.Account().Counts().Open), Objects: store.Account().Counts().Objects}
			if b.Entries, entries = workcore.SplitEntries(entries, workcore.MaxBatch); len(entries) == 0 {
				b.Open = store.Account().Counts().Open
			}
			w.last, err = l.log.Append(ctx, w.subject, w.last, b.Append(nil), nil)
		}
		if err == nil {
			return store, w, nil
		}
		if !errors.Is(err, worklog.ErrFenced) {
			return nil, nil, err
		}
	}
}

// begin starts a writer.
func (l *logs) begin(w *writer) {
	l.writers[w.account] = w
	l.running.Go(func() { w.loop(l.beside) })
}

// write hands entries to their writers. The lock of the space is held.
func (l *logs) write(list []workcore.Append) {
	for i := range list {
		a := list[i]
		l.since += uint64(len(a.Entries))
		if w := l.writers[a.Account]; w != nil {
			w.pending = append(w.pending, a)
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

// full reports whether Put has to wait for room: records need the last quarter. The lock of the space is held.
func (l *logs) full() bool {
	most := uint64(l.space.section.Log.Most) << 20 //nolint:gosec // It was checked.
	return most > 0 && l.bytes+l.since > most/4*3
}

// writer appends to the log of one account, a message at a time: what comes meanwhile goes into the next one.
type writer struct {
	logs    *logs
	account string
	subject string
	kick    chan struct{}     // capacity 1
	pending []workcore.Append // guarded by the lock of the space
	last    uint64            // sequence of the last message
	ended   uint64            // of the message with the last end of a phase; 0: none
	stalled bool              // that it has to wait was told
}

// recover folds the log.
func (w *writer) recover(ctx context.Context) (*workcore.Recovery, error) {
	r := workcore.NewRecovery(w.logs.limits)
	var err error
	w.last, err = w.logs.log.Read(ctx, w.subject, 0, func(seq uint64, body []byte) error {
		ends := r.Ends()
		_, err := r.Take(body)
		if r.Ends() > ends {
			w.ended = seq
		}
		return err
	})
	return r, err
}

func (w *writer) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		}
		for {
			batch, ticket, ends := w.compose()
			if batch == nil {
				if w.logs.isClosing() {
					return
				}
				break
			}
			seq, err := w.logs.log.Append(ctx, w.subject, w.last, batch, w.again)
			if err != nil {
				w.logs.failed(ctx, w, err)
				return
			}
			w.last = seq
			w.reached(ticket)
			if ends {
				w.trim(ctx, seq)
			}
		}
	}
}

func (l *logs) isClosing() bool {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	return l.closing
}

// compose makes a message of what is pending, as far as it fits. Ticket is that of the last append that is
// in it whole.
func (w *writer) compose() (batch []byte, ticket uint64, ends bool) {
	s := w.logs.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.pending) == 0 {
		return nil, 0, false
	}
	b := workcore.Batch{Owner: workcore.Peer(s.link.Self())}
	var entries []byte
	for len(w.pending) > 0 {
		a := &w.pending[0]
		if len(entries) > 0 && len(entries)+len(a.Entries) > workcore.MaxBatch {
			break
		}
		b.Number, b.Phase, b.Open, b.Objects = a.Ticket, a.Phase, a.Open, a.Objects
		first, rest := workcore.SplitEntries(a.Entries, workcore.MaxBatch)
		if entries = append(entries, first...); len(rest) > 0 {
			a.Entries, b.Open = rest, max(1, a.Open) // The rest may open tasks.
			break
		}
		ticket, ends = a.Ticket, ends || a.Ends
		w.pending = w.pending[1:]
	}
	b.Entries = entries
	return b.Append(nil), ticket, ends
}

// again tells once that the log does not take a message.
func (w *writer) again(err error) {
	if !w.stalled {
		w.stalled = true
		w.logs.space.log.Warn("the log of tasks does not take a message: nothing counts before it does", "account", w.account, "error", err)
	}
}

// reached tells the machine what the log has.
func (w *writer) reached(ticket uint64) {
	s := w.logs.space
	if w.stalled {
		w.stalled = false
		s.log.Info("the log of tasks takes messages again", "account", w.account)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && ticket > 0 {
		_ = s.step(&workcore.Input{Kind: workcore.InDurable, ID: w.account, Ticket: ticket}) // It is never refused.
		s.tell(s.now)
	}
}

// trim removes the phase before the one that has just ended: whoever reads results of a phase reads them then.
func (w *writer) trim(ctx context.Context, end uint64) {
	if w.ended > 0 {
		if err := w.logs.log.Purge(ctx, w.subject, w.ended); err != nil && ctx.Err() == nil {
			w.logs.space.log.Warn("the log of a phase that is over could not be removed", "account", w.account, "error", err)
		}
	}
	w.ended = end
}

// failed ends what cannot go on without a log.
func (l *logs) failed(ctx context.Context, w *writer, err error) {
	s := l.space
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil || ctx.Err() != nil:
	case errors.Is(err, worklog.ErrFenced) && w.account != s.link.Self().Name:
		if l.writers[w.account] != w {
			return
		}
		delete(l.writers, w.account)
		_ = s.step(&workcore.Input{Kind: workcore.InDisown, ID: w.account}) // It is never refused.
		s.tell(s.now)
	case errors.Is(err, worklog.ErrFenced):
		s.finish(fmt.Errorf("%w: %w", ErrDropped, err))
	default:
		s.finish(err)
	}
}

// over notes that a phase may be over: by the synchronizer's word, or since another member is ahead. The lock of the
// space is held.
func (l *logs) over(phase uint64, signalled bool) {
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
			if err != nil && ctx.Err() == nil {
				l.space.log.Warn("whether the phase is over cannot be decided without the log; it is tried again", "error", err)
				sleep(ctx, retryPause)
				continue
			}
			if !more {
				break
			}
		}
	}
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
	seq, d, err := l.decided(ctx)
	if err != nil {
		return false, err
	}
	if d.Phase < phase {
		if signalled < phase {
			return false, nil
		}
		if d, err = l.decide(ctx, seq, d, phase); err != nil {
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
	if d.Valid < d.Phase && s.first() { // Somebody has to have those tasks.
		l.unsure = true
		wake(l.orphans)
	}
	s.tell(s.link.Now())
	return true, nil
}

// decide decides on a phase that is over by the states of all members: it is, if no account has an open task in
// its log. Otherwise there are tasks of a member that is not in the roster. The first who decides is right.
func (l *logs) decide(ctx context.Context, seq uint64, d decision, phase uint64) (decision, error) {
	subjects, err := l.log.Barrier(ctx, accountPrefix+"*")
	if err != nil {
		return d, err
	}
	next := decision{Phase: phase, Valid: phase, Before: d.Valid}
	for _, subject := range subjects {
		open, _, err := l.open(ctx, subject)
		if err != nil {
			return d, err
		}
		if open > 0 {
			next.Valid, next.Before = d.Valid, d.Before
		}
	}
	body, err := json.Marshal(next)
	if err != nil {
		return d, err
	}
	one, cancel := context.WithTimeout(ctx, closePatience) // What has changed meanwhile is read again.
	defer cancel()
	if _, err = l.log.Append(one, phasesSubject, seq, body, nil); errors.Is(err, worklog.ErrFenced) {
		_, next, err = l.decided(ctx)
		if err == nil && next.Phase < phase {
			err = fmt.Errorf("work: stream %s: a decision on phase %d is gone: do not purge %s.%s", l.log.Name(), phase, l.log.Name(), phasesSubject)
		}
	}
	if err == nil && seq > 0 {
		err = l.log.Purge(ctx, phasesSubject, seq) // A decision holds the one before.
	}
	return next, err
}

// open is how many tasks of an account are open by its log, and how many objects it has.
func (l *logs) open(ctx context.Context, subject string) (open, objects int, err error) {
	seq, body, err := l.log.Last(ctx, subject)
	if err != nil || seq == 0 {
		return 0, 0, err
	}
	b, err := workcore.ReadBatch(body)
	if err != nil {
		return 0, 0, fmt.Errorf("work: stream %s: message %d: %w", l.log.Name(), seq, err)
	}
	return b.Open, b.Objects, nil
}

// adoptOrphans has the first of the roster take over the accounts of members that are not in the roster and have
// open tasks.
func (l *logs) adoptOrphans(ctx context.Context) {
	ticker := time.NewTicker(orphanPause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		err := l.adopt(ctx)
		if err != nil && ctx.Err() == nil {
			l.space.log.Warn("tasks of members that are gone cannot be looked for; it is tried again", "error", err)
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
	_, bytes, err := l.log.Size(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	l.bytes, l.since = bytes, 0
	s.release() // Some may wait for room.
	first, phase := s.first(), s.phase
	s.mu.Unlock()
	wake(l.ends) // Others may be ahead.
	if !first {
		return nil
	}
	subjects, _, err := l.log.Subjects(ctx, accountPrefix+"*")
	if err != nil {
		return err
	}
	slices.Sort(subjects)
	for _, subject := range subjects {
		account := strings.TrimPrefix(subject, accountPrefix)
		open, objects, err := l.open(ctx, subject)
		if err != nil {
			return err
		}
		if open+objects == 0 || !l.orphan(account) {
			continue
		}
		store, w, err := l.take(ctx, account, phase)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.err == nil && l.isOrphan(account) {
			l.begin(w)
			s.log.Info("the tasks of a member that is gone go on here", "of", account, "tasks", store.Account().Counts().Open, "objects", store.Account().Counts().Objects)
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
	if l.writers[account] != nil {
		return false
	}
	for p := range l.space.roster {
		if p.Name == account {
			return false
		}
	}
	return true
}

// dropWriters ends the writers of accounts that are not this member's any more. The lock of the space is held.
func (l *logs) dropWriters() {
	for p := range l.space.roster {
		if w := l.writers[p.Name]; w != nil && p.Name != l.space.link.Self().Name {
			w.pending = nil
			delete(l.writers, p.Name)
		}
	}
}

// close writes what is left, and that this member runs nothing any more.
func (l *logs) close(last []workcore.Append) {
	s := l.space
	s.mu.Lock()
	l.closing = true
	l.write(last)
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
func (l *logs) readForeign(ctx context.Context, d *decision) error {
	s := l.space
	s.mu.Lock()
	members := map[string]bool{}
	for f, r := range s.foreign {
		if members[f.member] = true; r.ended {
			r.begin()
		}
	}
	s.mu.Unlock()
	for member := range members {
		var found []workcore.Result
		r := workcore.NewRecovery(l.limits)
		last, err := l.log.Read(ctx, accountPrefix+member, 0, func(_ uint64, body []byte) error {
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
			r.begin()
			if last == 0 {
				r.missing = fmt.Errorf("work: no member %q has ever opened the space: give Of the name of one", member)
			}
			for i := range found {
				if found[i].Func == f.function {
					r.take(&found[i])
				}
			}
		}
		s.mu.Unlock()
	}
	return nil
}

package workcore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Log is where the logs of the accounts of a space lie, each on a subject of its own, with the decisions on its phases
// on another one. Its methods may wait.
type Log interface {
	// Append appends a message if the last one of the subject has the sequence on; 0: there is none.
	Append(subject string, on uint64, body []byte) (seq uint64, err error)
	// Fenced reports whether Append has refused a message since another one was appended.
	Fenced(err error) bool
	// Last is the last message of a subject, perhaps an old one; behind a Barrier it is not older than that. 0: none.
	Last(subject string) (seq uint64, body []byte, err error)
	// Read reads a subject up to its last message, which may be an old one as well.
	Read(subject string, take func(seq uint64, body []byte) error) (last uint64, err error)
	// Barrier lists the subjects that match a filter, as they are when it is called or later.
	Barrier(filter string) (subjects []string, err error)
	// Subjects lists them as they may have been before.
	Subjects(filter string) (subjects []string, err error)
	// Purge removes the messages of a subject before a sequence.
	Purge(subject string, before uint64) error
}

// Subjects of a [Log].
const (
	accountPrefix = "a."     // and the name of a member: the log of its account
	allAccounts   = "a.*"    // matches all of them
	phasesSubject = "phases" // a decision for each phase
)

// SubjectOf is the subject of the log of a member's account.
func SubjectOf(account string) string { return accountPrefix + account }

// ErrAhead says that an account is in a later phase than the member that was to take it over.
var ErrAhead = errors.New("the account is in a later phase: this member has to end its own first")

// Decision says which phases are over. It is made once for each.
type Decision struct {
	Phase  uint64 `json:"phase"`  // the last one that is over
	Valid  uint64 `json:"valid"`  // the last one in which no task was open then; in the phases behind it all continue
	Before uint64 `json:"before"` // the last valid one before that
}

// Keeper is how one life of a member uses the logs of a space. Its methods may run at the same time.
type Keeper struct {
	Log    Log             // of the space
	Stream string          // its name, for errors
	Self   Peer            // the life
	Limits Limits          // of accounts
	Lives  func(Peer) bool // whether a life is in the roster
	Batch  int             // bytes of entries in one message; 0: MaxBatch
}

func (k *Keeper) batch() int {
	if k.Batch > 0 {
		return k.Batch
	}
	return MaxBatch
}

// Decided reads the last decision, which may be an old one. Sequence 0: there is none.
func (k *Keeper) Decided() (seq uint64, d Decision, err error) {
	seq, body, err := k.Log.Last(phasesSubject)
	if err == nil && seq > 0 {
		if err = json.Unmarshal(body, &d); err != nil {
			err = fmt.Errorf("work: stream %s: message %d, which says what phase is over: %w: let all members run the same version", k.Stream, seq, err)
		}
	}
	return seq, d, err
}

// Decide decides on a phase that is over by the states of all members: it is, if no account has an open task in its
// log. Otherwise there are tasks of a member that is not in the roster. The first who decides is right. Seq and d are
// of Decided.
func (k *Keeper) Decide(seq uint64, d Decision, phase uint64) (Decision, error) {
	subjects, err := k.Log.Barrier(allAccounts)
	if err != nil {
		return d, err
	}
	next := Decision{Phase: phase, Valid: phase, Before: d.Valid}
	for _, subject := range subjects {
		open, _, err := k.open(subject)
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
	if _, err = k.Log.Append(phasesSubject, seq, body); err != nil && k.Log.Fenced(err) {
		_, next, err = k.Decided()
		if err == nil && next.Phase < phase {
			err = fmt.Errorf("work: stream %s: the decision on phase %d is not to be seen: do not purge %[1]s.%[3]s", k.Stream, phase, phasesSubject)
		}
	}
	if err == nil && seq > 0 {
		err = k.Log.Purge(phasesSubject, seq) // A decision holds the one before.
	}
	return next, err
}

// open is how many tasks of an account are open by its log, and how many objects it has.
func (k *Keeper) open(subject string) (open, objects int, err error) {
	seq, body, err := k.Log.Last(subject)
	if err != nil || seq == 0 {
		return 0, 0, err
	}
	b, err := ReadBatch(body)
	if err != nil {
		return 0, 0, fmt.Errorf("work: stream %s: message %d: %w", k.Stream, seq, err)
	}
	return b.Open, b.Objects, nil
}

// Orphans lists the accounts with open tasks or objects that nobody has, as far as has knows.
func (k *Keeper) Orphans(has func(account string) bool) (accounts []string, err error) {
	subjects, err := k.Log.Subjects(allAccounts)
	if err != nil {
		return nil, err
	}
	slices.Sort(subjects)
	for _, subject := range subjects {
		account := strings.TrimPrefix(subject, accountPrefix)
		if has(account) {
			continue
		}
		open, objects, err := k.open(subject)
		if err != nil {
			return nil, err
		}
		if open+objects > 0 {
			accounts = append(accounts, account)
		}
	}
	return accounts, nil
}

// Open takes the own account, for the phase behind the last finished phase. It does not believe a server that was cut
// off: in a phase that is over the program would put again what its account has forgotten.
func (k *Keeper) Open() (store *Store, w *Writer, d Decision, err error) {
	for err = ErrAhead; errors.Is(err, ErrAhead); { // A phase may end meanwhile.
		if _, err = k.Log.Barrier(allAccounts); err != nil {
			return nil, nil, d, err
		}
		if _, d, err = k.Decided(); err != nil {
			return nil, nil, d, err
		}
		store, w, err = k.Take(k.Self.Name, d, func() bool { return true })
	}
	return store, w, d, err
}

// Take makes this life the owner of an account: it folds the log, and appends that it has it now. If another process
// appends meanwhile, it begins again, as long as may says. Results up to the phase d.Valid are not told again.
func (k *Keeper) Take(account string, d Decision, may func() bool) (*Store, *Writer, error) {
	for {
		w := &Writer{account: account, subject: SubjectOf(account), owner: k.Self, limit: k.batch()}
		r, err := w.recover(k, d.Valid)
		if err != nil {
			return nil, nil, err
		}
		if r.last.Phase > d.Phase+1 {
			return nil, nil, ErrAhead
		}
		before := r.last.Owner
		store := r.Own(k.Self, before == k.Self || k.Lives(before))
		if p := r.last.Phase; 0 < p && p <= d.Valid {
			store.End() // Its owner died before it could.
		}
		left := 0
		for entries := store.TakeLog(); len(entries) > 0 && err == nil; {
			b := Batch{Owner: k.Self, Phase: d.Phase + 1, Open: max(1, store.account.counts.Open), Objects: store.account.counts.Objects}
			if b.Entries, entries, left, b.part = cutEntries(entries, left, w.limit); len(entries) == 0 {
				b.Open = store.account.counts.Open
			}
			w.last, err = k.Log.Append(w.subject, w.last, b.Append(nil))
		}
		if err == nil {
			return store, w, nil
		}
		if !k.Log.Fenced(err) || !may() {
			return nil, nil, err
		}
	}
}

// Writer makes the messages of an account's log, one at a time: entries that come meanwhile go into the next one.
type Writer struct {
	account string
	subject string
	owner   Peer
	limit   int
	pending []Append
	last    uint64 // sequence of the last message
	ended   uint64 // of the message with the last end of a phase, or before; 0: none
	ending  uint64 // of the first message of an append with the end of a phase that is not whole in the log
	begins  bool   // the message under way is that one
	ticket  uint64 // of the last append that is whole in the message under way, or before
	ends    bool   // that message has the end of a phase
	size    int    // bytes of entries of that message
	left    int    // bytes of the first entry of pending whose beginning is in that message; 0: it has none
}

// Account is whose log it is.
func (w *Writer) Account() string { return w.account }

// Subject is the subject of the log.
func (w *Writer) Subject() string { return w.subject }

// recover folds the log.
func (w *Writer) recover(k *Keeper, valid uint64) (*Recovery, error) {
	r := NewRecovery(k.Limits)
	r.valid = valid
	var err error
	w.last, err = k.Log.Read(w.subject, func(seq uint64, body []byte) error {
		ends := r.Ends()
		_, err := r.Take(body)
		if r.Ends() > ends {
			w.ended = seq
		}
		return err
	})
	return r, err
}

// Add adds what goes into the log.
func (w *Writer) Add(a *Append) { w.pending = append(w.pending, *a) }

// Drop forgets what the log does not have yet: another life has the account.
func (w *Writer) Drop() { w.pending, w.left = nil, 0 }

// Compose makes a message of the pending entries, as far as they fit, and says on which one it is to be
// appended. It returns nil if nothing is pending. Took comes before the next call.
func (w *Writer) Compose() (body []byte, on uint64) {
	if len(w.pending) == 0 {
		return nil, w.last
	}
	b := Batch{Owner: w.owner}
	var entries []byte
	for w.ends, w.begins = false, false; len(w.pending) > 0; {
		a := &w.pending[0]
		if len(entries) > 0 && (len(entries)+len(a.Entries) > w.limit || a.Phase != b.Phase) {
			break
		}
		b.Number, b.Phase, b.Open, b.Objects = a.Ticket, a.Phase, a.Open, a.Objects
		if a.Ends && !a.begun {
			a.begun, w.begins = true, true
		}
		var first, rest []byte
		first, rest, w.left, b.part = cutEntries(a.Entries, w.left, w.limit)
		if entries = append(entries, first...); len(rest) > 0 {
			a.Entries, b.Open = rest, max(1, a.Open) // The rest may open tasks.
			break
		}
		w.ticket, w.ends = a.Ticket, w.ends || a.Ends
		if w.pending = w.pending[1:]; b.part {
			break
		}
	}
	b.Entries, w.size = entries, len(entries)
	return b.Append(nil), w.last
}

// Bytes is how many bytes of entries the message under way has.
func (w *Writer) Bytes() int { return w.size }

// Took notes that the log has the message as the sequence. Ticket is the ticket of the last append that it has whole.
// Messages before the sequence trim are of a phase before the phase just ended, and may go; 0: none.
func (w *Writer) Took(seq uint64) (ticket, trim uint64) {
	w.last = seq
	if w.begins {
		w.ending = seq
	}
	if w.ends {
		trim, w.ended = w.ended, w.ending
	}
	return w.ticket, trim
}

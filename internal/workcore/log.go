package workcore

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxBatch is how many bytes of entries go into one message of a log, so that it fits into 64 KiB.
const MaxBatch = 60 << 10

// The forms of the layout of a [Batch].
const (
	batchFirst       = 1 // without objects
	batchObjects     = 2 // without data that tasks read
	batchObjectsPart = 3 // a part of an entry that is too large for a message
	batchData        = 4
	batchPart        = 5 // a part of an entry, as batchObjectsPart
)

// Batch is one message of the log of an account: entries that became durable together.
type Batch struct {
	Owner   Peer   // the life that has written it
	Number  uint64 // of the batch, in this life; a life writes each number once
	Phase   uint64 // that the space is in
	Open    int    // tasks of the account that are open after it
	Objects int    // of the account
	Entries []byte // as [Append] has them, or the next bytes of an entry that is too large for a message

	form byte // of the entries
	part bool // Entries are a part of a single entry
}

// Append appends the encoded batch to dst.
func (b *Batch) Append(dst []byte) []byte {
	form := byte(batchData)
	if b.part {
		form = batchPart
	}
	c := coder{buf: append(dst, form), writing: true, form: formData}
	c.batch(b)
	return append(c.buf, b.Entries...)
}

func (c *coder) batch(b *Batch) {
	c.codePeer(&b.Owner)
	c.codeUint(&b.Number)
	c.codeUint(&b.Phase)
	if c.codeInt(&b.Open); c.form >= formObjects {
		c.codeInt(&b.Objects)
	}
}

// ReadBatch reads an encoded batch. Its entries are a part of data.
func ReadBatch(data []byte) (b Batch, err error) {
	if len(data) == 0 || data[0] < batchFirst || data[0] > batchPart {
		return b, errors.New("batch of a log: it has another form than this program reads: let all members of the space run the same version, or remove the message if another program has written it")
	}
	b.form = [...]byte{batchFirst: formWaits, batchObjects: formObjects, batchObjectsPart: formObjects, batchData: formData, batchPart: formData}[data[0]]
	b.part = data[0] == batchObjectsPart || data[0] == batchPart
	c := coder{buf: data[1:], form: b.form, names: map[string]string{}}
	if c.batch(&b); c.err != nil {
		return b, fmt.Errorf("batch of a log: %w", c.err)
	}
	b.Entries = c.buf
	return b, nil
}

// SplitEntries cuts entries after as many as fit into max bytes, after one at least.
func SplitEntries(entries []byte, limit int) (first, rest []byte) {
	at := 0
	for at < len(entries) {
		n, used := binary.Uvarint(entries[at:])
		if used <= 0 || n > uint64(len(entries)-at-used) {
			return entries, nil // It is damaged, and whoever reads it says so.
		}
		next := at + used + int(n)
		if at > 0 && next > limit {
			break
		}
		at = next
	}
	return entries[:at], entries[at:]
}

// cutEntries cuts off the content of one message: as many entries as fit into limit bytes, or a part of a larger
// entry. Left is how many bytes of the first entry are missing whose beginning is in the message before; 0: none.
func cutEntries(entries []byte, left, limit int) (first, rest []byte, leftThen int, part bool) {
	if left == 0 {
		if first, rest = SplitEntries(entries, limit); len(first) <= limit {
			return first, rest, 0, false
		}
		left = len(first)
	}
	n := min(left, limit)
	return entries[:n], entries[n:], left - n, true
}

// entryKind says what an [entry] is.
type entryKind uint8

const (
	entryPut    entryKind = iota + 1 // a task was put
	entryStep                        // a record counts
	entryEnd                         // a phase is over
	entryBegan                       // the owner's process runs a task
	entryDied                        // a holder died while it ran a task
	entryOwner                       // another life has the account from here on; no name: its owner gave it up
	entryMail                        // messages of another account were taken
	entryFence                       // another holder has an object than the holder that may run it still
	entryObject                      // an object, behind the end of a phase
	entryTaken                       // up to which number messages of an account were taken, behind the end of a phase
)

// entry is one entry of the log of an account, encoded behind its length.
type entry struct {
	kind   entryKind
	seq    uint64 // in the account
	task   Task
	key    float64
	record Record
	keys   []float64
	owner  Peer
	post   Post
}

func (c *coder) entry(e *entry) {
	codeSmall(c, &e.kind)
	c.codeUint(&e.seq)
	switch e.kind {
	case entryPut:
		c.codeTask(&e.task)
		c.codeFloat(&e.key)
	case entryStep:
		s := Step{Record: e.record, Keys: e.keys}
		c.codeStep(&s)
		e.record, e.keys = s.Record, s.Keys
	case entryMail, entryTaken:
		c.codePost(&e.post)
	case entryObject:
		c.codeTask(&e.task)
		c.codeFloat(&e.key)
		c.codeBool(&e.record.Pinned)
	case entryBegan, entryDied, entryFence:
		c.codeText(&e.record.ID)
	case entryOwner:
		c.codePeer(&e.owner)
	case entryEnd:
	default:
		c.keepFault(fmt.Errorf("there is no entry of the kind %d", e.kind))
	}
}

// writeEntry writes an entry into the log, if the store has one.
func (s *Store) writeEntry(e *entry) {
	if !s.logs {
		return
	}
	c := coder{buf: s.scratch[:0], writing: true, form: formData}
	c.entry(e)
	s.scratch = c.buf
	s.log = append(binary.AppendUvarint(s.log, uint64(len(c.buf))), c.buf...)
}

// TakeLog returns the entries since the last call, each behind its length. A [Member] does that with those that it has.
func (s *Store) TakeLog() []byte {
	log := s.log
	s.log = nil
	return log
}

// Recovery folds the log of an account again, and makes its [Store]. It takes the batches in their order, from the
// beginning or from one with the end of a phase on; what comes before that end is left out.
type Recovery struct {
	limits  Limits
	store   *Store
	names   map[string]string
	last    Batch
	ends    int
	results []Result // since the last end of a phase, of phases behind valid
	valid   uint64   // the last phase that is known to be over, with the results of it
	begun   bool     // with the first entry of the log, or the end of a phase
	parts   []byte   // of an entry that is not whole
}

// NewRecovery begins with an empty log.
func NewRecovery(limits Limits) *Recovery {
	return &Recovery{limits: limits, store: NewStore(limits), names: map[string]string{}}
}

// Last is the last batch that was taken, without its entries.
func (r *Recovery) Last() Batch { return r.last }

// Ends is how many ends of phases there were.
func (r *Recovery) Ends() int { return r.ends }

// Take takes the next batch, and returns what its records have found.
func (r *Recovery) Take(data []byte) (found []Result, err error) {
	b, err := ReadBatch(data)
	if err != nil {
		return nil, err
	}
	ends, since := r.ends, 0
	if whole := r.join(&b); !whole {
		b.Entries, r.last = nil, b
		return nil, nil
	}
	for left := b.Entries; len(left) > 0; {
		var one []byte
		one, left = SplitEntries(left, 0)
		if err := r.takeEntry(one, b.form); err != nil {
			return nil, fmt.Errorf("batch %d of %v: %w", b.Number, b.Owner, err)
		}
		found = r.store.Results(found)
		if r.ends > ends {
			ends, since = r.ends, len(found)
			r.results = nil
		}
	}
	if b.Phase > r.valid { // Else the owner died before it ended the phase in its account.
		r.results = append(r.results, found[since:]...)
	}
	b.Entries = nil
	r.last = b
	return found, nil
}

// join joins the parts of an entry, and reports whether the entries of a batch are whole. Parts that end before their
// entry does never counted: their owner has died. What the next one writes first is a whole entry.
func (r *Recovery) join(b *Batch) (whole bool) {
	if !b.part {
		r.parts = nil
		return true
	}
	r.parts = append(r.parts, b.Entries...)
	n, used := binary.Uvarint(r.parts)
	if used == 0 || used > 0 && n > uint64(len(r.parts)-used) && n <= MaxWhole {
		return false
	}
	b.Entries, r.parts = r.parts, nil
	return true
}

func (r *Recovery) takeEntry(data []byte, form byte) error {
	n, used := binary.Uvarint(data)
	if used <= 0 || n != uint64(len(data)-used) {
		return errShort
	}
	c := coder{buf: data[used:], form: form, names: r.names}
	var e entry
	if c.entry(&e); c.err == nil && len(c.buf) > 0 {
		c.err = fmt.Errorf("%d bytes are left over", len(c.buf))
	}
	if c.err != nil {
		return c.err
	}
	if e.kind == entryEnd {
		r.ends++
	}
	switch {
	case r.begun:
		return r.store.replay(&e)
	case e.kind == entryEnd:
		r.store = NewStore(r.limits)
		r.store.account.seq, r.begun = e.seq, true
	case e.kind == entryOwner && e.seq == 0:
		r.begun = true
	}
	return nil
}

// Own ends the recovery: the account belongs to the life owner from here on, and the first entry of the store's log
// says so. What the owner before had begun, and not recorded or given up, counts as a run in which it died, unless it
// lives.
func (r *Recovery) Own(owner Peer, lives bool) *Store {
	s := r.store
	s.self, s.logs, s.results = owner.String(), true, r.results
	if lives && r.last.Owner.Name != "" {
		s.GiveUp()
	}
	s.replayOwner(owner)
	s.writeEntry(&entry{kind: entryOwner, seq: s.account.Seq(), owner: owner})
	s.endDoomed()
	for _, o := range s.account.objects {
		o.lease.handed = true // The holders of the owner before may run it still.
	}
	for _, id := range s.account.Open() {
		s.poisonTask(s.account.findTask(id), r.last.Owner.String())
	}
	return s
}

// replay takes an entry that was written before.
func (s *Store) replay(e *entry) error {
	switch e.kind {
	case entryPut:
		if err := e.task.Check(); err != nil {
			return err
		}
		if s.account.Put(e.seq, s.account.Phase(), &e.task) == Counted {
			s.admitAdded([]float64{e.key})
		}
	case entryStep:
		if err := e.record.Check(); err != nil {
			return err
		}
		if o := s.account.findTask(e.record.ID); o != nil && o.needs > 0 {
			for _, name := range o.task.Reads { // They were written when it ran.
				s.Write(name)
			}
		}
		if o := s.writeRecord(e.seq, &e.record, e.keys); o != Counted {
			return fmt.Errorf("the record of task %q does not count: it %v", e.record.ID, o)
		}
		if s.account.objects[e.record.ID] != nil {
			s.rouseTask(s.account.objects[e.record.ID])
		}
	case entryEnd:
		if s.account.End(e.seq, s.account.Phase()) == NotEmpty {
			return fmt.Errorf("the entry ends a phase in which %w", ErrOpen)
		}
		s.careful = false
	case entryBegan, entryDied:
		if o := s.account.findTask(e.record.ID); o != nil && e.kind == entryBegan {
			o.lease.began = true
		} else if o != nil {
			o.lease.losses++
		}
	case entryOwner:
		s.replayOwner(e.owner)
	default:
		s.replayObject(e)
	}
	return nil
}

// replayOwner notes that another life has the account, or that its owner has given it up. An owner that has not given
// it up has died. Runs need not be in the log before they begin, so the task that killed it cannot be known; from
// then on in this phase they have to.
func (s *Store) replayOwner(owner Peer) {
	s.careful = s.careful || owner.Name != "" && s.owned
	s.owned = owner.Name != ""
	for _, o := range s.account.tasks {
		if o.fate == Kept && o.lease.began {
			if o.lease.began = false; owner.Name != "" {
				o.lease.losses++
			}
		}
	}
}

// GiveUp notes that no process runs a task of the account any more: no task has killed a process.
func (s *Store) GiveUp() {
	s.replayOwner(Peer{})
	s.writeEntry(&entry{kind: entryOwner, seq: s.account.Seq()})
}

package sim

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// disk is the file under a journal: it may be full, it forgets unsynced bytes when the
// synchronizer is killed, from any byte on, and a sync may fail.
type disk struct {
	dice   *rand.Rand
	room   int    // bytes
	data   []byte // what the system was given
	synced int    // of that on the disk for certain
	bad    bool   // the next sync fails
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(p []byte) (n int, err error) {
	n = min(len(p), d.room-len(d.data))
	d.data = append(d.data, p[:n]...)
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func (d *disk) Sync() error {
	if d.bad {
		return errors.New("input/output error")
	}
	d.synced = len(d.data)
	return nil
}

// left is the content of the disk after a crash.
func (d *disk) left() []byte { return d.data[:d.synced+d.dice.IntN(len(d.data)-d.synced+1)] }

// filed is what has happened to journals in trials.
type filed struct {
	Lives, Torn, Full, Unsynced, Headless int // journals of so many lives; of these with such a fault
	Records                               int // that were read again
}

// journaled records what the synchronizer of a trial does, as its shell does: a line before a
// step, its end after it, written in chunks, and nothing more once a write or a sync has failed.
// At the end of each life the rest is read, and stepped again.
type journaled struct {
	filed
	next    *bent // what else is bent; not nil
	writes  func(d *disk, chunk []byte) error
	replays func(in *synccore.Input)

	t       *trial
	disk    *disk
	dice    *rand.Rand
	line    []byte
	waiting []byte
	ends    []int // of the lines in the file, by bytes
	bytes   int
	ended   bool
	digest  journal.Digest
	term    uint64
}

// newJournaled bends a trial by nothing but what next does.
func newJournaled(seed uint64, next *bent) *journaled {
	j := &journaled{next: next, dice: rand.New(rand.NewPCG(seed, 99))} //nolint:gosec // Chance is all that is asked for.
	j.writes = func(d *disk, chunk []byte) error { _, err := d.Write(chunk); return err }
	return j
}

func (j *journaled) bend() *bent {
	b := *j.next
	b.leaderIn = func(l *leader, in *synccore.Input) bool {
		if j.next.leaderIn != nil && !j.next.leaderIn(l, in) {
			return false
		}
		j.before(l, in)
		return true
	}
	b.leaderOut = func(l *leader, in *synccore.Input, out *synccore.Output) {
		j.after(out)
		if j.next.leaderOut != nil {
			j.next.leaderOut(l, in, out)
		}
	}
	b.term = func(life uint64) uint64 {
		j.judge(true)
		j.disk = nil
		if j.next.term != nil {
			return j.next.term(life)
		}
		return life
	}
	return &b
}

// begin opens the file of a life.
func (j *journaled) begin(l *leader) {
	j.t, j.term = l.t, l.term
	j.disk = &disk{dice: j.dice, room: 1 << 30}
	if j.dice.IntN(3) == 0 {
		j.disk.room = j.dice.IntN(100_000)
	}
	j.waiting, j.ends, j.bytes, j.ended, j.digest = nil, nil, 0, false, journal.Digest{}
	opt := synccore.Options{Term: l.term}
	if !l.on.shared {
		opt.Timeline = "true"
	}
	h := journal.NewHeader(l.t.level, opt)
	j.add(journal.AppendHeader(nil, &h))
}

func (j *journaled) before(l *leader, in *synccore.Input) {
	if j.disk == nil {
		j.begin(l)
	}
	var err error
	if j.line, err = journal.AppendInput(j.line[:0], l.t.level.State, l.on.Mono(), in); err != nil {
		panic("sim: " + err.Error())
	}
}

func (j *journaled) after(out *synccore.Output) {
	if out.Ignored {
		return
	}
	j.digest.Add(out)
	j.add(journal.AppendOutput(j.line, &j.digest))
	switch j.dice.IntN(20) {
	case 0:
		j.flush()
	case 1:
		j.flush()
		j.sync()
	}
}

func (j *journaled) add(line []byte) {
	if j.ended {
		return
	}
	j.waiting = append(j.waiting, line...)
	j.bytes += len(line)
	j.ends = append(j.ends, j.bytes)
}

func (j *journaled) flush() {
	if j.ended || len(j.waiting) == 0 {
		return
	}
	if err := j.writes(j.disk, j.waiting); err != nil {
		j.ended = true
		j.Full++
	}
	j.waiting = j.waiting[:0]
}

func (j *journaled) sync() {
	j.disk.bad = j.disk.bad || j.dice.IntN(200) == 0
	if err := j.disk.Sync(); err != nil && !j.ended {
		j.ended = true
		j.Unsynced++
	}
}

// judge reads what a life has left: a prefix of what the machine did, with all that was
// synced, and a machine that takes it makes the same of it.
func (j *journaled) judge(crashed bool) {
	if j.disk == nil {
		return
	}
	left := j.disk.data
	if crashed {
		left = j.disk.left()
	}
	j.Lives++
	breach := func(format string, args ...any) {
		j.t.addBreach('J', "the journal of term %d: "+format, append([]any{j.term}, args...)...)
	}
	certain := 0 // lines
	for certain < len(j.ends) && j.ends[certain] <= j.disk.synced {
		certain++
	}
	r, err := journal.Read(bytes.NewReader(left))
	if err != nil {
		if j.Headless++; certain > 0 {
			breach("%v", err)
		}
		return
	}
	core := synccore.New(r.Level, r.Header.Options)
	var (
		digest journal.Digest
		record journal.Record
		out    synccore.Output
	)
	for {
		if err = r.Next(&record); err != nil {
			break
		}
		if j.replays != nil {
			j.replays(&record.Input)
		}
		core.Step(record.Now, &record.Input, &out)
		if digest.Add(&out); digest.Sum() != record.Out {
			breach("input %d came to something else when it was read again", r.Inputs)
			return
		}
		j.Records++
	}
	if r.Cut {
		j.Torn++
	}
	if !errors.Is(err, io.EOF) {
		breach("%v", err)
	}
	if got := int(r.Inputs) + 1; got < certain || got > len(j.ends) { //nolint:gosec // Few.
		breach("%d lines are left, %d of %d were synced", got, certain, len(j.ends))
	}
}

// journaledTrial is a trial with a journal, judged to its end.
func journaledTrial(spec trialSpec, change func(*journaled)) (*trial, *journaled) {
	j := newJournaled(spec.seed, &bent{})
	if change != nil {
		change(j)
	}
	spec.bend = j.bend
	one := newTrial(spec)
	one.runTrial()
	if len(one.breaches) == 0 {
		j.flush()
		j.judge(false)
	}
	return one, j
}

// TestFiles: the file of a journal is full, is torn by a crash, and cannot be synced, while
// there are all other faults. The rest of it is a prefix that can be stepped again.
func TestFiles(t *testing.T) {
	var sum filed
	for seed := range uint64(100) {
		spec := trialOf(t, AllFaults, time.Second)
		spec.seed = seed + 1
		one, j := journaledTrial(spec, nil)
		for _, b := range one.breaches {
			t.Fatalf("trial %d: %c %s", seed+1, b.judge, b.text)
		}
		sum.Lives += j.Lives
		sum.Torn += j.Torn
		sum.Full += j.Full
		sum.Unsynced += j.Unsynced
		sum.Headless += j.Headless
		sum.Records += j.Records
	}
	t.Logf("%+v", sum)
	if sum.Torn == 0 || sum.Full == 0 || sum.Unsynced == 0 || sum.Headless == 0 || sum.Records < 10_000 {
		t.Errorf("something has not happened: %+v", sum)
	}
}

// TestFileMutants: a shell that writes a journal in another way is noticed, and so is a machine
// that misreads it.
func TestFileMutants(t *testing.T) {
	for name, change := range map[string]func(*journaled){
		"it goes on behind what could not be written": func(j *journaled) {
			j.writes = func(d *disk, chunk []byte) error {
				if _, err := d.Write(chunk); err != nil {
					d.room = 1 << 30 // There is room again.
				}
				return nil
			}
		},
		"a chunk is lost": func(j *journaled) {
			n := 0
			j.writes = func(d *disk, chunk []byte) error {
				if n++; n == 3 {
					return nil
				}
				_, err := d.Write(chunk)
				return err
			}
		},
		"a line is written twice": func(j *journaled) {
			n := 0
			j.writes = func(d *disk, chunk []byte) error {
				if n++; n == 3 {
					lines := strings.SplitAfter(string(chunk), "\n")
					chunk = []byte(lines[0] + string(chunk))
				}
				_, err := d.Write(chunk)
				return err
			}
		},
		"what is synced is not": func(j *journaled) {
			j.writes = func(d *disk, chunk []byte) error {
				_, err := d.Write(chunk)
				if d.synced > 2000 {
					d.data = d.data[:d.synced-1000] // Of which a part is gone.
				}
				return err
			}
		},
		"another time is read": func(j *journaled) {
			j.replays = func(in *synccore.Input) {
				if in.Kind == synccore.InBatch {
					in.Batch.Evidence.At.Mono = in.Batch.Evidence.At.Mono.Add(time.Millisecond)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(64) {
				spec := trialOf(t, AllFaults, time.Second)
				spec.seed = seed + 1
				one, _ := journaledTrial(spec, change)
				for _, b := range one.breaches {
					if b.judge != 'J' {
						t.Fatalf("another judge: %c %s", b.judge, b.text)
					}
					t.Logf("trial %d: %.150s", seed+1, b.text)
					return
				}
			}
			t.Error("it outlives 64 trials")
		})
	}
}

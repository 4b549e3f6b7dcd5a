package work

import (
	"context"
	"errors"
	"slices"

	"github.com/gopegasus/pegasus/internal/datacore"
	"github.com/gopegasus/pegasus/internal/worklog"
)

// streamPeer is the stream of a space among those that hold data, with store: jetstream. No member has such a name.
var streamPeer = datacore.Peer{Name: "\x00stream", Life: 1}

// dataStream has the stream of a space answer the machine of the data as a member does that has written all data. The lock
// of the space guards it.
type dataStream struct {
	space   *Space
	phase   uint64 // of the data: behind the last one in which no task was left
	upto    uint64 // how many names it has announced in this phase
	told    map[string]bool
	damaged map[string]bool  // names that a warning was given of
	asked   []streamQuestion // that wait, each once: so at most what the machine can ask for
	kick    chan struct{}    // capacity 1
	fault   string           // why a question has no answer; empty: it has
}

// streamQuestion identifies a message of the machine.
type streamQuestion struct {
	kind      datacore.Kind // 0: announce what the stream has
	name      string
	at, count int
	number    uint64 // of the round of an Ask, or up to which sequence a Have goes
}

func newDataStream(s *Space) *dataStream {
	return &dataStream{space: s, phase: s.logs.valid + 1, told: map[string]bool{}, damaged: map[string]bool{}, kick: make(chan struct{}, 1)}
}

// takeMessages takes messages of the machine that are for the stream. The lock is held.
func (d *dataStream) takeMessages(m *datacore.Message) {
	q := streamQuestion{m.Kind, m.Name, m.At, m.Count, max(m.Round, m.Upto)}
	if m.Kind == datacore.Heard {
		return
	}
	d.asked = slices.DeleteFunc(d.asked, func(o streamQuestion) bool {
		return o == q || o.kind == q.kind && (q.kind == datacore.Ask || q.kind == datacore.Have)
	})
	d.asked = append(d.asked, q)
	wake(d.kick)
}

// announceNames has the names announced that the stream has. The lock is held.
func (d *dataStream) announceNames() { d.takeMessages(&datacore.Message{}) }

// endPhase forgets the data of a phase. The lock is held.
func (d *dataStream) endPhase(phase uint64) {
	d.phase, d.upto, d.asked = phase, 0, nil
	clear(d.told)
	clear(d.damaged)
	d.announceNames()
}

// answerLoop answers one question after the other. The machine asks again for what has no answer.
func (d *dataStream) answerLoop(ctx context.Context) {
	removed := uint64(0) // The data of the phases before are removed.
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		}
		for ctx.Err() == nil {
			q, phase, first, ok := d.next()
			if !ok {
				break
			}
			var err error
			if q.kind == 0 && first && removed < phase {
				if err = d.space.logs.log.RemoveData(ctx, phase); err == nil {
					removed = phase
				}
			}
			var answers []datacore.Message
			if err == nil {
				answers, err = d.answer(ctx, phase, &q)
			}
			if d.space.logs.noteFailure(ctx, &d.fault, err) {
				d.space.log.Warn("the stream does not answer for data; it is asked again", "error", err)
			}
			if err != nil {
				sleep(ctx, retryPause)
				if q.kind != 0 {
					continue
				}
			}
			d.deliver(phase, &q, answers, err != nil)
		}
	}
}

func (d *dataStream) next() (q streamQuestion, phase uint64, first, ok bool) {
	d.space.mu.Lock()
	defer d.space.mu.Unlock()
	if len(d.asked) == 0 || d.space.err != nil {
		return q, 0, false, false
	}
	q = d.asked[0]
	d.asked = d.asked[1:]
	return q, d.phase, d.space.isFirst(), true
}

// deliver hands answers to the machine, unless their phase is over.
func (d *dataStream) deliver(phase uint64, q *streamQuestion, answers []datacore.Message, again bool) {
	s := d.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || d.phase != phase {
		return
	}
	if again {
		d.takeMessages(&datacore.Message{Kind: q.kind})
	}
	for i := range answers {
		a := &answers[i]
		if a.Kind == datacore.Have {
			a.After = d.upto
			d.upto += uint64(len(a.Entries))
			a.Upto = d.upto
			for k := range a.Entries {
				d.told[a.Entries[k].Name] = true
			}
		}
		if a.Kind == datacore.Answer {
			a.Turns = d.upto
			d.asked = slices.DeleteFunc(d.asked, func(o streamQuestion) bool {
				if o.kind == datacore.Ask { // The stream was slower than the machine is patient.
					a.Round = o.number
				}
				return o.kind == datacore.Ask
			})
		}
		a.Life, a.Phase = streamPeer.Life, phase
		s.data.machine.Take(s.link.Now(), streamPeer.Name, a, &s.data.out)
		if s.carryData(); s.err != nil {
			return
		}
	}
	s.tell(s.link.Now())
}

// answer asks the stream.
func (d *dataStream) answer(ctx context.Context, phase uint64, q *streamQuestion) (answers []datacore.Message, err error) {
	log := d.space.logs.log
	switch q.kind {
	case datacore.Have:
		return []datacore.Message{{Kind: datacore.Heard, Upto: q.number}}, nil
	case datacore.Find:
		e := datacore.Entry{Name: q.name}
		have, whole, err := d.find(ctx, phase, q.name)
		if err == nil && whole {
			e = entryOf(q.name, &have)
		}
		return []datacore.Message{{Kind: datacore.Found, Entries: []datacore.Entry{e}}}, err
	case datacore.Want:
		for i := range q.count {
			part, found, err := log.ReadPart(ctx, phase, q.name, q.at/worklog.PartBytes+i)
			if err != nil {
				return nil, err
			}
			if !found || len(part) > worklog.PartBytes {
				return append(answers, datacore.Message{Kind: datacore.Gone, Name: q.name}), nil
			}
			answers = append(answers, datacore.Message{Kind: datacore.Piece, Name: q.name, At: q.at + i*worklog.PartBytes, Data: part})
		}
		return answers, nil
	default: // 0 and Ask; the machine asks the others of members alone.
	}
	news, err := d.unannounced(ctx, phase)
	if err != nil {
		return nil, err
	}
	if len(news) > 0 {
		answers = append(answers, datacore.Message{Kind: datacore.Have, Entries: news})
	}
	if q.kind == datacore.Ask {
		answers = append(answers, datacore.Message{Kind: datacore.Answer, Round: q.number, Rests: true})
	}
	return answers, nil
}

// unannounced are the data that the stream has whole and that it has not announced.
func (d *dataStream) unannounced(ctx context.Context, phase uint64) (list []datacore.Entry, err error) {
	names, err := d.space.logs.log.ListData(ctx, phase)
	for _, name := range names {
		if d.isTold(name) {
			continue
		}
		have, whole, err := d.find(ctx, phase, name)
		if err != nil {
			return nil, err
		}
		if whole && have.Size <= datacore.MaxSize {
			list = append(list, entryOf(name, &have))
		}
	}
	return list, err
}

// find returns what the stream has under a name. Damaged data count as not there, with one warning.
func (d *dataStream) find(ctx context.Context, phase uint64, name string) (have worklog.Data, whole bool, err error) {
	have, whole, err = d.space.logs.log.FindData(ctx, phase, name)
	if !errors.Is(err, worklog.ErrDamaged) {
		return have, whole, err
	}
	d.space.mu.Lock()
	defer d.space.mu.Unlock()
	if !d.damaged[name] {
		d.damaged[name] = true
		d.space.log.Warn("data of the stream are damaged, and count as not written", "data", name, "error", err)
	}
	return worklog.Data{}, false, nil
}

func (d *dataStream) isTold(name string) bool {
	d.space.mu.Lock()
	defer d.space.mu.Unlock()
	return d.told[name]
}

func entryOf(name string, d *worklog.Data) datacore.Entry {
	return datacore.Entry{Name: name, State: datacore.Wrote, Size: d.Size, Digest: d.Digest}
}

package ablation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// span is a state that a member truly had, by the clock of all.
type span struct {
	from, to clocksync.Instant
	alive    clocksync.Instant // the last sign of it
	seq      uint64
	ended    bool // it is no state but the end of one
	row      []scgs.Value
	synccore.Reading
}

// life is an incarnation of a member.
type life struct {
	name        string
	incarnation uint64
	spans       []span // in order
	known       clocksync.Instant
	left        bool
}

// stay is a time in which a load was in a member's state.
type stay struct {
	from, to clocksync.Instant
	life     int
	weight   float64
}

// truth is what all members truly had, as their reports tell it afterwards.
type truth struct {
	lives []life
	loads map[string][]stay // in order of time
	// delay is the least difference between when the synchronizer took something in, by
	// its own clock, and when it was stamped: the offset of the two, and the shortest
	// delay.
	delay   int64
	stamped bool
	reports int
}

var errClocks = errors.New("its members are stamped by several clocks: what was true at an instant is known to the nanosecond only where all run on one host")

// readTruth takes in a whole journal.
func readTruth(r io.Reader) (*truth, *synccore.Journal, error) {
	j, err := synccore.ReadJournal(r)
	if err != nil {
		return nil, nil, err
	}
	reader := j.Plan.Reader()
	t := &truth{loads: map[string][]stay{}}
	domain := clocksync.Domain("")
	var rec synccore.Record
	for {
		if err := j.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if rec.Input.Kind == synccore.InPlan {
			return nil, nil, fmt.Errorf("line %d: the configuration was changed: record a run of one", j.Line())
		}
		b := rec.Input.Batch
		if rec.Input.Kind != synccore.InBatch || rec.Input.Group != "" {
			continue
		}
		for i := range b.Reports {
			if domain == "" {
				domain = b.Reports[i].At.Domain
			}
			if b.Reports[i].At.Domain != domain {
				return nil, nil, errClocks
			}
		}
		t.batch(rec.Now, b, reader)
	}
	t.close()
	return t, j, nil
}

func (t *truth) life(name string, incarnation uint64) *life {
	i := slices.IndexFunc(t.lives, func(l life) bool { return l.name == name && l.incarnation == incarnation })
	if i < 0 {
		i = len(t.lives)
		t.lives = append(t.lives, life{name: name, incarnation: incarnation, known: clocksync.MinInstant})
	}
	return &t.lives[i]
}

// batch takes in what a member says. Reports that come again, or late, find their
// place.
func (t *truth) batch(now clocksync.Instant, b *wire.Batch, reader *synccore.Reader) {
	l := t.life(b.Member, b.Incarnation)
	note := func(at clocksync.Instant) {
		l.known = max(l.known, at)
		if delay := int64(now.Sub(at)); !t.stamped || delay < t.delay {
			t.delay, t.stamped = delay, true
		}
	}
	for i := range b.Reports {
		r := &b.Reports[i]
		note(r.At.Mono)
		at := sort.Search(len(l.spans), func(k int) bool { return l.spans[k].seq >= r.Seq })
		if at < len(l.spans) && l.spans[at].seq == r.Seq {
			continue
		}
		one := span{from: r.At.Mono, alive: r.At.Mono, seq: r.Seq}
		if r.End {
			one.ended = true
		} else {
			one.row = slices.Clone(r.Row)
			one.Reading = reader.Read(b.Member, r.Row)
		}
		l.spans = slices.Insert(l.spans, at, one)
		t.reports++
	}
	if b.Evidence.Seq > 0 {
		note(b.Evidence.At.Mono)
		if s := l.span(b.Evidence.Seq); s != nil {
			s.alive = max(s.alive, b.Evidence.At.Mono)
		}
	}
	l.left = l.left || b.Leaving
}

// close ends each state where the next begins, and finds where each load was.
func (t *truth) close() {
	for i := range t.lives {
		l := &t.lives[i]
		for k := range l.spans {
			s := &l.spans[k]
			s.to = clocksync.MaxInstant // No end of it is known.
			if l.left {
				s.to = l.known + 1
			}
			if k+1 < len(l.spans) {
				s.to = l.spans[k+1].from
				if l.spans[k+1].seq != s.seq+1 {
					s.to = s.alive + 1 // Of what was lost nothing is known.
				}
			}
			for n, name := range s.Loads {
				list := t.loads[name]
				if last := len(list) - 1; last >= 0 && list[last].life == i && list[last].to == s.from {
					list[last].to = s.to
					continue
				}
				t.loads[name] = append(list, stay{s.from, s.to, i, s.Weights[n]})
			}
		}
	}
	for _, list := range t.loads {
		slices.SortStableFunc(list, func(a, b stay) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.life, b.life))
		})
	}
}

// at is the state of a member at an instant, nil if it had none.
func (t *truth) at(name string, now clocksync.Instant) *span {
	for i := range t.lives {
		l := &t.lives[i]
		if l.name != name {
			continue
		}
		k := sort.Search(len(l.spans), func(k int) bool { return l.spans[k].from > now }) - 1
		if k >= 0 && now < l.spans[k].to && !l.spans[k].ended {
			return &l.spans[k]
		}
	}
	return nil
}

// state is the state of a member by its number.
func (t *truth) state(name string, incarnation, seq uint64) *span {
	return t.life(name, incarnation).span(seq)
}

func (l *life) span(seq uint64) *span {
	k := sort.Search(len(l.spans), func(k int) bool { return l.spans[k].seq >= seq })
	if k < len(l.spans) && l.spans[k].seq == seq {
		return &l.spans[k]
	}
	return nil
}

// where is who had a load at an instant; if nobody had, under is who has it next, after
// another has had it: it was under way. Both are empty for one that was begun.
func (t *truth) where(load string, now clocksync.Instant) (on, under string, weight float64) {
	before := -1
	for _, s := range t.loads[load] {
		switch {
		case s.to <= now:
			before = s.life
			continue
		case s.from <= now:
			return t.lives[s.life].name, "", s.weight
		case before >= 0 && s.life != before:
			return "", t.lives[s.life].name, s.weight
		}
		return "", "", 0
	}
	return "", "", 0
}

// queues are the true seconds of work of each member at an instant, with what is on
// its way there: sent and not received, or ordered by one of the moves.
func (t *truth) queues(now clocksync.Instant, ordered map[string]string) (queues map[string]float64, work bool) {
	queues = map[string]float64{}
	speed := func(name string) float64 {
		if s := t.at(name, now); s != nil {
			return s.Node.Power * s.Node.Share
		}
		return 0
	}
	for i := range t.lives {
		if s := t.at(t.lives[i].name, now); s != nil {
			queues[t.lives[i].name] = 0
		}
	}
	for name := range queues {
		s := t.at(name, now)
		if s.Rest > 0 {
			queues[name], work = queues[name]+s.Rest/speed(name), true
		}
	}
	for _, load := range t.names() {
		on, under, weight := t.where(load, now)
		to := on + under
		if to == "" {
			continue
		}
		work = true
		if next, ok := ordered[load]; ok && on != "" {
			to = next
		}
		if _, here := queues[to]; here {
			queues[to] += weight / speed(to)
		}
	}
	return queues, work
}

// names are all loads in order, so that sums are the same each time.
func (t *truth) names() []string {
	names := make([]string, 0, len(t.loads))
	for name := range t.loads {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

package journal

import (
	"encoding/json"
	"math"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// maxNames bounds the texts that a reader keeps in order not to allocate them again.
const maxNames = 4096

// quickLine decodes ticks and batches as [AppendInput] writes them: keys in that order, no spaces, texts without escapes.
// It decodes nothing else, and leaves every other line to encoding/json. What it decodes holds until the next call.
type quickLine struct {
	line    journalLine
	batch   batchLine
	now     clocksync.Instant
	out     string
	reports []reportLine
	regions []wire.Region
	ends    []clocksync.Instant // of stamps
	at      []*clocksync.Instant
	values  []json.RawMessage
	names   map[string]string

	evidence evidenceLine
	text     []byte // the rest of the line
}

// decode returns nil for a line that it does not know.
func (q *quickLine) decode(text []byte) *journalLine {
	if len(text) > math.MaxUint16 { // Values of such a length are rare, and the buffers stay small.
		return nil
	}
	q.text, q.line = text, journalLine{}
	q.reports, q.regions, q.ends, q.at, q.values = q.reports[:0], q.regions[:0], q.ends[:0], q.at[:0], q.values[:0]
	l := &q.line
	if !q.skip(`{"now":`) || !q.instant(&q.now) {
		return nil
	}
	l.Now = &q.now
	l.More = q.skip(`,"more":true`)
	if q.skip(`,"from":`) && !q.name(&l.From) || q.skip(`,"group":`) && !q.name(&l.Group) || q.skip(`,"by":`) && !q.name(&l.By) ||
		q.skip(`,"reached":`) && !q.instant(&l.Reached) {
		return nil
	}
	switch l.Watched = q.skip(`,"watched":true`); {
	case q.skip(`,"tick":true`):
		l.Tick = true
	case q.skip(`,"batch":`):
		if !q.readBatch() {
			return nil
		}
		l.Batch = &q.batch
	default:
		return nil
	}
	if q.skip(`,"out":`) {
		out, ok := q.plain()
		if !ok {
			return nil
		}
		q.out = string(out)
		l.Out = &q.out
	}
	if !q.skip(`}`) || len(q.text) > 0 {
		return nil
	}
	return l
}

func (q *quickLine) readBatch() bool {
	b := &q.batch
	*b = batchLine{}
	if !q.skip(`{"member":`) || !q.name(&b.Member) || !q.skip(`,"incarnation":`) || !q.number(&b.Incarnation) ||
		q.skip(`,"domain":`) && !q.name((*string)(&b.Domain)) {
		return false
	}
	b.Again = q.skip(`,"again":true`)
	b.Leaving = q.skip(`,"leaving":true`)
	if q.skip(`,"reports":[`) {
		for more := true; more; more = q.skip(`,`) {
			q.reports = append(q.reports, reportLine{})
			if !q.readReport(&q.reports[len(q.reports)-1]) {
				return false
			}
		}
		if !q.skip(`]`) {
			return false
		}
		b.Reports = q.reports
	}
	if q.skip(`,"regions":[`) {
		for more := true; more; more = q.skip(`,`) {
			var r wire.Region
			if !q.skip(`{"name":`) || !q.name(&r.Name) || !q.skip(`,"entry":`) || !q.number(&r.Entry) || !q.skip(`,"since":`) || !q.number(&r.Since) || !q.skip(`}`) {
				return false
			}
			q.regions = append(q.regions, r)
		}
		if !q.skip(`]`) {
			return false
		}
		b.Regions = q.regions
	}
	if q.skip(`,"evidence":{"seq":`) {
		if b.Evidence = &q.evidence; !q.number(&q.evidence.Seq) || !q.stamp(&q.evidence.At) || !q.skip(`}`) {
			return false
		}
	}
	return q.skip(`}`)
}

func (q *quickLine) readReport(r *reportLine) bool {
	if !q.skip(`{"seq":`) || !q.number(&r.Seq) || !q.stamp(&r.At) {
		return false
	}
	if r.End = q.skip(`,"end":true`); r.End {
		return q.skip(`}`)
	}
	if !q.skip(`,"state":[`) {
		return false
	}
	first := len(q.values)
	for more := true; more; more = q.skip(`,`) {
		before := q.text
		if !q.value() {
			return false
		}
		n := len(before) - len(q.text)
		q.values = append(q.values, before[:n:n])
	}
	r.State = q.values[first:len(q.values):len(q.values)]
	return q.skip(`]}`)
}

func (q *quickLine) stamp(list *[]*clocksync.Instant) bool {
	if !q.skip(`,"at":[`) {
		return false
	}
	first := len(q.at)
	for more := true; more; more = q.skip(`,`) {
		if q.skip(`null`) {
			q.at = append(q.at, nil)
			continue
		}
		var t clocksync.Instant
		if !q.instant(&t) {
			return false
		}
		q.ends = append(q.ends, t) // If it moves, the pointers into its former place stay good.
		q.at = append(q.at, &q.ends[len(q.ends)-1])
	}
	*list = q.at[first:len(q.at):len(q.at)]
	return q.skip(`]`)
}

func (q *quickLine) skip(word string) bool {
	if len(q.text) < len(word) || string(q.text[:len(word)]) != word {
		return false
	}
	q.text = q.text[len(word):]
	return true
}

// plain reads a text without escapes and of ASCII alone.
func (q *quickLine) plain() ([]byte, bool) {
	if len(q.text) == 0 || q.text[0] != '"' {
		return nil, false
	}
	for i, b := range q.text[1:] {
		switch {
		case b == '"':
			text := q.text[1 : 1+i]
			q.text = q.text[i+2:]
			return text, true
		case b < ' ' || b == '\\' || b >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

func (q *quickLine) name(s *string) bool {
	text, ok := q.plain()
	if ok {
		*s = q.keep(text)
	}
	return ok
}

// keep returns the text as a string, the same one each time.
func (q *quickLine) keep(text []byte) string {
	s, there := q.names[string(text)]
	if !there {
		s = string(text)
		if q.names == nil {
			q.names = map[string]string{}
		}
		if len(q.names) < maxNames {
			q.names[s] = s
		}
	}
	return s
}

// number reads digits without a leading zero.
func (q *quickLine) number(n *uint64) bool {
	i := 0
	var sum uint64
	for ; i < len(q.text) && isDigit(q.text[i]); i++ {
		d := uint64(q.text[i] - '0')
		if sum > (math.MaxUint64-d)/10 || i == 1 && sum == 0 {
			return false
		}
		sum = 10*sum + d
	}
	*n, q.text = sum, q.text[i:]
	return i > 0
}

func (q *quickLine) instant(t *clocksync.Instant) bool {
	minus := q.skip(`-`)
	var n uint64
	if !q.number(&n) || n > math.MaxInt64 {
		return false
	}
	if *t = clocksync.Instant(n); minus { //nolint:gosec // It was compared.
		*t = -*t
	}
	return true
}

// value passes a number, a text, true, false, null, or a list of these.
func (q *quickLine) value() bool {
	if !q.skip(`[`) {
		return q.scalar()
	}
	if q.skip(`]`) {
		return true
	}
	for more := true; more; more = q.skip(`,`) {
		if !q.scalar() {
			return false
		}
	}
	return q.skip(`]`)
}

func (q *quickLine) scalar() bool {
	switch {
	case len(q.text) == 0:
		return false
	case q.text[0] == '"':
		_, ok := q.plain()
		return ok
	case q.skip(`true`), q.skip(`false`), q.skip(`null`):
		return true
	}
	_ = q.skip(`-`)
	if zero := q.skip(`0`); !zero && q.digits() == 0 {
		return false
	}
	if q.skip(`.`) && q.digits() == 0 {
		return false
	}
	if q.skip(`e`) || q.skip(`E`) {
		_ = q.skip(`+`) || q.skip(`-`)
		return q.digits() > 0
	}
	return true
}

// digits passes digits, and returns their number.
func (q *quickLine) digits() int {
	i := 0
	for i < len(q.text) && isDigit(q.text[i]) {
		i++
	}
	q.text = q.text[i:]
	return i
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

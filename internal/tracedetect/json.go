package tracedetect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
)

// JSON writes states as lines of JSON.
type JSON struct {
	runs  bool
	names [][]byte // of the participants, in quotes
}

// NewJSON returns a JSON for what a Core of these options emits.
func NewJSON(o *Options) *JSON {
	j := &JSON{runs: o.runs()}
	for _, p := range o.Participants {
		j.names = append(j.names, quote(p.Name))
	}
	return j
}

func quote(name string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(name); err != nil {
		panic(fmt.Sprintf("tracedetect: name %q: %v", name, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Append appends a state as one line.
func (j *JSON) Append(dst []byte, s *State) []byte {
	dst = append(dst, `{"members":{`...)
	for i := range s.Parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, j.names[s.Parts[i].Member]...)
		dst = append(dst, ':')
		dst = j.part(dst, &s.Parts[i])
	}
	dst = append(dst, `},"open":[`...)
	comma := false
	for i := range s.Parts {
		if !s.Parts[i].Open {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(dst, j.names[s.Parts[i].Member]...)
	}
	dst = append(dst, `],"core":`...)
	if s.HasCore {
		dst = pair(dst, s.Core)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"envelope":`...)
	dst = pair(dst, s.Envelope)
	if s.Epoch > 0 {
		dst = strconv.AppendUint(append(dst, `,"epoch":`...), s.Epoch, 10)
	}
	if s.Grows {
		dst = append(dst, `,"grows":true`...)
	}
	return append(dst, '}', '\n')
}

// part appends a number, or the first and last of a run; in an object if it is
// not of the first incarnation.
func (j *JSON) part(dst []byte, p *Part) []byte {
	if p.Incarnation > 1 {
		dst = append(dst, `{"seq":`...)
	}
	switch {
	case !j.runs:
		dst = strconv.AppendUint(dst, p.First, 10)
	case p.Open:
		dst = strconv.AppendUint(append(dst, '['), p.First, 10)
		dst = append(dst, ",null]"...)
	default:
		dst = strconv.AppendUint(append(dst, '['), p.First, 10)
		dst = strconv.AppendUint(append(dst, ','), p.Last, 10)
		dst = append(dst, ']')
	}
	if p.Incarnation > 1 {
		dst = strconv.AppendUint(append(dst, `,"incarnation":`...), p.Incarnation, 10)
		dst = append(dst, '}')
	}
	return dst
}

// pair appends an interval; an infinite end is null.
func pair(dst []byte, i clocksync.Interval) []byte {
	dst = instant(append(dst, '['), i.Earliest)
	dst = instant(append(dst, ','), i.Latest)
	return append(dst, ']')
}

func instant(dst []byte, t clocksync.Instant) []byte {
	if !t.Finite() {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(t), 10)
}

package synchronizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

const (
	// streamPiece is how many bytes of lines a message of the stream has at most, so that it
	// is no longer than any other.
	streamPiece = wire.MaxFrameBytes - streamHeadBytes
	// sumEvery is how often the lines come with the sum of the core.
	sumEvery = beatEvery
	// attachPause is the least time between two standbys that attach, as each costs a look
	// at every member.
	attachPause = time.Second
	// maxRetold bounds the state that a standby receives when it attaches.
	maxRetold = 64 << 20
)

// The kinds of messages of the stream.
const (
	streamLines = iota + 1 // inputs of the core; numbered
	streamPart             // of the state that a standby receives when it attaches, in order of Index
	streamLast             // the last of these; the stream continues after Number
)

// streamHead begins a message of the stream: what it has behind it are bytes of the lines
// of a journal, cut anywhere.
type streamHead struct {
	kind   byte
	nonce  uint64 // of whoever leads
	number uint64
	index  uint64
	sum    uint64 // of the core after the last line; 0: not told
}

const streamHeadBytes = 1 + 4*8

func (h *streamHead) append(dst []byte) []byte {
	dst = append(dst, h.kind)
	for _, n := range [...]uint64{h.nonce, h.number, h.index, h.sum} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return dst
}

var errStream = errors.New("the message does not belong to the stream of a synchronizer")

func (h *streamHead) read(text []byte) (rest []byte, err error) {
	if len(text) < streamHeadBytes || text[0] < streamLines || text[0] > streamLast {
		return nil, errStream
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(text[1+8*i:]) }
	h.kind, h.nonce, h.number, h.index, h.sum = text[0], at(0), at(1), at(2), at(3)
	return text[streamHeadBytes:], nil
}

// stream tells the inputs of the core to those that stand by, while there are any. What
// cannot be sent is lost: they notice it by the numbers.
type stream struct {
	on       bool
	number   uint64            // of the last message with lines
	lines    []byte            // that wait
	line     []byte            // of the input that is being stepped; empty: it has none
	frame    []byte            // that is sent
	sumAt    clocksync.Instant // when the sum is next told
	records  int               // of the program, sent so far
	attached map[uint64]uint64 // by nonce of those that stand by, the last attachment
	attachAt clocksync.Instant // when the next one may be
}

// serveStandbys tells whoever stands by what it wants to be told, as its beat says.
func (l *loop) serveStandbys(now clocksync.Instant) {
	s, wanted := &l.stream, l.beats.wantedStreams(now)
	if len(wanted) == 0 {
		if s.on {
			s.on, s.attached, s.lines, s.line, s.frame = false, nil, nil, nil, nil
			s.number++ // Parts that were not sent are missing.
		}
		return
	}
	for i := range wanted {
		w := &wanted[i]
		if w.Follows.Attach == s.attached[w.Nonce] || now < s.attachAt {
			continue
		}
		s.attachAt = now.Add(attachPause)
		l.flushStream(now)
		if s.attached == nil || len(s.attached) > maxStandbys {
			s.attached = map[uint64]uint64{}
		}
		s.on, s.attached[w.Nonce] = true, w.Follows.Attach
		l.retell(w)
	}
}

// shortHash is what [Config.Hash] is of the configuration of a level.
func shortHash(level *plan.Level) string { return level.Source.Hash()[:16] }

// configKey tells configurations apart, with the values that override them.
func configKey(level *plan.Level) string {
	text, err := json.Marshal(level.Source)
	if err != nil {
		panic(err) // It has nothing that could not be marshalled.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// retell tells a standby what the core has come to.
func (l *loop) retell(to *beat) {
	var text []byte
	var failed error
	tell := func(in *synccore.Input) {
		if in.Restart != nil {
			in.Restart.Began = l.opt.wall()
		}
		if failed == nil {
			text, failed = journal.AppendInput(text, l.level.State, l.now, in)
			text = journal.AppendBroken(text)
		}
		if failed == nil && len(text) > maxRetold {
			failed = errors.New("the state is larger than a standby accepts")
		}
	}
	if configKey(l.level) != to.Follows.Config {
		tell(&synccore.Input{Kind: synccore.InLevel, Level: l.level})
	}
	l.core.Retell(tell)
	l.stream.records = 0
	if !l.tellProgram(tell) {
		failed = errors.New("the program's history is too long: only its journal can continue it")
	}
	if failed != nil {
		l.opt.Logger.Warn("the state of this process cannot be sent to a standby", telemetry.ClassKey, "stream", "cause", failed)
		return
	}
	h := streamHead{kind: streamPart, nonce: l.nonce, number: l.stream.number}
	subject := l.subjects.Stream(l.name, nonceToken(to.Nonce))
	for len(text) > streamPiece {
		h.index++
		l.publishStream(subject, &h, text[:streamPiece])
		text = text[streamPiece:]
	}
	h.kind, h.sum, h.index = streamLast, l.core.Sum(), h.index+1
	l.publishStream(subject, &h, text)
}

// tellProgram tells the records of the program that were not told yet. It is false if there are
// more than are kept.
func (l *loop) tellProgram(tell func(*synccore.Input)) bool {
	r, whole := l.core.Records(l.stream.records)
	for _, text := range r {
		tell(&synccore.Input{Kind: synccore.InProgram, Record: &synccore.Record{After: l.stream.records, Step: text}})
		l.stream.records++
	}
	return whole
}

func (l *loop) publishStream(subject string, h *streamHead, text []byte) {
	l.stream.frame = append(h.append(l.stream.frame[:0]), text...)
	if l.bus.State() != bus.Connected {
		return
	}
	if err := l.bus.Publish(subject, l.stream.frame); err != nil {
		l.opt.Logger.Debug("not sent", telemetry.ClassKey, "stream", "error", err)
	}
}

// streamBegin makes the line of an input before the core is stepped with it.
func (l *loop) streamBegin(now clocksync.Instant, in *synccore.Input) {
	s := &l.stream
	if s.line = s.line[:0]; !s.on {
		return
	}
	line, err := journal.AppendInput(s.line, l.level.State, now, in)
	if err != nil {
		s.number++ // It is missing.
		return
	}
	s.line = journal.AppendBroken(line)
}

// streamEnd adds the line, and what the core has made of it alone.
func (l *loop) streamEnd(now clocksync.Instant, out *synccore.Output) {
	s := &l.stream
	if !s.on || len(s.line) == 0 || out.Ignored {
		return
	}
	s.lines = append(s.lines, s.line...)
	if len(out.Verdicts)+len(out.Plans) > 0 {
		s.sumAt = now // Whoever follows has to know each decision, or that it does not.
	}
	l.tellProgram(func(in *synccore.Input) {
		if line, err := journal.AppendInput(s.lines, l.level.State, now, in); err == nil {
			s.lines = journal.AppendBroken(line)
		}
	})
	if made := l.core.MadeAlone(out); made != nil {
		if line, err := journal.AppendInput(s.lines, l.level.State, now, &synccore.Input{Kind: synccore.InKept, Kept: made}); err == nil {
			s.lines = journal.AppendBroken(line)
		}
	}
	if len(s.lines) >= streamPiece {
		l.flushStream(now)
	}
}

// flushStream sends the lines that wait.
func (l *loop) flushStream(now clocksync.Instant) {
	s := &l.stream
	if !s.on || len(s.lines) == 0 {
		return
	}
	subject, rest := l.subjects.Stream(l.name, streamAll), s.lines
	for len(rest) > 0 {
		s.number++
		h := streamHead{kind: streamLines, nonce: l.nonce, number: s.number}
		piece := rest[:min(len(rest), streamPiece)]
		if rest = rest[len(piece):]; len(rest) == 0 && now >= s.sumAt {
			h.sum, s.sumAt = l.core.Sum(), now.Add(sumEvery)
		}
		l.publishStream(subject, &h, piece)
	}
	s.lines = s.lines[:0]
}

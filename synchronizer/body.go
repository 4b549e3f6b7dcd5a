package synchronizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// gathered is the part of a single run's body that has arrived so far.
type gathered struct {
	program, run uint64
	bytes        []byte
}

// answerBody answers a request on the data subject: for a piece of an input, or with a piece of a
// run's result.
func (l *loop) answerBody(it *item) {
	if _, leads := l.checkAwake(l.opt.now()); !leads {
		return
	}
	b, ok := l.decodeBody(it.member, it.body.Data, l.opt.now())
	if !ok {
		return
	}
	answer := wire.Body{Member: b.Member, Program: b.Program, Run: b.Run, Kind: b.Kind, Size: b.Size, Offset: b.Offset}
	if b.Kind == wire.BodyInput {
		l.giveInput(&answer)
	} else {
		l.takeBody(&b, &answer)
		l.journal.syncJournal() // The processor forgets a piece when it learns that the piece was taken.
	}
	frame, err := wire.AppendBody(nil, &answer)
	if err == nil {
		err = l.bus.Reply(*it.body, frame)
	}
	l.noteUnsentReply(*it.body, err)
}

// decodeBody refuses a body that names another processor than its subject.
func (l *loop) decodeBody(subject string, frame []byte, at clocksync.Instant) (b wire.Body, ok bool) {
	l.input, l.arrived = synccore.Input{Kind: synccore.InBody}, at
	b, err := wire.DecodeBody(frame)
	if err == nil && b.Member != subject {
		err = fmt.Errorf("a body of %q on the subject of %q", b.Member, subject)
	}
	if err != nil {
		l.rejectMalformed(subject, err)
		return b, false
	}
	l.countFrame()
	return b, true
}

// ofRun asks for the run that a body is of: its input, whether it is one of the
// processor's, and whether what it has come to is there already.
func (l *loop) ofRun(b *wire.Body) (input string, found, handed bool) {
	a := l.askCore(l.now, &synccore.Question{Run: &synccore.RunKey{Processor: b.Member, Program: b.Program, Run: b.Run}})
	return a.Input, a.Found, a.Handed
}

func (l *loop) giveInput(b *wire.Body) {
	input, ok, _ := l.ofRun(b)
	if b.Size = uint64(len(input)); !ok || b.Offset > b.Size {
		b.Offset, b.Reason = 0, fmt.Sprintf("run %d is not one of this processor any more", b.Run)
		l.countBody(wire.BodyInput, bodyRefused, 0)
		return
	}
	rest := input[b.Offset:]
	b.Piece = []byte(rest[:min(len(rest), wire.MaxPiece)])
	if len(b.Piece) == len(rest) {
		l.countBody(wire.BodyInput, bodyTaken, b.Size)
	}
}

// takeBody keeps a piece. The last one makes the body an input of the core.
func (l *loop) takeBody(b, answer *wire.Body) {
	_, ok, handed := l.ofRun(b)
	if !ok && (b.Offset > 0 || uint64(len(b.Piece)) < b.Size) { // Else the core says why, as it may have been given up.
		answer.Reason = fmt.Sprintf("run %d is not one of this processor any more", b.Run)
		l.countBody(b.Kind, bodyRefused, 0)
		return
	}
	g := l.bodies[b.Member]
	if g == nil || g.program != b.Program || g.run != b.Run || b.Offset == 0 {
		g = &gathered{program: b.Program, run: b.Run}
		l.bodies[b.Member] = g
	}
	if b.Offset == uint64(len(g.bytes)) {
		g.bytes = append(g.bytes, b.Piece...)
	}
	answer.Offset = uint64(len(g.bytes))
	if answer.Offset < b.Size {
		return
	}
	delete(l.bodies, b.Member)
	if b.Kind == wire.BodyResult && (!json.Valid(g.bytes) || !utf8.Valid(g.bytes)) {
		b.Kind, g.bytes = wire.BodyFailure, []byte("its result is not JSON")
	}
	fate := bodyTaken
	if handed {
		fate = bodyRepeated
	}
	l.input = synccore.Input{Kind: synccore.InBody, From: b.Member, Body: &plan.Body{
		Program: b.Program, Run: b.Run, Kind: b.Kind, Text: strings.ToValidUTF8(string(g.bytes), "?"),
	}}
	l.stepCore(l.opt.now())
	if answer.Reason = l.output.Refused; answer.Reason != "" {
		fate = bodyRefused
	}
	l.countBody(b.Kind, fate, b.Size)
}

package synchronizer

import (
	"errors"
	"slices"

	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// stepBundle steps the core with each part of a multiplexer's bundle, and last with its evidence.
// No member is probed before that: the bundle may have the missing reports.
func (l *loop) stepBundle(it *item) {
	err := wire.DecodeBundle(it.frame, &l.bundle)
	if err == nil && it.ack {
		err = errors.New("a bundle does not belong on this subject")
	}
	if err != nil {
		l.rejectMalformed(it.member, err)
		return
	}
	b, more := &l.bundle, l.more
	shared := b.Version > 0 || b.Of > 0 && it.group == ""
	l.inside, l.behind = true, true
	l.messages++
	defer func() { l.inside = false }()
	l.more = true
	for i, p := range b.Parts {
		if i == len(b.Parts)-1 && !shared && len(b.Alive) == 0 {
			l.more = more
		}
		part := item{group: it.group, by: it.member, member: p.Member, frame: p.Frame, at: it.at, shed: it.shed}
		switch kind, _ := wire.KindOf(p.Frame); {
		case it.group != "" && (kind == wire.KindBody || kind == wire.KindAck): // For its own synchronizer.
		case kind == wire.KindBody && wire.Multiplexes(it.member, p.Member): // Of a node, whose processors have such names.
			l.brought(&part)
		default:
			part.ack = kind == wire.KindAck
			l.receiveFrame(&part)
		}
	}
	l.more = more && !shared
	if it.group == "" && len(b.Alive) > 0 {
		l.more = more || shared
		l.input = synccore.Input{Kind: synccore.InAlive, From: it.member, Alive: b.Alive}
		l.arrived = it.at
		l.stepCore(l.opt.now())
	}
	if l.more = more; shared {
		l.input = synccore.Input{Kind: synccore.InShared, From: it.member, Group: it.group, Shared: b}
		l.arrived, l.framed = it.at, true
		l.stepCore(l.opt.now())
	}
}

// brought takes what a run has come to, if it came in one piece with the reports. It
// needs no answer: it comes again.
func (l *loop) brought(it *item) {
	b, ok := l.decodeBody(it.member, it.frame, it.at)
	if ok && b.Kind != wire.BodyInput && b.Offset == 0 && uint64(len(b.Piece)) == b.Size {
		l.takeBody(&b, &wire.Body{})
	}
}

// carried are the signals of a single step for the members of a multiplexer.
type carried struct {
	group, multiplexer string
	subject            string // of its signals
	bundle             wire.Bundle
	bytes              []byte
}

// sendAll sends the signals of a step: those for the members of a multiplexer together.
func (l *loop) sendAll(signals []wire.Addressed[wire.Signals]) {
	for i := range l.down {
		d := &l.down[i]
		d.bundle.Parts, d.bytes = d.bundle.Parts[:0], d.bytes[:0]
	}
	used := 0
	for i := range signals {
		a := &signals[i]
		multiplexer := a.Via
		if multiplexer == "" {
			l.sendSignals(a, nil)
			continue
		}
		k := slices.IndexFunc(l.down[:used], func(d carried) bool { return d.multiplexer == multiplexer && d.group == a.Group })
		if k < 0 {
			k = used
			used++
			if k == len(l.down) {
				l.down = append(l.down, carried{})
			}
			l.down[k].group, l.down[k].multiplexer, l.down[k].subject = a.Group, multiplexer, l.signalSubject(a.Group, multiplexer)
		}
		l.sendSignals(a, &l.down[k])
	}
	for i := range l.down[:used] {
		l.sendBundle(&l.down[i])
	}
}

// encloseFrame makes a frame a part of a bundle. It is false if that has to travel alone.
func (l *loop) encloseFrame(to *carried, member string, encode func([]byte) ([]byte, error)) bool {
	from := len(to.bytes)
	frame, err := encode(to.bytes)
	if err != nil || len(frame)-from > wire.MaxPart {
		return false
	}
	to.bytes = frame
	to.bundle.Parts = append(to.bundle.Parts, wire.Part{Member: member, Frame: frame[from:len(frame):len(frame)]})
	return true
}

func (l *loop) sendBundle(d *carried) {
	for rest, failed := d.bundle, false; !rest.Empty() && !failed; {
		l.sendFrame(d.subject, func(dst []byte) (frame []byte, err error) {
			frame, rest, err = wire.AppendBundle(dst, &rest)
			failed = err != nil
			return frame, err
		})
	}
}

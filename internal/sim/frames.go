package sim

import (
	"fmt"

	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// frames are those that are not used any more.
type frames [][]byte

func (f *frames) takeBuffer() []byte {
	if n := len(*f); n > 0 {
		b := (*f)[n-1]
		*f = (*f)[:n-1]
		return b[:0]
	}
	return make([]byte, 0, 256)
}

func (f *frames) freeBuffer(b []byte) {
	if cap(b) <= 4096 {
		*f = append(*f, b)
	}
}

// mustEncode returns a frame that was just encoded: the machines make none that cannot be.
func mustEncode(frame []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("sim: a frame: %v", err))
	}
	return frame
}

// ofMember gives the frames that a member's step has left.
func (f *frames) ofMember(core *agentcore.Core, out *agentcore.Output, put func(frame []byte)) {
	for i := range out.Hellos {
		put(mustEncode(wire.AppendHello(f.takeBuffer(), &out.Hellos[i])))
	}
	for i := range out.Batches {
		for b, n := &out.Batches[i], -1; n != len(b.Reports); {
			if n > 0 {
				b.Reports = b.Reports[n:]
			}
			frame, sent, err := core.Codec().Append(f.takeBuffer(), b)
			n = sent
			put(mustEncode(frame, err))
		}
	}
	for i := range out.Gones {
		put(mustEncode(wire.AppendGone(f.takeBuffer(), &out.Gones[i])))
	}
	for i := range out.Acks {
		for ack := out.Acks[i].Ack; len(ack.Answers) > 0; {
			frame, n, err := wire.AppendAck(f.takeBuffer(), &ack)
			put(mustEncode(frame, err))
			ack.Answers = ack.Answers[n:]
		}
	}
}

// ofSynchronizer gives the frames that a synchronizer's step has left, and whom they are for: empty for all.
func (f *frames) ofSynchronizer(out *synccore.Output, put func(to string, frame []byte)) {
	for i := range out.Welcomes {
		put(out.Welcomes[i].To, mustEncode(wire.AppendWelcome(f.takeBuffer(), &out.Welcomes[i].Msg)))
	}
	for i := range out.Resends {
		put(out.Resends[i].To, mustEncode(wire.AppendResend(f.takeBuffer(), &out.Resends[i].Msg)))
	}
	for i := range out.Probes {
		put(out.Probes[i].To, mustEncode(wire.AppendProbe(f.takeBuffer(), &out.Probes[i].Msg)))
	}
	for i := range out.Signals {
		for s, sent := out.Signals[i].Msg, 0; len(s.Signals)+len(s.Recorded) > 0; s.Signals, s.Recorded = s.Signals[sent:], nil {
			frame, n, err := wire.AppendSignals(f.takeBuffer(), &s)
			sent = n
			put(out.Signals[i].To, mustEncode(frame, err))
		}
	}
}

// toSynchronizer is what a frame of a member is to a synchronizer, by its codec. It panics at
// bytes that are no frame: paths lose frames and do not spoil them.
func toSynchronizer(from string, frame []byte, codec *wire.BatchCodec, batch *wire.Batch) synccore.Input {
	in := synccore.Input{From: from}
	kind, err := wire.KindOf(frame)
	switch kind { //nolint:exhaustive // The others travel the other way.
	case wire.KindHello:
		in.Kind, in.Hello = synccore.InHello, new(wire.Hello)
		*in.Hello, err = wire.DecodeHello(frame)
	case wire.KindBatch:
		in.Kind, in.Batch = synccore.InBatch, batch
		err = codec.Decode(frame, "", batch)
	case wire.KindGone:
		in.Kind, in.Gone = synccore.InGone, new(wire.Gone)
		*in.Gone, err = wire.DecodeGone(frame)
	case wire.KindAck:
		in.Kind, in.Ack = synccore.InAck, new(wire.Ack)
		*in.Ack, err = wire.DecodeAck(frame)
	}
	mustEncode(frame, err)
	return in
}

// toMember is what a frame of a synchronizer is to a member.
func toMember(frame []byte) agentcore.Input {
	var in agentcore.Input
	kind, err := wire.KindOf(frame)
	switch kind { //nolint:exhaustive // The others travel the other way.
	case wire.KindWelcome:
		in.Kind, in.Welcome = agentcore.InWelcome, new(wire.Welcome)
		*in.Welcome, err = wire.DecodeWelcome(frame)
	case wire.KindProbe:
		in.Kind, in.Probe = agentcore.InProbe, new(wire.Probe)
		*in.Probe, err = wire.DecodeProbe(frame)
	case wire.KindResend:
		in.Kind, in.Resend = agentcore.InResend, new(wire.Resend)
		*in.Resend, err = wire.DecodeResend(frame)
	case wire.KindSignals:
		in.Kind, in.Signals = agentcore.InSignals, new(wire.Signals)
		*in.Signals, err = wire.DecodeSignals(frame)
	}
	mustEncode(frame, err)
	return in
}

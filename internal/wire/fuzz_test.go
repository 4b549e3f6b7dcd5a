package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// decoders decode a frame of their kind and, where it is good, encode it again.
var decoders = map[wire.Kind]func(frame []byte) (again []byte, err error){
	wire.KindHello:   again(wire.DecodeHello, wire.AppendHello),
	wire.KindGone:    again(wire.DecodeGone, wire.AppendGone),
	wire.KindWelcome: again(wire.DecodeWelcome, wire.AppendWelcome),
	wire.KindProbe:   again(wire.DecodeProbe, wire.AppendProbe),
	wire.KindPing:    again(wire.DecodePing, wire.AppendPing),
	wire.KindPong:    again(wire.DecodePong, wire.AppendPong),
	wire.KindBody:    again(wire.DecodeBody, wire.AppendBody),
	wire.KindResend:  again(wire.DecodeResend, wire.AppendResend),
	wire.KindAck: again(wire.DecodeAck, func(dst []byte, m *wire.Ack) ([]byte, error) {
		frame, _, err := wire.AppendAck(dst, m)
		return frame, err
	}),
	wire.KindSignals: again(wire.DecodeSignals, func(dst []byte, m *wire.Signals) ([]byte, error) {
		frame, _, err := wire.AppendSignals(dst, m)
		return frame, err
	}),
	wire.KindPeers: again(wire.DecodePeers, func(dst []byte, m *wire.Peers) ([]byte, error) {
		frame, _, err := wire.AppendPeers(dst, m)
		return frame, err
	}),
	wire.KindBundle: again(decodeBundle, func(dst []byte, m *wire.Bundle) ([]byte, error) {
		frame, _, err := wire.AppendBundle(dst, m)
		return frame, err
	}),
	wire.KindBatch: func(frame []byte) ([]byte, error) {
		first, err := batchAgain(small)(frame)
		if errors.Is(err, wire.ErrSchema) {
			return batchAgain(lists)(frame)
		}
		return first, err
	},
}

func decodeBundle(frame []byte) (b wire.Bundle, err error) {
	err = wire.DecodeBundle(frame, &b)
	return b, err
}

func batchAgain(schema scgs.Schema) func(frame []byte) ([]byte, error) {
	codec := wire.NewBatchCodec(schema)
	return again(func(frame []byte) (b wire.Batch, err error) {
		err = codec.Decode(frame, "boot-7", &b)
		return b, err
	}, func(dst []byte, m *wire.Batch) ([]byte, error) {
		frame, _, err := codec.Append(dst, m)
		return frame, err
	})
}

func again[M any](decode func([]byte) (M, error), encode func([]byte, *M) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(frame []byte) ([]byte, error) {
		m, err := decode(frame)
		if err != nil {
			return nil, err
		}
		frame, err = encode(nil, &m)
		if err != nil {
			panic(err) // A decoder took what its encoder refuses.
		}
		return frame, nil
	}
}

// FuzzDecode gives arbitrary bytes to the decoder of every kind. What one takes
// must encode to a frame that says the same: that frame is then a fixed point,
// while a stranger may have chosen longer forms of numbers.
func FuzzDecode(f *testing.F) {
	for _, frame := range goldenFrames(f) {
		f.Add(frame)
	}
	for _, frame := range listFrames(f) {
		f.Add(frame)
	}
	for _, frame := range tracedFrames(f) {
		f.Add(frame)
	}
	for _, frame := range rowFrames(f) {
		f.Add(frame)
	}
	f.Add(numbersFrame(f))
	f.Fuzz(func(t *testing.T, frame []byte) {
		kind, err := wire.KindOf(frame)
		for k, decode := range decoders {
			if k != kind || err != nil {
				if _, err := decode(frame); err == nil {
					t.Fatalf("the decoder of %v takes a frame of %v", k, kind)
				}
			}
		}
		if err != nil {
			return
		}
		first, err := decoders[kind](frame)
		if err != nil {
			return
		}
		second, err := decoders[kind](first)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v: a decoded frame encodes to\n%x, and that to\n%x, %v", kind, first, second, err)
		}
	})
}

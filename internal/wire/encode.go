package wire

// The encoders append one frame to dst. They refuse with a [*FrameError] what a
// decoder would refuse, and then return dst as it was; only the texts for people,
// [Welcome].Reason, [Answer].Detail and [Body].Reason, are truncated to their limit
// instead. None changes the message.

// AppendHello appends the frame of a Hello.
func AppendHello(dst []byte, m *Hello) ([]byte, error) { return encode(dst, KindHello, m.layout) }

// AppendWelcome appends the frame of a Welcome. Whether schema and section fit a
// frame together shows only here: try it when the configuration is loaded.
func AppendWelcome(dst []byte, m *Welcome) ([]byte, error) { return encode(dst, KindWelcome, m.layout) }

// AppendGone appends the frame of a Gone.
func AppendGone(dst []byte, m *Gone) ([]byte, error) { return encode(dst, KindGone, m.layout) }

// AppendProbe appends the frame of a Probe.
func AppendProbe(dst []byte, m *Probe) ([]byte, error) { return encode(dst, KindProbe, m.layout) }

// AppendResend appends the frame of a Resend.
func AppendResend(dst []byte, m *Resend) ([]byte, error) { return encode(dst, KindResend, m.layout) }

// AppendPing appends the frame of a Ping.
func AppendPing(dst []byte, m *Ping) ([]byte, error) { return encode(dst, KindPing, m.layout) }

// AppendPong appends the frame of a Pong.
func AppendPong(dst []byte, m *Pong) ([]byte, error) { return encode(dst, KindPong, m.layout) }

// AppendBody appends the frame of a Body.
func AppendBody(dst []byte, m *Body) ([]byte, error) { return encode(dst, KindBody, m.layout) }

// AppendSignals appends a frame with the first n of the signals, as many as fit:
// at least one if there are any. The rest needs further frames.
func AppendSignals(dst []byte, m *Signals) (frame []byte, n int, err error) {
	frame, err = encode(dst, KindSignals, func(c *coder) { n = m.layout(c) })
	return frame, n, err
}

// AppendAck appends a frame with the first n of the answers, as many as fit: at
// least one if there are any. The rest needs further frames.
func AppendAck(dst []byte, m *Ack) (frame []byte, n int, err error) {
	frame, err = encode(dst, KindAck, func(c *coder) { n = m.layout(c) })
	return frame, n, err
}

// AppendPeers appends a frame with the first n of the peers, as many as fit a bundle: at least
// one if there are any. The rest needs further frames, without the section.
func AppendPeers(dst []byte, m *Peers) (frame []byte, n int, err error) {
	frame, err = encode(dst, KindPeers, func(c *coder) { n = m.layout(c) })
	return frame, n, err
}

func encode(dst []byte, kind Kind, layout func(*coder)) ([]byte, error) {
	c := newWriter(dst, kind)
	layout(&c)
	if err := c.finishFrame(); err != nil {
		return dst, err
	}
	return c.buf, nil
}

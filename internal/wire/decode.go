package wire

// The decoders read one whole frame. What they return shares no memory with it.
// They refuse with a [*FrameError] and then return the zero message; bytes from
// outside never make them panic, nor allocate much more than the frame's size.

// DecodeHello reads the frame of a Hello.
func DecodeHello(frame []byte) (Hello, error) {
	return decode(frame, KindHello, (*Hello).layout)
}

// DecodeWelcome reads the frame of a Welcome.
func DecodeWelcome(frame []byte) (Welcome, error) {
	return decode(frame, KindWelcome, (*Welcome).layout)
}

// DecodeGone reads the frame of a Gone.
func DecodeGone(frame []byte) (Gone, error) {
	return decode(frame, KindGone, (*Gone).layout)
}

// DecodeProbe reads the frame of a Probe.
func DecodeProbe(frame []byte) (Probe, error) {
	return decode(frame, KindProbe, (*Probe).layout)
}

// DecodeResend reads the frame of a Resend.
func DecodeResend(frame []byte) (Resend, error) {
	return decode(frame, KindResend, (*Resend).layout)
}

// DecodePing reads the frame of a Ping.
func DecodePing(frame []byte) (Ping, error) {
	return decode(frame, KindPing, (*Ping).layout)
}

// DecodePong reads the frame of a Pong.
func DecodePong(frame []byte) (Pong, error) {
	return decode(frame, KindPong, (*Pong).layout)
}

// DecodeBody reads the frame of a Body.
func DecodeBody(frame []byte) (Body, error) {
	return decode(frame, KindBody, (*Body).layout)
}

// DecodeSignals reads a frame of Signals.
func DecodeSignals(frame []byte) (Signals, error) {
	return decode(frame, KindSignals, func(m *Signals, c *coder) { m.layout(c) })
}

// DecodeAck reads the frame of an Ack.
func DecodeAck(frame []byte) (Ack, error) {
	return decode(frame, KindAck, func(m *Ack, c *coder) { m.layout(c) })
}

// DecodePeers reads a frame of Peers.
func DecodePeers(frame []byte) (Peers, error) {
	return decode(frame, KindPeers, func(m *Peers, c *coder) { m.layout(c) })
}

func decode[M any](frame []byte, kind Kind, layout func(*M, *coder)) (M, error) {
	var m M
	c := newReader(frame, kind)
	if c.err == nil {
		layout(&m, &c)
	}
	if err := c.finishFrame(); err != nil {
		var zero M
		return zero, err
	}
	return m, nil
}

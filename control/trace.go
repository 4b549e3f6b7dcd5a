package control

// Trace is the W3C trace context of a span: the 16 bytes of the trace's id, the 8 of the
// span's, and one of flags. The zero Trace is none. It is carried unread here.
type Trace [25]byte

// Valid reports whether there is one: W3C forbids ids of zeros alone.
func (t Trace) Valid() bool {
	return [16]byte(t[:16]) != [16]byte{} && [8]byte(t[16:24]) != [8]byte{}
}

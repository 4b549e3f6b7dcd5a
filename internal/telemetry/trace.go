package telemetry

import "go.opentelemetry.io/otel/trace"

// Context is the W3C trace context of a span as it travels: the 16 bytes of the
// trace's id, the 8 of the span's, and one of flags. The trace state does not
// travel.
type Context = [25]byte

// Pack gives the context of a span, the zero Context if the span is not sampled:
// nobody could follow a link to it.
func Pack(sc trace.SpanContext) (c Context) {
	if !sc.IsValid() || !sc.IsSampled() {
		return c
	}
	trace, span := sc.TraceID(), sc.SpanID()
	copy(c[:16], trace[:])
	copy(c[16:24], span[:])
	c[24] = byte(sc.TraceFlags())
	return c
}

// Unpack gives the context of a span elsewhere; it is not valid if c is zero.
func Unpack(c Context) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(c[:16]), SpanID: trace.SpanID(c[16:24]), TraceFlags: trace.TraceFlags(c[24]), Remote: true,
	})
}

package telemetry

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/control"
)

// Pack gives the W3C trace context of a span as it travels, without the trace state. It
// is zero if the span is not sampled: nobody could follow a link to it.
func Pack(sc trace.SpanContext) (c control.Trace) {
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
func Unpack(c control.Trace) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(c[:16]), SpanID: trace.SpanID(c[16:24]), TraceFlags: trace.TraceFlags(c[24]), Remote: true,
	})
}

package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/telemetry"
)

func TestContextSurvivesTheWay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sc := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID:    trace.TraceID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "trace")),
			SpanID:     trace.SpanID(rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(rt, "span")),
			TraceFlags: trace.TraceFlags(rapid.Byte().Draw(rt, "flags")),
			Remote:     true,
		})
		got := telemetry.Unpack(telemetry.Pack(sc))
		switch {
		case sc.IsValid() && sc.IsSampled() && !got.Equal(sc):
			rt.Fatalf("%v became %v", sc, got)
		case (!sc.IsValid() || !sc.IsSampled()) && got.IsValid():
			rt.Fatalf("%v is not to be followed and became %v", sc, got)
		}
	})
}

package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
)

// MemberSpans traces what a member sends and applies. A nil *MemberSpans traces nothing.
type MemberSpans struct {
	tracer trace.Tracer
	base   []attribute.KeyValue
}

// NewMemberSpans returns nil where there is no provider.
func NewMemberSpans(provider trace.TracerProvider, scope, group, member string) *MemberSpans {
	if provider == nil {
		return nil
	}
	return &MemberSpans{provider.Tracer(scope), []attribute.KeyValue{
		attribute.String("pegasus.group", group), attribute.String("pegasus.member", member),
	}}
}

func (s *MemberSpans) with(more ...attribute.KeyValue) trace.SpanStartOption {
	return trace.WithAttributes(append(slices.Clip(s.base), more...)...)
}

// Report opens the span of a batch with new reports and has the batch carry its
// context, if it is sampled. It returns what ends the span.
func (s *MemberSpans) Report(b *wire.Batch) (end func()) {
	if s == nil || b.Again || len(b.Reports) == 0 {
		return func() {}
	}
	_, span := s.tracer.Start(context.Background(), "pegasus.report", trace.WithSpanKind(trace.SpanKindProducer), s.with(
		attribute.Int64("pegasus.first_seq", int64(b.Reports[0].Seq)),               //nolint:gosec // It counts from 1.
		attribute.Int64("pegasus.last_seq", int64(b.Reports[len(b.Reports)-1].Seq)), //nolint:gosec // So does this.
	))
	b.Trace = Pack(span.SpanContext())
	return func() { span.End() }
}

// Apply runs the handler of a signal inside a span that is linked to the decision's.
func (s *MemberSpans) Apply(ctx context.Context, sig *control.Signal, handle func(context.Context) error) error {
	if s == nil {
		return handle(ctx)
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), s.with(
		attribute.String("pegasus.decision", sig.Decision.String()),
		attribute.String("pegasus.predicate", sig.Predicate),
		attribute.String("pegasus.signal", sig.Name),
		attribute.String("pegasus.kind", sig.Kind.String()),
		attribute.String("pegasus.region", sig.Region),
		attribute.String("pegasus.target", sig.Target),
	)}
	if from := Unpack(sig.Trace); from.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	ctx, span := s.tracer.Start(ctx, "pegasus.apply", options...)
	defer span.End()
	err := handle(ctx)
	if err != nil {
		span.SetStatus(codes.Error, "") // The text may be anything.
	}
	return err
}

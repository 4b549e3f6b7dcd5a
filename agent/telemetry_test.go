package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
)

// TestSpansOfThreads follows a decision of the threads' synchronizer, also where a
// cancellation has no handler.
func TestSpansOfThreads(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, twoLevels)
		m := join(t, local, agent.Config{Group: "g", Name: "w", TracerProvider: provider})
		check(t, m.Set(processState{}))
		var canceled sync.WaitGroup
		var threads []*agent.Thread
		for i := range 2 {
			th, err := m.Thread(fmt.Sprint("t", i+1))
			if err != nil {
				t.Fatal(err)
			}
			check(t, th.Set(threadState{"search", 10}))
			entered := make(chan struct{})
			canceled.Go(func() {
				err := th.Region(t.Context(), "search", func(ctx context.Context, _ *agent.Region) error {
					check(t, th.Set(threadState{"search", 9})) // The state that the region is entered in.
					close(entered)
					<-ctx.Done()
					return nil
				})
				if _, ok := errors.AsType[*agent.Canceled](err); !ok {
					t.Errorf("%s: %v", th.Name(), err)
				}
			})
			<-entered
			threads = append(threads, th)
		}
		for _, th := range threads {
			check(t, th.Set(threadState{"idle", 9}))
		}
		canceled.Wait()
	})
	var decision sdktrace.ReadOnlySpan
	var applied []sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		switch s.Name() {
		case "pegasus.decision":
			decision = s
		case "pegasus.apply":
			applied = append(applied, s)
		}
	}
	if decision == nil || len(applied) != 2 {
		t.Fatalf("there are %d spans, %d of applications", len(spans.Ended()), len(applied))
	}
	var members []string
	for _, link := range decision.Links() {
		members = append(members, link.Attributes[0].Value.AsString())
		if link.SpanContext.IsValid() {
			t.Errorf("a report that did not travel has the context %v", link.SpanContext)
		}
	}
	if want := []string{"process", "t1", "t2"}; !slices.Equal(members, want) {
		t.Errorf("the decision is linked to %v, want %v", members, want)
	}
	for _, s := range applied {
		if links := s.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != decision.SpanContext().SpanID() {
			t.Errorf("an application is linked to %v", links)
		}
	}
}

package work_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/work"
)

// silenceOfBench is how long a member of BenchmarkHolderKilled may be silent.
const silenceOfBench = time.Second

const killedConfig = `
synchronizers:
  gsync:
    members: {group: g, min: 1}
    silence: {after: 1s, then: drop}
    work: {}
`

// marks is an object that tells where its messages are served.
type marks struct{ N int }

// BenchmarkHolderKilled kills the process that has an object, and measures how long it takes until the next message to the object is
// served elsewhere, beyond the time after which a silent member is dropped. 250 ms of that may pass until the synchronizer looks for
// silent members.
func BenchmarkHolderKilled(b *testing.B) {
	server := benchServerOf(b, embedded.Options{Open: true}, killedConfig, 1)
	served := make(chan struct{}, 16)
	list := benchSpaces(b, server, []work.Option{
		work.Object("marks", func(context.Context, int) (*marks, error) { return &marks{}, nil }),
		work.On("marks", "touch", func(_ context.Context, m *marks, _ int) error { m.N++; served <- struct{}{}; return nil }),
	})
	go func() { _ = list[0].Serve(b.Context()) }()
	nc, err := nats.Connect(server.URL(), testnats.Options(b, server.URL())...)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	elsewhere, err := nc.SubscribeSync("served")
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		helper := exec.CommandContext(b.Context(), os.Args[0])
		helper.Env = append(os.Environ(), benchHelp+"="+server.URL())
		helper.Stderr = os.Stderr
		if err := helper.Start(); err != nil {
			b.Fatal(err)
		}
		if err := list[0].Create(b.Context(), "marks", i, 0); err != nil {
			b.Fatal(err)
		}
		wait := 10 * time.Millisecond
		for gone := false; !gone; { // Until the object has gone there.
			if list[0].Move("marks", i, "helper") == nil {
				wait = time.Second
				if err := list[0].Send(b.Context(), i, "touch", 0); err != nil {
					b.Fatal(err)
				}
			}
			_, err := elsewhere.NextMsg(wait)
			if gone = err == nil; !gone && b.Context().Err() != nil {
				b.Fatal("the helper has not come")
			}
		}
		for len(served) > 0 {
			<-served
		}
		begun := time.Now()
		if err := helper.Process.Kill(); err != nil {
			b.Fatal(err)
		}
		if err := list[0].Send(b.Context(), i, "touch", 0); err != nil {
			b.Fatal(err)
		}
		<-served
		took = append(took, time.Since(begun)-silenceOfBench)
		_ = helper.Wait() // It was killed.
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "beyond-p50-ms")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "beyond-max-ms")
}

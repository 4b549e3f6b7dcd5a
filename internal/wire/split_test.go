package wire_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// wide lists values of the widest rows there are: as many texts or lists as a schema may
// have, each as long as it may be. No two that follow one another are the same.
func wide(i int) map[string]scgs.Value {
	letter := string(rune('x' + i%2))
	var floats, texts []scgs.Value
	for range scgs.MaxElements {
		floats = append(floats, scgs.FloatValue(math.Pi*float64(1+i%2)))
		texts = append(texts, scgs.StringValue(strings.Repeat(letter, scgs.MaxTextBytes/scgs.MaxElements)))
	}
	return map[string]scgs.Value{
		"text":            scgs.StringValue(strings.Repeat(letter, scgs.MaxTextBytes)),
		"list of floats":  scgs.ListValue(scgs.Float, floats...),
		"list of strings": scgs.ListValue(scgs.String, texts...),
	}
}

func TestBatchIsSplitWhereAFrameIsFull(t *testing.T) {
	for name := range wide(0) {
		t.Run(name, func(t *testing.T) { splitBatch(t, name) })
	}
}

// splitBatch sends rows that consist of such a value with the longest tail there is.
func splitBatch(t *testing.T, name string) {
	t.Helper()
	const domain = "boot-7"
	var schema scgs.Schema
	for i := range scgs.MaxFields {
		schema = append(schema, scgs.Field{Name: fmt.Sprintf("f%d", i), Type: wide(0)[name].Type()})
	}
	codec := wire.NewBatchCodec(schema)
	sent := *workerBatch(10)
	sent.Schema, sent.Leaving, sent.Regions = codec.Hash(), true, nil
	for i := range sent.Reports {
		sent.Reports[i].Row = slices.Repeat([]scgs.Value{wide(i)[name]}, scgs.MaxFields)
	}
	sent.Tagged, sent.Quality = true, clocksync.Quality{Source: strings.Repeat("s", wire.MaxHostBytes), Expires: 1 << 60}
	for i := range wire.MaxRegions {
		name := fmt.Sprintf("%0*d", wire.MaxTokenBytes, i)
		sent.Regions = append(sent.Regions, wire.Region{Name: name, Entry: 1 << 60, Since: uint64(100 + i%10)})
	}
	rest, frames := sent, 0
	var received []wire.Report
	for {
		frame, n, err := codec.Append(nil, &rest)
		if err != nil || n < 1 || len(frame) > wire.MaxFrameBytes {
			t.Fatalf("Append = %d bytes, %d reports, %v", len(frame), n, err)
		}
		var got wire.Batch
		if err := codec.Decode(frame, domain, &got); err != nil {
			t.Fatal(err)
		}
		received = append(received, got.Reports...)
		frames++
		if n == len(rest.Reports) {
			if d := diff(rest, got); d != "" {
				t.Errorf("the last frame differs (-sent +received):\n%s", d)
			}
			break
		}
		last := got.Reports[n-1].Seq
		if got.Leaving || got.Evidence.Seq != 0 {
			t.Errorf("frame %d speaks of the end of the batch: leaving %v, evidence %d", frames, got.Leaving, got.Evidence.Seq)
		}
		for _, r := range got.Regions {
			if r.Since > last {
				t.Errorf("frame %d ends at %d and has a region entered in %d", frames, last, r.Since)
			}
		}
		rest.Reports = rest.Reports[n:]
	}
	if d := diff(sent.Reports, received); d != "" {
		t.Errorf("reports differ (-sent +received):\n%s", d)
	}
	if frames < 3 {
		t.Errorf("%d frames: the test wants a batch that needs several", frames)
	}
}

func TestBatchHoldsAtMostMaxReports(t *testing.T) {
	batch := workerBatch(wire.MaxReports + 1)
	frame, n, err := wire.NewBatchCodec(workerState).Append(nil, batch)
	if err != nil || n != wire.MaxReports {
		t.Fatalf("Append = %d reports, %v; want %d", n, err, wire.MaxReports)
	}
	var got wire.Batch
	if err := wire.NewBatchCodec(workerState).Decode(frame, "boot-7", &got); err != nil || len(got.Reports) != n {
		t.Fatalf("Decode = %d reports, %v", len(got.Reports), err)
	}
}

func TestBatchHoldsAtMostAsManyAsAsked(t *testing.T) {
	codec := wire.NewBatchCodec(workerState)
	batch := workerBatch(3)
	for most, want := range map[int]int{1: 1, 2: 2, 3: 3, wire.MaxReports + 1: 3} {
		frame, n, err := codec.AppendUpTo(nil, batch, most)
		var got wire.Batch
		if err == nil {
			err = codec.Decode(frame, "boot-7", &got)
		}
		if err != nil || n != want || len(got.Reports) != want || (got.Evidence.Seq > 0) != (want == 3) {
			t.Errorf("of 3 reports at most %d: %d, %d, evidence %d, %v", most, n, len(got.Reports), got.Evidence.Seq, err)
		}
	}
}

func TestSignalsAndAnswersAreSplitWhereAFrameIsFull(t *testing.T) {
	signals := goldenSignals
	answers := goldenAck
	signals.Signals, answers.Answers = nil, nil
	for i := range wire.MaxSignals {
		s, a := goldenSignals.Signals[0], goldenAck.Answers[0]
		s.Decision.Number, a.Decision.Number = uint64(i), uint64(i)
		s.Data = []control.Datum{{Name: "body", Value: scgs.StringValue(strings.Repeat("x", control.MaxDataBytes-13))}}
		a.Detail = strings.Repeat("x", 10*wire.MaxReasonByte)
		signals.Signals, answers.Answers = append(signals.Signals, s), append(answers.Answers, a)
	}
	next := uint64(0)
	for rest := signals; len(rest.Signals) > 0; {
		frame, n, err := wire.AppendSignals(nil, &rest)
		if err != nil || n < 1 {
			t.Fatalf("AppendSignals = %d, %v", n, err)
		}
		got, err := wire.DecodeSignals(frame)
		if err != nil || len(got.Signals) != n || got.Signals[0].Decision.Number != next {
			t.Fatalf("DecodeSignals = %d signals, %v", len(got.Signals), err)
		}
		next += uint64(n)
		rest.Signals = rest.Signals[n:]
	}
	next = 0
	for rest := answers; len(rest.Answers) > 0; {
		frame, n, err := wire.AppendAck(nil, &rest)
		if err != nil || n < 1 {
			t.Fatalf("AppendAck = %d, %v", n, err)
		}
		got, err := wire.DecodeAck(frame)
		if err != nil || len(got.Answers) != n || got.Answers[0].Decision.Number != next || len(got.Answers[0].Detail) != wire.MaxReasonByte {
			t.Fatalf("DecodeAck = %d answers, %v", len(got.Answers), err)
		}
		next += uint64(n)
		rest.Answers = rest.Answers[n:]
	}
}

// TestPeersAreSplitWhereABundleIsFull tells 1000 members with the longest names, in frames that a
// bundle takes.
func TestPeersAreSplitWhereABundleIsFull(t *testing.T) {
	peers := make([]wire.Peer, 1000)
	for i := range peers {
		peers[i] = wire.Peer{Name: fmt.Sprintf("%064d", i), Life: wire.MaxIncarnation - 1}
	}
	rest := wire.Peers{Synchronizer: "g", Term: 1, Version: 1, Phase: 1, SectionHash: 1, Section: make([]byte, wire.MaxWork), Total: 1000, Peers: peers}
	var got []wire.Peer
	frames := 0
	for ; len(rest.Peers) > 0; frames++ {
		frame, n, err := wire.AppendPeers(nil, &rest)
		if err != nil || n < 1 || len(frame) > wire.MaxPart {
			t.Fatalf("AppendPeers: %d peers, %d bytes, %v", n, len(frame), err)
		}
		part, err := wire.DecodePeers(frame)
		if err != nil || int(part.First) != len(got) || (len(part.Section) > 0) != (frames == 0) {
			t.Fatalf("DecodePeers: %d peers from %d on, %d bytes of section, %v", len(part.Peers), part.First, len(part.Section), err)
		}
		got = append(got, part.Peers...)
		rest.Peers, rest.First, rest.Section = rest.Peers[n:], rest.First+uint64(n), nil
	}
	if !slices.Equal(got, peers) || frames != 2 {
		t.Errorf("%d peers came in %d frames", len(got), frames)
	}
}

// TestOptionalTails: the life of a hello and the hash of a welcome are there only where they say something.
func TestOptionalTails(t *testing.T) {
	h, w := goldenHello, goldenWelcome
	h.Life, w.Work = 299, 9
	hello, err := wire.AppendHello(nil, &h)
	if got, err2 := wire.DecodeHello(hello); err != nil || err2 != nil || got.Life != 299 {
		t.Errorf("life %d, %v, %v", got.Life, err, err2)
	}
	welcome, err := wire.AppendWelcome(nil, &w)
	if got, err2 := wire.DecodeWelcome(welcome); err != nil || err2 != nil || got.Work != 9 {
		t.Errorf("work %d, %v, %v", got.Work, err, err2)
	}
	golden := goldenFrames(t)
	if !slices.Equal(hello[:len(hello)-3], golden[wire.KindHello]) || !slices.Equal(welcome[:len(welcome)-1], golden[wire.KindWelcome]) {
		t.Error("they are not behind all else")
	}
	h.Life = h.Incarnation
	if _, err := wire.AppendHello(nil, &h); err == nil {
		t.Error("a life that is the incarnation is taken")
	}
	for _, frame := range [][]byte{append(golden[wire.KindHello], 0), append(golden[wire.KindWelcome], 0)} {
		if err := decodeAny(frame); err == nil {
			t.Error("a 0 at the end is taken")
		}
	}
}

package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// outlineOf is what a listener without the schema is to understand of a batch.
func outlineOf(b *wire.Batch) wire.Batch {
	return wire.Batch{
		Member: b.Member, Incarnation: b.Incarnation, Schema: b.Schema, Again: b.Again, Leaving: b.Leaving, Regions: b.Regions,
	}
}

// TestOutlineSaysWhatTheBatchSays wants of every frame, one of several too, what
// the codec of the schema reads of it, into a batch that held another one.
func TestOutlineSaysWhatTheBatchSays(t *testing.T) {
	codec := wire.NewBatchCodec(small)
	var whole, outline wire.Batch
	rapid.Check(t, func(t *rapid.T) {
		b := batches(small, "boot-7").Draw(t, "batch")
		for frames := 0; frames == 0 || len(b.Reports) > 0; frames++ {
			frame, n, err := codec.Append(nil, &b)
			if err != nil {
				t.Fatal(err)
			}
			b.Reports = b.Reports[n:]
			if err := codec.Decode(frame, "boot-7", &whole); err != nil {
				t.Fatal(err)
			}
			if err := wire.DecodeOutline(frame, &outline); err != nil {
				t.Fatal(err)
			}
			if d := diff(outlineOf(&whole), outline); d != "" {
				t.Fatalf("(-batch +outline)\n%s", d)
			}
		}
	})
}

// TestOutlineOfAFrameThatIsCut wants the regions of the frames that a long batch is
// cut into.
func TestOutlineOfAFrameThatIsCut(t *testing.T) {
	codec, b := wire.NewBatchCodec(workerState), workerBatch(wire.MaxReports)
	for i := range b.Reports {
		b.Reports[i].Row[3] = scgs.StringValue(strings.Repeat("x", scgs.MaxTextBytes-i%2))
	}
	b.Regions = append(b.Regions, wire.Region{Name: "late", Entry: 5, Since: b.Reports[wire.MaxReports-1].Seq})
	frame, n, err := codec.Append(nil, b)
	if err != nil || n == len(b.Reports) {
		t.Fatalf("%d of %d reports fit: %v", n, len(b.Reports), err)
	}
	var outline wire.Batch
	if err := wire.DecodeOutline(frame, &outline); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b.Regions[:1], outline.Regions); d != "" {
		t.Error(d)
	}
}

// FuzzOutline gives arbitrary bytes to the light decoder: what the codec takes it
// takes too, and it reads the same.
func FuzzOutline(f *testing.F) {
	f.Add(goldenFrames(f)[wire.KindBatch])
	f.Add(tracedFrames(f)[wire.KindBatch])
	f.Add(numbersFrame(f))
	for _, frame := range rowFrames(f) {
		f.Add(frame)
	}
	codec := wire.NewBatchCodec(small)
	f.Fuzz(func(t *testing.T, frame []byte) {
		var whole, outline wire.Batch
		known := codec.Decode(frame, "boot-7", &whole) == nil
		err := wire.DecodeOutline(frame, &outline)
		switch {
		case !known:
		case err != nil:
			t.Fatalf("the codec takes the frame, the outline: %v", err)
		case len(whole.Reports) > 0 && len(whole.Regions) > 0 && len(outline.Regions) == 0: // No encoder writes that.
		default:
			if d := diff(outlineOf(&whole), outline); d != "" {
				t.Fatalf("(-batch +outline)\n%s", d)
			}
		}
	})
}

func BenchmarkOutline(b *testing.B) {
	codec, batch := wire.NewBatchCodec(workerState), workerBatch(64)
	frame, _, err := codec.Append(nil, batch)
	if err != nil {
		b.Fatal(err)
	}
	var outline wire.Batch
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.DecodeOutline(frame, &outline); err != nil {
			b.Fatal(err)
		}
	}
}

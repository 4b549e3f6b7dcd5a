package wire_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// roundTrip encodes behind a prefix, which must stay, and decodes again.
func roundTrip[M any](t *rapid.T, m M, kind wire.Kind, encode func([]byte, *M) ([]byte, error), decode func([]byte) (M, error)) {
	t.Helper()
	const prefix = "kept"
	frame, err := encode([]byte(prefix), &m)
	if err != nil {
		t.Fatalf("encode %+v: %v", m, err)
	}
	if string(frame[:len(prefix)]) != prefix {
		t.Fatalf("encoding changed what stood before the frame: %q", frame[:len(prefix)])
	}
	frame = frame[len(prefix):]
	if got, err := wire.KindOf(frame); got != kind || err != nil {
		t.Fatalf("KindOf = %v, %v", got, err)
	}
	got, err := decode(frame)
	if err != nil {
		t.Fatalf("decode %+v: %v", m, err)
	}
	clear(frame) // The message must not look at the frame any more.
	if d := diff(m, got); d != "" {
		t.Fatalf("changed on the way (-sent +received):\n%s", d)
	}
}

func diff[M any](a, b M) string {
	return cmp.Diff(a, b, cmp.AllowUnexported(scgs.Value{}), cmpopts.IgnoreUnexported(wire.Batch{}), cmpopts.EquateEmpty())
}

func TestMessagesSurviveTheWay(t *testing.T) {
	t.Run("hello", rapid.MakeCheck(func(t *rapid.T) {
		multiplexer := rapid.StringMatching(`(p\.([A-Za-z0-9_-]{1,64}\.)?)?[A-Za-z0-9_-]{1,60}|`).Draw(t, "multiplexer")
		leader, term := "", uint64(0)
		if rapid.Bool().Draw(t, "led") {
			leader, term = tokens().Draw(t, "leader"), rapid.Uint64Min(1).Draw(t, "term")
		}
		same := wire.Same{}
		if rapid.Bool().Draw(t, "begun again") {
			same = wire.Same{Seq: rapid.Uint64Min(1).Draw(t, "same"), Incarnation: rapid.Uint64Max(wire.MaxIncarnation-1).Draw(t, "first"), Of: rapid.Uint64Min(1).Draw(t, "of")}
		}
		roundTrip(t, wire.Hello{
			Member:      tokens().Draw(t, "member"),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Host:        texts(wire.MaxHostBytes).Draw(t, "host"),
			Domain:      clocksync.Domain(tokens().Draw(t, "domain")),
			Quality:     quality(t, clocksync.Timeline(texts(wire.MaxHostBytes).Draw(t, "timeline"))),
			Typed:       rapid.Bool().Draw(t, "typed"),
			Schema:      schemas().Draw(t, "schema"),
			Threads:     rapid.Bool().Draw(t, "threads"),
			Multiplexer: multiplexer,
			Leader:      leader,
			Term:        term,
			Causes:      rapid.Bool().Draw(t, "causes"),
			Fates:       some(t, rapid.Custom(fated)),
			Same:        same,
			Process:     rapid.Uint64().Draw(t, "process"),
			Asks:        rapid.Bool().Draw(t, "asks"),
			Had:         rapid.Uint64().Draw(t, "had"),
			Over:        rapid.Bool().Draw(t, "over"),
			Common:      rapid.Bool().Draw(t, "common"),
		}, wire.KindHello, wire.AppendHello, wire.DecodeHello)
	}))
	t.Run("welcome", rapid.MakeCheck(func(t *rapid.T) {
		m := wire.Welcome{
			Synchronizer: tokens().Draw(t, "synchronizer"),
			Term:         rapid.Uint64().Draw(t, "term"),
			Epoch:        rapid.Uint64().Draw(t, "epoch"),
			Incarnation:  rapid.Uint64().Draw(t, "incarnation"),
			Reason:       texts(wire.MaxReasonByte).Draw(t, "reason"),
			Schema:       schemas().Draw(t, "schema"),
			Section:      rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "section"),
			SectionHash:  rapid.Uint64().Draw(t, "hash"),
			Heartbeat:    rapid.Int64Min(0).Draw(t, "heartbeat"),
			NextSeq:      rapid.Uint64().Draw(t, "next"),
			Domain:       clocksync.Domain(texts(wire.MaxHostBytes).Draw(t, "domain")),
			Timeline:     clocksync.Timeline(texts(wire.MaxHostBytes).Draw(t, "timeline")),
		}
		switch rapid.IntRange(0, 2).Draw(t, "answer") {
		case 0:
			m.Accepted, m.Member = true, tokens().Draw(t, "member")
		case 1:
			m.Refused, m.Member = true, tokens().Draw(t, "member")
			m.Replaced = rapid.Bool().Draw(t, "replaced")
		}
		m.Work = rapid.Uint64Max(1).Draw(t, "work")
		m.Untold = rapid.Uint64Max(3).Draw(t, "untold")
		if rapid.Bool().Draw(t, "aims") {
			m.Aims = []wire.Aim{{Signal: tokens().Draw(t, "signal"), Kind: control.Cancel, Region: tokens().Draw(t, "region")}}
		}
		roundTrip(t, m, wire.KindWelcome, wire.AppendWelcome, wire.DecodeWelcome)
	}))
	t.Run("ping", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, wire.Ping{Member: tokens().Draw(t, "member")}, wire.KindPing, wire.AppendPing, wire.DecodePing)
	}))
	t.Run("pong", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, wire.Pong{
			Timeline: clocksync.Timeline(tokens().Draw(t, "timeline")),
			Arrived:  stamps("").Draw(t, "arrived").Within,
			Departed: stamps("").Draw(t, "departed").Within,
			Drift:    rapid.Float64Range(0, clocksync.MaxDrift).Draw(t, "drift"),
		}, wire.KindPong, wire.AppendPong, wire.DecodePong)
	}))
	t.Run("body", rapid.MakeCheck(func(t *rapid.T) {
		m := wire.Body{
			Member: tokens().Draw(t, "member"), Program: rapid.Uint64().Draw(t, "program"), Run: rapid.Uint64().Draw(t, "run"),
			Kind: rapid.SampledFrom([]wire.BodyKind{wire.BodyInput, wire.BodyResult, wire.BodyFailure}).Draw(t, "kind"),
			Size: rapid.Uint64Range(0, wire.MaxBody).Draw(t, "size"), Reason: texts(wire.MaxReasonByte).Draw(t, "reason"),
		}
		m.Offset = rapid.Uint64Range(0, m.Size).Draw(t, "offset")
		if n := min(m.Size-m.Offset, 100); n > 0 {
			m.Piece = rapid.SliceOfN(rapid.Byte(), 1, int(n)).Draw(t, "piece")
		}
		roundTrip(t, m, wire.KindBody, wire.AppendBody, wire.DecodeBody)
	}))
	t.Run("gone", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, wire.Gone{
			Member:      tokens().Draw(t, "member"),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			First:       rapid.Uint64Min(1).Draw(t, "first"),
		}, wire.KindGone, wire.AppendGone, wire.DecodeGone)
	}))
	t.Run("probe", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, wire.Probe{
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Seq:         rapid.Uint64().Draw(t, "seq"),
			AfterMono:   clocksync.Instant(rapid.Int64().Draw(t, "mono")),
			AfterTime:   clocksync.Instant(rapid.Int64().Draw(t, "time")),
		}, wire.KindProbe, wire.AppendProbe, wire.DecodeProbe)
	}))
	t.Run("probe of a domain", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, wire.Probe{
			AfterMono: clocksync.Instant(rapid.Int64().Draw(t, "mono")),
			AfterTime: clocksync.Instant(rapid.Int64().Draw(t, "time")),
			Domain:    clocksync.Domain(tokens().Draw(t, "domain")),
		}, wire.KindProbe, wire.AppendProbe, wire.DecodeProbe)
	}))
	t.Run("resend", rapid.MakeCheck(func(t *rapid.T) {
		from := rapid.Uint64Min(1).Draw(t, "from")
		roundTrip(t, wire.Resend{
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			From:        from,
			To:          rapid.Uint64Min(from).Draw(t, "to"),
		}, wire.KindResend, wire.AppendResend, wire.DecodeResend)
	}))
	t.Run("signals", rapid.MakeCheck(func(t *rapid.T) {
		m := wire.Signals{
			Synchronizer: tokens().Draw(t, "synchronizer"),
			Term:         rapid.Uint64().Draw(t, "term"),
			Epoch:        rapid.Uint64().Draw(t, "epoch"),
			Incarnation:  rapid.Uint64().Draw(t, "incarnation"),
			Signals:      some(t, rapid.Custom(signal)),
		}
		if len(m.Signals) == 0 {
			m.Recorded = some(t, rapid.Custom(receipt))
		}
		encode := func(dst []byte, m *wire.Signals) ([]byte, error) {
			frame, n, err := wire.AppendSignals(dst, m)
			if n != len(m.Signals) {
				t.Fatalf("%d of %d signals fit", n, len(m.Signals))
			}
			return frame, err
		}
		roundTrip(t, m, wire.KindSignals, encode, wire.DecodeSignals)
	}))
	t.Run("ack", rapid.MakeCheck(func(t *rapid.T) {
		m := wire.Ack{
			Member:      tokens().Draw(t, "member"),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Answers:     some(t, rapid.Custom(answer)),
		}
		encode := func(dst []byte, m *wire.Ack) ([]byte, error) {
			frame, n, err := wire.AppendAck(dst, m)
			if n != len(m.Answers) {
				t.Fatalf("%d of %d answers fit", n, len(m.Answers))
			}
			return frame, err
		}
		roundTrip(t, m, wire.KindAck, encode, wire.DecodeAck)
	}))
}

func TestBatchesSurviveTheWay(t *testing.T) {
	const domain = "boot-7"
	rapid.Check(t, func(t *rapid.T) {
		schema := schemas().Draw(t, "schema")
		codec := wire.NewBatchCodec(schema)
		var got wire.Batch // Reused: what an earlier batch left must not show.
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			sent := batches(schema, domain).Draw(t, "batch")
			frame, n, err := codec.Append(nil, &sent)
			if err != nil || n != len(sent.Reports) {
				t.Fatalf("Append = %d of %d reports, %v", n, len(sent.Reports), err)
			}
			if err := codec.Decode(frame, domain, &got); err != nil {
				t.Fatalf("Decode: %v", err)
			}
			clear(frame)
			if d := diff(sent, got); d != "" {
				t.Fatalf("changed on the way (-sent +received):\n%s", d)
			}
		}
	})
}

// TestBundlesSurviveTheWay sends bundles in as many frames as they take. Nothing is
// lost or told twice, and evidence comes behind all frames.
func TestBundlesSurviveTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := wire.Bundle{
			Parts: some(t, rapid.Custom(func(t *rapid.T) wire.Part {
				body := make([]byte, rapid.SampledFrom([]int{0, 1, 300, wire.MaxPart / 2, wire.MaxPart - 2}).Draw(t, "bytes"))
				kind := wire.Kind(rapid.IntRange(int(wire.KindHello), int(wire.KindBody)).Draw(t, "kind"))
				return wire.Part{Member: tokens().Draw(t, "member"), Frame: append([]byte{wire.Version, byte(kind)}, body...)}
			})),
			Alive: some(t, rapid.Custom(func(t *rapid.T) wire.Alive {
				return wire.Alive{
					Member: tokens().Draw(t, "member"), Incarnation: rapid.Uint64().Draw(t, "incarnation"),
					Evidence: wire.Evidence{Seq: rapid.Uint64Min(1).Draw(t, "seq"), At: stamps("").Draw(t, "at")},
				}
			})),
		}
		for range rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "doubled") {
			sent.Alive = append(sent.Alive, sent.Alive...)
		}
		if rapid.Bool().Draw(t, "roster") {
			sent.Version = rapid.Uint64Min(1).Draw(t, "version")
			sent.Listed = some(t, rapid.Custom(func(t *rapid.T) wire.Listed {
				return wire.Listed{Member: tokens().Draw(t, "member"), Incarnation: rapid.Uint64().Draw(t, "incarnation"), Seq: rapid.Uint64().Draw(t, "seq")}
			}))
			for range rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "doubled") {
				sent.Listed = append(sent.Listed, sent.Listed...)
			}
			sent.Listed = sent.Listed[:min(len(sent.Listed), wire.MaxListed)]
			sent.Total = uint64(len(sent.Listed))
		}
		if rapid.Bool().Draw(t, "held") {
			sent.Held = wire.Held{Of: rapid.Uint64Min(1).Draw(t, "of"), Sum: rapid.Uint64().Draw(t, "sum"), At: stamps("").Draw(t, "at")}
		}
		var got, into wire.Bundle
		for rest := sent; !rest.Empty(); {
			left := len(rest.Parts) + len(rest.Alive) + len(rest.Listed)
			frame, next, err := wire.AppendBundle(nil, &rest)
			if err != nil || !next.Empty() && len(next.Parts)+len(next.Alive)+len(next.Listed) >= left {
				t.Fatalf("AppendBundle leaves %d of %d, %v", len(next.Parts)+len(next.Alive)+len(next.Listed), left, err)
			}
			if err := wire.DecodeBundle(frame, &into); err != nil {
				t.Fatal(err)
			}
			if got.Of > 0 || into.Version > 0 && int(into.First) != len(got.Listed) {
				t.Fatalf("%+v came behind the last, or out of order", into)
			}
			got.Parts, got.Alive = append(got.Parts, into.Parts...), append(got.Alive, into.Alive...)
			got.Version, got.Total, got.Listed, got.Held = max(got.Version, into.Version), max(got.Total, into.Total), append(got.Listed, into.Listed...), into.Held
			rest = next
		}
		for i := range got.Listed {
			got.Listed[i].Regions = nil
		}
		if !reflect.DeepEqual(sent, got) { // A diff of as much would take seconds.
			t.Fatalf("changed on the way: %d parts and %d heartbeats came as %d and %d", len(sent.Parts), len(sent.Alive), len(got.Parts), len(got.Alive))
		}
	})
}

// TestTheLargestPartFits a frame of its own, whoever it is for.
func TestTheLargestPartFits(t *testing.T) {
	part := wire.Part{Member: strings.Repeat("m", wire.MaxTokenBytes), Frame: append([]byte{wire.Version, byte(wire.KindBody)}, make([]byte, wire.MaxPart-2)...)}
	held := wire.Held{Of: math.MaxUint64, Sum: math.MaxUint64, At: clocksync.Stamp{Mono: math.MaxInt64 - 1, Within: clocksync.Interval{Earliest: math.MinInt64 + 1, Latest: math.MaxInt64 - 1}}}
	frame, rest, err := wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{part}, Held: held})
	if err != nil || len(rest.Parts) > 0 || len(frame) > wire.MaxFrameBytes {
		t.Errorf("%d bytes, %d parts are left, %v", len(frame), len(rest.Parts), err)
	}
}

func TestMultiplexes(t *testing.T) {
	for member, want := range map[string]bool{"n-0": true, "n-1-2": true, "n": false, "n-": false, "n0": false, "m-0": false, "-0": false, "nn-0": false} {
		if got := wire.Multiplexes("n", member); got != want {
			t.Errorf("n carries %s: %v", member, got)
		}
	}
}

// TestAHelloFitsWithFewerFates: the oldest fates are left out where the rest takes the room.
func TestAHelloFitsWithFewerFates(t *testing.T) {
	h := goldenHello
	h.Schema, h.Fates = nil, nil
	for i := range 55 {
		f := scgs.Field{Name: fmt.Sprintf("f%d", i), Type: scgs.Enum}
		for j := range 20 {
			f.Words = append(f.Words, fmt.Sprintf("%d_%s", j, strings.Repeat("x", 45)))
		}
		h.Schema = append(h.Schema, f)
	}
	for i := range wire.MaxFates {
		h.Fates = append(h.Fates, control.Fated{
			Cause: control.Cause{Source: math.MaxUint64, Witness: math.MaxUint64, Firing: uint32(i)},
			Name:  strings.Repeat("n", wire.MaxTokenBytes), Entry: 1, Fate: control.Applied,
		})
	}
	frame, err := wire.AppendHello(nil, &h)
	if err != nil || len(frame) > wire.MaxPart {
		t.Fatalf("%d bytes, %v", len(frame), err)
	}
	got, err := wire.DecodeHello(frame)
	if n := len(got.Fates); err != nil || n < 10 || n > 100 || !slices.Equal(got.Fates, h.Fates[:n]) {
		t.Errorf("%d fates, %v", n, err)
	}
}

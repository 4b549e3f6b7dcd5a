package wire_test

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// small is a schema with a field of every type.
var small = scgs.Schema{
	{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "busy"}},
	{Name: "load", Type: scgs.Float},
	{Name: "sent", Type: scgs.Int},
	{Name: "task", Type: scgs.String},
	{Name: "age", Type: scgs.Duration},
	{Name: "full", Type: scgs.Bool},
}

var (
	decided = control.Decision{Synchronizer: "gsync", Term: 5, Epoch: 6, Number: 7}

	goldenHello = wire.Hello{
		Member: "w1", Incarnation: 300, Host: "h", Domain: "boot-7",
		Quality: clocksync.Quality{Source: "fixed", Assumed: true, Timeline: clocksync.UTC, Status: clocksync.Synchronized, Expires: 9},
		Typed:   true, Schema: small[:2], Threads: true, Leader: "gsync", Term: 5,
		Causes: true, Fates: []control.Fated{{Cause: control.Cause{Source: 300, Witness: 8, Firing: 2}, Name: "go", Entry: 4, Fate: control.Applied}},
	}
	goldenWelcome = wire.Welcome{
		Synchronizer: "gsync", Term: 5, Epoch: 6, Member: "w1", Incarnation: 300, Accepted: true,
		Schema: small[1:2], Section: []byte{9, 8}, SectionHash: 4, Heartbeat: int64(time.Second), NextSeq: 3,
		Domain: "boot-6", Timeline: clocksync.UTC,
	}
	goldenBatch = wire.Batch{
		Member: "w1", Incarnation: 300, Schema: small.Hash(), Again: true, Leaving: true,
		Reports: []wire.Report{
			{Seq: 9, At: clocksync.Stamp{Domain: "boot-7", Mono: 1000, Within: clocksync.Around(5000, 100)}, Row: []scgs.Value{
				scgs.EnumValue("busy"), scgs.FloatValue(0.5), scgs.IntValue(-2), scgs.StringValue("a"), scgs.DurationValue(3), scgs.BoolValue(true),
			}},
			{Seq: 10, End: true, At: clocksync.Stamp{Domain: "boot-7", Mono: 1010, Within: clocksync.Around(5010, 100)}},
			{Seq: 11, At: clocksync.Stamp{Domain: "boot-7", Mono: 1020, Within: clocksync.Unbounded}, Row: make([]scgs.Value, len(small))},
		},
		Regions:  []wire.Region{{Name: "search", Entry: 2, Since: 9}},
		Evidence: wire.Evidence{Seq: 11, At: clocksync.Stamp{Domain: "boot-7", Mono: 1030, Within: clocksync.Around(5031, 101)}},
		Tagged:   true, Quality: clocksync.Quality{Source: "peer", Unverified: true, Status: clocksync.Degraded, Expires: 300},
	}
	goldenSignals = wire.Signals{
		Synchronizer: "gsync", Term: 5, Epoch: 6, Incarnation: 300,
		Signals: []control.Signal{{
			Decision: decided, Name: "stop", Predicate: "all-idle", Kind: control.Cancel,
			Target: "w1", Region: "search", Entry: 2, TTL: 1000,
			Data: []control.Datum{{Name: "best", Value: scgs.FloatValue(1.5)}, {Name: "who", Value: scgs.StringValue("w2")}},
		}},
	}
	goldenAck = wire.Ack{
		Member: "w1", Incarnation: 300,
		Answers: []wire.Answer{{Decision: decided, Name: "stop", Target: "w1", Fate: control.Refused, Detail: "no"}},
	}
	goldenGone  = wire.Gone{Member: "w1", Incarnation: 300, First: 40}
	goldenProbe = wire.Probe{Incarnation: 300, Seq: 9, AfterMono: 1000, AfterTime: clocksync.MinInstant}
	goldenPing  = wire.Ping{Member: "w1"}
	goldenPong  = wire.Pong{Timeline: "boot-6", Arrived: clocksync.Exactly(1000), Departed: clocksync.Exactly(1010), Drift: 50}
	goldenBody  = wire.Body{
		Member: "w1", Program: 300, Run: 7, Kind: wire.BodyResult, Size: 1000, Offset: 10, Piece: []byte(`{"x"`), Reason: "no",
	}
	goldenBundle = wire.Bundle{
		Parts: []wire.Part{{Member: "w1", Frame: []byte{wire.Version, byte(wire.KindGone), 0}}},
		Alive: []wire.Alive{
			{Member: "w1", Incarnation: 300, Evidence: wire.Evidence{Seq: 11, At: clocksync.Stamp{Mono: 1030, Within: clocksync.Around(5031, 101)}}},
			{Member: "w2", Incarnation: 7, Evidence: wire.Evidence{Seq: 2, At: clocksync.Stamp{Mono: 1040, Within: clocksync.Unbounded}}},
		},
		Roster: wire.Roster{Version: 5, Total: 3, First: 1, Listed: []wire.Listed{
			{Member: "w1", Incarnation: 300, Seq: 11, Regions: []wire.Region{{Name: "r", Entry: 2, Since: 9}}},
			{Member: "w2", Incarnation: 7, Seq: 2},
		}},
		Held: wire.Held{Of: 5, Sum: 13, At: clocksync.Stamp{Mono: 1050, Within: clocksync.Around(5051, 101)}},
	}
	goldenPeers = wire.Peers{
		Synchronizer: "gsync", Term: 5, Version: 7, Member: "w1", Epoch: 6, Phase: 2, SectionHash: 4, Section: []byte("{}"), Total: 3,
		Peers: []wire.Peer{{Name: "w1", Life: 300}, {Name: "w2", Life: 7}},
	}
	goldenResend = wire.Resend{Incarnation: 300, From: 3, To: 8}
)

// goldenFrames encodes one message of each kind.
func goldenFrames(tb testing.TB) map[wire.Kind][]byte {
	tb.Helper()
	frames := map[wire.Kind][]byte{}
	put := func(kind wire.Kind, frame []byte, err error) {
		if err != nil {
			tb.Fatal(err)
		}
		frames[kind] = frame
	}
	hello, err := wire.AppendHello(nil, &goldenHello)
	put(wire.KindHello, hello, err)
	batch, _, err := wire.NewBatchCodec(small).Append(nil, &goldenBatch)
	put(wire.KindBatch, batch, err)
	gone, err := wire.AppendGone(nil, &goldenGone)
	put(wire.KindGone, gone, err)
	ack, _, err := wire.AppendAck(nil, &goldenAck)
	put(wire.KindAck, ack, err)
	welcome, err := wire.AppendWelcome(nil, &goldenWelcome)
	put(wire.KindWelcome, welcome, err)
	probe, err := wire.AppendProbe(nil, &goldenProbe)
	put(wire.KindProbe, probe, err)
	resend, err := wire.AppendResend(nil, &goldenResend)
	put(wire.KindResend, resend, err)
	ping, err := wire.AppendPing(nil, &goldenPing)
	put(wire.KindPing, ping, err)
	pong, err := wire.AppendPong(nil, &goldenPong)
	put(wire.KindPong, pong, err)
	body, err := wire.AppendBody(nil, &goldenBody)
	put(wire.KindBody, body, err)
	signals, _, err := wire.AppendSignals(nil, &goldenSignals)
	put(wire.KindSignals, signals, err)
	peers, _, err := wire.AppendPeers(nil, &goldenPeers)
	put(wire.KindPeers, peers, err)
	bundle, _, err := wire.AppendBundle(nil, &goldenBundle)
	put(wire.KindBundle, bundle, err)
	return frames
}

// tracedFrames are the frames that have a trace context.
func tracedFrames(tb testing.TB) map[wire.Kind][]byte {
	tb.Helper()
	var context control.Trace
	for i := range context {
		context[i] = byte(i + 1)
	}
	batch, signals := goldenBatch, goldenSignals
	batch.Trace = context
	signals.Signals = slices.Clone(signals.Signals)
	signals.Signals[0].Trace = context
	frame, _, err := wire.NewBatchCodec(small).Append(nil, &batch)
	if err != nil {
		tb.Fatal(err)
	}
	frames := map[wire.Kind][]byte{wire.KindBatch: frame}
	if frames[wire.KindSignals], _, err = wire.AppendSignals(nil, &signals); err != nil {
		tb.Fatal(err)
	}
	return frames
}

// TestLayoutOfTraces pins where a trace context stands: before the stamps of a batch
// and behind all else of other messages, with a bit in the flags of a batch (8) or in
// the kind of a signal (40), so that a frame without one is what it was before there
// was any.
func TestLayoutOfTraces(t *testing.T) {
	const context = "c419 0102030405060708090a0b0c0d0e0f10 1112131415161718 19"
	plain := goldenFrames(t)
	for kind, frame := range tracedFrames(t) {
		want, context := hex.EncodeToString(plain[kind]), strings.ReplaceAll(context, " ", "")
		if kind == wire.KindSignals {
			want = strings.Replace(want, "69646c6502a2", "69646c6542a2", 1) + context
		} else {
			want = strings.NewReplacer("485bf70300", "485bff0300", "02d1012c", "02d1012c"+context).Replace(want)
		}
		if hex.EncodeToString(frame) != want {
			t.Errorf("%v:\n got %x\nwant %s", kind, frame, want)
		}
		for n := range frame {
			if err := decodeAny(frame[:n]); err == nil {
				t.Errorf("%v: %d of %d bytes are taken for a whole frame", kind, n, len(frame))
			}
		}
	}
}

// TestLayoutOfCauses pins where the cause of a signal stands: behind all else but a trace
// context, with a bit in its kind (20).
func TestLayoutOfCauses(t *testing.T) {
	signals := goldenSignals
	signals.Signals = slices.Clone(signals.Signals)
	signals.Signals[0].Cause = control.Cause{Source: 300, Witness: 8, Firing: 2}
	frame, _, err := wire.AppendSignals(nil, &signals)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(hex.EncodeToString(goldenFrames(t)[wire.KindSignals]), "69646c6502a2", "69646c6522a2", 1) + "cd012c0802"
	if hex.EncodeToString(frame) != want {
		t.Errorf("\n got %x\nwant %s", frame, want)
	}
	for n := range frame {
		if err := decodeAny(frame[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken for a whole frame", n, len(frame))
		}
	}
}

// TestLayoutOfSame pins where a hello says that a state has begun again: behind all else, the life too, and only then.
func TestLayoutOfSame(t *testing.T) {
	h := goldenHello
	h.Same = wire.Same{Seq: 9, Incarnation: 300, Of: 7}
	frame, err := wire.AppendHello(nil, &h)
	if err != nil {
		t.Fatal(err)
	}
	whole := goldenFrames(t)[wire.KindHello]
	if want := hex.EncodeToString(whole) + "0009cd012c07"; hex.EncodeToString(frame) != want {
		t.Errorf("\n got %x\nwant %s", frame, want)
	}
	for n := len(whole) + 1; n < len(frame); n++ {
		if err := decodeAny(frame[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken for a whole frame", n, len(frame))
		}
	}
	for _, bad := range []wire.Same{{Seq: 0, Incarnation: 1, Of: 1}, {Seq: 1, Incarnation: 1}, {Seq: 1, Incarnation: wire.MaxIncarnation, Of: 1}} {
		if h.Same = bad; bad != (wire.Same{}) {
			if _, err := wire.AppendHello(nil, &h); err == nil {
				t.Errorf("%+v is sent", bad)
			}
		}
	}
}

// TestLayoutOfProcess pins what the newest releases add to a hello and to a welcome: behind all else, and only
// where there is something to say. So the frames of members and synchronizers without it are what they were.
func TestLayoutOfProcess(t *testing.T) {
	frames := goldenFrames(t)
	h, w := goldenHello, goldenWelcome
	h.Process, h.Had = 300, 7
	hello, err := wire.AppendHello(nil, &h)
	if err != nil {
		t.Fatal(err)
	}
	h.Process, h.Had, h.Over = 0, 0, true
	over, err := wire.AppendHello(nil, &h)
	if err != nil {
		t.Fatal(err)
	}
	w.Aims, w.Untold = []wire.Aim{{Signal: "go", Kind: control.Cancel, Region: "work"}}, 2
	welcome, err := wire.AppendWelcome(nil, &w)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		whole, frame []byte
		behind       string
	}{
		{frames[wire.KindHello], hello, "00 00 00 00 cd012c c2 07"},                 // life, same | process, asks, had
		{frames[wire.KindHello], over, "00 00 00 00 00 c2 00 c3"},                   // life, same, process, asks, had | over
		{frames[wire.KindWelcome], welcome, "00 dc0001 a2676f 02 a4776f726b c2 02"}, // work | aims: signal, kind, region | replaced, untold
	} {
		if want := hex.EncodeToString(c.whole) + strings.ReplaceAll(c.behind, " ", ""); hex.EncodeToString(c.frame) != want {
			t.Errorf("\n got %x\nwant %s", c.frame, want)
		}
		for n := len(c.whole) + 1; n < len(c.frame); n++ {
			if err := decodeAny(c.frame[:n]); err == nil {
				t.Errorf("%d of %d bytes are taken for a whole frame", n, len(c.frame))
			}
		}
	}
	for _, nothing := range []string{"00000000" + "00c200", "00000000" + "00c200c2", "00000000" + "07c200c2"} {
		if _, err := wire.DecodeHello(append(slices.Clone(frames[wire.KindHello]), unhex(t, nothing)...)); err == nil {
			t.Errorf("%s is taken behind a hello", nothing)
		}
	}
	if _, err := wire.DecodeWelcome(append(slices.Clone(frames[wire.KindWelcome]), unhex(t, "00dc0000c200")...)); err == nil {
		t.Error("nothing is taken behind a welcome")
	}
}

// TestAWelcomeFitsWithFewerAims: the last aims are left out where the rest takes the room.
func TestAWelcomeFitsWithFewerAims(t *testing.T) {
	w := goldenWelcome
	w.Section = make([]byte, wire.MaxSection)
	for i := range 2 * wire.MaxAims {
		w.Aims = append(w.Aims, wire.Aim{Signal: strings.Repeat("s", 60), Kind: control.Activate, Region: strings.Repeat("r", 60)})
		w.Aims[i].Signal += string(rune('a' + i%26))
	}
	frame, err := wire.AppendWelcome(nil, &w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeWelcome(frame)
	if n := len(got.Aims); err != nil || n < 50 || n >= wire.MaxAims || !slices.Equal(got.Aims, w.Aims[:n]) {
		t.Errorf("%d aims, %v", n, err)
	}
}

// TestLayout pins the bytes: a change here needs another Version.
func TestLayout(t *testing.T) {
	golden := map[wire.Kind]string{
		// version kind | member, incarnation | host | domain | quality, assumed | typed | schema | threads | timeline, unverified, status, expires | multiplexer | leader, term
		// | causes | source, witness, firing | name, entry, fate
		wire.KindHello: `01 01 a27731 cd012c a168 a6626f6f742d37 a56669786564 c3 c3
			92 a57068617365 06 92 a469646c65 a462757379 a46c6f6164 03 90 c3 a3757463 c2 01 09 a0 a56773796e63 05
			c3 dc0001 cd012c 08 02 a2676f 04 02`,
		// member, incarnation, schema, flags, reports | regions | quality
		// widths, first seq, reading, offsets | readings | earliest | latest | ends | fields
		wire.KindBatch: `01 0d 02 7731 2c01000000000000 d55a3aec177f485b f7 0300
			91 a6736561726368 02 09
			a470656572 c2 c3 02 d1012c
			1088 0900000000000000 e803000000000000 3c0f000000000000 0410000000000000
			0a 0a 0a
			0000000000000000 c8ecffffffffff7f 3813000000000080
			0000000000000000 ffebffffffffff7f 0314000000000080
			02
			00 01 c0  00 ca3f000000 c0  00 fe c0  00 a161 c0  00 03 c0  00 c3 c0`,
		wire.KindGone: `01 03 a27731 cd012c 28`,
		// member, incarnation | count | decision | name, target, fate, detail
		wire.KindAck: `01 04 a27731 cd012c dc0001 a56773796e63 05 06 07 a473746f70 a27731 07 a26e6f`,
		// synchronizer, term, epoch | member, incarnation | accepted, refused, reason | schema | section, hash | heartbeat, next | domain, timeline
		wire.KindWelcome: `01 05 a56773796e63 05 06 a27731 cd012c c3 c2 a0
			91 a46c6f6164 03 90 c4020908 04 d23b9aca00 03 a6626f6f742d36 a3757463`,
		wire.KindProbe: `01 06 cd012c 09 d103e8 d38000000000000000`,
		wire.KindPing:  `01 09 a27731`,
		wire.KindPong:  `01 0a a6626f6f742d36 d103e8 d103e8 d103f2 d103f2 ca42480000`,
		// member, program, run | kind, size, offset | piece | reason
		wire.KindBody: `01 0b a27731 cd012c 07 02 cd03e8 0a c4047b227822 a26e6f`,
		// count | member, frame | count | member, incarnation | seq, flags, stamp
		// | roster: version, total, first | count | member, incarnation, seq | count | region | held: of, sum, flags, stamp
		// synchronizer, term, version, member, epoch, phase | total, first, hash, section | peers
		wire.KindPeers: `01 0e a56773796e63 05 07 a27731 06 02 03 00 04 c4027b7d dc0002 a27731 cd012c a27732 07`,
		wire.KindBundle: `01 0c dc0001 a27731 c403010300 dc0002
			a27731 cd012c 0b 00 d10406 d10f3c d11006
			a27732 07 02 06 0a
			05 03 01 dc0002 a27731 cd012c 0b 91 a172 02 09 a27732 07 02 90
			05 0d 00 d1041a d10f3c d11006`,
		wire.KindResend: `01 07 cd012c 03 08`,
		// synchronizer, term, epoch, incarnation | count | decision | name, predicate, kind | target, region, entry | ttl | data
		wire.KindSignals: `01 08 a56773796e63 05 06 cd012c dc0001 a56773796e63 05 06 07
			a473746f70 a8616c6c2d69646c65 02 a27731 a6736561726368 02 d103e8
			92 a462657374 03 ca3fc00000 a377686f 04 a27732`,
	}
	for kind, frame := range goldenFrames(t) {
		if got, want := hex.EncodeToString(frame), strings.Join(strings.Fields(golden[kind]), ""); got != want {
			t.Errorf("%v:\n got %s\nwant %s", kind, got, want)
		}
	}
}

// goldenNumbers is a batch whose columns have the forms of numbers and words, and
// evidence of another state than the last.
func goldenNumbers() *wire.Batch {
	b := &wire.Batch{Member: "w1", Schema: small.Hash(), Evidence: wire.Evidence{Seq: 8}}
	for i := range 3 {
		at := clocksync.Instant(1000 * (i + 1))
		b.Reports = append(b.Reports, wire.Report{
			Seq: uint64(9 + i), At: clocksync.Stamp{Domain: "boot-7", Mono: at, Within: clocksync.Interval{Earliest: at - 2, Latest: clocksync.MaxInstant}},
			Row: []scgs.Value{
				scgs.EnumValue([]string{"busy", "idle"}[i/2]), scgs.FloatValue(float64(i)), scgs.IntValue(300),
				scgs.StringValue([]string{"a", "b"}[(i+1)/2]), scgs.DurationValue(-time.Duration(i)), scgs.BoolValue(true),
			},
		})
	}
	b.Evidence.At = b.Reports[2].At
	return b
}

func numbersFrame(tb testing.TB) []byte {
	tb.Helper()
	frame, _, err := wire.NewBatchCodec(small).Append(nil, goldenNumbers())
	if err != nil {
		tb.Fatal(err)
	}
	return frame
}

// TestLayoutOfNumbers pins the forms that TestLayout has not.
func TestLayoutOfNumbers(t *testing.T) {
	const want = `01 0d 02 7731 0000000000000000 d55a3aec177f485b 40 0300  0800000000000000
		20f0 0900000000000000 e803000000000000 feffffffffffffff 0000000000000000  e803 e803 0000
		02 01 01 00
		02 0000000000000000 000000000000f03f 0000000000000040
		81 2c01
		00 a161 a162 c1
		88 00 ff ff
		03 01`
	frame := numbersFrame(t)
	if got, want := hex.EncodeToString(frame), strings.Join(strings.Fields(want), ""); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	varied := goldenNumbers()
	varied.Reports[1].Row[5] = scgs.BoolValue(false)
	other, _, err := wire.NewBatchCodec(small).Append(nil, varied)
	if got, want := hex.EncodeToString(other), strings.Join(strings.Fields(strings.TrimSuffix(want, "03 01")+"02 01 00 01"), ""); err != nil || got != want {
		t.Errorf("with a bool that varies: %v\n got %s\nwant %s", err, got, want)
	}
	for n := range frame {
		if err := decodeAny(frame[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken for a whole frame", n, len(frame))
		}
	}
}

// TestLayoutOfReceipts pins what follows the signals of a frame that has none, and an answer
// that says what signal it is of.
func TestLayoutOfReceipts(t *testing.T) {
	receipts := wire.Signals{Synchronizer: "sync", Term: 5, Epoch: 6, Incarnation: 300, Recorded: []wire.Receipt{{Term: 4, Number: 7, Name: "stop"}}}
	known := goldenAck
	known.Answers = []wire.Answer{goldenAck.Answers[0]}
	a := &known.Answers[0]
	a.Kind, a.Predicate, a.Region, a.Entry = control.Activate, "p", "r", 2
	frame, _, err := wire.AppendSignals(nil, &receipts)
	answer, _, other := wire.AppendAck(nil, &known)
	if err != nil || other != nil {
		t.Fatal(err, other)
	}
	for what, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"receipts": {frame, `01 08 a473796e63 05 06 cd012c dc0000 91 04 07 a473746f70`},
		"answer":   {answer, `01 04 a27731 cd012c dc0001 a56773796e63 05 06 07 a473746f70 a27731 47 a26e6f 01 a170 a172 02`},
	} {
		if got, want := hex.EncodeToString(c.frame), strings.Join(strings.Fields(c.want), ""); got != want {
			t.Errorf("%s\n got %s\nwant %s", what, got, want)
		}
		for n := range c.frame {
			if n == len(frame)-8 && what == "receipts" {
				continue // It is one of the release before.
			}
			if err := decodeAny(c.frame[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are taken for a whole frame", what, n, len(c.frame))
			}
		}
	}
	receipts.Signals = goldenSignals.Signals
	if _, _, err := wire.AppendSignals(nil, &receipts); err == nil || !strings.Contains(err.Error(), "receipts are allowed only in a frame without signals") {
		t.Errorf("with signals: %v", err)
	}
}

// TestLayoutOfDomainProbes: the domain is at the end of a probe where there is one, and such a probe names no state.
func TestLayoutOfDomainProbes(t *testing.T) {
	p := wire.Probe{AfterMono: 1000, AfterTime: clocksync.MinInstant, Domain: "boot-5"}
	frame, err := wire.AppendProbe(nil, &p)
	if want := unhex(t, `01 06 00 00 d103e8 d38000000000000000 a6626f6f742d35`); err != nil || !bytes.Equal(frame, want) {
		t.Errorf("%x, %v, want %x", frame, err, want)
	}
	for _, bad := range []wire.Probe{{Domain: "h", Seq: 1}, {Domain: "h", Incarnation: 1}} {
		if _, err := wire.AppendProbe(nil, &bad); err == nil || !strings.Contains(err.Error(), "domain: a request to a domain names no state") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	empty := unhex(t, `01 06 00 00 d103e8 d38000000000000000 a0`)
	if _, err := wire.DecodeProbe(empty); err == nil || !strings.Contains(err.Error(), "domain: an empty one has no form: leave it out") {
		t.Errorf("an empty domain: %v", err)
	}
}

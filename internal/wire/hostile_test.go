package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// decodeAny gives a frame to the decoder of the kind it claims.
func decodeAny(frame []byte) error {
	kind, err := wire.KindOf(frame)
	if err != nil {
		return err
	}
	_, err = decoders[kind](frame)
	return err
}

const (
	batchHead  = "01 02 a27731 cd012c cf5b487f17ec3a5ad5 00 " // no reports, regions, evidence yet
	taggedHead = "01 02 a27731 cd012c cf5b487f17ec3a5ad5 04 "
	tracedHead = "01 02 a27731 cd012c cf5b487f17ec3a5ad5 08 "
	columns    = "01 0d 02 7731 2c01000000000000 d55a3aec177f485b " // no flags, number of reports, columns yet
	someStamps = "00ff 0500000000000000 0000000000000000 0000000000000000 0000000000000000 "
	twoStamps  = "01ff 0500000000000000 0000000000000000 0000000000000000 0000000000000000 "
	badTrace   = "wire: batch: trace: the bytes are no trace context: it has 25 bytes, and begins with two ids that are not zero"
	rowOfNils  = "c0 c0 c0 c0 c0 c0 "
	emptyTail  = "90 00"
	zeroStamp  = "06 00 "
	signals    = "01 08 a167 05 06 00 91 a167 05 06 07 a173 a170 "
	welcomes   = "01 05 a167 05 06 a0 00 "
	hello      = "01 01 a161 00 a0 a164 a0 c2 c3 "
)

func TestHostileFramesAreRefused(t *testing.T) {
	cases := []struct{ frame, want string }{
		{"", "wire: frame: size: the frame ends before its kind"},
		{"01", "wire: frame: size: the frame ends before its kind"},
		{"02 01", "wire: frame: version: 2, this side speaks 1: run releases with the same major version"},
		{"01 00", "wire: frame: kind: 0 is none that this side knows"},
		{"01 0f", "wire: frame: kind: 15 is none that this side knows"},
		{"01 0e a167 05 00", "wire: peers: version: the version is 0: versions count from 1"},
		{"01 0e a167 05 01 a12e", "wire: peers: member: use letters, digits, - and _, at most 64"},
		{"01 0e a167 05 01 a0 06 00", "wire: peers: phase: the phase is 0: phases count from 1"},
		{"01 0e a167 05 01 a0 06 01 ce00010001", "wire: peers: total: the total is above 65536"},
		{"01 0e a167 05 01 a0 06 01 02 01 04 c4027b7d", "wire: peers: section: the section has no hash, or is not with the first peers"},
		{"01 0e a167 05 01 a0 06 01 02 00 00 c4027b7d", "wire: peers: section: the section has no hash, or is not with the first peers"},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c54001", "wire: peers: section: the frame ends inside it"},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c400 dd00010001", "wire: peers: peers: 65537 of them, at most 65536 are allowed"},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c400 dc0100 a161 01", "wire: peers: peers: the frame ends inside it"},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c400 91 a12e 01", `wire: peers: peers[0].name: ".": use letters, digits, - and _, at most 64`},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c400 91 a161 cf4000000000000000", "wire: peers: peers[0].life: the life is 2^62 or more"},
		{"01 0e a167 05 01 a0 06 01 01 00 04 c400 92 a161 01 a162 01", "wire: peers: peers: the peers end behind the roster"},
		{"01 0e a167 05 01 a0 06 01 02 03 04 c400 90", "wire: peers: peers: the peers end behind the roster"},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c400 92 a162 01 a161 01", "wire: peers: peers: the peers are not in the order of their names"},
		{"01 0e a167 05 01 a0 06 01 02 00 04 c400 92 a161 01 a161 01", "wire: peers: peers: the peers are not in the order of their names"},
		{"01 0d", "wire: batch: member: the frame ends inside it"},
		{"01 03", "wire: gone: member: the frame ends inside it"},
		{"01 0b a161 01 01 04 00 00 c400 a0", "wire: body: kind: 4 is not 1 to 3"},
		{"01 0b a161 01 01 02 ce00100001 00 c400 a0", "wire: body: size: the body is above 1 MiB: hand over a reference and fetch the rest"},
		{"01 0b a161 01 01 02 02 01 c4026162 a0", "wire: body: piece: the piece ends behind the body"},
		{"01 0b a161 01 01 02 02 03 c400 a0", "wire: body: piece: the piece ends behind the body"},
		{"01 03 c0", "wire: gone: member: the value is not a text"},
		{"01 03 dbffffffff 61", "wire: gone: member: the frame ends inside it"},
		{"01 03 a3612e62 05 01", `wire: gone: member: "a.b": use letters, digits, - and _, at most 64`},
		{"01 03 a2c328 05 01", "wire: gone: member: the text is not UTF-8"},
		{"01 03 a0 05 01", `wire: gone: member: "": use letters, digits, - and _, at most 64`},
		{"01 03 d941" + strings.Repeat("61", 65) + "05 01", "wire: gone: member: 65 bytes, at most 64 are allowed"},
		{"01 03 a161 ff 01", "wire: gone: incarnation: the value is not an unsigned 64-bit integer"},
		{"01 03 a161 cb4000000000000000 01", "wire: gone: incarnation: the value is not an unsigned 64-bit integer"},
		{"01 03 a161 05 00", "wire: gone: first: the number is 0: the states of a member count from 1"},
		{"01 03 a161 05 01 00", "wire: gone: end: 1 bytes follow the last field"},
		{"01 06 05 01 cfffffffffffffffff 00", "wire: probe: after mono: the value is not a signed 64-bit integer"},
		{"01 07 05 03 02", "wire: resend: to: the last number is before from"},

		{"01 0c 91 a16e c4020c01", "wire: bundle: parts[0].frame: version: 12, this side speaks 1: run releases with the same major version"},
		{"01 0c 91 a16e c402010c 90", "wire: bundle: parts[0].frame: a bundle in a bundle"},
		{"01 0c 91 a16e c4020100 90", "wire: bundle: parts[0].frame: kind: 0 is none that this side knows"},
		{"01 0c 91 a16e c4010190", "wire: bundle: parts[0].frame: size: the frame ends before its kind"},
		{"01 0c 91 a16e c603010190", "wire: bundle: parts[0].frame: the frame ends inside it"},
		{"01 0c 91 a16e c5ef8101020304", "wire: bundle: parts[0].frame: the frame ends inside it"},
		{"01 0c 91 a12e c4020103 90", `wire: bundle: parts[0].member: ".": use letters, digits, - and _, at most 64`},
		{"01 0c dd00000401", "wire: bundle: parts: 1025 of them, at most 1024 are allowed"},
		{"01 0c dc0010 a16e c4020103", "wire: bundle: parts: the frame ends inside it"},
		{"01 0c 90 dc0401", "wire: bundle: alive: 1025 of them, at most 1024 are allowed"},
		{"01 0c 90 91 a16e 01 00 00 00", "wire: bundle: alive[0].evidence: the number is 0: the states of a member count from 1"},
		{"01 0c 90 91 a16e 01 01 01 00 00 00", "wire: bundle: alive[0].flags: evidence cannot be an end"},
		{"01 0c 90 90 01 ce00010001 00 90 00", "wire: bundle: total: a roster has at most 65536 members"},
		{"01 0c 90 90 01 01 02 90 00", "wire: bundle: first: the first number is beyond the total"},
		{"01 0c 90 90 01 01 01 91 a16e 01 01 90 00", "wire: bundle: listed: there are more than in all"},
		{"01 0c 90 90 01 02 00 dc0401", "wire: bundle: listed: 1025 of them, at most 1024 are allowed"},
		{"01 0c 90 90 00", "wire: bundle: of: the frame ends inside it"},
		{"01 0c 90 90 00 01 00 01 00 00 00", "wire: bundle: flags: evidence cannot be an end"},
		{"01 01 a161 00 a0 a164 a0 c2 c2 90 c2 a0 c2 00 00 a12e", `wire: hello: multiplexer: ".": use letters, digits, - and _, at most 64`},

		{hello + "ddffffffff", "wire: hello: state: 4294967295 of them, at most 64 are allowed"},
		{hello + "dfffffffff", "wire: hello: state: the value is not a list"},
		{hello + "dc0040", "wire: hello: state: the frame ends inside it"},
		{hello + "91 a161 07 90", `wire: hello: state: state: field "a" has no type: use bool, int, float, string, duration, {enum: [...]} or {list: TYPE}`},
		{hello + "91 a161 00 90", "wire: hello: state[0].type: 0 is not 1 to 255"},
		{hello + "91 a161 cc87 90", `wire: hello: state: state: field "a" has no type: use bool, int, float, string, duration, {enum: [...]} or {list: TYPE}`},
		{hello + "91 a161 42 90 a178", "wire: hello: state[0].default: the value is not a signed 64-bit integer"},
		{hello + "91 a161 46 91 a178 01", "wire: hello: state[0].default: word 1 of 1"},
		{hello + "91 a161 44 90 da0101" + strings.Repeat("61", 257), "wire: hello: state[0].default: 257 bytes, at most 256 are allowed"},
		{hello + "91 a161 ccc2 90 92 01 a178", "wire: hello: state[0].default[1]: the value is not a signed 64-bit integer"},
		{hello + "91 a161 47 90 01", `wire: hello: state: state: field "a" has no type: use bool, int, float, string, duration, {enum: [...]} or {list: TYPE}`},
		{hello + "91 a161 06 dc0041", "wire: hello: state[0].words: 65 of them, at most 64 are allowed"},
		{hello + "91 a161 06 90 c2", `wire: hello: state: state: field "a": an enum has 1 to 64 words, this one has 0`},
		{hello + "92 a161 02 90 a162 06 92 a163 c0", "wire: hello: state[1].words[1].word: the value is not a text"},
		{"01 01 a161 00 a0 a0", "wire: hello: domain: the domain is empty: every member reads some clock"},

		{welcomes + "c3 c3", "wire: welcome: refused: the member is both accepted and refused"},
		{welcomes + "c3 c2 a0 90 c6ffffffff", "wire: welcome: section: the frame ends inside it"},
		{welcomes + "c3 c2 a0 90 c400 00 ff 00", "wire: welcome: heartbeat: the value is negative"},
		{"01 05 a167 05 06 a12a 00 c3 c2", "wire: welcome: member: use letters, digits, - and _, at most 64"},

		{"01 04 a161 00 dd00000101", "wire: ack: answers: 257 of them, at most 256 are allowed"},
		{"01 04 a161 00 91 a167 01 02 03 a161 a161 00", "wire: ack: answers[0].fate: 0 is not 1 to 8"},
		{"01 04 a161 00 91 a167 01 02 03 a161 a161 09 a0", "wire: ack: answers[0].fate: 9 is not 1 to 8"},
		{signals + "03 a174 a172 01 00 90", "wire: signals: signals[0].kind: 3 is not 1 to 2"},
		{signals + "40 a174 a172 01 00 90", "wire: signals: signals[0].kind: 0 is not 1 to 2"},
		{signals + "43 a174 a172 01 00 90", "wire: signals: signals[0].kind: 3 is not 1 to 2"},
		{signals + "13 a174 a172 01 00 90", "wire: signals: signals[0].kind: 3 is not 1 to 2"},
		{signals + "10 a174 a172 01 00 90", "wire: signals: signals[0].kind: 0 is not 1 to 2"},
		{signals + "41 a174 a172 01 00 90", "wire: signals: signals[0].trace: the frame ends inside it"},
		{signals + "01 a174 a172 01 ff 90", "wire: signals: signals[0].ttl: the value is negative"},
		{signals + "01 a174 a172 01 00 dc0021", "wire: signals: signals[0].data: 33 of them, at most 32 are allowed"},
		{signals + "21 a174 a172 01 00 90 00 00 00", "wire: signals: signals[0].source: the value is 0, which stands for none"},
		{signals + "21 a174 a172 01 00 90 01 00 cf0000000100000000", "wire: signals: signals[0].firing: the value is above 4294967295"},
		{signals + "01 a174 a172 01 00 91 a178 03 cb7ff8000000000001", "wire: signals: signals[0].data[0].value: the float is not a number"},
		{signals + "01 a174 a172 01 00 92 a178 04 da0fa0" + strings.Repeat("61", 4000) + "a179 04 d9ff" + strings.Repeat("61", 255), "wire: signals: signals[0].data: signal: 4275 bytes of data, at most 4096 fit in a signal: send a reference and fetch the body"},

		{"01 02 a161 00 05", "wire: batch: schema: the rows have another one than this side expects: introduce the member again"},
		{"01 02 a161 00 cf5b487f17ec3a5ad5 20", "wire: batch: flags: 32 is not 0 to 31"},
		{"01 02 a161 00 cf5b487f17ec3a5ad5 10 02 90", "wire: batch: length: the frame ends inside the reports"},
		{"01 02 a161 00 cf5b487f17ec3a5ad5 10 02 90 90 00", "wire: batch: length: the reports have another one"},
		{batchHead + "dd00000401", "wire: batch: reports: 1025 of them, at most 1024 are allowed"},
		{batchHead + "dd00000400 00", "wire: batch: reports: the frame ends inside it"},
		{batchHead + "91 00 " + zeroStamp + rowOfNils + emptyTail, "wire: batch: reports[0].seq: the number is 0: the states of a member count from 1"},
		{batchHead + "92 05 " + zeroStamp + rowOfNils + "00 " + zeroStamp + rowOfNils + emptyTail, "wire: batch: reports[1].seq: the number is not above the number before"},
		{batchHead + "92 05 07 00 00 07 00" + emptyTail, "wire: batch: reports[1].seq: the number is not above the number before"},
		{batchHead + "92 05 " + zeroStamp + rowOfNils + "cffffffffffffffffe " + zeroStamp + rowOfNils + emptyTail, "wire: batch: reports[1].seq: the number is not above the number before"},
		{batchHead + "91 05 08 00 " + emptyTail, "wire: batch: reports[0].flags: 8 is not 0 to 7"},
		{batchHead + "91 05 06 d37fffffffffffffff " + rowOfNils + emptyTail, "wire: batch: reports[0].mono: a reading is not infinite"},
		{batchHead + "91 05 00 00 05 04 " + rowOfNils + emptyTail, "wire: batch: reports[0].earliest: the earliest time is after the latest time"},
		{batchHead + "91 05 04 00 d37fffffffffffffff " + rowOfNils + emptyTail, "wire: batch: reports[0].earliest: no event is at plus infinity"},
		{batchHead + "91 05 02 00 d38000000000000000 " + rowOfNils + emptyTail, "wire: batch: reports[0].latest: no event is at minus infinity"},
		{batchHead + "91 05 " + zeroStamp + "02 c0 c0 c0 c0 c0" + emptyTail, "wire: batch: reports[0].phase: word 2 of 2"},
		{batchHead + "91 05 " + zeroStamp + "a169 c0 c0 c0 c0 c0" + emptyTail, "wire: batch: reports[0].phase: the value is not an unsigned 64-bit integer"},
		{batchHead + "91 05 " + zeroStamp + "c0 cb7ff8000000000001 c0 c0 c0 c0" + emptyTail, "wire: batch: reports[0].load: NaN is not a finite number"},
		{batchHead + "91 05 " + zeroStamp + "c0 caff800000 c0 c0 c0 c0" + emptyTail, "wire: batch: reports[0].load: -Inf is not a finite number"},
		{batchHead + "91 05 " + zeroStamp + "c0 c0 cfffffffffffffffff c0 c0 c0" + emptyTail, "wire: batch: reports[0].sent: the value is not a signed 64-bit integer"},
		{batchHead + "91 05 " + zeroStamp + "c0 c0 c0 da0101" + strings.Repeat("61", 257) + "c0 c0" + emptyTail, "wire: batch: reports[0].task: 257 bytes, at most 256 are allowed"},
		{batchHead + "91 05 " + zeroStamp + "c0 c0 c0 a180 c0 c0" + emptyTail, "wire: batch: reports[0].task: the text is not UTF-8"},
		{batchHead + "91 05 " + zeroStamp + "c0 c0 c0 c0 c0", "wire: batch: reports[0].full: the frame ends inside it"},
		{batchHead + "91 05 " + zeroStamp + rowOfNils + "c0" + emptyTail, "wire: batch: regions: the value is not a list"}, // one value too many
		{batchHead + "90 dd00000101", "wire: batch: regions: 257 of them, at most 256 are allowed"},
		{batchHead + "90 91 a172 00 00 00", "wire: batch: regions[0].entry: the entry is 0: the entries of regions count from 1"},
		{batchHead + "90 90 05 01 00", "wire: batch: flags: evidence cannot be an end"},
		{taggedHead + "90 90 00 a470656572 c2 c2 04", "wire: batch: status: 4 is not 0 to 3"},
		{tracedHead + "90 90 00", "wire: batch: trace: the frame ends inside it"},
		{tracedHead + "90 90 00 a0", "wire: batch: trace: the value is not a string of bytes"},
		{tracedHead + "90 90 00 c400", badTrace},
		{tracedHead + "90 90 00 c418" + strings.Repeat("01", 24), badTrace},
		{tracedHead + "90 90 00 c419" + strings.Repeat("00", 16) + strings.Repeat("01", 9), badTrace},
		{tracedHead + "90 90 00 c419" + strings.Repeat("01", 16) + strings.Repeat("00", 8) + "01", badTrace},
		{taggedHead + "90 90 00", "wire: batch: quality: the frame ends inside it"},

		{"01 0d 00 0000000000000000 d55a3aec177f485b 00 0000", `wire: batch: member: "": use letters, digits, - and _, at most 64`},
		{"01 0d 03 612e62 0000000000000000 d55a3aec177f485b 00 0000", `wire: batch: member: "a.b": use letters, digits, - and _, at most 64`},
		{"01 0d 41 " + strings.Repeat("61", 65) + "0000000000000000 d55a3aec177f485b 00 0000", `wire: batch: member: "` + strings.Repeat("a", 65) + `": use letters, digits, - and _, at most 64`},
		{"01 0d ff 6161 0000000000000000 d55a3aec177f485b 00 0000", "wire: batch: member: the frame ends inside it"},
		{"01 0d 02 7731 2c01000000000000 0500000000000000 00 0000", "wire: batch: schema: the rows have another one than this side expects: introduce the member again"},
		{columns + "00 0104", "wire: batch: reports: 1025 of them, at most 1024 are allowed"},
		{columns + "00 0004 " + someStamps, "wire: batch: reports: the frame ends inside it"},
		{columns + "00 0100 00ff", "wire: batch: stamps: the frame ends inside it"},
		{columns + "00 0000 00", "wire: batch: end: 1 bytes follow the last field"},
		{columns + "10 0000 dd00000101", "wire: batch: regions: 257 of them, at most 256 are allowed"},
		{columns + "10 0000 91 a172 00 00", "wire: batch: regions[0].entry: the entry is 0: the entries of regions count from 1"},
		{columns + "08 0000 c400", badTrace},
		{columns + "04 0000 a470656572 c2 c2 04", "wire: batch: status: 4 is not 0 to 3"},
		{columns + "80 0000", "wire: batch: flags: there is no evidence to be of the last report"},
		{columns + "c0 0000 " + someStamps, "wire: batch: evidence: the evidence is for the last report, and there is no report"},
		{columns + "40 0000 0500", "wire: batch: evidence: the frame ends inside it"},
		{columns + "40 0000 0000000000000000 " + someStamps, "wire: batch: evidence: the number is 0: the states of a member count from 1"},
		{columns + "40 0000 0500000000000000 00f0 0000000000000000 0000000000000000 ffffffffffffff7f 0000000000000000", "wire: batch: earliest: no event is at plus infinity"},
		{columns + "00 0100 09ff" + someStamps[4:], "wire: batch: stamps: widths ff09 are not up to 8 each"},
		{columns + "00 0100 f0ff" + someStamps[4:], "wire: batch: stamps: widths fff0 are not up to 8 each"},
		{columns + "00 0100 0090" + someStamps[4:], "wire: batch: stamps: widths 9000 are not up to 8 each"},
		{columns + "00 0300 88ff" + someStamps[4:], "wire: batch: stamps: the frame ends inside it"},
		{columns + "00 0100 00ff 0000000000000000 " + someStamps[22:], "wire: batch: reports[0].seq: the number is 0: the states of a member count from 1"},
		{columns + "00 0200 " + twoStamps + "ff", "wire: batch: reports[1].seq: the number is not above the number before"},
		{columns + "00 0200 00ff ffffffffffffffff " + someStamps[22:], "wire: batch: reports[1].seq: the number is 0: the states of a member count from 1"},
		{columns + "00 0100 00ff 0500000000000000 ffffffffffffff7f 0000000000000000 0000000000000000", "wire: batch: reports[0].mono: a reading is not infinite"},
		{columns + "00 0100 0000 0500000000000000 0000000000000000 0500000000000000 0400000000000000", "wire: batch: reports[0].earliest: the earliest time is after the latest time"},
		{columns + "00 0100 000f 0500000000000000 0000000000000000 0000000000000000 0000000000000080", "wire: batch: reports[0].latest: no event is at minus infinity"},
		{columns + "20 0100 " + someStamps, "wire: batch: ends: the frame ends inside it"},
		{columns + "20 0100 " + someStamps + "01 00", "wire: batch: end: 1 bytes follow the last field"},
		{columns + "00 0100 " + someStamps, "wire: batch: phase: the frame ends inside it"},
		{columns + "00 0100 " + someStamps + "04", "wire: batch: phase: a column of enum has no form 4"},
		{columns + "00 0100 " + someStamps + "80 00", "wire: batch: phase: a column of enum has no form 128"},
		{columns + "00 0100 " + someStamps + "02", "wire: batch: phase: the frame ends inside it"},
		{columns + "00 0100 " + someStamps + "02 02", "wire: batch: rows[0].phase: word 2 of 2"},
		{columns + "00 0100 " + someStamps + "00 02", "wire: batch: rows[0].phase: word 2 of 2"},
		{columns + "00 0100 " + someStamps + "00 c1", "wire: batch: rows[0].phase: the value is not an unsigned 64-bit integer"},
		{columns + "00 0100 " + someStamps + "01 c0 02 00000000000000", "wire: batch: load: the frame ends inside it"},
		{columns + "00 0100 " + someStamps + "01 c0 03 000000000000f07f", "wire: batch: rows[0].load: +Inf is not a finite number"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 02 00", "wire: batch: sent: a column of int has no form 2"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 c8 00", "wire: batch: sent: a column of int has no form 200"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 82 0000", "wire: batch: sent: the frame ends inside it"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 80 00 02 a161", "wire: batch: task: a column of string has no form 2"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 80 00 01 a180", "wire: batch: rows[0].task: the text is not UTF-8"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 80 00 00", "wire: batch: rows[0].task: the frame ends inside it"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 80 00 01 c0 80 00 02 02", "wire: batch: rows[0].full: word 2 of 2"},
		{columns + "00 0100 " + someStamps + "01 c0 01 c0 80 00 01 c0 80 00 04", "wire: batch: full: a column of bool has no form 4"},

		{"01 09 a3612e62", `wire: ping: member: "a.b": use letters, digits, - and _, at most 64`},
		{"01 0a a0 00 00 00 00", "wire: pong: timeline: the timeline is empty: times without a timeline cannot be compared"},
		{"01 0a a161 02 01 00 00", "wire: pong: arrived: the interval ends before its start"},
		{"01 0a a161 01 02 03", "wire: pong: departed: the frame ends inside it"},
		{"01 0a a161 01 02 03 04 ca bf800000", "wire: pong: drift: the drift is not a number from 0 to 100000"},
		{"01 0a a161 01 02 03 04 ca 7fc00000", "wire: pong: drift: the drift is not a number from 0 to 100000"},
		{"01 0a a161 01 02 03 04 ca 47c35080", "wire: pong: drift: the drift is not a number from 0 to 100000"},
	}
	for _, c := range cases {
		frame := unhex(t, c.frame)
		err := decodeAny(frame)
		if err == nil || err.Error() != c.want {
			t.Errorf("frame %s\n got %v\nwant %s", c.frame, err, c.want)
		}
		if fault := (*wire.FrameError)(nil); !errors.As(err, &fault) {
			t.Errorf("frame %s: %T is no *FrameError", c.frame, err)
		}
	}
}

func TestReasonsToActOn(t *testing.T) {
	if err := decodeAny(unhex(t, "02 01")); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("%v is not ErrVersion", err)
	}
	if err := decodeAny(unhex(t, "01 02 a161 00 05")); !errors.Is(err, wire.ErrSchema) || errors.Is(err, wire.ErrVersion) {
		t.Errorf("%v is not ErrSchema alone", err)
	}
	if _, err := wire.DecodeHello(goldenFrames(t)[wire.KindGone]); err == nil || err.Error() != "wire: gone: kind: a frame of kind hello was expected" {
		t.Errorf("a gone decoded as a hello: %v", err)
	}
	if err := decodeAny(make([]byte, wire.MaxFrameBytes+1)); err == nil || err.Error() != "wire: frame: size: 61441 bytes, at most 61440 are read" {
		t.Errorf("a frame over the limit: %v", err)
	}
}

// A bundle may end where one of a multiplexer without a roster does, and a hello where one
// of the release before did.
func TestEveryCutOfAFrameIsRefused(t *testing.T) {
	old := goldenBundle
	old.Roster, old.Held = wire.Roster{}, wire.Held{}
	whole, _, err := wire.AppendBundle(nil, &old)
	if err != nil {
		t.Fatal(err)
	}
	frames := goldenFrames(t)
	before := frames[wire.KindHello][:len(frames[wire.KindHello])-len("\xa5gsync\x05\xc3\xdc\x00\x01\xcd\x01\x2c\x08\x02\xa2go\x04\x02")]
	if h, err := wire.DecodeHello(before); err != nil || h.Leader != "" || h.Term != 0 || h.Causes {
		t.Errorf("a hello of the release before: %+v, %v", h, err)
	}
	for kind, frame := range frames {
		for n := range frame {
			if err := decodeAny(frame[:n]); err == nil && !bytes.Equal(frame[:n], whole) && !bytes.Equal(frame[:n], before) {
				t.Errorf("%v: %d of %d bytes are taken for a whole frame", kind, n, len(frame))
			}
		}
		if err := decodeAny(append(frame, 0xc0)); err == nil {
			t.Errorf("%v: a trailing byte is taken", kind)
		}
	}
}

// TestFramesCannotAskForMemory fills frames with the items that take the most
// memory for their bytes.
func TestFramesCannotAskForMemory(t *testing.T) {
	const most = 40 * wire.MaxFrameBytes
	fill := func(head string, item string) []byte {
		frame := unhex(t, head)
		one := unhex(t, item)
		for len(frame)+len(one) <= wire.MaxFrameBytes {
			frame = append(frame, one...)
		}
		return frame
	}
	for name, frame := range map[string][]byte{
		"reports": fill(batchHead+"dd00000400", "01 "+zeroStamp+rowOfNils),
		"ends":    fill(batchHead+"dd00000400", "01 07 00"),
		"regions": fill(batchHead+"90 dd00000100", "a172 01 00"),
		"words":   fill(hello+"dc0040", "a161 06 dc0040"+strings.Repeat("a0", 64)),
		"answers": fill("01 04 a161 00 dd00000100", "a167 01 02 03 a161 a161 01 a0"),
		"signals": fill("01 08 a167 05 06 00 dd00000100", "a167 05 06 07 a173 a170 01 a174 a172 01 00 dc0020"+strings.Repeat("a178 00", 32)),
		"lists":   fill(fmt.Sprintf("01 02 a177 00 cf%016x 00 dd00000400", lists.Hash()), "01 06 00 90 90 90 90 90 dc0040"+strings.Repeat("c2", 64)+"c0"),
		"parts":   fill("01 0c dc0400", "a16e c4020103"),
		"peers":   fill("01 0e a167 05 01 a0 06 01 ce00010000 00 04 c400 dd00005000", "a161 01"),
		"alive":   fill("01 0c 90 dc0400", "a16e 01 01 06 00"),
		"columns": append(unhex(t, columns+"00 0004 10ff"+someStamps[4:]), append(make([]byte, 1023), unhex(t, "0200 0200 80 00 01a161 80 00 02")...)...),
		"section": fill(welcomes+"c3 c2 a0 90 c6ffffffff", "00"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decodeAny(frame)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: a frame that is filled up is taken", name)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > most {
			t.Errorf("%s: %d bytes allocated for a frame of %d", name, grown, len(frame))
		}
	}
}

func TestEncodersRefuseWhatDecodersWould(t *testing.T) {
	codec := wire.NewBatchCodec(small)
	row := func(i int, v scgs.Value) []scgs.Value {
		values := make([]scgs.Value, len(small))
		values[i] = v
		return values
	}
	report := func(r wire.Report) error {
		_, _, err := codec.Append(nil, &wire.Batch{Member: "w1", Reports: []wire.Report{r}})
		return err
	}
	nils := make([]scgs.Value, len(small))
	endless := clocksync.Stamp{Within: clocksync.Unbounded}
	with := func(change func(*control.Signal)) error {
		s := goldenSignals.Signals[0]
		change(&s)
		_, _, err := wire.AppendSignals(nil, &wire.Signals{Synchronizer: "g", Signals: []control.Signal{s}})
		return err
	}
	hello := goldenHello
	hello.Member = "a b"
	_, helloErr := wire.AppendHello(nil, &hello)
	big := goldenWelcome
	big.Schema, big.Section = nil, make([]byte, wire.MaxSection)
	for i := range scgs.MaxFields {
		words := make([]string, 64)
		for j := range words {
			words[j] = string(rune('a'+i%26)) + string(rune('A'+j))
		}
		big.Schema = append(big.Schema, scgs.Field{Name: "f" + strings.Repeat("x", i), Type: scgs.Enum, Words: words})
	}
	_, bigErr := wire.AppendWelcome(nil, &big)
	cases := []struct {
		err  error
		want string
	}{
		{helloErr, `wire: hello: member: "a b": use letters, digits, - and _, at most 64`},
		{bigErr, "wire: welcome: size: 63980 bytes, at most 61440 fit a frame"},
		{report(wire.Report{Seq: 0, At: endless, Row: nils}), "wire: batch: reports[0].seq: the number is 0: the states of a member count from 1"},
		{report(wire.Report{Seq: 1, At: endless}), "wire: batch: reports[0].row: 0 values for 6 fields"},
		{report(wire.Report{Seq: 1, At: endless, Row: row(0, scgs.EnumValue("none"))}), `wire: batch: reports[0].phase: "none" is not one of its words`},
		{report(wire.Report{Seq: 1, At: endless, Row: row(1, scgs.FloatValue(math.Inf(1)))}), "wire: batch: reports[0].load: +Inf is not a finite number"},
		{report(wire.Report{Seq: 1, At: endless, Row: row(2, scgs.FloatValue(1))}), "wire: batch: reports[0].sent: its type is int, not float"},
		{report(wire.Report{Seq: 1, At: endless, Row: row(3, scgs.StringValue("\xff"))}), "wire: batch: reports[0].task: the text is not UTF-8"},
		{report(wire.Report{Seq: 1, At: endless, Row: row(3, scgs.StringValue(strings.Repeat("x", 257)))}), "wire: batch: reports[0].task: 257 bytes, at most 256 are allowed"},
		{report(wire.Report{Seq: 1, At: clocksync.Stamp{Mono: clocksync.MinInstant, Within: clocksync.Unbounded}, Row: nils}), "wire: batch: reports[0].mono: a reading is not infinite"},
		{report(wire.Report{Seq: 1, At: clocksync.Stamp{Within: clocksync.Interval{Earliest: 2, Latest: 1}}, Row: nils}), "wire: batch: reports[0].earliest: the earliest time is after the latest time"},
		{with(func(s *control.Signal) { s.Region = "" }), `wire: signals: signals[0].region: "": use letters, digits, - and _, at most 64`},
		{with(func(s *control.Signal) { s.Kind = 0 }), "wire: signals: signals[0].kind: 0 is not 1 to 2"},
		{with(func(s *control.Signal) { s.Data = make([]control.Datum, control.MaxData+1) }), "wire: signals: signals[0].data: 33 of them, at most 32 are allowed"},
	}
	for _, c := range cases {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got %v\nwant %s", c.err, c.want)
		}
	}
	long := wire.Bundle{Parts: []wire.Part{{Member: "w1", Frame: append([]byte{wire.Version, byte(wire.KindGone)}, make([]byte, wire.MaxPart)...)}}}
	if dst, _, err := wire.AppendBundle([]byte("kept"), &long); err == nil || string(dst) != "kept" ||
		err.Error() != "wire: bundle: parts[0].frame: 61250 bytes, at most 61248 are allowed" {
		t.Errorf("a part that is too long left %q, %v", dst, err)
	}
	if dst, err := wire.AppendGone([]byte("kept"), &wire.Gone{Member: "w1"}); err == nil || string(dst) != "kept" {
		t.Errorf("a refused message left %q, %v", dst, err)
	}
}

func TestCheckRow(t *testing.T) {
	codec := wire.NewBatchCodec(small)
	if err := codec.CheckRow(make([]scgs.Value, len(small))); err != nil {
		t.Errorf("a row without values yet: %v", err)
	}
	if err := codec.CheckRow(goldenBatch.Reports[0].Row); err != nil {
		t.Errorf("a good row: %v", err)
	}
	bad := make([]scgs.Value, len(small))
	bad[1] = scgs.FloatValue(math.Inf(-1))
	for _, c := range []struct {
		row  []scgs.Value
		want string
	}{
		{nil, "state: 0 values for 6 fields"},
		{bad, `state: field "load": -Inf is not a finite number`},
	} {
		if err := codec.CheckRow(c.row); err == nil || err.Error() != c.want {
			t.Errorf("CheckRow = %v, want %s", err, c.want)
		}
	}
}

func TestTextsForPeopleAreCut(t *testing.T) {
	welcome := wire.Welcome{Synchronizer: "g", Refused: true, Reason: "no\xff " + strings.Repeat("ä", wire.MaxReasonByte)}
	frame, err := wire.AppendWelcome(nil, &welcome)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeWelcome(frame)
	if err != nil {
		t.Fatal(err)
	}
	if want := "no " + strings.Repeat("ä", (wire.MaxReasonByte-4)/2); got.Reason != want {
		t.Errorf("reason of %d bytes: %q", len(got.Reason), got.Reason)
	}
}

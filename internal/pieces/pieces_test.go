package pieces_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/pieces"
)

// line carries messages between a sender and a receiver, and loses, doubles and swaps some.
type line struct {
	rand     *rand.Rand
	faults   bool
	now      clocksync.Instant
	sender   *pieces.Sender
	receiver pieces.Receiver
	toSender [][]byte
	toOther  [][]byte
	got      [][]byte
}

func (l *line) put(queue *[][]byte, out ...pieces.Message) {
	for i := range out {
		data := out[i].Append(nil)
		if l.faults {
			switch l.rand.IntN(10) {
			case 0:
				continue
			case 1:
				*queue = append(*queue, data)
			}
		}
		*queue = append(*queue, data)
		if n := len(*queue); l.faults && n > 1 && l.rand.IntN(5) == 0 {
			(*queue)[n-1], (*queue)[n-2] = (*queue)[n-2], (*queue)[n-1]
		}
	}
}

// run carries messages until both sides are at rest, for a minute of their time at most.
func (l *line) run(t *testing.T) {
	t.Helper()
	for end := l.now.Add(time.Minute); l.now < end; l.now = l.now.Add(10 * time.Millisecond) {
		for len(l.toSender)+len(l.toOther) > 0 {
			for _, data := range take(&l.toOther) {
				m, err := pieces.Read(data)
				if err != nil {
					t.Fatal(err)
				}
				whole, out := l.receiver.Take(l.now, &m)
				if whole != nil {
					l.got = append(l.got, whole)
				}
				l.put(&l.toSender, out...)
			}
			for _, data := range take(&l.toSender) {
				m, err := pieces.Read(data)
				if err != nil {
					t.Fatal(err)
				}
				l.put(&l.toOther, l.sender.Answer(l.now, &m)...)
			}
		}
		if l.receiver.Wake() == clocksync.MaxInstant {
			return
		}
		l.put(&l.toSender, l.receiver.Tick(l.now)...)
	}
	t.Fatal("the transfer has not ended within a minute")
}

func take(queue *[][]byte) [][]byte {
	list := *queue
	*queue = nil
	return list
}

func random(r *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func TestTransfers(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := &line{rand: r, faults: seed%2 == 1, sender: pieces.NewSender(seed)}
		var want [][]byte
		for range 1 + r.IntN(4) {
			size := []int{1, pieces.Bytes - 1, pieces.Bytes, pieces.Bytes + 1, r.IntN(60 * pieces.Bytes)}[r.IntN(5)]
			data := random(r, max(1, size))
			key := string(rune('a' + len(want)))
			want = append(want, data)
			for sent := false; !sent; { // Its user offers it again until it has arrived.
				offer, ok := l.sender.Offer(l.now, key, 7, data)
				if !ok {
					t.Fatalf("seed %d: an offer of %d bytes was refused", seed, len(data))
				}
				before := len(l.got)
				l.put(&l.toOther, offer)
				if l.faults && r.IntN(2) == 0 {
					l.put(&l.toOther, offer)
				}
				l.run(t)
				sent = len(l.got) > before
			}
		}
		if len(l.got) != len(want) {
			t.Fatalf("seed %d: %d transfers arrived instead of %d", seed, len(l.got), len(want))
		}
		for i := range want {
			if !bytes.Equal(l.got[i], want[i]) {
				t.Fatalf("seed %d: transfer %d has other bytes", seed, i)
			}
		}
	}
}

func TestOneOfferForEachKey(t *testing.T) {
	s := pieces.NewSender(0)
	first, _ := s.Offer(0, "a", 1, []byte("x"))
	if again, ok := s.Offer(0, "a", 1, []byte("x")); !ok || again.Number != first.Number {
		t.Errorf("the same key was offered as number %d and as %d", first.Number, again.Number)
	}
	if again, kept := s.Again(0, "a"); !kept || again.Number != first.Number {
		t.Errorf("the offer of the key is kept %t, as number %d", kept, again.Number)
	}
	if _, kept := s.Again(0, "b"); kept {
		t.Error("an offer of another key is kept")
	}
	if _, kept := s.Again(clocksync.Instant(time.Hour), "a"); kept {
		t.Error("an offer of an hour ago is kept")
	}
	if later, _ := s.Offer(clocksync.Instant(time.Hour), "a", 1, []byte("x")); later.Number == first.Number {
		t.Error("an offer that nobody asked for in an hour is kept")
	}
	if _, ok := s.Offer(0, "large", 1, make([]byte, pieces.Most+1)); ok {
		t.Error("more than Most bytes were offered")
	}
	for i := range 10 {
		if _, ok := s.Offer(0, string(rune('b'+i)), 1, make([]byte, 16<<20)); ok != (i < 3) {
			t.Errorf("offer %d of 16 MiB: taken is %t", i, ok)
		}
	}
}

func TestDigestDiffers(t *testing.T) {
	var r pieces.Receiver
	s := pieces.NewSender(0)
	offer, _ := s.Offer(0, "a", 0, []byte("right"))
	_, out := r.Take(0, &offer)
	piece := s.Answer(0, &out[0])[0]
	piece.Data = []byte("wrong")
	if whole, _ := r.Take(0, &piece); whole != nil {
		t.Errorf("bytes with another digest were taken: %q", whole)
	}
}

func TestSenderThatIsGone(t *testing.T) {
	var r pieces.Receiver
	offer, _ := pieces.NewSender(0).Offer(0, "a", 0, []byte("a"))
	_, want := r.Take(0, &offer)
	gone := pieces.NewSender(100).Answer(0, &want[0])
	if len(gone) != 1 || gone[0].Kind != pieces.Gone {
		t.Fatalf("another life of the sender answers %v", gone)
	}
	if r.Take(0, &gone[0]); r.Wake() != clocksync.MaxInstant {
		t.Error("the receiver waits for bytes that are gone")
	}
	r.Take(0, &offer)
	for now := clocksync.Instant(0); r.Wake() != clocksync.MaxInstant; now = now.Add(time.Second) {
		if r.Tick(now); now > clocksync.Instant(time.Minute) {
			t.Fatal("the receiver waits for a sender that is silent")
		}
	}
}

func TestDamagedMessages(t *testing.T) {
	for _, data := range [][]byte{nil, {9}, {1}, {1, 1, 0, 0}, {2, 1, 1, 1}, {2, 1, 1, 1, 17}, {3, 1, 0}, {4}, {4, 1, 1}, append([]byte{3, 1, 0}, make([]byte, pieces.Bytes+1)...)} {
		if m, err := pieces.Read(data); err == nil {
			t.Errorf("the message % x was read as %v", data[:min(len(data), 8)], m.Kind)
		}
	}
	// Pieces that were not asked for, and pieces of wrong ranges, change nothing.
	var r pieces.Receiver
	offer, _ := pieces.NewSender(0).Offer(0, "a", 0, make([]byte, 3*pieces.Bytes))
	r.Take(0, &offer)
	for _, m := range []pieces.Message{
		{Kind: pieces.Piece, Number: 9, Data: []byte("x")},
		{Kind: pieces.Piece, Number: offer.Number, At: 1, Data: make([]byte, pieces.Bytes)},
		{Kind: pieces.Piece, Number: offer.Number, At: 3 * pieces.Bytes, Data: []byte("x")},
		{Kind: pieces.Piece, Number: offer.Number, At: 0, Data: []byte("short")},
		{Kind: pieces.Want, Number: offer.Number, Size: 1, Count: 1},
	} {
		if whole, out := r.Take(0, &m); whole != nil || len(out) > 0 {
			t.Errorf("%v of number %d at %d was taken", m.Kind, m.Number, m.At)
		}
	}
}

func FuzzRead(f *testing.F) {
	offer, _ := pieces.NewSender(0).Offer(0, "a", 5, []byte("abc"))
	for _, m := range []pieces.Message{offer, {Kind: pieces.Want, Number: 1, Size: 3, Count: 1}, {Kind: pieces.Piece, Number: 1, Data: []byte("abc")}, {Kind: pieces.Gone, Number: 1}} {
		f.Add(m.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := pieces.Read(data)
		if err != nil {
			return
		}
		again, err := pieces.Read(m.Append(nil))
		if err != nil || again.Kind != m.Kind || again.Number != m.Number || again.At != m.At || !bytes.Equal(again.Data, m.Data) {
			t.Errorf("%v is read as %v again (%v)", m.Kind, again.Kind, err)
		}
		var r pieces.Receiver
		r.Take(0, &m)
	})
}

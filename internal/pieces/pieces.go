// Package pieces moves bytes between two members that do not fit into one message.
//
// The sender offers the bytes: their size and their digest. The receiver asks for a range of pieces, gets them, and
// asks for the next range. So the receiver sets the pace, and asks again for what was lost. Each message may be lost,
// doubled, late and out of order. Bytes whose digest differs from the offer are dropped.
//
// The package is pure: it has no goroutine, clock or connection.
package pieces

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

const (
	// Bytes is the size of each piece but the last one.
	Bytes = 48 << 10
	// Most is how many bytes an offer has at most.
	Most = 48 << 20
	// maxOffers is how many offers of one member a receiver keeps, and how many a sender does.
	maxOffers = 64
	// maxKept is how many bytes a [Sender] keeps. A single offer may have Most.
	maxKept = 64 << 20
	// window is how many pieces a receiver asks for at a time.
	window = 16
	// resend is how long a receiver waits for a piece before it asks again.
	resend = 250 * time.Millisecond
	// giveUp is after how many requests without a piece a receiver drops an offer.
	giveUp = 20
	// keep is how long a sender keeps an offer that nobody asks for.
	keep = 6 * time.Second
)

// Kind says what a [Message] is.
type Kind uint8

// The kinds of messages.
const (
	// Offer: the sender has Size bytes with the digest Digest.
	Offer Kind = iota + 1
	// Want: the receiver wants Count pieces from the offset At on. At == Size: it has them all.
	Want
	// Piece: Data are the bytes from the offset At on.
	Piece
	// Gone: the sender does not have the bytes any more.
	Gone
)

// Message is what a sender and a receiver exchange.
type Message struct {
	Kind   Kind
	Number uint64            // of the offer; it rises from offer to offer of a sender
	Size   int               // of an Offer and a Want
	Digest [sha256.Size]byte // of an Offer: the SHA-256 of the bytes
	Note   uint64            // of an Offer: for its user
	At     int               // of a Want and a Piece
	Count  int               // of a Want, 1 to 16
	Data   []byte            // of a Piece
}

// Append appends the encoded message to dst.
func (m *Message) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, byte(m.Kind)), m.Number)
	switch m.Kind {
	case Offer:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(m.Size)), m.Note) //nolint:gosec // Sizes are not negative.
		dst = append(dst, m.Digest[:]...)
	case Want:
		for _, n := range []int{m.Size, m.At, m.Count} {
			dst = binary.AppendUvarint(dst, uint64(n)) //nolint:gosec // As above.
		}
	case Piece:
		dst = append(binary.AppendUvarint(dst, uint64(m.At)), m.Data...) //nolint:gosec // As above.
	case Gone:
	}
	return dst
}

var errMessage = errors.New("message about pieces: it is damaged: let all members of the space run the same version")

// Read reads an encoded message. Its Data are a part of data.
func Read(data []byte) (m Message, err error) {
	if len(data) == 0 {
		return m, errMessage
	}
	r := reader{data: data[1:]}
	m.Kind, m.Number = Kind(data[0]), r.number(math.MaxUint64)
	switch m.Kind {
	case Offer:
		m.Size, m.Note = r.size(Most), r.number(math.MaxUint64)
		r.bad = r.bad || m.Size == 0 || len(r.data) < len(m.Digest)
		r.data = r.data[copy(m.Digest[:], r.data):]
	case Want:
		m.Size, m.At, m.Count = r.size(Most), r.size(Most), r.size(window)
	case Piece:
		m.At = r.size(Most)
		m.Data, r.data = r.data, nil
		r.bad = r.bad || len(m.Data) == 0 || len(m.Data) > Bytes
	case Gone:
	default:
		return m, fmt.Errorf("message about pieces: it has the kind %d: let all members of the space run the same version", m.Kind)
	}
	if r.bad || len(r.data) > 0 {
		return m, errMessage
	}
	return m, nil
}

// reader reads numbers. After the first fault it does nothing more.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > most || r.bad {
		r.bad = true
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) size(most int) int { return int(r.number(uint64(most))) } //nolint:gosec // It is at most that.

// Sender keeps bytes for one receiver until it has them. It is not safe for concurrent use.
type Sender struct {
	last  uint64 // number
	kept  []kept
	bytes int
}

type kept struct {
	key   string
	offer Message
	data  []byte
	until clocksync.Instant
}

// NewSender makes a sender. Its numbers begin behind from: a later sender of the same member begins with a later one.
func NewSender(from uint64) *Sender { return &Sender{last: from} }

// Offer keeps data, and returns the offer. Bytes with the key of an earlier offer say the same: they are dropped, and
// the earlier offer is returned again. It returns false, and keeps nothing, if data has more than [Most] bytes, or if
// too much is kept already.
func (s *Sender) Offer(now clocksync.Instant, key string, note uint64, data []byte) (Message, bool) {
	s.drop(func(k *kept) bool { return k.until <= now })
	if i := slices.IndexFunc(s.kept, func(k kept) bool { return k.key == key }); i >= 0 {
		return s.kept[i].offer, true
	}
	if n := len(s.kept); len(data) == 0 || len(data) > Most || n == maxOffers || n > 0 && s.bytes+len(data) > maxKept {
		return Message{}, false
	}
	s.last++
	k := kept{key, Message{Kind: Offer, Number: s.last, Size: len(data), Digest: sha256.Sum256(data), Note: note}, data, now.Add(keep)}
	s.kept = append(s.kept, k)
	s.bytes += len(data)
	return k.offer, true
}

// Again returns the offer of a key, if it is kept.
func (s *Sender) Again(now clocksync.Instant, key string) (offer Message, kept bool) {
	for i := range s.kept {
		if k := &s.kept[i]; k.key == key && k.until > now {
			return k.offer, true
		}
	}
	return Message{}, false
}

func (s *Sender) drop(which func(*kept) bool) {
	s.kept = slices.DeleteFunc(s.kept, func(k kept) bool {
		is := which(&k)
		if is {
			s.bytes -= len(k.data)
		}
		return is
	})
}

// Answer answers a Want. Once the receiver has all, the bytes are dropped.
func (s *Sender) Answer(now clocksync.Instant, want *Message) (out []Message) {
	i := slices.IndexFunc(s.kept, func(k kept) bool { return k.offer.Number == want.Number })
	switch {
	case i < 0 && want.At < want.Size:
		return []Message{{Kind: Gone, Number: want.Number}}
	case i < 0:
		return nil
	case want.At >= len(s.kept[i].data):
		s.drop(func(k *kept) bool { return k.offer.Number == want.Number })
		return nil
	}
	k := &s.kept[i]
	for j := range s.kept { // The others wait for this one.
		s.kept[j].until = now.Add(keep)
	}
	for at := want.At; at < len(k.data) && len(out) < want.Count; at += Bytes {
		out = append(out, Message{Kind: Piece, Number: want.Number, At: at, Data: k.data[at:min(at+Bytes, len(k.data))]})
	}
	return out
}

// Receiver fetches what one sender offers, one offer after the other. It is not safe for concurrent use.
type Receiver struct {
	offers []incoming
	had    []uint64 // numbers of the last offers that are here whole
}

type incoming struct {
	offer Message
	data  []byte // nil: no piece is here
	has   []bool // by piece
	at    int    // the first piece that is missing
	asked int    // pieces up to here were asked for
	tries int    // since the last piece
	again clocksync.Instant
}

// Take takes a message of the sender. Whole are the bytes of an offer that has all its pieces now. It returns the
// messages that answer.
func (r *Receiver) Take(now clocksync.Instant, m *Message) (whole []byte, out []Message) {
	switch m.Kind {
	case Offer:
		if slices.Contains(r.had, m.Number) {
			return nil, []Message{hasAll(m)}
		}
		if len(r.offers) == maxOffers || slices.ContainsFunc(r.offers, func(i incoming) bool { return i.offer.Number == m.Number }) {
			return nil, nil
		}
		r.offers = append(r.offers, incoming{offer: *m, has: make([]bool, (m.Size+Bytes-1)/Bytes)})
		if len(r.offers) == 1 {
			return nil, r.ask(now)
		}
	case Piece:
		if len(r.offers) > 0 && r.offers[0].offer.Number == m.Number {
			return r.takePiece(now, m)
		}
	case Gone:
		r.offers = slices.DeleteFunc(r.offers, func(i incoming) bool { return i.offer.Number == m.Number })
		return nil, r.ask(now)
	case Want:
	}
	return nil, nil
}

func hasAll(offer *Message) Message {
	return Message{Kind: Want, Number: offer.Number, Size: offer.Size, At: offer.Size, Count: 1}
}

// ask asks for the pieces of the first offer that are next.
func (r *Receiver) ask(now clocksync.Instant) []Message {
	if len(r.offers) == 0 {
		return nil
	}
	i := &r.offers[0]
	first := max(i.at, i.asked)
	i.asked = min(i.at+window, len(i.has))
	i.again = now.Add(resend)
	if first >= i.asked {
		return nil
	}
	return []Message{{Kind: Want, Number: i.offer.Number, Size: i.offer.Size, At: first * Bytes, Count: i.asked - first}}
}

func (r *Receiver) takePiece(now clocksync.Instant, m *Message) (whole []byte, out []Message) {
	i := &r.offers[0]
	place := m.At / Bytes
	if m.At%Bytes != 0 || m.At >= i.offer.Size || len(m.Data) != min(Bytes, i.offer.Size-m.At) || i.has[place] {
		return nil, nil
	}
	if i.data == nil {
		i.data = make([]byte, i.offer.Size)
	}
	copy(i.data[m.At:], m.Data)
	for i.has[place] = true; i.at < len(i.has) && i.has[i.at]; i.at++ {
	}
	i.tries, i.again = 0, now.Add(resend)
	if i.at < len(i.has) {
		if i.asked-i.at <= window/2 {
			out = r.ask(now)
		}
		return nil, out
	}
	done := *i
	r.offers = slices.Delete(r.offers, 0, 1)
	if r.had = append(r.had, done.offer.Number); len(r.had) > maxOffers {
		r.had = r.had[1:]
	}
	if out = append(r.ask(now), hasAll(&done.offer)); sha256.Sum256(done.data) == done.offer.Digest {
		whole = done.data
	}
	return whole, out
}

// Tick asks again for what has not come in time, and drops an offer whose sender does not answer.
func (r *Receiver) Tick(now clocksync.Instant) []Message {
	if r.Wake() > now {
		return nil
	}
	if i := &r.offers[0]; i.tries < giveUp {
		i.tries, i.asked = i.tries+1, i.at
	} else {
		r.offers = slices.Delete(r.offers, 0, 1)
	}
	return r.ask(now)
}

// Wake is when Tick has something to do.
func (r *Receiver) Wake() clocksync.Instant {
	if len(r.offers) == 0 {
		return clocksync.MaxInstant
	}
	return r.offers[0].again
}

// Notes are those of the offers that are on their way.
func (r *Receiver) Notes() (notes []uint64) {
	for i := range r.offers {
		notes = append(notes, r.offers[i].offer.Note)
	}
	return notes
}

package datacore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// MaxName is how many bytes the name of data has at most.
	MaxName = 128
	// MaxSize is how many bytes data have at most.
	MaxSize = 256 << 20
	// MaxNames is how many names one member writes or holds at most in a phase.
	MaxNames = 1 << 16
	// PieceBytes is how many bytes a piece has at most.
	PieceBytes = 48 << 10
	// maxEntries is how many entries one message has at most.
	maxEntries = 128
	// window is how many pieces of one fetch are asked for at a time.
	window = 8
)

// Peer is one life of a member. A member that comes back is another peer.
type Peer struct {
	Name string // in the roster
	Life uint64 // its incarnation
}

// Digest is the SHA-256 of data.
type Digest = [sha256.Size]byte

// State says what a member has of data.
type State uint8

// The states of data at a member.
const (
	Dropped State = iota // it does not have them any more
	Holds                // it has fetched them
	Wrote                // it keeps them until the phase ends
)

// Entry is what a member has of one name.
type Entry struct {
	Name   string // of the data
	State  State  // of the data at the sender
	Size   int    // in bytes
	Digest Digest // of the bytes
}

// Kind says what a [Message] is.
type Kind uint8

// The kinds of messages.
const (
	// Have: all Entries of the sender's list with a sequence above After, up to Upto.
	Have Kind = iota + 1
	// Heard: the sender has the receiver's list up to the sequence Upto.
	Heard
	// Want: the sender wants Count pieces of Name with Digest from the offset At on.
	Want
	// Piece: Data are the bytes of Name from the offset At on.
	Piece
	// Gone: the sender does not have Name.
	Gone
	// Find: the sender needs Name, and knows no member that has it. So it does not have it itself.
	Find
	// Found: the answer to Find. The only one of Entries is what the sender has of the name.
	Found
	// Ask: the sender asks whether the receiver is at rest; Round is the number of the question.
	Ask
	// Answer: the answer to the question Round. Rests: the sender is at rest. Turns is how often it was not.
	Answer
)

// Message is what members send each other about data.
type Message struct {
	Kind    Kind    // which of the other parts count
	Life    uint64  // of the sender
	Phase   uint64  // that the sender is in
	After   uint64  // of a Have: a sequence
	Upto    uint64  // of a Have and a Heard: a sequence
	Entries []Entry // of a Have, at most 128; of a Found, one
	Name    string  // of a Want, a Piece, a Gone and a Find
	Digest  Digest  // of a Want
	At      int     // of a Want and a Piece: a multiple of the size of pieces
	Count   int     // of a Want, at most 8
	Data    []byte  // of a Piece
	Round   uint64  // of an Ask and an Answer
	Turns   uint64  // of an Answer
	Rests   bool    // of an Answer
}

// Append appends the encoded message to dst.
func (m *Message) Append(dst []byte) []byte {
	dst = append(dst, byte(m.Kind))
	number := func(n uint64) { dst = binary.AppendUvarint(dst, n) }
	size := func(n int) { number(uint64(n)) } //nolint:gosec // Sizes are not negative.
	text := func(s string) { size(len(s)); dst = append(dst, s...) }
	number(m.Life)
	number(m.Phase)
	switch m.Kind {
	case Have, Found:
		number(m.After)
		number(m.Upto)
		size(len(m.Entries))
		for i := range m.Entries {
			e := &m.Entries[i]
			text(e.Name)
			dst = append(dst, byte(e.State))
			size(e.Size)
			dst = append(dst, e.Digest[:]...)
		}
	case Heard:
		number(m.Upto)
	case Want:
		text(m.Name)
		dst = append(dst, m.Digest[:]...)
		size(m.At)
		size(m.Count)
	case Piece:
		text(m.Name)
		size(m.At)
		dst = append(dst, m.Data...)
	case Gone, Find:
		text(m.Name)
	case Ask:
		number(m.Round)
	case Answer:
		number(m.Round)
		number(m.Turns)
		rests := byte(0)
		if m.Rests {
			rests = 1
		}
		dst = append(dst, rests)
	}
	return dst
}

var errDamaged = errors.New("message about data: it is damaged: let all members of the space run the same version")

// Read reads an encoded message. Its Data are a part of data.
func Read(data []byte) (m Message, err error) {
	if len(data) == 0 {
		return m, errDamaged
	}
	r := reader{data: data[1:]}
	m.Kind, m.Life, m.Phase = Kind(data[0]), r.number(math.MaxUint64), r.number(math.MaxUint64)
	switch m.Kind {
	case Have, Found:
		m.After, m.Upto = r.number(math.MaxUint64), r.number(math.MaxUint64)
		n := r.size(maxEntries)
		r.bad = r.bad || m.Upto < m.After || m.Kind == Found && n != 1
		for i := 0; i < n && !r.bad; i++ {
			e := Entry{Name: r.name(), State: State(r.octet(byte(Wrote))), Size: r.size(MaxSize)}
			r.digest(&e.Digest)
			m.Entries = append(m.Entries, e)
		}
	case Heard:
		m.Upto = r.number(math.MaxUint64)
	case Want:
		m.Name = r.name()
		r.digest(&m.Digest)
		m.At, m.Count = r.size(MaxSize), r.size(window)
	case Piece:
		m.Name, m.At = r.name(), r.size(MaxSize)
		m.Data, r.data = r.data, nil
		r.bad = r.bad || len(m.Data) == 0 || len(m.Data) > PieceBytes || m.At%PieceBytes != 0
	case Gone, Find:
		m.Name = r.name()
	case Ask:
		m.Round = r.number(math.MaxUint64)
	case Answer:
		m.Round, m.Turns, m.Rests = r.number(math.MaxUint64), r.number(math.MaxUint64), r.octet(1) == 1
	default:
		return Message{}, fmt.Errorf("message about data: it has the kind %d: let all members of the space run the same version", m.Kind)
	}
	if r.bad || len(r.data) > 0 {
		return Message{}, errDamaged
	}
	return m, nil
}

// reader reads a message. After the first fault it does nothing more.
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

func (r *reader) octet(most byte) byte {
	if r.bad || len(r.data) == 0 || r.data[0] > most {
		r.bad = true
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *reader) name() string {
	n := r.size(MaxName)
	if r.bad || n == 0 || n > len(r.data) {
		r.bad = true
		return ""
	}
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}

func (r *reader) digest(d *Digest) {
	if r.bad || len(r.data) < len(d) {
		r.bad = true
		return
	}
	r.data = r.data[copy(d[:], r.data):]
}

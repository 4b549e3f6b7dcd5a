package callcore

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// Limits of a message.
const (
	MaxName   = 128      // bytes of a name of a member or a function
	MaxBody   = 16 << 20 // bytes of an argument or a result
	MaxStages = 32       // functions of a chain
	MaxServed = 256      // functions that a member serves
	MaxDepth  = 32       // calls within calls
)

// Peer is one life of a member.
type Peer struct {
	Name string // of the member
	Life uint64 // its incarnation
}

// Stage is one function of a chain. The result of each is the argument of the next one.
type Stage struct {
	Name        string  // of the function
	Weight, Loc float64 // for the order at the server
}

// Kind says what a [Message] is.
type Kind uint8

// The kinds of messages.
const (
	Find   Kind = iota + 1 // asks which functions the receiver serves
	Serves                 // tells it: Names
	Ask                    // a call: Stages[Stage] with Body
	Got                    // the receiver of an Ask has it
	Full                   // the receiver of an Ask has no place for it
	Answer                 // to the origin: the result or, with Failed, the text of the error
	Moved                  // to the origin: the server At has the stage
	Done                   // of the origin: the receiver forgets the stage
	Poll                   // of the origin: does the receiver have the stage
	Gone                   // it does not
	Busy                   // the server of a marked Ask is at its upper mark
	Free                   // it keeps Load places for calls of Names
	Pass                   // the caller needs no places for calls of Names
	last   = Pass
)

// Message is what two members exchange. Each may be lost, doubled, late and out of order.
type Message struct {
	Kind     Kind     // what it is
	From, To Peer     // sender and receiver
	Origin   Peer     // the member that made the call
	Number   uint64   // of the call, among its origin's calls
	Try      int      // rises each time the call begins again
	Stage    int      // place in Stages
	Depth    int      // of an Ask: calls within calls
	Stages   []Stage  // of an Ask: the whole chain
	Failed   bool     // of an Answer: Body is the text of an error
	Marked   bool     // of an Ask: the server may answer with a Busy
	At       Peer     // of a Moved
	Load     int      // of a Got, a Busy and an Answer: calls at the server; of an Ask: calls behind it that wait for a place; of a Free: places
	Names    []string // of a Serves, a Free and a Pass: functions
	Body     []byte   // of an Ask and an Answer
}

// Key names what a message brings. A message that is sent again has the same key.
func (m *Message) Key() string {
	return "call " + strconv.Itoa(int(m.Kind)) + " " + m.Origin.Name + "#" + strconv.FormatUint(m.Origin.Life, 36) + " " +
		strconv.FormatUint(m.Number, 36) + " " + strconv.Itoa(m.Try) + " " + strconv.Itoa(m.Stage)
}

// Append appends the encoded message to dst.
func (m *Message) Append(dst []byte) []byte {
	dst = append(dst, byte(m.Kind))
	dst = appendPeer(appendPeer(appendPeer(dst, m.From), m.To), m.Origin)
	dst = binary.AppendUvarint(dst, m.Number)
	for _, n := range []int{m.Try, m.Stage, m.Depth} {
		dst = appendSize(dst, n)
	}
	dst = appendSize(dst, len(m.Stages))
	for _, s := range m.Stages {
		dst = appendText(dst, s.Name)
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(s.Weight))
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(s.Loc))
	}
	flag, at := byte(0), m.At // Releases before ignore them in other kinds than an Answer and a Moved.
	if m.Failed || m.Marked {
		flag = 1
	}
	if m.Kind != Moved {
		at = Peer{Life: uint64(max(m.Load, 0))} //nolint:gosec // It is not negative.
	}
	dst = appendPeer(append(dst, flag), at)
	dst = appendSize(dst, len(m.Names))
	for _, n := range m.Names {
		dst = appendText(dst, n)
	}
	return append(dst, m.Body...)
}

func appendSize(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(max(n, 0))) } //nolint:gosec // It is not negative.

func appendText(dst []byte, text string) []byte { return append(appendSize(dst, len(text)), text...) }

func appendPeer(dst []byte, p Peer) []byte {
	return binary.AppendUvarint(appendText(dst, p.Name), p.Life)
}

var errMessage = errors.New("message about calls: it is damaged: let all members of the space run the same version")

// Names are texts that messages had. They are the same in most messages, which then need no memory for them.
type Names map[string]string

// maxTexts bounds Names: more than these are forgotten.
const maxTexts = 4096

// Read reads an encoded message. Its Body is a part of data. A nil n keeps no texts.
func (n Names) Read(data []byte) (m Message, err error) {
	r := reader{data: data, names: n}
	m.Kind = Kind(r.byte())
	m.From, m.To, m.Origin = r.peer(), r.peer(), r.peer()
	m.Number = r.number(math.MaxUint64)
	m.Try, m.Stage, m.Depth = r.size(math.MaxInt32), r.size(MaxStages), r.size(MaxDepth)
	for range r.size(MaxStages) {
		m.Stages = append(m.Stages, Stage{r.text(), r.float(), r.float()})
	}
	flag, at := r.byte(), r.peer()
	m.Failed, m.Marked = flag == 1 && m.Kind != Ask, flag == 1 && m.Kind == Ask
	if m.Kind == Moved {
		m.At = at
	} else {
		m.Load = int(min(at.Life, MaxHeld)) //nolint:gosec // It is at most that.
	}
	for range r.size(MaxServed) {
		m.Names = append(m.Names, r.text())
	}
	m.Body = r.data
	if r.bad || flag > 1 || m.Kind < Find || m.Kind > last || len(m.Body) > MaxBody || m.Kind == Ask && m.Stage >= len(m.Stages) {
		return Message{}, errMessage
	}
	return m, nil
}

// reader reads parts of a message. After the first fault it does nothing more.
type reader struct {
	data  []byte
	bad   bool
	names Names
}

func (r *reader) takeBytes(n int) []byte {
	if r.bad || n > len(r.data) {
		r.bad, r.data = true, nil
		return nil
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part
}

func (r *reader) byte() byte {
	if b := r.takeBytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) float() float64 {
	if b := r.takeBytes(8); b != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.data)
	if r.bad || n <= 0 || v > most {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) size(most int) int { return int(r.number(uint64(most))) } //nolint:gosec // It is at most that.

func (r *reader) text() string {
	part := r.takeBytes(r.size(MaxName))
	if known, ok := r.names[string(part)]; ok {
		return known
	}
	text := string(part)
	if r.names != nil {
		if len(r.names) == maxTexts {
			clear(r.names)
		}
		r.names[text] = text
	}
	return text
}

func (r *reader) peer() Peer { return Peer{r.text(), r.number(math.MaxUint64)} }

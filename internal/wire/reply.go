package wire

import (
	"errors"
	"fmt"
)

// An answer to a question is JSON of any size, in parts that a server takes: a
// byte that says whether more follow, and then the text.
const (
	lastPart = '.'
	morePart = '+'

	// PartBytes is how much text a part has at most.
	PartBytes = 32 << 10
	// MaxReplyBytes is how long the answer is that a reader takes at most.
	MaxReplyBytes = 64 << 20
)

// AppendPart appends the next part of an answer to dst and returns what remains of
// the text; last says that nothing does. An empty text is one part.
func AppendPart(dst, text []byte) (part, rest []byte, last bool) {
	if len(text) <= PartBytes {
		return append(append(dst, lastPart), text...), nil, true
	}
	return append(append(dst, morePart), text[:PartBytes]...), text[PartBytes:], false
}

// ErrNoPart is returned by [Reply.Add] for a message without the mark of a part.
var ErrNoPart = errors.New("a message is no part of an answer")

// Reply puts the parts of an answer together. They are in order, as long as none
// is lost: then the text is no JSON.
type Reply struct{ text []byte }

// Add takes the next part. Done is true after the last one.
func (r *Reply) Add(part []byte) (done bool, err error) {
	switch {
	case len(part) == 0 || part[0] != lastPart && part[0] != morePart:
		return false, ErrNoPart
	case len(r.text)+len(part)-1 > MaxReplyBytes:
		return false, fmt.Errorf("the answer is longer than %d bytes", MaxReplyBytes)
	}
	r.text = append(r.text, part[1:]...)
	return part[0] == lastPart, nil
}

// Text is what the parts contain so far.
func (r *Reply) Text() []byte { return r.text }

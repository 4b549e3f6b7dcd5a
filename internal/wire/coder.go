package wire

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// coder walks the fields of a message in order and either appends them to a frame or reads them
// from one, so that the layout of a message is written down once. The first fault sticks: what
// follows it does nothing.
type coder struct {
	kind    Kind
	writing bool
	start   int    // writing: where the frame begins in buf
	buf     []byte // writing: all so far; reading: the rest
	err     *FrameError
}

func newWriter(dst []byte, kind Kind) coder {
	return coder{kind: kind, writing: true, start: len(dst), buf: append(dst, Version, byte(kind))}
}

func newReader(frame []byte, kind Kind) (c coder) {
	c.read(frame, kind)
	return c
}

// read makes a new coder a reader, in its place, since copying one takes time.
func (c *coder) read(frame []byte, kind Kind) {
	c.kind = kind
	switch got, fault := kindOf(frame); {
	case fault != nil:
		c.err = fault
	case got != kind:
		c.err = &FrameError{Kind: got, Field: "kind", Reason: "a frame of kind " + kind.String() + " was expected"}
	default:
		c.buf = frame[2:]
	}
}

// finishFrame checks the size of a written frame, and that a read one has ended.
func (c *coder) finishFrame() error {
	switch {
	case c.err != nil:
	case c.writing && c.size() > MaxFrameBytes:
		c.keepFault("size", strconv.Itoa(c.size())+" bytes, at most "+strconv.Itoa(MaxFrameBytes)+" fit a frame")
	case !c.writing && len(c.buf) > 0:
		c.keepFault("end", strconv.Itoa(len(c.buf))+" bytes follow the last field")
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

func (c *coder) size() int { return len(c.buf) - c.start }

// keepFault keeps the first fault.
func (c *coder) keepFault(field, reason string) {
	if c.err == nil {
		c.err = &FrameError{Kind: c.kind, Field: field, Reason: reason}
	}
}

// failRead keeps the fault of a msgp primitive.
func (c *coder) failRead(field, want string, err error) {
	if errors.Is(err, msgp.ErrShortBytes) {
		c.keepFault(field, "the frame ends inside it")
		return
	}
	c.keepFault(field, "the value is not "+want)
}

// needTrue fails with the reason unless ok.
func (c *coder) needTrue(ok bool, field, reason string) {
	if !ok {
		c.keepFault(field, reason)
	}
}

const oneByte = 0x80 // Numbers below it are one byte in MessagePack, itself.

func (c *coder) codeUint(field string, v *uint64) {
	switch {
	case c.err != nil:
	case c.writing:
		c.buf = msgp.AppendUint64(c.buf, *v)
	case len(c.buf) > 0 && c.buf[0] < oneByte:
		*v, c.buf = uint64(c.buf[0]), c.buf[1:]
	default:
		got, rest, err := msgp.ReadUint64Bytes(c.buf)
		if err != nil {
			c.failRead(field, "an unsigned 64-bit integer", err)
			return
		}
		*v, c.buf = got, rest
	}
}

func (c *coder) codeInt(field string, v *int64) {
	switch {
	case c.err != nil:
	case c.writing:
		c.buf = msgp.AppendInt64(c.buf, *v)
	case len(c.buf) > 0 && c.buf[0] < oneByte:
		*v, c.buf = int64(c.buf[0]), c.buf[1:]
	default:
		got, rest, err := msgp.ReadInt64Bytes(c.buf)
		if err != nil {
			c.failRead(field, "a signed 64-bit integer", err)
			return
		}
		*v, c.buf = got, rest
	}
}

// codeSmall is a number from low to high: the ordinal of a type, a set of flags.
func (c *coder) codeSmall(field string, v *uint8, low, high uint8) {
	wide := uint64(*v)
	c.codeUint(field, &wide)
	if c.err == nil && (wide < uint64(low) || wide > uint64(high)) {
		c.keepFault(field, strconv.FormatUint(wide, 10)+" is not "+strconv.Itoa(int(low))+" to "+strconv.Itoa(int(high)))
	}
	if !c.writing && c.err == nil {
		*v = uint8(wide)
	}
}

func (c *coder) codeBool(field string, v *bool) {
	switch {
	case c.err != nil:
	case c.writing:
		c.buf = msgp.AppendBool(c.buf, *v)
	default:
		got, rest, err := msgp.ReadBoolBytes(c.buf)
		if err != nil {
			c.failRead(field, "true or false", err)
			return
		}
		*v, c.buf = got, rest
	}
}

func (c *coder) codeFloat(field string, v *float64) {
	switch {
	case c.err != nil:
	case c.writing:
		c.buf = msgp.AppendFloat(c.buf, *v)
	default:
		got, rest, err := msgp.ReadFloat64Bytes(c.buf)
		if err != nil {
			c.failRead(field, "a float", err)
			return
		}
		*v, c.buf = got, rest
	}
}

// codeText is UTF-8 of at most limit bytes. Reading leaves *v alone where it holds
// the same text already, which spares the copy.
func (c *coder) codeText(field string, v *string, limit int) {
	switch {
	case c.err != nil:
	case c.writing:
		if len(*v) > limit {
			c.keepFault(field, tooLong(len(*v), limit))
		}
		c.needTrue(utf8.ValidString(*v), field, notUTF8)
		c.buf = msgp.AppendString(c.buf, *v)
	default:
		if got, ok := c.rawText(field, limit); ok && *v != string(got) {
			*v = string(got)
		}
	}
}

// rawText reads a text without copying it out of the frame.
func (c *coder) rawText(field string, limit int) ([]byte, bool) {
	got, rest, err := msgp.ReadStringZC(c.buf)
	switch {
	case err != nil:
		c.failRead(field, "a text", err)
	case len(got) > limit:
		c.keepFault(field, tooLong(len(got), limit))
	case !utf8.Valid(got):
		c.keepFault(field, notUTF8)
	default:
		c.buf = rest
		return got, true
	}
	return nil, false
}

// codeToken is the name of something that may stand in a subject.
func (c *coder) codeToken(field string, v *string) {
	c.codeText(field, v, MaxTokenBytes)
	if c.err == nil && !isToken(*v) {
		c.keepFault(field, strconv.Quote(*v)+": "+tokenRule)
	}
}

// codeReason is a text for people: a text that is too long is truncated, not refused, since
// losing the refusal it explains would help no one.
func (c *coder) codeReason(field string, v *string) {
	if !c.writing {
		c.codeText(field, v, MaxReasonByte)
		return
	}
	truncated := strings.ToValidUTF8((*v)[:min(len(*v), MaxReasonByte)], "")
	c.codeText(field, &truncated, MaxReasonByte)
}

// codeBlob is bytes without a meaning here; reading copies them.
func (c *coder) codeBlob(field string, v *[]byte, limit int) {
	switch {
	case c.err != nil:
	case c.writing && len(*v) > limit:
		c.keepFault(field, tooLong(len(*v), limit))
	case c.writing:
		c.buf = msgp.AppendBytes(c.buf, *v)
	default:
		got, rest, err := msgp.ReadBytesZC(c.buf)
		switch {
		case err != nil:
			c.failRead(field, "a string of bytes", err)
		case len(got) > limit:
			c.keepFault(field, tooLong(len(got), limit))
		default:
			*v, c.buf = append([]byte(nil), got...), rest
		}
	}
}

const notUTF8 = "the text is not UTF-8"

func tooLong(n, limit int) string {
	return strconv.Itoa(n) + " bytes, at most " + strconv.Itoa(limit) + " are allowed"
}

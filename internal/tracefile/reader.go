package tracefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// reader reads JSON (RFC 8259) from one line. What it returns are parts of the line,
// which is not to be changed, or of decoded.
type reader struct {
	line    []byte
	source  bytes.Reader
	decoder jsontext.Decoder
	// decoded holds the texts of the line that have escapes.
	decoded []byte
}

// lenient leaves duplicate keys to the Scanner: inside of values they do not matter.
var lenient = jsontext.AllowDuplicateNames(true)

func (r *reader) begin(line []byte) {
	r.line, r.decoded = line, r.decoded[:0]
	r.source.Reset(line)
	r.decoder.Reset(&r.source, lenient)
}

// next is where what comes next begins.
func (r *reader) next() int {
	at := int(r.decoder.InputOffset())
	for at < len(r.line) && strings.IndexByte(" \t\r\n,:", r.line[at]) >= 0 {
		at++
	}
	return at
}

// token passes over what begins or ends an object or an array.
func (r *reader) token() error {
	_, err := r.decoder.ReadToken()
	return r.fault(err)
}

// raw reads a value that is no object or array, or a whole one.
func (r *reader) raw() ([]byte, error) {
	v, err := r.decoder.ReadValue()
	end := int(r.decoder.InputOffset())
	return r.line[end-len(v) : end], r.fault(err) // The decoder's own copy does not last.
}

// fault tells of an error of the decoder where it is in the line.
func (r *reader) fault(err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == nil:
		return nil
	case ok && !errors.Is(err, io.ErrUnexpectedEOF):
		return r.errorf(min(int(syntax.ByteOffset), len(r.line)), "%s", syntax.Err)
	default:
		return r.errorf(len(r.line), "the line ends too early: write each object on one line, as jq -c does")
	}
}

// begins refuses a line that does not begin as an object, and says what it looks like.
func (r *reader) begins() error {
	at := r.next()
	switch text := r.line[min(at, len(r.line)):]; {
	case len(text) == 0:
		return r.errorf(at, "the line is empty: it has to be an object")
	case text[0] == '{':
		return nil
	case jsontext.Value(text).IsValid(lenient):
		return r.want('{', "the line", "an object")
	case bytes.ContainsAny(text, ",;\t") && !bytes.ContainsAny(text, "{[:"):
		return r.errorf(at, "the line is not JSON; it looks like CSV: make an object of each line")
	default:
		return r.errorf(at, "the line is not JSON: each line has to be an object")
	}
}

// kinds are what may come next, for messages.
var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// want refuses the value of a key if it is of another kind.
func (r *reader) want(kind jsontext.Kind, key, is string) error {
	got := r.decoder.PeekKind()
	if got == kind {
		return nil
	}
	if kinds[got] == "" { // What is no value the decoder refuses.
		return r.token()
	}
	return r.errorf(r.next(), "%s is %s: it is %s", key, kinds[got], is)
}

// object reads an object, which is the next to come; pair reads the value of each key.
func (r *reader) object(pair func(name []byte, at int) error) error {
	if err := r.token(); err != nil {
		return err
	}
	for r.decoder.PeekKind() != '}' {
		at := r.next()
		name, err := r.quoted()
		if err != nil {
			return err
		}
		if err := pair(name, at); err != nil {
			return err
		}
	}
	return r.token()
}

// value reads any value.
func (r *reader) value() (Datum, error) {
	kind := r.decoder.PeekKind()
	if kind == '{' || kind == '[' {
		text, err := r.nested()
		if kind == '{' {
			return Datum{Kind: Nested}, err
		}
		return Datum{Array, text}, err
	}
	raw, err := r.raw()
	if err != nil {
		return Datum{}, err
	}
	switch raw[0] {
	case '"':
		text, err := r.unquote(raw)
		return Datum{Text, text}, err
	case 't':
		return Datum{Kind: True}, nil
	case 'f':
		return Datum{Kind: False}, nil
	case 'n':
		return Datum{Kind: Null}, nil
	}
	return Datum{Number, raw}, nil
}

// nested reads an array or an object.
func (r *reader) nested() ([]byte, error) {
	at, outside := r.next(), r.decoder.StackDepth()
	for {
		var err error
		switch r.decoder.PeekKind() {
		case '{', '[':
			if r.decoder.StackDepth() == outside+MaxNesting {
				return nil, r.errorf(r.next(), "values are nested deeper than %d", MaxNesting)
			}
			err = r.token()
		case '}', ']':
			err = r.token()
		default:
			_, err = r.raw()
		}
		if err != nil {
			return nil, err
		}
		if r.decoder.StackDepth() == outside {
			return r.line[at:r.decoder.InputOffset()], nil
		}
	}
}

// integer reads the whole number that is the value of a key.
func (r *reader) integer(key string) (int64, error) {
	if err := r.want('0', key, "a whole number"); err != nil {
		return 0, err
	}
	at := r.next()
	raw, err := r.raw()
	if err != nil {
		return 0, err
	}
	if n, whole := small(raw); whole {
		return n, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case bytes.ContainsAny(raw, ".eE"):
		return 0, r.errorf(at, "%s is written with a fraction or an exponent: it is a whole number", key)
	case err != nil:
		return 0, r.errorf(at, "%s is out of the range of 64-bit integers", key)
	}
	return n, nil
}

// text reads the string that is the value of a key.
func (r *reader) text(key string) ([]byte, error) {
	if err := r.want('"', key, "a string"); err != nil {
		return nil, err
	}
	return r.quoted()
}

// quoted reads a string, which is the next to come.
func (r *reader) quoted() ([]byte, error) {
	raw, err := r.raw()
	if err != nil {
		return nil, err
	}
	return r.unquote(raw)
}

// unquote takes the quotes and escapes out of a string.
func (r *reader) unquote(raw []byte) (text []byte, err error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	from := len(r.decoded)
	r.decoded, err = jsontext.AppendUnquote(r.decoded, raw)
	return r.decoded[from:], err
}

// errorf makes an Error at an offset.
func (r *reader) errorf(offset int, format string, args ...any) *Error {
	return &Error{Column: 1 + utf8.RuneCount(r.line[:offset]), Reason: fmt.Sprintf(format, args...)}
}

// excerpt quotes a text of the line for a message.
func excerpt(text []byte) string {
	const most = 40
	if utf8.RuneCount(text) <= most {
		return strconv.Quote(string(text))
	}
	return strconv.Quote(string([]rune(string(text))[:most])) + "..."
}

package tracefile

import (
	"fmt"
	"math"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// reader reads JSON (RFC 8259) from one line.
type reader struct {
	line []byte
	pos  int
	// decoded holds the texts of the line that have escapes.
	decoded []byte
}

func (r *reader) begin(line []byte) { r.line, r.pos, r.decoded = line, 0, r.decoded[:0] }

// skip passes over white space and returns where it ends.
func (r *reader) skip() int {
	for r.pos < len(r.line) {
		switch r.line[r.pos] {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return r.pos
		}
	}
	return r.pos
}

// peek returns the next byte, 0 at the end of the line.
func (r *reader) peek() byte {
	if r.pos < len(r.line) {
		return r.line[r.pos]
	}
	return 0
}

// literal passes over a word if it comes next. That the word ends there is seen
// by what must follow it.
func (r *reader) literal(word string) bool {
	end := r.pos + len(word)
	if end > len(r.line) || string(r.line[r.pos:end]) != word {
		return false
	}
	r.pos = end
	return true
}

// what names what comes next, for messages.
func (r *reader) what() string {
	if r.pos >= len(r.line) {
		return "the end of the line"
	}
	switch c := r.line[r.pos]; c {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "a number"
	default:
		for _, word := range []string{"null", "true", "false"} {
			if r.literal(word) {
				r.pos -= len(word)
				return word
			}
		}
		if c, n := utf8.DecodeRune(r.line[r.pos:]); (c != utf8.RuneError || n > 1) && unicode.IsPrint(c) {
			return fmt.Sprintf("%q", c)
		}
		return fmt.Sprintf("the byte 0x%02x", c)
	}
}

// object reads an object; pair reads the value of each key.
func (r *reader) object(pair func(name []byte, at int) error) error {
	r.skip()
	if r.peek() != '{' {
		return r.errorf(r.pos, "%s where an object begins", r.what())
	}
	r.pos++
	if r.skip(); r.peek() == '}' {
		r.pos++
		return nil
	}
	for {
		at := r.skip()
		if r.peek() != '"' {
			return r.errorf(at, "%s where a key begins", r.what())
		}
		name, err := r.quoted()
		if err != nil {
			return err
		}
		if r.skip(); r.peek() != ':' {
			return r.errorf(r.pos, "%s where the colon after a key stands", r.what())
		}
		r.pos++
		r.skip()
		if err := pair(name, at); err != nil {
			return err
		}
		if done, err := r.next('}', "object"); done || err != nil {
			return err
		}
	}
}

// next passes over the comma between two values, or over what ends them.
func (r *reader) next(end byte, of string) (done bool, err error) {
	r.skip()
	switch r.peek() {
	case ',':
		r.pos++
		return false, nil
	case end:
		r.pos++
		return true, nil
	}
	return false, r.errorf(r.pos, "%s where a comma or the end of the %s stands", r.what(), of)
}

// value reads any value.
func (r *reader) value(depth int) (Datum, error) {
	at := r.pos
	switch r.peek() {
	case '"':
		text, err := r.quoted()
		return Datum{Text, text}, err
	case '{', '[':
		if depth == MaxNesting {
			return Datum{}, r.errorf(at, "values are nested deeper than %d", MaxNesting)
		}
		d, err := Datum{Kind: Nested}, r.nested(depth+1)
		if r.line[at] == '[' {
			d = Datum{Array, r.line[at:r.pos]}
		}
		return d, err
	case 't':
		if r.literal("true") {
			return Datum{Kind: True}, nil
		}
	case 'f':
		if r.literal("false") {
			return Datum{Kind: False}, nil
		}
	case 'n':
		if r.literal("null") {
			return Datum{Kind: Null}, nil
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if err := r.number(); err != nil {
			return Datum{}, err
		}
		return Datum{Number, r.line[at:r.pos]}, nil
	}
	return Datum{}, r.errorf(at, "%s where a value begins", r.what())
}

// nested passes over an array or an object.
func (r *reader) nested(depth int) error {
	if r.peek() == '{' {
		return r.object(func([]byte, int) error { _, err := r.value(depth); return err })
	}
	r.pos++
	if r.skip(); r.peek() == ']' {
		r.pos++
		return nil
	}
	for {
		r.skip()
		if _, err := r.value(depth); err != nil {
			return err
		}
		if done, err := r.next(']', "array"); done || err != nil {
			return err
		}
	}
}

// integer reads the whole number that is the value of a key.
func (r *reader) integer(key string) (int64, error) {
	at := r.pos
	minus := r.peek() == '-'
	if minus {
		r.pos++
	}
	first := r.pos
	var n uint64
	for c := r.peek(); digit(c); c = r.peek() {
		if n > math.MaxUint64/10-1 { // The next step could wrap around.
			return 0, r.errorf(at, "%s is out of the range of 64-bit integers", key)
		}
		n = 10*n + uint64(c-'0')
		r.pos++
	}
	switch c := r.peek(); {
	case r.pos == first && minus:
		return 0, r.errorf(at, "%s is a minus sign without digits", key)
	case r.pos == first:
		return 0, r.errorf(at, "%s is %s: it is a whole number", key, r.what())
	case r.line[first] == '0' && r.pos > first+1:
		return 0, r.errorf(first, "%s begins with 0", key)
	case c == '.' || c == 'e' || c == 'E':
		return 0, r.errorf(at, "%s is written with a fraction or an exponent: it is a whole number", key)
	case minus && n <= 1<<63:
		return -int64(n), nil
	case !minus && n < 1<<63:
		return int64(n), nil
	}
	return 0, r.errorf(at, "%s is out of the range of 64-bit integers", key)
}

// number passes over a number.
func (r *reader) number() error {
	at := r.pos
	if r.peek() == '-' {
		r.pos++
	}
	whole := r.digits()
	good := whole == 1 || whole > 1 && r.line[r.pos-whole] != '0'
	if r.peek() == '.' {
		r.pos++
		good = r.digits() > 0 && good
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.pos++
		if c := r.peek(); c == '+' || c == '-' {
			r.pos++
		}
		good = r.digits() > 0 && good
	}
	if !good {
		return r.errorf(at, "%s is not a number", excerpt(r.line[at:r.pos]))
	}
	return nil
}

func (r *reader) digits() int {
	at := r.pos
	for digit(r.peek()) {
		r.pos++
	}
	return r.pos - at
}

// excerpt quotes a text of the line for a message.
func excerpt(text []byte) string {
	const most = 40
	if utf8.RuneCount(text) <= most {
		return strconv.Quote(string(text))
	}
	return strconv.Quote(string([]rune(string(text))[:most])) + "..."
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// text reads the string that is the value of a key.
func (r *reader) text(key string) ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.errorf(r.pos, "%s is %s: it is a string", key, r.what())
	}
	return r.quoted()
}

// quoted reads a string, which is the next to come.
func (r *reader) quoted() ([]byte, error) {
	at := r.pos
	r.pos++
	from := r.pos
	for r.pos < len(r.line) {
		switch c := r.line[r.pos]; {
		case c == '"':
			text := r.line[from:r.pos]
			r.pos++
			return text, nil
		case c == '\\':
			return r.escaped(from)
		case c < ' ' || c >= utf8.RuneSelf:
			if err := r.char(); err != nil {
				return nil, err
			}
		default:
			r.pos++
		}
	}
	return nil, r.errorf(at, "the string does not end")
}

// char passes over one character of a string that is not plain ASCII.
func (r *reader) char() error {
	c, n := utf8.DecodeRune(r.line[r.pos:])
	switch {
	case c < ' ':
		return r.errorf(r.pos, "the control character 0x%02x in a string: write \\u%04x", c, c)
	case c == utf8.RuneError && n == 1:
		return r.errorf(r.pos, "%s is not UTF-8", r.what())
	}
	r.pos += n
	return nil
}

// escaped reads the rest of a string whose first escape comes next.
func (r *reader) escaped(from int) ([]byte, error) {
	at, first := from-1, len(r.decoded)
	r.decoded = append(r.decoded, r.line[from:r.pos]...)
	for r.pos < len(r.line) {
		switch r.line[r.pos] {
		case '"':
			r.pos++
			return r.decoded[first:len(r.decoded):len(r.decoded)], nil
		case '\\':
			c, err := r.escape()
			if err != nil {
				return nil, err
			}
			r.decoded = utf8.AppendRune(r.decoded, c)
		default:
			from := r.pos
			if err := r.char(); err != nil {
				return nil, err
			}
			r.decoded = append(r.decoded, r.line[from:r.pos]...)
		}
	}
	return nil, r.errorf(at, "the string does not end")
}

// escape reads one escape, or two that are a pair of surrogates.
func (r *reader) escape() (rune, error) {
	at := r.pos
	r.pos++
	c := r.peek()
	r.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return r.unicode(at)
	}
	return 0, r.errorf(at, "an escape that JSON does not have")
}

// unicode reads what follows a backslash and u.
func (r *reader) unicode(at int) (rune, error) {
	c, ok := r.hex()
	if ok && utf16.IsSurrogate(c) {
		second := rune(0)
		if r.literal(`\u`) {
			second, ok = r.hex()
		}
		c = utf16.DecodeRune(c, second)
		if ok && c == unicode.ReplacementChar {
			return 0, r.errorf(at, "an escape that is one half of a surrogate pair")
		}
	}
	if !ok {
		return 0, r.errorf(at, "\\u without four hexadecimal digits")
	}
	return c, nil
}

// hex reads four hexadecimal digits.
func (r *reader) hex() (rune, bool) {
	if len(r.line)-r.pos < 4 {
		return 0, false
	}
	var n rune
	for _, c := range r.line[r.pos : r.pos+4] {
		switch {
		case digit(c):
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	r.pos += 4
	return n, true
}

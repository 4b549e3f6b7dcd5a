package tracefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const chunk = 64 << 10

// mark is the byte order mark that some editors put first.
var mark = []byte("\xef\xbb\xbf")

// Lines splits an input into lines. It holds one line and what was read beyond it.
type Lines struct {
	r      io.Reader
	buffer []byte
	rest   []byte // of buffer, not yet handed out
	number int
	err    error // of r
}

// NewLines returns a Lines that reads r.
func NewLines(r io.Reader) *Lines { return &Lines{r: r, buffer: make([]byte, chunk)} }

// Number is the number of the line that Next returned last, from 1.
func (l *Lines) Number() int { return l.number }

// Next returns the next line that is not empty, without its end; it lasts until
// the next call. The error is io.EOF after the last line, an *Error for a line
// that is too long, which is passed over, or that of the reader.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.split()
		if l.number == 1 {
			line = bytes.TrimPrefix(line, mark)
		}
		if err != nil || len(bytes.TrimLeft(line, " \t\r")) > 0 {
			return line, err
		}
	}
}

// split returns the next line. The last one need not end in a newline.
func (l *Lines) split() ([]byte, error) {
	seen := 0
	for {
		if i := bytes.IndexByte(l.rest[seen:], '\n'); i >= 0 {
			return l.take(seen + i)
		}
		if seen = len(l.rest); seen > MaxLine+1 { // A CR more than a whole line.
			return l.pass()
		}
		switch {
		case l.err == nil:
			l.fill()
		case errors.Is(l.err, io.EOF) && len(l.rest) > 0:
			return l.take(len(l.rest))
		default:
			return nil, l.err
		}
	}
}

// take hands out n bytes and drops the newline after them.
func (l *Lines) take(n int) ([]byte, error) {
	l.number++
	line := bytes.TrimSuffix(l.rest[:n], []byte("\r"))
	l.rest = l.rest[min(n+1, len(l.rest)):]
	if len(line) > MaxLine {
		return nil, tooLong()
	}
	return line, nil
}

// pass drops what is left of a line that is too long.
func (l *Lines) pass() ([]byte, error) {
	l.number++
	for {
		if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
			l.rest = l.rest[i+1:]
			return nil, tooLong()
		}
		l.rest = nil
		if l.err != nil {
			return nil, tooLong()
		}
		l.fill()
	}
}

func tooLong() *Error {
	return &Error{Reason: fmt.Sprintf("the line is longer than %d bytes", MaxLine)}
}

// maxEmptyReads is how often a reader may return nothing, as in package bufio.
const maxEmptyReads = 100

// fill reads more behind the rest.
func (l *Lines) fill() {
	if len(l.rest) == len(l.buffer) {
		l.buffer = make([]byte, 2*len(l.buffer))
	}
	n := copy(l.buffer, l.rest)
	for range maxEmptyReads {
		var m int
		if m, l.err = l.r.Read(l.buffer[n:]); m > 0 || l.err != nil {
			l.rest = l.buffer[:n+m]
			return
		}
	}
	l.rest, l.err = l.buffer[:n], io.ErrNoProgress
}

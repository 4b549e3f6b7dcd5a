package tsplib

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxBytes = 64 << 20 // of a file; a matrix of MaxN cities is smaller
	maxLine  = 4096     // of a header line, in bytes
	maxToken = 64       // of a number in a section, in bytes

	maxComment = 16 << 10 // of all COMMENT lines, in bytes
)

// scanner reads headers by line and sections by number, so that a section may
// be wrapped at any line length, and never holds more than one line.
type scanner struct {
	r    *bufio.Reader
	name string
	line int // of the byte read last, from 1
	left int // bytes that may still be read
	at   int // line on which the last line or token began
}

func newScanner(r io.Reader, name string) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 64<<10), name: name, line: 1, left: maxBytes, at: 1}
}

// errorf makes an error at the line where the last line or token began.
func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("tsplib: %s:%d: %w", s.name, s.at, fmt.Errorf(format, args...))
}

// next returns the next byte, io.EOF at the end, or an error for the user.
func (s *scanner) next() (byte, error) {
	if s.left == 0 {
		s.at = s.line
		return 0, s.errorf("file is larger than %d MiB: no instance of up to %d cities needs that", maxBytes>>20, MaxN)
	}
	b, err := s.r.ReadByte()
	switch {
	case errors.Is(err, io.EOF):
		return 0, io.EOF
	case err != nil:
		s.at = s.line
		return 0, s.errorf("cannot read: %w", err)
	case b < ' ' && b != '\n' && b != '\t' && b != '\r' && b != '\f' && b != '\v':
		s.at = s.line
		return 0, s.errorf("control byte 0x%02x: this is not a TSPLIB text file", b)
	}
	s.left--
	if b == '\n' {
		s.line++
	}
	return b, nil
}

// header returns the next line that is not blank, trimmed, or io.EOF.
func (s *scanner) header() (string, error) {
	for {
		s.at = s.line
		line, err := s.rest()
		if line != "" || err != nil {
			return line, err
		}
	}
}

// rest returns what remains of the current line, trimmed. It returns io.EOF
// only when there is nothing.
func (s *scanner) rest() (string, error) {
	var line []byte
	for {
		b, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimSpace(string(line)), nil
		case err != nil:
			return "", err
		case b == '\n':
			return strings.TrimSpace(string(line)), nil
		case len(line) == maxLine:
			return "", s.errorf("line is longer than %d bytes: only numbers of a section may be longer", maxLine)
		}
		line = append(line, b)
	}
}

// token returns the next word of a section, or io.EOF.
func (s *scanner) token() (string, error) {
	var word [maxToken]byte
	n := 0
	for {
		b, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return string(word[:n]), nil
		case err != nil:
			return "", err
		case b == ' ' || b < ' ':
			if n == 0 {
				continue
			}
			s.unread(b)
			return string(word[:n]), nil
		case n == maxToken:
			return "", s.errorf("%s... is longer than %d bytes: give a plain number", quote(string(word[:n])), maxToken)
		}
		if n == 0 {
			s.at = s.line
		}
		word[n] = b
		n++
	}
}

// unread gives back the byte that next returned last.
func (s *scanner) unread(b byte) {
	if err := s.r.UnreadByte(); err != nil {
		panic(fmt.Sprintf("tsplib: unread after read: %v", err))
	}
	s.left++
	if b == '\n' {
		s.line--
	}
}

// quote shows a piece of a file in an error, shortened.
func quote(s string) string {
	const most = 32
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

package tsplib

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxBytes = 64 << 20 // of a file; a matrix of MaxN cities is smaller
	maxLine  = 4096     // of a header line, in bytes
	maxToken = 64       // of a number in a section, in bytes

	space = " \t\r\n\f\v"
)

// scanner reads headers by line and sections by number, so that a section may
// be wrapped at any line length.
type scanner struct {
	name string
	text string // what is not read yet
	line int    // where that begins, from 1
	at   int    // line on which the last line or token began
}

func newScanner(r io.Reader, name string) (*scanner, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	s := &scanner{name: name, text: strings.TrimPrefix(string(text), "\ufeff"), line: 1, at: 1 + bytes.Count(text, []byte("\n"))}
	switch control := strings.IndexFunc(s.text, func(c rune) bool { return c < ' ' && !strings.ContainsRune(space, c) }); {
	case err != nil:
		return nil, s.errorf("cannot read: %w", err)
	case len(text) > maxBytes:
		return nil, s.errorf("file is larger than %d MiB: no instance of up to %d cities needs that", maxBytes>>20, MaxN)
	case control >= 0:
		s.at = 1 + strings.Count(s.text[:control], "\n")
		return nil, s.errorf("control byte 0x%02x: this is not a TSPLIB text file", s.text[control])
	}
	return s, nil
}

// errorf makes an error at the line where the last line or token began.
func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("tsplib: %s:%d: %w", s.name, s.at, fmt.Errorf(format, args...))
}

// header returns the next line that is not blank, trimmed, or io.EOF.
func (s *scanner) header() (string, error) {
	for s.text != "" {
		if line, err := s.rest(); line != "" || err != nil {
			return line, err
		}
	}
	s.at = s.line
	return "", io.EOF
}

// rest returns what remains of the current line, trimmed.
func (s *scanner) rest() (string, error) {
	line, after, more := strings.Cut(s.text, "\n")
	s.text, s.at = after, s.line
	if more {
		s.line++
	}
	if len(line) > maxLine {
		return "", s.errorf("line is longer than %d bytes: only numbers of a section may be longer", maxLine)
	}
	return strings.TrimSpace(line), nil
}

// token returns the next word of a section, or io.EOF.
func (s *scanner) token() (string, error) {
	text := strings.TrimLeft(s.text, space)
	s.line += strings.Count(s.text[:len(s.text)-len(text)], "\n")
	s.text, s.at = text, s.line
	if text == "" {
		return "", io.EOF
	}
	end := strings.IndexAny(text, space)
	if end < 0 {
		end = len(text)
	}
	if end > maxToken {
		return "", s.errorf("%s... is longer than %d bytes: give a plain number", quote(text[:maxToken]), maxToken)
	}
	s.text = text[end:]
	return text[:end], nil
}

// quote shows a piece of a file in an error, shortened.
func quote(s string) string {
	const most = 32
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

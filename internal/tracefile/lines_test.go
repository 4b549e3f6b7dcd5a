package tracefile_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gopegasus/pegasus/internal/tracefile"
)

// splitAll reads all lines, as "number:line" or "number:error".
func splitAll(r io.Reader) []string {
	var list []string
	l := tracefile.NewLines(r)
	for {
		line, err := l.Next()
		_, tooLong := errors.AsType[*tracefile.Error](err)
		switch {
		case tooLong:
			list = append(list, fmt.Sprintf("%d:%v", l.Number(), err))
		case err != nil:
			return append(list, err.Error())
		default:
			list = append(list, fmt.Sprintf("%d:%s", l.Number(), line))
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", tracefile.MaxLine)
	for name, c := range map[string]struct{ input, want string }{
		"nothing":      {"", "EOF"},
		"empty lines":  {"\n \t\r\n\n", "EOF"},
		"no end":       {"a\nb", "1:a 2:b EOF"},
		"cr lf":        {"a\r\n\r\nb\r\n", "1:a 3:b EOF"},
		"mark":         {"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", "1:a 2:\xef\xbb\xbfb EOF"},
		"only a mark":  {"\xef\xbb\xbf\n", "EOF"},
		"longest":      {long + "\r\n" + long, "1:" + long + " 2:" + long + " EOF"},
		"too long":     {"a\n" + long + "x\nb\n", "1:a 2:the line is longer than 1048576 bytes 3:b EOF"},
		"far too long": {strings.Repeat(long, 5) + "\nb", "1:the line is longer than 1048576 bytes 2:b EOF"},
		"too long end": {long + "x", "1:the line is longer than 1048576 bytes EOF"},
		"endless":      {strings.Repeat(long, 3), "1:the line is longer than 1048576 bytes EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once":    strings.NewReader(c.input),
				"data + EOF": iotest.DataErrReader(strings.NewReader(c.input)),
				"halves":     iotest.HalfReader(strings.NewReader(c.input)),
			} {
				if got := strings.Join(splitAll(r), " "); got != c.want {
					t.Errorf("%s: got %.100q, want %.100q", how, got, c.want)
				}
			}
		})
	}
}

func TestLinesOfABrokenReader(t *testing.T) {
	r := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errors.New("disk on fire")))
	if got := strings.Join(splitAll(r), " "); got != "1:a disk on fire" {
		t.Errorf("got %q", got)
	}
	if got := strings.Join(splitAll(idle{}), " "); got != io.ErrNoProgress.Error() {
		t.Errorf("got %q", got)
	}
}

// idle returns nothing.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

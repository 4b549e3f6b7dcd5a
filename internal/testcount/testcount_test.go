package testcount_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/internal/testcount"
)

// failing notes what a test would have failed with.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
		err  string
	}{
		{"", 7, ""},
		{"20000", 20_000, ""},
		{"0", 0, `PEGASUS_TRIED is "0": set it to a number of at least 1`},
		{"many", 0, `PEGASUS_TRIED is "many": set it to a number of at least 1`},
	} {
		t.Setenv("PEGASUS_TRIED", c.text)
		f := &failing{TB: t}
		if n := testcount.Of(f, "TRIED", 7); f.text != c.err || c.err == "" && n != c.want {
			t.Errorf("%q: %d, %q", c.text, n, f.text)
		}
	}
}

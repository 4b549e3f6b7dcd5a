package workreport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/workreport"
)

// TestCallsText: what is told of calls is read again; what does not fit is left out; damage is refused.
func TestCallsText(t *testing.T) {
	list := []workreport.Calls{
		{Name: "a b/c", Open: 3, Held: 1, Waiting: 2, Running: 4, Served: 1 << 40, Seconds: 0.25},
		{Name: "two\nlines", Open: 1},
		{Name: strings.Repeat("x", 300)},
		{Name: ""},
	}
	text := workreport.CallsText(list)
	got, err := workreport.ParseCalls(text)
	if want := []workreport.Calls{list[0], list[3]}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
	}
	if text := workreport.CallsText(slices.Repeat(list[:1], 32)); len(text) > workreport.MaxCallsText || strings.Count(text, "\n") < 5 {
		t.Errorf("%d bytes", len(text))
	}
	for _, bad := range []string{"x", "1/2/3/4/5 f", "1/2/3/4/5/6", "-1/0/0/0/0/0 f", "1/0/0/0/0/NaN f", "1/0/0/0/0/-1 f", "1/0/0/0/0/1e300 f", "9999999999/0/0/0/0/0 f", "1/0/0/0/-1/0 f", strings.Repeat("0/0/0/0/0/0 f\n", 33), "0/0/0/0/0/0 " + strings.Repeat("x", 2000)} {
		if _, err := workreport.ParseCalls(bad); err == nil || err.Error() != "figures of calls: the text is damaged: let all members run the same version as this command" {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

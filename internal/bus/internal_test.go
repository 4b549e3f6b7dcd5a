package bus

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestReconnectDelay(t *testing.T) {
	for round, want := range map[int]time.Duration{0: 100, 1: 100, 2: 200, 3: 400, 4: 500, 5: 500, 70: 500, math.MaxInt: 500} {
		want *= time.Millisecond
		for range 100 {
			if d := reconnectDelay(round); d < want/2 || d > want {
				t.Fatalf("round %d: %v, not %v to %v", round, d, want/2, want)
			}
		}
	}
}

// TestHolesAreNoticed: a link that carries nothing is given up when so many pings and the next
// one were due, the first of them up to an interval after the link has broken.
func TestHolesAreNoticed(t *testing.T) {
	if worst := (maxPings + 1) * pingInterval; worst > 2300*time.Millisecond {
		t.Errorf("a link that carries nothing is noticed after up to %v; it should be within 2.5 s, and the process may be slow", worst)
	}
}

// TestSubjects made of valid tokens are accepted.
func TestSubjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 0, 4).Draw(t, "pattern")
		if len(pattern) == 0 || rapid.Bool().Draw(t, "rest") {
			pattern = append(pattern, ">")
		}
		subject := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 5).Draw(t, "subject")
		p, s := strings.Join(pattern, "."), strings.Join(subject, ".")
		if err := checkSubject(p, true); err != nil {
			t.Fatal(err)
		}
		if err := checkSubject(s, false); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzCheckSubject: what is accepted is safe to put into a protocol line, and
// what may be published is also a valid subscription to itself.
func FuzzCheckSubject(f *testing.F) {
	for _, s := range []string{"", "a.b", "a.*.>", "a..b", ">", "a b", ".", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		publish, subscribe := checkSubject(s, false) == nil, checkSubject(s, true) == nil
		if publish && (!subscribe || strings.ContainsAny(s, "*>")) {
			t.Errorf("%q may be published, subscribed %v", s, subscribe)
		}
		if subscribe && (strings.ContainsAny(s, " \t\r\n") || strings.Contains("."+s+".", "..")) {
			t.Errorf("%q was accepted", s)
		}
	})
}

// TestRefusedDelay: the pauses after refusals of the credentials grow to half a minute.
func TestRefusedDelay(t *testing.T) {
	for refusals, want := range map[int32]time.Duration{0: 500, 1: 500, 2: 1000, 5: 8000, 6: 16000, 7: 30000, math.MaxInt32: 30000} {
		want *= time.Millisecond
		for range 100 {
			if d := refusedDelay(refusals); d < want/2 || d > want {
				t.Fatalf("%d refusals: %v, not %v to %v", refusals, d, want/2, want)
			}
		}
	}
}

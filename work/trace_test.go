package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// fullWriter takes some writes, and fails then.
type fullWriter struct{ left int }

func (w *fullWriter) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// TestTrace: tasks that the program puts, their runs and data have a line each; functions that fail, bags, and what functions put
// have none. A writer that fails is an error of Close.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots, section.Retry = 1, 0
		g := newGroup(section)
		var out bytes.Buffer
		nap := Func("nap", func(_ context.Context, n int) (int, error) {
			time.Sleep(time.Duration(n) * time.Second)
			if n == 3 {
				return 0, errors.New("it is bad")
			}
			return n, nil
		})
		var s *Space
		more := Func("more", func(ctx context.Context, _ int) (int, error) { return 0, s.Put(ctx, "nap", 1, ID("child")) })
		s = g.space(t, "a", nap, more, Trace(&out))
		if err := s.Write(t.Context(), "x", []byte("data")); err != nil {
			t.Fatal(err)
		}
		put := func(name string, n int, options ...PutOption) {
			if err := s.Put(t.Context(), name, n, options...); err != nil {
				t.Fatal(err)
			}
		}
		put("nap", 2, ID("2"), Weight(7), Reads("x"))
		put("nap", 3, ID("3"))
		put("more", 1, ID("more"))
		put("nap", 1, ID("last"), After("2"))
		for _, err := range Results[int](t.Context(), s, "nap") {
			_ = err // One of them is bad.
		}
		var got []string
		for line := range bytes.Lines(out.Bytes()) {
			l, err := workreport.ParseTraceLine(bytes.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if l.Member != "a" {
				t.Errorf("%s", line)
			}
			l.Member, l.At = "", 0
			text, _ := json.Marshal(l)
			got = append(got, string(text))
		}
		slices.Sort(got)
		want := []string{
			`{"member":"","at":0,"data":"x","bytes":4}`,
			`{"member":"","at":0,"put":"2","weight":7,"bytes":1,"reads":["x"]}`,
			`{"member":"","at":0,"put":"3","bytes":1}`,
			`{"member":"","at":0,"put":"more","bytes":1}`,
			`{"member":"","at":0,"ran":"2","seconds":2}`,
			`{"member":"","at":0,"ran":"child","seconds":1}`,
			`{"member":"","at":0,"ran":"last","seconds":1}`,
			`{"member":"","at":0,"ran":"more"}`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		l := g.join("a", 1)
		s, err := open(t.Context(), l, []Option{Func("f", func(_ context.Context, n int) (int, error) { return n, nil }), Trace(&fullWriter{left: 1})})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := s.Put(t.Context(), "f", i); err != nil {
				t.Error(err)
			}
		}
		const want = "work: trace: a line was not written, and none after it: no space left"
		if err := s.Close(); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
		const none = "work: the writer of the trace is nil: leave Trace out"
		if _, err := open(t.Context(), l, []Option{Trace(nil)}); err == nil || err.Error() != none {
			t.Errorf("%v; want %s", err, none)
		}
	})
}

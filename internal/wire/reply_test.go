package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/wire"
)

// TestReplyInParts puts answers of sizes around those of the parts together
// again.
func TestReplyInParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3).Draw(t, "parts")*wire.PartBytes + rapid.IntRange(-2, 2).Draw(t, "more")
		want := bytes.Repeat([]byte("x"), max(n, 0))
		var a wire.Reply
		for rest := want; ; {
			part, left, last := wire.AppendPart(nil, rest)
			if len(part) > wire.PartBytes+1 {
				t.Fatalf("a part of %d bytes", len(part))
			}
			done, err := a.Add(part)
			if err != nil || done != last {
				t.Fatalf("done %t, %v; last %t", done, err, last)
			}
			if rest = left; done {
				break
			}
		}
		if !bytes.Equal(a.Text(), want) {
			t.Fatalf("%d bytes became %d", len(want), len(a.Text()))
		}
	})
}

func TestReplyIsRefused(t *testing.T) {
	for _, part := range []string{"", "{}", "\x00{}"} {
		if done, err := new(wire.Reply).Add([]byte(part)); done || !errors.Is(err, wire.ErrNoPart) {
			t.Errorf("%q: %t, %v", part, done, err)
		}
	}
	var a wire.Reply
	part := append([]byte("+"), make([]byte, wire.MaxReplyBytes/2)...)
	for range 2 {
		if _, err := a.Add(part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Add([]byte("+x")); err == nil || err.Error() != "the answer is longer than 67108864 bytes" {
		t.Error(err)
	}
}

package worklog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
)

// TestData: data come back as they were written, in their parts; a second writer completes what the first one has begun; other
// bytes are refused; the end of a phase removes its data alone.
func TestData(t *testing.T) {
	conn, s, ctx := serve(t, usual), wanted(), t.Context()
	l, err := Open(ctx, conn, s)
	check(t, err)
	all := map[string][]byte{"empty": {}, "a part": make([]byte, PartBytes), "two.*> parts": bytes.Repeat([]byte("x"), PartBytes+1)}
	for name, data := range all {
		for range 2 {
			check(t, l.WriteData(ctx, 3, name, data, sha256.Sum256(data)))
		}
		d, whole, err := l.FindData(ctx, 3, name)
		if check(t, err); !whole || d != (Data{len(data), sha256.Sum256(data)}) {
			t.Errorf("%s: %+v, %v", name, d, whole)
		}
		var read []byte
		for i := range d.parts() {
			part, found, err := l.ReadPart(ctx, 3, name, i)
			if check(t, err); !found {
				t.Errorf("%s: part %d is missing", name, i)
			}
			read = append(read, part...)
		}
		if !bytes.Equal(read, data) {
			t.Errorf("%s: %d bytes come back, of %d", name, len(read), len(data))
		}
	}
	one, two := []byte("one"), []byte("two")
	first, second := sha256.Sum256(one), sha256.Sum256(two)
	check(t, l.WriteData(ctx, 3, "once", one, first))
	refused(t, l.WriteData(ctx, 3, "once", two, second),
		fmt.Sprintf(`data "once": they are written already, with the digest %x, and now with %x: give other bytes another name`, first[:8], second[:8]))
	// A writer dies between two parts.
	name, data := "two.*> parts", all["two.*> parts"]
	check(t, l.WriteData(ctx, 4, name, data, sha256.Sum256(data)))
	check(t, l.Purge(ctx, dataSubject(4, name, 1), 1<<40))
	if _, whole, err := l.FindData(ctx, 4, name); err != nil || whole {
		t.Errorf("without the last part: %v, %v", whole, err)
	}
	check(t, l.WriteData(ctx, 4, name, data, sha256.Sum256(data)))
	if _, whole, err := l.FindData(ctx, 4, name); err != nil || !whole {
		t.Errorf("completed: %v, %v", whole, err)
	}
	list, err := l.ListData(ctx, 3)
	if check(t, err); !slices.Equal(list, []string{"a part", "empty", "once", "two.*> parts"}) {
		t.Errorf("%q", list)
	}
	check(t, l.RemoveData(ctx, 4))
	for phase, want := range map[uint64]int{3: 0, 4: 1} {
		list, err := l.ListData(ctx, phase)
		if check(t, err); len(list) != want {
			t.Errorf("phase %d: %q", phase, list)
		}
	}
	_, err = l.Append(ctx, dataSubject(4, "strange", 0), 0, []byte("x"), nil)
	check(t, err)
	_, _, err = l.FindData(ctx, 4, "strange")
	if err == nil || !bytes.HasSuffix([]byte(err.Error()), []byte(`: no part of data "strange": remove the message, and write the data again`)) {
		t.Errorf("%v", err)
	}
}

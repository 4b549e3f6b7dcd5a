package work_test

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/work"
)

// dataMessages is how many messages with data the stream of a group has.
func dataMessages(t *testing.T, g *liveGroup) (n uint64) {
	t.Helper()
	stream, err := jetStreamOf(t, g).Stream(t.Context(), "pegasus+default+g")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("pegasus+default+g.d.>"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range info.State.Subjects {
		n += k
	}
	return n
}

// putSum puts a task that reads data.
func putSum(t *testing.T, s *work.Space, id, name string) {
	t.Helper()
	if err := s.Put(limited(t), "sum", []string{name}, work.ID("%s", id), work.Reads(name)); err != nil {
		t.Fatal(err)
	}
}

// wantSums reads the results of a phase: each task is done once, with the data of a megabyte by its seed.
func wantSums(t *testing.T, s *work.Space, n, seed int, options ...work.ResultsOption) {
	t.Helper()
	want, seen := fmt.Sprintf("%x ", sha256.Sum256(megabyte(seed))), map[string]bool{}
	for r, err := range work.Results[string](limited(t), s, "sum", options...) {
		if err != nil || r.Value != want || seen[r.ID] {
			t.Errorf("task %s: %q, %v; want %q", r.ID, r.Value, err, want)
		}
		seen[r.ID] = true
	}
	if len(seen) != n {
		t.Errorf("%d tasks have a result, of %d", len(seen), n)
	}
}

// TestDurableData: the writer of data dies before another member has them. The tasks that read them run with the data of the
// stream. The end of the phase removes the data. Data that no member writes, and other bytes, are errors.
func TestDurableData(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 3)
	proxy := newProxy(t, g.server.URL())
	var ran atomic.Int64
	list := g.spacesBy(proxy.of("b"), []string{"a", "b", "c"}, sumOf(&ran))
	ctx, s := limited(t), list[0]
	for i, name := range []string{"x", "y"} {
		if err := list[1].Write(ctx, name, megabyte(3+i)); err != nil {
			t.Fatal(err)
		}
	}
	proxy.hold()
	one, two := sha256.Sum256(megabyte(4)), sha256.Sum256([]byte("other"))
	if err, want := s.Write(ctx, "y", []byte("other")), fmt.Sprintf(`work: write: data "y": they are written already, with the digest %x, and now with %x: give other bytes another name`, one[:8], two[:8]); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	for i := range 20 {
		putSum(t, s, strconv.Itoa(i), "x")
	}
	serveLive(t, list[2])
	wantSums(t, s, 20, 3)
	until(t, func() bool { return dataMessages(t, g) == 0 })
	putSum(t, s, "never", "x")
	const want = `data "x": no member has written them, and all wait for the end of the phase: write them before that`
	if err := s.Flush(ctx); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	proxy.release()
}

// TestDurableDataRestart: everything is killed. The programs that are started again write nothing, and their tasks have the data.
func TestDurableDataRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var ran atomic.Int64
	for start := range 2 {
		g := newDurable(t, dir, 2)
		list := g.spaces([]string{"a", "b"}, sumOf(&ran))
		if start == 1 {
			for i := range 10 {
				putSum(t, list[0], strconv.Itoa(i), "x")
			}
			serveLive(t, list[1])
			wantSums(t, list[0], 10, 7)
			return
		}
		if err := list[1].Write(limited(t), "x", megabyte(7)); err != nil {
			t.Fatal(err)
		}
		g.server.Close() // Nobody can write anything any more.
		for _, s := range list {
			_ = s.Close()
		}
		_ = g.sync.Close()
	}
}

// TestDurableDataOrphan: the member that has put the tasks and has written their data dies. Another one continues with them.
func TestDurableDataOrphan(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 3)
	proxy := newProxy(t, g.server.URL())
	var ran atomic.Int64
	list := g.spacesBy(proxy.of("b"), []string{"a", "b", "c"}, sumOf(&ran))
	if err := list[1].Write(limited(t), "x", megabyte(5)); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		putSum(t, list[1], strconv.Itoa(i), "x")
	}
	serveLive(t, list[0])
	until(t, func() bool { return ran.Load() >= 5 }) // Some are recorded, and are so in the account that is taken over.
	proxy.hold()
	wantSums(t, list[2], 20, 5, work.Of("b"))
	proxy.release()
}

// TestDurableDataDigest: what the stream has of data has another digest than their writer said, or a part has another
// length, or the first part lacks its head. The task fails, and says so. Without its head, no member has the data: that they were written is
// known, or not, by what the writer has told before it died.
func TestDurableDataDigest(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256(megabyte(5))
	other := fmt.Sprintf(`work: task "task" has failed: data "x": what the members that have them send has another digest than %x: write them again under another name`, digest[:8])
	for _, c := range []struct {
		name, want string
		part       int
		damage     func([]byte) []byte
	}{
		{"bytes", other, 1, func(b []byte) []byte { b[7] ^= 1; return b }},
		{"length", other, 1, func(b []byte) []byte { return b[1:] }},
		{"head", `work: task "task" has failed: data "x": no member `, 0, func(b []byte) []byte { return b[:7] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newDurable(t, t.TempDir(), 2)
			var ran atomic.Int64
			ctx, js, subject := limited(t), jetStreamOf(t, g), fmt.Sprintf("pegasus+default+g.d.1.eA.%d", c.part)
			proxy := newProxy(t, g.server.URL())
			list := g.spacesBy(proxy.of("b"), []string{"a", "b"}, sumOf(&ran))
			if err := list[1].Write(ctx, "x", megabyte(5)); err != nil {
				t.Fatal(err)
			}
			stream, err := js.Stream(ctx, "pegasus+default+g")
			if err != nil {
				t.Fatal(err)
			}
			m, err := stream.GetLastMsgForSubject(ctx, subject)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(ctx, subject, c.damage(m.Data)); err != nil {
				t.Fatal(err)
			}
			proxy.hold()
			putSum(t, list[0], "task", "x")
			if err := list[0].Flush(ctx); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
			proxy.release()
		})
	}
}

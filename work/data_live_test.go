package work_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gopegasus/pegasus/work"
)

// sumOf is a function that adds up the digests of the data that its task reads.
func sumOf(ran *atomic.Int64) work.Option {
	return work.Func("sum", func(ctx context.Context, names []string) (string, error) {
		ran.Add(1)
		var text strings.Builder
		for _, name := range names {
			data, err := work.Read(ctx, name)
			if err != nil {
				return "", err
			}
			_, _ = fmt.Fprintf(&text, "%x ", sha256.Sum256(data))
		}
		return text.String(), nil
	})
}

// TestLiveData: three members run tasks that read data of two of them, which are written before and after the puts; the
// data are gone in the next phase, and what nobody writes is an error.
func TestLiveData(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	var ran [3]atomic.Int64
	var list []*work.Space
	for i, name := range []string{"a", "b", "c"} {
		list = append(list, g.spaces([]string{name}, sumOf(&ran[i]))[0])
	}
	ctx, s := limited(t), list[0]
	serveLive(t, list[2])
	const frames = 6
	digests := map[string]string{}
	for i := range frames {
		digests[fmt.Sprint("img/", i)] = fmt.Sprintf("%x ", sha256.Sum256(megabyte(i)))
	}
	write := func(i int) {
		if err := list[i%2].Write(ctx, fmt.Sprint("img/", i), megabyte(i)); err != nil {
			t.Error(err)
		}
	}
	for i := range frames / 2 {
		write(i)
	}
	want := map[string]string{}
	for i := 1; i < frames; i++ {
		names := []string{fmt.Sprint("img/", i), fmt.Sprint("img/", i-1)}
		for k := range 20 {
			id := fmt.Sprintf("%d/%d", i, k)
			want[id] = digests[names[0]] + digests[names[1]]
			if err := s.Put(ctx, "sum", names, work.ID("%s", id), work.Reads(names...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := frames / 2; i < frames; i++ {
		write(i)
	}
	serveLive(t, list[1])
	for r, err := range work.Results[string](ctx, s, "sum") {
		if err != nil || r.Value != want[r.ID] {
			t.Errorf("task %s: %q, %v; want %q", r.ID, r.Value, err, want[r.ID])
		}
		delete(want, r.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d tasks have no result", len(want))
	}
	if ran[1].Load()+ran[2].Load() == 0 {
		t.Error("no task ran at another member")
	}

	if err := s.Put(ctx, "sum", []string{"img/1"}, work.Reads("img/1")); err != nil {
		t.Fatal(err)
	}
	err := s.Flush(ctx)
	if err == nil || !strings.Contains(err.Error(), `data "img/1": no member has written them, and all wait for the end of the phase: write them before that`) {
		t.Errorf("the error of data that nobody writes is %v", err)
	}
}

// TestDataErrors: what is refused says why.
func TestDataErrors(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	var ran atomic.Int64
	other := work.Func("other", func(ctx context.Context, _ int) (int, error) { _, err := work.Read(ctx, "y"); return 0, err })
	s := g.spaces([]string{"a"}, sumOf(&ran), other)[0]
	ctx := limited(t)
	if err := s.Write(ctx, "x", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(ctx, "x", []byte("one")); err != nil {
		t.Errorf("the same bytes once more: %v", err)
	}
	one, two := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))
	for want, err := range map[string]error{
		fmt.Sprintf(`work: write: data "x": they are written already, with the digest %x, and now with %x: give other bytes another name`, one[:8], two[:8]): s.Write(ctx, "x", []byte("two")),
		`work: write: data "": the name has 0 bytes: give it one of 1 to 128`:                                                                                s.Write(ctx, "", nil),
		`work: put: task "t": it reads 65 data, and at most 64 are allowed: write them as fewer, larger ones`:                                                s.Put(ctx, "sum", []string{}, work.ID("t"), work.Reads(strings.Split(many(65), ",")[1:]...)),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if _, err := work.Read(ctx, "x"); err == nil || err.Error() != `work: read data "x": the context does not belong to a function that a space runs: call Read in the function, with its ctx` {
		t.Errorf("Read outside of a function: %v", err)
	}
	if err := s.Put(ctx, "other", 1, work.ID("o"), work.Reads("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(ctx); err == nil || err.Error() != `work: task "o" has failed: work: read data "y": task "o" reads ["x"]: name it in work.Reads of the put` {
		t.Errorf("data that the task does not read: %v", err)
	}
}

func many(n int) string {
	var b bytes.Buffer
	for i := range n {
		_, _ = fmt.Fprintf(&b, ",n%d", i)
	}
	return b.String()
}

// TestLiveDataHolders: the writer dies. Data that another member holds are still there, and tasks that read what died with the
// writer fail and name it.
func TestLiveDataHolders(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 3)
	proxy := newProxy(t, g.server.URL())
	var ran atomic.Int64
	list := g.spacesBy(proxy.of("b"), []string{"a", "b", "c"}, sumOf(&ran))
	ctx, s := limited(t), list[0]
	serveLive(t, list[2])
	for i, name := range []string{"kept", "lost"} {
		if err := list[1].Write(ctx, name, megabyte(i)); err != nil {
			t.Fatal(err)
		}
	}
	put := func(id, name string) {
		if err := s.Put(ctx, "sum", []string{name}, work.ID("%s", id), work.Reads(name)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		put(fmt.Sprint("before/", i), "kept")
	}
	until(t, func() bool { return ran.Load() >= 30 })
	proxy.hold()
	for i := range 10 {
		put(fmt.Sprint("after/", i), "kept")
	}
	put("gone", "lost")
	good := 0
	for r, err := range work.Results[string](ctx, s, "sum") {
		switch {
		case r.ID == "gone":
			const want = `work: task "gone" has failed: data "lost": no member that has them is left: write them again, and put the tasks that read them again`
			if err == nil || err.Error() != want {
				t.Errorf("%v; want %s", err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", r.ID, err)
		default:
			good++
		}
	}
	if good != 40 {
		t.Errorf("%d tasks are done", good)
	}
	proxy.release()
}

// TestLiveDataClasses: with a small cache and few classes all tasks run.
func TestLiveDataClasses(t *testing.T) {
	t.Parallel()
	g := newLive(t, strings.Replace(live, "{slots: 1}", "{slots: 2, data: {cache: 2, classes: 1}}", 1), 2)
	var ran atomic.Int64
	list := g.spaces([]string{"a", "b"}, sumOf(&ran))
	serveLive(t, list[1])
	ctx, s := limited(t), list[0]
	for i := range 5 {
		if err := list[i%2].Write(ctx, fmt.Sprint("d", i), megabyte(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		name := fmt.Sprint("d", i%5)
		if err := s.Put(ctx, "sum", []string{name}, work.ID("%d", i), work.Reads(name)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for r, err := range work.Results[string](ctx, s, "sum") {
		var i int
		if _, scan := fmt.Sscan(r.ID, &i); err != nil || scan != nil || r.Value != fmt.Sprintf("%x ", sha256.Sum256(megabyte(i%5))) {
			t.Errorf("task %s: %q, %v", r.ID, r.Value, err)
		}
		n++
	}
	if n != 100 {
		t.Errorf("%d results", n)
	}
	until(t, func() bool { return s.Write(ctx, "big", make([]byte, 2<<20+1)) == nil })
	const want = `work: put task "t": data ["big"]: they have 2097153 bytes together, and data.cache allows 2097152: raise data.cache, or let the task read less`
	if err := s.Put(ctx, "sum", []string{}, work.ID("t"), work.Reads("big")); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// TestDataShared: Read returns the bytes of Write themselves at the member that wrote them, and at another member the same bytes
// to all functions.
func TestDataShared(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	first := make(chan *byte, 100)
	read := work.Func("read", func(ctx context.Context, _ int) (int, error) {
		data, err := work.Read(ctx, "x")
		if err == nil {
			first <- &data[0]
		}
		return len(data), err
	})
	s := g.spaces([]string{"a"}, read)[0]
	ctx, data := limited(t), megabyte(1)
	if err := s.Write(ctx, "x", data); err != nil {
		t.Fatal(err)
	}
	run := func(put, n int) {
		for i := range n {
			if err := s.Put(ctx, "read", i, work.ID("%d/%d", put, i), work.Reads("x")); err != nil {
				t.Fatal(err)
			}
		}
		until(t, func() bool { return len(first) == n })
	}
	run(0, 5)
	for range 5 {
		if p := <-first; p != &data[0] {
			t.Error("the writer reads a copy")
		}
	}
	serveLive(t, g.spaces([]string{"b"}, read)[0])
	run(1, 60)
	places := map[*byte]bool{}
	for range 60 {
		places[<-first] = true
	}
	if len(places) > 2 {
		t.Errorf("two members have the bytes at %d places", len(places))
	}
	if err := s.Flush(ctx); err != nil {
		t.Error(err)
	}
}

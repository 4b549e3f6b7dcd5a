package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/work"
)

// tally is the state of an object of the tests: what it has served, and where.
type tally struct {
	Start int
	Log   []string
}

// witness is what the functions of all members tell the test.
type witness struct {
	mu     sync.Mutex
	states map[string][]string
	fences map[string][]uint64
	hold   chan struct{} // closed: messages "wait" go on
	waits  chan string
}

func newWitness() *witness {
	return &witness{states: map[string][]string{}, fences: map[string][]uint64{}, hold: make(chan struct{}), waits: make(chan string, 64)}
}

type note struct {
	Object, From, Do string
	N                int
}

func (w *witness) options(member string) []work.Option {
	return []work.Option{
		work.Object("tally", func(_ context.Context, start int) (*tally, error) {
			if start < 0 {
				return nil, errors.New("below 0")
			}
			return &tally{Start: start}, nil
		}),
		work.On("tally", "note", func(ctx context.Context, t *tally, n note) error {
			if s := work.SpaceOf(ctx); s == nil || s.Member() != member {
				return fmt.Errorf("the space of its context is not that of member %q", member)
			}
			switch n.Do {
			case "bad":
				t.Log = append(t.Log, "bad")
				return errors.New("bad luck")
			case "wait":
				w.waits <- member
				select {
				case <-w.hold:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			case "end":
				work.End(ctx)
			case "pin":
				work.Pin(ctx)
			}
			t.Log = append(t.Log, fmt.Sprintf("%s %s/%d", member, n.From, n.N))
			w.mu.Lock()
			defer w.mu.Unlock()
			w.states[n.Object] = slices.Clone(t.Log)
			w.fences[n.Object] = append(w.fences[n.Object], work.Fence(ctx))
			return nil
		}),
	}
}

func (w *witness) log(object string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[object]
}

// estate opens the spaces of members with functions of their own. Who is proxied comes by another address.
func (g *liveGroup) estate(w *witness, url func(string) string, names ...string) (list []*work.Space, leave func(i int)) {
	g.t.Helper()
	return g.estateOf(w.options, url, names...)
}

// estateOf is estate for other functions.
func (g *liveGroup) estateOf(options func(member string) []work.Option, url func(string) string, names ...string) (list []*work.Space, leave func(i int)) {
	g.t.Helper()
	list = make([]*work.Space, len(names))
	members := make([]*agent.Member, len(names))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if members[i], errs[i] = agent.Join(g.t.Context(), url(name), agent.Config{Group: "g", Name: name}, agent.OwnConn()); errs[i] == nil {
				list[i], errs[i] = work.Open(g.t.Context(), members[i], options(name)...)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		g.t.Fatal(err)
	}
	leave = func(i int) { _, _ = list[i].Close(), members[i].Close() }
	for i := range list {
		g.t.Cleanup(func() { leave(i) })
	}
	return list, leave
}

func (g *liveGroup) direct(string) string { return g.server.URL() }

// inOrder reports whether the notes of a sender are 0 to n-1 in their order, each once.
func inOrder(log []string, from string, n int) bool {
	next := 0
	for _, l := range log {
		if _, what, _ := strings.Cut(l, " "); strings.HasPrefix(what, from+"/") {
			if what != fmt.Sprintf("%s/%d", from, next) {
				return false
			}
			next++
		}
	}
	return next == n
}

// TestLiveObjects: three members send to objects that two of them have created, in both stores; two phases.
func TestLiveObjects(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"memory", "jetstream"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			g := newLiveStore(t, store, 3)
			w := newWitness()
			list, _ := g.estate(w, g.direct, "a", "b", "c")
			for i := range 6 {
				if err := list[i%2].Create(limited(t), "tally", i, i, work.Near(i-1, i+1), work.Group("all")); err != nil {
					t.Fatal(err)
				}
			}
			const each = 20
			for phase := range 2 {
				var all sync.WaitGroup
				for k, s := range list {
					all.Go(func() {
						for n := range each {
							for i := range 6 {
								if err := s.Send(limited(t), i, "note", note{strconv.Itoa(i), "abc"[k : k+1], "", phase*each + n}); err != nil {
									t.Error(err)
								}
							}
						}
						if err := s.Wait(limited(t)); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				for i := range 6 {
					for _, from := range []string{"a", "b", "c"} {
						if log := w.log(strconv.Itoa(i)); !inOrder(log, from, (phase+1)*each) {
							t.Fatalf("phase %d, object %d: notes of %s: %q", phase, i, from, log)
						}
					}
				}
			}
			for id, list := range w.fences {
				if !slices.IsSorted(list) {
					t.Errorf("the fences of %s fall: %v", id, list)
				}
			}
		})
	}
}

func newLiveStore(t *testing.T, store string, members int) *liveGroup {
	t.Helper()
	if store == "jetstream" {
		return newDurable(t, t.TempDir(), members)
	}
	return newLive(t, live, members)
}

// TestLiveObjectMoves: Move has an object serve elsewhere; a pinned one and one that is bound to a member stay; a
// busy one moves with its next message.
func TestLiveObjectMoves(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	w := newWitness()
	list, _ := g.estate(w, g.direct, "a", "b")
	serveLive(t, list[1])
	a := list[0]
	send := func(id any, do string, n int) {
		t.Helper()
		if err := a.Send(limited(t), id, "note", note{fmt.Sprint(id), "a", do, n}); err != nil {
			t.Fatal(err)
		}
	}
	phase := func() {
		t.Helper()
		if err := a.Wait(limited(t)); err != nil {
			t.Fatal(err)
		}
	}
	for id, at := range map[string]string{"x": "a", "bound": "b"} {
		if err := a.Create(limited(t), "tally", id, 0, work.At(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Create(limited(t), "tally", "y", 0); err != nil {
		t.Fatal(err)
	}
	send("x", "", 0)
	send("bound", "", 0)
	phase()
	if err := a.Move("tally", "y", "b"); err != nil {
		t.Fatal(err)
	}
	send("y", "wait", 0)
	if at := <-w.waits; at != "b" {
		t.Errorf("y runs at %s", at)
	}
	if err := a.Move("tally", "y", "a"); err != nil { // It is busy.
		t.Fatal(err)
	}
	close(w.hold)
	phase()
	send("y", "pin", 1)
	phase()
	for id, want := range map[string]string{"bound": "[b a/0]", "x": "[a a/0]", "y": "[b a/0 a a/1]"} {
		if got := fmt.Sprint(w.log(id)); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for id, want := range map[string]string{
		"y": `work: move: object "tally/y": it is pinned`, "bound": `work: move: object "tally/bound": it is pinned, or bound to members ["b"]`,
		"none": `work: move: object "tally/none": it was not created here`,
	} {
		if err := a.Move("tally", id, "b"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestLiveObjectFails: a message that fails is tried again from the last save, and the object goes on without it.
// What cannot be made fails with all its messages. An object that has ended takes none.
func TestLiveObjectFails(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	w := newWitness()
	list, _ := g.estate(w, g.direct, "a", "b")
	serveLive(t, list[1])
	a := list[0]
	for id, start := range map[string]int{"x": 0, "none": -1} {
		if err := a.Create(limited(t), "tally", id, start); err != nil {
			t.Fatal(err)
		}
	}
	for n, do := range []string{"", "bad", "", "end", "", ""} {
		if err := a.Send(limited(t), "x", "note", note{"x", "a", do, n}, work.ID("m%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Send(limited(t), "none", "note", note{"none", "a", "", 0}, work.ID("lost")); err != nil {
		t.Fatal(err)
	}
	err := a.Wait(limited(t))
	for _, want := range []string{
		`task "m1" has failed: bad luck`, `task "m4" has failed: its object has ended`, `task "m5" has failed: its object has ended`,
		`task "tally/none" has failed: below 0`, `task "lost" has failed`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for i, l := range w.log("x") {
		if want := []string{" a/0", " a/2", " a/3"}[i]; !strings.HasSuffix(l, want) {
			t.Errorf("%q, want %s", l, want)
		}
	}
}

// TestLiveObjectHolder: the holder of an object is cut off while it serves a message: another member serves it from the
// last save, with a larger fence.
func TestLiveObjectHolder(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"memory", "jetstream"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			g := newLiveStore(t, store, 2)
			proxy := newProxy(t, g.server.URL())
			w := newWitness()
			list, _ := g.estate(w, proxy.of("b"), "a", "b")
			a, b := list[0], list[1]
			serveLive(t, b)
			if err := a.Create(limited(t), "tally", "x", 0); err != nil {
				t.Fatal(err)
			}
			if err := a.Send(limited(t), "x", "note", note{"x", "a", "", 0}); err != nil {
				t.Fatal(err)
			}
			if err := a.Wait(limited(t)); err != nil {
				t.Fatal(err)
			}
			if err := a.Move("tally", "x", "b"); err != nil {
				t.Fatal(err)
			}
			if err := a.Send(limited(t), "x", "note", note{"x", "a", "wait", 1}); err != nil {
				t.Fatal(err)
			}
			if at := <-w.waits; at != "b" {
				t.Fatalf("it runs at %s", at)
			}
			proxy.hold()
			if at := <-w.waits; at != "a" {
				t.Fatalf("it runs at %s", at)
			}
			close(w.hold)
			if err := a.Wait(limited(t)); err != nil {
				t.Fatal(err)
			}
			proxy.release()
			if log := w.log("x"); !inOrder(log, "a", 2) {
				t.Errorf("%q", log)
			}
		})
	}
}

// TestLiveObjectCreator: the creator dies. With store: memory its objects are lost, and the others are told; with
// jetstream they go on at another member.
func TestLiveObjectCreator(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"memory", "jetstream"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			g := newLiveStore(t, store, 3)
			w := newWitness()
			list, leave := g.estate(w, g.direct, "a", "b", "c")
			b := list[1]
			if err := list[0].Create(limited(t), "tally", "x", 0); err != nil {
				t.Fatal(err)
			}
			if err := b.Send(limited(t), "x", "note", note{"x", "b", "", 0}); err != nil {
				t.Fatal(err)
			}
			serveLive(t, list[2])
			over := make(chan error, 1)
			go func() { over <- list[0].Wait(limited(t)) }()
			if err := b.Wait(limited(t)); err != nil {
				t.Fatal(err)
			}
			if err := <-over; err != nil {
				t.Fatal(err)
			}
			leave(0)
			err := b.Send(limited(t), "x", "note", note{"x", "b", "", 1})
			if err == nil {
				err = b.Wait(limited(t))
			}
			var lost *work.LostError
			switch {
			case store == "memory" && (!errors.As(err, &lost) || lost.Objects != 1 || !strings.Contains(err.Error(), "1 objects of a are lost")):
				t.Errorf("%v", err)
			case store == "jetstream" && (err != nil || !inOrder(w.log("x"), "b", 2)):
				t.Errorf("%v, %q", err, w.log("x"))
			}
		})
	}
}

// TestLiveObjectGroup: messages to a group go to all of its objects, also those that were sent before there was one.
func TestLiveObjectGroup(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	w := newWitness()
	list, _ := g.estate(w, g.direct, "a", "b")
	for n := range 10 {
		if err := list[1].Send(limited(t), work.Any("all"), "note", note{"all", "b", "", n}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if err := list[0].Create(limited(t), "tally", i, 0, work.Group("all")); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan error, 1)
	go func() { over <- list[0].Wait(limited(t)) }()
	if err := errors.Join(list[1].Wait(limited(t)), <-over); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.fences["all"]); n != 10 {
		t.Errorf("%d of 10 messages were served", n)
	}
}

// TestObjectsRefused: what makes no sense is refused with a text that says what to do.
func TestObjectsRefused(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	list, _ := g.estate(newWitness(), g.direct, "a")
	a, ctx := list[0], limited(t)
	m := g.join("b", g.server.URL())
	serveOf := work.On("none", "serve", func(context.Context, *tally, int) error { return nil })
	_, errKind := work.Open(ctx, m, serveOf)
	if s := work.SpaceOf(ctx); s != nil {
		t.Errorf("a context that no space has made is of member %q", s.Member())
	}
	_, errState := work.Open(ctx, m, work.Object("none", func(context.Context, int) (*int, error) { return nil, nil }), serveOf)
	for want, err := range map[string]error{
		`work: function "serve" serves objects of the kind "none", which is not declared: declare it by Object`:                                           errKind,
		`work: function "serve" serves *work_test.tally, and the state of the kind "none" is *int`:                                                        errState,
		`work: create: "note" is no kind of objects: declare it by Object`:                                                                                a.Create(ctx, "note", 1, note{}),
		`work: send: function "tally" serves no objects: declare it by On`:                                                                                a.Send(ctx, 1, "tally", 1),
		`work: put: "note" is about objects: use Create and Send`:                                                                                         a.Put(ctx, "note", note{}),
		`work: put a task of "note": the option is for objects: give it to Create`:                                                                        a.Send(ctx, 1, "note", note{}, work.Near(2)),
		`work: put: the argument of "note" has 16777253 bytes, and at most 16777216 are allowed: let it name the data instead, or have less in each task`: a.Send(ctx, 1, "note", note{From: strings.Repeat("x", 16<<20)}, work.ID("big")),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

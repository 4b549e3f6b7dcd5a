package work

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gopegasus/pegasus/internal/config"
)

// TestDefine: what is defined runs once it is ready, with what was directed meanwhile, and not before.
func TestDefine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		var served atomic.Int32
		type part struct{ Sum int }
		a := g.space(t, "a", Func("square", func(_ context.Context, i int) (int, error) { served.Add(1); return i * i, nil }),
			Object("part", func(_ context.Context, sum int) (*part, error) { return &part{sum}, nil }),
			On("part", "add", func(_ context.Context, p *part, n int) error { p.Sum += n; served.Add(1); return nil }))
		ctx := t.Context()
		define := func(d *Definition, err error) *Definition {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		second := define(a.Define("square", 2))
		object := define(a.DefineObject("part", 7, 100))
		if err := a.Put(ctx, "square", 1, ID("one")); err != nil {
			t.Fatal(err)
		}
		if err := second.Direct(ID("two"), Weight(-1)); fmt.Sprint(err) != `work: put a task of "square": its weight is -1: it must be a finite number of at least 0` {
			t.Error(err)
		}
		if err := second.Direct(At("a")); fmt.Sprint(err) != `work: put a task of "square": the option is for objects: give it to Create` {
			t.Error(err)
		}
		if err := second.Direct(After("one")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if served.Load() != 1 || a.Stats().Open != 0 {
			t.Errorf("%d served, %+v", served.Load(), a.Stats())
		}
		if err := object.Direct(At("a")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(second.Ready(ctx), object.Ready(ctx), a.Send(ctx, 7, "add", 5)); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{second.Ready(ctx), object.Direct(Weight(1))} {
			if !errors.Is(err, ErrReady) {
				t.Error(err)
			}
		}
		if want := `work: definition of "square": the definition is ready already: make another one`; second.Ready(ctx).Error() != want {
			t.Error(second.Ready(ctx))
		}
		if err := a.Wait(ctx); err != nil || served.Load() != 3 {
			t.Fatalf("%d served, %v", served.Load(), err)
		}
		for want, err := range map[string]error{
			`work: no function "cube" is declared by this member, which has ["add" "part" "square"]: declare it in Open`: of(a.Define("cube", 1)),
			`work: define: "part" is about objects: use DefineObject`:                                                    of(a.Define("part", 1)),
			`work: define: "square" is no kind of objects: declare it by Object`:                                         of(a.DefineObject("square", 1, 1)),
			`work: define: the argument of "square" is string: this program has declared the function with int`:          of(a.Define("square", "1")),
			`work: put a task of "square": its ID is empty`:                                                              of(a.Define("square", 1, ID(""))),
		} {
			if fmt.Sprint(err) != want {
				t.Errorf("%v; want %s", err, want)
			}
		}
	})
}

func of(_ *Definition, err error) error { return err }

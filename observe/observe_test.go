package observe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/observe"
)

func TestStartErrors(t *testing.T) {
	for _, c := range []struct {
		options observe.Options
		want    string
	}{
		{observe.Options{Power: -1}, "observe: Options.Power is -1: it is in work units a second, above 0, or 0 for a calibration"},
		{observe.Options{Power: math.NaN()}, "observe: Options.Power is NaN: it is in work units a second, above 0, or 0 for a calibration"},
		{observe.Options{Every: time.Millisecond}, "observe: Options.Every is 1ms: it is from 250ms to 1m0s"},
		{observe.Options{Band: 2}, "observe: Options.Band is 2: it is above 0, at most 1, or 0 for 0.05"},
	} {
		if _, err := observe.Start(t.Context(), c.options); err == nil || err.Error() != c.want {
			t.Errorf("%+v:\n got %v\nwant %s", c.options, err, c.want)
		}
	}
}

// TestStartEnds has a context that is over: nothing stays behind.
func TestStartEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for _, o := range []observe.Options{{}, {Power: 1}} {
		if _, err := observe.Start(ctx, o); !errors.Is(err, over) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestObserver starts one on this machine. What can be known of it depends on that.
func TestObserver(t *testing.T) {
	defer goleak.VerifyNone(t)
	o, err := observe.Start(t.Context(), observe.Options{Every: 250 * time.Millisecond, Band: 1e-9})
	if err != nil {
		t.Fatal(err)
	}
	r, missing := o.Reading(), o.Missing()
	if !(r.Power > 0) || r.Cores < 1 {
		t.Errorf("%+v", r)
	}
	for _, name := range observe.Fields() {
		v, known := r.Field(name)
		if why := missing[name]; known == (why != "") {
			t.Errorf("%s: %v, known %t, missing because %q", name, v, known, why)
		}
		if name != observe.FieldPower && name != observe.FieldQuota && name != observe.FieldUsage && known && (v < 0 || v > 1) {
			t.Errorf("%s is %v", name, v)
		}
	}
	if _, known := r.Field("load"); known {
		t.Error("a field is known that there is not")
	}
	told := make(chan observe.Reading, 1000)
	stop := o.Watch(func(r observe.Reading) { told <- r })
	if first := <-told; first.Power != r.Power {
		t.Errorf("the first reading told is %+v, want %+v", first, r)
	}
	if _, known := r.Field(observe.FieldShare); known {
		deadline := time.After(20 * time.Second)
		select { // A machine on which nothing at all changes its share is not one that runs tests.
		case <-told:
		case <-deadline:
			t.Error("nothing is told any more")
		}
		if c := o.Cost(); c.CPU <= 0 || c.Elapsed <= 0 {
			t.Errorf("%+v", c)
		}
	}
	stop()
	n := len(told)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if len(told) != n {
		t.Error("a watcher was called after it was stopped")
	}
}

func ExampleStart() {
	// An operator knows the power; without it, it is measured.
	o, err := observe.Start(context.Background(), observe.Options{Power: 1200})
	if err != nil {
		panic(err)
	}
	defer o.Close()
	stop := o.Watch(func(r observe.Reading) {
		if power, known := r.Field(observe.FieldPower); known {
			fmt.Println(power, "units a second")
		}
	})
	stop()
	// Output: 1200 units a second
}

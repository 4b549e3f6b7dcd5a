package outbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestIndex: after each of many random steps, the outbox is due when the first letter or the receipts are, each letter is found by
// what its target tells, and nothing else is in the index.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	o, frames, now := New(), Frames{}, clocksync.Instant(0)
	head := &wire.Signals{Synchronizer: "s"}
	most := 0
	for step := range 20_000 {
		now = now.Add(time.Duration(r.IntN(3)) * time.Millisecond)
		answer := func(f control.Fate) {
			if len(o.letters) > 0 {
				p := o.letters[r.IntN(len(o.letters))]
				o.Answer(now, p.Group, p.Signal.Target, &wire.Answer{Decision: p.Signal.Decision, Name: p.Signal.Name, Target: p.Signal.Target, Fate: f})
			}
		}
		switch frames = frames[:0]; r.IntN(8) {
		case 0, 1, 2:
			s := &control.Signal{
				Decision: control.Decision{Synchronizer: "s", Number: uint64(step)}, Name: fmt.Sprint("n", r.IntN(2)), Target: fmt.Sprint("m", r.IntN(5)), Entry: 1, //nolint:gosec // It is small.
				TTL: time.Duration(1+r.IntN(100)) * time.Millisecond, Cause: control.Cause{Source: 1},
			}
			o.Post(now, head, Letter{Owner: Rule, Group: []string{"", "g"}[r.IntN(2)], Recalls: r.IntN(2) == 0, Signal: s}, &frames)
		case 3:
			answer(control.Waiting)
		case 4:
			answer(control.Applied)
		case 5:
			o.Renew(uint64(step)) //nolint:gosec // It is small.
		case 6:
			o.Restore(uint64(max(0, step-20)), o.Kept(uint64(max(0, step-10)))) //nolint:gosec // They are small.
		}
		if now >= o.Due() {
			o.Retry(now, now, head, func(*Letter) bool { return r.IntN(20) == 0 }, &frames, nil)
			due := o.owedAt
			for _, p := range o.letters {
				due = min(due, p.next)
			}
			if o.due != due {
				t.Fatalf("step %d: due at %v, want %v", step, o.due, due)
			}
		}
		indexed := 0
		for at, p := range o.to {
			for ; p != nil; p = p.before {
				if indexed++; p.addressee() != at || !slices.Contains(o.letters, p) {
					t.Fatalf("step %d: %+v is in the index at %+v", step, p.Signal, at)
				}
			}
		}
		for i, p := range o.letters {
			if o.due > p.next || i > 0 && o.letters[i-1].number >= p.number {
				t.Fatalf("step %d: due at %v, and letter %d at %v", step, o.due, p.number, p.next)
			}
		}
		if most = max(most, indexed); indexed != len(o.letters) {
			t.Fatalf("step %d: %d letters, %d in the index", step, len(o.letters), indexed)
		}
	}
	if most < 10 {
		t.Errorf("at most %d letters at a time", most)
	}
}

package work

import (
	"encoding/binary"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// TestNobodySpeaksForAnother: a frame counts only if its sender is the one that its subject names.
func TestNobodySpeaksForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a, l := g.spaceOf(t, "a", 1)
		_, b := g.spaceOf(t, "b", 1)
		frame := (&workcore.Frame{From: workcore.Peer(b.self), To: workcore.Peer(l.self), Phase: 1, Holds: &workcore.Holds{}}).Append(nil)
		message := append(binary.AppendUvarint(nil, uint64(len(frame))), frame...)
		for from, bad := range map[string]uint64{"b": 0, "c": 1} {
			was := a.Stats().Bad
			a.receive("work.a."+from, message)
			if got := a.Stats().Bad - was; got != bad {
				t.Errorf("a frame of b on the subject of %s: %d are refused, want %d", from, got, bad)
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if err := a.readFrame("c", frame); err == nil || !strings.Contains(err.Error(), `a frame of "b" on the subject of "c"`) {
			t.Error(err)
		}
	})
}

package workcore

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestDbg(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	w := newLogSpace(seed)
	w.live()
	for i, m := range w.messages {
		if m.subject == "barrier" {
			continue
		}
		if !strings.HasPrefix(m.subject, "a.") {
			t.Log(i+1, m.subject, string(m.body))
			continue
		}
		if a := os.Getenv("ACC"); a != "" && m.subject != "a."+a {
			continue
		}
		b, _ := ReadBatch(m.body)
		s := ""
		for left := b.Entries; len(left) > 0; {
			var one []byte
			one, left = SplitEntries(left, 0)
			_, used := binary.Uvarint(one)
			c := coder{buf: one[used:], form: formWaits, names: map[string]string{}}
			var e entry
			c.entry(&e)
			s += fmt.Sprintf(" [%s %d %s%s on %d %v %v %v]", []string{"", "put", "step", "end", "began", "died", "owner"}[e.kind], e.seq, e.task.ID, e.record.ID, e.record.On, e.record.Fate, e.owner, e.record.Result)
		}
		t.Log(i+1, m.subject, b.Owner, "n", b.Number, "phase", b.Phase, "open", b.Open, s)
	}
	t.Log(strings.Join(w.faults, "\n"))
}

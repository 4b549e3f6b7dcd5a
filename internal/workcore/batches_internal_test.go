package workcore

import (
	"encoding/binary"
	"slices"
	"testing"
)

// TestOldBatches: a log that was written before tasks read data is read, and a log with such tasks keeps the names of the data.
func TestOldBatches(t *testing.T) {
	for form, reads := range map[byte][]string{batchObjects: nil, batchData: {"x", "y"}} {
		layout := map[byte]byte{batchObjects: formObjects, batchData: formData}[form]
		c := coder{writing: true, form: layout}
		c.entry(&entry{kind: entryPut, seq: 1, task: Task{ID: "t", Func: "f", Reads: reads}})
		entries := append(binary.AppendUvarint(nil, uint64(len(c.buf))), c.buf...)
		head := coder{buf: []byte{form}, writing: true, form: layout}
		head.batch(&Batch{Owner: Peer{"a", 1}, Number: 1, Phase: 1, Open: 1})
		r := NewRecovery(Limits{})
		r.begun = true
		if _, err := r.Take(append(head.buf, entries...)); err != nil {
			t.Fatalf("form %d: %v", form, err)
		}
		o := r.store.account.findTask("t")
		if o == nil || !slices.Equal(o.task.Reads, reads) {
			t.Fatalf("form %d: %+v", form, o)
		}
		// Its record says that the data were written when it ran.
		if err := r.store.replay(&entry{kind: entryStep, seq: 2, record: Record{ID: "t", On: o.last, Fate: Done}}); err != nil || r.store.account.Counts().Open+r.store.account.Counts().Blocked > 0 {
			t.Errorf("form %d: %v, %+v", form, err, r.store.account.Counts())
		}
	}
}

package wire_test

import (
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestLapse: what a cancellation for want of control has come to travels as an answer, which
// is told apart from those to signals.
func TestLapse(t *testing.T) {
	a := wire.Lapse("search", 7, "w", 3, control.Applied, "the region was without control for 5s")
	a.Decision.Synchronizer = "s"
	frame, _, err := wire.AppendAck(nil, &wire.Ack{Member: "w", Incarnation: 1, Answers: []wire.Answer{a}})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := wire.DecodeAck(frame)
	if err != nil {
		t.Fatal(err)
	}
	s := ack.Answers[0].Lapse()
	if s == nil || s.Region != "search" || s.Entry != 7 || s.Target != "w" || s.Kind != control.Cancel || s.Predicate != wire.ControlLoss {
		t.Errorf("%+v", s)
	}
	answer := wire.Answer{Decision: control.Decision{Synchronizer: "s", Number: 1}, Name: "search", Target: "w", Fate: control.Applied}
	if s := answer.Lapse(); s != nil {
		t.Errorf("the answer to a signal is %+v", s)
	}
	for number, entry := range []uint64{7, 0} {
		if r := (wire.Receipt{Term: 7, Number: uint64(number), Name: "search"}); r.Lapse() != entry { //nolint:gosec // 0 and 1.
			t.Errorf("%+v is of entry %d", r, r.Lapse())
		}
	}
}

func TestBeat(t *testing.T) {
	for text, leads := range map[string]bool{
		`{"term":3,"nonce":5,"host":"h","process":7}`: true,
		`{"term":3,"ends":true}`:                      false,
		`{"term":3,"standby":true}`:                   false,
	} {
		var b wire.Beat
		if err := wire.DecodeBeat([]byte(text), &b); err != nil || b.Term != 3 || b.Leads() != leads {
			t.Errorf("%s: %+v, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "{", `{"term":-1}`, `{"host":"` + string(make([]byte, 1024)) + `"}`} {
		var b wire.Beat
		if err := wire.DecodeBeat([]byte(text), &b); err == nil {
			t.Errorf("%.20q is read as %+v", text, b)
		}
	}
}

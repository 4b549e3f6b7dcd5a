package work

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/scgs"
)

// TestBadOrders: orders that cannot be read change nothing, and one for an object that is not there is counted.
func TestBadOrders(t *testing.T) {
	section := config.DefaultWork()
	section.Strategy = local.Config{Kind: local.Greedy}.WithDefaults()
	g := newGroup(section)
	s, l := g.spaceOf(t, "a", 1, Func("f", func(context.Context, int) (int, error) { return 0, nil }))
	for text, want := range map[string]string{
		"":                                   "balance: orders: unexpected end of JSON input: they are the datum moves of a signal of the section balance",
		"[{}]":                               "balance: orders: one has no load or no target",
		`[{"load":"x","to":"b"}]`:            `strconv.ParseInt: parsing "x": invalid syntax`,
		`[{"load":"1e30","to":"b"}]`:         `strconv.ParseInt: parsing "1e30": invalid syntax`,
		`[{"load":"1","to":"b"},{"load":2}]`: "balance: orders: json: cannot unmarshal number into Go",
	} {
		if _, err := parseOrders(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		l.orders <- text
	}
	if st := s.Stats(); st.Ordered+st.Refused > 0 {
		t.Errorf("%+v", st)
	}
	l.orders <- `[{"load":"4711","to":"b"}]`
	testwait.Until(t, "the order", func() bool { st := s.Stats(); return st.Ordered == 1 && st.Refused == 1 })
}

// TestLoadFields: each field about objects accepts what the largest report has.
func TestLoadFields(t *testing.T) {
	l := &workcore.Load{Slots: 2, Names: []string{strings.Repeat("x", workcore.MaxLabels)}}
	for i := range workcore.MaxTold {
		l.Objects, l.Weights = append(l.Objects, math.MaxInt64-int64(i)), append(l.Weights, 1)
		l.Senders, l.Receivers, l.Volumes = append(l.Senders, 1), append(l.Receivers, 2), append(l.Volumes, 3)
	}
	for range 8 {
		l.Refused, l.Reasons = append(l.Refused, 1), append(l.Reasons, "no such member")
	}
	for _, name := range []string{"slots", "tasks", "weights", "names", "senders", "receivers", "volumes", "refused", "reasons"} {
		f := config.WorkField(name)
		if v, known := loadField(l, f.Name); !known || !f.Accepts(v) || v == f.Default {
			t.Errorf("%s: %v, %v", f.Name, v, known)
		}
		if _, known := loadField(nil, f.Name); known {
			t.Errorf("%s is told although the strategy is not central", f.Name)
		}
	}
	if v, known := loadField(l, "work.other"); known || v != (scgs.Value{}) {
		t.Errorf("%v", v)
	}
}

package scgs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// thresholdCase drives a Threshold by short words, one input each:
//
//	+a10   a's next state begins at 10, and the condition holds
//	-a10   the same, and it does not hold
//	~a10   evidence for a's newest state
//	!a     a is lost
//	^a     a restarts
//
// a, b and c are on hosts of their own, d and e on one; a10/3 is at 10 within 3,
// a10/* not bounded from above.
type thresholdCase struct {
	d    *scgs.Threshold
	seq  [5]uint64
	refs scgs.Ref
}

func newThresholdCase(k int, o scgs.Options) *thresholdCase {
	c := &thresholdCase{d: scgs.NewThreshold(k, o)}
	c.d.Epoch(1, nil, []scgs.Spec{{Domain: "a"}, {Domain: "b"}, {Domain: "c"}, {Domain: "de"}, {Domain: "de"}})
	return c
}

func (c *thresholdCase) input(word string) scgs.Reason {
	m := int(word[1] - 'a')
	domain := clocksync.Domain(min(word[1:2], "de"))
	if m >= 3 {
		domain = "de"
	}
	var t, width clocksync.Instant
	at := clocksync.Stamp{Domain: domain}
	if number, bound, wide := strings.Cut(word[2:], "/"); number != "" {
		_, _ = fmt.Sscan(number, &t)
		_, _ = fmt.Sscan(bound, &width)
		at.Mono, at.Within = t, clocksync.Interval{Earliest: t - width, Latest: t + width}
		if wide && bound == "*" {
			at.Within.Latest = clocksync.MaxInstant
		}
	}
	switch word[0] {
	case '+':
		c.seq[m]++
		c.refs++
		return c.d.Start(scgs.Member(m), c.seq[m], at, c.refs)
	case '-':
		c.seq[m]++
		return c.d.End(scgs.Member(m), c.seq[m], at)
	case '~':
		return c.d.Evidence(scgs.Member(m), c.seq[m], at)
	case '!':
		return c.d.Lost(scgs.Member(m))
	case '^':
		c.seq[m] = 0
		return c.d.Restart(scgs.Member(m), domain, clocksync.MaxInstant)
	}
	panic(word)
}

// found are the sets: "a1 b1" for an alarm, "+ a1 b1 c1" for one that grows.
func (c *thresholdCase) found() []string {
	var all []string
	var set scgs.Set
	for c.d.Next(&set) {
		var words []string
		if set.Grows {
			words = append(words, "+")
		}
		for _, p := range set.Runs {
			words = append(words, fmt.Sprintf("%c%d", 'a'+rune(p.Member), p.Seq))
		}
		core := "none"
		if set.HasCore {
			core = fmt.Sprintf("[%v,%v)", set.CoreFrom, set.CoreTo)
		}
		all = append(all, strings.Join(words, " ")+" core "+core)
	}
	return all
}

func TestThresholdCases(t *testing.T) {
	tests := []struct {
		name, inputs string
		k            int
		want         []string
	}{
		{"two of five, the others silent", "+a10/2 +b20/2 ~a25/2 ~b25/2", 2, []string{"a1 b1 core [22,23)"}},
		{"not before evidence is late enough", "+a10/2 +b20/2 ~a24/2 ~b25/2", 2, nil},
		{"a third joins", "+a10 +b20 ~a25 ~b25 +c30 ~a31 ~b31 ~c31", 2, []string{
			"a1 b1 core [20,25)", "+ a1 b1 c1 core [30,31)",
		}},
		{"once each", "+a10 +b10 ~a20 ~b20 ~a21 ~b21 +a22 -b23 -a24", 2, []string{"a1 b1 core [10,20)"}},
		{"a new run is a new set", "+a10 +b10 ~a20 ~b20 -b21 +b22 ~b23 ~a23", 2, []string{"a1 b1 core [10,20)", "a1 b3 core [22,23)"}},
		{"an empty state splits runs", "+a10 -a20 +a20 +b5 -b30 -a30", 2, []string{"a1 b1 core [10,20)", "a3 b1 core [20,30)"}},
		{"a loss splits runs", "+a10 ~a12 +b5 -b40 !a ~a30 +a32 -a35", 2, []string{"a1 b1 core [10,12)", "a2 b1 core [32,35)"}},
		{"a restart splits runs", "+a10 ~a12 +b5 -b40 ^a +a32 -a35", 2, []string{"a1 b1 core [10,12)", "a1 b1 core [32,35)"}},
		{"short of its own uncertainty", "+a45/5 -a52/5 +b0 -b100", 2, []string{"a1 b1 core none"}},
		{"one host, bounds do not matter", "+d0/50 -d10/50 +e9/50 -e20/50", 2, []string{"d1 e1 core none"}},
		{"one host and an exact one", "+d0/50 -d10/50 +e9/50 -e20/50 +a-100 -a200", 3, []string{"a1 d1 e1 core none"}},
		{"touching", "+a0 -a10 +b10 -b20", 2, nil},
		{"unbounded start: only its own host", "+d0/* ~d10 +e0 ~e11 +a0 ~a11", 2, []string{"d1 e1 core none", "a1 e1 core [0,11)"}},
		{"k of 1", "+a0 ~a0 ~a1/* ~a2", 1, []string{"a1 core [0,1)"}},
		{"k of 1, unbounded", "+a0/* ~a1", 1, []string{"a1 core none"}},
		{"one after the other", "+c0 ~c9 +a2 ~a3 ~a9 -a10 +b11 ~b12 ~c13", 2, []string{"a1 c1 core [2,3)", "b1 c1 core [11,12)"}},
		{"two sets by one input", "+c0 ~c1 +b2 -b4 +a5 -a9 ~c10", 2, []string{"a1 c1 core [5,9)", "b1 c1 core [2,4)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newThresholdCase(test.k, scgs.Options{})
			var got []string
			for word := range strings.FieldsSeq(test.inputs) {
				if why := c.input(word); why != scgs.Accepted {
					t.Fatalf("%s: %v", word, why)
				}
				got = append(got, c.found()...)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.inputs, diff)
			}
		})
	}
}

func TestThresholdNeeds(t *testing.T) {
	tests := []struct {
		name, inputs string
		k            int
		want         []string
	}{
		{"nobody alone", "+a10/2 ~a20/2", 2, nil},
		{"the one that is behind", "+a10/2 +b20/2 ~b25/2", 2, []string{"a1 after 10, 22"}},
		{"both", "+a10/2 +b20/2", 2, []string{"a1 after 10, 22", "b1 after 20, -inf"}},
		{"not one that ended before", "+a10/2 -a15/2 +b20/2", 2, nil},
		{"of an ended run and an open one", "+a10 -a30 +b20 ~b20", 2, []string{"b1 after 20, -inf"}},
		{"one host", "+d0/50 +e9/50", 2, []string{"d1 after 9, -inf", "e1 after 9, -inf"}},
		{"too few", "+a10 +b20", 3, nil},
		{"nothing more", "+a10 +b20 ~a21 ~b21", 2, nil},
		{"its own", "+a10", 1, []string{"a1 after 10, -inf"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newThresholdCase(test.k, scgs.Options{})
			for word := range strings.FieldsSeq(test.inputs) {
				c.input(word)
				c.found()
			}
			var got []string
			for _, n := range c.d.Needs(nil) {
				got = append(got, fmt.Sprintf("%c%d after %v, %v", 'a'+rune(n.Member), n.Seq, n.AfterMono, n.AfterTime))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.inputs, diff)
			}
		})
	}
}

func TestThresholdEpochs(t *testing.T) {
	c := newThresholdCase(2, scgs.Options{})
	feed := func(inputs string) []string {
		var got []string
		for word := range strings.FieldsSeq(inputs) {
			if why := c.input(word); why != scgs.Accepted {
				t.Fatalf("%s: %v", word, why)
			}
			got = append(got, c.found()...)
		}
		return got
	}
	want := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
	want("at first", feed("+a10 +b10 +c10 ~a20 ~b20 ~c20"), "a1 b1 core [10,20)", "+ a1 b1 c1 core [10,20)")
	c.d.Epoch(2, []scgs.Member{2, 2, 77}, nil)
	want("c left", append(c.found(), feed("~a21 ~b21")...))
	if got := c.d.Epoch(3, nil, []scgs.Spec{{Domain: "c"}}); !slices.Equal(got, []scgs.Member{2}) {
		t.Fatalf("the number of c is given out as %v", got)
	}
	c.seq[2] = 0
	want("c is back", feed("+c22 ~c23 ~a23 ~b23"), "a1 c1 core [22,23)", "+ a1 b1 c1 core [22,23)")
	c.d.Epoch(4, []scgs.Member{0}, nil)
	if why := c.input("~a30"); why != scgs.NoMember {
		t.Errorf("a left: %v", why)
	}
	want("d comes in", feed("+d30 ~d31 ~b31 ~c31"), "b1 d1 core [30,31)", "+ b1 c1 d1 core [30,31)")
	var set scgs.Set
	feed("+e32 ~b33 ~c33 ~d33")
	c.input("~e33")
	for index := uint64(3); c.d.Next(&set); index++ {
		if set.Epoch != 4 || set.Index != index || !set.Grows {
			t.Errorf("epoch %d, index %d, grows %v", set.Epoch, set.Index, set.Grows)
		}
	}
}

// What one input completes may be taken out after later inputs and an epoch.
func TestThresholdSetsWait(t *testing.T) {
	c := newThresholdCase(2, scgs.Options{Ends: true})
	for word := range strings.FieldsSeq("+a10 +b10 ~a20 ~b20 -a21 -b22 +a23 +b23 ~a30 ~b30 ~c40 ~d40 ~e40 ~a40 ~b40") {
		c.input(word)
	}
	c.d.Epoch(2, []scgs.Member{0, 1}, nil)
	if refs := c.d.Released(nil); len(refs) > 0 {
		t.Errorf("%v released while a set has them", refs)
	}
	want := []string{"a1 b1 core [10,21)", "a3 b3 core [23,40)"}
	if diff := cmp.Diff(want, c.found()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	refs := c.d.Released(nil)
	slices.Sort(refs)
	if !slices.Equal(refs, []scgs.Ref{1, 2, 3, 4}) {
		t.Errorf("released %v", refs)
	}
	var ended []string
	for _, p := range c.d.Ended(nil) {
		ended = append(ended, fmt.Sprintf("%d.%d %v-%v", p.Member, p.Seq, p.Start.Mono, p.End.Mono))
	}
	if diff := cmp.Diff([]string{"0.1 10-21", "1.1 10-22"}, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

func TestThresholdRefuses(t *testing.T) {
	c := newThresholdCase(2, scgs.Options{})
	at := clocksync.Stamp{Domain: "a", Mono: 5, Within: clocksync.Around(5, 1)}
	c.d.Start(0, 3, at, 1)
	empty, late, foreign := at, at, at
	empty.Within.Earliest = 9
	late.Mono = 4
	foreign.Domain = "b"
	tests := []struct {
		name string
		got  scgs.Reason
		want scgs.Reason
	}{
		{"no member", c.d.Start(9, 1, at, 1), scgs.NoMember},
		{"number 0", c.d.End(0, 0, at), scgs.Malformed},
		{"empty interval", c.d.Evidence(0, 3, empty), scgs.Malformed},
		{"seen", c.d.Start(0, 3, at, 1), scgs.Duplicate},
		{"passed over", c.d.Evidence(0, 2, at), scgs.Stale},
		{"another clock", c.d.Start(0, 4, foreign, 1), scgs.Foreign},
		{"before the newest", c.d.Evidence(0, 3, late), scgs.Regress},
		{"lost nobody", c.d.Lost(-1), scgs.NoMember},
		{"restart nobody", c.d.Restart(-1, "a", clocksync.MaxInstant), scgs.NoMember},
		{"evidence of no member", c.d.Evidence(-1, 1, at), scgs.NoMember},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
	if s := c.d.Stats(); s.Refused(scgs.NoMember) != 4 || s.States != 1 {
		t.Errorf("%+v", s)
	}
}

// Run shows a member's run for as long as it is open, with its newest evidence.
func TestThresholdRun(t *testing.T) {
	c := newThresholdCase(2, scgs.Options{})
	for _, step := range []struct{ input, want string }{
		{"-a5", "none"},
		{"+a10/2", "2 from 10 to 10, ref 1"},
		{"~a14/2", "2 from 10 to 14, ref 1"},
		{"+a20/2", "2 from 10 to 20, ref 2"},
		{"-a30/2", "none"},
		{"+a40/2", "5 from 40 to 40, ref 3"},
		{"!a", "none"},
	} {
		if why := c.input(step.input); why != scgs.Accepted {
			t.Fatalf("%s: %v", step.input, why)
		}
		got := "none"
		if p, ok := c.d.Run(0); ok {
			got = fmt.Sprintf("%d from %v to %v, ref %d", p.Seq, p.Start.Mono, p.End.Mono, p.Ref)
		}
		if got != step.want {
			t.Errorf("after %s the run is %s, want %s", step.input, got, step.want)
		}
	}
	if _, ok := c.d.Run(9); ok {
		t.Error("a stranger has a run")
	}
}

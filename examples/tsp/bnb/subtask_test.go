package bnb

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func equalSubtask(a, b Subtask) bool {
	return a.Kind == b.Kind && a.LowerBound == b.LowerBound && slices.Equal(a.Required, b.Required) &&
		slices.Equal(a.Forbidden, b.Forbidden) && slices.Equal(a.Prefix, b.Prefix) && slices.Equal(a.Prices, b.Prices)
}

func drawSubtask(t *rapid.T, n int) Subtask {
	edges := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Edge {
		v := rapid.Int32Range(1, int32(n-1)).Draw(t, "v")
		return Edge{rapid.Int32Range(0, v-1).Draw(t, "u"), v}
	}))
	s := Root(drawKind(t))
	s.Forbidden = edges.Draw(t, "forbidden")
	s.LowerBound = rapid.IntRange(0, math.MaxInt-1).Draw(t, "bound")
	if rapid.Bool().Draw(t, "priced") {
		s.Prices = rapid.SliceOfN(rapid.Int64Range(-maxPrice, maxPrice), n, n).Draw(t, "prices")
	}
	if s.Kind == Edges {
		s.Required = edges.Draw(t, "required")
		return s
	}
	s.Prefix = append(s.Prefix, rapid.SliceOfDistinct(rapid.Int32Range(1, int32(n-1)), rapid.ID).Draw(t, "prefix")...)
	return s
}

func TestSubtaskRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 2000).Draw(t, "n")
		n = min(n, rapid.SampledFrom([]int{20, 2000}).Draw(t, "most"))
		s := drawSubtask(t, n)
		got := recode(t, []Subtask{s}, n)[0]
		if !equalSubtask(got, s) {
			t.Fatalf("%+v became %+v", s, got)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	encode := func(s Subtask) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "bnb: subtask: unexpected end of JSON input"},
		{"large", strings.Repeat(" ", MaxSubtaskBytes+1), "bnb: subtask of 262145 bytes: at most 262144 are allowed"},
		{"no kind", "{}", "bnb: subtask of unknown kind 0"},
		{"kind", `{"kind":7}`, "bnb: subtask of unknown kind 7"},
		{"short", encode(Root(Edges))[:5], "bnb: subtask: unexpected end of JSON input"},
		{"range", `{"kind":256}`, "bnb: subtask: json: cannot unmarshal number 256 into Go struct field Subtask.kind of type bnb.Kind"},
		{"rest", encode(Root(Edges)) + "0", "bnb: subtask: invalid character '0' after top-level value"},
		{"bound", encode(Subtask{Kind: Edges, LowerBound: -1}), "bnb: subtask: lower bound -1 is negative"},
		{"city", encode(Subtask{Kind: Edges, Required: []Edge{{1, 10}}}), "bnb: subtask: no edge 1-10: the instance has 10 cities"},
		{"loop", encode(Subtask{Kind: Edges, Required: []Edge{{1, 1}}}), "bnb: subtask: no edge 1-1: the instance has 10 cities"},
		{"order", encode(Subtask{Kind: Edges, Forbidden: []Edge{{2, 1}}}), "bnb: subtask: no edge 2-1: the instance has 10 cities"},
		{"edges with prefix", encode(Subtask{Kind: Edges, Prefix: []int32{0}}), "bnb: subtask of kind edges with a prefix"},
		{"prefix without", encode(Subtask{Kind: Prefix}), "bnb: subtask of kind prefix must have a prefix from city 0 and no required edges"},
		{"prefix from elsewhere", encode(Subtask{Kind: Prefix, Prefix: []int32{1}}), "bnb: subtask of kind prefix must have a prefix from city 0 and no required edges"},
		{"prefix with required", encode(Subtask{Kind: Prefix, Prefix: []int32{0}, Required: []Edge{{0, 1}}}), "bnb: subtask of kind prefix must have a prefix from city 0 and no required edges"},
		{"few prices", encode(Subtask{Kind: Edges, Prices: make([]int64, 9)}), "bnb: subtask with prices of 9 cities: the instance has 10"},
		{"price", encode(Subtask{Kind: Edges, Prices: []int64{9: maxPrice + 1}}), "bnb: subtask: price 17592186044417 of city 9 is beyond 17592186044416"},
		{"prefix twice", encode(Subtask{Kind: Prefix, Prefix: []int32{0, 1, 0}}), "bnb: subtask: city 0 in the prefix is unknown or there twice: the instance has 10 cities"},
	} {
		if _, err := DecodeSubtask([]byte(c.text), 10); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestKindText(t *testing.T) {
	for _, k := range []Kind{Edges, Prefix} {
		if got, err := ParseKind(k.String()); err != nil || got != k {
			t.Errorf("%v became %v, %v", k, got, err)
		}
	}
	want := `bnb: unknown kind of subtasks "nodes": use edges or prefix`
	if _, err := ParseKind("nodes"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Whatever decodes must also search without a panic.
func FuzzDecodeSubtask(f *testing.F) {
	in := load(f, "burma14")
	tour := make([]int, in.N)
	for i := range tour {
		tour[i] = i
	}
	p, err := Prepare(in, Options{Tour: tour})
	if err != nil {
		f.Fatal(err)
	}
	for _, kind := range []Kind{Edges, Prefix} {
		s := mustSearch(f, p, Root(kind), incumbentOf(p))
		s.Split(8, nil)
		for _, part := range s.Remaining() {
			b, err := json.Marshal(part)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		part, err := DecodeSubtask(b, in.N)
		if err != nil {
			return
		}
		s := mustSearch(t, p, part, incumbentOf(p))
		for range 3 {
			s.Step()
		}
		recode(t, s.Remaining(), in.N)
	})
}

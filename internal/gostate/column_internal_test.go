package gostate

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/observe"
	"github.com/gopegasus/pegasus/scgs"
)

type word string

// numbers has a field of every kind that is told as a word, at all sorts of offsets.
type numbers struct {
	B      bool
	I8     int8
	Gap    [3]byte `pegasus:"-"`
	U16    uint16
	I      int
	inside string
	F32    float32
	U8     uint8
	I64    int64
	I32    int32
	E      word
	U      uint
	Not    *int `pegasus:"-"`
	U32    uint32
	I16    int16
	D      time.Duration
	F64    float64
	U64    uint64
	Last   string
}

// texts has one of every kind that is not.
type texts struct {
	Bs   []bool
	S    string
	I8s  []int8
	U16s []uint16
	Is   []int
	F32s []float32
	Ds   []time.Duration
	Es   []word
	Ss   []string
	U64s []uint64
}

var words = []string{"idle", "search", "idl"}

// schemaOf declares enums where the types say nothing else.
func schemaOf(t *rapid.T, state any) scgs.Schema {
	t.Helper()
	l, err := layoutFor(state)
	if err != nil {
		t.Fatal(err)
	}
	s := l.schema()
	for i := range s {
		if f := &s[i]; f.Name == "e" || f.Name == "es" || f.Name == "last" {
			f.Words = words
			if f.Type = scgs.Enum; f.Name == "es" {
				f.Type = scgs.ListOf(scgs.Enum)
			}
		}
	}
	for i, j := 0, len(s)-1; i < j; i, j = i+2, j-2 { // The order of the struct is not that of the declaration.
		s[i], s[j] = s[j], s[i]
	}
	return s
}

// TestFieldsAreReadAsReflectReadsThem: in any order of the declared fields, with whatever
// is in them; what is told as words is what is told as a row, and only that is refused
// as words that is refused as a row.
func TestFieldsAreReadAsReflectReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRead(t, &numbers{inside: "x"}, true)
		checkRead(t, &texts{}, false)
	})
}

func checkRead[T any](t *rapid.T, state *T, plain bool) {
	declared := schemaOf(t, *state)
	l, err := layoutFor(*state)
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.match(declared, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		v := reflect.ValueOf(state).Elem()
		for _, f := range l.fields {
			draw(t, v.FieldByName(f.goName))
		}
		want, told := byReflection(v, l, declared)
		row := make([]scgs.Value, len(declared))
		if err := e.fill(row, unsafe.Pointer(state)); (err == nil) != told {
			t.Fatalf("%+v: %v, can be told: %t", *state, err, told)
		}
		for i := range want {
			if told && row[i] != want[i] {
				t.Fatalf("field %s of %+v: %v, reflect says %v", declared[i].Name, *state, row[i], want[i])
			}
		}
		refused := !told || wire.NewBatchCodec(declared).CheckRow(row) != nil
		read := e.read(unsafe.Pointer(state))
		if read != (plain && !refused) {
			t.Fatalf("%+v is told as words: %t, refused: %t", *state, read, refused)
		}
		for i := range declared {
			if w, ok := agentcore.Word(&declared[i], row[i]); read && (!ok || w != e.words[i]) {
				t.Fatalf("field %s of %+v is the word %#x, and %#x of %v", declared[i].Name, *state, e.words[i], w, row[i])
			}
		}
	}
}

// draw fills a field, rarely with what cannot be told.
func draw(t *rapid.T, f reflect.Value) {
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(rapid.Bool().Draw(t, "b"))
	case reflect.String:
		f.SetString(strings.Clone(rapid.SampledFrom(append([]string{"idle", "search", "idl"}, rare(t, "", "other", "\xff", strings.Repeat("x", 300))...)).Draw(t, "s")))
	case reflect.Float32, reflect.Float64:
		f.SetFloat(rapid.SampledFrom(append([]float64{0, math.Copysign(0, -1), 0.1, -1e30}, rare(t, math.NaN(), math.Inf(1), math.Inf(-1))...)).Draw(t, "f"))
	case reflect.Slice:
		n := rapid.SampledFrom(append([]int{0, 1, 2, 3}, rare(t, scgs.MaxElements, scgs.MaxElements+1)...)).Draw(t, "n")
		f.Set(reflect.MakeSlice(f.Type(), n, n+1))
		for i := range n {
			draw(t, f.Index(i))
		}
	default:
		n := rapid.SampledFrom(append([]int64{0, 1, -1, math.MaxInt64, math.MinInt64 + 255}, rapid.Int64().Draw(t, "n"))).Draw(t, "i")
		if f.CanInt() {
			f.SetInt(n >> (64 - 8*f.Type().Size()))
			return
		}
		u := uint64(n) &^ (1 << 63) >> (64 - 8*f.Type().Size())
		if len(rare(t, 0)) > 0 {
			u = uint64(n) >> (64 - 8*f.Type().Size())
		}
		f.SetUint(u)
	}
}

// rare returns the values once in a while.
func rare[T any](t *rapid.T, values ...T) []T {
	if rapid.IntRange(0, 60).Draw(t, "rare") == 0 {
		return values
	}
	return nil
}

// byReflection is a row, and whether there is one.
func byReflection(v reflect.Value, l *layout, declared scgs.Schema) (row []scgs.Value, ok bool) {
	row, ok = make([]scgs.Value, len(declared)), true
	for _, f := range l.fields {
		i := declared.Index(f.field.Name)
		d, x := &declared[i], v.FieldByName(f.goName)
		if d.Type.IsList() {
			var elements []scgs.Value
			for j := range x.Len() {
				elements = append(elements, reflected(x.Index(j), d.Type.Elem()))
			}
			row[i] = scgs.ListValue(d.Type.Elem(), elements...)
			ok = ok && x.Len() <= scgs.MaxElements
			for _, e := range elements {
				ok = ok && (d.Type.Elem() != scgs.Enum || slices.Contains(words, e.Text()))
			}
		} else {
			row[i] = reflected(x, d.Type)
		}
		ok = ok && row[i].Type() != scgs.Invalid && (d.Type != scgs.Enum || slices.Contains(words, row[i].Text()))
	}
	return row, ok
}

func reflected(x reflect.Value, as scgs.Type) scgs.Value {
	switch as {
	case scgs.Bool:
		return scgs.BoolValue(x.Bool())
	case scgs.Float:
		return scgs.FloatValue(x.Float())
	case scgs.Duration:
		return scgs.DurationValue(time.Duration(x.Int()))
	case scgs.String:
		return scgs.StringValue(x.String())
	case scgs.Enum:
		return scgs.EnumValue(x.String())
	}
	if x.CanInt() {
		return scgs.IntValue(x.Int())
	}
	if u := x.Uint(); u <= math.MaxInt64 {
		return scgs.IntValue(int64(u))
	}
	return scgs.Value{}
}

// TestAWordIsFoundByWhatItSays: not by where it lies, as memory is used again.
func TestAWordIsFoundByWhatItSays(t *testing.T) {
	type state struct{ E string }
	s := state{}
	declared := scgs.Schema{{Name: "e", Type: scgs.Enum, Words: []string{"idle", "busy"}}}
	l, err := layoutFor(s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.match(declared, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("busy")
	s.E = unsafe.String(&text[0], len(text))
	if !e.read(unsafe.Pointer(&s)) || e.words[0] != 1 {
		t.Fatalf("busy is word %d", e.words[0])
	}
	copy(text, "idle")
	if !e.read(unsafe.Pointer(&s)) || e.words[0] != 0 {
		t.Errorf("idle, where busy lay, is word %d", e.words[0])
	}
	copy(text, "gone")
	if e.read(unsafe.Pointer(&s)) {
		t.Errorf("gone is word %d", e.words[0])
	}
}

// TestAStructThatIsAPointer lies in the interface itself, and has no field to read.
func TestAStructThatIsAPointer(t *testing.T) {
	type state struct {
		P *int `pegasus:"-"`
	}
	var given0 any = state{}
	l, err := layoutFor(given0)
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.match(scgs.Schema{{Name: "n", Type: scgs.Int, Default: scgs.IntValue(7)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, at := given(&given0); !e.read(at) || e.words[0] != 7 {
		t.Errorf("told %v", e.words)
	}
}

// TestARefusedStateIsNotTheLastOne: the row of the one before it stays, and with it what
// is observed, wherever the new one is refused.
func TestARefusedStateIsNotTheLastOne(t *testing.T) {
	type state struct{ Load, Best float64 }
	declared := scgs.Schema{{Name: "load", Type: scgs.Float}, {Name: "power", Type: scgs.Float}, {Name: "best", Type: scgs.Float}}
	reading := observe.Reading{Power: 1}
	e := Encoding{Providers: []Provider{Observed{&reading}}}
	row := func(s state) ([]scgs.Value, error) {
		b, at, err := e.Of(s, declared)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Row(b, at)
		if err == nil && s.Load >= 100 {
			err = errors.New("too much for whoever is told")
		}
		return r, e.Took(b, err)
	}
	if got, err := row(state{1, 2}); err != nil || fmt.Sprint(got) != "[1 1 2]" {
		t.Fatal(got, err)
	}
	for i, refused := range []state{{5, math.NaN()}, {100, 6}, {7, math.NaN()}} {
		_, _ = row(refused)
		reading.Power = float64(i + 2)
		if got, changed := e.Again(declared); !changed || fmt.Sprint(got) != fmt.Sprintf("[1 %d 2]", i+2) || e.Type() != reflect.TypeFor[state]() {
			t.Errorf("after %v: %v, %t", refused, got, changed)
		}
	}
	if got, err := row(state{3, 4}); err != nil || fmt.Sprint(got) != "[3 4 4]" {
		t.Error(got, err)
	}
	n := 0.0
	if allocs := testing.AllocsPerRun(100, func() {
		s := state{n, n}
		b := e.last
		_, err := e.Row(b, unsafe.Pointer(&s))
		if err = e.Took(b, err); err != nil {
			t.Error(err)
		}
	}); allocs > 0 {
		t.Errorf("a row allocates %v times", allocs)
	}
}

// TestManyWords are not all told.
func TestManyWords(t *testing.T) {
	type state struct{ E string }
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprint("w", i))
	}
	declared := scgs.Schema{{Name: "e", Type: scgs.Enum, Words: many}}
	want := `agent: field E of gostate.state cannot be told: "` + strings.Repeat("x", 64) + `" is not one of its words: use w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, and 84 more`
	if err := Fill(declared, Defaults(declared), state{strings.Repeat("x", 1000)}); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

package yamlconf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/nearest"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	nodeType     = reflect.TypeFor[Node]()
)

// decodeInto fills the value a pointer points to. A type it cannot fill is a
// mistake of the calling program, hence a panic.
func (d *Doc) decodeInto(n *node, into any) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("yamlconf: decoding %q into %T, not a pointer", n.pathOf(), into))
	}
	d.decode(n, v.Elem())
}

func (d *Doc) decode(n *node, v reflect.Value) {
	if v.Type() == nodeType {
		v.Set(reflect.ValueOf(Node{d, n}))
		return
	}
	if n.kind == KindNull {
		hint := "write a value, or remove the key"
		if n.cutOff() {
			hint = commaHint
		}
		d.faultAt(n, hint, "no value")
		return
	}
	if u, ok := reflect.TypeAssert[Unmarshaler](v.Addr()); ok {
		d.unmarshal(n, u.UnmarshalNode)
		return
	}
	if v.Type() == durationType {
		d.decodeDuration(n, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.decode(n, v.Elem())
	case reflect.Struct:
		d.decodeStruct(n, v)
	case reflect.Slice:
		d.decodeSlice(n, v)
	case reflect.String:
		d.decodeString(n, v)
	case reflect.Bool:
		d.decodeBool(n, v)
	case reflect.Float32, reflect.Float64:
		d.decodeFloat(n, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.decodeInt(n, v)
	default:
		panic(fmt.Sprintf("yamlconf: %q: cannot decode into %s; use Map for a map", n.pathOf(), v.Type()))
	}
}

func (d *Doc) unmarshal(n *node, read func(Node) error) {
	before := d.countFaults()
	if err := read(Node{d, n}); err != nil && d.countFaults() == before {
		d.faultAt(n, "", "%v", err)
	}
}

// wrongKind reports a value of another kind than wanted.
func (d *Doc) wrongKind(n *node, wanted, hint string) {
	found := n.kind.String()
	switch n.kind { //nolint:exhaustive // The name of the kind says enough.
	case KindBool:
		found = n.text
	case KindInt, KindFloat:
		found = "the number " + strings.Trim(clip(n.text), `"`)
	case KindText:
		found = "the text " + clip(n.text)
		if strings.HasPrefix(n.text, "params.") {
			hint = "no parameter of that name and type is declared below params"
		} else if kind := plainKind(n.text); hint == "" && n.style != stylePlain && (kind == KindInt || kind == KindFloat) {
			hint = "write it without quotes: " + n.text
		}
	}
	if d.unread == nil {
		d.unread = map[string]bool{}
	}
	d.unread[n.pathOf()] = true
	d.faultAt(n, hint, "expected %s, found %s", wanted, found)
}

// clip quotes a scalar for a message and cuts a long one.
func clip(text string) string {
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "..."
	}
	return strconv.Quote(text)
}

func (d *Doc) decodeSlice(n *node, v reflect.Value) {
	if n.kind != KindList {
		d.wrongKind(n, "a list", "write [a, b], or one line with a dash for each item")
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.decode(item, list.Index(i))
	}
	v.Set(list)
}

func (d *Doc) decodeString(n *node, v reflect.Value) {
	switch {
	case n.kind == KindText:
		v.SetString(n.text)
	case n.kind < KindText:
		d.wrongKind(n, "text", "write it in quotes: "+clip(n.text))
	default:
		d.wrongKind(n, "text", "")
	}
}

func (d *Doc) decodeBool(n *node, v reflect.Value) {
	n = d.findNamed(n)
	if n.kind != KindBool {
		d.wrongKind(n, "true or false", "write true or false without quotes")
		return
	}
	v.SetBool(strings.EqualFold(n.text, "true"))
}

func (d *Doc) decodeFloat(n *node, v reflect.Value) {
	n = d.findNamed(n)
	if n.kind != KindInt && n.kind != KindFloat {
		d.wrongKind(n, "a number", "")
		return
	}
	f, err := ParseFloat(n.text)
	switch {
	case math.IsNaN(f):
		d.faultAt(n, "leave the key out if there is no number", "not-a-number is refused")
	case err != nil || v.OverflowFloat(f) && !math.IsInf(f, 0):
		d.faultAt(n, "", "%s is out of range", strings.Trim(clip(n.text), `"`))
	default:
		v.SetFloat(f)
	}
}

// ParseFloat parses a number in any form a config accepts: 1, -2.5e3, 0x1f,
// +inf, -.inf, .nan.
func ParseFloat(text string) (float64, error) {
	switch plainKind(text) {
	case KindInt:
		// Base 0 would read 010 as octal.
		base := 10
		if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0o") {
			base = 0
		}
		if i, err := strconv.ParseInt(text, base, 64); err == nil {
			return float64(i), nil
		}
		return strconv.ParseFloat(text, 64)
	case KindFloat:
		text = strings.ToLower(text)
		text = strings.Replace(text, ".inf", "inf", 1)
		return strconv.ParseFloat(strings.Replace(text, ".nan", "nan", 1), 64)
	default:
		return 0, fmt.Errorf("yamlconf: %s is not a number", clip(text))
	}
}

func (d *Doc) decodeInt(n *node, v reflect.Value) {
	n = d.findNamed(n)
	if n.kind != KindInt {
		d.wrongKind(n, "a whole number", "")
		return
	}
	base := 10
	if strings.HasPrefix(n.text, "0x") || strings.HasPrefix(n.text, "0o") {
		base = 0
	}
	bits := v.Type().Bits()
	if v.CanInt() {
		if i, err := strconv.ParseInt(n.text, base, bits); err == nil {
			v.SetInt(i)
			return
		}
		d.faultAt(n, fmt.Sprintf("write a number from %d to %d", int64(-1)<<(bits-1), int64(1)<<(bits-1)-1), "%s is out of range", strings.Trim(clip(n.text), `"`))
		return
	}
	if u, err := strconv.ParseUint(strings.TrimPrefix(n.text, "+"), base, bits); err == nil {
		v.SetUint(u)
		return
	}
	d.faultAt(n, fmt.Sprintf("write a number from 0 to %d", uint64(math.MaxUint64)>>(64-bits)), "%s is out of range", strings.Trim(clip(n.text), `"`))
}

func (d *Doc) decodeDuration(n *node, v reflect.Value) {
	n = d.findNamed(n)
	const wanted = "a duration"
	const hint = "write a number with a unit: 200ms, 2s, 1m30s"
	if n.kind > KindText {
		d.wrongKind(n, wanted, hint)
		return
	}
	t, err := time.ParseDuration(n.text)
	if err != nil || n.kind != KindText && n.text != "0" {
		d.wrongKind(n, wanted, hint)
		return
	}
	v.SetInt(int64(t))
}

// field is a struct field that a key fills.
type field struct {
	name     string
	index    int
	required bool
	form     string // empty: that of its type
}

func fields(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		options := strings.Split(t.Field(i).Tag.Get("yaml"), ",")
		if options[0] == "" || options[0] == "-" {
			continue
		}
		f := field{name: options[0], index: i}
		for _, option := range options[1:] {
			if option == "required" {
				f.required = true
			} else {
				f.form = option
			}
		}
		list = append(list, f)
	}
	return list
}

func (d *Doc) decodeStruct(n *node, v reflect.Value) {
	list := fields(v.Type())
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.name
	}
	if n.kind != KindMap {
		d.wrongKind(n, "a map", "known keys: "+strings.Join(names, ", "))
		return
	}
	given := make([]bool, len(list))
	for _, item := range n.items {
		i := slices.Index(names, item.key)
		if i < 0 {
			d.unknownKey(item, names)
			continue
		}
		given[i] = true
		into := v.Field(list[i].index)
		if read := d.forms[list[i].form]; read != nil && item.kind != KindNull {
			d.unmarshal(item, func(n Node) error { return read(n, into.Addr().Interface()) })
		} else {
			d.decode(item, into)
		}
		if list[i].required && into.Kind() == reflect.String && item.kind == KindText && item.text == "" {
			d.faultAt(item, "the key needs a value here", "an empty text")
		}
	}
	at := n.pos
	if n.keyPos != (Pos{}) {
		at = n.keyPos
	}
	for i, f := range list {
		if f.required && !given[i] {
			d.addFault(Fault{Pos: at, Path: n.pathOf(), Message: fmt.Sprintf("missing key %q", f.name), Hint: "the key needs a value here"})
		}
	}
}

const commaHint = "inside braces a comma ends a value: write text that holds one in quotes"

// cutOff reports whether what should be a key looks like the end of a text that held a
// comma.
func (n *node) cutOff() bool { return n.kind == KindNull && strings.ContainsAny(n.key, ".()\"' ") }

func (d *Doc) unknownKey(n *node, known []string) {
	message := fmt.Sprintf("unknown key %q", n.key)
	if near := nearest.Name(n.key, known); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	hint := "known keys: " + strings.Join(known, ", ")
	if n.cutOff() {
		hint = commaHint
	}
	d.addFault(Fault{Pos: n.keyPos, Path: n.pathOf(), Message: message, Hint: hint})
}

package yamlconf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Kind is what a value is by its looks, after the core schema of YAML 1.2.
type Kind uint8

// The kinds. Only plain scalars can be anything but text.
const (
	KindNull  Kind = iota // Nothing, null or ~.
	KindBool              // true or false.
	KindInt               // A whole number.
	KindFloat             // Any other number, also +inf, -inf and .nan.
	KindText              // Quoted, block or other plain text.
	KindList
	KindMap
)

// String returns the kind as it stands in a fault.
func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a whole number", "a number", "text", "a list", "a map"}[k]
}

type style uint8

const (
	stylePlain style = iota
	styleSingle
	styleDouble
	styleBlock
)

// node is a value in the tree; the root has no key.
type node struct {
	kind   Kind
	style  style
	text   string
	pos    Pos
	parent *node
	key    string // In a map.
	keyPos Pos
	number int // In a list.
	items  []*node
}

// Node is a read-only view of one value of a document. Types that implement
// Unmarshaler look at it to choose between the forms they accept.
type Node struct {
	doc *Doc
	n   *node
}

// Unmarshaler is implemented by types that accept a value in several forms. An
// error becomes a fault at the value, unless it came from a method of Node,
// which has already reported it. A value that is missing or null never gets
// here: it is a fault before.
type Unmarshaler interface {
	UnmarshalNode(n Node) error
}

// errReported stands for faults that are in the Doc already.
var errReported = errors.New("yamlconf: reported")

// Kind returns what the value is.
func (n Node) Kind() Kind { return n.n.kind }

// Text returns a scalar's value without quotes, escapes and indentation; it is
// empty for lists and maps.
func (n Node) Text() string { return n.n.text }

// Quoted reports whether a scalar was written in quotes or as a block, so that
// it is text whatever it looks like.
func (n Node) Quoted() bool { return n.n.style != stylePlain }

// Pos returns where the value starts: for a block scalar its "|" or ">", for a
// map without braces its first key.
func (n Node) Pos() Pos { return n.n.pos }

// Path returns the value's path, such as synchronizers.gsync.members.
func (n Node) Path() string { return n.n.pathOf() }

// Key returns the map key of the value and its place; both are zero for items
// of a list.
func (n Node) Key() (string, Pos) { return n.n.key, n.n.keyPos }

// Items returns the items of a list or the values of a map, in file order.
func (n Node) Items() []Node {
	items := make([]Node, len(n.n.items))
	for i, v := range n.n.items {
		items[i] = Node{n.doc, v}
	}
	return items
}

// Each returns the items of a list, or else the value itself.
func (n Node) Each() []Node {
	if n.Kind() != KindList {
		return []Node{n}
	}
	return n.Items()
}

// Get returns the value of a map's key.
func (n Node) Get(key string) (Node, bool) {
	if v := n.n.childOf(key); v != nil {
		return Node{n.doc, v}, true
	}
	return Node{}, false
}

// Decode decodes the value into a pointer, as the function Decode does. The
// error only tells that faults were reported.
func (n Node) Decode(into any) error {
	before := n.doc.countFaults()
	n.doc.decodeInto(n.n, into)
	if n.doc.countFaults() != before {
		return errReported
	}
	return nil
}

// Names lets texts stand for numbers, durations and truth values in all that is decoded of
// the document from now on.
func (n Node) Names(value func(text string) (value string, ok bool)) { n.doc.names = value }

// Named is Text, or that of the value which it stands for, see Names.
func (n Node) Named() string { return n.doc.findNamed(n.n).text }

// findNamed is the scalar that a text stands for, in its place, or the node itself.
func (d *Doc) findNamed(n *node) *node {
	if d.names == nil || n.kind != KindText {
		return n
	}
	value, ok := d.names(n.text)
	if !ok {
		return n
	}
	is := *n
	is.text, is.kind = value, plainKind(value)
	return &is
}

// Fault reports a fault at the value. The error is to be returned as it is.
func (n Node) Fault(format string, args ...any) error {
	n.doc.addFault(Fault{Pos: n.n.pos, Path: n.n.pathOf(), Message: fmt.Sprintf(format, args...)})
	return errReported
}

var (
	intText   = regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	floatText = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// plainKind classifies a plain scalar. Besides the core schema it takes +inf
// and -inf without a dot, which is how people write them.
func plainKind(text string) Kind {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return KindNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return KindBool
	case "+inf", "-inf", ".nan", ".NaN", ".NAN":
		return KindFloat
	}
	if infinite := strings.TrimLeft(text, "+-"); len(text)-len(infinite) <= 1 {
		if infinite == ".inf" || infinite == ".Inf" || infinite == ".INF" {
			return KindFloat
		}
	}
	switch {
	case intText.MatchString(text):
		return KindInt
	case floatText.MatchString(text):
		return KindFloat
	default:
		return KindText
	}
}

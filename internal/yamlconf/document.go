package yamlconf

import (
	"fmt"
	"slices"
	"strings"
)

// Doc is a decoded document: the places of its values, and the faults found.
type Doc struct {
	name  string
	lines []string
	list  []Fault
	more  int // faults beyond those kept

	unread map[string]bool // paths of values of another type than Decode wanted
	root   *node
	forms  Forms
	names  func(text string) (value string, ok bool) // of numbers and durations; nil: there are none
}

// Forms decode fields of types that cannot be Unmarshalers, by the word that the tag
// of a field has behind its name: `yaml:"body,construct"`. Each is given the value,
// which is not null, and a pointer to the field; its error is as that of an
// Unmarshaler.
type Forms map[string]func(n Node, into any) error

// Decode decodes src into the struct that into points to; name stands for the
// file in faults. The error is an *Error with every fault.
//
// Where src is not YAML or beyond a limit the Doc is nil. Otherwise the Doc is
// there even with an error: whatever could be decoded is in place, so the
// caller can continue checking, add faults of its own and return Doc.Err.
func Decode(name string, src []byte, into any) (*Doc, error) {
	return DecodeWith(nil, name, src, into)
}

// DecodeWith is [Decode] where the tags of fields may name a form.
func DecodeWith(forms Forms, name string, src []byte, into any) (*Doc, error) {
	d := &Doc{name: name, forms: forms}
	if len(src) <= maxBytes {
		d.lines = strings.Split(string(src), "\n")
		for i, line := range d.lines {
			d.lines[i] = strings.TrimSuffix(line, "\r")
		}
	}
	if !d.checkBytes(src) {
		return nil, d.Err()
	}
	if d.root = d.parseText(strings.Join(d.lines, "\n")); d.root == nil {
		return nil, d.Err()
	}
	d.decodeInto(d.root, into)
	return d, d.Err()
}

// Root returns the whole document.
func (d *Doc) Root() Node { return Node{d, d.root} }

// Faulty reports whether a fault is at a path or below it.
func (d *Doc) Faulty(path string) bool {
	return slices.ContainsFunc(d.list, func(f Fault) bool {
		rest, below := strings.CutPrefix(f.Path, path)
		return below && (rest == "" || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
	})
}

// countFaults returns the number of faults so far.
func (d *Doc) countFaults() int { return len(d.list) + d.more }

// Pos returns where the value at a path starts, and the zero Pos where there is
// none.
func (d *Doc) Pos(path string) Pos {
	if n, ok := d.root.findPath(path); ok {
		return n.pos
	}
	return Pos{}
}

// KeyPos returns the place of the key that a path ends in; for an item of a
// list it is the place of the item.
func (d *Doc) KeyPos(path string) Pos {
	n, ok := d.root.findPath(path)
	switch {
	case !ok:
		return Pos{}
	case n.keyPos != Pos{}:
		return n.keyPos
	default:
		return n.pos
	}
}

// PosIn returns the place of a byte offset within the text of the scalar at a
// path, through quotes, escapes, folding and indentation; an offset at or past
// the end is the place after the last character. Where it cannot be found the
// answer is the start of the scalar.
func (d *Doc) PosIn(path string, offset int) Pos {
	if n, ok := d.root.findPath(path); ok {
		return d.locateOffset(n, offset)
	}
	return Pos{}
}

// Add reports a fault made by the caller; File and Source are filled in, and an
// unknown place is the nearest one above Path. If the value of Path is of another
// type than Decode wanted, Add reports nothing: the caller has not seen that value.
func (d *Doc) Add(f Fault) {
	if f.Path != "" && d.unread[f.Path] {
		return
	}
	if f.Line == 0 {
		n, _ := d.root.findPath(f.Path)
		f.Pos = n.pos
	}
	d.addFault(f)
}

// Fault reports a fault at a place.
func (d *Doc) Fault(at Pos, format string, args ...any) {
	d.Add(Fault{Pos: at, Message: fmt.Sprintf(format, args...)})
}

// FaultAt reports a fault at the value of a path. Where the file has no such
// value, the place is that of the nearest one above it.
func (d *Doc) FaultAt(path, format string, args ...any) {
	d.Add(Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// FaultIn reports a fault at a byte offset within the scalar at a path, see
// PosIn and Offset.
func (d *Doc) FaultIn(path string, offset int, format string, args ...any) {
	d.Add(Fault{Pos: d.PosIn(path, offset), Path: path, Message: fmt.Sprintf(format, args...)})
}

// Advise gives the faults of Decode with that message another hint: who decodes
// may know better what was meant.
func (d *Doc) Advise(message, hint string) {
	for i := range d.list {
		if d.list[i].Message == message {
			d.list[i].Hint = hint
		}
	}
}

// Note returns a fault with its place and source filled in, as Add does, but does
// not report it: it is no reason to refuse the file. The place is that of the key
// of Path.
func (d *Doc) Note(f Fault) Fault {
	if f.Line == 0 {
		f.Pos = d.KeyPos(f.Path)
	}
	return d.fillSource(f)
}

func (d *Doc) faultAt(n *node, hint, format string, args ...any) {
	d.addFault(Fault{Pos: n.pos, Path: n.pathOf(), Message: fmt.Sprintf(format, args...), Hint: hint})
}

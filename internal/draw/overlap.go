package draw

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Overlaps is for tests. It returns each text of a picture that lies outside, over another text or mark, or on the edge of a
// rectangle. The attribute textLength is the width of a text. An error says why the picture is no SVG.
func Overlaps(svg string) (faults []string, err error) {
	d := xml.NewDecoder(strings.NewReader(svg))
	var texts, rects, marks []box
	var size box
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("picture: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			a := attributes(t.Attr)
			b := box{a.number("x"), a.number("y"), a.number("x") + a.number("width"), a.number("y") + a.number("height"), a["class"]}
			switch {
			case t.Name.Local == "svg":
				size = b
			case t.Name.Local == "text":
				width := a.number("textLength")
				left := b.left - width*map[string]float64{"middle": 0.5, "end": 1}[a["text-anchor"]]
				texts = append(texts, box{left, b.top - ascent, left + width, b.top + descent, ""})
			case t.Name.Local == "rect" && a["class"] != "back":
				rects = append(rects, b)
			case a["class"] == "mark":
				var x, y float64
				if _, err := fmt.Sscanf(a["d"], "M%f %fl", &x, &y); err != nil {
					return nil, fmt.Errorf("picture: mark %q: %w", a["d"], err)
				}
				marks = append(marks, box{x - mark, y - mark, x + mark, y, "mark"})
			}
		case xml.CharData:
			if n := len(texts); n > 0 && texts[n-1].name == "" {
				texts[n-1].name = string(t)
			}
		}
	}
	for _, t := range texts {
		if t.left < 0 || t.top < 0 || t.right > size.right || t.bottom > size.bottom {
			faults = append(faults, fmt.Sprintf("%v lies outside of %v", t, size))
		}
	}
	slices.SortFunc(texts, func(a, b box) int { return cmp.Compare(a.top, b.top) })
	for i := range texts {
		for k := i + 1; k < len(texts) && texts[k].top < texts[i].bottom; k++ {
			if texts[i].meets(&texts[k]) {
				faults = append(faults, fmt.Sprintf("%v lies over %v", texts[i], texts[k]))
			}
		}
	}
	for _, r := range slices.Concat(rects, marks) {
		first, _ := slices.BinarySearchFunc(texts, r.top-ascent-descent, func(t box, top float64) int { return cmp.Compare(t.top, top) })
		for _, t := range texts[first:] {
			if t.top >= r.bottom {
				break
			}
			if inside := t.left >= r.left && t.right <= r.right; t.meets(&r) && (r.name == "mark" || !inside) {
				faults = append(faults, fmt.Sprintf("%v lies on the edge of %v", t, r))
			}
		}
	}
	return faults, nil
}

// box is a rectangle with its text or class.
type box struct {
	left, top, right, bottom float64
	name                     string
}

func (b *box) meets(o *box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

type attributeMap map[string]string

func attributes(list []xml.Attr) attributeMap {
	m := attributeMap{}
	for _, a := range list {
		m[a.Name.Local] = a.Value
	}
	return m
}

// number returns an attribute, or 0 if there is none or a percentage.
func (m attributeMap) number(name string) float64 {
	f, _ := strconv.ParseFloat(m[name], 64)
	return f
}

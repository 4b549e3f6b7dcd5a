package draw_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/draw"
)

// check wants a picture without overlaps.
func check(t *testing.T, svg string) {
	t.Helper()
	faults, err := draw.Overlaps(svg)
	if err != nil {
		t.Fatalf("%v\n%s", err, svg)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// lanes has lanes with bars, marks and bands.
func lanes(number int) *draw.Picture {
	p := &draw.Picture{
		Head:   []string{strings.Repeat("a long head ", 30)},
		Legend: []draw.Key{{draw.State, "a state"}, {draw.Bound, strings.Repeat("within the bounds ", 6)}, {draw.Found, "a global state"}},
		From:   -time.Second,
		To:     3 * time.Second,
	}
	for i := range number {
		l := draw.Lane{Label: fmt.Sprintf("a-long-name-of-a-member-that-is-cut-%d", i)}
		for k := range 20 {
			from := time.Duration(k*(150+i%7)-1000) * time.Millisecond
			l.Spans = append(l.Spans, draw.Span{From: from, To: from + 400*time.Millisecond, Style: draw.State, Title: "state", Texts: []string{"phase=search", "search", "s"}})
			l.Marks = append(l.Marks, draw.Mark{At: from, Title: "fires"})
		}
		p.Lanes = append(p.Lanes, l)
	}
	for k := range 10 {
		from := time.Duration(k) * 270 * time.Millisecond
		p.Bands = append(p.Bands, draw.Span{From: from, To: from + time.Duration(k%2)*100*time.Millisecond, Style: draw.Found, Title: "found"})
	}
	return p
}

// TestLabels: no text lies over another one, over a mark, on an edge or outside, with 3 to 1,000 lanes, low ones too.
func TestLabels(t *testing.T) {
	for _, number := range []int{3, 30, 1000} {
		for _, thin := range []bool{false, true} {
			p := lanes(number)
			p.Thin = thin
			svg := p.SVG()
			check(t, svg)
			want := 10 + number*2
			if thin {
				want = 10 + (number+1)/2
			}
			if n := strings.Count(svg, "<text "); n < want {
				t.Errorf("%d lanes, thin %v: %d texts, want at least %d", number, thin, n, want)
			}
		}
	}
}

// TestOverlaps: the judge of the other tests sees each kind of overlap.
func TestOverlaps(t *testing.T) {
	text := func(x, y int, more string) string {
		return fmt.Sprintf(`<text x="%d" y="%d" textLength="70"%s>0123456789</text>`, x, y, more)
	}
	for body, want := range map[string]string{
		text(0, 20, "") + text(70, 20, "") + text(0, 33, ""):                          "",
		`<rect class="state" x="5" y="5" width="80" height="20"/>` + text(10, 20, ""): "",
		text(0, 20, "") + text(69, 20, ""):                                            "lies over",
		text(0, 20, "") + text(0, 32, ""):                                             "lies over",
		text(200, 20, ` text-anchor="end"`) + text(100, 20, ""):                       "lies over",
		text(150, 20, ""): "lies outside",
		text(0, 5, ""):    "lies outside",
		text(0, 99, ""):   "lies outside",
		`<rect class="state" x="5" y="5" width="60" height="20"/>` + text(10, 20, ""):          "lies on the edge of",
		`<path class="mark" d="M20 12l-4 -4h8z"><title>x</title></path>` + text(0, 20, ""):     "lies on the edge of",
		text(130, 50, "") + `<rect class="line" x="140.5" y="5" width="1" height="80"></rect>`: "lies on the edge of",
	} {
		faults, err := draw.Overlaps(`<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect class="back" width="100%" height="100%"/>` + body + "</svg>")
		if got := strings.Join(faults, "; "); err != nil || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v, want %q", body, got, err, want)
		}
	}
	if _, err := draw.Overlaps("<svg>"); err == nil || err.Error() != "picture: XML syntax error on line 1: unexpected EOF" {
		t.Error(err)
	}
	if _, err := draw.Overlaps(`<svg><path class="mark" d="x"/></svg>`); err == nil || !strings.HasPrefix(err.Error(), `picture: mark "x": `) {
		t.Error(err)
	}
}

// TestNastyTexts: each text of a picture is text, whatever is in it.
func TestNastyTexts(t *testing.T) {
	const nasty = "</text><script>alert(1)</script>&\"'\x00\x1b[2J\u202e\u2028\xff\r\n\ttail"
	p := lanes(1)
	p.Head = append(p.Head, nasty)
	p.Legend = append(p.Legend, draw.Key{Style: draw.True, Text: nasty})
	p.Lanes[0].Label = nasty
	p.Lanes[0].Spans[0].Title, p.Lanes[0].Spans[0].Texts = nasty, []string{nasty, "<&>"}
	p.Lanes[0].Marks[0].Title = nasty
	p.Bands[0].Title = nasty
	p.Lanes[0].Spans = append(p.Lanes[0].Spans, draw.Span{From: 0, To: 1, Style: draw.Busy})
	svg := p.SVG()
	check(t, svg)
	for _, bad := range []string{"<script", "\x00", "\x1b", "\u202e", "\u2028", "\xff", "tail\"", "&#xA;"} {
		if strings.Contains(svg, bad) {
			t.Errorf("the picture has %q", bad)
		}
	}
	if n := strings.Count(svg, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#34;&#39;\ufffd\ufffd[2J\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdtail"); n < 6 {
		t.Errorf("%d texts in\n%s", n, svg)
	}
	if svg != p.SVG() {
		t.Error("the same picture is drawn in another way")
	}
	for _, want := range []string{"prefers-color-scheme: dark", "url(#hatch)"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestNarrowBars: each bar has at least a pixel. Bars that have no pixel of their own are counted in the title, or joined.
func TestNarrowBars(t *testing.T) {
	p := &draw.Picture{To: 840 * time.Second, Lanes: []draw.Lane{{Label: "a"}, {Label: "b"}}}
	for i := range 10_000 {
		from := time.Duration(i) * time.Millisecond
		p.Lanes[0].Spans = append(p.Lanes[0].Spans, draw.Span{From: from, To: from + 1, Style: draw.State, Title: "s"})
		p.Lanes[1].Spans = append(p.Lanes[1].Spans, draw.Span{From: 2 * from, To: 2*from + 1, Style: draw.Busy})
	}
	p.Lanes[0].Spans = append(p.Lanes[0].Spans, draw.Span{From: 900 * time.Second, To: 901 * time.Second, Style: draw.True, Title: "outside"})
	svg := p.SVG()
	if n := strings.Count(svg, `<rect class="state"`); n > 11 || !strings.Contains(svg, "<title>s, and 9") || strings.Contains(svg, "outside") {
		t.Errorf("%d bars\n%s", n, svg)
	}
	if !strings.Contains(svg, `<path class="busy" d="M31 46H51v16H31z"><title>b</title>`) {
		t.Errorf("the joined bars are missing in\n%s", svg)
	}
	empty := draw.Picture{Lanes: []draw.Lane{{Label: "a", Spans: []draw.Span{{Style: draw.State, Title: "s"}}}}}
	for _, empty.To = range []time.Duration{0, 1} {
		check(t, empty.SVG())
	}
	if strings.Contains(empty.SVG(), "NaN") {
		t.Error(empty.SVG())
	}
}

package main

import (
	"fmt"
	"image"
	"regexp"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestLook: what is measured of an image tells how it was made.
func TestLook(t *testing.T) {
	for i, want := range []string{"photo, false", "text, true", "drawing, false", "photo, true", "text, false", "drawing, true"} {
		_, kind, noisy, err := alone(i)
		if got := fmt.Sprintf("%s, %v", kind, noisy); got != want || err != nil {
			t.Errorf("image %d: %s, want %s, %v", i, got, want, err)
		}
	}
}

// TestSmoothed: strips that are smoothed apart are the whole that is smoothed, and a
// smooth image without noise is near the one with it.
func TestSmoothed(t *testing.T) {
	noisy := paint(3)
	whole := smoothed(noisy, noisy.Rect)
	away := func(a, b *image.Gray) (sum int) {
		for y := range height {
			for x := range width {
				p, q := int(a.GrayAt(x, y).Y), int(b.GrayAt(x, y).Y)
				sum += max(p, q) - min(p, q)
			}
		}
		return sum
	}
	if clean := paint(0); 10*away(whole, clean) > away(noisy, clean) {
		t.Errorf("the noise is %d, and when it is smoothed %d", away(noisy, clean), away(whole, clean))
	}
	for i := range strips {
		part := smoothed(noisy, strip(i))
		for y := part.Rect.Min.Y; y < part.Rect.Max.Y; y++ {
			for x := range width {
				if part.GrayAt(x, y) != whole.GrayAt(x, y) {
					t.Fatalf("strip %d differs at %d, %d", i, x, y)
				}
			}
		}
	}
}

var verdict = regexp.MustCompile(`^image 0: kept by decision gsync/\d+/\d+, \d+ bytes as photo by decision gsync/\d+/\d+
image 1: smoothed by decision gsync/\d+/\d+, \d+ bytes as text by decision gsync/\d+/\d+
image 2: kept by decision gsync/\d+/\d+, \d+ bytes as drawing by decision gsync/\d+/\d+
image 3: smoothed by decision gsync/\d+/\d+, \d+ bytes as photo by decision gsync/\d+/\d+
image 4: kept by decision gsync/\d+/\d+, \d+ bytes as text by decision gsync/\d+/\d+
image 5: smoothed by decision gsync/\d+/\d+, \d+ bytes as drawing by decision gsync/\d+/\d+
ok: 6 images, 3 smoothed, by 12 decisions; one process makes the same of each, byte for byte
$`)

// TestImages runs the program. Its verdict compares every file with what one process
// makes of the image.
func TestImages(t *testing.T) {
	out, err := testprogram.Command(t).CombinedOutput()
	if err != nil || !verdict.Match(out) {
		t.Errorf("images: %v, no verdict in\n%s", err, out)
	}
}

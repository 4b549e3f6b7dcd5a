package main

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
)

// The images: greys of this size, each looked at in strips.
const (
	width  = 320
	height = 240
	strips = 4
)

// scenes are what the images show, and which of them are noisy.
var scenes = []struct {
	paint func(x, y int) float64
	noise float64
}{
	{photo, 0}, {text, 0.1}, {drawing, 0}, {photo, 0.1}, {text, 0}, {drawing, 0.05},
}

// photo has light that changes everywhere.
func photo(x, y int) float64 {
	u, v := float64(x)/width, float64(y)/height
	return 0.5 + 0.25*math.Sin(7*u+3*v*v) + 0.2*math.Cos(9*v-4*u*u)
}

// drawing has few plain areas.
func drawing(x, y int) float64 {
	switch dx, dy := x-width/2, y-height/2; {
	case dx*dx+dy*dy < 70*70:
		return 0.8
	case x/80%2 == y/60%2:
		return 0.3
	}
	return 0.6
}

// text has dark strokes on white.
func text(x, y int) float64 {
	if y%24 < 14 && x%16 < 5 || y%24 < 5 && x%48 < 40 {
		return 0
	}
	return 1
}

// paint makes an image. Its noise is pixels of any grey.
func paint(i int) *image.Gray {
	random := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // It is to be repeatable.
	m := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			light := scenes[i].paint(x, y)
			if random.Float64() < scenes[i].noise {
				light = random.Float64()
			}
			m.SetGray(x, y, color.Gray{Y: uint8(math.Round(255 * light))})
		}
	}
	return m
}

// strip is the part of an image that one block looks at.
func strip(i int) image.Rectangle {
	return image.Rect(0, i*height/strips, width, (i+1)*height/strips)
}

// smoothed is a part of an image in which every pixel is the median of the nine around
// it.
func smoothed(m *image.Gray, part image.Rectangle) *image.Gray {
	out := image.NewGray(part)
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			var near [9]uint8
			for i := range near {
				near[i] = m.GrayAt(min(max(x+i%3-1, 0), width-1), min(max(y+i/3-1, 0), height-1)).Y
			}
			slices.Sort(near[:])
			out.SetGray(x, y, color.Gray{Y: near[4]})
		}
	}
	return out
}

// seen is what there is to see in a part of an image, see program.yaml.
type seen struct{ Noise, Middle, Shades float64 }

func look(m *image.Gray, part image.Rectangle) seen {
	clean := smoothed(m, part)
	var s seen
	shades := map[uint8]bool{}
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			is, was := clean.GrayAt(x, y).Y, m.GrayAt(x, y).Y
			if max(is, was)-min(is, was) > 32 {
				s.Noise++
			}
			if is > 32 && is < 223 {
				s.Middle++
			}
			shades[is] = true
		}
	}
	pixels := float64(part.Dx() * part.Dy())
	return seen{s.Noise / pixels, s.Middle / pixels, float64(len(shades)) / pixels}
}

// encode gives an image the form that suits what it shows.
func encode(kind string, m *image.Gray) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch kind {
	case "text": // Black and white.
		two := image.NewPaletted(m.Rect, color.Palette{color.Black, color.White})
		for i, light := range m.Pix {
			two.Pix[i] = light >> 7
		}
		err = png.Encode(&b, two)
	case "drawing":
		var greys color.Palette
		for i := range 16 {
			greys = append(greys, color.Gray{Y: uint8(17 * i)})
		}
		few := image.NewPaletted(m.Rect, greys)
		for i, light := range m.Pix {
			few.Pix[i] = (light + 8) / 17
		}
		err = gif.Encode(&b, few, nil)
	default:
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 85})
	}
	return b.Bytes(), err
}

// alone does in one process what the program does with one image: the same
// decisions on the same measures.
func alone(i int) (data []byte, kind string, noisy bool, err error) {
	m := paint(i)
	var mean seen
	for part := range strips {
		s := look(m, strip(part))
		mean.Noise += s.Noise / strips
		mean.Middle += s.Middle / strips
		mean.Shades += s.Shades / strips
	}
	if noisy = mean.Noise > 0.02; noisy {
		m = smoothed(m, m.Rect)
	}
	switch {
	case mean.Middle < 0.1:
		kind = "text"
	case mean.Shades < 0.005:
		kind = "drawing"
	default:
		kind = "photo"
	}
	data, err = encode(kind, m)
	return data, kind, noisy, err
}

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// The images, as in the paper.
const (
	width, height = 720, 576 // pixels
	side          = 16       // of a block
	across        = width / side
	blocks        = across * (height / side) // of an image: 1,620
	textureSide   = 1024
	objects       = 12
)

// film makes images: a texture that moves, before it rectangles with textures and motions of their own, and noise.
type film struct {
	seed    uint64
	texture []byte
	pan     [2]int // by how much the background moves from one image to the next
	objects []object
}

type object struct {
	x, y, width, height int // in image 0
	dx, dy              int // from one image to the next
	at                  int // its place in the texture
}

func newFilm(seed uint64) *film {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	f := &film{seed: seed, texture: make([]byte, textureSide*textureSide)}
	for i := range f.texture {
		f.texture[i] = byte(random.Uint32()) //nolint:gosec // Any bits will do.
	}
	for range 2 { // Neighbours become alike.
		before := 128
		for i, b := range f.texture {
			before = (3*before + int(b)) / 4
			f.texture[i] = byte(before) //nolint:gosec // A mean of bytes.
		}
	}
	step := func() int { return random.IntN(13) - 6 }
	f.pan = [2]int{step(), step()}
	for range objects {
		f.objects = append(f.objects, object{
			random.IntN(width), random.IntN(height), 40 + random.IntN(120), 40 + random.IntN(120), step(), step(), random.IntN(len(f.texture)),
		})
	}
	return f
}

// image returns image i, row by row.
func (f *film) image(i int) []byte {
	random := rand.New(rand.NewPCG(f.seed, uint64(i)+1)) //nolint:gosec // It is to be repeatable, and i is not negative.
	pixels := make([]byte, width*height)
	for y := range height {
		for x := range width {
			pixels[y*width+x] = f.texture[wrap(y-i*f.pan[1], textureSide)*textureSide+wrap(x-i*f.pan[0], textureSide)]
		}
	}
	for _, o := range f.objects {
		for y := range o.height {
			for x := range o.width {
				place := wrap(o.y+i*o.dy+y, height)*width + wrap(o.x+i*o.dx+x, width)
				pixels[place] = f.texture[(o.at+y*textureSide+x)%len(f.texture)]
			}
		}
	}
	for k, bits := 0, uint64(0); k < len(pixels); k++ {
		if k%32 == 0 {
			bits = random.Uint64()
		}
		pixels[k] += byte(bits & 3)
		bits >>= 2
	}
	return pixels
}

func wrap(n, size int) int { return ((n % size) + size) % size }

// vector is where the block of an image lay in the image before.
type vector struct {
	DX, DY int // pixels to the right and down
	Error  int // sum of absolute differences: 256 times their mean
}

// search finds the place in the image before that differs least from a block: by the mean absolute error, in a window of so
// many pixels to each side. It tries the nearest places first. It abandons a place once its error is not below the least one.
func search(before, image []byte, block int, places [][2]int) vector {
	left, top := block%across*side, block/across*side
	best := vector{Error: math.MaxInt}
	for _, p := range places {
		x, y := left+p[0], top+p[1]
		if x < 0 || y < 0 || x+side > width || y+side > height {
			continue
		}
		sum := 0
		for row := 0; row < side && sum < best.Error; row++ {
			a := image[(top+row)*width+left:][:side]
			b := before[(y+row)*width+x:][:side]
			for i, v := range a {
				d := int(v) - int(b[i])
				sum += max(d, -d)
			}
		}
		if sum < best.Error {
			best = vector{p[0], p[1], sum}
		}
	}
	return best
}

// window returns the displacements of up to so many pixels, from the nearest to the farthest: ring by ring.
func window(pixels int) (places [][2]int) {
	for ring := range pixels + 1 {
		for y := -ring; y <= ring; y++ {
			step := 1
			if y > -ring && y < ring {
				step = max(1, 2*ring)
			}
			for x := -ring; x <= ring; x += step {
				places = append(places, [2]int{x, y})
			}
		}
	}
	return places
}

// checkImages refuses bytes that are no images.
func checkImages(before, image []byte) error {
	if len(before) != width*height || len(image) != width*height {
		return fmt.Errorf("images: they have %d and %d bytes instead of %d", len(before), len(image), width*height)
	}
	return nil
}

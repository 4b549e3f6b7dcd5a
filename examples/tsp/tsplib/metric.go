package tsplib

import "math"

type point struct{ x, y, z float64 } // z is 0 in the plane

// metric is a TSPLIB edge weight function; its value is whole and not
// negative, or not finite when the coordinates are too large. The explicit
// conversions in the functions below keep the compiler from fusing a product
// and a sum, so that every platform rounds alike.
type metric func(a, b point) float64

// metrics maps the edge weight types that are computed from coordinates.
var metrics = map[string]metric{
	"EUC_2D":  euclid,
	"EUC_3D":  euclid,
	"CEIL_2D": ceiling,
	"MAN_2D":  manhattan,
	"MAX_2D":  maximum,
	"ATT":     att,
	"GEO":     geo,
}

func squared(a, b point) float64 {
	dx, dy, dz := a.x-b.x, a.y-b.y, a.z-b.z
	return float64(dx*dx) + float64(dy*dy) + float64(dz*dz)
}

func euclid(a, b point) float64 { return math.Floor(math.Sqrt(squared(a, b)) + 0.5) }

func ceiling(a, b point) float64 { return math.Ceil(math.Sqrt(squared(a, b))) }

func manhattan(a, b point) float64 {
	return math.Floor(math.Abs(a.x-b.x) + math.Abs(a.y-b.y) + 0.5)
}

func maximum(a, b point) float64 {
	return math.Floor(max(math.Abs(a.x-b.x), math.Abs(a.y-b.y)) + 0.5)
}

// att is the pseudo-Euclidean distance: rounded, then up where that fell short.
func att(a, b point) float64 {
	r := math.Sqrt(squared(a, b) / 10)
	t := math.Floor(r + 0.5)
	if t < r {
		t++
	}
	return t
}

// geo is the distance on TSPLIB's idealised sphere. Its value of pi and its
// truncations are part of the definition.
func geo(a, b point) float64 {
	const radius = 6378.388
	q1 := math.Cos(radians(a.y) - radians(b.y))
	q2 := math.Cos(radians(a.x) - radians(b.x))
	q3 := math.Cos(radians(a.x) + radians(b.x))
	c := 0.5 * (float64((1+q1)*q2) - float64((1-q1)*q3))
	return math.Trunc(float64(radius*math.Acos(max(-1, min(1, c)))) + 1)
}

// radians converts a coordinate in degrees and minutes, as DDD.MM.
func radians(x float64) float64 {
	const pi = 3.141592
	deg := math.Trunc(x)
	return pi * (deg + float64(5*(x-deg))/3) / 180
}

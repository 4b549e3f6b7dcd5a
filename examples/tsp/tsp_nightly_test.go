//go:build system && unix && nightly

package main

func init() {
	kills = 20
	shapes = nil
	for p := 1; p <= 4; p++ {
		for t := 1; t <= 3; t++ {
			shapes = append(shapes, shape{p, t})
		}
	}
}

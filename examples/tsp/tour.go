package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// readTour reads a tour of an instance as tourLine writes it; no file, no tour.
func readTour(path string, in *tsplib.Instance) ([]int, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-tour: %w", err)
	}
	words := strings.Fields(string(data))
	if len(words) > 0 && words[0] == "tour" {
		words = words[1:]
	}
	if len(words) != in.N {
		return nil, fmt.Errorf("-tour: %s has %s, the instance has %d cities", path, plural(len(words), "city"), in.N)
	}
	tour, seen := make([]int, in.N), make([]bool, in.N)
	for i, word := range words {
		city, err := strconv.Atoi(word)
		if err != nil || city < 1 || city > in.N || seen[city-1] {
			return nil, fmt.Errorf("-tour: %s: city %d is %q: use the numbers from 1 to %d, each once", path, i+1, word, in.N)
		}
		tour[i], seen[city-1] = city-1, true
	}
	return tour, nil
}

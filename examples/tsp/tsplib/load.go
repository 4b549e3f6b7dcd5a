package tsplib

import (
	"bytes"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed instances
var files embed.FS

//go:embed instances/INDEX.csv
var list string

// Info describes an embedded instance.
type Info struct {
	Name    string // as Load takes it
	N       int    // number of cities
	Optimum int    // length of a shortest tour, as published
	Source  string // where the copy was taken from
}

// Embedded lists the embedded instances by number of cities.
func Embedded() []Info { return slices.Clone(index()) }

// Optimum returns the published length of a shortest tour of an embedded
// instance, and whether there is one of that name.
func Optimum(name string) (int, bool) {
	for _, info := range index() {
		if info.Name == name {
			return info.Optimum, true
		}
	}
	return 0, false
}

// Load returns the instance that spec names: an embedded one by its name,
// a random one as random:N:SEED, or else the file of that path.
func Load(spec string) (*Instance, error) {
	if _, ok := Optimum(spec); ok {
		text, err := files.ReadFile("instances/" + spec + ".tsp")
		if err != nil {
			return nil, fmt.Errorf("tsplib: embedded instance: %w", err)
		}
		return Parse(bytes.NewReader(text), spec+".tsp")
	}
	if rest, ok := strings.CutPrefix(spec, "random:"); ok {
		return loadRandom(spec, rest)
	}
	f, err := os.Open(spec)
	if errors.Is(err, fs.ErrNotExist) {
		var names []string
		for _, info := range index() {
			names = append(names, info.Name)
		}
		return nil, fmt.Errorf("tsplib: no instance %q: give a TSPLIB file, random:N:SEED, or one of %s", spec, strings.Join(names, " "))
	}
	if err != nil {
		return nil, fmt.Errorf("tsplib: cannot read instance: %w", err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	return Parse(f, spec)
}

func loadRandom(spec, rest string) (*Instance, error) {
	size, seed, _ := strings.Cut(rest, ":")
	n, errN := strconv.Atoi(size)
	s, errS := strconv.ParseUint(seed, 10, 64)
	if errN != nil || errS != nil || n < 1 || n > MaxN {
		return nil, fmt.Errorf("tsplib: instance %q: write random:N:SEED, N from 1 to %d cities and SEED a whole number, as random:100:1", spec, MaxN)
	}
	return Random(n, s)
}

// index reads the list of embedded instances once; a fault in it is ours.
var index = sync.OnceValue(func() []Info {
	rows, err := csv.NewReader(strings.NewReader(list)).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("tsplib: embedded index: %v", err))
	}
	var infos []Info
	for _, row := range rows[1:] {
		n, errN := strconv.Atoi(row[1])
		optimum, errO := strconv.Atoi(row[2])
		if errN != nil || errO != nil {
			panic(fmt.Sprintf("tsplib: embedded index: row %q", row))
		}
		infos = append(infos, Info{Name: row[0], N: n, Optimum: optimum, Source: row[3]})
	}
	return infos
})

package tsplib

import (
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

//go:embed instances
var files embed.FS

// Info describes an embedded instance.
type Info struct {
	Name    string // as Load takes it
	N       int    // number of cities
	Optimum int    // length of a shortest tour, as published
	Source  string // where the copy was taken from
}

// Embedded lists the embedded instances by number of cities.
func Embedded() []Info { return append([]Info(nil), index()...) }

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
		return parseFile(files, "instances/"+spec+".tsp", spec+".tsp")
	}
	if rest, ok := strings.CutPrefix(spec, "random:"); ok {
		return loadRandom(spec, rest)
	}
	f, err := os.Open(spec)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tsplib: no instance %q: give a TSPLIB file, random:N:SEED, or one of %s", spec, strings.Join(names(), " "))
	}
	if err != nil {
		return nil, fmt.Errorf("tsplib: cannot read instance: %w", err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	return Parse(f, spec)
}

func parseFile(fsys fs.FS, path, name string) (*Instance, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tsplib: embedded instance: %w", err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	return Parse(f, name)
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

func names() []string {
	var list []string
	for _, info := range index() {
		list = append(list, info.Name)
	}
	return list
}

// index reads the list of embedded instances once; a fault in it is ours.
var index = sync.OnceValue(func() []Info {
	f, err := files.Open("instances/INDEX.csv")
	if err != nil {
		panic(fmt.Sprintf("tsplib: embedded index: %v", err))
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("tsplib: embedded index: %v", err))
	}
	var list []Info
	for _, row := range rows[1:] {
		n, errN := strconv.Atoi(row[1])
		optimum, errO := strconv.Atoi(row[2])
		if errN != nil || errO != nil {
			panic(fmt.Sprintf("tsplib: embedded index: row %q", row))
		}
		list = append(list, Info{Name: row[0], N: n, Optimum: optimum, Source: row[3]})
	}
	return list
})

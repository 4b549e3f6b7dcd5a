package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// task is an instance to solve.
type task struct {
	name    string
	spec    string // as tsplib.Load takes it
	in      *tsplib.Instance
	optimum int // as published, -1 if not known
}

// published shows the optimum.
func (t task) published() string {
	if t.optimum < 0 {
		return "?"
	}
	return strconv.Itoa(t.optimum)
}

// gather loads what the arguments name, the smallest first.
func gather(args []string, most int, skip string) ([]task, error) {
	if len(args) == 0 {
		for _, info := range tsplib.Embedded() {
			args = append(args, info.Name)
		}
	}
	skipped := strings.Split(skip, ",")
	var list []task
	for _, arg := range args {
		found, err := open(arg)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	list = slices.DeleteFunc(list, func(t task) bool { return t.in.N > most || slices.Contains(skipped, t.name) })
	if len(list) == 0 {
		return nil, fmt.Errorf("nothing is left: -most %d and -skip %q leave every instance out", most, skip)
	}
	slices.SortStableFunc(list, func(a, b task) int { return cmp.Compare(a.in.N, b.in.N) })
	return list, nil
}

// open loads an instance, or all of a directory.
func open(arg string) ([]task, error) {
	files, optima := []string{arg}, map[string]int{}
	if info, err := os.Stat(arg); err == nil { // Else it is a name of an instance, or of nothing.
		dir := filepath.Dir(arg)
		if info.IsDir() {
			dir = arg
			if files, err = filepath.Glob(filepath.Join(arg, "*.tsp")); err != nil || len(files) == 0 {
				return nil, fmt.Errorf("no file *.tsp in %s: name a directory of TSPLIB files", arg)
			}
		}
		if optima, err = readIndex(filepath.Join(dir, "INDEX.csv")); err != nil {
			return nil, err
		}
	}
	var list []task
	for _, file := range files {
		in, err := tsplib.Load(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tsp")
		optimum, ok := optima[name]
		if !ok {
			if optimum, ok = tsplib.Optimum(name); !ok {
				optimum = -1
			}
		}
		list = append(list, task{name, file, in, optimum})
	}
	return list, nil
}

// readIndex reads the published optima of a directory, if it lists them.
func readIndex(path string) (map[string]int, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	name, optimum := -1, -1
	if len(rows) > 0 {
		name, optimum = slices.Index(rows[0], "name"), slices.Index(rows[0], "optimum")
	}
	if name < 0 || optimum < 0 {
		return nil, fmt.Errorf("%s: line 1: columns name and optimum are needed", path)
	}
	optima := map[string]int{}
	for i, row := range rows[1:] {
		if optima[row[name]], err = strconv.Atoi(row[optimum]); err != nil {
			return nil, fmt.Errorf("%s: line %d: optimum %q is no whole number", path, i+2, row[optimum])
		}
	}
	return optima, nil
}

package tsplib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEmbedded(t *testing.T) {
	list := Embedded()
	if len(list) != 17 {
		t.Fatalf("%d embedded instances, want 17", len(list))
	}
	for i, info := range list {
		in, err := Load(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		if in.N != info.N || info.Source == "" || i > 0 && list[i-1].N > info.N {
			t.Errorf("%+v: %d cities", info, in.N)
		}
		if got, ok := Optimum(info.Name); !ok || got != info.Optimum {
			t.Errorf("optimum of %s is %d, want %d", info.Name, got, info.Optimum)
		}
	}
	if _, ok := Optimum("nowhere"); ok {
		t.Error("optimum of an unknown instance")
	}
}

func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "two.tsp")
	if err := os.WriteFile(path, []byte(planar("EUC_2D", "1 0 0\n2 3 4\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := Load(path)
	if err != nil || in.N != 2 || in.Dist(0, 1) != 5 {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.tsp")
	if err := os.WriteFile(bad, []byte("NAME : x\nTYPE : ATSP\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const syntax = "write random:N:SEED, N from 1 to 2000 cities and SEED a whole number, as random:100:1"
	for spec, want := range map[string]string{
		"kroA101":       `tsplib: no instance "kroA101": give a TSPLIB file, random:N:SEED, or one of burma14 ulysses16 gr17 gr21 gr24 fri26 bayg29 bays29 dantzig42 swiss42 att48 gr48 eil51 berlin52 st70 eil76 kroA100`,
		bad:             "tsplib: " + bad + `:2: TYPE is "ATSP": only TSP (symmetric) is supported`,
		dir:             "tsplib: " + dir + ":1: cannot read: read " + dir + ": is a directory",
		"random:":       `tsplib: instance "random:": ` + syntax,
		"random:5":      `tsplib: instance "random:5": ` + syntax,
		"random:0:1":    `tsplib: instance "random:0:1": ` + syntax,
		"random:2001:1": `tsplib: instance "random:2001:1": ` + syntax,
		"random:5:-1":   `tsplib: instance "random:5:-1": ` + syntax,
		"random:5:1:1":  `tsplib: instance "random:5:1:1": ` + syntax,
		"random:five:1": `tsplib: instance "random:five:1": ` + syntax,
		"random:5:1e1":  `tsplib: instance "random:5:1e1": ` + syntax,
		"":              `tsplib: no instance ""`,
	} {
		if _, err := Load(spec); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", spec, err, want)
		}
	}
}

// Golden numbers: other platforms and versions must draw the same cities.
func TestRandomIsTheSameEverywhere(t *testing.T) {
	in, err := Load("random:5:7")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(in.Row(0), in.Row(1), " ", in.Name), "[0 293128 843333 457455 422383] [293128 0 557764 269081 170305] random:5:7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	other, err := Random(5, 8)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(in.Row(0)) == fmt.Sprint(other.Row(0)) {
		t.Error("two seeds gave one instance")
	}
	if _, err := Random(0, 1); err == nil || err.Error() != "tsplib: random instance of 0 cities: give 1 to 2000" {
		t.Errorf("%v", err)
	}
}

func ExampleLoad() {
	in, err := Load("berlin52")
	if err != nil {
		fmt.Println(err)
		return
	}
	best, _ := Optimum("berlin52")
	fmt.Println(in.N, in.Dist(0, 1), best)
	// Output: 52 666 7542
}

func BenchmarkLoad(b *testing.B) {
	for _, spec := range []string{"gr48", "kroA100", "random:1000:1"} {
		b.Run("instance="+spec, func(b *testing.B) {
			for b.Loop() {
				if _, err := Load(spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

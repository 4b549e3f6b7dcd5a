package predicates_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
)

func TestPriority(t *testing.T) {
	fields := map[string]float64{"weight": 3, "size": 7, "age": 2, "number": 9, "loc": 20, "server.head": 50, "server.dir": -1}
	for src, want := range map[string]float64{
		"-len(arg)": -7, "-size": -7, "abs(loc - server.head)": 30, "(loc - server.head) * server.dir": 30,
		"(loc - server.head) % 200": 170, "-weight - age / 10": -3.2, "+number": 9, "0 / 0": math.Inf(1), "1.5": 1.5,
		"(loc - server.head) * server.dir >= 0 ? (loc - server.head) * server.dir : 1e9 - (loc - server.head) * server.dir": 30,
		"loc > server.head ? 1 : 2": 2, "loc != 20 ? 1 : loc == 20 ? 2 : 3": 2, "loc <= 20 ? 1 : 2": 1, "loc < 20 ? 1 : 2": 2,
	} {
		p, err := predicates.CompilePriority(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if got := p.Value(func(name string) float64 { return fields[name] }); got != want {
			t.Errorf("%s: %v, want %v", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"wieght":                   "1:1: there is no wieght",
		"loc - server.hed":         "there is no server.hed",
		"server":                   "there is no server",
		"head":                     "there is no head",
		"loc > 2":                  "> stands where a number has to be",
		"loc ? 1 : 2":              "a condition has to be one comparison",
		"(1 > 2 or 3 > 2) ? 1 : 2": "the priority of a call cannot have or here",
		"loc ** 2":                 "the priority of a call cannot have ** here",
		"max(loc, 2)":              "the priority of a call cannot have this",
		"len(loc)":                 "the priority of a call cannot have this",
		"'a'":                      "the priority of a call cannot have this",
		"not loc":                  "the priority of a call cannot have this",
		"loc +":                    "",
		"1 + (loc > 2 ? x : 3)":    "there is no x",
	} {
		_, err := predicates.CompilePriority(src)
		var at *predicates.Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", src, err, want)
		}
	}
}

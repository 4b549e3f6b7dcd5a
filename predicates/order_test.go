package predicates_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
)

func TestOrder(t *testing.T) {
	for src, want := range map[string]float64{ // of a task of weight 3 that is put at 20 s
		"weight": 3, "-weight": -3, "-weight - age / 10": -1, "2 * (weight + 1.5) - 3 * age": 69, "abs(weight - 7) / 2": 2, "(age + weight) * 2": -34,
		"0": 0, "weight / 0": math.Inf(1), "0 / 0": math.Inf(1), "+weight * -2": -6,
	} {
		o, err := predicates.CompileOrder(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if got := o.Key(3, 20); got != want {
			t.Errorf("%s: the key is %v, want %v", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"wieght":               "there is no wieght",
		"age * weight":         "age is not only added, times a number, so the order of two tasks could change while they wait",
		"1 / age":              "age is not only added",
		"abs(age - 5)":         "age stands inside of abs",
		"weight > 2":           "an order of tasks cannot have >",
		"weight > 2 ? 1 : 2":   "an order of tasks cannot have this",
		"max(weight, 2)":       "an order of tasks cannot have this",
		"weight +":             "",
		"'a'":                  "an order of tasks cannot have this",
		"age * 2 * weight - 1": "age is not only added",
	} {
		if _, err := predicates.CompileOrder(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", src, err, want)
		}
	}
}

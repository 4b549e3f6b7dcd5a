package balance_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/balance"
)

func Example() {
	strategy, err := balance.New(balance.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	state := balance.State{
		Nodes: []balance.Node{{Name: "a", Power: 1, Share: 1}, {Name: "b", Power: 2, Share: 1}},
		Loads: []balance.Load{
			{Name: "t1", Node: "a", Weight: 3},
			{Name: "t2", Node: "a", Weight: 2},
			{Name: "t3", Node: "a", Weight: 4},
		},
	}
	plan := strategy.Plan(0, &state)
	for _, m := range plan.Moves {
		fmt.Println(m.Load, m.From, m.To)
	}
	fmt.Printf("%.1fs -> %.1fs\n", plan.Before, plan.After)
	// Output:
	// t1 a b
	// t2 a b
	// 9.0s -> 4.0s
}

// TestDocumentedDefaults finds each value of Config with its default in
// docs/balance.md.
func TestDocumentedDefaults(t *testing.T) {
	page, err := os.ReadFile("../docs/balance.md")
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(balance.Default())
	for i := range v.NumField() {
		key, value := v.Type().Field(i).Tag.Get("yaml"), fmt.Sprint(v.Field(i).Interface())
		if !strings.Contains(strings.ReplaceAll(string(page), "`", ""), "| "+key+" | "+value+" |") {
			t.Errorf("docs/balance.md has no row for %s with the default %s", key, value)
		}
	}
}

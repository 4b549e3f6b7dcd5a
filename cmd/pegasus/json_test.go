package main

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/scgs"
)

func TestPlainValues(t *testing.T) {
	for _, c := range []struct {
		value scgs.Value
		want  string
	}{
		{scgs.Value{}, "null"},
		{scgs.FloatValue(math.Inf(1)), `"+Inf"`},
		{scgs.DurationValue(time.Second), `"1s"`},
		{scgs.ListValue(scgs.Duration, scgs.DurationValue(time.Second)), `["1s"]`},
		{scgs.ListValue(scgs.Float, scgs.FloatValue(0.5), scgs.FloatValue(2)), "[0.5,2]"},
		{scgs.ListValue(scgs.String), "[]"},
	} {
		if got, err := json.Marshal(plain(c.value)); err != nil || string(got) != c.want {
			t.Errorf("%v is %s, %v; want %s", c.value, got, err, c.want)
		}
	}
}

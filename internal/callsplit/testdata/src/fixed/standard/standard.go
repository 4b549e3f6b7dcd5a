// Package standard is a program of the test.
package standard

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	t := work.Client[string, string](s, "t")
	word := "seven"
	a, err := t.Go(ctx, strings.ToUpper(word)+strconv.Itoa(7)).Wait(ctx) // want `calls that wait at once: t.Go, t.Go`
	if err != nil {
		return nil, err
	}
	b, err := t.Go(ctx, fmt.Sprintf("%s-%d", word, len(word)), work.CallWeight(2)).Wait(ctx)
	if err != nil {
		return nil, err
	}
	return a + b, nil
}

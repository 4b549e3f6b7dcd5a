// Package nearest helps to name things in messages: it finds the name that was meant by a misspelled one, and lists
// names.
package nearest

import (
	"fmt"
	"strings"
)

// Name returns the known name that a misspelled one most likely means, or
// "" if none is near: at most a third of its characters may differ, where two
// neighbours in the wrong order count as one.
func Name(name string, known []string) string {
	best, least := "", max(len([]rune(name))/3, 1)+1
	for _, k := range known {
		if n := distance([]rune(name), []rune(k), least); n < least {
			best, least = k, n
		}
	}
	return best
}

// List lists the first of some names, and says how many more there are; "none" if there are none.
func List(names []string, most int) string {
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// distance is the optimal string alignment distance, or limit where it is not
// below that.
func distance(a, b []rune, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) >= limit {
		return limit
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		above[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(row[j]+1, above[j+1]+1, above[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

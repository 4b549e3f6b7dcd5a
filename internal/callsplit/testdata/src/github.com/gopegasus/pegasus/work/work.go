// Package work stands for the package of that name: calls with the same methods, in one process and in virtual time.
package work

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// Space makes calls. Each takes one unit of time, and all run beside each other.
type Space struct {
	Fail  string // the call that fails; empty: none
	Now   int
	Made  map[string]bool
	Error []string // of misuse
	open  int
	Most  int // open calls at a time
}

// Calls is one function.
type Calls[A, R any] struct {
	space *Space
	name  string
}

// Client returns the calls of a function.
func Client[A, R any](s *Space, name string) *Calls[A, R] { return &Calls[A, R]{s, name} }

// CallOption is an option.
type CallOption func() error

// CallWeight is an option.
func CallWeight(w float64) CallOption { return func() error { return nil } }

// Call is a call that was made.
type Call[R any] struct {
	space *Space
	name  string
	body  []byte
	end   int
	err   error
	ended bool
}

// CallError is a call that has failed.
type CallError struct{ Name string }

// Error tells which one.
func (e *CallError) Error() string { return e.Name + " has failed" }

// Go makes a call.
func (c *Calls[A, R]) Go(ctx context.Context, arg A, options ...CallOption) *Call[R] {
	body, err := json.Marshal(arg)
	if err != nil {
		return &Call[R]{space: c.space, name: c.name, err: err}
	}
	c.space.open++
	c.space.Most = max(c.space.Most, c.space.open)
	return made[R](c.space, c.name, body, c.space.Now)
}

// Then makes a call with the result of another one.
func (c *Calls[A, R]) Then(ctx context.Context, arg *Call[A], options ...CallOption) *Call[R] {
	if arg.err != nil {
		return &Call[R]{space: c.space, name: c.name, err: arg.err, end: arg.end}
	}
	return made[R](c.space, c.name, arg.body, arg.end)
}

// made answers a call. The answer to a number is another number, to a text a longer text, by the type of the result.
func made[R any](s *Space, name string, body []byte, now int) *Call[R] {
	key := name + string(body)
	s.Made[key] = true
	call := &Call[R]{space: s, name: name, end: now + 1}
	if key == s.Fail {
		call.err = &CallError{key}
		return call
	}
	sum := 7
	for _, b := range []byte(key) {
		sum = (sum*31 + int(b)) % 10007
	}
	var r R
	switch p := any(&r).(type) {
	case *int:
		*p = sum
	case *string:
		*p = fmt.Sprintf("%s.%d", name, sum)
	case *[]int:
		*p = []int{sum, sum + 1, sum + 2}
	default:
		call.err = fmt.Errorf("no answer of type %T", r)
	}
	call.body, _ = json.Marshal(r)
	return call
}

// Wait waits for the answer.
func (c *Call[R]) Wait(ctx context.Context) (result R, err error) {
	c.space.Now = max(c.space.Now, c.end)
	if !c.ended {
		c.ended = true
		c.space.open--
	}
	if c.err != nil {
		return result, c.err
	}
	return result, json.Unmarshal(c.body, &result)
}

// Calls returns the calls that were made, in order of their names.
func (s *Space) Calls() []string {
	list := make([]string, 0, len(s.Made))
	for key := range s.Made {
		list = append(list, key)
	}
	sort.Strings(list)
	return list
}

// Text shows a result with an error.
func Text(v any, err error) string {
	return strings.TrimSpace(fmt.Sprintln(v, err))
}

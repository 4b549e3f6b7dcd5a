package predicates_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/predicates"
)

// TestMisread: not before the left side of in is noticed where no bracket says that it is
// meant, in texts about a global state and about one member.
func TestMisread(t *testing.T) {
	for src, want := range map[string]string{
		`any(members, not .b in [true, false])`:                       "1:14 not",
		`any(members, !.b in [true, false])`:                          "1:14 !",
		`any(members, (not .b in [true, false]))`:                     "1:15 not",
		`let x = memory.b; not x in [true] or false`:                  "1:19 not",
		"true and\n  not any(members, .b) in [true]":                  "2:3 not",
		`any(members, not (.b) in .bs)`:                               "1:14 not",
		`count(members, not .b in [true]) > 1 and not memory.b in []`: "1:16 not",
		`.b and not .b in [false]`:                                    "1:8 not",
		`not .b in [false]`:                                           "1:1 not",
		`any(members, .b not in [true, false])`:                       "",
		`any(members, (not .b) in [true, false])`:                     "",
		`any(members, ((not .b)) in [true, false])`:                   "",
		`any(members, not (.b in [true, false]))`:                     "",
		`any(members, not .b == true)`:                                "",
		`not any(members, .b in [true])`:                              "",
		`not any(members, .b in [true]) and true in [true]`:           "",
		`(.b and not .b) in [true]`:                                   "",
		`.b in [not .b]`:                                              "",
		`a text that does not parse`:                                  "",
	} {
		got := ""
		if fault := predicates.Misread(src); fault != nil {
			operator := "not"
			if fault.Message[0] == '!' {
				operator = "!"
			}
			got = fmt.Sprintf("%d:%d %s", fault.Line, fault.Column, operator)
			if fault.Hint == "" || fault.Source != src {
				t.Errorf("%s: %#v", src, fault)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
}

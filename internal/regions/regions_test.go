package regions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/regions"
	"github.com/gopegasus/pegasus/internal/wire"
)

func noted(group string, names ...string) *regions.Set {
	s := &regions.Set{}
	for _, name := range names {
		s.Note(group, []wire.Region{{Name: name}})
	}
	return s
}

func TestLacks(t *testing.T) {
	many := noted("")
	for i := range regions.Most + 1 {
		many.Note("", []wire.Region{{Name: fmt.Sprintf("r%03d", i)}})
	}
	for _, c := range []struct {
		set           *regions.Set
		group, region string
		want          string
	}{
		{noted("", "work", "work", "idle"), "", "work", ""},
		{noted("", "work", "idle"), "", "wurk", `no member has ever reported region "wurk"; members have reported: idle, work`},
		{noted("", "work"), "others", "work", `no member of group "others" has ever reported region "work"; members have reported: none`},
		{&regions.Set{}, "", "work", `no member has ever reported region "work"; members have reported: none`},
		{many, "", "work", ""}, // Members may have been in it.
		{many, "", "r000", ""},
	} {
		if got := c.set.Lacks(c.group, c.region); got != c.want {
			t.Errorf("%q of group %q: %q, want %q", c.region, c.group, got, c.want)
		}
	}
	if s := noted("g", "a"); !s.Any("g") || s.Any("") {
		t.Error("members of the group g have reported a region, and no others")
	}
	if list := many.Kept(); len(list) != 1 || len(list[0].Names) != regions.Most || !list[0].More {
		t.Errorf("%+v", list)
	}
}

// TestInherit: another set adds its regions, up to the bound, of the groups that are wanted.
func TestInherit(t *testing.T) {
	from := noted("", "a")
	from.Note("other", []wire.Region{{Name: "b"}})
	from.Note("gone", []wire.Region{{Name: "c"}})
	s := noted("", "z")
	s.Inherit(from.Kept(), func(group string) bool { return group != "gone" })
	if got := fmt.Sprint(s.Kept()); got != "[{ [a z] false} {other [b] false}]" {
		t.Error(got)
	}
	list := from.Kept()
	list[0].More = true
	if s.Inherit(list, func(string) bool { return true }); s.Lacks("", "x") != "" {
		t.Error("the other set has forgotten some, so x may be known")
	}
}

func TestUnfit(t *testing.T) {
	names := make([]string, regions.Most+1)
	for i := range names {
		names[i] = fmt.Sprint("r", i)
	}
	for want, list := range map[string][]regions.Kept{
		"": {{Names: names[:regions.Most]}, {Group: "g", Names: []string{"a"}}},
		"it has 65 names of regions of a group, at most 64 are kept": {{Names: names}},
		"region": {{Names: []string{"a.b"}}},
	} {
		if got := regions.Unfit(list); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

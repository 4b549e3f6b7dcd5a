// Package regions keeps which regions the members of groups have reported, so that a signal to a region
// that nobody has can be told from one that came too late.
package regions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Most is how many names of regions are kept of a group: names come from members, and can be
// invented. If there are more, nothing is said of a region whose name is not kept, because members may
// have been in it.
const Most = 64

// maxListed is how many names a text lists.
const maxListed = 8

// Set has the regions that members have reported, by group; "" is the synchronizer's own. A region that is left
// before its member reports again is not in it. The zero value is empty.
type Set struct{ groups map[string]*Kept }

// Kept are the regions that members of a group have reported.
type Kept struct {
	Group string   `json:"group,omitempty"` // empty: the synchronizer's own
	Names []string `json:"names"`           // in order
	More  bool     `json:"more,omitempty"`  // there were more than Most
}

// Note notes the regions that a member of a group is in.
func (s *Set) Note(group string, regions []wire.Region) {
	if len(regions) == 0 {
		return
	}
	k := s.of(group)
	for i := range regions {
		k.add(regions[i].Name)
	}
}

// of are the regions of a group, to be added to.
func (s *Set) of(group string) *Kept {
	k := s.groups[group]
	if k == nil {
		k = &Kept{Group: group}
		if s.groups == nil {
			s.groups = map[string]*Kept{}
		}
		s.groups[group] = k
	}
	return k
}

func (k *Kept) add(name string) {
	i, known := slices.BinarySearch(k.Names, name)
	switch {
	case known:
	case len(k.Names) == Most:
		k.More = true
	default:
		k.Names = slices.Insert(k.Names, i, name)
	}
}

// Any reports whether members of a group have reported a region.
func (s *Set) Any(group string) bool { return s.groups[group] != nil }

// Lacks says that no member of a group has reported a region, and which ones members have reported; "" if a
// member has, or if that is not known.
func (s *Set) Lacks(group, region string) string {
	k := s.groups[group]
	if k == nil {
		k = &Kept{}
	}
	if _, known := slices.BinarySearch(k.Names, region); known || k.More {
		return ""
	}
	of := ""
	if group != "" {
		of = fmt.Sprintf(" of group %q", group)
	}
	return fmt.Sprintf("no member%s has ever reported region %q; members have reported: %s", of, region, nearest.List(k.Names, maxListed))
}

// Kept lists what the set has, by group.
func (s *Set) Kept() []Kept {
	var list []Kept
	for _, group := range slices.Sorted(maps.Keys(s.groups)) {
		k := *s.groups[group]
		k.Names = slices.Clone(k.Names)
		list = append(list, k)
	}
	return list
}

// Inherit adds what another set has of the groups that are wanted.
func (s *Set) Inherit(list []Kept, wanted func(group string) bool) {
	for _, k := range list {
		if !wanted(k.Group) || len(k.Names) == 0 {
			continue
		}
		mine := s.of(k.Group)
		for _, name := range k.Names {
			mine.add(name)
		}
		mine.More = mine.More || k.More
	}
}

// Unfit says why a list is none.
func Unfit(list []Kept) string {
	for _, k := range list {
		if len(k.Names) > Most {
			return fmt.Sprintf("it has %d names of regions of a group, at most %d are kept", len(k.Names), Most)
		}
		for _, name := range k.Names {
			if err := wire.CheckToken("region", name); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

package callcore

import (
	"cmp"
	"slices"

	"github.com/gopegasus/pegasus/internal/workreport"
)

// Report tells how the calls of each function stand that this member serves or has called: the first functions, by name.
func (m *Machine) Report() []workreport.Calls {
	byName := map[string]*workreport.Calls{}
	of := func(name string) *workreport.Calls {
		if byName[name] == nil {
			byName[name] = &workreport.Calls{Name: name}
		}
		return byName[name]
	}
	for _, k := range m.functions {
		c := of(k.name)
		c.Open, c.Lost, c.Full, c.Busy, c.Held = k.open, k.lost, k.full, k.busy, len(k.waiting)
	}
	for name, s := range m.servers {
		c := of(name)
		c.Waiting, c.Served, c.Seconds = len(s.queue), s.served, s.spent.Seconds()
	}
	for _, it := range m.runs {
		of(it.stages[it.key.stage].Name).Running++
	}
	list := make([]workreport.Calls, 0, len(byName))
	for _, c := range byName {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b workreport.Calls) int { return cmp.Compare(a.Name, b.Name) })
	return list[:min(len(list), workreport.MaxCalls)]
}

package callcore

import (
	"cmp"
	"slices"
)

// Figures are how the calls of one function stand at a member.
type Figures struct {
	Name    string // of the function
	Open    int    // calls of this member without an outcome
	Waiting int    // calls that wait here for a slot
	Running int    // calls that run here
	Lost    uint64 // times that a server was lost with a call of this member
	Full    uint64 // times that a server refused a call of this member
}

// Figures returns the figures of each function that this member serves or has called, by name.
func (m *Machine) Figures() (list []Figures) {
	byName := map[string]*Figures{}
	of := func(name string) *Figures {
		if byName[name] == nil {
			byName[name] = &Figures{Name: name}
		}
		return byName[name]
	}
	for name, k := range m.clients {
		f := of(name)
		f.Open, f.Lost, f.Full = k.open, k.lost, k.full
	}
	for name, s := range m.servers {
		of(name).Waiting = len(s.queue)
	}
	for _, it := range m.runs {
		of(it.stages[it.key.stage].Name).Running++
	}
	for _, f := range byName {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b Figures) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

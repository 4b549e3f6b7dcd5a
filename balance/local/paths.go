package local

import (
	"cmp"
	"slices"
)

// Path says that one member may give tasks to another one, by a strategy of the kind [Links] or [Tree].
type Path struct {
	From, To string  // names of members
	Share    float64 // the part of its spare tasks that From gives, above 0, at most 1
	When     string  // the condition, in words
	// Pushes says that From gives whenever it is overloaded, however loaded To is.
	Pushes bool
	Level  int // of [Tree]: from 1, the pairs of single members; of [Links]: 0
	// Column is where the key links names From, and Other where it names To, in characters from 1; of [Tree]: 0.
	Column, Other int
}

// Paths lists the ways on which tasks move among the members: of links in the order of the text, of a tree by level.
// Other kinds have no fixed ways, since their members ask and offer by load. The error joins all faults of the
// configuration.
func (c Config) Paths(members []string) ([]Path, error) {
	strategy, err := New(c)
	if err != nil {
		return nil, err
	}
	var list []Path
	switch s := strategy.(type) {
	case *linked:
		for i := range s.links {
			for from := range 2 {
				if p, ok := s.links[i].path(from); ok {
					list = append(list, p)
				}
			}
		}
	case *tree:
		s.buildTree(members)
		for _, l := range s.links {
			for _, ends := range [][2]string{{l.slow, l.fast}, {l.fast, l.slow}} {
				list = append(list, Path{From: ends[0], To: ends[1], Share: s.gammaOf(ends[0], ends[1]), When: ends[1] + " is short of tasks", Level: l.level})
			}
		}
	}
	return list, nil
}

// path is the way from one end to the other; false: no task goes that way.
func (l *link) path(from int) (Path, bool) {
	a, b := &l.ends[from], &l.ends[1-from]
	_, o := l.listInitiating(from)
	u, _ := l.listInitiating(1 - from)
	p := Path{From: a.name, To: b.name, Share: a.share, Column: a.column, Other: b.column}
	switch {
	case o && u:
		p.When = a.name + " has " + a.o.formatBound() + ", or " + b.name + " has " + b.u.formatBound()
	case o:
		p.When = a.name + " has " + a.o.formatBound()
	case u:
		p.When = b.name + " has " + b.u.formatBound()
	default:
		return p, false
	}
	_, back := l.listInitiating(1 - from)
	p.Pushes = o && !back
	return p, true
}

// FirstSplit divides tasks among members as a strategy of the kind [Tree] does at the first demands: by throughput, at
// each pair rounded down for the slower part. Of other kinds, and without members, it is nil.
func (c Config) FirstSplit(members []string, tasks int) []int {
	strategy, err := New(c)
	s, ok := strategy.(*tree)
	if err != nil || !ok || len(members) == 0 {
		return nil
	}
	s.buildTree(members)
	s.root.splitTasks(max(0, tasks), s.portions)
	list := make([]int, len(members))
	for i, name := range members {
		list[i] = s.portions[name]
	}
	return list
}

// Throughputs are the members that the key speeds names, with their numbers, by name. Faults has what cannot be read.
func (c Config) Throughputs() (names []string, speeds []float64) {
	if c.Speeds == "" {
		return nil, nil
	}
	all, fault := parseSpeeds(c.Speeds)
	if fault != nil {
		return nil, nil
	}
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	for _, name := range names {
		speeds = append(speeds, all[name])
	}
	return names, speeds
}

// buildTree makes the tree of some members.
func (s *tree) buildTree(members []string) {
	sorted := slices.Compact(slices.Sorted(slices.Values(members))) // All members build the same tree.
	if len(sorted) == 0 {
		return
	}
	var leaves []*cluster
	for _, name := range sorted {
		leaves = append(leaves, &cluster{name: name, throughput: s.speedOf(name)})
	}
	s.root, s.links = clusterTree(leaves)
	s.portions, s.put = map[string]int{}, 0
}

package bnb

// settler draws the consequences of required and forbidden edges that hold in
// every tour: each city has two edges, and required edges close no circle but
// the tour itself.
type settler struct {
	g     *graph
	state []uint8
	need  []int32 // required edges at a city
	live  []int32 // edges at a city that are not forbidden
	mate  []int32 // other end of the required path a city is an end of
	total int     // required edges
	queue []int32 // cities to look at
	fixed int     // edges decided since load
}

func newSettler(g *graph) *settler {
	return &settler{g: g, need: make([]int32, g.n), live: make([]int32, g.n), mate: make([]int32, g.n)}
}

// load takes a state to work on in place and draws all its consequences. It
// returns false if no tour fits it.
func (s *settler) load(state []uint8) bool {
	s.state, s.total, s.fixed, s.queue = state, 0, 0, s.queue[:0]
	for c := range s.g.n {
		s.need[c], s.live[c], s.mate[c] = 0, 0, int32(c)
		s.queue = append(s.queue, int32(c))
	}
	for i, e := range s.g.edges {
		if state[i] != forbidden {
			s.live[e.U]++
			s.live[e.V]++
		}
	}
	for i := range s.g.edges {
		if state[i] == required && !s.join(int32(i)) {
			return false
		}
	}
	return s.drain()
}

// require and forbid decide an edge and draw the consequences; they return
// false if no tour is left. Deciding an edge again is allowed.
func (s *settler) require(e int32) bool { return s.mustHave(e) && s.drain() }

func (s *settler) forbid(e int32) bool { return s.mustNot(e) && s.drain() }

func (s *settler) mustHave(e int32) bool {
	switch s.state[e] {
	case required:
		return true
	case forbidden:
		return false
	}
	s.state[e] = required
	s.fixed++
	return s.join(e)
}

func (s *settler) mustNot(e int32) bool {
	switch s.state[e] {
	case required:
		return false
	case forbidden:
		return true
	}
	s.state[e] = forbidden
	s.fixed++
	ends := s.g.edges[e]
	s.live[ends.U]--
	s.live[ends.V]--
	s.queue = append(s.queue, ends.U, ends.V)
	return s.live[ends.U] >= 2 && s.live[ends.V] >= 2
}

// join adds a required edge to the paths.
func (s *settler) join(e int32) bool {
	u, v := s.g.edges[e].U, s.g.edges[e].V
	s.total++
	s.need[u]++
	s.need[v]++
	if s.need[u] > 2 || s.need[v] > 2 {
		return false
	}
	s.queue = append(s.queue, u, v)
	a, b := s.mate[u], s.mate[v]
	if a == v { // a circle: right only if it is the tour
		return s.total == s.g.n
	}
	s.mate[a], s.mate[b] = b, a
	if s.total == s.g.n-1 {
		return true // the edge between the ends closes the tour
	}
	if last := s.g.find(a, b); last >= 0 && last != e {
		return s.mustNot(last)
	}
	return true
}

// drain looks at every queued city.
func (s *settler) drain() bool {
	for len(s.queue) > 0 {
		c := s.queue[len(s.queue)-1]
		s.queue = s.queue[:len(s.queue)-1]
		switch {
		case s.live[c] < 2 || s.need[c] > 2:
			return false
		case s.need[c] == 2 && s.live[c] > 2:
			if !s.decide(c, s.mustNot) {
				return false
			}
		case s.live[c] == 2 && s.need[c] < 2:
			if !s.decide(c, s.mustHave) {
				return false
			}
		}
	}
	return true
}

// decide applies the same decision to every free edge at a city.
func (s *settler) decide(c int32, with func(int32) bool) bool {
	for _, h := range s.g.around(c) {
		if s.state[h.edge] == free && !with(h.edge) {
			return false
		}
	}
	return true
}

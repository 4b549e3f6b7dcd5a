// Package bnb is an exact branch-and-bound solver for the symmetric travelling
// salesman problem whose search can be cut, moved and joined at any node. It
// runs no goroutines, reads no clock and knows of no network: whoever calls it
// decides who searches what, and when.
//
// # Method
//
// The bound is the 1-tree of Held and Karp (1970, 1971), raised by subgradient
// ascent. [Prepare] raises it once for the whole instance and keeps the edges
// that a tour shorter than the one known can have. A node of the search
// requires some edges and forbids others; it raises the bound again, decides
// more edges by what they would cost and by what every tour must satisfy, and
// branches on the edge that promises most on trial. Costs are whole numbers,
// distances shifted by a few bits, so bounds are exact.
//
// An [Improver] shortens a tour by local search; the better the tour known, the
// fewer nodes are searched.
//
// # Parts
//
// A [Subtask] is a set of tours: kind Edges cuts by required and forbidden
// edges, kind Prefix by the first cities of the tour, as the PEGASUS paper does
// (4.3). With it go the prices of the node that it was, so that a search that
// is cut sees close to the same nodes as one that is not. A [Search] takes a
// subtask and looks through it, one node a [Search.Step]. [Search.Donate] gives
// away open nodes as subtasks; what is given away and what stays are together
// all that was open. A search that is Done has proven that its subtask holds no
// tour shorter than the least of the shared incumbent, the tour of its Problem,
// and the tours it found. It is the caller's part to keep those tours: publish a
// tour before the incumbent is lowered to its length, and before a subtask is
// called complete because of it.
//
// [Problem.Load] and [Search.Load] estimate the work in a subtask or in a search, to
// balance by.
//
//	p, err := bnb.Prepare(in, bnb.Options{Seed: 1})
//	if err != nil {
//		return err
//	}
//	var incumbent atomic.Int64
//	incumbent.Store(int64(p.Length()))
//	s, err := bnb.NewSearch(p, bnb.Root(bnb.Edges), &incumbent)
//	if err != nil {
//		return err
//	}
//	for st := s.Step(); st != bnb.Done; st = s.Step() {
//		if st == bnb.Improved {
//			tour, length := s.Tour()
//			publish(tour)
//			incumbent.Store(int64(length))
//		}
//	}
//
// [Solve] does the same in one call.
package bnb

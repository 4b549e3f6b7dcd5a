// Package workplan says before a run what the section work of a configuration does with given members, and after a run
// which line of it to change.
//
// A plan has the neighbours, the paths of tasks, the first split, and the time that it should take by the theory of CORD
// (sections 6.1 to 6.3). It does not simulate: package worksim does.
package workplan

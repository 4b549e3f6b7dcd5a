package local

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/nearest"
)

// The topologies: which members are neighbours.
const (
	Full = "full" // all members are neighbours of each other
	Ring = "ring" // each member has the one before and the one after it, by their places in the roster
	// Hypercube gives a member those whose places differ from its own in one bit.
	Hypercube = "hypercube"
	// Mesh gives a member those beside, above and below it, in rows of ceil(sqrt(members)).
	Mesh = "mesh"
	// Torus is a mesh whose rows and columns are closed to rings.
	Torus = "torus"
	// BinaryTree gives the member at place i those at (i-1)/2, 2i+1 and 2i+2.
	BinaryTree = "tree"
)

// Topologies lists the topologies.
var Topologies = []string{Full, Ring, Hypercube, Mesh, Torus, BinaryTree}

// Topology is one of Topologies; an empty one is [Full].
type Topology string

// ParseTopology reads the name of a topology. The error says which there are.
func ParseTopology(name string) (Topology, error) {
	if name == "" || slices.Contains(Topologies, name) {
		return Topology(name), nil
	}
	return "", errors.New("topology: " + notOneOf(name, "topology", Topologies))
}

// notOneOf says that a name is not known, and which are.
func notOneOf(name, what string, known []string) string {
	text := fmt.Sprintf("%q is not a %s: write one of %s", name, what, strings.Join(known, ", "))
	if meant := nearest.Name(name, known); meant != "" {
		text += fmt.Sprintf("; did you mean %s?", meant)
	}
	return text
}

// AppendNeighbours appends the places of the neighbours of the member at a place in a roster of
// so many members. Places count from 0. The next place comes first, the one before last, so
// that members that are short of work at once ask different ones first. A place outside of the
// roster has no neighbours. When the roster changes, the places do, and so do the neighbours.
func (t Topology) AppendNeighbours(to []int, place, members int) []int {
	if place < 0 || place >= members || members < 2 {
		return to
	}
	from := len(to)
	add := func(other int) { // A small roster gives the same place twice.
		if other >= 0 && other < members && other != place && !slices.Contains(to[from:], other) {
			to = append(to, other)
		}
	}
	switch t {
	case Ring:
		add((place + 1) % members)
		add((place + members - 1) % members)
	case Hypercube:
		for bit := 1; bit < members; bit *= 2 {
			add(place ^ bit)
		}
	case Mesh, Torus:
		width := int(math.Ceil(math.Sqrt(float64(members))))
		row, column := place/width, place%width
		across := min(width, members-row*width)        // The last row may be short,
		down := (members - column + width - 1) / width // and so some columns.
		if t == Torus {
			add(row*width + (column+1)%across)
			add((row+1)%down*width + column)
			add(row*width + (column+across-1)%across)
			add((row+down-1)%down*width + column)
			break
		}
		if column+1 < across {
			add(place + 1)
		}
		add(place + width)
		if column > 0 {
			add(place - 1)
		}
		add(place - width)
	case BinaryTree:
		add(2*place + 1)
		add(2*place + 2)
		if place > 0 {
			add((place - 1) / 2)
		}
	default:
		for i := 1; i < members; i++ {
			to = append(to, (place+i)%members)
		}
	}
	return to
}

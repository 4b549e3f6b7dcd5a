package local

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/nearest"
)

// The topologies: which members are neighbours.
const (
	Full = "full" // all members are neighbours of each other
	Ring = "ring" // each member has the one before and the one after it, by their places in the roster
)

// Topologies lists the topologies.
var Topologies = []string{Full, Ring}

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

// AppendNeighbours appends the places of the neighbours of the member at a place in a
// roster of so many members. Places count from 0. The next place comes first, the one
// before last, so that members that are short of work at once ask different ones first.
// A place outside of the roster has no neighbours. When the roster changes, the places
// do, and the neighbours are those of the new roster.
func (t Topology) AppendNeighbours(to []int, place, members int) []int {
	if place < 0 || place >= members || members < 2 {
		return to
	}
	if t == Ring {
		to = append(to, (place+1)%members)
		if members > 2 {
			to = append(to, (place+members-1)%members)
		}
		return to
	}
	for i := 1; i < members; i++ {
		to = append(to, (place+i)%members)
	}
	return to
}

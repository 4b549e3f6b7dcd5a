package synccore

import "github.com/gopegasus/pegasus/scgs"

// arena keeps the rows of states by reference, without an allocation once it has grown
// to its working size. They lie one behind the other in blocks, which do not move.
// Reference 0 is no row.
type arena struct {
	width  int            // values of the longest row
	blocks [][]scgs.Value // of blockRows rows each
	unused []scgs.Ref     // the last is used next
}

const blockRows = 128

// put copies a row of at most width values.
func (a *arena) put(row []scgs.Value) scgs.Ref {
	if len(a.unused) == 0 {
		a.grow()
	}
	last := len(a.unused) - 1
	ref := a.unused[last]
	a.unused = a.unused[:last]
	kept := a.get(ref, len(row))
	for i := range row { //nolint:staticcheck // Rows are short: faster than copy.
		kept[i] = row[i]
	}
	return ref
}

func (a *arena) grow() {
	first := len(a.blocks) * blockRows
	a.blocks = append(a.blocks, make([]scgs.Value, blockRows*a.width))
	for i := blockRows - 1; i >= 0; i-- {
		a.free(scgs.Ref(first + i)) //nolint:gosec // As many as rows fit the memory.
	}
}

// get is the row of so many values that was put there.
func (a *arena) get(ref scgs.Ref, n int) []scgs.Value {
	if ref == 0 {
		return nil
	}
	first := int(ref%blockRows) * a.width
	return a.blocks[ref/blockRows][first : first+n : first+n]
}

func (a *arena) free(ref scgs.Ref) {
	if ref != 0 {
		a.unused = append(a.unused, ref)
	}
}

// row is the state of a member, or of the process.
func (c *Core) row(m *member, ref scgs.Ref) []scgs.Value {
	if m == c.process {
		return c.rows.get(ref, len(c.plan.Process))
	}
	return c.rows.get(ref, len(c.plan.State))
}

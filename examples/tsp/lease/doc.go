// Package lease keeps account of who searches what in a distributed search.
//
// The search space is cut into subtasks, which the table does not look into:
// each is a body of bytes with a lower bound of what can be found in it. A lease
// is a list of subtasks with a number. It waits in the pool, is granted to an
// owner, and ends when that owner completes it. On the way the owner may return
// a part of it, which becomes leases of its own: that is how work migrates. An
// owner that is dropped loses its leases to the pool, with the bodies they had
// after the last return.
//
// # The rule
//
// The bodies of the open leases, pooled or granted, together always cover all
// that has not been searched to its end. Some of it may be searched twice, by an
// owner that was dropped but lives and by the next one; none is lost. When no
// lease is open, everything has been searched.
//
// The table is a plain value with one owner: it has no clock, lock or
// connection, and does the same on the same calls.
//
//	t := lease.NewTable([]lease.Item{{Bound: 10, Body: a}, {Bound: 12, Body: b}})
//	granted := t.Grant("w1", 0, 1, 0)
//	err := t.Complete("w1", granted[0].ID)
package lease

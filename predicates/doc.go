// Package predicates compiles and evaluates predicates over global states.
//
// A predicate is a text in a subset of the language of github.com/expr-lang/expr.
// It is parsed by expr, typed against the declared state of an [Env] when the
// configuration is loaded, and evaluated on the global state in a [Scope]:
//
//	all(members, .phase == "idle") && memory.best < 100
//
// Faults are refused when the text is compiled, with their place: unknown fields and
// functions, enum words that are not declared, operands of wrong types,
// conditions that are not boolean, and texts that cost too much.
//
// # Names
//
//	members                    all members of the epoch, in the order of their names
//	prev                       the same members in the last global state of the epoch
//	.name .host .online        who a member is, and whether its state is known
//	.x                         the field x of the member's declared state
//	.prev.x                    the same field in the last global state of the epoch
//	memory.x                   a variable of the synchronizer
//	process.x                  a field of the process whose threads are the members
//	from_parent.stop.limit     a field of the parent's last signal of that name
//	from_parent["new-best"].x  the same, for a name that has a dash
//
// A field of a member is used inside a function over members. There # is the element
// itself: count(map(members, .load), # > 2).
//
// # Operators
//
//	&& || ! and or not   on conditions; == and != too
//	== != < <= > >=      on numbers and durations; strings, enums and conditions have == and != only
//	x in [a, b]          equals one of a written list; not in is its opposite
//	x in .xs             equals an element of a list
//	.xs[0]               an element of a list, counted from 0
//	+ - * / %            on numbers; % on ints; / always gives a float
//	+ - * /              on durations: d + d, d - d, a number times d, d by a number, and d / d, a float
//	c ? a : b            also as if c { a } else { b }
//	let n = x; body      names a value or a group; no name shadows another
//
// An int and a float are compared exactly, whatever their size. By + - * / and in a function
// an int beside a float becomes a float, the nearest one. A duration is written
// duration("200ms"). An int scales it exactly; a float, and /, round to a nanosecond. An
// enum compares with its declared words, which are written as strings, or with
// an enum that has the same words.
//
// # Functions
//
//	all any none one (group, condition)       conditions
//	count(group, condition)  len(group)       ints
//	sum(group, x)  sum(map(group, x))         an int, a float or a duration, as x is
//	min max (map(group, x))                   an int, a float or a duration, as x is
//	mean(map(group, x))                       a float
//	filter(group, condition)  map(group, x)   groups; also group | filter(condition)
//	find(group, condition)                    the first member that matches, as in find(members, .leader).load
//	abs(x)  min(x, y, ...)  max(x, y, ...)    ints of ints, else floats; min and max of durations a duration
//	floor ceil round (x)  float(x)            floats
//	int(x)                                    truncates towards zero
//	duration("1.5s")                          a duration
//
// There are no others; [Functions] lists them. Other operators and functions of expr
// are refused.
//
// # Lists
//
// A field that is declared as a list is a group of its elements: all functions
// over a group take it but find, and # is the element.
//
//	any(members, any(.tags, # == "gpu"))
//	all(members, sum(.loads) / len(.loads) < 0.5)
//
// A list is not a value: it is not compared, nor put into memory, data or a summary. What holds
// for empty groups and unknown members holds for elements likewise; the elements of an unknown
// list are unknown:
//
//	                     elements a, b   no element   the list unknown
//	all any none one     by Kleene       unknown      unknown
//	mean min max         by the numbers  unknown      unknown
//	sum                  by the numbers  0            unknown
//	len count            by the numbers  0            between 0 and 64
//	x in .xs             by the values   false        unknown
//	x in .xs, x unknown  unknown         false        unknown
//	.xs[i]               the element     unknown      unknown
//
// An index that is not written out may be outside of the list, or unknown itself:
// then so is the element.
//
// A field that has a default is never missing in a known state: where a program does not set
// the field, its value is the default.
//
// # The global state before
//
// Where [Env.Prev] says so, prev is the last global state of the same epoch as it
// was judged: the same members in the same order, with their states then. It does
// not change when a global state is judged again, because a signal of the parent
// has come or memory has changed.
//
//	sum(members, .done) > sum(prev, .done)
//	any(members, .load > 2 * .prev.load)
//
//	the member then       the member now       .prev.x    .prev.online   .x
//	no global state yet   known                unknown    false          its value
//	unknown               known                unknown    false          its value
//	known                 unknown              its value  true           unknown
//	known, x had none     known                unknown    true           its value
//
// .prev.name and .prev.host are always known, and len(prev) is len(members). A member of prev
// has no .prev of its own. Other global states may have held between the two, if they cannot be
// ordered.
//
// # Three values
//
// A verdict is true, false or unknown. Unknown are: the state of a member that is not .online
// (its name and host are known), a field, variable or signal that has no value, an element
// outside of a list, a division by zero, a float that is not a number, an int outside the range
// of int64, all, any, none, one, mean, min and max over an empty group, and find without a
// match. Count, len and sum over an empty group are 0.
//
//	a        b        a && b    a || b    a == b    a ? b : b
//	true     unknown  unknown   true      unknown   unknown
//	false    unknown  false     unknown   unknown   unknown
//	unknown  true     unknown   true      unknown   true
//	unknown  false    false     unknown   unknown   false
//	unknown  unknown  unknown   unknown   unknown   unknown
//
// The logic is strong Kleene: a part that decides alone does so whatever the others are, not of
// unknown is unknown, and so is x or not x if x is. A count with unknown members has bounds:
// from the number of matching members to this number plus the unknown members. Comparisons and
// arithmetic carry the bounds, so count(members, .ready) >= 2 is true as soon as two members
// are ready. The same holds for all, any, none and one. A sum, mean or extreme over an unknown
// element is unknown.
//
// Infinite floats are values and compare as such; only dividing by zero is
// refused, since 1/0 > 5 says nothing about the members. Floats that grow too
// large become infinite.
//
// # Sums
//
// A sum is exact: it is added without rounding and rounded once at the end, a float to the
// nearest one, ties to even; an int is unknown only if the sum itself is outside the range of
// int64. So it depends neither on the order of the members nor on the order of the changes, and
// the same values give the same bytes. Infinities of both signs have no sum: it is unknown. The
// mean is the sum of the floats, divided by their number. In sums, means and extremes -0 counts
// as 0, and a sum that is zero is 0.
//
// # Incremental functions
//
// A function over members is incremental if its conditions and the values that it takes from a
// member read nothing but that member: fields, name, host, online, literals, and lets inside of
// them. These are all, any, none, one, count, len, sum, mean, min and max; with filter and map
// to any depth in their first argument. The first evaluation of an epoch takes all members
// together; from then on [Scope.Set] and [Scope.SetUnknown] replace what one member
// contributes, and the result is read in a time that does not grow with the members. Functions
// that are written alike in several expressions of an Env are computed once.
//
//	sum(members, .load) > memory.limit                  incremental
//	any(filter(members, .ready), .load > 2)             incremental
//	let m = mean(map(members, .load)); ... > m          incremental: the mean
//	any(members, .load > memory.limit)                  evaluated on all members each time
//	count(members, .load > 2 * m)                       evaluated on all members each time
//
// find and the receivers of a signal are not incremental either. Being incremental
// changes no result and no reason.
//
// # Cost
//
// A step is one part of the text, evaluated once. [Expression.Cost] counts the steps of an
// evaluation at the member limit. An incremental function counts the steps for the one member
// that has changed and about thirty more. The steps of any other function are multiplied by the
// member limit, in a loop inside a loop twice. Cost is at most [MaxSteps]. [Expression.Setup]
// counts the steps by which incremental functions are built when an epoch begins; it is at most
// [MaxSetup]. Texts that take more are refused. A change of several members at once takes the
// steps of each. A loop over a list counts as one over [scgs.MaxElements] elements, and in as a
// quarter of that.
//
// # Local conditions
//
// A condition that reads only the declared fields of a single member, .name and .host can be
// judged when that member reports, without a global state. [Expression.Threshold] takes it out
// of count(members, c) >= k, and [Expression.Conjunction] out of all(members, c).
//
// # Rules
//
// A result is a function of the state in the Scope alone, not of how it came about: evaluation
// reads no clock and always ends. It needs to be repeated only when [Scope.Affects] says so. An
// [Expression] is immutable and may be shared; a [Scope] has one owner. The order in which
// parts are evaluated is not promised, nor which of several causes a reason names.
package predicates

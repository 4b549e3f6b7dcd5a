// Package tracefile reads traces: what the participants of a distributed system
// reported of their local states, one JSON object a line, in order of arrival.
//
//	{"participant":"p1","domain":"h0","mono":51,"earliest":15,"latest":87,"type":"state","seq":1,"state":{"role":"leader"}}
//
// [Lines] splits an input into lines, [Scanner] reads one line, and [Columns] turns
// the fields of a state into typed values. A line has these keys, in any order
// and each once; only incarnation and state may be missing:
//
//	participant  who reports; not empty
//	domain       the clock domain of its stamps; not empty
//	mono         the reading of that domain's clock
//	earliest     the bounds of reference time, null where there is none
//	latest
//	type         state (a state begins, and the one before it ends),
//	             alive (the state seq still holds), leave (the last state ends)
//	seq          from 1 in each incarnation; states and leaves count
//	incarnation  from 1, which it is where it is missing
//	state        the fields of a state: only with type state, else empty or null
//
// Stamps are whole numbers of nanoseconds within the signed 64-bit integers;
// 9223372036854775807 as mono or earliest, and -9223372036854775808 as latest, are
// refused, for they would be later or earlier than every event. What is no such
// line is refused as a whole, with the column: unknown and doubled keys, text
// after the object, lone surrogates, bytes that are not UTF-8, more than
// [MaxFields] fields, values nested deeper than [MaxNesting], lines longer than
// [MaxLine]. Lines of white space and a byte order mark at the very beginning are
// passed over, and a line may end in CR LF.
//
// The package is pure, and a steady input allocates nothing.
package tracefile

package predicates

// Truth is the value of a predicate on one global state.
type Truth uint8

// Unknown is the zero Truth: what has not been decided must not act.
const (
	Unknown Truth = iota
	False
	True
)

// String gives "unknown", "false" or "true".
func (t Truth) String() string {
	switch t {
	case False:
		return "false"
	case True:
		return "true"
	case Unknown:
	}
	return "unknown"
}

// truth is a Truth during evaluation; why is set if it is Unknown.
type truth struct {
	is  Truth
	why cause
}

func truthOf(b bool) truth {
	if b {
		return truth{is: True}
	}
	return truth{is: False}
}

func unknownTruth(why cause) truth { return truth{why: why} }

// notTruth, andTruth and orTruth are strong Kleene: an operand that decides the result alone does
// so whatever the other one is.
func notTruth(a truth) truth {
	switch a.is {
	case True:
		return truth{is: False}
	case False:
		return truth{is: True}
	case Unknown:
	}
	return a
}

func andTruth(a, b truth) truth {
	switch {
	case a.is == False || b.is == False:
		return truth{is: False}
	case a.is == Unknown:
		return a
	}
	return b
}

func orTruth(a, b truth) truth { return notTruth(andTruth(notTruth(a), notTruth(b))) }

// sameTruth is whether two truth values are the same known one; it is Kleene's ==.
func sameTruth(a, b truth) truth {
	switch {
	case a.is == Unknown:
		return a
	case b.is == Unknown:
		return b
	}
	return truthOf(a.is == b.is)
}

// text is a string or an enum's word; why is set if it is not known.
type text struct {
	s   string
	why cause
}

func (a text) equalsText(b text) truth {
	switch {
	case a.why.isSet():
		return unknownTruth(a.why)
	case b.why.isSet():
		return unknownTruth(b.why)
	}
	return truthOf(a.s == b.s)
}

// item is one member, by its index; why is set if it is not known which.
type item struct {
	index int
	why   cause
}

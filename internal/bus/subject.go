package bus

import "fmt"

// maxSubject keeps a protocol line below the 4,096 bytes a server accepts.
const maxSubject = 1024

// checkSubject refuses what NATS would refuse, mangle or take for a wildcard.
func checkSubject(subject string, wildcards bool) error {
	if subject == "" || len(subject) > maxSubject {
		return fmt.Errorf("%w: it has %d bytes, not 1 to %d", ErrSubject, len(subject), maxSubject)
	}
	start := 0
	for i := range len(subject) {
		switch c := subject[i]; {
		case c == '.':
			if i == start {
				return fmt.Errorf("%w: empty token at byte %d", ErrSubject, i)
			}
			start = i + 1
		case c <= ' ' || c == 0x7f:
			return fmt.Errorf("%w: space or control character at byte %d", ErrSubject, i)
		case (c == '*' || c == '>') && (!wildcards || !wildcardAt(subject, start, i)):
			return fmt.Errorf("%w: wildcard at byte %d", ErrSubject, i)
		}
	}
	if start == len(subject) {
		return fmt.Errorf("%w: empty token at byte %d", ErrSubject, start)
	}
	return nil
}

// wildcardAt reports whether the * or > at byte i is a token of its own, and
// the last one if it is a >.
func wildcardAt(subject string, start, i int) bool {
	last := i+1 == len(subject)
	return i == start && (last || subject[i] == '*' && subject[i+1] == '.')
}

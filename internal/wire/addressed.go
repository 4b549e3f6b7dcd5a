package wire

// Addressed is a message and the member it goes to.
type Addressed[M any] struct {
	To    string
	Msg   M
	Group string // another group's; empty: the synchronizer's own
	// Via is the multiplexer that speaks for the member and hands the message on;
	// empty: the member listens itself. It is no part of a digest: it only says by
	// which way the same message travels.
	Via string `digest:"-"`
}

// Package link is what the package work gets of a member of a group: the other members, the section
// of the configuration, a connection, and fields of the state that work itself fills. The package
// agent implements it; tests of work have another.
package link

import (
	"context"
	"log/slog"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/scgs"
)

// Peer is one life of a member.
type Peer struct {
	Name string // of the member
	Life uint64 // its first incarnation: another process of that name has a greater one
}

// Roster lists the members of the epoch.
type Roster struct {
	Epoch uint64 // its number
	Phase uint64 // that the space is in: 1 above the phases that have ended
	Peers []Peer // sorted by name
}

// Watcher receives changes. Its functions are called one at a time, on a goroutine of their own, and none
// after the stop of [Link.Watch] has returned. They must not call the link. Beyond 64 calls that wait,
// rosters are merged: whoever was missing on one is missing on the merged one.
type Watcher struct {
	// Roster is called with each new roster. What a peer held that is missing is lost, though the same life may
	// be listed again later. The own one is missing while this member is not in the epoch: the member was
	// dropped, or another process has its name. Before the first epoch there are no peers.
	Roster func(Roster)
	// Section is called with each new section work; nil: it is not there any more.
	Section func(*config.Work)
	// State is called after the state of this member has changed, while the section has conditions on it. Changes that
	// follow each other quickly are one call. Nil: it is not told.
	State func()
	// Closed is called once, last: the member is closed.
	Closed func()
}

// Fill gives the value of the field work.NAME, as the schema declares it; false: it has none, and
// the field keeps its default. It is called under a lock and must not call the link.
type Fill func(field scgs.Field) (scgs.Value, bool)

// Conn is a connection to the NATS server. [github.com/gopegasus/pegasus/internal/bus.Bus] is one, and
// states its promises. Handlers are called one at a time for each subscription.
type Conn interface {
	Publish(subject string, data []byte) error
	Subscribe(subject string, handle func(subject string, data []byte)) error
	Flush(ctx context.Context) error
	Close() error
}

// Offered is a function that programs call by requests of NATS.
type Offered struct {
	Name string
	// Handle takes a request. It must not wait for the result, and has answer called once.
	Handle func(data []byte, answer func(result []byte, err error))
}

// Offerer is a [Conn] that offers functions as a service of NATS. Its stop ends the service.
type Offerer interface {
	Offer(functions []Offered) (stop func() error, err error)
}

// Link is one member as the package work sees it. Its methods may be called from any goroutine.
type Link interface {
	// Self is this life of the member. It never changes: a member that comes back after it was dropped
	// is the same life, and a replaced life is over.
	Self() Peer
	// Section is the section work of the group's synchronizer; nil: there is none.
	Section() *config.Work
	// Watch tells w the present state, then each change, until stop is called. Only one watcher may
	// be there.
	Watch(w Watcher) (stop func(), err error)
	// Tell has the fields work.NAME filled from now on, and reports a state with their present values.
	// Without a change nothing is reported. Before the first call each has its default.
	Tell(fill Fill) error
	// Connect makes a connection of its own, with the address and options of the member's Join.
	Connect(ctx context.Context) (Conn, error)
	// Subject is where a member receives what this one sends it, and Own where this one receives what the others of
	// its space send it. The last token of a subject there is the name of the sender.
	Subject(member string) string
	Own() string
	// State returns the state that this member reports now, with the memory of row, and how it is declared; false: it
	// reports none now.
	State(row []scgs.Value) (declared scgs.Schema, values []scgs.Value, ok bool)
	// Host is the .host of this member.
	Host() string
	// Group is the tenant and the group of the member.
	Group() (tenant, group string)
	// Status is where this member is asked how the space stands, and where it answers.
	Status() (asked, told string)
	// Await runs in a reserved region until the synchronizer says that the phase is over (nil), or
	// ctx ends or the member is closed (the error). A signal that is caused by a state from before the
	// call does not end it. It calls entered once the region is entered: a state that is reported from then on can
	// end it.
	Await(ctx context.Context, entered func()) error
	// Orders runs in a reserved region, and calls handle with the orders that the synchronizer sends to move objects, until
	// ctx ends or the member is closed (the error). [github.com/gopegasus/pegasus/balance.ParseOrders] reads them.
	Orders(ctx context.Context, handle func(orders string)) error
	// Now is the present instant of the member's clock.
	Now() clocksync.Instant
	Log() *slog.Logger
}

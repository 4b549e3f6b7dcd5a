package show

import (
	"time"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// Entry is one thing to tell.
type Entry struct {
	At    time.Time // its text shows it in the zone that it has
	From  string    // the synchronizer, empty for the run as a whole
	Event any       // a type below, or an Event or *Line of monitor
}

// What is told beside the events of a synchronizer.
type (
	// Ready is the first entry: members can join. Where the process stands by, that is the first one,
	// and Ready comes when it leads.
	Ready struct {
		URL     string               // where members join, without a password
		Secured bool                 // the URL lacks the credentials that members need
		Keys    bool                 // members need the credentials of a directory of keys
		Tenant  string               // of the run
		Program string               // that is to run on the members, if one is
		Levels  []synchronizer.Level // the synchronizers that run, at least one
		HTTP    string               // where metrics and health are served, if anywhere
		Standby bool                 // they stand by
	}
	// Refusal is an input that was refused; more are not told where Last is set.
	Refusal struct {
		monitor.Rejection

		Last bool // the others come with -v alone
	}
	// Notice is what a synchronizer logs: one line.
	Notice string
	// Stopped is the last entry of a synchronizer.
	Stopped struct{ synchronizer.Stats }
	// Skipped counts entries that were lost because the reader was too slow.
	Skipped uint64
)

// What watch tells beside events and notices.
type (
	// Watching is the first entry.
	Watching struct {
		URL, Tenant string   // of the run
		Names       []string // of its synchronizers
	}
	// Standing is what a synchronizer answers, again and again.
	Standing struct{ *monitor.Status }
)

// What replay tells.
type (
	// Replayed is the last entry of a journal.
	Replayed struct {
		*synchronizer.Replayed

		File     string // the journal
		Compared bool   // with a changed configuration
	}
	// Difference is where the changed configuration comes to another verdict.
	Difference struct{ synchronizer.Difference }
)

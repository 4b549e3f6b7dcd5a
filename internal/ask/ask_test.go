package ask

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestAsk: messages that are no part of an answer are ignored and counted, and what a synchronizer that does not
// answer lacks is told as far as it can be known.
func TestAsk(t *testing.T) {
	const present = `.{"synchronizer":"s","group":"g","term":1}`
	for name, c := range map[string]struct {
		answers []string // to the question
		present string   // to who is there
		want    string   // the error
		strange int
	}{
		"junk before the answer": {[]string{"junk", "", `+{"term"`, "{}", ".:7}"}, present, "", 3},
		"junk alone": {[]string{"junk"}, present, `synchronizer "s" has not answered within 50ms: 1 message came instead that is no part of an answer: ` +
			`the synchronizer has another version (compare pegasus version), or another client answers its questions: permit only synchronizers to subscribe to ctl`, 1},
		"a flood": {nil, `.{"synchronizer":"s","group":"g","term":1,"lost":42}`, `synchronizer "s" has not answered within 50ms: the synchronizer is flooded, and has lost or refused 40 messages meanwhile: ` +
			`find the client that sends so many (nats server report connections --sort in-msgs), end that, and ask again`, 0},
		"a part is lost": {[]string{`+{"term"`}, present, `synchronizer "s" has not answered within 50ms: the synchronizer announces itself, so it is busy, or parts of its answer are lost; ask again`, 0},
		"nobody":         {nil, "", `synchronizer "s" has not answered within 50ms: nor does it say any more that it is there: its process hangs, is stopped or has ended`, 0},
		"no JSON":        {[]string{".{"}, present, `the answer of synchronizer "s" cannot be read, it may be of another version: unexpected EOF`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := bustest.NewServer(t)
			there, here := server.Connect(bus.Options{}), server.Connect(bus.Options{})
			defer there.Close()
			defer here.Close()
			subjects := wire.Subjects{Tenant: "t", Group: "g"}
			reply := func(list ...string) bus.Handler {
				return func(m bus.Message) {
					for _, text := range list {
						if err := there.Reply(m, []byte(text)); err != nil {
							t.Error(err)
						}
					}
				}
			}
			if err := there.Subscribe(subjects.Ask("s", wire.VerbStatus), bus.Limits{}, reply(c.answers...)); err != nil {
				t.Fatal(err)
			}
			if err := there.Subscribe(subjects.Who(), bus.Limits{}, reply(c.present)); err != nil {
				t.Fatal(err)
			}
			if err := there.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := Asker{Bus: here, Tenant: "t", patience: 50 * time.Millisecond}
			if c.want == "" {
				a.patience = time.Minute
			}
			var answer struct{ Term int }
			err := a.Ask(t.Context(), synchronizer.Presence{Synchronizer: "s", Group: "g", Lost: 2}, wire.VerbStatus, "", &answer)
			if got := fmt.Sprint(err); got != cmp.Or(c.want, "<nil>") || a.Strange != c.strange {
				t.Errorf("%d strange, got %v\nwant %s", a.Strange, err, c.want)
			}
			if c.want == "" && answer.Term != 7 {
				t.Errorf("term %d", answer.Term)
			}
		})
	}
}

// TestRefused: the error names the user and the role, and its cause stays that of the bus.
func TestRefused(t *testing.T) {
	denied := fmt.Errorf("bus: %w: nats: permissions violation: Permissions Violation for Publish to \"x\"", bus.ErrPermission)
	inbox := fmt.Errorf(`bus: %w: nats: permissions violation: Permissions Violation for Subscription to "_INBOX.ours.abc"`, bus.ErrPermission)
	for want, err := range map[string]error{
		"user vic may not set parameters of gsync: the credential needs the role operator":           (&Asker{Person: "vic"}).refused("gsync", wire.VerbSet, denied),
		"user vic may not reload the configuration of gsync: the credential needs the role operator": (&Asker{Person: "vic"}).refused("gsync", wire.VerbReload, denied),
		"user w1 may not ask gsync for why: the credential needs the role viewer":                    (&Asker{Person: "w1"}).refused("gsync", wire.VerbWhy, denied),
		"the user of this connection may not ask gsync for status: the server does not let it hear answers below _INBOX.ours: " +
			"set inbox_prefix in the context to _INBOX.NAME with the name of the credential, or leave it out": (&Asker{}).refused("gsync", wire.VerbStatus, inbox),
	} {
		if err.Error() != want || !errors.Is(err, bus.ErrPermission) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

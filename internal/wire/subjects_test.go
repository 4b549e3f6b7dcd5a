package wire_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/wire"
)

func TestSubjects(t *testing.T) {
	s := wire.Subjects{Tenant: "default", Group: "workers"}
	for got, want := range map[string]string{
		s.State("w1"):        "pegasus.v1.default.workers.st.w1",
		s.StateAll():         "pegasus.v1.default.workers.st.>",
		s.Probe("w1"):        "pegasus.v1.default.workers.pr.w1",
		s.Signal("w1"):       "pegasus.v1.default.workers.sg.w1",
		s.Ping("w1"):         "pegasus.v1.default.workers.pg.w1",
		s.PingAll():          "pegasus.v1.default.workers.pg.*",
		s.Data("w1"):         "pegasus.v1.default.workers.dt.w1",
		s.DataAll():          "pegasus.v1.default.workers.dt.*",
		s.Work("w1", "w2"):   "pegasus.v1.default.workers.wk.w1.w2",
		s.WorkAsk():          "pegasus.v1.default.workers.ws",
		s.WorkTold("w1"):     "pegasus.v1.default.workers.wa.w1",
		s.Announce():         "pegasus.v1.default.workers.sga",
		s.Ack("gsync", "w1"): "pegasus.v1.default.workers.ak.gsync.w1",
		s.AckAll("gsync"):    "pegasus.v1.default.workers.ak.gsync.*",
		s.Control("gsync"):   "pegasus.v1.default.workers.ctl.gsync",
		s.AskAll("gsync"):    "pegasus.v1.default.workers.ctl.gsync.*",
		s.Events("gsync"):    "pegasus.v1.default.workers.ev.gsync",
		s.Beat("gsync"):      "pegasus.v1.default.workers.bt.gsync",
		s.Who():              "pegasus.v1.default.ctl",

		s.Ask("gsync", wire.VerbWhy): "pegasus.v1.default.workers.ctl.gsync.why",
	} {
		if got != want {
			t.Errorf("subject %q, want %q", got, want)
		}
	}
}

func TestSubjectsNameTheVerb(t *testing.T) {
	s := wire.Subjects{Tenant: "default", Group: "workers"}
	if v, person, ok := s.ParseAsk("gsync", s.Ask("gsync", wire.VerbWatch)); !ok || v != wire.VerbWatch || person != "" {
		t.Errorf("got %q of %q, %t", v, person, ok)
	}
	if v, person, ok := s.ParseAsk("gsync", s.AskBy("gsync", wire.VerbSet, "vic")); !ok || v != wire.VerbSet || person != "vic" {
		t.Errorf("got %q of %q, %t", v, person, ok)
	}
	for _, subject := range []string{"", s.Control("gsync"), s.Ask("gsync", ""), s.AskAll("gsync"), s.Ask("other", "why"), s.Ask("gsync", "why.x"), s.Ask("gsync", "set.a.b"), s.Ask("gsync", "set.")} {
		if v, _, ok := s.ParseAsk("gsync", subject); ok {
			t.Errorf("ParseAsk(%q) = %q", subject, v)
		}
	}
}

func TestSubjectsNameTheirSender(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := wire.Subjects{Tenant: tokens().Draw(t, "tenant"), Group: tokens().Draw(t, "group")}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		member, synchronizer := tokens().Draw(t, "member"), tokens().Draw(t, "synchronizer")
		if got, ok := s.ParseState(s.State(member)); !ok || got != member {
			t.Fatalf("ParseState = %q, %v, want %q", got, ok, member)
		}
		if got, ok := s.ParseData(s.Data(member)); !ok || got != member {
			t.Fatalf("ParseData = %q, %v, want %q", got, ok, member)
		}
		for _, name := range []string{wire.MultiplexerName(member, "x7"), "p." + member} { // The second is of the release before.
			if got, ok := s.ParseState(s.State(name)); !ok || got != name {
				t.Fatalf("ParseState = %q, %v, want %q", got, ok, name)
			}
		}
		to, from, ok := s.ParseAck(s.Ack(synchronizer, member))
		if !ok || to != synchronizer || from != member {
			t.Fatalf("ParseAck = %q, %q, %v, want %q, %q", to, from, ok, synchronizer, member)
		}
	})
}

// TestParseStateDoesNotAllocate: it is done for every message.
func TestParseStateDoesNotAllocate(t *testing.T) {
	s := wire.Subjects{Tenant: "a-tenant-with-a-long-name", Group: "a-group-with-a-long-name-as-well"}
	subject := s.State("w1")
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := s.ParseState(subject); !ok {
			t.Fatal(subject)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestForeignSubjectsNameNobody(t *testing.T) {
	s := wire.Subjects{Tenant: "default", Group: "workers"}
	for _, subject := range []string{
		"", "pegasus.v1.default.workers.st.", "pegasus.v1.default.workers.st.*", "pegasus.v1.default.workers.st.a.b",
		"pegasus.v1.default.workers.st.p.a.b.c", "pegasus.v1.default.workers.st.p.a.", "pegasus.v1.default.workers.st.p..b", "pegasus.v1.default.workers.st.p.",
		"pegasus.v2.default.workers.st.a", "pegasus.v1.default.others.st.a", "pegasus.v1.default.workers.pr.a",
		"pegasus.v1.default.workers.ak.g", "pegasus.v1.default.workers.ak.g.a.b", "pegasus.v1.default.workers.ak..a",
	} {
		if member, ok := s.ParseState(subject); ok {
			t.Errorf("ParseState(%q) = %q", subject, member)
		}
		if member, ok := s.ParseData(subject); ok {
			t.Errorf("ParseData(%q) = %q", subject, member)
		}
		if _, member, ok := s.ParseAck(subject); ok {
			t.Errorf("ParseAck(%q) = %q", subject, member)
		}
	}
}

func TestCheckToken(t *testing.T) {
	for _, good := range []string{"a", "A-9_z", strings.Repeat("x", 64)} {
		if err := wire.CheckToken("member name", good); err != nil {
			t.Errorf("CheckToken(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", "a.b", "*", ">", "a b", "ä", "a\x00", strings.Repeat("x", 65)} {
		if wire.CheckToken("member name", bad) == nil {
			t.Errorf("CheckToken(%q) accepts it", bad)
		}
	}
	err := wire.Subjects{Tenant: "default", Group: "a.b"}.Check()
	if want := `group "a.b": use letters, digits, - and _, at most 64`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

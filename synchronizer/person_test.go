package synchronizer_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

const own = "pegasus.v1.default.g."

// TestAnswersGoToInboxes: the server does not check reply subjects, so a question could have the synchronizer
// publish where whoever asks may not. Such a question has no answer, and is counted and logged.
func TestAnswersGoToInboxes(t *testing.T) {
	var log logged
	server := serve(t, 0)
	s := start(t, server.URL(), limited, synchronizer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	stolen, err := nc.SubscribeSync(own + "sg.w2")
	if err != nil {
		t.Fatal(err)
	}
	asked := []string{"pegasus.v1.default.ctl", own + "ctl", own + "ctl.gsync", own + "ctl.gsync.status", own + "ctl.gsync.why", own + "ctl.gsync.set.vic", own + "pg.w1"}
	ping, err := wire.AppendPing(nil, &wire.Ping{Member: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range asked {
		if err := nc.PublishRequest(subject, own+"sg.w2", ping); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the refusals", func() bool { return s.Stats().Rejected >= uint64(len(asked)) })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := stolen.Pending(); n != 0 || err != nil {
		t.Errorf("%d answers went to the signals of w2, %v", n, err)
	}
	if want := "only a reply subject that begins with _INBOX. is answered"; !strings.Contains(log.String(), want) {
		t.Errorf("no %q in the log:\n%s", want, log.String())
	}
}

// TestChangesHaveAnAuthor: the subject names who sets, the journal has it, and it replays. The form of
// releases before says what to do.
func TestChangesHaveAnAuthor(t *testing.T) {
	var journal bytes.Buffer
	server := serve(t, 0)
	s := start(t, server.URL(), limited, synchronizer.Options{Journal: &journal})
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for subject, want := range map[string]string{
		"set.vic":  `"changes":["params limit: from 100 to 90"]`,
		"set":      `synchronizer \"gsync\": set: the subject does not name the caller, as with a command of an older release: use pegasus set of this release`,
		"reload":   `synchronizer \"gsync\": reload: the subject does not name the caller, as with a command of an older release: use pegasus reload of this release`,
		"reload.-": `its program reads no file again on request`,
	} {
		text := `{"values": {"limit": "90"}, "by": "somebody else"}`
		if strings.HasPrefix(subject, "reload") {
			text = ""
		}
		m, err := nc.Request(own+"ctl.gsync."+subject, []byte(text), patience)
		if err != nil || !strings.Contains(string(m.Data), want) {
			t.Errorf("%s: %v\n got %s\nwant %s", subject, err, m.Data, want)
		}
	}
	if _, err := s.Set(synchronizer.Setting{Values: map[string]string{"limit": "91"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(journal.String(), `"person":"vic"`); n != 1 || strings.Count(journal.String(), `"person"`) != n {
		t.Errorf("%d lines of vic in\n%s", n, journal.String())
	}
	if r, err := synchronizer.Replay(&journal, synchronizer.ReplayOptions{}); err != nil || r.FirstDifference > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReloadRequests: one with a text is refused, and of a flood ten a second are answered.
func TestReloadRequests(t *testing.T) {
	var reread atomic.Int32
	var log logged
	cfg, err := synchronizer.ParseConfig("limited", []byte(limited))
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, 0)
	start(t, server.URL(), limited, synchronizer.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Reread: func() (*synchronizer.Config, error) {
		reread.Add(1)
		return cfg, nil
	}})
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	request := func(text string) string {
		m, err := nc.Request(own+"ctl.gsync.reload.vic", []byte(text), patience)
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Data)
	}
	if got, want := request("now"), `synchronizer \"gsync\": reload: the request has a text of 3 bytes, and takes none: use pegasus reload of this release`; !strings.Contains(got, want) || reread.Load() > 0 {
		t.Errorf("got %s\nwant %s", got, want)
	}
	answered, began := 0, time.Now()
	for got := ""; !strings.Contains(got, `synchronizer \"gsync\": reload: more than 10 were asked for within a second: ask again`); answered++ {
		if got = request(""); answered > 1000 {
			t.Fatal(got)
		}
	}
	// At most ten for each second that has begun.
	if most := 10 * (2 + int32(time.Since(began)/time.Second)); reread.Load() > most || answered < 11 {
		t.Errorf("the file was read %d times for %d requests", reread.Load(), answered)
	}
	if lines := strings.Count(log.String(), "msg=reloaded"); lines != int(reread.Load()) {
		t.Errorf("%d lines of %d reloads", lines, reread.Load())
	}
}

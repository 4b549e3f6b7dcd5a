package synchronizer_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestErrNotConnected: the server turns the program away, or the program has closed the
// connection. That none listens is TestStartWithoutServer.
func TestErrNotConnected(t *testing.T) {
	server, err := embedded.Start(embedded.Options{Username: "team", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	other := serve(t, 0)
	nc, err := nats.Connect(other.URL(), testnats.Options(t, other.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	const want = `synchronizer "gsync": there is no connection to the server: bus: `
	for text, c := range map[string]struct {
		url string
		opt synchronizer.Options
	}{
		"Authorization Violation":  {url: "nats://team:wrong@" + strings.TrimPrefix(strings.TrimPrefix(server.URL(), "nats://"), "team:secret@")},
		"the connection is closed": {opt: synchronizer.Options{Conn: nc}},
	} {
		_, err := synchronizer.Start(t.Context(), c.url, cfg, c.opt)
		if !errors.Is(err, synchronizer.ErrNotConnected) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("got  %v\nwant %s...%s", err, want, text)
		}
	}
}

// TestOptionsError: all faults are reported at once.
func TestOptionsError(t *testing.T) {
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	_, err = synchronizer.Start(t.Context(), "nats://127.0.0.1:1", cfg, synchronizer.Options{
		Tenant: "a.b", Journal: &bytes.Buffer{}, Resume: (*os.File)(nil), JournalLimit: 1, Drift: -1,
		Predicates: []synchronizer.Predicate{{Name: "p"}},
	})
	const want = `synchronizer "test.yaml": Options.Predicates: predicates.p: the predicate has no Judge: give a function, or write the predicate in the configuration
synchronizer: tenant "a.b": use letters, digits, - and _, at most 64
synchronizer: a resumed program extends the journal of Options.Resume: leave Options.Journal nil
synchronizer: a journal of at most 1 bytes is too short: use at least 4194304
synchronizer: Options.Drift is -1: it is in parts per million, from 0 to 100000`
	if faults, ok := errors.AsType[*synchronizer.OptionsError](err); !ok || len(faults.Faults) != 5 || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestErrEnded: what the methods of a synchronizer that was closed answer.
func TestErrEnded(t *testing.T) {
	s := start(t, serve(t, 0).URL(), pair, synchronizer.Options{})
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	err = s.Reload(cfg)
	if want := `synchronizer "gsync": reload: the synchronizer has ended`; !errors.Is(err, synchronizer.ErrEnded) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := s.Why(t.Context(), "all-idle"); !errors.Is(err, synchronizer.ErrEnded) || err.Error() != "the synchronizer has ended" {
		t.Errorf("got %v", err)
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
)

func TestOnlyRun(t *testing.T) {
	a, b := runInfo{ID: "tsp-a", Instance: "kroA100"}, runInfo{ID: "tsp-b", Instance: "st70"}
	if id, err := onlyRun("nats://h", []runInfo{a}); id != "tsp-a" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	for want, runs := range map[string][]runInfo{
		"no run on the NATS server at nats://h: start one with -nats nats://h, without -worker":            nil,
		"2 runs on the NATS server at nats://h: choose one with -run tsp-a (kroA100) or -run tsp-b (st70)": {a, b},
	} {
		if _, err := onlyRun("nats://h", runs); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestListRuns(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	nc, err := dialData(t.Context(), srv.URL(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, id := range []string{"tsp-a", "tsp-b"} {
		_, err := nc.Subscribe(runsSubject, func(m *nats.Msg) { _ = m.Respond(marshal(runInfo{ID: id})) })
		if err != nil {
			t.Fatal(err)
		}
	}
	runs, err := listRuns(t.Context(), nc)
	if err != nil || len(runs) != 2 || runs[0].ID == runs[1].ID {
		t.Errorf("%v, %v, want both runs", runs, err)
	}
}

// TestNoServer: the error tells the address, without the password.
func TestNoServer(t *testing.T) {
	const address = "nats://me:secret@127.0.0.1:1"
	_, err := dialData(t.Context(), address, "test")
	want := "the NATS server at nats://me:xxxxx@127.0.0.1:1 does not answer: start one, or correct -nats: "
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestSecuredServer: the data connection uses the environment, as the agent does. A server that refuses it
// is told at once, with the credential.
func TestSecuredServer(t *testing.T) {
	for _, kind := range testnats.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := testnats.Start(t, kind)
			server.Setenv(t)
			nc, err := dialData(t.Context(), server.URL, "test")
			if err != nil {
				t.Fatal(err)
			}
			nc.Close()
		})
	}
	server := testnats.Start(t, "password")
	t.Setenv("NATS_USER", "jo")
	t.Setenv("NATS_PASSWORD", "wrong")
	_, err := dialData(t.Context(), server.URL, "test")
	want := "the NATS server at " + server.URL + " refuses the data connection: nats: Authorization Violation; the server refused "
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "NATS_USER") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v, want %s", err, want)
	}
}

package main

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/testnats"
)

// TestCommandsOnSecuredServers has each command that connects enter a server of each kind, and
// fail without credentials.
func TestCommandsOnSecuredServers(t *testing.T) {
	for _, kind := range testnats.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := testnats.Start(t, kind)
			at := append([]string{"--nats", server.URL}, server.Flags...)
			with := func(args ...string) []string { return append(args, at...) }
			code, _, stderr := execute(t, "status", "--nats", server.URL)
			if want := "none was given"; code != exitFailure || !strings.Contains(stderr, want) && !strings.Contains(stderr, "--tlsca or NATS_CA") {
				t.Errorf("status without credentials: exit %d, %s", code, stderr)
			}
			http := freeAddress(t)
			run := launch(t, with("run", goodConfig, "--http", http)...)
			run.line("gsync awaits")
			if code, stdout, stderr := execute(t, "health", "--live", "--http", http); code != exitOK || !strings.Contains(stdout, "[+]") {
				t.Errorf("health: exit %d, %s%s", code, stdout, stderr)
			}
			code, _, stderr = execute(t, with("work", "status")...)
			if want := `group "workers" has no members`; code != exitFailure || !strings.Contains(stderr, want) { // Which the synchronizer has said.
				t.Errorf("work status: exit %d, %s", code, stderr)
			}
			code, _, stderr = execute(t, with("work", "remove", "none")...)
			if want := "the NATS server has no JetStream"; code != exitFailure || !strings.Contains(stderr, want) { // It was asked.
				t.Errorf("work remove: exit %d, %s", code, stderr)
			}
			for _, args := range [][]string{with("status"), with("why", "all-idle"), with("set"), with("watch", "--lines"), with("ui"), with("reload")} {
				p := launch(t, args...)
				p.line("gsync")
				p.stop()
			}
			if kind == "creds over tls" || kind == "client certificate" { // Which takes seconds.
				code, _, stderr := execute(t, with("bench", "load", "--members", "2", "--rate", "100", "--time", "100ms")...)
				if code != exitOK || stderr != "" {
					t.Errorf("bench load: exit %d, %s", code, stderr)
				}
			}
			server.Setenv(t)
			code, stdout, stderr := execute(t, "status", "--nats", server.URL)
			if code != exitOK || !strings.Contains(stdout, "gsync") {
				t.Errorf("status by the environment: exit %d, %s", code, stderr)
			}
			run.stop()
			if text := strings.Join(run.seen, "\n"); strings.Contains(text, testnats.Secret) {
				t.Errorf("the run shows a secret:\n%s", text)
			}
			program := launch(t, "program", "run", "--nats", server.URL, securedProgram(t))
			program.line("awaits")
			node := launch(t, with("node", "--name", "n1", "--block", "b=true")...)
			node.line("node n1")
			if code, stderr := program.exit(); code != exitOK || stderr != "" {
				t.Errorf("program run: exit %d, %s", code, stderr)
			}
			node.cancel()
			if code, stderr := node.exit(); code != exitOK {
				t.Errorf("node: exit %d, %s", code, stderr)
			}
		})
	}
}

// TestConnectingCommands are those that the test above runs.
func TestConnectingCommands(t *testing.T) {
	var got []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("creds") != nil {
			got = append(got, strings.TrimPrefix(cmd.CommandPath(), "pegasus "))
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	want := "bench load, node, program run, program show, reload, run, set, status, ui, watch, why, work remove, work status"
	if slices.Sort(got); strings.Join(got, ", ") != want {
		t.Errorf("these connect: %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// freeAddress is an address on which no server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// securedProgram is a program with a single block.
func securedProgram(t *testing.T) string {
	t.Helper()
	return writeFile(t, t.TempDir(), "program.yaml", "program: {name: one, blocks: {b: {}}, body: b}\n")
}

// TestUserInAURL: the list of processes shows it.
func TestUserInAURL(t *testing.T) {
	server := testnats.Start(t, "token")
	code, _, stderr := execute(t, "status", "--nats", strings.Replace(server.URL, "//", "//n0t-it@", 1))
	if code != exitFailure || !strings.HasPrefix(stderr, "pegasus: the list of processes shows the user, password or token of --nats: use ") ||
		!strings.HasSuffix(stderr, "; the server refused the user or token in the URL\n") || strings.Contains(stderr, "n0t-it") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	server = testnats.Start(t, "password")
	right := strings.Replace(server.URL, "//", "//"+strings.ReplaceAll(url.UserPassword("jo", testnats.Secret).String(), ",", "%2C")+"@", 1)
	run := launch(t, "run", goodConfig, "--nats", right)
	run.line("gsync awaits")
	code, stdout, stderr := execute(t, "status", "--nats", right)
	if code != exitOK || !strings.Contains(stdout, "gsync") || !strings.HasPrefix(stderr, "pegasus: the list of processes shows the user, password or token of --nats: use ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("the right one: exit %d, %s%s", code, stdout, stderr)
	}
	run.cancel()
	if code, stderr := run.exit(); code != exitOK || !strings.Contains(stderr, "the list of processes shows") {
		t.Errorf("the run: exit %d, %s", code, stderr)
	}
}

// TestNobodyAtTheServerOfTheEnvironment: what to check is the variable.
func TestNobodyAtTheServerOfTheEnvironment(t *testing.T) {
	server := testnats.Start(t, "password")
	server.Setenv(t)
	t.Setenv("NATS_URL", server.URL)
	code, _, stderr := execute(t, "status")
	if want := "runs on the NATS server at " + server.URL + ": check NATS_URL and --tenant\n"; code != exitFailure || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestOwnServerIgnoresTheEnvironment: what it says is for servers elsewhere.
func TestOwnServerIgnoresTheEnvironment(t *testing.T) {
	t.Setenv("NATS_TOKEN", "n0t-it")
	t.Setenv("NATS_CA", "/no/such/file")
	code, _, stderr := execute(t, "run", goodConfig, "--nats", "nats://127.0.0.1:1")
	if code != exitFailure || !strings.Contains(stderr, "the authority /no/such/file of NATS_CA: the file cannot be read: ") {
		t.Errorf("a server elsewhere: exit %d, %s", code, stderr)
	}
	run := launch(t, "run", goodConfig)
	run.line("gsync awaits")
	if code, stdout, stderr := execute(t, "status"); code != exitOK || !strings.Contains(stdout, "gsync") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	run.stop()
	for _, flags := range [][]string{{"--creds", "a"}, {"--listen", "127.0.0.1:0", "--context", "a.json"}} {
		code, _, stderr := execute(t, append([]string{"run", goodConfig}, flags...)...)
		if code == exitOK {
			t.Errorf("%v: exit %d, %s", flags, code, stderr)
		}
	}
}

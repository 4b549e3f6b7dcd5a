//go:build linux

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/connect"
)

const keysConfig = `params: {limit: {type: int, default: 1, min: 0, max: 9}}
synchronizers:
  gsync:
    members: {group: workers, min: 1}
    silence: {after: 2s}
    state: {busy: int}
    predicates:
      high: {when: 'any(members, .busy > params.limit)', signal: {kind: cancel, region: r, to: all}}
`

// hangup has this process read its files again.
func hangup(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// copied is a directory of another host with copies of files.
func copied(t *testing.T, dir string, names ...string) string {
	t.Helper()
	other := t.TempDir()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, other, name, string(text))
	}
	return other
}

// joined joins a member with its copied files.
func joined(t *testing.T, url, host, creds, name string) (*agent.Member, error) {
	t.Helper()
	server, err := connect.Settings{URL: url, Creds: filepath.Join(host, creds), CA: caOf(host)}.Resolve(connect.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	options, err := server.Options()
	if err != nil {
		t.Fatal(err)
	}
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: name, JoinTimeout: patience}, agent.WithNATS(options...))
	if err == nil {
		t.Cleanup(func() { _ = m.Close() })
	}
	return m, err
}

func caOf(dir string) string {
	if file := filepath.Join(dir, "ca.pem"); fileExists(file) {
		return file
	}
	return ""
}

type busy struct {
	Busy int `scgs:"busy"`
}

// TestKeysTwoHosts: a run has only server.conf, its certificate and its credentials. Members and people of another address
// have two files each. Errors name the user and the role.
func TestKeysTwoHosts(t *testing.T) {
	dir := keysDir(t, "--group workers --tls --host 127.0.0.2", "synchronizer gsync", "member w1", "member w2", "viewer vic", "operator op")
	host := copied(t, dir, "server.conf", "server.pem", "server-key.pem", "ca.pem", "gsync.creds")
	_, port, _ := net.SplitHostPort(freeAddress(t))
	file := writeFile(t, t.TempDir(), "pegasus.yaml", keysConfig)
	run := launch(t, "run", file, "--keys", host, "--listen", "0.0.0.0:"+port, "--state", "none")
	run.line("gsync")
	url := "nats://127.0.0.2:" + port
	other := copied(t, dir, "ca.pem", "w1.creds", "vic.creds", "op.creds")
	m, err := joined(t, url, other, "w1.creds", "w1")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(busy{1}); err != nil {
		t.Fatal(err)
	}
	run.line("w1")
	as := func(user string, args ...string) (int, string, string) {
		return execute(t, append(args, "--nats", url, "--creds", filepath.Join(other, user+".creds"), "--tlsca", filepath.Join(other, "ca.pem"))...)
	}
	if code, stdout, stderr := as("vic", "status"); code != exitOK || !strings.Contains(stdout, "w1") {
		t.Errorf("status: exit %d, %s%s", code, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"pegasus: user vic may not set parameters of gsync: the credential needs the role operator\n":           {"set", "limit=5"},
		"pegasus: user vic may not reload the configuration of gsync: the credential needs the role operator\n": {"reload"},
	} {
		if code, _, stderr := as("vic", args...); code != exitFailure || stderr != want {
			t.Errorf("%v: exit %d, %swant %s", args, code, stderr, want)
		}
	}
	if code, stdout, stderr := as("op", "set", "limit=5"); code != exitOK || !strings.Contains(stdout, "limit") {
		t.Errorf("set: exit %d, %s%s", code, stdout, stderr)
	}
	writeFile(t, filepath.Dir(file), "pegasus.yaml", "synchronizers: 5")
	refusal := `pegasus: synchronizer "gsync": reload: refused, the old configuration is kept: the keys of ` + host + ` were read again, with their revocations; the configuration was not: ` + file + ":1:"
	if code, _, stderr := as("op", "reload"); code != exitFailure || !strings.HasPrefix(stderr, refusal) {
		t.Errorf("reload of a broken file: exit %d, %swant %s", code, stderr, refusal)
	}
	writeFile(t, filepath.Dir(file), "pegasus.yaml", keysConfig)
	t.Setenv("NATS_CREDS", filepath.Join(other, "vic.creds"))
	t.Setenv("NATS_CA", filepath.Join(other, "ca.pem"))
	if code, stdout, stderr := execute(t, "status"); code != exitOK || !strings.Contains(stdout, "w1") { // Of the local run.
		t.Errorf("status by the environment: exit %d, %s%s", code, stdout, stderr)
	}
	want := "pegasus: user w1 may not ask which synchronizers run in tenant \"default\": the credential needs the role viewer\n"
	if code, _, stderr := as("w1", "status"); code != exitFailure || stderr != want {
		t.Errorf("status of a member: exit %d, %swant %s", code, stderr, want)
	}
	subject := func(of string) string { return `"pegasus.v1.default.` + of + `"` }
	want = `pegasus: synchronizer "gsync": the server does not permit it to this user: subscribe to ` + subject("workers.st.>") + `, subscribe to ` + subject("workers.ak.gsync.*")
	code, _, stderr := as("w1", "run", file, "--state", "none")
	if code != exitFailure || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "publish to "+subject("workers.sg.permission-check")) ||
		!strings.HasSuffix(stderr, ": give it the credentials of a synchronizer, or permit what pegasus keys permissions synchronizer gsync --tenant default --group workers prints\n") {
		t.Errorf("run as a member: exit %d, %swant %s", code, stderr, want)
	}
	context := writeFile(t, other, "c.json", `{"inbox_prefix": "_INBOX.ours"}`)
	want = "pegasus: user vic may not ask which synchronizers run in tenant \"default\": the server does not let it hear answers below _INBOX.ours: set inbox_prefix in the context to _INBOX.NAME with the name of the credential, or leave it out\n"
	if code, _, stderr := as("vic", "status", "--context", context); code != exitFailure || stderr != want {
		t.Errorf("status with another inbox: exit %d, %swant %s", code, stderr, want)
	}
	t.Setenv("NATS_CREDS", filepath.Join(other, "w1.creds"))
	_, err = agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: "w2", JoinTimeout: time.Hour}, agent.OwnConn()) // It does not wait.
	if !errors.Is(err, agent.ErrNoSynchronizer) || !strings.HasSuffix(err.Error(), `; give the credentials of member "w2" of this group, and not the credentials file `+other+"/w1.creds of NATS_CREDS") {
		t.Errorf("with the key of another member: %v", err)
	}
	t.Setenv("NATS_CREDS", "")
	if code, _, stderr := execute(t, "status", "--nats", url); code != exitFailure || !strings.Contains(stderr, "none was given, and the key file ") {
		t.Errorf("without credentials: exit %d, %s", code, stderr)
	}
	run.stop()
}

// TestKeysReload: SIGHUP reads the directory again: it cuts a revoked member off, and a renewed one stays. A broken directory
// changes nothing.
func TestKeysReload(t *testing.T) {
	dir := keysDir(t, "--group workers", "synchronizer gsync", "member w1 --expires 3s", "member w2", "viewer vic")
	file := writeFile(t, t.TempDir(), "pegasus.yaml", keysConfig)
	run := launch(t, "run", file, "--keys", dir, "--state", "none")
	url := run.url()
	first, err := joined(t, url, dir, "w1.creds", "w1")
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(copied(t, dir, "w1.creds"), "w1.creds")
	expired := make(chan struct{})
	nc, err := nats.Connect(url, nats.UserCredentials(old), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ClosedHandler(func(*nats.Conn) { close(expired) }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	must(t, "keys add "+dir+" member w1") // The old key expires soon, which ends its connection.
	second, err := joined(t, url, dir, "w2.creds", "w2")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Set(busy{0}), second.Set(busy{0})); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "server.conf")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "server.conf", "operator: x")
	hangup(t)
	run.line("the old keys remain valid: keys: file " + conf + ": it lacks an operator, a system account or an account: write it again with pegasus keys")
	run.line("gsync: reloaded " + file)
	writeFile(t, dir, "server.conf", string(text))
	must(t, "keys revoke "+dir+" w2")
	hangup(t)
	run.line("the server has read " + dir + " again")
	run.line("lost", "w2")
	select {
	case <-expired:
	case <-time.After(patience):
		t.Fatal("the old key does not expire")
	}
	if err := first.Set(busy{7}); err != nil {
		t.Fatal(err)
	}
	run.line("high")
	if text := strings.Join(run.seen, "\n"); strings.Contains(text, "lost member w1") || strings.Count(text, "epoch ") > 3 {
		t.Errorf("the renewed member was lost:\n%s", text)
	}
	if _, err := nats.Connect(url); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without credentials: %v", err)
	}
	run.stop()
}

// TestKeysOfARunRefused: each fault says what to do.
func TestKeysOfARunRefused(t *testing.T) {
	dir := keysDir(t, "--group workers")
	secured := keysDir(t, "--group workers --tls", "synchronizer gsync")
	many := keysDir(t, "--group workers", "synchronizer gsync")
	one := writeFile(t, t.TempDir(), "pegasus.yaml", keysConfig)
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"--nats nats://127.0.0.1:1 --keys " + dir: {exitUsage, "--nats is a server elsewhere and --keys is for one inside this process: use one of them; --creds says who connects to a server elsewhere"},
		"--open --keys " + dir:                    {exitUsage, "--keys says which users the server inside this process admits: leave out --open, --user and --password-file"},
		"--keys " + dir:                           {exitFailure, "--keys " + dir + ": credentials of the synchronizer: write them with pegasus keys add " + dir + " synchronizer gsync: stat " + dir + "/gsync.creds: no such file or directory"},
		"--listen 0.0.0.0:0":                      {exitUsage, "--listen 0.0.0.0:0: other machines can reach it, so it needs --keys DIR, or --user NAME and --password-file FILE; or listen on 127.0.0.1"},
		"--listen 127.0.0.9:0 --keys " + secured:  {exitFailure, "embedded: keys: certificate " + secured + "/server.pem: clients refuse it at 127.0.0.9: make the keys with pegasus keys init --tls --host 127.0.0.9: x509: certificate is valid for 127.0.0.1, ::1, not 127.0.0.9"},
	} {
		code, stdout, stderr := execute(t, append([]string{"run", one}, strings.Fields(args)...)...)
		if first, _, _ := strings.Cut(stderr, "\n"); code != want.code || stdout != "" || first != "pegasus: "+want.text {
			t.Errorf("%s: exit %d, %s%s\nwant exit %d, %s", args, code, stdout, stderr, want.code, want.text)
		}
	}
	text := "--keys " + many + " has the users of a single group, and 2 synchronizers are to run: choose one with --name"
	if code, _, stderr := execute(t, "run", levelsConfig, "--keys", many); code != exitFailure || stderr != "pegasus: "+text+"\n" {
		t.Errorf("exit %d, %swant %s", code, stderr, text)
	}
}

// TestSecurityPage executes the commands of docs/security.md, in one directory and on two addresses of this host.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(freeAddress(t))
	text := strings.NewReplacer("nats.example", "127.0.0.2", "4222", port).Replace(string(page))
	t.Chdir(t.TempDir())
	writeFile(t, ".", "pegasus.yaml", keysConfig)
	var run *process
	joins := false
	blocks := strings.Split(text, "```sh\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			switch args := strings.Fields(line); args[0] {
			case "mkdir":
				if err := os.MkdirAll(args[2], 0o700); err != nil {
					t.Fatal(err)
				}
			case "cp":
				for _, from := range args[1 : len(args)-1] {
					text, err := os.ReadFile(from)
					if err != nil {
						t.Fatal(err)
					}
					writeFile(t, args[len(args)-1], filepath.Base(from), string(text))
				}
			case "export":
				for _, a := range args[1:] {
					name, value, _ := strings.Cut(a, "=")
					t.Setenv(name, value)
				}
				m, err := agent.Join(t.Context(), "", agent.Config{Group: "workers", Name: "w1", JoinTimeout: patience})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close() // Its connection was cut.
				if err := m.Set(busy{0}); err != nil {
					t.Fatal(err)
				}
				run.line("epoch 1", "w1")
				joins = true
			case "pegasus":
				if args[1] == "run" {
					run = launch(t, append(args[1:], "--state", "none")...)
					run.line("gsync")
					continue
				}
				out := must(t, strings.Join(args[1:], " "))
				if args[1] == "status" && !strings.Contains(out, "w1") {
					t.Errorf("%s: %s", line, out)
				}
			default:
				t.Fatalf("the test does not know the command %s", line)
			}
		}
	}
	run.line("the server has read server again")
	run.line("lost", "w1")
	run.stop()
	if !joins || len(blocks) != 6 {
		t.Errorf("%d blocks of commands, and joined: %v", len(blocks), joins)
	}
}

// TestKeysOfAProgram: its nodes have users of the role node.
func TestKeysOfAProgram(t *testing.T) {
	dir := keysDir(t, "--group processors --tls", "synchronizer processors", "node n1 --processors 1", "node n2 --processors 1", "viewer vic")
	run := launch(t, "program", "run", securedProgram(t), "--keys", dir, "--state", "none")
	url := run.url()
	as := func(user string, args ...string) []string {
		return append(args, "--nats", url, "--tlsca", filepath.Join(dir, "ca.pem"), "--creds", filepath.Join(dir, user+".creds"))
	}
	code, _, stderr := execute(t, as("n2", "node", "--name", "n1", "--processors", "1", "--block", "b=true")...)
	want := `"pegasus.v1.default.processors.sg.n1"; give the credentials of node "n1" of this group` + "\n"
	if code != exitFailure || !strings.HasSuffix(stderr, want) {
		t.Errorf("with the key of another node: exit %d, %swant %s", code, stderr, want)
	}
	node := launch(t, as("n1", "node", "--name", "n1", "--processors", "1", "--block", "b=true")...)
	node.line("node n1")
	if code, stderr := run.exit(); code != exitOK || stderr != "" {
		t.Errorf("program run: exit %d, %s", code, stderr)
	}
	node.cancel()
	if code, stderr := node.exit(); code != exitOK {
		t.Errorf("node: exit %d, %s", code, stderr)
	}
}

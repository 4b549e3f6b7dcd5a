//go:build unix

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/synchronizer"
)

// recorded is a log that is read while it is written.
type recorded struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *recorded) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *recorded) has(text string) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return strings.Contains(r.text.String(), text)
	}
}

// keyed are the options of a user of a directory.
func keyed(t *testing.T, dir, url, user string) []nats.Option {
	t.Helper()
	s := connect.Settings{URL: url, Creds: filepath.Join(dir, user+".creds")}
	if _, err := os.Stat(filepath.Join(dir, "ca.pem")); err == nil {
		s.CA = filepath.Join(dir, "ca.pem")
	}
	server, err := s.Resolve(connect.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	options, err := server.Options()
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// joined is a member with the credentials of a user.
func joined(t *testing.T, dir, url, user, member string) (*agent.Member, *recorded) {
	t.Helper()
	log := &recorded{}
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: member, Logger: slog.New(slog.NewTextHandler(log, nil))}, agent.WithNATS(keyed(t, dir, url, user)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if err := m.Set(state{"search", 0.25}); err != nil {
		t.Fatal(err)
	}
	return m, log
}

func sendHangup(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// TestRunWithKeys: a run at another address over TLS admits the users of a directory, each for its role. A file that
// is renewed brings its member back in the same epoch when the old key expires. A revoked user is cut off, and a broken
// directory changes nothing.
func TestRunWithKeys(t *testing.T) {
	own(t)
	dir := keysOf(t, "--tls --host 127.0.0.2", "synchronizer gsync", "member w1 --expires 4s", "member w2", "viewer vic", "operator op")
	p := launch(t, "run", goodConfig, "--keys", dir, "--listen", "127.0.0.2:0")
	url := p.line("nats://127.0.0.2:")
	p.line("gsync: connected with " + filepath.Join(dir, "gsync.creds"))
	p.line("NATS_CREDS=FILE, of pegasus keys add "+dir, "NATS_CA="+filepath.Join(dir, "ca.pem"))
	p.line(`user "w1": its credential expires at `)

	m1, log1 := joined(t, dir, url, "w1", "w1")
	_, log2 := joined(t, dir, url, "w2", "w2")
	succeedLike(t, "keys add "+dir+" member w1 --expires 1h")
	as := func(user string) string {
		return " --nats " + url + " --creds " + filepath.Join(dir, user+".creds") + " --tlsca " + filepath.Join(dir, "ca.pem")
	}
	until(t, "status"+as("vic"), "gsync: epoch 1;", "w1", "w2")
	testwait.Until(t, "the end of the first key of w1", log1.has("the server is back"))
	if err := m1.Set(state{"idle", 0.25}); err != nil {
		t.Fatal(err)
	}
	out := until(t, "status"+as("op"), "gsync: epoch 1;", "phase=idle", "phase=search")
	if strings.Contains(out, "ready") || strings.Contains(out, " lost") || log2.has("the server is away")() {
		t.Errorf("there is a gap:\n%s", out)
	}

	succeedLike(t, "keys revoke "+dir+" w2")
	list := filepath.Join(dir, "users.json")
	good, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	broken := func(text []byte) {
		if err := os.WriteFile(list, text, 0o600); err != nil {
			t.Fatal(err)
		}
		sendHangup(t)
	}
	broken([]byte("{"))
	p.line("keys: file "+list+": restore it from a copy: ", "; the server keeps the keys it has")
	until(t, "status"+as("op"), "gsync: epoch 1;")
	if log2.has("the server is away")() {
		t.Error("a broken directory has cut a member off")
	}
	broken(good)
	p.line("keys: " + dir + " was read again")
	testwait.Until(t, "the end of w2", log2.has("the server is away"))
	until(t, "status"+as("op"), "gsync: epoch 1;", "w1")
	if text := strings.Join(p.seen, "\n"); strings.Contains(text, "lost member w1") || strings.Contains(text, "epoch 2") {
		t.Errorf("the run tells:\n%s", text)
	}
	for _, file := range []string{"server.pem", "role-member.nk"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, file, "")
		sendHangup(t)
		p.line("keys: ", file, "; the server keeps the keys it has")
		writeFile(t, dir, file, string(text))
	}
	if code, _, stderr := execute(t, strings.Fields("status --nats "+url+" --creds "+filepath.Join(dir, "op.creds"))...); code != exitFailure || !strings.Contains(stderr, "give the certificate of the authority with --tlsca or NATS_CA") {
		t.Errorf("without the authority: exit %d, %s", code, stderr)
	}
	if code, _, stderr := execute(t, strings.Fields("status --nats "+url+" --tlsca "+filepath.Join(dir, "ca.pem"))...); code != exitFailure || !strings.Contains(stderr, "none was given") {
		t.Errorf("without a credential: exit %d, %s", code, stderr)
	}
	other := keysOf(t, "--tls --host 127.0.0.2")
	for _, file := range []string{"server.pem", "server-key.pem"} {
		text, err := os.ReadFile(filepath.Join(other, file))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, file, string(text))
	}
	sendHangup(t)
	p.line("keys: " + dir + " was read again")
	until(t, "status --nats "+url+" --creds "+filepath.Join(dir, "op.creds")+" --tlsca "+filepath.Join(other, "ca.pem"), "gsync: epoch 1;")
	p.stop()
}

// TestProgramRunWithKeys: a node with its credential carries out a program.
func TestProgramRunWithKeys(t *testing.T) {
	own(t)
	dir := filepath.Join(t.TempDir(), "keys")
	succeedLike(t, "keys init "+dir+" --group processors")
	succeedLike(t, "keys add "+dir+" node n1 --processors 2")
	code, _, stderr := execute(t, "program", "run", securedProgram(t), "--keys", dir)
	_, rest, ok := strings.Cut(stderr, "it has no credential for the synchronizer ")
	if code != exitFailure || !ok {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	name, _, _ := strings.Cut(rest, ":")
	succeedLike(t, "keys add "+dir+" synchronizer "+name)
	program := launch(t, "program", "run", securedProgram(t), "--keys", dir)
	url := program.url()
	program.line(name + ": connected with " + filepath.Join(dir, name+".creds"))
	node := launch(t, "node", "--nats", url, "--creds", filepath.Join(dir, "n1.creds"), "--name", "n1", "--processors", "2", "--block", "b=true")
	node.line("node n1")
	if code, stderr := program.exit(); code != exitOK || stderr != "" {
		t.Errorf("program run: exit %d, %s", code, stderr)
	}
	node.cancel()
	if code, stderr := node.exit(); code != exitOK {
		t.Errorf("node: exit %d, %s", code, stderr)
	}
}

// TestRunWithKeysAndJetStream: a member with a stream may make it on the server inside the process.
func TestRunWithKeysAndJetStream(t *testing.T) {
	own(t)
	dir := keysOf(t, "", "synchronizer gsync", "member w1 --stream s", "member w2")
	p := launch(t, "run", goodConfig, "--keys", dir, "--jetstream", t.TempDir())
	url := p.url()
	p.line("gsync: connected with ")
	for user, want := range map[string]string{"w1": "", "w2": "permissions violation"} {
		nc, err := nats.Connect(url, append(keyed(t, dir, url, user), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		err = nc.Publish("$JS.API.STREAM.INFO.s", nil)
		if err == nil {
			err = nc.Flush()
		}
		if last := nc.LastError(); err != nil || (want == "") != (last == nil) || last != nil && !strings.Contains(strings.ToLower(last.Error()), want) {
			t.Errorf("%s: %v, %v", user, err, last)
		}
		if want == "" {
			if answer, err := nc.Request("$JS.API.STREAM.CREATE.s", []byte(`{"name":"s","subjects":["s.>"]}`), patience); err != nil || !strings.Contains(string(answer.Data), `"did_create":true`) {
				t.Errorf("%s: %v", user, err)
			}
		}
	}
	p.stop()
}

// succeedLike runs a command whose output does not matter.
func succeedLike(t *testing.T, args string) {
	t.Helper()
	if code, stdout, stderr := execute(t, strings.Fields(args)...); code != exitOK || stderr != "" {
		t.Errorf("pegasus %s: exit %d, %s%s", args, code, stderr, stdout)
	}
}

// TestRunRefusesKeys that are not for it.
func TestRunRefusesKeys(t *testing.T) {
	own(t)
	dir := keysOf(t, "", "viewer gsync")
	other := filepath.Join(t.TempDir(), "other")
	succeedLike(t, "keys init "+other+" --group others --tenant blue")
	empty := keysOf(t, "")
	for args, want := range map[string]string{
		"--keys " + empty:                    "keys: directory " + empty + ": it has no credential for the synchronizer gsync: run pegasus keys add " + empty + " synchronizer gsync",
		"--keys " + dir:                      `keys: user "gsync" has the role viewer, and a synchronizer is called so: give one of them another name`,
		"--keys " + other:                    "--keys " + other + " is for tenant blue, and this run has tenant default: give --tenant blue",
		"--keys " + other + " --tenant blue": "--keys " + other + " is for group others, and synchronizer gsync has group workers: choose another with --name, or use a server elsewhere",
		"--keys " + dir + " --creds a":       "the server inside this process takes --user and --password-file alone: give the other credentials together with --nats",
	} {
		if code, stdout, stderr := execute(t, append([]string{"run", goodConfig}, strings.Fields(args)...)...); code == exitOK || stdout != "" || !strings.HasPrefix(stderr, "pegasus: "+want) {
			t.Errorf("pegasus run %s: exit %d, %s%s\nwant %s", args, code, stdout, stderr, want)
		}
	}
}

// TestDeniedUsers: each user reads at once which role it needs, and which credential it has used.
func TestDeniedUsers(t *testing.T) {
	own(t)
	dir := keysOf(t, "", "synchronizer gsync", "member w1", "viewer vic", "operator op")
	p := launch(t, "run", goodConfig, "--keys", dir)
	url := p.url()
	p.line("gsync: connected with ")
	file := func(user string) string { return filepath.Join(dir, user+".creds") }
	context := writeFile(t, dir, "context.json", `{"url": "`+url+`", "creds": "`+file("vic")+`", "inbox_prefix": "_INBOX.other"}`)
	for args, want := range map[string]string{
		"set limit=1 --nats " + url + " --creds " + file("vic"): "user vic may not set parameters of gsync: it needs the role operator; the user is that of the credentials file " + file("vic") + " of --creds",
		"reload --nats " + url + " --creds " + file("vic"):      "user vic may not reload the configuration of gsync: it needs the role operator; the user is that of the credentials file " + file("vic") + " of --creds",
		"status --nats " + url + " --creds " + file("w1"):       "user w1 may not ask which synchronizers run: it needs the role viewer; the user is that of the credentials file " + file("w1") + " of --creds",
		"status --context " + context:                           "user vic may not receive answers on _INBOX.other: take inbox_prefix out of the context, or permit the user to subscribe below that prefix; the user is that of the credentials file " + file("vic") + " of context " + context + " of --context",
		"set limit=1 --nats " + url + " --creds " + file("op"):  `synchronizer "gsync": set: the configuration declares no parameter "limit"`,
	} {
		if code, stdout, stderr := execute(t, strings.Fields(args)...); code != exitFailure || stdout != "" || !strings.HasPrefix(stderr, "pegasus: "+want) {
			t.Errorf("pegasus %s: exit %d, %s%s\nwant %s", args, code, stdout, stderr, want)
		}
	}
	_, err := agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: "w2", JoinTimeout: patience}, agent.WithNATS(keyed(t, dir, url, "w1")...))
	if err == nil || !strings.Contains(err.Error(), `and the server does not permit a subject that this takes: `) || !strings.Contains(err.Error(), `workers.st.w2"`) && !strings.Contains(err.Error(), `workers.pr.w2"`) {
		t.Errorf("as another member: %v", err)
	}
	for args, want := range map[string]string{
		"run " + goodConfig + " --nats " + url + " --creds " + file("vic"): `synchronizer "gsync": the server does not permit the subjects of this synchronizer: use its own credential: `,
		"node --group workers --name n1 --block b=true --nats " + url + " --creds " + file("w1"): `agent: node "n1": agent: join group "workers" as "n1-0": no synchronizer answered for group "workers" of tenant "default", ` +
			`and the server does not permit a subject that this takes: `,
	} {
		code, stdout, stderr := execute(t, strings.Fields(args)...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if last := lines[len(lines)-1]; code != exitFailure || stdout != "" || !strings.HasPrefix(last, "pegasus: "+want) || !strings.Contains(last, "; the user is that of the credentials file "+dir) {
			t.Errorf("pegasus %s: exit %d, %s%s\nwant %s", args, code, stdout, stderr, want)
		}
	}
	t.Setenv("NATS_CREDS", file("w1"))
	_, err = agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: "w2", JoinTimeout: patience})
	if want := ": use the credential of this member, and not the credentials file " + file("w1") + " of NATS_CREDS"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("as another member by the environment: got %v\nwant %s", err, want)
	}
	p.stop()
}

// TestExpiryIsAnnounced by a run, at the time that is given.
func TestExpiryIsAnnounced(t *testing.T) {
	dir := keysOf(t, "", "synchronizer gsync --expires 720h")
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{1: "", 17: `user "gsync": its credential expires at `, 31: `user "gsync": its credential expired at `} {
		var out bytes.Buffer
		f := newFeed(&out, rendering(false))
		f.begin(show.Ready{URL: "u", Levels: []synchronizer.Level{{Name: "gsync", Group: "workers"}}})
		k.warnings(f, time.Now().AddDate(0, 0, days))
		if err := f.end(); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "its credential ") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("after %d days: %s\nwant %s", days, text, want)
		}
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/keys"
)

// succeed runs a command that must have this output.
func succeed(t *testing.T, args, want string) {
	t.Helper()
	if code, stdout, stderr := execute(t, strings.Fields(args)...); code != exitOK || stderr != "" || stdout != want {
		t.Errorf("pegasus %s: exit %d, %s\n%s\nwant %s", args, code, stderr, stdout, want)
	}
}

// keysOf is a directory with some users, "NAME" or "ROLE NAME FLAG...".
func keysOf(t *testing.T, initFlags string, users ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	for _, args := range append([]string{"keys init " + dir + " --group workers " + initFlags}, users...) {
		if !strings.HasPrefix(args, "keys ") {
			args = "keys add " + dir + " " + args
		}
		if code, stdout, stderr := execute(t, strings.Fields(args)...); code != exitOK {
			t.Fatalf("pegasus %s: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	return dir
}

// TestKeysCommands makes, renews, lists and revokes users.
func TestKeysCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	succeed(t, "keys init "+dir+" --group workers --tenant blue --tls --host nats.example --host 127.0.0.2", dir+" has the keys of group workers, tenant blue. Add its synchronizer next:\n  pegasus keys add "+dir+" synchronizer NAME\n")
	succeed(t, "keys add "+dir+" member pair --member w1 --member w2 --stream pegasus+blue+workers --expires 24h", filepath.Join(dir, "pair.creds")+" is the credentials file of pair, member.\n")
	first, err := os.ReadFile(filepath.Join(dir, "pair.creds"))
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "keys add "+dir+" member pair", filepath.Join(dir, "pair.creds")+" is the credentials file of pair, member.\n")
	if second, err := os.ReadFile(filepath.Join(dir, "pair.creds")); err != nil || string(second) == string(first) {
		t.Errorf("the file is not renewed: %v", err)
	}
	succeed(t, "keys add "+dir+" node n1 --processors 2", filepath.Join(dir, "n1.creds")+" is the credentials file of n1, node.\n")
	succeed(t, "keys add "+dir+" node n1", filepath.Join(dir, "n1.creds")+" is the credentials file of n1, node.\n")
	succeed(t, "keys add "+dir+" viewer vic", filepath.Join(dir, "vic.creds")+" is the credentials file of vic, viewer.\n")
	succeed(t, "keys revoke "+dir+" vic", "vic is revoked in "+dir+". Have the server read it again now:\n  kill -HUP PID                  the process of pegasus run --keys\n  nats-server --signal reload    a server with server.conf\n")
	code, stdout, stderr := execute(t, "keys", "list", dir)
	lines := strings.Split(stdout, "\n")
	if code != exitOK || !strings.HasPrefix(stderr, `pegasus: user "pair": its credential expires at `) || !strings.HasSuffix(stderr, ": add it again before\n") || strings.Count(stderr, "\n") != 1 || len(lines) != 5 {
		t.Fatalf("exit %d, %s%s", code, stderr, stdout)
	}
	for i, want := range [][]string{
		{"NAME", "ROLE", "KEYS", "ISSUED", "ENDS", "TAGS"},
		{"pair", "member", " 2 ", "member:w1 member:w2 stream:pegasus+blue+workers"},
		{"n1", "node", " 2 ", "never", "node:n1 processor:n1-0 processor:n1-1"},
		{"vic", "viewer", " 1 ", "revoked 2"},
	} {
		if !containsAll(lines[i], want) {
			t.Errorf("got %s\nwant %q", lines[i], want)
		}
	}
	_, stdout, _ = execute(t, "keys", "list", dir, "--json")
	var u keys.User
	if err := json.Unmarshal([]byte(strings.Split(stdout, "\n")[0]), &u); err != nil || u.Name != "pair" || len(u.Public) != 2 || u.Expires.Sub(u.Issued).Hours() != 24 {
		t.Errorf("%+v, %v", u, err)
	}
	for args, want := range map[string]string{
		"keys init " + dir + " --group workers":        "keys: directory " + dir + ": it is not empty: give a new one, as keys are not replaced",
		"keys init x --group a.b":                      `keys: group "a.b"`,
		"keys init x --group g --tls --host a:1":       `keys: host "a:1": give a name or an IP address without a port, such as nats.example`,
		"keys add " + dir + " member vic":              `keys: user "vic" has the role viewer: give another name, or that role`,
		"keys add " + dir + " viewer vic":              `keys: user "vic" was revoked: give another name`,
		"keys add " + dir + " root vic":                `keys: role "root": use one of member, node, synchronizer, viewer, operator`,
		"keys add " + dir + " member w-1":              `keys: member "w-1": it could be taken for processor 1 of a node "w"`,
		"keys add " + dir + " member w --stream $JS":   `keys: stream "$JS": the subjects of this stream belong to Pegasus or the server: give a name such as pegasus+TENANT+GROUP`,
		"keys add " + dir + " viewer w --stream s":     `keys: role "viewer": a stream belongs to the roles member and operator: leave it out`,
		"keys add " + dir + "x viewer w":               "keys: directory " + dir + "x: make it with init: ",
		"keys revoke " + dir + " none":                 `keys: user "none": ` + dir + " has no such user: it has pair, n1, vic",
		"keys list " + filepath.Join(dir, "vic.creds"): "keys: directory " + filepath.Join(dir, "vic.creds") + ": make it with init: ",
	} {
		if code, stdout, stderr := execute(t, strings.Fields(args)...); code != exitFailure || stdout != "" || !strings.HasPrefix(stderr, "pegasus: "+want) {
			t.Errorf("pegasus %s: exit %d, %s%s\nwant %s", args, code, stdout, stderr, want)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a refused init has made its directory")
	}
}

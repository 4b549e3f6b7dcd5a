package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// keysDir is a new directory, with users: each a role and its name and flags.
func keysDir(t *testing.T, init string, users ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	must(t, "keys init "+dir+" "+init)
	for _, u := range users {
		must(t, "keys add "+dir+" "+u)
	}
	return dir
}

// must executes a command that ends well, and returns what it prints.
func must(t *testing.T, args string) string {
	t.Helper()
	code, stdout, stderr := execute(t, strings.Fields(args)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%s: exit %d, %s", args, code, stderr)
	}
	return stdout
}

// TestKeys goes from nothing to a user that is revoked.
func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if got, want := must(t, "keys init "+dir+" --group workers"), `made `+dir+` for group "workers" of tenant "default": add users with pegasus keys add`+"\n"; got != want {
		t.Errorf("init: %q, want %q", got, want)
	}
	file := filepath.Join(dir, "w.creds")
	if got, want := must(t, "keys add "+dir+" member w --member a --member b --expires 1000h"), "wrote "+file+"\n"; got != want {
		t.Errorf("add: %q, want %q", got, want)
	}
	must(t, "keys add "+dir+" synchronizer gsync")
	must(t, "keys add "+dir+" node n --processors 2")
	table := regexp.MustCompile(`20\d\d-\S+Z`).ReplaceAllString(must(t, "keys list "+dir), "DATE")
	want := `NAME   ROLE          EXPIRES               FOR
w      member        DATE  member a, member b
gsync  synchronizer  never                 -
n      node          never                 node n, processor n-0, processor n-1
`
	if table != want {
		t.Errorf("list:\n%swant\n%s", table, want)
	}
	must(t, "keys add "+dir+" member w --expires 24h")
	code, stdout, stderr := execute(t, "keys", "list", dir)
	if code != exitOK || !strings.Contains(stdout, "member a, member b") || !strings.HasPrefix(stderr, `pegasus: user "w": its credential expires at `) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("list: exit %d, %s%s", code, stdout, stderr)
	}
	if got := must(t, "keys revoke "+dir+" w"); !strings.HasPrefix(got, "revoked w in "+dir+"/server.conf: the server refuses it once it has read that again:\n") {
		t.Errorf("revoke: %s", got)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("w.creds: %v", err)
	}
	var l struct {
		Tenant, Group string
		Users         []struct {
			Name, Role, Revoked string
			Public              []string
		}
		Warnings []string
	}
	if err := json.Unmarshal([]byte(must(t, "keys list --json "+dir)), &l); err != nil {
		t.Fatal(err)
	}
	if l.Group != "workers" || len(l.Users) != 3 || l.Users[0].Revoked == "" || len(l.Users[0].Public) != 2 || l.Users[1].Revoked != "" || len(l.Warnings) != 0 {
		t.Errorf("%+v", l)
	}
	if !strings.Contains(must(t, "keys list "+dir), "w      member        revoked") {
		t.Error("the list lacks the revoked user")
	}
}

// TestKeysRefused: each error says which argument or file is wrong, and contains no secret.
func TestKeysRefused(t *testing.T) {
	dir := keysDir(t, "--group workers", "viewer vic")
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"keys init":                                       {exitUsage, "init takes a directory: pegasus keys init keys --group workers"},
		"keys init DIR/x":                                 {exitUsage, "--group is missing: the subjects of each role name one"},
		"keys init DIR/x --group g --host h":              {exitUsage, "--host is for the certificate of the server: give --tls too"},
		"keys init DIR --group g":                         {exitFailure, "keys: directory DIR: it is not empty: give a new one, as keys are not replaced"},
		"keys init DIR/x --group a.b":                     {exitFailure, `keys: group "a.b": use letters, digits, - and _, at most 64`},
		"keys init DIR/x --group g --tls --host h:1":      {exitFailure, `keys: host "h:1": it is no name and no address: give it without scheme and port`},
		"keys add DIR member":                             {exitUsage, "add takes a directory, a role and a name: pegasus keys add keys member w1"},
		"keys add DIR boss w1":                            {exitUsage, `role "boss": use one of member, node, synchronizer, viewer, operator`},
		"keys add DIR member w1 --expires 0s":             {exitUsage, "--expires 0s: give at least 1s, or leave it out for a credential without end"},
		"keys add DIR member *":                           {exitFailure, `keys: name "*": use letters, digits, - and _, at most 64`},
		"keys add DIR member vic":                         {exitFailure, `keys: user "vic" has the role viewer: give another name, or that role`},
		"keys add DIR viewer v --stream s":                {exitFailure, `keys: role "viewer": a stream belongs to the roles member and operator: leave it out`},
		"keys revoke DIR":                                 {exitUsage, "revoke takes a directory and a name: pegasus keys revoke keys w1"},
		"keys revoke DIR nobody":                          {exitFailure, `keys: user "nobody": DIR has no such user: it has vic`},
		"keys list":                                       {exitUsage, "list takes a directory: pegasus keys list keys"},
		"keys list DIR/none":                              {exitFailure, "keys: directory DIR/none: make it with init: stat DIR/none: no such file or directory"},
		"keys permissions viewer vic --group g --nsc --x": {exitUsage, "unknown flag: --x"},
	} {
		code, stdout, stderr := execute(t, strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)
		first, _, _ := strings.Cut(stderr, "\n")
		if text := strings.ReplaceAll(want.text, "DIR", dir); code != want.code || stdout != "" || first != "pegasus: "+text {
			t.Errorf("%s: exit %d, %s%s\nwant exit %d, %s", args, code, stdout, stderr, want.code, text)
		}
	}
}

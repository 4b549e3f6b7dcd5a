package connect_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/connect"
)

// TestPersonAndInbox: the name that permissions have follows from the credential, and so does the prefix of
// inboxes, unless the context has one.
func TestPersonAndInbox(t *testing.T) {
	dir := t.TempDir()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pair.PublicKey()
	seed, _ := pair.Seed()
	file := func(name, text string) string {
		write(t, dir+"/"+name, text)
		return dir + "/" + name
	}
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	creds := func(claims string) string {
		return "-----BEGIN NATS USER JWT-----\n" + token(claims) + "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"
	}
	nk := file("u.nk", string(seed)+"\n")
	for _, c := range []struct {
		note          string
		given         connect.Settings
		person, inbox string
	}{
		{"nothing", connect.Settings{}, "", "_INBOX"},
		{"a credentials file", connect.Settings{Creds: file("w1.creds", creds(`{"name": "w1", "sub": "UX"}`))}, "w1", "_INBOX.w1"},
		{"a name that is no token", connect.Settings{Creds: file("w.creds", creds(`{"name": "w.*"}`))}, "", "_INBOX"},
		{"a name that is too long", connect.Settings{Creds: file("l.creds", creds(`{"name": "`+strings.Repeat("x", 65)+`"}`))}, "", "_INBOX"},
		{"no claims", connect.Settings{Creds: file("n.creds", creds(`]`))}, "", "_INBOX"},
		{"an nkey", connect.Settings{Nkey: nk}, public, "_INBOX." + public},
		{"a context", connect.Settings{Context: file("a.json", `{"nkey": "`+nk+`", "inbox_prefix": "_INBOX.ours"}`)}, public, "_INBOX.ours"},
		{"a JWT in a context", connect.Settings{Context: file("j.json", `{"user_jwt": "`+token(`{"name": "vic"}`)+`", "user_seed": "`+string(seed)+`"}`)}, "vic", "_INBOX.vic"},
		{"a user", connect.Settings{User: "jo", Password: "x"}, "jo", "_INBOX.jo"},
		{"a user in the URL", connect.Settings{URL: "nats://jo:x@h"}, "jo", "_INBOX.jo"},
		{"a token in the URL", connect.Settings{URL: "nats://s3cret@h"}, "", "_INBOX"},
	} {
		s, err := c.given.Resolve(connect.Settings{})
		if err != nil {
			t.Errorf("%s: %v", c.note, err)
			continue
		}
		options, err := s.Options()
		if err != nil {
			t.Errorf("%s: %v", c.note, err)
			continue
		}
		o := nats.GetDefaultOptions()
		for _, option := range options {
			if err := option(&o); err != nil {
				t.Errorf("%s: %v", c.note, err)
			}
		}
		if o.InboxPrefix == "" {
			o.InboxPrefix = "_INBOX"
		}
		if s.Person() != c.person || o.InboxPrefix != c.inbox {
			t.Errorf("%s: got %q and %q, want %q and %q", c.note, s.Person(), o.InboxPrefix, c.person, c.inbox)
		}
	}
	bad := file("b.json", `{"inbox_prefix": "_REPLY"}`)
	_, err = connect.Settings{Context: bad}.Resolve(connect.Settings{})
	want := "connect: context " + bad + ` of --context: inbox_prefix is "_REPLY", and synchronizers answer only subjects below _INBOX: give a prefix that begins with _INBOX.`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

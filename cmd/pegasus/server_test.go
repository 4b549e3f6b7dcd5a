package main

import (
	"net/url"
	"testing"
)

func TestWithUser(t *testing.T) {
	jo := url.UserPassword("jo", "a,b@c/d:e")
	for _, c := range []struct {
		servers    string
		user       *url.Userinfo
		want, note string
	}{
		{"nats://127.0.0.1:4222", nil, "nats://127.0.0.1:4222", "nothing to take out"},
		{"nats://jo:secret@127.0.0.1:4222", nil, "nats://127.0.0.1:4222", "taken out"},
		{"nats://token@a:1, tls://jo:se@cret@b:2", nil, "nats://a:1,tls://b:2", "a list"},
		{"127.0.0.1:4222", nil, "nats://127.0.0.1:4222", "no scheme"},
		{"a:1,b:2", jo, "nats://jo:a%2Cb%40c%2Fd%3Ae@a:1,nats://jo:a%2Cb%40c%2Fd%3Ae@b:2", "put in"},
		{"nats://other@a:1", jo, "nats://jo:a%2Cb%40c%2Fd%3Ae@a:1", "replaced"},
	} {
		if got := withUser(c.servers, c.user); got != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.note, c.servers, got, c.want)
		}
	}
	u, err := url.Parse(withUser("a:1", jo))
	if err != nil {
		t.Fatal(err)
	}
	if password, _ := u.User.Password(); password != "a,b@c/d:e" {
		t.Errorf("the password reads back as %q", password)
	}
}

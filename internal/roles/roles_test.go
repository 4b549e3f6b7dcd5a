package roles_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/roles"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestDocumented: docs/operations.md has the table of the code.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "<!-- roles -->\n")
	if !strings.HasPrefix(rest, roles.Markdown()+"\n") {
		t.Errorf("below <!-- roles --> docs/operations.md lacks\n%s", roles.Markdown())
	}
}

// TestSubjects: the table has the subjects that the product uses.
func TestSubjects(t *testing.T) {
	s := wire.Subjects{Tenant: "t", Group: "g"}
	multiplexer := wire.MultiplexerName("m", "x")
	for _, c := range []struct {
		user               roles.User
		publish, subscribe []string
	}{
		{
			roles.User{Role: roles.Member, Name: "m"},
			[]string{s.State("m"), s.State(multiplexer), s.Ack("s", "m"), s.Ping("m"), s.Work("other", "m"), s.WorkTold("m")},
			[]string{s.Probe("m"), s.Signal("m"), s.Probe(multiplexer), s.Signal(multiplexer), s.Announce(), s.Beat("s"), s.Work("m", "*"), s.WorkAsk(), "_INBOX.m.x"},
		},
		{
			roles.User{Role: roles.Node, Name: "n", Processors: 2},
			[]string{s.State("n"), s.State("n-1"), s.Ack("s", "n-0"), s.Data("n-1"), s.Ping("n-0")},
			[]string{s.Probe("n"), s.Signal("n"), s.Announce(), "_INBOX.n.x"},
		},
		{
			roles.User{Role: roles.Synchronizer, Name: "u", Synchronizer: "s", Others: []string{"o"}},
			[]string{
				s.Probe("m"), s.Signal(multiplexer), s.Announce(), s.Events("s"), s.GroupControl(), s.Control("s"), s.Beat("s"), s.Stream("s", "all"), "_INBOX.m.x",
				"pegasus.v1.t.o.sg.m", "pegasus.v1.t.o.sga", "pegasus.v1.t.o.ctl.s",
			},
			[]string{
				s.StateAll(), s.AckAll("s"), s.PingAll(), s.DataAll(), s.GroupControl(), s.Control("s"), s.AskAll("s"), s.AskBy("s", wire.VerbSet, "*"),
				s.AskBy("s", wire.VerbReload, "*"), s.Beat("*"), s.Stream("s", "x"), s.Who(), "pegasus.v1.t.o.st.>", "pegasus.v1.t.o.ak.s.*", "_INBOX.u.x",
			},
		},
		{
			roles.User{Role: roles.Viewer, Name: "v"},
			[]string{s.Who(), s.Ask("s", wire.VerbStatus), s.Ask("s", wire.VerbWhy), s.Ask("s", wire.VerbWatch), s.WorkAsk()},
			[]string{wire.Subjects{Tenant: "t", Group: "*"}.Events("*"), s.WorkTold("*"), "_INBOX.v.x"},
		},
		{
			roles.User{Role: roles.Operator, Name: "v"},
			[]string{s.Who(), s.Ask("s", wire.VerbStatus), s.AskBy("s", wire.VerbSet, "v"), s.AskBy("s", wire.VerbReload, "v")},
			[]string{wire.Subjects{Tenant: "t", Group: "*"}.Events("*"), "_INBOX.v.x"},
		},
	} {
		c.user.Tenant, c.user.Group = "t", "g"
		p, err := c.user.Permissions()
		if err != nil {
			t.Error(err)
			continue
		}
		for _, list := range []struct{ want, in []string }{{c.publish, p.Publish}, {c.subscribe, p.Subscribe}} {
			for _, subject := range list.want {
				if !slices.ContainsFunc(list.in, func(allowed string) bool { return covers(allowed, subject) }) {
					t.Errorf("%s: %s is not among %v", c.user.Role, subject, list.in)
				}
			}
			for _, allowed := range list.in {
				if !slices.ContainsFunc(list.want, func(subject string) bool { return covers(allowed, subject) }) && !strings.HasPrefix(allowed, s.Prefix()) && !strings.HasPrefix(allowed, "pegasus.v1.t.o.") {
					t.Errorf("%s: nothing needs %s", c.user.Role, allowed)
				}
			}
		}
	}
}

// covers reports whether a subject with wildcards has all that another one has.
func covers(wide, subject string) bool {
	w, s := strings.Split(wide, "."), strings.Split(subject, ".")
	for i := range w {
		switch {
		case w[i] == ">":
			return len(s) > i
		case i >= len(s) || w[i] != "*" && w[i] != s[i] || s[i] == ">":
			return false
		}
	}
	return len(w) == len(s)
}

// TestRefused: no name that is a wildcard, and no option of another role.
func TestRefused(t *testing.T) {
	for want, u := range map[string]roles.User{
		`role "boss": use one of member, node, synchronizer, viewer, operator`:                                            {Role: "boss", Name: "b"},
		`name "*": use letters, digits, - and _, at most 64`:                                                              {Role: roles.Viewer, Name: "*"},
		`member "a.b": use letters, digits, - and _, at most 64`:                                                          {Role: roles.Member, Name: "a", Members: []string{"a.b"}},
		`member "n-3": it could be taken for processor 3 of a node "n": give it a name that does not end in - and digits`: {Role: roles.Member, Name: "n-3"},
		`role "viewer": members belong to the role member: leave them out`:                                                {Role: roles.Viewer, Name: "v", Members: []string{"m"}},
		`role "member": processors belong to the role node: leave them out`:                                               {Role: roles.Member, Name: "m", Processors: 2},
		`node "n": 0 processors: give 1 to 1024`:                                                                          {Role: roles.Node, Name: "n"},
		`role "member": the synchronizer and other groups belong to the role synchronizer: leave them out`:                {Role: roles.Member, Name: "m", Synchronizer: "s"},
		`other group ">": use letters, digits, - and _, at most 64`:                                                       {Role: roles.Synchronizer, Name: "s", Others: []string{">"}},
		`synchronizer "": use letters, digits, - and _, at most 64`:                                                       {},
	} {
		u.Tenant, u.Group = "t", "g"
		if u.Role == "" {
			u.Role, u.Name = roles.Synchronizer, ""
			want = strings.Replace(want, "synchronizer", "name", 1)
		}
		if _, err := u.Permissions(); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestStream: the stream of a space belongs to members and operators, and its name is no wildcard.
func TestStream(t *testing.T) {
	for want, u := range map[string]roles.User{
		`role "viewer": a stream belongs to the roles member and operator: leave it out`: {Role: roles.Viewer, Stream: "s"},
		`stream "a.>": the name of a stream has 1 to 255 bytes and none of`:              {Role: roles.Member, Stream: "a.>"},
		`stream "*": the name of a stream has 1 to 255 bytes and none of`:                {Role: roles.Operator, Stream: "*"},
		`stream "a\"": the name of a stream has 1 to 255 bytes and none of`:              {Role: roles.Member, Stream: `a"`},
	} {
		u.Name, u.Tenant, u.Group = "w1", "default", "g"
		if _, err := u.Permissions(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestTemplate: filled in as the server does, the templates are the permissions of each user.
func TestTemplate(t *testing.T) {
	for _, u := range []roles.User{
		{Role: roles.Member, Name: "w1"},
		{Role: roles.Member, Name: "two", Members: []string{"a", "b"}},
		{Role: roles.Node, Name: "n", Processors: 3},
		{Role: roles.Synchronizer, Name: "gsync"},
		{Role: roles.Synchronizer, Name: "gsync", Others: []string{"h", "i"}},
		{Role: roles.Viewer, Name: "vic"},
		{Role: roles.Operator, Name: "op"},
		{Role: roles.Member, Name: "w1", Stream: "pegasus+default+g"},
		{Role: roles.Operator, Name: "op", Stream: "own"},
	} {
		u.Tenant, u.Group = "default", "g"
		want, err := u.Permissions()
		if err != nil {
			t.Fatal(err)
		}
		template, err := roles.Template(u.Role, u.Tenant, u.Group)
		if err != nil {
			t.Fatal(err)
		}
		members := u.Members
		if len(members) == 0 {
			members = []string{u.Name}
		}
		tags := map[string][]string{"{{name()}}": {u.Name}, "{{tag(other)}}": u.Others, "{{tag(member)}}": members, "{{tag(node)}}": members[:1], "{{tag(stream)}}": nil}
		if u.Stream != "" {
			tags["{{tag(stream)}}"] = []string{u.Stream}
		}
		for i := range u.Processors {
			tags["{{tag(processor)}}"] = append(tags["{{tag(processor)}}"], members[0]+"-"+strconv.Itoa(i))
		}
		for _, c := range [][2][]string{{template.Publish, want.Publish}, {template.Subscribe, want.Subscribe}} {
			got := c[0]
			for tag, values := range tags {
				var filled []string
				for _, subject := range got {
					if !strings.Contains(subject, tag) {
						filled = append(filled, subject)
						continue
					}
					for _, v := range values {
						filled = append(filled, strings.ReplaceAll(subject, tag, v))
					}
				}
				got = filled
			}
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(c[1]))) {
				t.Errorf("%+v: got %q\nwant %q", u, got, c[1])
			}
		}
	}
	for _, c := range [][3]string{{"root", "default", "g"}, {"member", "*", "g"}, {"member", "default", "a.b"}} {
		if p, err := roles.Template(roles.Role(c[0]), c[1], c[2]); err == nil {
			t.Errorf("%v: %v", c, p)
		}
	}
}

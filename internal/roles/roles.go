// Package roles is the table of the subjects that each role needs on a server with permissions.
package roles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/wire"
)

// Role is what a user of the server is for.
type Role string

// The roles.
const (
	Member       Role = "member"       // one or several members of one process
	Node         Role = "node"         // a node with its processors
	Synchronizer Role = "synchronizer" // that leads, or stands by
	Viewer       Role = "viewer"       // asks and watches
	Operator     Role = "operator"     // changes parameters and reloads as well
)

// entry are the subjects of one role, in the notation of the documentation: T stands for pegasus.v1.TENANT.,
// P for pegasus.v1.TENANT.GROUP., N for the name of the user, M for each member or the node, I for each processor of the node, S
// for the synchronizer, L for the stream of a space and G for pegasus.v1.TENANT. and each other group to which its signals go.
type entry struct {
	role               Role
	publish, subscribe []string
}

// table has allow-lists only: a message is believed to come from the name in its subject.
var table = []entry{ //nolint:gochecknoglobals // Constant.
	{
		Member,
		[]string{"P st.M", "P st.p.M.*", "P ak.*.M", "P pg.M", "P wk.*.M", "P wa.M"},
		[]string{"P pr.M", "P sg.M", "P pr.p.M.*", "P sg.p.M.*", "P sga", "P bt.*", "P wk.M.*", "P ws", "_INBOX.N.>"},
	},
	{
		Node,
		[]string{"P st.M", "P st.I", "P ak.*.I", "P dt.I", "P pg.I"},
		[]string{"P pr.M", "P sg.M", "P sga", "_INBOX.N.>"},
	},
	{
		Synchronizer,
		[]string{"P pr.>", "P sg.>", "P sga", "P ev.S", "P ctl", "P ctl.S", "P bt.S", "P jn.S.*", "G sg.>", "G pr.>", "G sga", "G ctl.S", "_INBOX.>"},
		[]string{
			"P st.>", "P ak.S.*", "P pg.*", "P dt.*", "P ctl", "P ctl.S", "P ctl.S.*", "P ctl.S.set.*", "P ctl.S.reload.*", "P bt.*", "P jn.S.*",
			"T ctl", "G st.>", "G ak.S.*", "_INBOX.N.>",
		},
	},
	{
		Viewer,
		[]string{"T ctl", "P ctl.*.status", "P ctl.*.why", "P ctl.*.watch", "P ws"},
		[]string{"T *.ev.*", "P wa.*", "_INBOX.N.>"},
	},
	{
		Operator,
		[]string{"T ctl", "P ctl.*.status", "P ctl.*.why", "P ctl.*.watch", "P ws", "P ctl.*.set.N", "P ctl.*.reload.N"},
		[]string{"T *.ev.*", "P wa.*", "_INBOX.N.>"},
	},
}

// streams are the further subjects where the tasks of the group lie in JetStream. A member can write to the log of any
// other member of its space, since it takes over the tasks of those that are gone.
var streams = []entry{ //nolint:gochecknoglobals // Constant.
	{
		Member,
		[]string{
			"L.>", "$JS.API.STREAM.CREATE.L", "$JS.API.STREAM.INFO.L", "$JS.API.STREAM.PURGE.L", "$JS.API.STREAM.MSG.GET.L", "$JS.API.CONSUMER.CREATE.L.>",
			"$JS.API.CONSUMER.MSG.NEXT.L.*", "$JS.API.CONSUMER.DELETE.L.*",
		},
		nil,
	},
	{Operator, []string{"$JS.API.STREAM.INFO.L", "$JS.API.STREAM.DELETE.L"}, nil},
}

// User is a user of the server.
type User struct {
	Role          Role     // what for
	Name          string   // in the credential: of a JWT, the public key of an nkey, or the user
	Tenant, Group string   // where
	Members       []string // of a member, or the node; none: it is called as the user
	Processors    int      // of a node
	Synchronizer  string   // empty: it is called as the user
	Others        []string // groups to which the signals of a synchronizer go
	Stream        string   // of the space of a member or an operator, if its tasks lie in JetStream
}

// maxStream is how many bytes the name of a stream has at most.
const maxStream = 255

// maxProcessors is as many as a node may have.
const maxProcessors = 1024

// Permissions are the subjects that a user may use, and no others.
type Permissions struct {
	Publish, Subscribe []string // with wildcards
}

// Names are the roles.
func Names() (names []string) {
	for _, e := range table {
		names = append(names, string(e.role))
	}
	return names
}

// Permissions are those of the user. A name that could be a wildcard, or that of the processor of a node, is refused.
func (u User) Permissions() (p Permissions, err error) {
	i := slices.IndexFunc(table, func(e entry) bool { return e.role == u.Role })
	if i < 0 {
		return p, fmt.Errorf("role %q: use one of %s", u.Role, strings.Join(Names(), ", "))
	}
	if len(u.Members) == 0 && (u.Role == Member || u.Role == Node) {
		u.Members = []string{u.Name}
	}
	if u.Synchronizer == "" {
		u.Synchronizer = u.Name
	}
	if err := u.check(); err != nil {
		return p, err
	}
	p = Permissions{u.fill(table[i].publish), u.fill(table[i].subscribe)}
	for _, e := range streams {
		if e.role == u.Role && u.Stream != "" {
			p.Publish = append(p.Publish, u.fill(e.publish)...)
		}
	}
	return p, nil
}

// Template are the permissions of a role for a signing key of an account. The server fills them in for each user, from
// the name and the tags member, node, processor, other and stream of its JWT. A list for a tag that a user lacks is empty.
func Template(role Role, tenant, group string) (p Permissions, err error) {
	const name, processor = "{{name()}}", "{{tag(processor)}}"
	i := slices.IndexFunc(table, func(e entry) bool { return e.role == role })
	if i < 0 {
		return p, fmt.Errorf("role %q: use one of %s", role, strings.Join(Names(), ", "))
	}
	for what, token := range map[string]string{"tenant": tenant, "group": group} {
		if err := wire.CheckToken(what, token); err != nil {
			return p, err
		}
	}
	u := User{Name: name, Tenant: tenant, Group: group, Members: []string{"{{tag(member)}}"}, Processors: 1, Synchronizer: name, Others: []string{"{{tag(other)}}"}, Stream: "{{tag(stream)}}"}
	if role == Node {
		u.Members[0] = "{{tag(node)}}"
	}
	fill := func(entries []string) []string {
		filled := u.fill(entries)
		for i := range filled {
			filled[i] = strings.ReplaceAll(filled[i], u.Members[0]+"-0", processor)
		}
		return filled
	}
	p = Permissions{fill(table[i].publish), fill(table[i].subscribe)}
	for _, e := range streams {
		if e.role == role {
			p.Publish = append(p.Publish, fill(e.publish)...)
		}
	}
	return p, nil
}

func (u *User) check() error {
	switch {
	case len(u.Members) > 0 && u.Role != Member && u.Role != Node:
		return fmt.Errorf("role %q: members belong to the role %s: leave them out", u.Role, Member)
	case len(u.Members) > 1 && u.Role == Node:
		return fmt.Errorf("node %q: a user is one node: give it one name", u.Name)
	case u.Processors != 0 && u.Role != Node:
		return fmt.Errorf("role %q: processors belong to the role %s: leave them out", u.Role, Node)
	case u.Role == Node && (u.Processors < 1 || u.Processors > maxProcessors):
		return fmt.Errorf("node %q: %d processors: give 1 to %d", u.Name, u.Processors, maxProcessors)
	case (u.Synchronizer != u.Name || len(u.Others) > 0) && u.Role != Synchronizer:
		return fmt.Errorf("role %q: the synchronizer and other groups belong to the role %s: leave them out", u.Role, Synchronizer)
	}
	if u.Stream != "" {
		if !slices.ContainsFunc(streams, func(e entry) bool { return e.role == u.Role }) {
			return fmt.Errorf("role %q: a stream belongs to the roles %s and %s: leave it out", u.Role, Member, Operator)
		}
		if strings.ContainsAny(u.Stream, ".*> \t\r\n/\\\"',") || len(u.Stream) > maxStream {
			return fmt.Errorf("stream %.40q: the name of a stream has 1 to %d bytes and none of . * > / \\ , quotes or blanks", u.Stream, maxStream)
		}
	}
	names := map[string][]string{"name": {u.Name}, "tenant": {u.Tenant}, "group": {u.Group}, "member": u.Members, "synchronizer": {u.Synchronizer}, "other group": u.Others}
	for _, what := range []string{"name", "tenant", "group", "member", "synchronizer", "other group"} {
		for _, name := range names[what] {
			if err := wire.CheckToken(what, name); err != nil {
				return err
			}
		}
	}
	for _, m := range u.Members {
		if u.Role == Node {
			break
		}
		if of, number := m[:max(strings.LastIndexByte(m, '-'), 0)], m[strings.LastIndexByte(m, '-')+1:]; of != "" && number != "" && strings.Trim(number, "0123456789") == "" {
			return fmt.Errorf("member %q: it could be taken for processor %s of a node %q: give it a name that does not end in - and digits", m, number, of)
		}
	}
	return nil
}

// fill puts names into the entries of the table.
func (u *User) fill(entries []string) (subjects []string) {
	s := wire.Subjects{Tenant: u.Tenant, Group: u.Group}
	for _, e := range entries {
		where, rest, prefixed := strings.Cut(e, " ")
		prefixes := []string{""}
		switch {
		case !prefixed:
			rest = e
		case where == "P":
			prefixes[0] = s.Prefix()
		case where == "T":
			prefixes[0] = strings.TrimSuffix(s.Who(), "ctl")
		default:
			prefixes = nil
			for _, group := range u.Others {
				prefixes = append(prefixes, wire.Subjects{Tenant: u.Tenant, Group: group}.Prefix())
			}
		}
		for _, prefix := range prefixes {
			for _, tail := range u.tails(rest) {
				subjects = append(subjects, prefix+tail)
			}
		}
	}
	return subjects
}

// tails are an entry with each of the names that one of its tokens stands for.
func (u *User) tails(entry string) (all []string) {
	tokens := strings.Split(entry, ".")
	i := slices.IndexFunc(tokens, func(t string) bool { return slices.Contains([]string{"M", "N", "I", "S", "L"}, t) })
	if i < 0 {
		return []string{entry}
	}
	var names []string
	switch tokens[i] {
	case "M":
		names = u.Members
	case "N":
		names = []string{u.Name}
	case "S":
		names = []string{u.Synchronizer}
	case "L":
		names = []string{u.Stream}
	case "I":
		for i := range u.Processors {
			names = append(names, fmt.Sprintf("%s-%d", u.Members[0], i))
		}
	}
	for _, name := range names {
		all = append(all, strings.Join(slices.Concat(tokens[:i:i], []string{name}, tokens[i+1:]), "."))
	}
	return all
}

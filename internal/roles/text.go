package roles

import (
	"strings"
)

// Text lists the subjects, one a line.
func (p Permissions) Text() string {
	return "publish\n  " + strings.Join(p.Publish, "\n  ") + "\nsubscribe\n  " + strings.Join(p.Subscribe, "\n  ") + "\n"
}

// Conf is the user in the list "users" of the configuration of a nats-server. A name that is a public key needs no
// secret; the configuration takes the password of another from the environment.
func (p Permissions) Conf(name string) string {
	who := "nkey: " + name
	if len(name) != 56 || name[0] != 'U' || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		who = "user: " + name + ", password: $PEGASUS_PASSWORD"
	}
	return "{ " + who + ", permissions: {\n    publish: [" + quoted(p.Publish) + "]\n    subscribe: [" + quoted(p.Subscribe) + "] } }\n"
}

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }

// Nsc is the command that gives them to a user of an operator that nsc manages.
func (p Permissions) Nsc(name string) string {
	return "nsc edit user " + name + " --allow-pub '" + strings.Join(p.Publish, ",") + "' --allow-sub '" + strings.Join(p.Subscribe, ",") + "'\n"
}

// Markdown is the table for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| role | publish | subscribe |\n|---|---|---|\n")
	row := func(e entry, also string) {
		subscribe := "nothing else"
		if len(e.subscribe) > 0 {
			subscribe = "`" + strings.Join(e.subscribe, "`, `") + "`"
		}
		b.WriteString("| " + string(e.role) + also + " | `" + strings.Join(e.publish, "`, `") + "` | " + subscribe + " |\n")
	}
	for _, e := range table {
		row(e, "")
	}
	for _, e := range streams {
		row(e, ", also with `store: jetstream`")
	}
	return b.String()
}

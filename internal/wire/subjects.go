package wire

import (
	"fmt"
	"strings"
)

const (
	subjectPrefix = "pegasus.v1."
	tokenRule     = "use letters, digits, - and _, at most 64"
)

// CheckToken refuses a name that cannot stand in a subject. What names the
// thing in the error: "member name", "group".
func CheckToken(what, s string) error {
	if isToken(s) {
		return nil
	}
	return fmt.Errorf("%s %q: %s", what, s, tokenRule)
}

func isToken(s string) bool {
	if s == "" || len(s) > MaxTokenBytes {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// multiplexerPrefix begins the names of multiplexers that have one of their own. The dot
// keeps them apart from members.
const multiplexerPrefix = "p."

// MultiplexerName is the name of a multiplexer whose first member is given: p.<member>.<random>. The server
// can permit st.p.MEMBER.* to the user that has the member, so no other user speaks or listens there.
func MultiplexerName(member, random string) string { return multiplexerPrefix + member + "." + random }

// CheckSender refuses a text that is neither the name of a member nor of a multiplexer.
func CheckSender(what, s string) error {
	if isSender(s) {
		return nil
	}
	return CheckToken(what, s)
}

func isSender(s string) bool {
	rest, multiplexer := strings.CutPrefix(s, multiplexerPrefix)
	if member, random, two := strings.Cut(rest, "."); multiplexer && two {
		return isToken(member) && isToken(random)
	}
	return isToken(rest) // A member, a node, or p.<random> of a multiplexer of the release before.
}

// Subjects makes and reads the subjects of one group:
//
//	pegasus.v1.<tenant>.<group>.st.<member>                 Hello, Batch, Gone
//	pegasus.v1.<tenant>.<group>.ak.<synchronizer>.<member>  Ack
//	pegasus.v1.<tenant>.<group>.pr.<member>                 Welcome, Probe, Resend, Peers
//	pegasus.v1.<tenant>.<group>.sg.<member>                 Signals
//	pegasus.v1.<tenant>.<group>.sga                         Welcome unasked, and Peers, to all
//	pegasus.v1.<tenant>.<group>.pg.<member>                 request: Ping, Pong
//	pegasus.v1.<tenant>.<group>.dt.<member>                 request: Body
//	pegasus.v1.<tenant>.<group>.wk.<member>.<from>          what members with a section work send each other
//	pegasus.v1.<tenant>.<group>.ctl                         request: who controls the group
//	pegasus.v1.<tenant>.<group>.ctl.<synchronizer>          request: is it there
//	pegasus.v1.<tenant>.<group>.ctl.<synchronizer>.<verb>   request: a question, its answer in parts
//	pegasus.v1.<tenant>.<group>.ctl.<synchronizer>.<verb>.<person>  request: a change ([Verb.Changes]), its answer in parts
//	pegasus.v1.<tenant>.<group>.ev.<synchronizer>           what happens, as JSON lines
//	pegasus.v1.<tenant>.<group>.bt.<synchronizer>           the beats of whoever leads
//	pegasus.v1.<tenant>.<group>.jn.<synchronizer>.<nonce>   what a process that stands by is told; <nonce> is all, or its own
//	pegasus.v1.<tenant>.ctl                                 request to all: who is there
//
// Permissions bind a member to its own subjects, so the member a subject names
// is who sent the frame; a frame that names another inside is to be refused. A
// multiplexer has the st, pr and sg of its own name ([MultiplexerName], or that of a node) for a [Bundle], and speaks there for
// the members whose hellos, each on that member's own st, name it.
//
// Every name must be a token ([CheckToken]); the methods do not check it again.
type Subjects struct {
	Tenant, Group string // tokens
}

// Check refuses a tenant or group that is no token.
func (s Subjects) Check() error {
	if err := CheckToken("tenant", s.Tenant); err != nil {
		return err
	}
	return CheckToken("group", s.Group)
}

// State is where a member sends its Hello, Batch and Gone.
func (s Subjects) State(member string) string { return s.Prefix() + "st." + member }

// StateAll matches the State subjects of all members and multiplexers.
func (s Subjects) StateAll() string { return s.State(">") }

// Probe is where a member receives its Welcome, Probe and Resend.
func (s Subjects) Probe(member string) string { return s.Prefix() + "pr." + member }

// Signal is where a member receives its Signals.
func (s Subjects) Signal(member string) string { return s.Prefix() + "sg." + member }

// Work is where a member receives what another one of its group sends it under a section work; "*" stands for all others.
func (s Subjects) Work(member, from string) string { return s.Prefix() + "wk." + member + "." + from }

// Call is the subject of requests that call a function of the group.
func (s Subjects) Call(function string) string { return s.Prefix() + "call." + function }

// WorkAsk is where members with a space are asked how it stands, by an empty message.
func (s Subjects) WorkAsk() string { return s.Prefix() + "ws" }

// WorkTold is where a member answers that. "*" stands for all members.
func (s Subjects) WorkTold(member string) string { return s.Prefix() + "wa." + member }

// Announce is where all members of the group receive an unsolicited Welcome, and Peers.
func (s Subjects) Announce() string { return s.Prefix() + "sga" }

// Ack is where a member answers the signals of a synchronizer.
func (s Subjects) Ack(synchronizer, member string) string {
	return s.Prefix() + "ak." + synchronizer + "." + member
}

// AckAll matches the Ack subjects of all members towards one synchronizer.
func (s Subjects) AckAll(synchronizer string) string { return s.Ack(synchronizer, "*") }

// Control is where a synchronizer of the group answers that it is there.
func (s Subjects) Control(synchronizer string) string { return s.Prefix() + "ctl." + synchronizer }

// GroupControl is where whoever controls the group answers with its name.
func (s Subjects) GroupControl() string { return s.Prefix() + "ctl" }

// Verb is a question to a running synchronizer.
type Verb string

// The verbs. Set is no question but changes parameters, and Reload has the configuration read again. Watch is Status, and
// keeps the events coming for a while.
const (
	VerbStatus Verb = "status"
	VerbWhy    Verb = "why"
	VerbWatch  Verb = "watch"
	VerbSet    Verb = "set"
	VerbReload Verb = "reload"
)

// Changes reports whether the verb changes the run. Then the subject names who asks, as the credential does,
// and a server with permissions proves it.
func (v Verb) Changes() bool { return v == VerbSet || v == VerbReload }

// Nobody is the person whose credential has no name.
const Nobody = "-"

// AskBy is where a synchronizer of the group takes a verb that changes something from a person; "*" stands for all.
func (s Subjects) AskBy(synchronizer string, v Verb, person string) string {
	return s.Ask(synchronizer, v) + "." + person
}

// Ask is where a synchronizer of the group takes questions.
func (s Subjects) Ask(synchronizer string, v Verb) string {
	return s.Control(synchronizer) + "." + string(v)
}

// AskAll matches the Ask subjects of all verbs.
func (s Subjects) AskAll(synchronizer string) string { return s.Ask(synchronizer, "*") }

// ParseAsk reads the verb, and the person if it has one, off an Ask or AskBy subject of a synchronizer of this group.
func (s Subjects) ParseAsk(synchronizer, subject string) (v Verb, person string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.Ask(synchronizer, ""))
	verb, person, named := strings.Cut(rest, ".")
	return Verb(verb), person, ok && isToken(verb) && (!named || Verb(verb).Changes() && isToken(person))
}

// Events is where a synchronizer of the group tells what happens while a client watches.
func (s Subjects) Events(synchronizer string) string { return s.Prefix() + "ev." + synchronizer }

// Beat is where the process that leads as a synchronizer of the group says so, to others
// that would be the same synchronizer.
func (s Subjects) Beat(synchronizer string) string { return s.Prefix() + "bt." + synchronizer }

// Stream is where the process that leads as a synchronizer of the group tells its inputs to a
// process that stands by, or to all.
func (s Subjects) Stream(synchronizer, to string) string {
	return s.Prefix() + "jn." + synchronizer + "." + to
}

// Who is where all synchronizers of the tenant, of whatever group, say that they
// are there.
func (s Subjects) Who() string { return subjectPrefix + s.Tenant + ".ctl" }

// Ping is where a member asks for the time of the reference clock.
func (s Subjects) Ping(member string) string { return s.Prefix() + "pg." + member }

// PingAll matches the Ping subjects of all members.
func (s Subjects) PingAll() string { return s.Ping("*") }

// Data is where a processor asks for the input of a block and hands over what it
// has come to.
func (s Subjects) Data(member string) string { return s.Prefix() + "dt." + member }

// DataAll matches the Data subjects of all members.
func (s Subjects) DataAll() string { return s.Data("*") }

// ParseData reads the member off a Data subject of this group.
func (s Subjects) ParseData(subject string) (member string, ok bool) {
	member, ok = s.rest(subject, "dt.")
	return member, ok && isToken(member)
}

// ParseState reads the member, or the multiplexer, off a State subject of this group.
func (s Subjects) ParseState(subject string) (member string, ok bool) {
	member, ok = s.rest(subject, "st.")
	return member, ok && isSender(member)
}

// ParseAck reads synchronizer and member off an Ack subject of this group.
func (s Subjects) ParseAck(subject string) (synchronizer, member string, ok bool) {
	rest, ok := s.rest(subject, "ak.")
	if !ok {
		return "", "", false
	}
	synchronizer, member, ok = strings.Cut(rest, ".")
	return synchronizer, member, ok && isToken(synchronizer) && isToken(member)
}

// rest is what follows a kind in a subject of this group. Every message is looked at
// so, and no text is made for it.
func (s Subjects) rest(subject, kind string) (string, bool) {
	for _, part := range [...]string{subjectPrefix, s.Tenant, ".", s.Group, ".", kind} {
		var ok bool
		if subject, ok = strings.CutPrefix(subject, part); !ok {
			return "", false
		}
	}
	return subject, true
}

// Prefix begins all subjects of the group.
func (s Subjects) Prefix() string { return subjectPrefix + s.Tenant + "." + s.Group + "." }

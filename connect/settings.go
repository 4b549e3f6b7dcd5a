package connect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// Settings are a server and the credentials to connect with. Every field may be empty. Files are
// named by their paths.
type Settings struct {
	// URL is the server, such as "nats://127.0.0.1:4222", or several separated by commas.
	URL string
	// Creds is a credentials file: a JWT and its key.
	Creds string
	// Nkey is a file with the seed of a user.
	Nkey string
	// User goes with Password or PasswordFile.
	User string
	// Password is the password of User.
	Password string
	// PasswordFile has the password of User in its first line.
	PasswordFile string
	// Token is the secret of a server that has one for all.
	Token string
	// TokenFile has the token in its first line.
	TokenFile string
	// CA is a PEM file with the certificates of the authorities to trust, instead of the
	// system's authorities.
	CA string
	// Cert is a PEM file with the client's certificate, which goes with Key.
	Cert string
	// Key is a PEM file with the private key of Cert.
	Key string
	// Context is a context of the nats CLI: a name, or a file if it has a path separator or
	// ends in ".json".
	Context string
}

// sources has, for each key, where its value comes from.
var sources = []struct { //nolint:gochecknoglobals // Constant.
	key, flag, variable string
	field               func(*Settings) *string
}{
	{"url", "--nats", "NATS_URL", func(s *Settings) *string { return &s.URL }},
	{"creds", "--creds", "NATS_CREDS", func(s *Settings) *string { return &s.Creds }},
	{"nkey", "--nkey", "NATS_NKEY", func(s *Settings) *string { return &s.Nkey }},
	{"user", "--user", "NATS_USER", func(s *Settings) *string { return &s.User }},
	{"password", "Settings.Password", "NATS_PASSWORD", func(s *Settings) *string { return &s.Password }},
	{"password file", "--password-file", "", func(s *Settings) *string { return &s.PasswordFile }},
	{"token", "Settings.Token", "NATS_TOKEN", func(s *Settings) *string { return &s.Token }},
	{"token file", "--token-file", "", func(s *Settings) *string { return &s.TokenFile }},
	{"ca", "--tlsca", "NATS_CA", func(s *Settings) *string { return &s.CA }},
	{"cert", "--tlscert", "NATS_CERT", func(s *Settings) *string { return &s.Cert }},
	{"key", "--tlskey", "NATS_KEY", func(s *Settings) *string { return &s.Key }},
	{"context", "--context", "NATS_CONTEXT", func(s *Settings) *string { return &s.Context }},
}

// FromEnv reads the variables of the nats CLI: NATS_URL, NATS_CREDS, NATS_NKEY, NATS_USER,
// NATS_PASSWORD, NATS_TOKEN, NATS_CA, NATS_CERT, NATS_KEY and NATS_CONTEXT.
func FromEnv() Settings {
	var s Settings
	for _, from := range sources {
		if from.variable != "" {
			*from.field(&s) = os.Getenv(from.variable)
		}
	}
	return s
}

// value is a value and where it comes from.
type value struct{ text, from string }

// layer has the values of a place by their keys.
type layer map[string]value

func (s Settings) layer(environment bool) layer {
	l := layer{}
	for _, from := range sources {
		name := from.flag
		if environment {
			name = from.variable
		}
		l.add(from.key, value{*from.field(&s), name})
	}
	return l
}

func (l layer) add(key string, v value) {
	if v.text != "" {
		l[key] = v
	}
}

// identity is one way to say who connects. The second value is empty where one is enough.
type identity struct {
	kind string
	value
	second string
}

// identities are the keys that make one, together with the other that each needs.
var identities = []struct{ key, second string }{ //nolint:gochecknoglobals // Constant.
	{"creds", ""}, {"nkey", ""}, {"user", "password"}, {"token", ""}, {"token file", ""}, {"user_jwt", "user_seed"},
}

// identity is the only one of the place, and that of its URL if there is no other.
func (l layer) identity() (found identity, err error) {
	for _, i := range identities {
		v, ok := l[i.key]
		second, pair := l[i.second]
		kind := i.key
		if file, ok := l["password file"]; ok && i.second == "password" {
			if pair {
				return found, fmt.Errorf("%s and %s are two passwords: leave one of them out", second.from, file.from)
			}
			second, pair, kind = file, true, "user and password file"
		}
		switch {
		case !ok && pair:
			return found, fmt.Errorf("%s goes with a %s, and none is given: give both or neither", second.from, strings.ReplaceAll(i.key, "_", " "))
		case !ok:
			continue
		case i.second != "" && !pair:
			return found, fmt.Errorf("%s goes with a %s, and none is given: give both or neither", v.from, strings.ReplaceAll(i.second, "_", " "))
		case found.kind != "":
			return found, fmt.Errorf("%s and %s say in two ways who connects: leave one of them out", found.from, v.from)
		}
		found = identity{kind, v, second.text}
	}
	if url := l["url"]; found.kind == "" && strings.Contains(url.text, "@") {
		found = identity{"url", value{"", url.from}, ""}
	}
	return found, nil
}

// Server is a server and how to connect to it. Two that are equal use the same credentials.
type Server struct {
	// URL is the URL of the server. It has a user or token only if these are used.
	URL string
	// From is the flag, the variable or the context that the URL comes from.
	From string

	who           identity
	ca, cert, key value
	inboxPrefix   value
	tlsFirst      bool
}

// To is the server at url and the options for it. Given options replace the settings of the
// environment, also an empty list that is not nil; without them the options are the options
// of [Server.Options]. Without given options an empty url stands for NATS_URL.
func To(url string, given []nats.Option) (Server, []nats.Option, error) {
	if given != nil {
		return Server{URL: url, who: identity{kind: "given"}}, given, nil
	}
	s, err := Settings{URL: url}.Resolve(FromEnv())
	if err != nil {
		return s, nil, err
	}
	options, err := s.Options()
	return s, options, err
}

// Resolve finds the server to connect to, and the credentials. The environment is the result of
// [FromEnv], or empty if it shall not count. Resolve reads the file of the context, and no
// other. URL is empty if there is none in any place.
func (s Settings) Resolve(environment Settings) (Server, error) {
	server, err := s.resolve(environment)
	if err != nil {
		return Server{}, fmt.Errorf("connect: %w", err)
	}
	return server, nil
}

func (s Settings) resolve(environment Settings) (server Server, err error) {
	places := []layer{s.layer(false), environment.layer(true), {}}
	if c := cmp.Or(places[0]["context"], places[1]["context"]); c.text != "" {
		if places[2], server.tlsFirst, err = readContext(c); err != nil {
			return server, err
		}
		server.inboxPrefix = places[2]["inbox_prefix"]
		if p := server.inboxPrefix; p.text != "" && !strings.HasPrefix(p.text+".", nats.InboxPrefix) {
			return server, fmt.Errorf("%s: inbox_prefix is %q, and synchronizers answer only subjects below _INBOX: give a prefix that begins with %s", p.from, p.text, nats.InboxPrefix)
		}
	}
	for _, l := range places {
		if server.URL == "" {
			server.URL, server.From = l["url"].text, l["url"].from
		}
		server.ca = cmp.Or(server.ca, l["ca"])
		cert, key := l["cert"], l["key"]
		if (cert == value{}) != (key == value{}) {
			return server, fmt.Errorf("%s is half of a client certificate: give the file of the certificate and the file of its key", cmp.Or(cert, key).from)
		}
		if server.cert.text == "" {
			server.cert, server.key = cert, key
		}
	}
	for _, l := range places {
		if l["url"].text != server.URL || l["url"].from != server.From {
			delete(l, "url") // Another server's, and so is a user in it.
		}
		who, err := l.identity()
		if err != nil {
			return server, err
		}
		if server.who.kind == "" {
			server.who = who
		}
	}
	if server.who.kind != "url" {
		server.URL = WithoutUser(server.URL)
	}
	if server.who.kind == "" {
		server.who = notedKey(server.URL)
	}
	return server, nil
}

// Identity says which credentials are used and where they come from, for errors: "the
// credentials file w1.creds of NATS_CREDS". It has no secret, and is empty without credentials.
func (s *Server) Identity() string {
	switch v := s.who; v.kind {
	case "creds":
		return fmt.Sprintf("the credentials file %s of %s", v.text, v.from)
	case "nkey":
		return fmt.Sprintf("the nkey file %s of %s", v.text, v.from)
	case "user", "user and password file":
		return fmt.Sprintf("the user %q of %s", v.text, v.from)
	case "token":
		return "the token of " + v.from
	case "token file":
		return fmt.Sprintf("the token file %s of %s", v.text, v.from)
	case "user_jwt":
		return "the JWT of " + v.from
	case "url":
		return "the user or token in the URL"
	}
	if s.cert.text != "" {
		return fmt.Sprintf("the client certificate %s of %s", s.cert.text, s.cert.from)
	}
	return ""
}

// UsesUser reports whether a user and a password are used, in the URL or beside it.
func (s *Server) UsesUser() bool {
	return s.who.kind == "user" || s.who.kind == "user and password file" || s.who.kind == "url"
}

// Explain adds to the error of an attempt to connect which credentials were used, if the server
// has refused them, and which setting asks for TLS, if the server has none.
func (s *Server) Explain(err error) error {
	if s.who.kind == "given" { // Whoever has passed the options knows.
		return err
	}
	for _, refused := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrNkeysNotSupported} {
		if !errors.Is(err, refused) {
			continue
		}
		if who := s.Identity(); who != "" {
			return fmt.Errorf("%w; the server refused %s", err, who)
		}
		const remedy = "use --creds, --nkey, --user or --token-file, or set NATS_CREDS or another variable of docs/connecting.md"
		if s.who.kind != noted {
			return fmt.Errorf("%w; none was given: %s", err, remedy)
		}
		if seed, _ := loopkey.Read(s.who.text); seed != nil {
			return fmt.Errorf("%w; the server refused the key in %s, which a server of this user noted for the port: another server listens there now: %s", err, s.who.text, remedy)
		}
		return fmt.Errorf("%w; none was given, and the key file %s of the port does not exist: start the server as this user, or %s", err, s.who.text, remedy)
	}
	if tls := cmp.Or(s.ca, s.cert); errors.Is(err, nats.ErrSecureConnWanted) && tls.text != "" {
		return fmt.Errorf("%w; %s asks for TLS: leave it out for this server", err, tls.from)
	}
	return err
}

// WithoutUser takes users, passwords and tokens out of a URL, or out of a list of them. A text
// that is no URL loses all before its last @.
func WithoutUser(servers string) string {
	if servers == "" {
		return ""
	}
	list := strings.Split(servers, ",")
	for i, one := range list {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		scheme, rest, _ := strings.Cut(one, "://")
		list[i] = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return strings.Join(list, ",")
}

package connect_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
)

// settings are those of flags.
func settings(t *testing.T, s *testnats.Server) connect.Settings {
	t.Helper()
	given := connect.Settings{URL: s.URL}
	fields := map[string]*string{
		"--creds": &given.Creds, "--nkey": &given.Nkey, "--user": &given.User, "--password-file": &given.PasswordFile, "--token-file": &given.TokenFile,
		"--tlsca": &given.CA, "--tlscert": &given.Cert, "--tlskey": &given.Key,
	}
	for i := 0; i < len(s.Flags); i += 2 {
		*fields[s.Flags[i]] = s.Flags[i+1]
	}
	return given
}

// dial connects as the product does.
func dial(t *testing.T, s connect.Server) error {
	t.Helper()
	options, err := s.Options()
	if err != nil {
		return err
	}
	b, err := bus.Dial(t.Context(), s.URL, bus.Options{Extra: options})
	if err != nil {
		return s.Explain(err)
	}
	return b.Close()
}

// TestEachKind enters a server of each kind by flags, by the environment and by a context,
// and is refused without any.
func TestEachKind(t *testing.T) {
	refused := map[string]string{
		"tls":                "; give the certificate of the authority with --tlsca or NATS_CA",
		"creds over tls":     "; give the certificate of the authority with --tlsca or NATS_CA",
		"client certificate": "; give the certificate of the authority with --tlsca or NATS_CA",
	}
	for _, kind := range testnats.Kinds() {
		t.Run(kind, func(t *testing.T) {
			s := testnats.Start(t, kind)
			byFlags, err := settings(t, s).Resolve(connect.Settings{})
			if err == nil {
				err = dial(t, byFlags)
			}
			if err != nil {
				t.Errorf("by flags: %v", err)
			}
			want := refused[kind]
			if want == "" {
				want = "; none was given: use --creds, --nkey, --user or --token-file, or set NATS_CREDS or another variable of docs/connecting.md"
			}
			if err := dial(t, connect.Server{URL: s.URL}); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("without: got %v\nwant ...%s", err, want)
			}
			var context strings.Builder
			for name, value := range s.Env {
				context.WriteString(`"` + strings.ToLower(strings.TrimPrefix(name, "NATS_")) + `": "` + value + `", `)
			}
			file := s.File("context.json", []byte("{"+context.String()+`"url": "`+s.URL+`", "description": "", "nsc": ""}`))
			byContext, err := connect.Settings{Context: file}.Resolve(connect.Settings{})
			if err == nil {
				err = dial(t, byContext)
			}
			if err != nil {
				t.Errorf("by a context: %v", err)
			}
			s.Setenv(t)
			server, options, err := connect.To(s.URL, nil)
			if err == nil {
				err = dial(t, server)
			}
			if err != nil || len(options) == 0 {
				t.Errorf("by the environment: %v", err)
			}
			if again, _, _ := connect.To(s.URL, nil); again != server {
				t.Error("the same settings make another server")
			}
		})
	}
}

// TestClientCertificateIsWanted has an authority and no certificate.
func TestClientCertificateIsWanted(t *testing.T) {
	s := testnats.Start(t, "client certificate")
	given := settings(t, s)
	given.Cert, given.Key = "", ""
	server, err := given.Resolve(connect.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if err := dial(t, server); err == nil || !strings.Contains(err.Error(), "--tlscert and --tlskey") {
		t.Error(err)
	}
}

// TestRefusedCredentials are named, with where they come from and without what they are.
func TestRefusedCredentials(t *testing.T) {
	s := testnats.Start(t, "password")
	wrong := s.File("wrong", []byte("n0t-it\n"))
	for _, c := range []struct {
		given, environment connect.Settings
		want               string
	}{
		{connect.Settings{User: "jo", PasswordFile: wrong}, connect.Settings{}, `the server refused the user "jo" of --user`},
		{connect.Settings{}, connect.Settings{User: "jo", Password: "n0t-it"}, `the server refused the user "jo" of NATS_USER`},
		{connect.Settings{TokenFile: wrong}, connect.Settings{User: "jo", Password: testnats.Secret}, "the server refused the token file " + wrong + " of --token-file"},
		{connect.Settings{}, connect.Settings{Token: "n0t-it"}, "the server refused the token of NATS_TOKEN"},
		{connect.Settings{URL: strings.Replace(s.URL, "//", "//jo:n0t-it@", 1)}, connect.Settings{User: "jo", Password: testnats.Secret}, "the server refused the user or token in the URL"},
	} {
		if c.given.URL == "" {
			c.given.URL = s.URL
		}
		server, err := c.given.Resolve(c.environment)
		if err != nil {
			t.Error(err)
			continue
		}
		err = dial(t, server)
		if !errors.Is(err, nats.ErrAuthorization) || !strings.HasSuffix(err.Error(), "; "+c.want) || strings.Contains(err.Error(), "n0t-it") {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	given := settings(t, testnats.Start(t, "tls"))
	given.URL = s.URL
	plain, err := given.Resolve(connect.Settings{})
	if err == nil {
		err = dial(t, plain)
	}
	if err == nil || !strings.HasSuffix(err.Error(), "; --tlsca asks for TLS: leave it out for this server") {
		t.Errorf("TLS on a plain port: %v", err)
	}
	server, options, err := connect.To(s.URL, []nats.Option{})
	if err != nil || len(options) > 0 || server.Explain(nats.ErrAuthorization).Error() != nats.ErrAuthorization.Error() {
		t.Error(server.Identity(), options, err)
	}
}

// TestPrecedence: flags, the environment, the context; of the identities one.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KEYS", "/keys")
	write(t, filepath.Join(dir, "nats", "context", "prod.json"), `{"url": "tls://user:pw@prod", "creds": "~/$KEYS/a.creds", "tls_first": true, "jetstream_domain": "x"}`)
	write(t, filepath.Join(dir, "nats", "context.txt"), "prod")
	all := connect.Settings{URL: "env", Creds: "env.creds", CA: "env.pem", Context: "prod"}
	for _, c := range []struct {
		note               string
		given, environment connect.Settings
		url, from, who     string
	}{
		{"nothing: the selected context does not count", connect.Settings{}, connect.Settings{}, "", "", ""},
		{"all three", connect.Settings{URL: "flag", Nkey: "flag.nk"}, all, "nats://flag", "--nats", "the nkey file flag.nk of --nkey"},
		{"the environment", connect.Settings{}, all, "nats://env", "NATS_URL", "the credentials file env.creds of NATS_CREDS"},
		{"a context by name", connect.Settings{Context: "prod"}, connect.Settings{}, "tls://prod", "context " + dir + "/nats/context/prod.json of --context", "the credentials file " + home + "//keys/a.creds of context " + dir + "/nats/context/prod.json of --context"},
		{"a user in the URL", connect.Settings{URL: "nats://u:p@flag"}, all, "nats://u:p@flag", "--nats", "the user or token in the URL"},
		{"a user beside the URL", connect.Settings{URL: "nats://u:p@a,b", Creds: "c"}, all, "nats://a,nats://b", "--nats", "the credentials file c of --creds"},
		{"a user in the URL of a server that is not used", connect.Settings{URL: "a"}, connect.Settings{URL: "nats://u:p@b"}, "nats://a", "--nats", ""},
		{"a certificate alone", connect.Settings{}, connect.Settings{Cert: "c.pem", Key: "k.pem"}, "", "", "the client certificate c.pem of NATS_CERT"},
	} {
		s, err := c.given.Resolve(c.environment)
		if err != nil || s.URL != c.url || s.From != c.from || s.Identity() != c.who {
			t.Errorf("%s: got %q from %q with %q, %v\nwant %q from %q with %q", c.note, s.URL, s.From, s.Identity(), err, c.url, c.from, c.who)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestFaults tells what is wrong with settings, with the place and no secret.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		write(t, name, text)
		return name
	}
	empty, junk := file("empty", "\n"), file("junk", "s3cret\n")
	for _, c := range []struct {
		given connect.Settings
		want  string
	}{
		{connect.Settings{User: "jo"}, "--user goes with a password, and none is given: give both or neither"},
		{connect.Settings{PasswordFile: junk}, "--password-file goes with a user, and none is given: give both or neither"},
		{connect.Settings{User: "jo", Password: "s3cret", PasswordFile: junk}, "Settings.Password and --password-file are two passwords: leave one of them out"},
		{connect.Settings{Creds: "a", TokenFile: "b"}, "--creds and --token-file say in two ways who connects: leave one of them out"},
		{connect.Settings{Cert: "a"}, "--tlscert is half of a client certificate: give the file of the certificate and the file of its key"},
		{connect.Settings{User: "jo", PasswordFile: empty}, `the user "jo" of --user: the first line of ` + empty + " is empty: write the password there"},
		{connect.Settings{TokenFile: dir + "/none"}, "the token file " + dir + "/none of --token-file: the file cannot be read: open " + dir + "/none: no such file or directory"},
		{connect.Settings{Creds: junk}, "the credentials file " + junk + " of --creds: the file lacks the JWT or the seed of a user: give a file that `pegasus keys add` or `nsc generate creds` has written"},
		{connect.Settings{Nkey: junk}, "the nkey file " + junk + " of --nkey: the file has no seed of a user: its line begins with SU"},
		{connect.Settings{CA: junk}, "the authority " + junk + " of --tlsca: the file has no certificate in PEM: give the certificate of the authority"},
		{connect.Settings{Cert: junk, Key: junk}, "the client certificate " + junk + " of --tlscert with the key " + junk + ": tls: failed to find any PEM data in certificate input"},
		{connect.Settings{Context: file("a.json", `{"nsc": "nsc://s3cret"}`)}, "context " + dir + `/a.json of --context: the key "nsc" is not supported: take it out, and give a credentials file or a certificate instead`},
		{connect.Settings{Context: file("b.json", `{"pasword": "s3cret"}`)}, "context " + dir + `/b.json of --context: the key "pasword" is unknown: take it out, or give the credentials in another way`},
		{connect.Settings{Context: file("c.json", `"s3cret`)}, "context " + dir + "/c.json of --context: the file is not one JSON object: write it again with `nats context save`"},
		{connect.Settings{Context: file("d.json", `{"token": 3}`)}, "context " + dir + `/d.json of --context: the key "token" has a value of another type: write a text, or true or false for tls_first`},
		{connect.Settings{Context: file("e.json", `{"creds": "$NO_SUCH/a"}`)}, "context " + dir + `/e.json of --context: the key "creds": the variable NO_SUCH is not set: set it, or write its value`},
		{connect.Settings{Context: file("f.json", strings.Repeat(" ", 64<<10)+"{}")}, "context " + dir + "/f.json of --context: the file has more than 64 KiB: it is another one than it should be"},
		{connect.Settings{Context: file("g.json", `{"user_jwt": "s3cret"}`)}, "context " + dir + "/g.json of --context goes with a user seed, and none is given: give both or neither"},
	} {
		s, err := c.given.Resolve(connect.Settings{})
		if err == nil {
			_, err = s.Options()
		}
		if err == nil || err.Error() != "connect: "+c.want || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got  %v\nwant connect: %s", err, c.want)
		}
	}
}

// TestFilesAreReadAgain changes them between two connections of one Server.
func TestFilesAreReadAgain(t *testing.T) {
	s := testnats.Start(t, "creds")
	server, err := settings(t, s).Resolve(connect.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	options, err := server.Options()
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Env["NATS_CREDS"])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text []byte
		ok   bool
	}{{good, true}, {[]byte("gone"), false}, {good, true}} {
		s.File("user.creds", c.text)
		nc, err := nats.Connect(server.URL, options...)
		if (err == nil) != c.ok {
			t.Errorf("with %d bytes: %v", len(c.text), err)
		}
		nc.Close()
	}
}

func TestWithoutUser(t *testing.T) {
	for servers, want := range map[string]string{
		"":                                       "",
		"nats://127.0.0.1:4222":                  "nats://127.0.0.1:4222",
		"nats://jo:secret@127.0.0.1:4222":        "nats://127.0.0.1:4222",
		"nats://token@a:1, tls://jo:se@cret@b:2": "nats://a:1,tls://b:2",
		"127.0.0.1:4222":                         "nats://127.0.0.1:4222",
	} {
		if got := connect.WithoutUser(servers); got != want {
			t.Errorf("%s: got %s, want %s", servers, got, want)
		}
	}
}

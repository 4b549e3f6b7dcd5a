package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/embedded"
)

// tenancy is an operator with an account of clients and one of the system.
type tenancy struct {
	t                         *testing.T
	operator, account, system nkeys.KeyPair
}

func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	y := &tenancy{t: t}
	for pair, create := range map[*nkeys.KeyPair]func() (nkeys.KeyPair, error){&y.operator: nkeys.CreateOperator, &y.account: nkeys.CreateAccount, &y.system: nkeys.CreateAccount} {
		var err error
		if *pair, err = create(); err != nil {
			t.Fatal(err)
		}
	}
	return y
}

func (y *tenancy) id(pair nkeys.KeyPair) string {
	id, err := pair.PublicKey()
	if err != nil {
		y.t.Fatal(err)
	}
	return id
}

func (y *tenancy) encode(c jwt.Claims, by nkeys.KeyPair) string {
	token, err := c.Encode(by)
	if err != nil {
		y.t.Fatal(err)
	}
	return token
}

// options are those of a server with the tenancy.
func (y *tenancy) options() embedded.Options {
	trusted := jwt.NewOperatorClaims(y.id(y.operator))
	trusted.SystemAccount = y.id(y.system)
	return embedded.Options{
		Operator: y.encode(trusted, y.operator),
		Accounts: []string{y.clients(), y.encode(jwt.NewAccountClaims(y.id(y.system)), y.operator)},
	}
}

// clients is the account of the clients, with revoked keys.
func (y *tenancy) clients(revoked ...string) string {
	claims := jwt.NewAccountClaims(y.id(y.account))
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	for _, key := range revoked {
		claims.RevokeAt(key, time.Now())
	}
	return y.encode(claims, y.operator)
}

// user is a credentials file, and its public key.
func (y *tenancy) user() (file, id string) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		y.t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		y.t.Fatal(err)
	}
	id = y.id(pair)
	creds, err := jwt.FormatUserConfig(y.encode(jwt.NewUserClaims(id), y.account), seed)
	if err != nil {
		y.t.Fatal(err)
	}
	file = filepath.Join(y.t.TempDir(), "user.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		y.t.Fatal(err)
	}
	return file, id
}

// TestOperator: a server admits the users of its account alone, has JetStream for them, and follows a new JWT of the account.
func TestOperator(t *testing.T) {
	y := newTenancy(t)
	o := y.options()
	o.JetStream = t.TempDir()
	s := start(t, o)
	if nc, err := nats.Connect(s.URL()); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("without a credential: %v", err)
	}
	stranger, _ := newTenancy(t).user()
	if nc, err := nats.Connect(s.URL(), nats.UserCredentials(stranger)); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("a user of another account: %v", err)
	}
	if nc, err := nats.Connect("", nats.InProcessServer(s)); err == nil { // The end of the pipe may come before the reason.
		nc.Close()
		t.Error("through memory without a credential")
	}
	file, id := y.user()
	stays, _ := y.user()
	closed := make(chan struct{})
	first, err := nats.Connect(s.URL(), nats.UserCredentials(file), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := nats.Connect(s.URL(), nats.UserCredentials(stays))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Request("$JS.API.INFO", nil, patience); err != nil {
		t.Errorf("JetStream: %v", err)
	}
	other := newTenancy(t)
	for token, want := range map[string]string{
		"junk":          "embedded: account: ",
		other.clients(): "embedded: account " + other.id(other.account) + ": another operator has signed it: start the server again to follow that",
		y.encode(jwt.NewAccountClaims(other.id(other.account)), y.operator): "embedded: account " + other.id(other.account) + ": the server does not have it: start the server again to follow that: ",
	} {
		if err := s.UpdateAccount(token); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if err := errors.Join(first.Flush(), s.UpdateAccount(y.clients(id))); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the revoked user is still connected")
	}
	if err := second.Flush(); err != nil {
		t.Error(err)
	}
	want := "embedded: the server has no accounts: start it with Options.Operator"
	if err := start(t, embedded.Options{}).UpdateAccount(y.clients()); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestRefusedOperators makes no server.
func TestRefusedOperators(t *testing.T) {
	y, other := newTenancy(t), newTenancy(t)
	for want, change := range map[string]func(*embedded.Options){
		"embedded: operator and accounts belong together; set both or neither":                     func(o *embedded.Options) { o.Accounts = nil },
		"embedded: an operator is set, and a token, a user or open as well; leave one of them out": func(o *embedded.Options) { o.Token = "t" },
		"embedded: operator: ": func(o *embedded.Options) { o.Operator = "junk" },
		"embedded: account: ":  func(o *embedded.Options) { o.Accounts = []string{"junk"} },
		"embedded: account " + other.id(other.account) + ": another operator has signed it": func(o *embedded.Options) { o.Accounts = []string{other.clients()} },
	} {
		o := y.options()
		change(&o)
		s, err := embedded.Start(o)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

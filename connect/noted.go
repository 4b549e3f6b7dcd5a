package connect

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// noted is the kind of the identity for a port of loopback, if no credentials are given: the key that a server
// in a process of this user has noted for the port, if there is one.
const noted = "noted key"

// notedKey returns the identity noted for the port of a URL with one server on loopback, and none for any other URL.
func notedKey(server string) identity {
	if strings.Contains(server, ",") { // nats.go does not tell which of them it has reached.
		return identity{}
	}
	if !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || !loopkey.IsLoopback(u.Hostname()) {
		return identity{}
	}
	port := nats.DefaultPort
	if text := u.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return identity{}
		}
	}
	file, err := loopkey.File(port)
	if err != nil {
		return identity{} // This user has no directory for keys.
	}
	return identity{kind: noted, value: value{text: file}}
}

// signWithNoted reads the key file at each connection: a server that starts again has another key. Where there is
// none, the client gives nothing. The field of the JWT, which has the public key here, is the only one
// that nats.go asks for at each connection. A server without JWTs ignores it.
func signWithNoted(file string) nats.Option {
	return nats.UserJWT(func() (string, error) {
		pair := readPair(file)
		if pair == nil {
			return "", nil
		}
		defer pair.Wipe()
		return pair.PublicKey()
	}, func(nonce []byte) ([]byte, error) {
		pair := readPair(file)
		if pair == nil { // The server has just ended.
			return nil, nil
		}
		defer pair.Wipe()
		return pair.Sign(nonce)
	})
}

// readPair is the key in a file, or nil if there is none.
func readPair(file string) nkeys.KeyPair {
	seed, err := loopkey.Read(file)
	if err != nil || seed == nil {
		return nil
	}
	pair, err := nkeys.ParseDecoratedNKey(seed)
	if err != nil {
		return nil
	}
	return pair
}

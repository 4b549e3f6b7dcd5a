package embedded

import (
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// loopbackKey admits clients that sign the nonce of their connection with the key of this start, and clients that
// connect through memory.
type loopbackKey struct {
	public nkeys.KeyPair
	seed   []byte
	note   *loopkey.Note // nil until it is written
}

// needsKey reports whether clients need the key of the start. The address is then one of loopback.
func (o Options) needsKey() bool {
	return !o.InProcess && !o.Open && o.Keys == "" && o.Token == "" && o.Username == ""
}

// newLoopbackKey makes a key and has the server ask for it. If the port is known, the key file is written now, so
// that a client that reconnects finds the new key as soon as the server listens.
func newLoopbackKey(o *Options, so *server.Options) (*loopbackKey, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("embedded: key: %w", err)
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return nil, fmt.Errorf("embedded: key: %w", err)
	}
	name, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("embedded: key: %w", err)
	}
	k := &loopbackKey{seed: fmt.Appendf(nil, "%s\n", seed)}
	if k.public, err = nkeys.FromPublicKey(name); err != nil {
		return nil, fmt.Errorf("embedded: key: %w", err)
	}
	so.CustomClientAuthentication, so.AlwaysEnableNonce = k, true
	if o.Port == 0 {
		return k, nil
	}
	address := net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
	if err := checkFree(address); err != nil { // Else the key of the server that listens there would be replaced.
		return nil, fmt.Errorf("embedded: cannot listen on %s: %w", address, err)
	}
	return k, k.write(o.Port)
}

// checkFree returns an error if the address cannot be listened on.
func checkFree(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return explainListen(err)
	}
	return l.Close()
}

// write notes the key for the clients of this user. A second call does nothing.
func (k *loopbackKey) write(port int) (err error) {
	if k == nil || k.note != nil {
		return nil
	}
	if k.note, err = loopkey.Write(port, k.seed); err != nil {
		return fmt.Errorf("embedded: %w; or set Options.Open, so that any user of this machine can connect", err)
	}
	return nil
}

// remove removes the key file. The server still has its port, so no other server has written the file.
func (k *loopbackKey) remove() {
	if k != nil && k.note != nil {
		k.note.Remove()
	}
}

// undo restores the key file of a server that was there before.
func (k *loopbackKey) undo() {
	if k != nil && k.note != nil {
		k.note.Undo()
	}
}

// Check implements server.Authentication.
func (k *loopbackKey) Check(c server.ClientAuthentication) bool {
	if from := c.RemoteAddress(); from != nil && from.Network() == "pipe" {
		return true
	}
	nonce := c.GetNonce()
	signature, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(c.GetOpts().Sig, "="))
	return err == nil && len(nonce) > 0 && k.public.Verify(nonce, signature) == nil
}

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/keys"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/synchronizer"
)

// expiryEvery is how often a run looks for credentials that end soon.
const expiryEvery = 24 * time.Hour

// keyring is the directory of keys of --keys. The server inside this process follows it.
type keyring struct {
	dir         string
	start       *keys.Server                    // as at the start
	certificate atomic.Pointer[tls.Certificate] // of the server, if it has TLS
	server      *embedded.Server
	url         string
}

// openKeyring reads the directory.
func openKeyring(dir string) (*keyring, error) {
	from, err := keys.ReadServer(dir)
	if err != nil {
		return nil, err
	}
	k := &keyring{dir: dir, start: from}
	k.certificate.Store(from.TLS)
	return k, nil
}

// secure sets the options of the server.
func (k *keyring) secure(o *embedded.Options) {
	o.Operator, o.Accounts = k.start.Operator, []string{k.start.Account, k.start.System}
	if k.start.TLS != nil {
		o.TLS = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate.Load(), nil },
		}
	}
}

// check refuses synchronizers that are not of the group, or have no credential.
func (k *keyring) check(tenant string, levels []synchronizer.Level) error {
	if k == nil {
		return nil
	}
	if tenant != k.start.Tenant {
		return fmt.Errorf("--keys %s is for tenant %s, and this run has tenant %s: give --tenant %[2]s", k.dir, k.start.Tenant, tenant)
	}
	for i := range levels {
		l := &levels[i]
		if l.Group != k.start.Group {
			return fmt.Errorf("--keys %s is for group %s, and synchronizer %s has group %s: choose another with --name, or use a server elsewhere", k.dir, k.start.Group, l.Name, l.Group)
		}
		if _, err := keys.Credential(k.dir, l.Name); err != nil {
			return fail(err)
		}
	}
	return nil
}

// as is the server for a synchronizer, which connects with the credential of its name.
func (k *keyring) as(synchronizer string) (a address, err error) {
	a = address{own: true, keys: k}
	file, err := keys.Credential(k.dir, synchronizer)
	if err != nil {
		return a, err
	}
	if a.Server, err = (connect.Settings{URL: k.url, Creds: file, CA: k.start.CA}).Resolve(connect.Settings{}); err != nil {
		return a, err
	}
	a.options, err = a.Options()
	return a, err
}

// announce tells which credential each synchronizer uses, and which ones end soon.
func (k *keyring) announce(f *feed, levels []synchronizer.Level) {
	if k == nil {
		return
	}
	for i := range levels {
		file, _ := keys.Credential(k.dir, levels[i].Name) // It has just been used.
		f.put(show.Entry{At: time.Now(), From: levels[i].Name, Event: show.Notice("connected with " + file)})
	}
	need := "a member or command needs its credentials file: NATS_CREDS=FILE, of pegasus keys add " + k.dir
	if k.start.CA != "" {
		need += ", and NATS_CA=" + k.start.CA
	}
	f.put(show.Entry{At: time.Now(), Event: show.Notice(need)})
	k.warnings(f, time.Now())
}

// warnings tells which credentials end soon, at the start and each day.
func (k *keyring) warnings(f *feed, now time.Time) {
	if k == nil {
		return
	}
	_, warnings, err := keys.List(k.dir, now)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	for _, w := range warnings {
		f.put(show.Entry{At: now, Event: show.Notice(w)})
	}
}

// reread has the server follow the directory. A directory that it cannot follow changes nothing.
func (k *keyring) reread(f *feed) {
	if k == nil {
		return
	}
	text := "keys: " + k.dir + " was read again"
	if err := k.follow(); err != nil {
		text = oneLine(err.Error()) + "; the server keeps the keys it has"
	}
	f.put(show.Entry{At: time.Now(), Event: show.Notice(text)})
	k.warnings(f, time.Now())
}

func (k *keyring) follow() error {
	from, err := keys.ReadServer(k.dir)
	if err != nil {
		return err
	}
	if (from.TLS == nil) != (k.start.TLS == nil) {
		return errors.New("keys: directory " + k.dir + ": TLS is begun and ended by a restart")
	}
	if err := k.server.UpdateAccount(from.Account); err != nil {
		return err
	}
	k.certificate.Store(from.TLS)
	return nil
}

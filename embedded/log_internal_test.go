package embedded

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestExhausted: a connection that cannot be taken for want of file descriptors is told, with how many are
// enough, once in ten seconds; no other fault is.
func TestExhausted(t *testing.T) {
	var told []string
	opts := Options{MaxConnections: 1000, OnExhausted: func(err error) { told = append(told, err.Error()) }}
	l := newLogger(&opts)
	now := time.Unix(1, 0)
	l.now = func() time.Time { return now }
	fault := func(err syscall.Errno) error {
		return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	accept := func(err error) { l.Errorf("Temporary %s Accept Error(%v), sleeping %dms", "Client", err, 10) }
	accept(fault(syscall.ECONNABORTED))
	l.Errorf("a line without arguments")
	accept(fault(syscall.EMFILE))
	now = now.Add(9 * time.Second)
	accept(fault(syscall.EMFILE))
	now = now.Add(time.Second)
	accept(fault(syscall.ENFILE))
	want := "embedded: the NATS server in this process cannot take another connection, as no file descriptors are left: allow 1128, which is enough for its limit of 1000 connections, with ulimit -n 1128, and start again: accept tcp: accept4: too many open files"
	if len(told) != 2 || told[0] != want {
		t.Errorf("%q\nwant %q, twice", told, want)
	}
	opts.OnExhausted = nil
	newLogger(&opts).exhausted([]any{fault(syscall.EMFILE)}) // Nobody is told.
}

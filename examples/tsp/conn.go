package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// The waits of the data connection.
const (
	connectWait  = 3 * time.Second        // for a server that may just be starting
	discoverWait = 500 * time.Millisecond // for all runs on a server to answer
)

// dialData opens a data connection, with the credentials that agent.Join uses. The connection is
// restored automatically. It never sends later what could not be sent in time.
func dialData(ctx context.Context, address, name string) (*nats.Conn, error) {
	server, options, err := connect.To(address, nil)
	if err != nil {
		return nil, err
	}
	options = append(options,
		nats.Name(name), nats.Timeout(time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(againWait),
		nats.ReconnectBufSize(-1), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	deadline := time.Now().Add(connectWait)
	for {
		nc, err := nats.Connect(server.URL, options...)
		switch {
		case err == nil:
			return nc, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, nats.ErrAuthorization):
			return nil, fmt.Errorf("the NATS server at %s refuses the data connection: %w", redact(address), server.Explain(err))
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the NATS server at %s does not answer: start one, or correct -nats: %w", redact(address), server.Explain(err))
		}
		pause(ctx, againWait)
	}
}

// redact hides the password in a URL.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the given address"
	}
	return u.Redacted()
}

// dataConn is the transport of a client.
type dataConn struct {
	nc      *nats.Conn
	subject string
}

// Request implements transport.
func (d dataConn) Request(ctx context.Context, data []byte) ([]byte, error) {
	m, err := d.nc.RequestWithContext(ctx, d.subject, data)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// discover finds the one run on a server that a worker can join.
func discover(ctx context.Context, address string) (string, error) {
	nc, err := dialData(ctx, address, "tsp worker")
	if err != nil {
		return "", err
	}
	defer nc.Close()
	runs, err := listRuns(ctx, nc)
	if err != nil {
		return "", err
	}
	return onlyRun(redact(address), runs)
}

func listRuns(ctx context.Context, nc *nats.Conn) ([]runInfo, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("looking for runs: %w", err)
	}
	if err := nc.PublishRequest(runsSubject, inbox, nil); err != nil {
		return nil, fmt.Errorf("looking for runs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, discoverWait)
	defer cancel()
	var runs []runInfo
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return runs, nil // Nobody is there, or no more answers come.
		}
		var r runInfo
		if json.Unmarshal(m.Data, &r) == nil {
			runs = append(runs, r)
		}
	}
}

func onlyRun(address string, runs []runInfo) (string, error) {
	switch len(runs) {
	case 1:
		return runs[0].ID, nil
	case 0:
		return "", fmt.Errorf("no run on the NATS server at %s: start one with -nats %s, without -worker", address, address)
	}
	var list []string
	for _, r := range runs {
		list = append(list, fmt.Sprintf("-run %s (%s)", r.ID, r.Instance))
	}
	return "", fmt.Errorf("%d runs on the NATS server at %s: choose one with %s", len(runs), address, strings.Join(list, " or "))
}

// fetchInstance loads the instance of the run: by its name, or from the
// coordinator's file.
func (w *worker) fetchInstance(ctx context.Context) (*tsplib.Instance, error) {
	if w.info.Size == 0 {
		return tsplib.Load(w.info.Instance)
	}
	var file bytes.Buffer
	for file.Len() < w.info.Size {
		a, err := w.client.ask(ctx, request{Op: opInstance, Offset: file.Len()})
		if err != nil {
			return nil, err
		}
		if len(a.Chunk) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		file.Write(a.Chunk)
	}
	return tsplib.Parse(&file, w.info.Instance)
}

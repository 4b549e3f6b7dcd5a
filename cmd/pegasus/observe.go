package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gopegasus/pegasus/synchronizer"
)

// The limits of the server for operators.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	hangUp        = 500 * time.Millisecond // for answers in progress when the run ends
)

// observatory serves what operators look at: metrics and health. The zero value
// serves nothing.
type observatory struct {
	listener net.Listener
	server   http.Server
	provider metric.MeterProvider // where metrics go, nil for nowhere
	serving  sync.WaitGroup

	running atomic.Pointer[session] // nil until all its synchronizers do
}

// observeAt listens at the address of a guard, which may be nil: then nothing is served.
func observeAt(g *pageGuard) (*observatory, error) {
	if g == nil {
		return &observatory{}, nil
	}
	provider, page, err := newMetrics()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	o := &observatory{provider: provider}
	if o.listener, err = net.Listen("tcp", g.address); err != nil {
		return nil, fmt.Errorf("--http %s: %w: choose another address, or port 0 for any free one", g.address, err)
	}
	if err := g.permitAddress(o.listener.Addr()); err != nil {
		return nil, errors.Join(err, o.listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	mux.HandleFunc("GET /livez", o.health(func(r synchronizer.Readiness) bool { return r.Part == "loop" }))
	mux.HandleFunc("GET /readyz", o.health(func(synchronizer.Readiness) bool { return true }))
	o.server = http.Server{
		Handler: g.guardHandler(mux), ErrorLog: log.New(io.Discard, "", 0),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 16 << 10,
	}
	o.serving.Go(func() { _ = o.server.Serve(o.listener) }) // Until close.
	return o, nil
}

// url is where it serves, empty if it does not.
func (o *observatory) url() string {
	if o.listener == nil {
		return ""
	}
	return "http://" + o.listener.Addr().String()
}

// close ends the server and waits for it.
func (o *observatory) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), hangUp)
	defer cancel()
	err := o.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = o.server.Close()
	}
	o.serving.Wait()
	return err
}

// health answers with 200 if all parts that count are ready, else with 503. Parts
// that are not ready are named in any case, all of them with ?verbose.
func (o *observatory) health(counts func(synchronizer.Readiness) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, verbose := r.URL.Query()["verbose"]
		good, lines := o.parts(counts, verbose)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else if !verbose {
			lines = "ok\n"
		}
		_, _ = io.WriteString(w, lines) // Who asked may be gone.
	}
}

func (o *observatory) parts(counts func(synchronizer.Readiness) bool, verbose bool) (good bool, lines string) {
	running := o.running.Load()
	if running == nil { // A run that is being started is alive and not ready.
		if counts(synchronizer.Readiness{Part: "start"}) {
			return false, "[-] start: not all synchronizers run yet\n"
		}
		return true, ""
	}
	good = true
	var b strings.Builder
	for i, one := range running.running {
		for _, r := range one.Readiness() {
			if !counts(r) {
				continue
			}
			good = good && r.Ready
			if verbose || !r.Ready {
				fmt.Fprintf(&b, "%s %s %s: %s\n", mark(r.Ready), running.levels[i].Name, r.Part, r.Detail)
			}
		}
	}
	return good, b.String()
}

func mark(ready bool) string {
	if ready {
		return "[+]"
	}
	return "[-]"
}

// splitAddress reads HOST:PORT of a flag.
func splitAddress(flag, address, example string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	number, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil || host == "" {
		return "", 0, fmt.Errorf("--%s %s: give HOST:PORT, such as %s; port 0 is any free one", flag, address, example)
	}
	return host, int(number), nil
}

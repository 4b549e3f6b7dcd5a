package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/ask"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/web"
)

const uiHelp = `ui shows a run in a browser during the run: the synchronizers and the standby
processes, the members with their states and clocks, the predicates with their
verdicts and what they wait for, the last decisions, the events on a timeline, and
for each predicate why it fired or does not. It prints the URL of the page.

--journal DIR shows a run that is over, from the journals that run --journal has written:
the same pages, for each instant that you choose. It needs no server.

The page only reads, unless --allow-control lets it set parameters and reload the
configuration, as set and reload do. It listens on the loopback interface alone; from
another machine, use a tunnel such as ssh -L. Anyone with the URL can read the page, and
with --allow-control change the run. The key in the URL is new each time. Global states
are read once a second; events are shown as they happen. The page marks old values with
their age.

` + liveHelp + `

Exit codes: 0 ended by a signal, 1 nobody answers at the beginning, 2 wrong usage.`

const uiExample = `  pegasus ui
  pegasus ui --journal journals
  pegasus ui --listen 127.0.0.1:8233
  pegasus ui --nats nats://127.0.0.1:4222 --tenant blue`

// uiFlags say which run is shown, and where.
type uiFlags struct {
	liveFlags

	listen, prefix, journal string
	control                 bool
}

func newUI() *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:     "ui",
		Short:   "Show a run in a browser, live or recorded",
		Long:    uiHelp,
		Example: uiExample,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.servePage(cmd) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` of the loopback interface to listen on; port 0 is any free port")
	flags.StringVar(&f.journal, "journal", "", "show the recorded run of `DIR|FILE` instead of a live run; of DIR the newest")
	flags.BoolVar(&f.control, "allow-control", false, "let the page set parameters and reload the configuration (default the page only reads)")
	flags.StringVar(&f.prefix, "prefix", "", "`PATH` of the page, such as /pegasus, for a proxy that passes the path on (default /)")
	return cmd
}

// listenOnLoopback refuses addresses that other machines reach, since the page speaks plain HTTP.
func listenOnLoopback(flag, address string) (net.Listener, error) {
	host, _, err := splitAddress(flag, address, "127.0.0.1:8233")
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--%s %s: other machines may reach this address, and the page is not encrypted: use 127.0.0.1 and a tunnel such as ssh -L", flag, address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fail(fmt.Errorf("--%s %s: %w: choose another address, or port 0 for any free one", flag, address, err))
	}
	return l, nil
}

func (f *uiFlags) servePage(cmd *cobra.Command) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if f.journal != "" {
		return f.serveJournal(cmd)
	}
	explains := &explainer{}
	key := rand.Text()
	opt := web.Options{Source: explains, Work: explains.work, Now: time.Now, Key: key, Prefix: f.prefix}
	if f.control {
		opt.Control = explains.change
	}
	page, err := web.New(opt)
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	listener, err := listenOnLoopback("listen", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // The server has closed it.
	s := watchSource{
		shown: &show.Firings{Verbose: true}, mute: map[synchronizer.Presence]bool{},
		feed: feedTo(func(e show.Entry) { publishEntry(page, e) }, func() error { return nil }),
	}
	l, err := f.open(ctx, cmd.ErrOrStderr(), s.options())
	if err != nil {
		return ended(cmd.Context(), err)
	}
	defer l.close() //nolint:errcheck // Nothing is lost by it.
	explains.asker = ask.Asker{Bus: l.bus, Tenant: l.tenant, Person: l.asker.Person}
	names, err := s.begin(ctx, l)
	if err != nil {
		return ended(cmd.Context(), fail(err))
	}
	url := f.url(listener, key)
	text := fmt.Sprintf("%s shows %s at %s, tenant %s; Ctrl-C ends it\n", url, strings.Join(names, ", "), l.shown, l.tenant)
	if f.json {
		text = show.JSONLine(struct {
			URL           string   `json:"url"`
			NATS          string   `json:"nats"`
			Tenant        string   `json:"tenant"`
			Synchronizers []string `json:"synchronizers"`
		}{url, l.shown, l.tenant, names})
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
		return fail(err)
	}
	s.feed.begin(nil)
	polled := make(chan error, 1)
	go func() {
		defer cancel()
		polled <- s.pollStatus(ctx)
	}()
	err = servePages(ctx, listener, page)
	cancel()
	return ended(cmd.Context(), fail(errors.Join(err, <-polled, s.feed.end())))
}

// url is what a browser opens.
func (f *uiFlags) url(l net.Listener, key string) string {
	return "http://" + l.Addr().String() + strings.TrimSuffix(f.prefix, "/") + "/#key=" + key
}

// servePages serves until the context ends, and ends all streams before it returns.
func servePages(ctx context.Context, l net.Listener, page http.Handler) error {
	server := http.Server{
		Handler: page, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangUp)
	defer cancel()
	if err := server.Shutdown(patient); err != nil { // Some answer is not over.
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// publishEntry hands an entry to a page.
func publishEntry(page *web.Page, e show.Entry) {
	switch event := e.Event.(type) {
	case show.Standing:
		page.PublishStatus(event.Status)
	case *monitor.Line:
		page.PublishEvent(event)
	case monitor.Event:
		l := event.Line()
		l.Time, l.Synchronizer = e.At, e.From
		page.PublishEvent(&l)
	case show.Notice:
		page.PublishNotice(e.At, e.From, string(event))
	case show.Skipped:
		page.PublishNotice(e.At, e.From, fmt.Sprintf("%d events are missing here: too many came at once", uint64(event)))
	}
}

// explainer asks synchronizers why. A page calls it on one goroutine at a time.
type explainer struct{ asker ask.Asker }

// Explain implements web.Source.
func (x *explainer) Explain(ctx context.Context, name, group, predicate string, _ time.Time) (*monitor.Explanation, error) {
	e := &monitor.Explanation{}
	err := x.asker.Ask(ctx, synchronizer.Presence{Synchronizer: name, Group: group}, wire.VerbWhy, predicate, e)
	return e, err
}

// change sets parameters of a synchronizer, or has it read its configuration again.
func (x *explainer) change(ctx context.Context, c *web.Change) ([]string, error) {
	verb, text := wire.VerbReload, []byte{}
	if !c.Reload {
		var err error
		verb = wire.VerbSet
		if text, err = json.Marshal(&synchronizer.Setting{Values: c.Values, Reset: c.Reset, By: caller() + ", by pegasus ui"}); err != nil {
			return nil, err
		}
	}
	var changed synchronizer.Changed
	err := x.asker.Ask(ctx, synchronizer.Presence{Synchronizer: c.Synchronizer, Group: c.Group}, verb, string(text), &changed)
	return changed.Changes, err
}

// work tells how the tasks of all groups stand.
func (x *explainer) work(ctx context.Context) (string, error) {
	present, err := x.asker.Present(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, p := range present {
		var status monitor.Status
		err := x.asker.Ask(ctx, p, wire.VerbStatus, "", &status)
		var space *show.Space
		if err == nil {
			space = &show.Space{Synchronizer: status.Synchronizer, Group: status.Group, Epoch: status.Epoch}
			space.Members, space.Silent, err = x.asker.Space(ctx, &status)
		}
		if err != nil {
			fmt.Fprintf(&text, "%s: %v\n\n", show.Printable(p.Synchronizer), err)
			continue
		}
		text.WriteString(show.SpaceText(space) + "\n")
	}
	return text.String(), nil
}

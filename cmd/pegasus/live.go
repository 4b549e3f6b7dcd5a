package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/ask"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/loopkey"
	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

// liveHelp is what the commands have in common that ask a running synchronizer.
const liveHelp = `Without --nats, NATS_URL and --context the command asks the newest run of this user on
this machine that still runs, as pegasus run notes it. For other runs, such as the
examples, give --nats URL and --tenant NAME. docs/connecting.md tells how to give
credentials. The command asks all synchronizers of the tenant, or only --synchronizer.
Thread-level synchronizers run inside their members and cannot be asked.`

// liveFlags say whom to ask.
type liveFlags struct {
	connection

	tenant, synchronizer string
	json                 bool
}

func (f *liveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.connection.add(cmd, "`URL` of the NATS server of the run (default NATS_URL, the URL of --context, or the URL of the last local run)", "`NAME` to show to the server (default NATS_USER)")
	flags.StringVar(&f.tenant, "tenant", "", "`NAME` of the run's tenant (default: the tenant of the local run, or default)")
	flags.StringVar(&f.synchronizer, "synchronizer", "", "ask only this `SYNCHRONIZER` (default all of the tenant that answer within 0.3 s)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object a line")
}

// live asks the synchronizers of a run.
type live struct {
	bus    *bus.Bus
	asker  ask.Asker
	tenant string
	only   string // the one to ask; empty: all
	shown  string // the server's URL
	from   string // where that comes from
}

// open connects to the run that the flags name. It reports a run that has died on
// stderr.
func (f *liveFlags) open(ctx context.Context, stderr io.Writer, o bus.Options) (*live, error) {
	for what, name := range map[string]string{"--tenant": f.tenant, "--synchronizer": f.synchronizer} {
		if name == "" {
			continue
		}
		if err := wire.CheckToken(what, name); err != nil {
			return nil, err
		}
	}
	at, err := f.find(connect.FromEnv(), stderr)
	if err != nil {
		return nil, err
	}
	l := &live{tenant: cmp.Or(f.tenant, "default"), only: f.synchronizer}
	hint := ""
	if at.URL == "" {
		run, notes, err := lastRun()
		for _, n := range notes {
			_, _ = fmt.Fprintln(stderr, "pegasus: "+n)
		}
		if err != nil {
			return nil, fail(err)
		}
		l.tenant = cmp.Or(f.tenant, run.Tenant)
		hint = fmt.Sprintf(" (that is the run of process %d, noted in %s)", run.PID, run.file)
		there := connection{f.Settings}
		there.URL = run.URL
		if at, err = there.find(run.environment(), stderr); err != nil {
			return nil, err
		}
		if run.Secured && at.Identity() == "" {
			return nil, fail(fmt.Errorf("the run of process %d at %s wants credentials: give --user and --password-file", run.PID, run.URL))
		}
	}
	l.shown, l.from = at.shown(), at.From
	o.Name, o.ConnectTimeout, o.Extra = "pegasus", 2*time.Second, at.options
	if l.bus, err = bus.Dial(ctx, at.URL, o); err != nil {
		return nil, fail(fmt.Errorf("%w%s", at.Explain(err), hint))
	}
	l.asker = ask.Asker{Bus: l.bus, Tenant: l.tenant, Person: at.Person()}
	return l, nil
}

func (l *live) close() error { return l.bus.Close() }

// who finds the synchronizers to ask, in the order of their names.
func (l *live) who(ctx context.Context) ([]synchronizer.Presence, error) {
	all, err := l.asker.Present(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, l.nobody()
	}
	if l.only == "" {
		return all, nil
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Synchronizer)
	}
	chosen := slices.DeleteFunc(all, func(p synchronizer.Presence) bool { return p.Synchronizer != l.only })
	if len(chosen) > 0 {
		return chosen, nil
	}
	hint := ""
	if near := nearest.Name(l.only, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	return nil, fmt.Errorf("no synchronizer %q of tenant %q runs on the NATS server at %s: %sthere run %s", l.only, l.tenant, l.shown, hint, strings.Join(names, ", "))
}

// nobody says that no synchronizer answers, and who of this host is noted to run there.
func (l *live) nobody() error {
	dir, _ := loopkey.Dir() // Without notes nothing is known.
	files, _ := filepath.Glob(filepath.Join(dir, "run-*.json"))
	for _, file := range files {
		if r, err := readRun(file); err == nil && r.URL == l.shown && r.Tenant == l.tenant && processLives(r.PID) {
			return fmt.Errorf("no synchronizer of tenant %q answers on the NATS server at %s, though process %d of this host is noted to run one there: it is stopped or hangs, or stands by and does not lead yet", l.tenant, l.shown, r.PID)
		}
	}
	return fmt.Errorf("no synchronizer of tenant %q runs on the NATS server at %s: check %s and --tenant", l.tenant, l.shown, l.from)
}

// each calls a function for every synchronizer of the run, and returns the errors of all calls.
func (f *liveFlags) each(cmd *cobra.Command, do func(ctx context.Context, l *live, p synchronizer.Presence) error) (errs []error) {
	ctx := cmd.Context()
	l, err := f.open(ctx, cmd.ErrOrStderr(), bus.Options{})
	if err != nil {
		return []error{err}
	}
	defer l.close() //nolint:errcheck // All answers are there.
	all, err := l.who(ctx)
	if err != nil {
		return []error{fail(err)}
	}
	for _, p := range all {
		if err := do(ctx, l, p); err != nil {
			errs = append(errs, fail(err))
		}
	}
	if n := l.asker.Strange; n > 0 && len(errs) == 0 { // Else the error says it.
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "pegasus: %s came that no synchronizer sends as an answer, and %s ignored: permit only synchronizers to subscribe to ctl\n", show.Count(n, "message"), wasWere(n))
	}
	return errs
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// answers are the answers of the run's synchronizers to a question, and why other
// synchronizers gave none.
func answers[A any](cmd *cobra.Command, f *liveFlags, verb wire.Verb, text string) (list []*A, err error) {
	errs := f.each(cmd, func(ctx context.Context, l *live, p synchronizer.Presence) error {
		a := new(A)
		if err := l.asker.Ask(ctx, p, verb, text, a); err != nil {
			return err
		}
		list = append(list, a)
		return nil
	})
	if verb == wire.VerbWhy && len(list) > 0 { // Another synchronizer of the run has the predicate.
		errs = slices.DeleteFunc(errs, func(err error) bool {
			_, refused := errors.AsType[*ask.RefusedError](err)
			return refused
		})
	}
	return list, errors.Join(errs...)
}

// printAnswers prints them, as lines of JSON or as texts with an empty line between, and
// returns err unless it cannot.
func printAnswers[A any](cmd *cobra.Command, f *liveFlags, list []A, text func(A) string, err error) error {
	texts, between := make([]string, len(list)), "\n"
	if f.json {
		text, between = func(a A) string { return show.JSONLine(a) }, ""
	}
	for i, a := range list {
		texts[i] = text(a)
	}
	if _, broken := io.WriteString(cmd.OutOrStdout(), strings.Join(texts, between)); broken != nil {
		return fail(broken)
	}
	return err
}

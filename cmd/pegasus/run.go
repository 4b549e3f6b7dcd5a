package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/synchronizer"
)

const runHelp = `run starts the synchronizers of a configuration file and prints what they do:
epochs, predicates that fire, the result of each signal, members that were
lost. Thread-level synchronizers run inside the members and not here. The first
line on stdout is the URL that members join at.

Without --nats, NATS_URL and the URL of a --context it starts a NATS server inside
this process, on 127.0.0.1, at a random free port. Programs of this user connect
without further settings, by a key in a file that only this user can read; --open lets
any user of this machine connect. --listen chooses the address. An address that other
machines can reach is refused without --keys, or --user and --password-file. Without
TLS, which --keys can have, the password and all messages are sent in clear text.

--keys DIR admits the users of a directory that "pegasus keys" has made, each to the
subjects of its role, with TLS if the directory has a certificate. The run connects
with DIR/SYNCHRONIZER.creds. pegasus reload, or SIGHUP, reads DIR again. If DIR is
broken, it is refused and the old keys remain valid.

--jetstream DIR gives the server inside this process JetStream. It keeps its streams
in DIR, and the next run with DIR finds them again.

--journal DIR records all inputs of the synchronizers, for "pegasus replay".

The directory --state keeps the term of a synchronizer, a number that rises with each
run. Members refuse an earlier term. Without the directory, the synchronizer learns
the term from members that run already.

--http serves metrics for Prometheus (/metrics) and health (/livez, /readyz) at
an address. It answers requests for IP addresses, localhost and the names of
--http-host. With --http-key-file a request needs the key. An address that other
machines can reach is refused without a key.

pegasus reload, or SIGHUP, reads the configuration file again. Either the run follows
the new file without a restart and prints the differences, or it refuses the whole
file and keeps the old configuration.

--resume FILE continues from the journal FILE, at the point where the last run was
ended or killed.

--standby waits until the process that runs the same synchronizers on the server of
--nats has ended. Then this process takes over with the state that the other sent it.

pegasus status, why and watch ask the run while it runs. They find its URL in a file
of this user, which has no credentials.

SIGINT (Ctrl-C) or SIGTERM ends the run within two seconds.

Exit codes: 0 ended by a signal, 1 failure (a faulty configuration, a value of
--set that the configuration does not allow, a server that cannot be reached, a
silent member where the policy is to fail), 2 wrong usage.`

const runExample = `  pegasus run pegasus.yaml
  pegasus run pegasus.yaml --listen 127.0.0.1:4222 --members 5
  pegasus run pegasus.yaml --nats nats://nats.example:4222 --tenant blue
  pegasus run pegasus.yaml --listen 0.0.0.0:4222 --keys keys
  pegasus run pegasus.yaml --listen 0.0.0.0:4222 --user team --password-file secret.txt
  pegasus run pegasus.yaml --journal journals
  pegasus run pegasus.yaml --json | jq 'select(.event == "fired")'`

// runFlags are the flags of run.
type runFlags struct {
	connection

	listen        string
	open          bool
	keys, ui      string
	jetstream     *pflag.Flag // nil: the command has none
	name, tenant  string
	timeline      string
	pages         pageFlags
	members, set  []string
	journal       string
	journalLimit  int64
	resume        string
	state         *pflag.Flag
	standby       bool
	verbose, json bool
	predicates    []string
}

// maxJournal bounds --journal-limit, in MiB.
const maxJournal = 1 << 20

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:               "run CONFIG",
		Short:             "Run the synchronizers of a configuration",
		Long:              runHelp,
		Example:           runExample,
		Args:              oneArgument("run needs a configuration file: pegasus run pegasus.yaml", "run takes one configuration file"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.add(cmd, "members use the same", "record every input of the synchronizers in `DIR`, one file each, for replay",
		"largest size of a journal in `MIB`; at the limit the journal ends, and the run continues", "also print every change of a verdict, firings that only set memory, and every refused input")
	addPredicate(cmd, &f.predicates)
	f.pages.add(flags)
	flags.String("jetstream", "", "give the server inside this process JetStream, with its streams in `DIR` (default no JetStream)")
	f.jetstream = flags.Lookup("jetstream")
	flags.StringVar(&f.name, "name", "", "run only this `SYNCHRONIZER` (default all that are not thread-level)")
	flags.StringArrayVar(&f.set, "set", nil, "give a parameter of the configuration a value instead of its default, `NAME=VALUE`; once for each parameter")
	flags.StringSliceVar(&f.members, "members", nil, "await `N` members before the first epoch, instead of the number in the file; also NAME=N")
	flags.StringVar(&f.timeline, "timeline", "", "compare hosts by `TIME`: utc or utc-smeared (default the clock of this host)")
	return cmd
}

// add declares the flags that run and program run have in common. The texts differ
// between the two.
func (f *runFlags) add(cmd *cobra.Command, tenant, journal, limit, verbose string) {
	f.connection.add(cmd, "use the NATS server at `URL` instead of a server inside this process (default NATS_URL, or the URL of --context)", "`NAME` that clients of the server show")
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "`HOST:PORT` for the server inside this process (default 127.0.0.1 and a free port)")
	flags.StringVar(&f.ui, "ui", "", "serve the page of pegasus ui for this run at `ADDRESS` of the loopback interface (without one: any free port)")
	flags.Lookup("ui").NoOptDefVal = "127.0.0.1:0"
	flags.StringVar(&f.keys, "keys", "", "admit to the server inside this process only the users of `DIR`, which pegasus keys makes")
	flags.BoolVar(&f.open, "open", false, "let any user of this machine connect to the server inside this process (default only programs of this user)")
	flags.StringVar(&f.tenant, "tenant", "default", "`NAME` that keeps runs on one server apart; "+tenant)
	flags.StringVar(&f.journal, "journal", "", journal)
	flags.StringVar(&f.resume, "resume", "", "continue from the journal `FILE` of the last run of the same synchronizer or program")
	flags.BoolVar(&f.standby, "standby", false, "wait until the process that runs the same on the server of --nats ends or is no longer heard, then take over")
	flags.Int64Var(&f.journalLimit, "journal-limit", synchronizer.DefaultJournalLimit>>20, limit)
	flags.String("state", "", "`DIR` for the term, which outlives the run; none stores no term (default the state folder of this user)")
	f.state = flags.Lookup("state")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, verbose)
	flags.BoolVar(&f.json, "json", false, "print one JSON object a line")
}

// run is the whole subcommand: it checks everything before it starts anything.
func (f *runFlags) run(ctx context.Context, file string, stdout, stderr io.Writer) error {
	switch clocksync.Timeline(f.timeline) {
	case "", clocksync.UTC, clocksync.SmearedUTC:
	default:
		return fmt.Errorf("--timeline %q: use %s or %s, or leave it out", f.timeline, clocksync.UTC, clocksync.SmearedUTC)
	}
	where, err := f.server(stderr)
	if err != nil {
		return err
	}
	if err := f.together(where); err != nil {
		return err
	}
	guard, err := f.pages.guard()
	if err != nil {
		return err
	}
	cfg, levels, err := f.load(file, stderr)
	if err != nil {
		return err
	}
	if err := (&show.Firings{Predicates: f.predicates}).Check(predicatesOf(levels)); err != nil {
		return err
	}
	if f.resume != "" && len(levels) != 1 {
		return fmt.Errorf("--resume continues one synchronizer, and %s has %d to run: choose one with --name", file, len(levels))
	}
	operators, err := observeAt(guard)
	if err != nil {
		return fail(err)
	}
	defer operators.close() //nolint:errcheck,contextcheck // Questions were answered, or not; the end has a time of its own.
	page, err := newOwnPage(f.ui)
	if err != nil {
		return err
	}
	defer page.close()
	told := newFeed(stdout, rendering(f.json))
	url, stop, err := where.start(told, levels) //nolint:contextcheck // The server lives until stop.
	if err != nil {
		return fail(err)
	}
	defer stop()
	s := session{
		flags: f, file: file, cfg: cfg, levels: levels, url: url, feed: told,
		journals:  journals{dir: f.journal, resume: f.resume, limit: f.journalLimit << 20, start: time.Now()},
		operators: operators, page: page,
	}
	s.changed, s.keys = s.load, where.reread
	err = s.run(ctx, stderr)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // Ended before it had begun.
	}
	return fail(err)
}

func addPredicate(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVar(names, "predicate", nil, "print only the lines of this `PREDICATE`; several by commas (default all, without firings that only set memory)")
}

func predicatesOf(levels []synchronizer.Level) (names []string) {
	for i := range levels {
		names = append(names, levels[i].Predicates...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// together refuses flags that exclude each other.
func (f *runFlags) together(where *server) error {
	switch {
	case f.standby && where.own:
		return errors.New("--standby waits for another process on the same server: give that with --nats")
	case f.resume != "" && f.journal != "":
		return errors.New("--resume carries on the journal that it reads: leave out --journal")
	case f.resume != "" && f.standby:
		return errors.New("--resume continues at once, and --standby waits for another process: leave one of the two out")
	}
	return nil
}

// rendering is JSON with --json, or lines for people.
func rendering(asJSON bool) func(show.Entry) string {
	if asJSON {
		return show.Entry.JSON
	}
	return show.Entry.Text
}

// load reads the configuration and finds the levels to run.
func (f *runFlags) load(file string, stderr io.Writer) (*synchronizer.Config, []synchronizer.Level, error) {
	overrides, alone, err := f.overrides()
	if err != nil {
		return nil, nil, err
	}
	params, err := assignments(f.set)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := synchronizer.LoadConfig(file, append(params, overrides...)...)
	if err != nil {
		return nil, nil, told(stderr, err)
	}
	levels, err := f.choose(file, cfg.Levels())
	if err != nil || alone == 0 {
		return cfg, levels, err
	}
	if len(levels) > 1 {
		return nil, nil, fmt.Errorf("--members %d: %s has several synchronizers: write --members %s=%d", alone, file, levels[0].Name, alone)
	}
	f.members = []string{levels[0].Name + "=" + strconv.Itoa(alone)}
	return f.load(file, stderr)
}

// overrides reads --members: those with a name, and a number alone, 0 if there
// is none.
func (f *runFlags) overrides() (named []synchronizer.Override, alone int, err error) {
	for _, m := range f.members {
		name, number, ok := strings.Cut(m, "=")
		if !ok {
			name, number = "", m
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || ok && name == "" {
			return nil, 0, fmt.Errorf("--members %s: give a number of at least 1, or NAME=N for one of several synchronizers", m)
		}
		if ok {
			named = append(named, synchronizer.Members(name, n))
			continue
		}
		if len(f.members) > 1 {
			return nil, 0, fmt.Errorf("--members %s stands beside others: write NAME=N for each", m)
		}
		alone = n
	}
	return named, alone, nil
}

// choose picks the levels that run here: all but thread-level ones, or the one
// of --name.
func (f *runFlags) choose(file string, levels []synchronizer.Level) ([]synchronizer.Level, error) {
	levels = slices.DeleteFunc(levels, func(l synchronizer.Level) bool { return l.Group == "" })
	if f.name == "" {
		return levels, nil
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		if names[i] = l.Name; l.Name == f.name {
			return levels[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("--name %s: %s has no such synchronizer to run: it has %s", f.name, file, strings.Join(names, ", "))
}

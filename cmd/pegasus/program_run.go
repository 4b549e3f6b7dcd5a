package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const programRunHelp = `run carries out a program: it starts the synchronizer beside it, waits for the
nodes that "pegasus node" or agent.JoinNode join to its group, starts blocks on
their processors, and tells what happens until the program has ended. Where the
file declares no synchronizer, the group is "processors".

Without --nats it starts a NATS server inside this process, as "pegasus run" does.
Two runs share one server under different tenants.

--journal DIR records what the run is told, each thing before anything is done
that rests on it. --resume FILE goes on from such a record after the process was
ended: blocks that had ended are not run again, and those under way are found
again on their nodes. The program must not have been changed.

SIGHUP reads the file again. Predicates, memory, silence and the numbers of members
may have changed, and are followed between two steps; where the program itself is
another one the file is refused whole, and the run goes on as it was.

SIGINT (Ctrl-C) or SIGTERM ends it within two seconds: the program is cancelled,
or, with a journal, left as it is, to go on with --resume.

--dry-run starts nothing and connects to nothing: it tells what would be started
where, which predicates decide it, and which blocks have threads.

Exit codes: 0 the program is done, 1 it failed, was cancelled or was left, or the
file is refused or a server cannot be reached, 2 wrong usage.`

const programRunExample = `  pegasus program run --dry-run program.yaml
  pegasus program run program.yaml --listen 127.0.0.1:4222
  pegasus node --nats nats://127.0.0.1:4222 --group processors --name n1 --block resize=./resize.sh
  pegasus program run program.yaml --nats nats://nats.example:4222 --tenant blue --journal journals
  pegasus program run program.yaml --nats nats://nats.example:4222 --tenant blue --resume journals/20260102T030405.000000Z-gsync.journal.jsonl`

// programFlags are the flags of program run.
type programFlags struct {
	runFlags

	dry    bool
	resume string
}

func newProgramRun() *cobra.Command {
	var f programFlags
	cmd := &cobra.Command{
		Use:               "run FILE",
		Short:             "Carry out a program, or tell what that would do",
		Long:              programRunHelp,
		Example:           programRunExample,
		Args:              oneFile("program run"),
		ValidArgsFunction: configFiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			// It is read once: what was checked is what runs, and it may be a pipe.
			cfg, err := synchronizer.LoadProgram(args[0])
			switch {
			case err != nil:
				return told(cmd.ErrOrStderr(), err)
			case f.dry:
				return fail(rehearse(cmd.OutOrStdout(), cfg.Program()))
			}
			return f.run(cmd, args[0], cfg)
		},
	}
	flags := cmd.Flags()
	f.add(flags, "nodes use the same", "record the inputs to a file in `DIR`, for --resume and replay",
		"`MIB` that the journal may have; at the limit the run ends", "tell every change of a verdict, every signal and every refusal too")
	flags.BoolVar(&f.dry, "dry-run", false, "start nothing, tell what would be started")
	flags.StringVar(&f.resume, "resume", "", "go on from the journal `FILE` of a run that was ended")
	return cmd
}

// programReady is the first entry of a run: nodes can join.
type programReady struct {
	url     string
	tenant  string
	program string
	level   synchronizer.Level
}

// String tells a newcomer what to do next.
func (r programReady) String() string {
	tenant := ""
	if r.tenant != "default" {
		tenant = " --tenant " + r.tenant
	}
	return fmt.Sprintf("%s\n%s: %s awaits %s of group %s. Nodes join with: pegasus node --nats %s --group %s%s --name n1 --block NAME=COMMAND\n",
		r.url, r.program, r.level.Name, count(r.level.Count, "processor"), r.level.Group, r.url, r.level.Group, tenant)
}

// canceling is how long a program that is ended by a signal may take to end its
// blocks.
const canceling = 1500 * time.Millisecond

// run carries out the program. It checks everything before it starts anything.
func (f *programFlags) run(cmd *cobra.Command, path string, cfg *synchronizer.Config) error {
	ctx := cmd.Context()
	if f.journal != "" && f.resume != "" {
		return errors.New("--resume carries on the journal that it reads: leave out --journal")
	}
	where, err := f.server()
	if err != nil {
		return err
	}
	url, stop, err := where.start()
	if err != nil {
		return fail(err)
	}
	defer stop()
	r := programRun{
		flags: f, file: path, level: cfg.Levels()[0], feed: newFeed(cmd.OutOrStdout(), rendering(f.json)),
		ended:    make(chan monitor.ProgramEvent, 1),
		journals: journals{dir: f.journal, limit: f.journalLimit << 20, start: time.Now()},
	}
	return fail(r.run(ctx, cfg, url, cfg.Program().Program().Name))
}

// programRun is a program under way.
type programRun struct {
	flags    *programFlags
	file     string
	level    synchronizer.Level
	feed     *feed
	ended    chan monitor.ProgramEvent
	journals journals
}

func (r *programRun) run(ctx context.Context, cfg *synchronizer.Config, url address, name string) error {
	hangups, stop := hangups()
	defer stop()
	w := &watcher{name: r.level.Name, feed: r.feed, verbose: r.flags.verbose}
	opt := synchronizer.Options{
		Tenant: r.flags.tenant, Logger: w.logger(), Name: r.level.Name, JournalLimit: r.journals.limit,
		Observe: func(e monitor.Event) {
			if p, ok := e.(monitor.ProgramEvent); ok && p.Kind == monitor.ProgramFinish {
				r.ended <- p
				return
			}
			w.observe(e)
		},
	}
	if r.flags.resume != "" {
		file, err := r.journals.takeUp(r.flags.resume)
		if err != nil {
			return err
		}
		opt.Resume = file
	} else if err := r.journals.add(&opt); err != nil {
		return err
	}
	s, err := synchronizer.Start(ctx, url.secret, cfg, opt)
	if err != nil {
		return errors.Join(err, r.journals.close())
	}
	r.feed.begin(programReady{url.shown, r.flags.tenant, name, r.level})
	err = r.wait(ctx, s, hangups)
	err = errors.Join(err, s.Close())
	r.feed.put(entry{time.Now(), r.level.Name, stopped{s.Stats()}})
	return errors.Join(err, r.journals.close(), r.feed.finish(ctx))
}

// wait returns when the program has ended: nil if it is done.
func (r *programRun) wait(ctx context.Context, s *synchronizer.Synchronizer, hangups <-chan os.Signal) error {
	for ctx.Err() == nil {
		select {
		case p := <-r.ended:
			return r.outcome(ctx, &p)
		case <-s.Done():
			return s.Err()
		case <-hangups:
			r.reload(s) //nolint:contextcheck // A reload bounds its own waits.
		case <-ctx.Done():
		}
	}
	if r.flags.journal != "" || r.flags.resume != "" {
		file := r.journals.files[0].Name()
		return fmt.Errorf("the program was left before its end: go on with --resume %s", file)
	}
	if err := s.CancelProgram("the run was ended by a signal"); err != nil {
		return err
	}
	select {
	case p := <-r.ended:
		return r.outcome(ctx, &p)
	case <-time.After(canceling):
		return errors.New("the program was cancelled, and some of its blocks have not ended yet")
	}
}

// reload has the synchronizer follow the file as it is now, if that is possible.
func (r *programRun) reload(s *synchronizer.Synchronizer) {
	cfg, err := synchronizer.LoadProgram(r.file)
	if err == nil {
		err = s.Reload(cfg)
	}
	if err != nil {
		r.feed.put(entry{time.Now(), "", kept(err.Error())})
	}
}

// outcome tells how the program has ended: nil if it is done. Of all that is told this
// is never left out.
func (r *programRun) outcome(ctx context.Context, p *monitor.ProgramEvent) error {
	r.feed.await(ctx, entry{time.Now(), r.level.Name, *p})
	if p.Outcome == program.Done {
		return nil
	}
	if p.Outcome == program.Failed {
		return errors.New("the program has failed: " + p.Reason)
	}
	return errors.New("the program was cancelled: " + p.Reason)
}

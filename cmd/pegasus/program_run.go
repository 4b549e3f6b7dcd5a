package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const programRunHelp = `run executes a program: it starts the synchronizer beside it, waits for the
nodes that "pegasus node" or agent.JoinNode join to its group, starts blocks on
their processors, and prints what happens until the program has ended. If the
file declares no synchronizer, the group is "processors".

Without --nats it starts a NATS server inside this process, as "pegasus run" does,
with --keys too.
Two runs share one server under different tenants.

--journal DIR records each input of the run before the run acts on it. --resume FILE
continues from a journal after the process was ended: blocks that had ended are not
run again, and blocks that still run are found again on their nodes. The program must
not have been changed.

--standby waits until the process that runs the same program on the server of --nats
has ended. Then this process takes over with the state that the other sent it. The
process that runs the program at its end prints the result.

pegasus reload, or SIGHUP, reads the file again. Predicates, memory, silence and the
numbers of members may have changed; the run follows them between two steps. If the
program itself has changed, the whole file is refused and the run continues as before.

SIGINT (Ctrl-C) or SIGTERM ends the run within two seconds. The program is cancelled;
with a journal it is left as it is, and --resume can continue it.

--dry-run starts nothing and connects to nothing. It prints which blocks would be
started where, which predicates decide it, and which blocks have threads.

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

	dry bool
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
			// The file is read once: the checked text runs, and the file may be a pipe.
			params, err := assignments(f.set)
			if err != nil {
				return err
			}
			cfg, err := synchronizer.LoadProgram(args[0], params...)
			switch {
			case err != nil:
				return told(cmd.ErrOrStderr(), err)
			case f.dry:
				_, err := io.WriteString(cmd.OutOrStdout(), show.Rehearsal(cfg.Program()))
				return fail(err)
			}
			return f.run(cmd, args[0], cfg)
		},
	}
	flags := cmd.Flags()
	f.add(cmd, "nodes use the same", "record every input of the run to a file in `DIR`, for --resume and replay",
		"largest size of the journal in `MIB`; at the limit the run ends", "also print every change of a verdict, every signal and every refusal")
	flags.StringArrayVar(&f.set, "set", nil, "give a parameter of the file a value instead of its default, `NAME=VALUE`; once for each parameter")
	flags.BoolVar(&f.dry, "dry-run", false, "start nothing, print what would be started")
	return cmd
}

// run carries out the program. It checks everything before it starts anything.
func (f *programFlags) run(cmd *cobra.Command, path string, cfg *synchronizer.Config) error {
	where, err := f.server(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := f.together(where); err != nil {
		return err
	}
	page, err := newOwnPage(f.ui)
	if err != nil {
		return err
	}
	defer page.close()
	told := newFeed(cmd.OutOrStdout(), rendering(f.json))
	url, stop, err := where.start(told, cfg.Levels()[:1])
	if err != nil {
		return fail(err)
	}
	defer stop()
	s := session{
		flags: &f.runFlags, file: path, program: cfg.Program().Program().Name, cfg: cfg, levels: cfg.Levels()[:1], url: url,
		changed: func(io.Writer) (*synchronizer.Config, error) {
			params, err := assignments(f.set)
			if err != nil {
				return nil, err
			}
			return synchronizer.LoadProgram(path, params...)
		},
		feed:      told,
		keys:      where.reread,
		operators: &observatory{},
		page:      page,
		ended:     make(chan monitor.ProgramEvent, 1),
		journals:  journals{dir: f.journal, resume: f.resume, limit: f.journalLimit << 20, start: time.Now()},
	}
	return fail(s.run(cmd.Context(), cmd.ErrOrStderr()))
}

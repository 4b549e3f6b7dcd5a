package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/ablation"
)

const ablateHelp = `ablate judges what was decided, or would have been, on the reports of a recorded
run: by the same strategy on two views of them, the global states that certainly
held and the newest report of each member. What was true at each instant is known
afterwards from the stamps of all reports, so wrong moves and wrong ends can be
counted.

JOURNAL is a journal of a synchronizer whose members ran on one host, as run
--journal writes it; of a directory it takes those of the newest run. Without a
section balance in the recorded configuration ends are judged only, with --stop and
--work.

Exit codes: 0 done, 1 failure (a journal that cannot be read or is refused), 2 wrong
usage.`

const ablateExample = `  go run ./examples/pool -journal pool.jsonl
  pegasus balance ablate pool.jsonl
  pegasus balance ablate pool.jsonl --strategy greedy
  pegasus balance ablate pool.jsonl --stop 'all(members, len(.tasks) == 0)'`

// ablateFlags are the flags of balance ablate.
type ablateFlags struct {
	strategy, stop, work string
	asJSON               bool
}

func newBalanceAblate() *cobra.Command {
	var f ablateFlags
	cmd := &cobra.Command{
		Use:     "ablate JOURNAL|DIR",
		Short:   "Judge decisions on consistent and on latest views of a recorded run",
		Long:    ablateHelp,
		Example: ablateExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return errors.New("balance ablate needs one journal: pegasus balance ablate pool.jsonl")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.strategy != "" && !slices.Contains(balance.Names, f.strategy) {
				return fmt.Errorf("--strategy %s: it is not one of %s", f.strategy, strings.Join(balance.Names, ", "))
			}
			return fail(f.run(args[0], cmd.OutOrStdout()))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.strategy, "strategy", "", "decide by this `NAME` of "+strings.Join(balance.Names, ", ")+" with its defaults (default: what was recorded)")
	flags.StringVar(&f.stop, "stop", "", "a `CONDITION` on the members by which the work would be ended (default: nobody has a load or a rest)")
	flags.StringVar(&f.work, "work", "", "a `CONDITION` on what was true under which there was work (default: somebody had a load or a rest, or a load was under way)")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object for each journal")
	return cmd
}

func (f *ablateFlags) run(path string, stdout io.Writer) error {
	files, err := journalFiles(path)
	if err != nil {
		return err
	}
	opt := ablation.Options{Stop: f.stop, Work: f.work}
	if f.strategy != "" {
		c := balance.Default()
		c.Strategy = f.strategy
		opt.Balance = &c
	}
	for _, file := range files {
		if err := f.file(file, opt, stdout); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (f *ablateFlags) file(path string, opt ablation.Options, stdout io.Writer) error {
	journal, err := os.Open(path)
	if err != nil {
		return err
	}
	defer journal.Close() //nolint:errcheck // Nothing was written.
	r, err := ablation.Run(journal, opt)
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err = io.WriteString(stdout, ablationText(r))
	return err
}

// ablationText is a table of both views.
func ablationText(r *ablation.Report) string {
	stop := "nobody has a load"
	if r.Stop != "" {
		stop = r.Stop
	}
	text := fmt.Sprintf("%s: %s by %s, %s, of which %d were with several members; it would end where %s\n",
		r.Synchronizer, count(r.Reports, "report"), count(r.Members, "member"), count(r.Loads, "load"), r.Moved, stop)
	rows := [][]string{{"VIEW", "VIEWS", "TORN", "OLD", "PLANS", "MOVES", "WRONG", "GONE", "NO GAIN", "ON TORN", "UNCLEAR", "ENDS", "WRONG ENDS"}}
	for i := range r.Views {
		v := &r.Views[i]
		row := []string{v.View}
		for _, n := range []int{v.Views, v.Torn, v.Old, v.Plans, v.Moves, v.Wrong, v.Gone, v.NoGain, v.WrongTorn, v.Unclear, v.Stops, v.WrongStops} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	text += tabulate(rows)
	if r.Differs > 0 {
		text += fmt.Sprintf("from line %d on this build comes to something else than was recorded: what is taken to be under way is not what was\n", r.Differs)
	}
	return text
}

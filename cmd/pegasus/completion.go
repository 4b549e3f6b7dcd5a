package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/synchronizer"
)

const completionHelp = `completion prints a script that makes a shell complete the subcommands, flags,
configuration files and names of synchronizers of pegasus.

Exit codes: 0 done, 1 the script could not be written, 2 wrong usage.`

const completionExample = `  source <(pegasus completion bash)
  pegasus completion bash > /etc/bash_completion.d/pegasus
  pegasus completion zsh > "${fpath[1]}/_pegasus"
  pegasus completion fish > ~/.config/fish/completions/pegasus.fish
  pegasus completion powershell | Out-String | Invoke-Expression`

// shells are the shells that completion knows, with the functions that write their scripts.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        (*cobra.Command).GenZshCompletion,
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
}

func newCompletion() *cobra.Command {
	names := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:                   "completion SHELL",
		Short:                 "Print the completion script for a shell",
		Long:                  completionHelp,
		Example:               completionExample,
		DisableFlagsInUseLine: true,
		ValidArgs:             names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return fmt.Errorf("completion takes the name of a shell: %s", strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return fail(shells[args[0]](cmd.Root(), cmd.OutOrStdout()))
		},
	}
}

// completeFlags says what the values of flags may be: files where nothing else is
// said.
func completeFlags(root *cobra.Command) {
	nothing := cobra.NoFileCompletions
	timelines := cobra.FixedCompletions([]string{string(clocksync.UTC), string(clocksync.SmearedUTC)}, cobra.ShellCompDirectiveNoFileComp)
	for command, flags := range map[string]map[string]cobra.CompletionFunc{
		"run": {
			"listen": nothing, "tenant": nothing, "http": nothing, "http-host": nothing, "timeline": timelines,
			"name":    completeLevels(func(l synchronizer.Level) string { return l.Name }),
			"members": completeLevels(func(l synchronizer.Level) string { return fmt.Sprintf("%s=%d", l.Name, l.Count) }),
		},
		"detect": {
			"members": nothing, "k": nothing, "where": nothing, "when": nothing, "schema": nothing,
		},
		"health": {"http": nothing, "timeout": nothing},
	} {
		cmd, _, err := root.Find([]string{command})
		for flag, complete := range flags {
			if err == nil {
				err = cmd.RegisterFlagCompletionFunc(flag, complete)
			}
		}
		if err != nil {
			panic(fmt.Sprintf("pegasus: completion of %s: %v", command, err))
		}
	}
	for _, cmd := range root.Commands() {
		if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && !strings.Contains(cmd.Use, " ") {
			cmd.ValidArgsFunction = nothing
		}
	}
}

// completeLevels names the synchronizers of the configuration that stands on the
// command line already. A file that is refused has none.
func completeLevels(name func(synchronizer.Level) string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cfg, err := synchronizer.LoadConfig(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []string
		for _, l := range slices.DeleteFunc(cfg.Levels(), func(l synchronizer.Level) bool { return l.Group == "" }) {
			list = append(list, name(l))
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what is known of the build.
type version struct {
	Version  string `json:"version"` // of the module, "(devel)" where the build does not know it
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the tree had changes beside the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func ownVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) version {
	v := version{Version: info.Main.Version, Go: info.GoVersion, OS: runtime.GOOS, Arch: runtime.GOARCH}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String gives one line.
func (v version) String() string {
	return fmt.Sprintf("pegasus %s %s %s/%s", v.build(), v.Go, v.OS, v.Arch)
}

// build is the version with its commit.
func (v version) build() string {
	commit := ""
	if v.Commit != "" {
		commit = " commit " + v.Commit[:min(12, len(v.Commit))]
	}
	if v.Modified {
		commit += " with changes"
	}
	return v.Version + commit
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "version prints one line: the version, the commit where it is known, the Go\nrelease and the platform of the build.",
		Example: "  pegasus version\n  pegasus version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := ownVersion()
			if asJSON {
				return fail(json.NewEncoder(cmd.OutOrStdout()).Encode(v))
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return fail(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// next is the release that this tree becomes. "make release" reads it here.
const next = "v0.1.0"

// tag is next in the programs that "make release" builds.
var tag string

// released matches the version of a module that was installed from a release.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$`)

// version is what is known of the build.
type version struct {
	Version  string `json:"version"` // a release, or next with "-dev"
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the tree had changes beside the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func ownVersion() version { return versionOf(buildInfo()) }

func buildInfo() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{GoVersion: runtime.Version()}
}

func versionOf(info *debug.BuildInfo) version {
	v := version{Version: next + "-dev", Go: info.GoVersion, OS: runtime.GOOS, Arch: runtime.GOARCH}
	switch {
	case tag != "":
		v.Version = tag
	case released.MatchString(info.Main.Version):
		v.Version = info.Main.Version
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

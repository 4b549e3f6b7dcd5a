// Package version tells which release a program is of.
package version

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
)

// Next is the release that this tree becomes. "make release" reads it here.
const Next = "v0.1.0"

// tag is Next in the programs that "make release" builds.
var tag string

// released matches the version of a module that was installed from a release.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$`)

// Version is what is known of a build.
type Version struct {
	Version  string `json:"version"`            // a release, or Next with "-dev"
	Commit   string `json:"commit,omitempty"`   // empty where it is not known
	Modified bool   `json:"modified,omitempty"` // the tree had changes beside the commit
	Go       string `json:"go"`                 // the release of Go
	OS       string `json:"os"`                 // as GOOS
	Arch     string `json:"arch"`               // as GOARCH
}

// Own is that of this program.
func Own() Version { return Of(Info()) }

// Info is how this program was built, as far as it is known.
func Info() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{GoVersion: runtime.Version()}
}

// Of reads the version of a build.
func Of(info *debug.BuildInfo) Version {
	v := Version{Version: Next + "-dev", Go: info.GoVersion, OS: runtime.GOOS, Arch: runtime.GOARCH}
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
func (v Version) String() string {
	return fmt.Sprintf("pegasus %s %s %s/%s", v.Build(), v.Go, v.OS, v.Arch)
}

// Build is the version with its commit.
func (v Version) Build() string {
	commit := ""
	if v.Commit != "" {
		commit = " commit " + v.Commit[:min(12, len(v.Commit))]
	}
	if v.Modified {
		commit += " with changes"
	}
	return v.Version + commit
}

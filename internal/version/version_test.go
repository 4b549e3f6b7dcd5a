package version_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/gopegasus/pegasus/internal/version"
)

func TestVersionOf(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for want, info := range map[string]debug.BuildInfo{
		"pegasus v0.1.0-dev go1.26.0 " + platform:  {GoVersion: "go1.26.0"},
		"pegasus v0.1.0-dev go1.26.1 " + platform:  {GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"}},
		"pegasus v0.1.0-dev go1.26.2 " + platform:  {GoVersion: "go1.26.2", Main: debug.Module{Version: "v0.0.0-20261126000000-0123456789ab+dirty"}},
		"pegasus v0.2.0-rc.1 go1.26.0 " + platform: {GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.2.0-rc.1"}},
		"pegasus v0.1.0 go1.26.0 " + platform:      {GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"}},
		"pegasus v0.1.0 commit 0123456789ab with changes go1.26.0 " + platform: {
			GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
		},
		"pegasus v0.1.0 commit 01 go1.26.0 " + platform: {
			GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "01"}, {Key: "vcs.modified", Value: "false"}},
		},
	} {
		if got := version.Of(&info).String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

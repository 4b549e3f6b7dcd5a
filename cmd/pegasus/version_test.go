package main

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/gopegasus/pegasus/internal/version"
)

func TestVersion(t *testing.T) {
	want := version.Own()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		code, stdout, stderr := execute(t, args...)
		if code != exitOK || stdout != want.String()+"\n" || stderr != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	code, stdout, _ := execute(t, "version", "--json")
	var got version.Version
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || got != want {
		t.Errorf("exit %d, %+v, %v; want %+v", code, got, err, want)
	}
	if want.Go != runtime.Version() {
		t.Errorf("the build says %s, the runtime %s", want.Go, runtime.Version())
	}
}

package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/pflag"
)

// noState is what --state says where nothing is to be kept.
const noState = "none"

// stateDir is the directory of --state, empty for none. Without the flag it is the state
// folder of this user; if that cannot be made, there is none, and the error says why.
func stateDir(flag *pflag.Flag) (string, error) {
	if dir := flag.Value.String(); flag.Changed {
		if dir == noState {
			dir = ""
		}
		return dir, nil
	}
	dir, err := userState()
	if err == nil {
		dir = filepath.Join(dir, "pegasus")
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	return dir, nil
}

// userState is where programs of this user keep data that is not configuration and should
// not be lost.
func userState() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		return os.UserCacheDir() // %LocalAppData%
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}

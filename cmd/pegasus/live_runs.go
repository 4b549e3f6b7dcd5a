package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/loopkey"
)

// localRun is what a run notes of itself for the commands that ask it. It has no
// credentials.
type localRun struct {
	URL     string    `json:"url"`
	Tenant  string    `json:"tenant"`
	Own     bool      `json:"own"`     // the server is inside the run
	Secured bool      `json:"secured"` // it is, and wants credentials
	Keys    bool      `json:"keys"`    // it is, and admits the users of --keys
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`

	file string
}

// noteRun writes a file of its own for a run, which only this user can read, and
// returns what removes it. That may be called though there is an error.
func noteRun(r *localRun) (forget func(), err error) {
	forget = func() {}
	dir, err := loopkey.Dir()
	if err != nil {
		return forget, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return forget, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return forget, err
	}
	// A reader sees the whole file or none.
	name := filepath.Join(dir, fmt.Sprintf("run-%d-%d.json", r.PID, r.Started.UnixNano()))
	if err = os.WriteFile(name+".new", append(text, '\n'), 0o600); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return forget, errors.Join(err, os.Remove(name+".new"))
	}
	return func() { _ = os.Remove(name) }, nil // Whoever finds it later removes it.
}

// lastRun finds the newest run of this user that has not ended. The notes tell of runs that
// ended without a word; their files are removed.
func lastRun() (r *localRun, notes []string, err error) {
	dir, err := loopkey.Dir()
	if err != nil {
		return nil, nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "run-*.json"))
	if err != nil {
		return nil, nil, err
	}
	var runs []*localRun
	for _, file := range files {
		one, err := readRun(file)
		switch {
		case errors.Is(err, os.ErrNotExist): // It has just ended.
		case err != nil:
			notes = append(notes, fmt.Sprintf("%s is not the note of a run and is passed over: %v", file, err))
		case !processLives(one.PID):
			notes = append(notes, fmt.Sprintf("the run of process %d at %s, begun %s, has ended without a word; its note %s is removed",
				one.PID, one.URL, one.Started.Local().Format(time.DateTime), file))
			_ = os.Remove(file) // The next command says so again.
		default:
			runs = append(runs, one)
		}
	}
	if len(runs) == 0 {
		return nil, notes, fmt.Errorf("no local run found, none is noted in %s: start one with `pegasus run`, or give the server with --nats URL", dir)
	}
	return slices.MaxFunc(runs, func(a, b *localRun) int { return a.Started.Compare(b.Started) }), notes, nil
}

func readRun(file string) (*localRun, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &localRun{file: file}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	if r.URL == "" || r.PID <= 0 {
		return nil, errors.New("key url or pid is missing")
	}
	return r, nil
}

// environment is what of the environment counts for the run. What it says of TLS is not for a
// server inside the run.
func (r *localRun) environment() connect.Settings {
	e := connect.FromEnv()
	switch {
	case r.Secured:
		return connect.Settings{User: e.User, Password: e.Password}
	case r.Keys:
		return connect.Settings{Creds: e.Creds, CA: e.CA}
	case r.Own:
		return connect.Settings{}
	}
	return e
}

// processLives is false for a process that certainly has ended.
func processLives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release() //nolint:errcheck // Nothing depends on it.
	return !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

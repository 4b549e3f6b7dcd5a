package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// journal is the coordinator's own record of a run: one JSON object a line, with
// the seconds since the start, the event, and what belongs to it. The nil
// journal records nothing.
type journal struct {
	start time.Time
	mu    sync.Mutex
	file  *os.File
	err   error // the first failure to write
}

// openJournal begins the record of a run in a directory, which it makes.
func openJournal(dir, run string, start time.Time) (*journal, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // The nil journal records nothing.
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("journal: %w: give another directory with -journal", err)
	}
	f, err := os.Create(filepath.Join(dir, run+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("journal: %w: give another directory with -journal", err)
	}
	return &journal{start: start, file: f}, nil
}

// write records an event. Its fields must encode.
func (j *journal) write(event string, fields map[string]any) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	fields["event"], fields["at"] = event, time.Since(j.start).Seconds()
	line, err := json.Marshal(fields)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if j.err == nil {
		j.err = err
	}
}

// close ends the record and returns what went wrong with it.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.file.Close()
	if j.err != nil {
		err = j.err
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

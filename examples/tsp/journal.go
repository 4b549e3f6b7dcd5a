package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// journalFile is the coordinator's own record of a run: one JSON object a line, with the
// seconds since the start, the event, and what belongs to it.
type journalFile struct {
	*os.File
	err error // the first failure to write
}

// openJournal begins the record of a run in a directory, which it makes.
func openJournal(dir, run string, start time.Time) (*slog.Logger, *journalFile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("journal: %w: give another directory with -journal", err)
	}
	f, err := os.Create(filepath.Join(dir, run+".jsonl"))
	if err != nil {
		return nil, nil, fmt.Errorf("journal: %w: give another directory with -journal", err)
	}
	j := &journalFile{File: f}
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.Float64("at", a.Value.Time().Sub(start).Seconds())
		case slog.MessageKey:
			a.Key = "event"
		case slog.LevelKey:
			return slog.Attr{}
		}
		return a
	}})), j, nil
}

// Write records an event.
func (j *journalFile) Write(line []byte) (int, error) {
	n, err := j.File.Write(line)
	if j.err == nil {
		j.err = err
	}
	return n, err
}

// Close ends the record and returns what went wrong with it.
func (j *journalFile) Close() error {
	err := j.File.Close()
	if j.err != nil {
		err = j.err
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

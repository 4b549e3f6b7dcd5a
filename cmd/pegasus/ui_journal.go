package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/gopegasus/pegasus/internal/detectcmd"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/web"
)

// progressEvery is how often reading a long journal says how far it is.
const progressEvery = 2 * time.Second

// openAfter is how long a journal is read before the page opens with it unread.
const openAfter = time.Second

// recordings are the journals of a run that is over, one for each synchronizer.
type recordings struct {
	list     []*recordedRun
	from, to time.Time
	states   []*monitor.MemberState // at most 2*maxStates
	left     int                    // states that were left out
	path     string                 // of the flag
	size     int64                  // of all files, in bytes
	count    atomic.Int64           // of these, read first
}

type recordedRun struct {
	file, name, group string
}

// serveJournal is servePage for a run that is over.
func (f *uiFlags) serveJournal(cmd *cobra.Command) error {
	for _, name := range []string{"nats", "context", "creds", "nkey", "user", "password-file", "token-file", "tlsca", "tlscert", "tlskey", "tenant", "synchronizer", "allow-control"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--journal shows a run that is over, without a server: leave out --%s", name)
		}
	}
	files, err := journalFiles(f.journal)
	if err != nil {
		return fail(err)
	}
	listener, err := listenOnLoopback("listen", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // The server has closed it.
	r := &recordings{path: f.journal}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			r.size += info.Size()
		}
	}
	key := rand.Text()
	page, err := web.New(web.Options{Source: r, Now: time.Now, Key: key, Prefix: f.prefix, Reading: r.progress})
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var failed error // valid after read
	read := make(chan struct{})
	go func() {
		defer close(read)
		if failed = r.readAll(ctx, files, page, cmd.ErrOrStderr()); failed != nil {
			cancel()
		}
	}()
	url, text := f.url(listener, key), ""
	select {
	case <-read:
		if failed != nil {
			return ended(cmd.Context(), fail(failed))
		}
		text = fmt.Sprintf("%s shows %s, %v of %s; Ctrl-C ends it\n", url, f.journal, r.to.Sub(r.from).Round(time.Millisecond), show.Count(len(r.list), "synchronizer"))
	case <-time.After(openAfter):
		text = fmt.Sprintf("%s reads %s, and then shows it; Ctrl-C ends it\n", url, f.journal)
	}
	if f.json {
		text = show.JSONLine(struct {
			URL     string `json:"url"`
			Journal string `json:"journal"`
		}{url, f.journal})
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	if err == nil {
		err = servePages(ctx, listener, page)
	}
	cancel()
	<-read
	return ended(cmd.Context(), fail(errors.Join(err, failed)))
}

// progress says how far reading is.
func (r *recordings) progress() string {
	if n := r.count.Load(); r.size > 0 {
		return fmt.Sprintf("reading %s: %d %% of %d MiB", r.path, min(100, n*100/r.size), r.size>>20)
	}
	return "reading " + r.path // It is no regular file.
}

// readAll reads journals and shows them.
func (r *recordings) readAll(ctx context.Context, files []string, page *web.Page, stderr io.Writer) error {
	var lines []*monitor.Line
	var statuses []*monitor.Status
	for _, file := range files {
		some, status, err := r.read(ctx, file, stderr)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		lines, statuses = append(lines, some...), append(statuses, status)
	}
	r.cut(maxStates)
	if r.left > 0 {
		_, _ = fmt.Fprintf(stderr, "pegasus: %s: the timeline has the newest %d states of members, and leaves out %d\n", r.path, maxStates, r.left)
	}
	if err := page.Open(&web.Recorded{From: r.from, To: r.to, Status: r.status, States: r.states}); err != nil {
		return err
	}
	for _, s := range statuses {
		page.PublishStatus(s)
	}
	for _, l := range lines {
		page.PublishEvent(l)
	}
	return nil
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader

	count *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.count.Add(int64(n))
	return n, err
}

const (
	maxRecorded = 20_000  // events of a journal that are kept, the newest ones
	maxStates   = 100_000 // states of members, alike
)

// cut keeps the newest states.
func (r *recordings) cut(most int) {
	if more := len(r.states) - most; more > 0 {
		r.left += more
		r.states = append(r.states[:0], r.states[more:]...)
	}
}

// read steps through a journal, and returns its events, the newest ones if there are many, and its status at the end.
func (r *recordings) read(ctx context.Context, file string, stderr io.Writer) (lines []*monitor.Line, status *monitor.Status, err error) {
	one := &recordedRun{file: file}
	told := time.Now()
	left := 0
	var from, to time.Time
	res, err := one.replay(ctx, &r.count, synchronizer.ReplayOptions{
		Begin: func(res *synchronizer.Replayed) { one.name, from = res.Synchronizer, res.Started },
		Observe: func(at time.Time, e monitor.Event) {
			l := e.Line()
			l.Time, l.Synchronizer = at, one.name
			if lines = append(lines, &l); len(lines) == 2*maxRecorded {
				left += maxRecorded
				lines = append(lines[:0], lines[maxRecorded:]...)
			}
			if time.Since(told) > progressEvery {
				told = time.Now()
				_, _ = fmt.Fprintf(stderr, "pegasus: reading %s: at %v of the run\n", file, at.Sub(from).Round(time.Second))
			}
		},
		State: func(s *monitor.MemberState) {
			if r.states = append(r.states, s); len(r.states) == 2*maxStates {
				r.cut(maxStates)
			}
		},
		Inspect: func(i *synchronizer.Inspection) {
			s := i.Status()
			status, to = &s, i.At()
		},
	})
	if err != nil {
		return nil, nil, err
	}
	one.group = status.Group
	if r.list = append(r.list, one); r.from.IsZero() || from.Before(r.from) {
		r.from = from
	}
	if to.After(r.to) {
		r.to = to
	}
	if more := len(lines) - maxRecorded; more > 0 {
		left += more
		lines = lines[more:]
	}
	if left > 0 {
		_, _ = fmt.Fprintf(stderr, "pegasus: %s: the timeline has the newest %d events, and leaves out %d\n", file, maxRecorded, left)
	}
	if !res.Complete {
		_, _ = fmt.Fprintf(stderr, "pegasus: %s: %s\n", file, res.Why)
	}
	if res.FirstDifference > 0 {
		_, _ = fmt.Fprintf(stderr, "pegasus: %s: line %d: the output differs from the recorded output%s\n", file, res.FirstDifference, versions(res.Pegasus))
	}
	return lines, status, nil
}

// replay steps through the journal, and counts its bytes unless count is nil.
func (o *recordedRun) replay(ctx context.Context, count *atomic.Int64, opt synchronizer.ReplayOptions) (*synchronizer.Replayed, error) {
	in, err := os.Open(o.file)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // Nothing was written.
	r := detectcmd.ReadUntil(ctx, in)
	if count != nil {
		r = counted{r, count}
	}
	return synchronizer.Replay(r, opt)
}

// Explain implements web.Source.
func (r *recordings) Explain(ctx context.Context, name, group, predicate string, at time.Time) (e *monitor.Explanation, err error) {
	for _, one := range r.list {
		if one.name != name || one.group != group {
			continue
		}
		var missing error
		_, err := one.replay(ctx, nil, synchronizer.ReplayOptions{Until: at, Inspect: func(i *synchronizer.Inspection) {
			why, err := i.Why(predicate)
			e, missing = &why, err
		}})
		return e, errors.Join(err, missing)
	}
	return nil, fmt.Errorf("synchronizer %q of group %q: no journal is of it", name, group)
}

// status tells where each synchronizer stood.
func (r *recordings) status(ctx context.Context, at time.Time) (list []*monitor.Status, err error) {
	for _, one := range r.list {
		if _, err := one.replay(ctx, nil, synchronizer.ReplayOptions{Until: at, Inspect: func(i *synchronizer.Inspection) {
			s := i.Status()
			list = append(list, &s)
		}}); err != nil {
			return nil, fmt.Errorf("%s: %w", one.file, err)
		}
	}
	return list, nil
}

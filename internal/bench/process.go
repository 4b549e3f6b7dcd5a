package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/gopegasus/pegasus/connect"
)

// request is what a worker is asked to do: one line of JSON. What the fields mean
// depends on the operation.
type request struct {
	Op      string
	URL     string           `json:",omitzero"` // of a server without credentials
	Connect connect.Settings `json:",omitzero"` // instead, with the environment
	Tenant  string           `json:",omitzero"`
	Group   string           `json:",omitzero"`
	Members int              `json:",omitzero"` // that are joined; connections of bare messages
	First   int              `json:",omitzero"` // the number of the first of them
	Own     bool             `json:",omitzero"` // each of them has a connection of its own
	Batch   int              `json:",omitzero"` // reports a message
	Bytes   int              `json:",omitzero"` // of a bare message
	Rate    float64          `json:",omitzero"` // reports a second
	Sample  float64          `json:",omitzero"` // verdicts a second that are timed, about
	Time    time.Duration    `json:",omitzero"`
}

// figures are what a worker answers.
type figures struct {
	Error    string  `json:",omitzero"`
	Rate     float64 `json:",omitzero"`
	P50, P99 float64 `json:",omitzero"` // µs
	Count    uint64  `json:",omitzero"` // states, bare messages or round trips
	CPU      float64 `json:",omitzero"` // ns of processor time, for each of Count
	Seconds  float64 `json:",omitzero"`
	Shed     uint64  `json:",omitzero"`
	Check    float64 `json:",omitzero"` // ns
	Load     float64 `json:",omitzero"` // ns, of an atomic
}

// endTimeout is how long a worker may take to end before it is killed.
const endTimeout = 3 * time.Second

// Process is a worker. It ends with its standard input, so also when this process
// is killed, and is killed with the context that it was started with.
type Process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    io.Reader
	answer *json.Decoder // of out
}

// Start runs a command as a worker, which calls [Serve].
func Start(ctx context.Context, command []string) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), cancel: cancel}
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = endTimeout
	in, err := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the second process: %w", err)
	}
	p.in, p.out, p.answer = in, out, json.NewDecoder(out)
	return p, nil
}

// Ask sends a question to the worker as a line of JSON, and waits for the answer. Pass the context of Start: its end
// ends the worker, and so the wait.
func (p *Process) Ask(ctx context.Context, question, answer any) error {
	err := json.NewEncoder(p.in).Encode(question)
	if err == nil {
		err = p.answer.Decode(answer)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the second process has ended: %w", err)
	}
	return nil
}

// call asks the worker of [Worker].
func (p *Process) call(ctx context.Context, q request) (f figures, err error) {
	if err = p.Ask(ctx, q, &f); err == nil && f.Error != "" {
		err = errors.New(f.Error)
	}
	if err != nil {
		return figures{}, fmt.Errorf("%s: %w", q.Op, err)
	}
	return f, nil
}

// End closes the input of the worker, waits for its end, and kills it after [endTimeout].
func (p *Process) End() error {
	defer p.cancel()
	_ = p.in.Close() // The worker may have ended.
	kill := time.AfterFunc(endTimeout, p.cancel)
	defer kill.Stop()
	_, _ = io.Copy(io.Discard, p.out) // To its end, before Wait.
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the second process: %w", err)
	}
	return nil
}

// Worker does what it is asked to do, line by line, until the input ends.
func Worker(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &worker{}
	err := Serve(ctx, in, out, func(ctx context.Context, q request) figures {
		f, err := w.do(ctx, q)
		if err != nil {
			f = figures{Error: err.Error()}
		}
		return f
	})
	return errors.Join(err, w.leave())
}

// Serve answers questions, each a line of JSON, one after the other until the input or the context ends. A line that
// is no JSON object is the question without any field. No answer is written after the end.
func Serve[Q, A any](ctx context.Context, in io.Reader, out io.Writer, answer func(context.Context, Q) A) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	questions := make(chan Q)
	go func() { // Until the end of the input, or of the process.
		defer cancel()
		for s := bufio.NewScanner(in); s.Scan(); {
			var q Q
			if err := json.Unmarshal(s.Bytes(), &q); err != nil {
				q = *new(Q)
			}
			select {
			case questions <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	answers := json.NewEncoder(out)
	for {
		select {
		case q := <-questions:
			a := answer(ctx, q)
			if ctx.Err() != nil {
				return nil
			}
			if err := answers.Encode(a); err != nil {
				return fmt.Errorf("the answer cannot be written: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

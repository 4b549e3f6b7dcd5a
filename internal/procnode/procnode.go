// Package procnode runs executables as the blocks of programs, each in a process
// group of its own.
//
// # Protocol
//
//   - The input comes on stdin: JSON, then the end.
//   - What the process writes to stdout until it ends is the result: one JSON value,
//     of at most [agent.MaxBody] bytes, or nothing, which is null.
//   - Each line it writes to file descriptor 3 is a state: a JSON object with fields
//     that the group's state declares.
//   - What it writes to stderr is kept for the reason of a failure: the last 2 KiB.
//   - Exit code 0 means done; every other one, and an end by a signal, is a failure.
//   - A cancellation is SIGTERM to the process group, and SIGKILL to what is left of
//     it after the grace. Under that of a predicate, a process that ends with exit code
//     0 is done with what it has written, and every other one with null.
//   - An activation reaches no process: it is refused, for want of a handler.
//   - It runs on the cores of its processor, where that has some: [agent.Run.CPUs].
//   - The environment is that of the node, with PEGASUS_BLOCK, PEGASUS_RUN,
//     PEGASUS_PROCESSOR and PEGASUS_REPLICA: the number of this replica, from 0, in
//     each replicated Par around the block, joined by dots.
//
// A process that writes more than that, or states that do not fit, is killed, and
// the block fails for that reason. When the process has ended, everything in its
// group is killed. On Linux the process is killed when the node is, however that
// ends. A process that it started in turn, and that outlives a node that was killed,
// or has left the group, is not followed.
package procnode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gopegasus/pegasus/agent"
)

// DefaultGrace is how long a process may take to end after SIGTERM.
const DefaultGrace = 5 * time.Second

const (
	maxState   = 16 << 10 // bytes of a line
	keptErrors = 2 << 10  // of stderr
	pipeWait   = time.Second
)

// Block names a command as a block. Grace 0 is [DefaultGrace]. It fails if the
// executable cannot be found, or the system has no process groups.
func Block(name string, argv []string, grace time.Duration) (agent.BlockCode, error) {
	if err := supported(); err != nil {
		return agent.BlockCode{}, fmt.Errorf("block %q: %w", name, err)
	}
	if len(argv) == 0 || argv[0] == "" {
		return agent.BlockCode{}, fmt.Errorf("block %q has no command: give NAME=COMMAND", name)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return agent.BlockCode{}, fmt.Errorf("block %q: %w: give the path of a file that can be executed", name, err)
	}
	if grace <= 0 {
		grace = DefaultGrace
	}
	c := &command{path: path, argv: argv, grace: grace}
	return agent.Block(name, c.run), nil
}

type command struct {
	path  string
	argv  []string
	grace time.Duration
}

// process is one run of a command.
type process struct {
	cmd    *exec.Cmd
	run    *agent.Run
	stdout bytes.Buffer
	stderr tail

	mu     sync.Mutex
	why    error // the process was killed for
	waited bool  // its number may name another group
}

func (c *command) run(ctx context.Context, r *agent.Run, input json.RawMessage) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := &process{run: r}
	//nolint:gosec,noctx // The operator has named the command; its end is ours to bring about, with its group.
	p.cmd = exec.Command(c.path, c.argv[1:]...)
	p.cmd.Args[0] = c.argv[0]
	var replicas []string
	for _, n := range r.Replicas() {
		replicas = append(replicas, strconv.Itoa(n))
	}
	p.cmd.Env = append(os.Environ(), "PEGASUS_BLOCK="+r.Block(), "PEGASUS_RUN="+strconv.FormatUint(r.Number(), 10),
		"PEGASUS_PROCESSOR="+r.Processor(), "PEGASUS_REPLICA="+strings.Join(replicas, "."))
	p.cmd.Stdin = bytes.NewReader(input)
	p.cmd.Stdout, p.cmd.Stderr = limited{p}, &p.stderr
	p.cmd.WaitDelay = pipeWait // For what has left the group, and keeps the pipes.
	result, err := p.outcome(p.live(ctx, c.grace))
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return result, err
}

// outcome is the result of a process that has ended, or its fault. A process that was asked to
// end and did so with exit code 0 has a result too.
func (p *process) outcome(err error) (json.RawMessage, error) {
	if p.why != nil {
		err = p.why
	}
	if err != nil {
		return nil, p.failure(err)
	}
	result := bytes.TrimSpace(p.stdout.Bytes())
	if len(result) == 0 {
		return json.RawMessage("null"), nil
	}
	if !json.Valid(result) || !utf8.Valid(result) {
		return nil, p.failure(fmt.Errorf("the output on stdout is no JSON value: it begins with %.60q", result))
	}
	return result, nil
}

// live starts the process and waits for its end and the end of its group.
func (p *process) live(ctx context.Context, grace time.Duration) error {
	states, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.ExtraFiles = []*os.File{theirs}
	defer states.Close() //nolint:errcheck // It was read.
	defer hold()()
	err = p.start()
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("cannot be started: %w", err)
	}
	ended := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { p.readStates(states) })
	beside.Go(func() { p.end(ctx, grace, ended) })
	p.await() // The group has a name until the process is waited for.
	p.kill()
	p.mu.Lock()
	p.waited = true
	p.mu.Unlock()
	err = p.cmd.Wait()
	close(ended)
	_ = states.SetReadDeadline(time.Now().Add(pipeWait)) //nolint:forbidigo // A pipe knows no other clock.
	beside.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("ended with %w", exit)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return errors.New("has ended, and a process that left its process group still holds its output")
	}
	return err
}

// end brings the process to its end when the context is over.
func (p *process) end(ctx context.Context, grace time.Duration, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	p.terminate()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		p.kill()
	}
}

// stop kills the process for a reason, the first of which counts.
func (p *process) stop(why error) {
	p.mu.Lock()
	if p.why == nil {
		p.why = why
	}
	p.mu.Unlock()
	p.kill()
}

// readStates takes the lines of file descriptor 3 until all who have it are gone.
func (p *process) readStates(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxState)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := p.run.SetJSON(lines.Bytes()); err != nil {
			p.stop(fmt.Errorf("line %d of its states: %w", n, err))
			break
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		p.stop(fmt.Errorf("a line of its states has more than %d bytes", maxState))
	}
	_, _ = io.Copy(io.Discard, r) // So that nobody waits for us.
}

// failure names the command, and adds what it had to say.
func (p *process) failure(err error) error {
	text := fmt.Sprintf("command %s: %v", p.cmd.Args[0], err)
	if said := p.stderr.String(); said != "" {
		text += "; stderr: " + said
	}
	return errors.New(text)
}

// limited keeps stdout up to the greatest size of a result.
type limited struct{ *process }

func (l limited) Write(b []byte) (int, error) {
	if room := agent.MaxBody - l.stdout.Len(); len(b) > room {
		l.stop(fmt.Errorf("wrote more than %d bytes to stdout: let it result in a reference", agent.MaxBody))
		return len(b), nil
	}
	return l.stdout.Write(b)
}

// tail keeps the end of the output.
type tail struct {
	kept []byte
	lost int
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - keptErrors; over > 0 {
		t.lost += over
		t.kept = t.kept[:copy(t.kept, t.kept[over:])]
	}
	return len(b), nil
}

func (t *tail) String() string {
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(t.kept), "?")))
	if t.lost > 0 {
		return fmt.Sprintf("(%d bytes before) %s", t.lost, text)
	}
	return text
}

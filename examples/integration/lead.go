package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
)

// lead starts the processes, ends some of them, and says what came of it.
type lead struct {
	f       *flags
	program string // this executable
	url     string
	journal string
	lines   chan *monitor.Line

	nodes   [parts]*exec.Cmd
	leader  *exec.Cmd
	readers sync.WaitGroup // of what they print

	begun     bool // the program has
	runs      int  // of blocks
	nodeKills int
	syncKills int
	decision  string
}

// start runs all of it.
func start(ctx context.Context, f *flags) error {
	dir, err := os.MkdirTemp("", "integration")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is the system's to clean.
	program, err := os.Executable()
	if err != nil {
		return err
	}
	server, err := embedded.Start(embedded.Options{}) //nolint:contextcheck // It lives until Close.
	if err != nil {
		return err
	}
	defer server.Close()
	l := &lead{f: f, program: program, url: server.URL(), journal: filepath.Join(dir, "journal"), lines: make(chan *monitor.Line, 64)}
	defer l.stop()
	if err := l.synchronizer(); err != nil {
		return err
	}
	for i := range l.nodes {
		if err := l.node(i); err != nil {
			return err
		}
	}
	result, err := l.follow(ctx)
	if err != nil {
		return err
	}
	l.stop()
	return l.verdict(result)
}

func (l *lead) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.program, append(args, "-url", l.url, "-slow", l.f.slow.String())...) //nolint:gosec,noctx // It is this program, and stop ends it.
	cmd.Stderr = os.Stderr
	return cmd
}

func (l *lead) node(i int) error {
	l.nodes[i] = l.command("-role", "node", "-name", "n"+strconv.Itoa(i))
	return l.begin(l.nodes[i])
}

func (l *lead) synchronizer() error {
	l.leader = l.command("-role", "synchronizer", "-journal", l.journal)
	return l.begin(l.leader)
}

func (l *lead) begin(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	l.readers.Go(func() { l.read(out) })
	return nil
}

// read takes the lines of a process until it ends. One of a synchronizer that was cut
// by a kill is no loss: the next life tells what follows from its journal.
func (l *lead) read(out io.ReadCloser) {
	defer out.Close() //nolint:errcheck // It was read to its end.
	text := bufio.NewScanner(out)
	text.Buffer(nil, 4<<20)
	for text.Scan() {
		x := &monitor.Line{}
		if json.Unmarshal(text.Bytes(), x) == nil {
			l.lines <- x
		}
	}
}

// follow counts what happens, and ends processes, until the program has ended.
func (l *lead) follow(ctx context.Context) (*work, error) {
	random := rand.New(rand.NewPCG(l.f.seed, 1)) //nolint:gosec // It is to be repeatable.
	pause := func() time.Duration { return time.Duration(50+random.IntN(200)) * time.Millisecond }
	kill := time.NewTimer(pause())
	defer kill.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case x := <-l.lines:
			l.count(x)
			if x.Event != "finish" {
				continue
			}
			end, w := x.Body.(*monitor.ProgramLine), &work{}
			if end.Outcome != program.Done.String() {
				return nil, errors.New("the program did not end well: " + end.Reason)
			}
			return w, json.Unmarshal([]byte(end.Result), w)
		case <-kill.C:
			if l.nodeKills+l.syncKills == l.f.kills || !l.begun {
				kill.Reset(pause())
				continue
			}
			if err := l.kill(random.IntN(parts + 1)); err != nil {
				return nil, err
			}
			kill.Reset(pause())
		}
	}
}

// kill ends a node, or the synchronizer, and starts it again.
func (l *lead) kill(which int) error {
	if which < parts {
		l.nodeKills++
		end(l.nodes[which])
		return l.node(which)
	}
	l.syncKills++
	end(l.leader)
	return l.synchronizer()
}

func end(cmd *exec.Cmd) {
	if cmd != nil && cmd.Process != nil {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait() // Wait of cmd would cut off what it has printed.
	}
}

func (l *lead) count(x *monitor.Line) {
	switch x.Event {
	case "start":
		l.begun = true
	case ran:
		l.runs++
	case "pass":
		if p := x.Body.(*monitor.ProgramLine); p.Predicate != "" {
			l.decision = p.Decision
		}
	}
}

// stop ends every process, and counts what they have still to say.
func (l *lead) stop() {
	for _, cmd := range l.nodes {
		end(cmd)
	}
	end(l.leader)
	done := make(chan struct{})
	go func() {
		l.readers.Wait()
		close(done)
	}()
	for {
		select {
		case x := <-l.lines:
			l.count(x)
		case <-done:
			return
		}
	}
}

// verdict compares with what one process comes to.
func (l *lead) verdict(w *work) error {
	reference, err := alone()
	if err != nil {
		return err
	}
	if w.Sum != reference.Sum || len(w.Pieces) != len(reference.Pieces) {
		return fmt.Errorf("the integral is %.17g by %d pieces, and one process comes to %.17g by %d", w.Sum, len(w.Pieces), reference.Sum, len(reference.Pieces))
	}
	blocks, err := once(w.Used, w.Round)
	if err != nil {
		return err
	}
	fmt.Printf("%d pieces from %d blocks, each used once; %d ran again; %d nodes and %d synchronizers killed\n", len(w.Pieces), blocks, l.runs-blocks, l.nodeKills, l.syncKills)
	fmt.Printf("ok: the integral is %.12g; at one instant (decision %s) the errors of %d processes were together %.2g, below %.0e; one process comes to the same\n",
		w.Sum, l.decision, parts, w.Error, bound)
	return nil
}

// once counts the blocks that a result of so many rounds is made of: each of them
// has to be there once, by a run of its own.
func once(used []use, round int) (blocks int, err error) {
	runs, missing := map[uint64]bool{}, map[use]bool{{Block: "divide"}: true}
	for r := 1; r < round; r++ {
		missing[use{Block: "refine", Round: r + 1}] = true
		for part := range parts {
			missing[use{Block: "integrate", Round: r, Part: part}] = true
		}
	}
	blocks = len(missing)
	for _, u := range used {
		what := u
		what.Run = 0
		if !missing[what] || runs[u.Run] {
			return 0, fmt.Errorf("the result of %s, round %d, part %d, run %d, is used twice or by mistake", u.Block, u.Round, u.Part, u.Run)
		}
		delete(missing, what)
		runs[u.Run] = true
	}
	if len(missing) > 0 {
		return 0, fmt.Errorf("%d blocks are missing in the result", len(missing))
	}
	return blocks, nil
}

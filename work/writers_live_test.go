package work_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/work"
)

const (
	writerHelp  = "PEGASUS_WRITER_HELP" // the variable with the server of a process whose tasks write data
	writerName  = "PEGASUS_WRITER_NAME" // and with its name
	writtenData = 24
	dataReaders = 4 // tasks that read the same data
)

// page are the bytes of data number i.
func page(i int) []byte { return bytes.Repeat([]byte{byte(i), 7, byte(i * 3)}, 70_000) }

// pageSum is the result of a sequential run.
func pageSum(i, k int) string {
	one, two := sha256.Sum256(page(i)), sha256.Sum256(page((i+1)%writtenData))
	return fmt.Sprintf("%x %x %d", one[:4], two[:4], k)
}

// writerOptions are functions of tasks that write data, and that read them. Event hears of both ends of a write.
func writerOptions(own **work.Space, event func(string)) []work.Option {
	pause := func(ctx context.Context) error {
		select {
		case <-time.After(10 * time.Millisecond): // It stands for work.
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return []work.Option{
		work.Func("write", func(ctx context.Context, i int) (int, error) {
			event("begins")
			if err := pause(ctx); err != nil {
				return 0, err
			}
			err := (*own).Write(ctx, fmt.Sprint("page/", i), page(i))
			event("ends")
			return i, err
		}),
		work.Func("read", func(ctx context.Context, at [2]int) (string, error) {
			if err := pause(ctx); err != nil {
				return "", err
			}
			var text strings.Builder
			for _, i := range []int{at[0], (at[0] + 1) % writtenData} {
				data, err := work.Read(ctx, fmt.Sprint("page/", i))
				if err != nil {
					return "", err
				}
				sum := sha256.Sum256(data)
				_, _ = fmt.Fprintf(&text, "%x ", sum[:4])
			}
			return fmt.Sprint(text.String(), at[1]), nil
		}),
	}
}

// helpWriting is the main function of a process that writes and reads until its input ends or it is killed.
func helpWriting(url string) {
	member, err := agent.Join(context.Background(), url, agent.Config{Group: "g", Name: os.Getenv(writerName)})
	if err != nil {
		log.Fatal(err)
	}
	var s *work.Space
	ready := make(chan struct{})
	options := writerOptions(&s, func(text string) { <-ready; fmt.Println(text) })
	if s, err = work.Open(context.Background(), member, options...); err != nil {
		log.Fatal(err)
	}
	close(ready)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // The test holds the other end.
		cancel()
	}()
	_ = s.Serve(ctx)
	_, _ = s.Close(), member.Close()
	os.Exit(0)
}

// writer is a process whose tasks write data.
type writer struct {
	cmd  *exec.Cmd
	name string
}

// startWriter starts a process, which tells each end of a write.
func startWriter(t *testing.T, url, name string, events chan<- *writer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerHelp+"="+url, writerName+"="+name)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over, w := make(chan struct{}), &writer{cmd, name}
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			events <- w
		}
		_ = cmd.Wait() // It is killed, or ends with its input.
	}()
	t.Cleanup(func() { _ = input.Close(); <-over })
}

// TestWritersKilled: tasks write data that other tasks read, and a process that writes is killed with SIGKILL at a random moment: in a
// write, or after one, before other members have the data or later. With store: jetstream all results equal a sequential run.
// With store: memory a task that reads lost data fails and names them; put again, with the tasks that write, it has the right result.
func TestWritersKilled(t *testing.T) {
	t.Parallel()
	for seed := range testcount.Of(t, "WRITER_KILLS", 2) {
		store := []string{"memory", "jetstream"}[seed%2]
		t.Run(fmt.Sprint(store, "/", seed), func(t *testing.T) { killWriter(t, store, uint64(seed)) }) //nolint:gosec // Not negative.
	}
}

func killWriter(t *testing.T, store string, seed uint64) {
	var g *liveGroup
	if store == "jetstream" {
		g = newDurable(t, t.TempDir(), 4)
	} else {
		g = newLive(t, live, 4)
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	moment, pause := 1+random.IntN(2*writtenData), time.Duration(random.IntN(20_000))*time.Microsecond
	events, killed := make(chan *writer, 4*writtenData*100), make(chan string, 1)
	for _, name := range []string{"b", "c", "d"} {
		startWriter(t, g.server.URL(), name, events)
	}
	go func() {
		seen := 0
		for w := range events {
			if seen++; seen < moment {
				continue
			}
			<-time.After(pause)
			_ = w.cmd.Process.Kill()
			killed <- w.name
			return
		}
	}()
	var own *work.Space
	list := g.spacesBy(func(string) string { return g.server.URL() }, []string{"a"}, append(writerOptions(&own, func(string) {}), work.Slots(0))...)
	own = list[0]
	ctx, done := limited(t), map[[2]int]bool{}
	lost := 0
	for round := 0; len(done) < writtenData*dataReaders; round++ {
		if round == 4 {
			t.Fatalf("%d of %d results after %d rounds", len(done), writtenData*dataReaders, round)
		}
		ids := map[string][2]int{}
		for i := range writtenData {
			if err := own.Put(ctx, "write", i, work.ID("write/%d", i)); err != nil {
				t.Fatal(err)
			}
			for k := range dataReaders {
				at := [2]int{i, k}
				if id := fmt.Sprint("read/", i, "/", k); !done[at] {
					ids[id] = at
					if err := own.Put(ctx, "read", at, work.ID("%s", id), work.Reads(fmt.Sprint("page/", i), fmt.Sprint("page/", (i+1)%writtenData))); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		seen := 0
		for r, err := range work.Results[string](ctx, own, "read") {
			at := ids[r.ID]
			seen++
			var failed *work.TaskError
			switch {
			case err == nil && r.Value == pageSum(at[0], at[1]) && !done[at]:
				done[at] = true
			case store == "memory" && errors.As(err, &failed) && strings.Contains(err.Error(), `data "page/`):
				lost++
			default:
				t.Errorf("round %d: task %s: %q, %v", round, r.ID, r.Value, err)
			}
		}
		if seen != len(ids) {
			t.Fatalf("round %d: %d results of %d tasks", round, seen, len(ids))
		}
	}
	select {
	case name := <-killed:
		t.Logf("%s is killed %v after event %d of %d; %d tasks done again, %d had lost their data", name, pause, moment, 2*writtenData, own.Stats().Redone, lost)
	case <-ctx.Done():
		t.Error("no process was killed")
	}
}

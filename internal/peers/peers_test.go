package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/bench"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// workerArgument has the test binary be a worker.
const workerArgument = "peers-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := WorkerWith(context.Background(), os.Stdin, os.Stdout, []Controller{coin}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// coin is a controller that fires on a coin with each change, on its view of the states.
var coin = Controller{
	Name:  "coin",
	Serve: func(context.Context) (*Server, error) { return startServer(false) },
	Watch: func(_ context.Context, s *Server, v *View) (func() error, error) {
		nc, err := nats.Connect(s.URL, nats.Token(s.Token))
		if err != nil {
			return nil, err
		}
		v.Tell = func(number []byte) error { return nc.Publish(subjectTold, number) }
		dice := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // A test.
		_, err = nc.Subscribe(subjectState+"*", func(m *nats.Msg) {
			v.replaceState(strings.TrimPrefix(m.Subject, subjectState), string(m.Data))
			if dice.IntN(2) == 0 {
				v.fire()
			}
		})
		return func() error {
			nc.Close()
			return nil
		}, errors.Join(err, nc.FlushTimeout(patience))
	},
	Join: func(_ context.Context, c *Connection) error {
		nc, err := nats.Connect(c.URL, nats.Token(c.Token))
		if err != nil {
			return err
		}
		c.OnLeave(func() error {
			nc.Close()
			return nil
		})
		c.OnReport(func(state string) error { return nc.Publish(subjectState+c.Worker, []byte(state)) })
		_, err = nc.Subscribe(subjectTold, func(m *nats.Msg) { c.Receive(string(m.Data)) })
		return errors.Join(err, nc.FlushTimeout(patience))
	},
}

// TestRuns runs each controller with processes, and one that fires on a coin as the negative control.
func TestRuns(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := append(controllers(), coin.inside())
	o := &Options{Program: bench.Program{Command: []string{program, workerArgument}}, Time: time.Second, Seed: 1}
	r, err := compare(t.Context(), o, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Legs) != 2*len(all) || r.Workers != workers || r.Time != "1s" {
		t.Fatalf("%+v", r)
	}
	for i, l := range r.Legs {
		if l.Controller != all[i%len(all)].name || l.Delayed != (i >= len(all)) {
			t.Errorf("leg %d: %+v", i, l)
		}
		if l.Changes < 10*workers/2 || l.Intervals == 0 || l.Messages == 0 {
			t.Errorf("too little happened: %+v", l)
		}
		switch {
		case l.Controller == "coin" && l.False < l.Firings/2:
			t.Errorf("the judge does not see the coin: %+v", l)
		case l.Controller == "pegasus" && l.False > 0:
			t.Errorf("a firing of a synchronizer is false: %+v", l)
		case !strings.HasPrefix(l.Controller, "poll") && (l.Firings == 0 || l.Controller != "coin" && l.P50 <= 0):
			t.Errorf("nothing was fired: %+v", l)
		case l.Controller == "pegasus" && l.Delayed && l.Over == 0, l.Controller != "pegasus" && l.Over > 0:
			t.Errorf("firings known to be over: %+v", l)
		case l.Controller == bareNATS && l.OverBare != 1:
			t.Errorf("bare NATS is not compared with itself: %+v", l)
		}
	}
}

// TestRunFails: an error names the controller, and the other processes end.
func TestRunFails(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Program: bench.Program{Command: []string{program, workerArgument}}, Time: time.Second}
	broken := errors.New("it is broken")
	_, err = compare(t.Context(), &o, []controller{{"odd", reportPublish, func(context.Context, *run) error { return broken }, nil}})
	if !errors.Is(err, broken) || err.Error() != "controller odd: it is broken" {
		t.Errorf("a controller that does not start: %v", err)
	}
	_, err = compare(t.Context(), &o, []controller{{"odd", "carrots", func(context.Context, *run) error { return nil }, nil}})
	if err == nil || !strings.HasPrefix(err.Error(), `controller odd: worker 0: join: way to report "carrots": it is not known`) {
		t.Errorf("workers that do not join: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err = Run(ctx, o); err == nil || err.Error() != "enough" {
		t.Errorf("a run that is ended: %v", err)
	}
	o.Command = []string{program + "-that-is-not-there"}
	if _, err = Run(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "the second process: ") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestWorkerRefuses: a worker answers what it cannot do, and ends with its input.
func TestWorkerRefuses(t *testing.T) {
	for q, want := range map[string]string{
		"{":                     `{"Error":"worker 0: : the operation is not known"}`,
		`{"Op":"x","Worker":3}`: `{"Error":"worker 3: x: the operation is not known"}`,
		`{"Op":"leave"}`:        `{}`,
		`{"Op":"join","URL":"nats://127.0.0.1:1"}`:                    `{"Error":"worker 0: join: connection to nats://127.0.0.1:1: `,
		`{"Op":"join","Report":"pegasus","URL":"nats://127.0.0.1:1"}`: `{"Error":"worker 0: join: agent: join group \"peers\" as \"0\": there is no connection`,
	} {
		in, ask := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- Worker(t.Context(), in, out) }()
		if _, err := io.WriteString(ask, q+"\n"); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 4096)
		n, err := answers.Read(line)
		if err != nil || !strings.HasPrefix(string(line[:n]), want) {
			t.Errorf("%s is answered by %s, %v; want %s", q, line[:n], err, want)
		}
		if err := errors.Join(ask.Close(), <-ended); err != nil {
			t.Error(err)
		}
	}
}

// TestOddStates: what cannot be read is an error of the run.
func TestOddStates(t *testing.T) {
	for _, c := range [][3]string{
		{"0", "x", `state "x" of worker "0": it cannot be read`},
		{"2", "1", `state "1" of worker "2": it cannot be read`},
		{"-1", "1", `state "1" of worker "-1": it cannot be read`},
		{"", "1", `state "1" of worker "": it cannot be read`},
	} {
		r := &run{workers: 2}
		v := newView(r, nil)
		v.replaceState(c[0], c[1])
		v.replaceState("0", "y") // Only the first error counts.
		if r.record.failed == nil || r.record.failed.Error() != c[2] {
			t.Errorf("%q: %v", c, r.record.failed)
		}
	}
	fields := scgs.Schema{{Name: "n", Type: scgs.Int}}
	row := []scgs.Value{scgs.IntValue(7)}
	v := monitor.Verdict{Witness: []monitor.Part{{Name: "1", Fields: fields, Row: row}, {Name: "9", Fields: fields, Row: row}, {Name: "x"}}}
	if got := fmt.Sprint(statesOf(&v, 2)); got != "[-1 7]" {
		t.Errorf("the states of a witness are %s", got)
	}
}

// TestConnection: what a controller over another server tells a worker is recorded.
func TestConnection(t *testing.T) {
	var w worker
	c := &Connection{w: &w}
	var got []string
	c.OnReport(func(state string) error {
		got = append(got, state)
		return nil
	})
	for _, name := range []string{"first", "second"} {
		c.OnLeave(func() error {
			got = append(got, name)
			return nil
		})
	}
	if err := errors.Join(w.changeTo(7), w.leave()); err != nil || fmt.Sprint(got) != "[7 second first]" {
		t.Errorf("%v, %v", got, err)
	}
	c.Receive("12")
	c.Receive("odd")
	c.Fail(errors.New("broken"))
	c.Fail(errors.New("broken again"))
	if len(w.told) != 1 || w.told[0].Number != 12 || w.failed == nil || w.failed.Error() != "broken" {
		t.Errorf("%+v, %v", w.told, w.failed)
	}
	r := &run{workers: 1}
	v := newView(r, nil)
	v.Tell = func([]byte) error { return errors.New("broken") }
	v.Update("0", "1")
	if want := "message to the workers: broken"; len(r.record.firings) != 1 || r.record.failed == nil || r.record.failed.Error() != want {
		t.Errorf("%+v, %v", r.record.firings, r.record.failed)
	}
	r.record.failed = nil
	v.Fail(errors.New("watch"))
	if r.record.failed == nil || r.record.failed.Error() != "watch" {
		t.Errorf("%v", r.record.failed)
	}
}

// echoServer sends back what it receives, until the test ends.
func echoServer(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// TestProxy: bytes arrive in order, and not before their delay.
func TestProxy(t *testing.T) {
	const seed = 5
	p, err := startProxy(t.Context(), echoServer(t), longest, seed)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	delay := func(way uint64) time.Duration {
		return time.Duration(rand.New(rand.NewPCG(seed, way)).Int64N(int64(longest) + 1)) //nolint:gosec // A test.
	}
	began := source.Monotonic()
	var sent bytes.Buffer
	for i := range 200 {
		line := "line " + strconv.Itoa(i) + "\n"
		sent.WriteString(line)
		if _, err := io.WriteString(c, line); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, sent.Len())
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent.Bytes()) {
		t.Errorf("%v, and in another order: %t", err, !bytes.Equal(got, sent.Bytes()))
	}
	if took, least := source.Monotonic().Sub(began), delay(0)+delay(1); took < least {
		t.Errorf("the way took %v, and its delays are %v", took, least)
	}
}

// TestProxyWithoutServer: the client sees the end of the connection.
func TestProxyWithoutServer(t *testing.T) {
	p, err := startProxy(t.Context(), "127.0.0.1:1", longest, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestServerAdmitsNobodyElse: the server of a run asks for its token.
func TestServerAdmitsNobodyElse(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := startServer(true)
	if err != nil {
		t.Fatal(err)
	}
	if nc, err := nats.Connect(s.URL); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("without a token: %v", err)
	}
	if err := s.End(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("the directory of JetStream is still there: %v, %v", left, err)
	}
}

package testnats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nodeEnv has a test binary be a server of a cluster: a node as JSON.
const nodeEnv = "PEGASUS_TEST_NODE"

// size is how many servers a cluster has.
const size = 3

// limit is how long a server or a cluster may take to be there.
const limit = time.Minute

// node is how a server of a cluster is started, and started again.
type node struct {
	Name        string
	Port, Route int
	Routes      []string // of all
	Dir         string
	MaxPayload  int32
	Conf        string // a configuration file with who may connect; empty: anybody may, and there is JetStream
}

// Cluster is three servers, each a process of its own. Its methods are for the goroutine of the test.
type Cluster struct {
	URL string // of all servers, separated by commas

	tb        testing.TB
	nodes     [size]node
	processes [size]*process // nil: killed
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // The process ends when it is closed, also by the end of the test.
}

// Main is for TestMain of a package that starts a cluster. It runs a server in a process that a cluster has
// started, and the tests otherwise. It does not return.
func Main(m *testing.M) {
	RunNode()
	os.Exit(m.Run())
}

// RunNode runs a server in a process that a cluster has started, and does not return then. In other processes it does
// nothing. It is for TestMain of a package that has other things to do there than [Main].
func RunNode() {
	text := os.Getenv(nodeEnv)
	if text == "" {
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, "testnats:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a server until stdin ends.
func serve(text string) error {
	var n node
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return err
	}
	o, err := server.ProcessConfigFile(n.Conf) // Of "" there are no settings.
	if err != nil {
		return err
	}
	o.ServerName, o.Host, o.Port, o.NoSigs, o.NoLog, o.MaxPayload = n.Name, "127.0.0.1", n.Port, true, true, n.MaxPayload
	o.Cluster, o.Routes = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: n.Route}, server.RoutesFromStr(strings.Join(n.Routes, ","))
	o.JetStream, o.StoreDir = n.Conf == "", n.Dir
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(limit) {
		return fmt.Errorf("%s did not start within %v", n.Name, limit)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // Until it ends.
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// StartCluster runs a cluster with JetStream until the test ends. The package needs [Main] in its TestMain.
func StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c := startCluster(tb, "")
	js := c.JetStream(tb)
	c.until("the cluster to take streams", func(ctx context.Context) error {
		const name = "READY"
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: name, Replicas: size})
		if err != nil {
			return err
		}
		return js.DeleteStream(ctx, name)
	})
	return c
}

// StartSecuredCluster is StartCluster without JetStream. A configuration file of nats-server says who may connect; its
// paths are relative to its directory. The servers may not know each other yet when it returns.
func StartSecuredCluster(tb testing.TB, conf string) *Cluster {
	tb.Helper()
	return startCluster(tb, conf)
}

func startCluster(tb testing.TB, conf string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	ports := freePorts(tb, 2*size)
	var routes, urls []string
	for i := range size {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[size+i]))
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	c.URL = strings.Join(urls, ",")
	dir := tb.TempDir()
	tb.Cleanup(func() {
		for i := range size {
			if c.processes[i] != nil {
				c.Kill(i)
			}
		}
	})
	for i := range size {
		name := fmt.Sprintf("n%d", i)
		c.nodes[i] = node{Name: name, Port: ports[i], Route: ports[size+i], Routes: routes, Dir: filepath.Join(dir, name), MaxPayload: 1 << 20, Conf: conf}
		c.begin(i)
	}
	for i := range size {
		c.ready(i)
	}
	return c
}

// freePorts are ports that are free now. Something else may take one before it is used, which fails the test.
func freePorts(tb testing.TB, n int) (ports []int) {
	tb.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(tb, err)
		defer func() { check(tb, l.Close()) }()             // All are held until all are found.
		ports = append(ports, l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // It listens on TCP.
	}
	return ports
}

// begin starts the process of a server.
func (c *Cluster) begin(i int) {
	c.tb.Helper()
	text, err := json.Marshal(c.nodes[i])
	check(c.tb, err)
	binary, err := os.Executable() // Which the other directory does not change.
	check(c.tb, err)
	cmd := exec.Command(binary) //nolint:noctx // It lives until it is killed, or stdin ends.
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	if conf := c.nodes[i].Conf; conf != "" {
		cmd.Dir = filepath.Dir(conf)
	}
	stdin, err := cmd.StdinPipe()
	check(c.tb, err)
	check(c.tb, cmd.Start())
	c.processes[i] = &process{cmd: cmd, stdin: stdin}
}

// ready waits until a server takes clients.
func (c *Cluster) ready(i int) {
	c.tb.Helper()
	c.until(c.nodes[i].Name+" to listen", func(context.Context) error {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", c.nodes[i].Port), time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// until tries something until it succeeds.
func (c *Cluster) until(what string, try func(context.Context) error) {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit) // A cluster is also stopped after the test's own context.
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond) //nolint:forbidigo // It waits for a process.
	defer tick.Stop()
	for {
		once, end := context.WithTimeout(ctx, 5*time.Second)
		err := try(once)
		end()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			c.tb.Fatalf("waited %v for %s: %v", limit, what, err)
		case <-tick.C:
		}
	}
}

// Kill ends a server as SIGKILL does.
func (c *Cluster) Kill(i int) {
	c.tb.Helper()
	p := c.processes[i]
	c.processes[i] = nil
	check(c.tb, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // It says that the process was killed.
	_ = p.stdin.Close()
}

// Restart starts a server that was killed, and returns when it takes clients.
func (c *Cluster) Restart(i int) {
	c.tb.Helper()
	c.begin(i)
	c.ready(i)
}

// Leader is the server that leads a stream. It waits until there is one.
func (c *Cluster) Leader(js jetstream.JetStream, stream string) (leader int) {
	c.tb.Helper()
	c.until("a leader of "+stream, func(ctx context.Context) error {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		leader = c.index(s.CachedInfo().Cluster)
		if leader < 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return leader
}

// ConsumerLeader is the server that leads a consumer of a stream. It waits until there is one.
func (c *Cluster) ConsumerLeader(consumer jetstream.Consumer) (leader int) {
	c.tb.Helper()
	c.until("a leader of a consumer", func(ctx context.Context) error {
		info, err := consumer.Info(ctx)
		if err != nil {
			return err
		}
		leader = c.index(info.Cluster)
		if leader < 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return leader
}

func (c *Cluster) index(info *jetstream.ClusterInfo) int {
	if info == nil {
		return -1
	}
	return slices.IndexFunc(c.nodes[:], func(n node) bool { return n.Name == info.Leader })
}

// Connect is a client of the cluster, until the test ends. It never gives up a lost connection.
func (c *Cluster) Connect(tb testing.TB) *nats.Conn {
	tb.Helper()
	nc, err := nats.Connect(c.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	check(tb, err)
	tb.Cleanup(nc.Close)
	return nc
}

// JetStream is that of a client of its own.
func (c *Cluster) JetStream(tb testing.TB, options ...jetstream.JetStreamOpt) jetstream.JetStream {
	tb.Helper()
	js, err := jetstream.New(c.Connect(tb), options...)
	check(tb, err)
	return js
}

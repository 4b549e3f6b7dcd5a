package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/reading"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// NodeConfig says what a node is. Only Group and Name are needed.
type NodeConfig struct {
	// Group is the group of processors that the program's configuration names.
	Group string
	// Name is the node's name: its processors are the members NAME-0, NAME-1 and so
	// on.
	Name string
	// Tenant keeps programs on one server apart; see [Config].
	Tenant string

	// Processors is how many blocks run here at once, each on a processor of its own.
	// Default: 1.
	Processors int
	// Labels say what the node has; programs place blocks by them.
	Labels []string
	// Cores is how many cores each processor offers. Default: those that Go uses,
	// divided by Processors, one at least.
	Cores int
	// Pin keeps each processor on cores of its own, the Cores*i-th and those after it
	// of the cores that the process may use: the code of a block runs on one thread,
	// which only they carry, and so do the processes that it starts. Linux only.
	Pin bool
	// Unbound leaves the processes of blocks to the system, where [Run.CPUs] would tell
	// cores for them.
	Unbound bool

	// Observe fills the fields of the blocks' state that observe.Fields names and that
	// are floats: power and quota by the cores that a processor offers, the others as
	// they are of the node. A block that sets one is overruled by the next reading. An
	// observe.Observer is not closed; give it Children where blocks start processes.
	Observe reading.Source

	// NATS are options of the connections, such as nats.UserCredentials; as in [WithNATS].
	// Nil: what the environment gives. An empty list: none.
	NATS []nats.Option

	Host          string          // as in [Config]
	Clock         clocksync.Clock // as in Config
	SeparateClock bool            // as in Config
	JoinTimeout   time.Duration   // as in Config
	Logger        *slog.Logger    // as in Config
}

// MaxProcessors is how many processors a node may have.
const MaxProcessors = 1024

// Node is a set of processors in this process. They run the blocks that a
// program's synchronizer starts there.
type Node struct {
	cfg         NodeConfig
	blocks      map[string]*BlockCode
	threaded    []string // of these, the ones with threads, in order
	control     *bus.Bus // all members share its connection
	multiplexer *multiplexer
	data        *bus.Bus // for inputs and results
	ctx         context.Context
	cancel      context.CancelCauseFunc
	mu          sync.Mutex // while processors join
	members     []*processor
	running     sync.WaitGroup
	leave       func() error
}

// JoinNode creates the processors of cfg in this process and joins them to a group whose
// synchronizer runs a program (package control/program). It dials two connections to the NATS server at
// url, one for states and signals, and one for inputs and results. It fails where [Join] fails.
// It also fails if the group does not consist of processors, or if the threads of a block have
// another state than its [ThreadState].
//
// A block whose node is gone is lost to its program, which decides what follows.
func JoinNode(ctx context.Context, url string, cfg NodeConfig, blocks ...BlockCode) (*Node, error) {
	n, err := newNode(cfg, blocks)
	if ctx == nil {
		err = errors.Join(err, errNilContext)
	}
	if err != nil {
		return nil, fmt.Errorf("agent: node %q: %w", cfg.Name, err)
	}
	// ctx bounds JoinNode, and the node lives until Close.
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.leave = sync.OnceValue(n.end)
	server, options, err := connect.To(url, cfg.NATS)
	o := bus.Options{Extra: options, Explain: server.Explain}
	if err == nil {
		o.Name, o.OnError = "pegasus node "+cfg.Group+"/"+cfg.Name, n.complained
		n.control, err = bus.Dial(ctx, server.URL, o)
	}
	if err == nil {
		// The first connection logs refused credentials already.
		o.Name, o.OnError = "pegasus data "+cfg.Group+"/"+cfg.Name, func(err error) {
			if !bus.CredentialsRefused(err) {
				n.complained(err)
			}
		}
		n.data, err = bus.Dial(ctx, server.URL, o)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotConnected, server.Explain(err))
	}
	if err == nil {
		n.multiplexer = newMultiplexer(cfg.Name, wire.Subjects{Tenant: n.cfg.Tenant, Group: cfg.Group}, n.control, n.cfg.Logger)
		err = n.multiplexer.subscribeName(ctx, cfg.Name)
		if refused := n.control.Refused(strconv.Quote(n.multiplexer.subjects.Signal(cfg.Name))); err == nil && refused != nil {
			err = notPermitted(&server, &n.multiplexer.subjects, refused, "node", cfg.Name)
		}
	}
	if err == nil {
		err = n.join(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("agent: node %q: %w", cfg.Name, err), n.Close())
	}
	return n, nil
}

// complained logs what a connection says outside any call.
func (n *Node) complained(err error) {
	n.cfg.Logger.Warn("the connection complains", telemetry.ClassKey, bus.Class(err), "node", n.cfg.Name, "error", err)
}

func newNode(cfg NodeConfig, blocks []BlockCode) (*Node, error) {
	if cfg.Processors == 0 {
		cfg.Processors = 1
	}
	if cfg.Cores == 0 {
		cfg.Cores = max(1, runtime.GOMAXPROCS(0)/max(cfg.Processors, 1))
	}
	cfg.Tenant = cmp.Or(cfg.Tenant, "default")
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = telemetry.Sampled(cfg.Logger)
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, errors.New("no blocks: give at least one, made by Block")
	}
	n := &Node{cfg: cfg, blocks: map[string]*BlockCode{}}
	for i := range blocks {
		b := &blocks[i]
		if err := wire.CheckToken("block", b.name); err != nil {
			return nil, err
		}
		if b.name == wire.ProcessorRegion {
			return nil, fmt.Errorf("block %q: that is the name of the region of every processor: use another", b.name)
		}
		if b.run == nil || n.blocks[b.name] != nil {
			return nil, fmt.Errorf("block %q is given twice, or has no code", b.name)
		}
		n.blocks[b.name] = b
		if b.threaded {
			n.threaded = append(n.threaded, b.name)
		}
	}
	slices.Sort(n.threaded)
	if _, ok := wordList(wire.FieldThreaded, n.threaded); !ok {
		return nil, fmt.Errorf("%d blocks with threads, with %d bytes of names: at most %d blocks, with %d bytes of names together, can be reported", len(n.threaded), len(strings.Join(n.threaded, "")), scgs.MaxElements, scgs.MaxTextBytes)
	}
	return n, nil
}

// validate finds all the faults of a configuration with its defaults.
func (c *NodeConfig) validate() error {
	faults := []error{wire.Subjects{Tenant: c.Tenant, Group: c.Group}.Check(), wire.CheckToken("name", c.Name)}
	if c.Processors < 1 || c.Processors > MaxProcessors {
		faults = append(faults, fmt.Errorf("%d processors: use 1 to %d", c.Processors, MaxProcessors))
	}
	if c.Pin && c.Unbound {
		faults = append(faults, errors.New("its Pin and Unbound exclude each other: leave out one"))
	}
	if c.Cores < 1 {
		faults = append(faults, fmt.Errorf("%d cores a processor: use 1 or more", c.Cores))
	}
	if c.JoinTimeout < 0 {
		faults = append(faults, fmt.Errorf("its JoinTimeout is %v: it is more than 0, or 0 for %v", c.JoinTimeout, defaultJoinTimeout))
	}
	for _, l := range c.Labels {
		faults = append(faults, wire.CheckToken("label", l))
	}
	if _, ok := wordList(wire.FieldLabels, c.Labels); !ok {
		faults = append(faults, fmt.Errorf("%d labels of %d bytes: at most %d labels, of %d bytes together, can be reported", len(c.Labels), len(strings.Join(c.Labels, "")), scgs.MaxElements, scgs.MaxTextBytes))
	}
	return errors.Join(faults...)
}

// wordList is the value of a field with a list of words, if that may have so many.
func wordList(field string, words []string) (list scgs.Value, ok bool) {
	values := make([]scgs.Value, len(words))
	for i, w := range words {
		values[i] = scgs.StringValue(w)
	}
	list = scgs.ListValue(scgs.String, values...)
	f := scgs.Field{Name: field, Type: scgs.ListOf(scgs.String)}
	return list, f.Accepts(list)
}

// join joins the processors, all at once.
func (n *Node) join(ctx context.Context) error {
	pins, err := n.divideCores()
	if err != nil {
		return err
	}
	errs := make([]error, n.cfg.Processors)
	var joining sync.WaitGroup
	for i := range errs {
		joining.Go(func() {
			var p *processor
			if p, errs[i] = n.processor(ctx, i, pins); errs[i] == nil {
				n.mu.Lock()
				n.members = append(n.members, p)
				n.mu.Unlock()
			}
		})
	}
	joining.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	slices.SortFunc(n.members, func(a, b *processor) int { return a.index - b.index })
	for _, p := range n.members {
		n.running.Go(p.runProcessor)
	}
	return nil
}

// processor joins one processor.
func (n *Node) processor(ctx context.Context, i int, pins [][]int) (*processor, error) {
	p := &processor{node: n, index: i, stopDelivery: func() {}}
	if pins != nil {
		p.cpus = pins[i]
	}
	share := func(j *joining) { j.node = n.multiplexer }
	var err error
	p.m, err = Join(ctx, "", Config{
		Group: n.cfg.Group, Name: n.cfg.Name + "-" + strconv.Itoa(i), Tenant: n.cfg.Tenant,
		Host: n.cfg.Host, Clock: n.cfg.Clock, SeparateClock: n.cfg.SeparateClock,
		JoinTimeout: n.cfg.JoinTimeout, Logger: n.cfg.Logger,
	}, share)
	if err != nil {
		return nil, err
	}
	if err := p.checkAdmission(); err != nil {
		return nil, errors.Join(err, p.m.Close())
	}
	p.unwatch = func() {}
	if n.cfg.Observe != nil {
		p.unwatch = n.cfg.Observe.Watch(p.noteReading)
	}
	return p, nil
}

// Processors are the names of the node's processors.
func (n *Node) Processors() []string {
	names := make([]string, len(n.members))
	for i, p := range n.members {
		names[i] = p.m.cfg.Name
	}
	return names
}

// Close leaves the group: the contexts of blocks that run end with [ErrClosed], and
// Close returns when all of them have returned and everything else has ended. Their
// program takes them for lost. Closing again does nothing and returns the same.
func (n *Node) Close() error { return n.leave() }

func (n *Node) end() error {
	n.cancel(ErrClosed)
	errs := make([]error, len(n.members))
	var closing sync.WaitGroup
	for i, p := range n.members {
		closing.Go(func() {
			p.unwatch()
			errs[i] = p.m.Close()
		})
	}
	closing.Wait()
	n.running.Wait()
	if n.data != nil {
		errs = append(errs, n.data.Close())
	}
	if n.multiplexer != nil {
		errs = append(errs, n.multiplexer.endMultiplexer())
	}
	if n.control != nil {
		errs = append(errs, n.control.Close())
	}
	return errors.Join(errs...)
}

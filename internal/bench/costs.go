package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
	"github.com/gopegasus/pegasus/synchronizer"
)

// stampCost is what one stamp of the system's clock takes, in nanoseconds.
func stampCost() float64 {
	const stamps = 1 << 18
	clock := source.System()
	var took []float64
	for range 9 {
		began := clock.Now()
		for range stamps {
			clock.Now()
		}
		took = append(took, float64(clock.Now().Mono.Sub(began.Mono))/stamps)
	}
	return median(took)
}

// reportAllocs counts the allocations of a report: what the program's call does,
// and the machines on both sides with the codec between them.
func reportAllocs(ctx context.Context, url string) (float64, error) {
	set, err := setAllocs(ctx, url)
	if err != nil {
		return 0, err
	}
	way, err := wayAllocs()
	return set + way, err
}

// setAllocs counts the allocations of Set. The batch waits meanwhile, so that NATS
// is left out.
func setAllocs(ctx context.Context, url string) (allocs float64, err error) {
	cfg, err := synchronizer.ParseConfig("allocs", fmt.Appendf(nil, rateConfig, "allocs", 1, window))
	if err != nil {
		return 0, err
	}
	_, options, err := ownServer(url)
	if err != nil {
		return 0, err
	}
	s, err := synchronizer.Start(ctx, url, cfg, synchronizer.Options{Tenant: tenant, NATS: options})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m, err := agent.Join(ctx, url, agent.Config{Tenant: tenant, Group: "allocs", Name: "m0", BatchSize: agentcore.RingTransitions, BatchAge: time.Hour}, agent.WithNATS(options...))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	one := state{}
	set := func() {
		one.Load = 1 - one.Load
		err = errors.Join(err, m.Set(one))
	}
	for range agentcore.RingTransitions { // The ring has grown then, and is reported as it is full.
		set()
	}
	least := math.Inf(1)
	for range 4 { // What is told meanwhile is in one of them.
		least = min(least, testing.AllocsPerRun(agentcore.RingTransitions/8, set))
	}
	return least, err
}

// runs is over how many reports of each member allocations are averaged, and how
// many come before them so that everything has grown to its working size.
const runs = 1000

// wayAllocs counts the allocations of a report through the machines.
func wayAllocs() (float64, error) {
	w, err := newWay(1)
	if err != nil {
		return 0, err
	}
	for range runs * reporters {
		w.report()
	}
	allocs := testing.AllocsPerRun(runs*reporters, w.report)
	var out synccore.Output
	w.sync.Step(w.now, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Counts: true}}, &out)
	if n := out.Answer.Counts; w.err == nil && n.Global < runs*reporters {
		w.err = fmt.Errorf("%d reports came to %d global states only", n.Reports, n.Global)
	}
	return allocs, w.err
}

// way is how a report goes, without what carries it: members and their
// synchronizer, as machines, and the codec between them.
type way struct {
	members []*agentcore.Core
	sync    *synccore.Core
	codec   *wire.BatchCodec
	now     clocksync.Instant
	next    int // the member whose turn it is
	err     error

	row   []scgs.Value
	told  agentcore.Input
	flush agentcore.Output
	frame []byte
	batch wire.Batch
	in    synccore.Input
	out   synccore.Output
}

const wayDomain = "bench"

// newWay has the members welcomed. They tell states in batches of that many.
func newWay(batch int) (*way, error) {
	plans, err := configfile.Parse("allocs", fmt.Appendf(nil, rateConfig, "allocs", reporters, window))
	if err != nil {
		return nil, err
	}
	w := &way{
		sync:  synccore.New(plans[0], synccore.Options{Term: 1, Reference: wayDomain, OnDemand: true}),
		codec: wire.NewBatchCodec(plans[0].State),
		row:   make([]scgs.Value, 2),
	}
	for i := range reporters {
		hello := wire.Hello{Member: memberName(i), Incarnation: 1, Domain: wayDomain}
		m := agentcore.New(agentcore.Options{Hello: hello, BatchSize: batch, BatchAge: time.Hour})
		w.sync.Step(w.now, &synccore.Input{Kind: synccore.InHello, From: hello.Member, Hello: &hello}, &w.out)
		for _, welcome := range w.out.Welcomes {
			m.Step(w.now, &agentcore.Input{Kind: agentcore.InWelcome, Welcome: &welcome.Msg}, &w.flush)
		}
		if w.flush.Reception != agentcore.Accepted {
			return nil, fmt.Errorf("member %s of the count of allocations is not welcome: %+v", hello.Member, w.out)
		}
		w.members = append(w.members, m)
	}
	return w, nil
}

// report has the next member tell one state.
func (w *way) report() {
	m := w.members[w.next]
	w.now++
	w.row[0], w.row[1] = scgs.FloatValue(float64(w.now%100)), scgs.IntValue(int64(w.now%2)) // N never ends a window.
	w.told = agentcore.Input{Kind: agentcore.InState, At: w.stamp(), Row: w.row}
	if m.Step(w.now, &w.told, &w.flush); w.flush.Err != nil {
		w.err = w.flush.Err
		return
	}
	w.next = (w.next + 1) % reporters
	if w.now++; w.flush.Wake > w.now {
		return
	}
	w.told = agentcore.Input{Kind: agentcore.InTick, At: w.stamp()}
	m.Step(w.now, &w.told, &w.flush)
	for i := range w.flush.Batches {
		w.carry(&w.flush.Batches[i])
	}
}

// carry takes a batch to the synchronizer.
func (w *way) carry(b *wire.Batch) {
	var err error
	if w.frame, _, err = w.codec.Append(w.frame[:0], b); err == nil {
		w.batch.Member = b.Member // As the subject tells a synchronizer.
		err = w.codec.Decode(w.frame, wayDomain, &w.batch)
	}
	if err != nil {
		w.err = err
		return
	}
	w.in = synccore.Input{Kind: synccore.InBatch, From: b.Member, Batch: &w.batch}
	w.sync.Step(w.now, &w.in, &w.out)
	if len(w.out.Rejected) > 0 {
		w.err = fmt.Errorf("a report is refused: %v", w.out.Rejected[0])
	}
}

func (w *way) stamp() clocksync.Stamp {
	return clocksync.Stamp{Domain: wayDomain, Mono: w.now, Within: clocksync.Exactly(w.now)}
}

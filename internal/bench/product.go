package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/synchronizer"
)

// reporters is how many members tell states in turn when rates are measured.
const reporters = 10

// tenant of the benchmarks on a server of their own.
const tenant = "bench"

// rateConfig judges a sum on every global state: the sum of the states told so far. It answers
// the first member whenever that many more are in: the flow control of the leg.
const rateConfig = `
synchronizers:
  %s:
    members: {group: %[1]s, count: %d}
    state: {load: float, n: int}
    memory: {answered: {type: int, initial: 0}}
    predicates:
      answer:
        when: sum(map(members, .n)) >= memory.answered + %[3]d
        every: true
        set: {answered: "sum(map(members, .n)) - sum(map(members, .n)) %% %[3]d"}
        signal: {kind: activate, region: bench, to: "filter(members, .name == \"m0\")", data: {n: "sum(map(members, .n))"}}
`

// signalConfig answers every state of the first member.
const signalConfig = `
synchronizers:
  %s:
    members: {group: %[1]s, count: %d}
    state: {load: float, n: int}
    predicates:
      answer:
        when: any(members, .n > 0)
        every: true
        signal: {kind: activate, region: bench, to: "filter(members, .name == \"m0\")", data: {n: "max(map(members, .n))"}}
`

const threadConfig = `
synchronizers:
  threads:
    members: {group: threads, count: 1}
    state: {}
  below:
    parent: threads
    members: {threads: 2}
    state: {n: int}
    predicates:
      answer:
        when: any(members, .n > 0)
        every: true
        signal: {kind: activate, region: bench, to: "filter(members, .name == \"poller\")", data: {n: "max(map(members, .n))"}}
`

// startGroup runs the synchronizer of a group and has the worker join members of it, with the
// fields that are set of join.
func (b *bench) startGroup(ctx context.Context, config, group string, join request) (*synchronizer.Synchronizer, error) {
	cfg, err := synchronizer.ParseConfig(group, []byte(config))
	if err != nil {
		return nil, err
	}
	_, options, err := ownServer(b.url)
	if err != nil {
		return nil, err
	}
	s, err := synchronizer.Start(ctx, b.url, cfg, synchronizer.Options{Name: group, Tenant: tenant, NATS: options})
	if err != nil {
		return nil, err
	}
	join.Op, join.URL, join.Tenant, join.Group = opJoin, b.url, tenant, group
	if _, err = b.worker.call(ctx, join); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// endGroup has the members leave and ends their synchronizer.
func (b *bench) endGroup(ctx context.Context, group string, s *synchronizer.Synchronizer) error {
	_, err := b.worker.call(ctx, request{Op: opLeave, Group: group})
	return errors.Join(err, s.Close())
}

// rates measures reports one by one and in batches against bare messages.
func (b *bench) rates(ctx context.Context, r *Result) (err error) {
	syncs := map[string]*synchronizer.Synchronizer{}
	for group, join := range map[string]request{
		"single":  {Members: reporters, Batch: 1, Own: true}, // Else one message would have the states of several members.
		"batched": {Members: reporters, Batch: 64},
	} {
		s, err := b.startGroup(ctx, fmt.Sprintf(rateConfig, group, reporters, window*reporters), group, join)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unjudged(s), b.endGroup(ctx, group, s)) }()
		syncs[group] = s
	}
	sizes, err := b.sizes(ctx, request{Op: opRate, Group: "single"})
	if err != nil {
		return err
	}
	legs, err := b.legs(ctx,
		// Those that are compared take turns one after the other.
		request{Op: opRawRate, Bytes: sizes.report, Members: 1},
		request{Op: opRate, Group: "single"},
		request{Op: opRawRate, Bytes: sizes.report, Members: reporters},
		request{Op: opRate, Group: "batched"},
	)
	if err != nil {
		return err
	}
	r.Reports, r.OneConnection, r.Batched = over(legs[1], legs[2], rate), over(legs[1], legs[0], rate), over(legs[3], legs[2], rate)
	r.ReportsMessage, r.BatchedMessage = perMessage(syncs["single"]), perMessage(syncs["batched"])
	return nil
}

// perMessage is how many states a message had.
func perMessage(s *synchronizer.Synchronizer) float64 {
	n := s.Stats()
	return float64(n.Reports) / float64(max(n.Frames, 1))
}

// unjudged is an error if states were taken in that no global state has.
func unjudged(s *synchronizer.Synchronizer) error {
	if n := s.Stats().Collapsed; n > 0 {
		return fmt.Errorf("%d states were given up before they were judged: the machine is too busy to measure on", n)
	}
	return nil
}

// sizes are the sizes of the messages of a group, in bytes.
type sizes struct{ report, signal int }

// sizes listens to the messages of a short leg.
func (b *bench) sizes(ctx context.Context, q request) (sizes, error) {
	subjects := wire.Subjects{Tenant: tenant, Group: q.Group}
	var report, signal meanSize
	nc, err := bare(b.url, map[string]func(*nats.Conn, *nats.Msg){subjects.State(memberName(0)): report.add, subjects.Signal("*"): signal.add})
	if err != nil {
		return sizes{}, err
	}
	defer nc.Close()
	q.Time = b.Leg / 5
	if _, err := b.worker.call(ctx, q); err != nil {
		return sizes{}, err
	}
	if err := nc.Flush(); err != nil {
		return sizes{}, err
	}
	return sizes{report.get(), signal.get()}, nil
}

// meanSize is the mean size of the messages so far.
type meanSize struct{ bytes, messages atomic.Int64 }

func (s *meanSize) add(_ *nats.Conn, m *nats.Msg) {
	s.bytes.Add(int64(len(m.Data)))
	s.messages.Add(1)
}

func (s *meanSize) get() int { return int(s.bytes.Load() / max(s.messages.Load(), 1)) }

// signals measures signals that need no probe, as the member that told a state is the
// only one, and those that do, with a second member, which is silent.
func (b *bench) signals(ctx context.Context, r *Result) error {
	bare, pegasus, err := b.roundTrips(ctx, "alone", 1, 0)
	if err != nil {
		return err
	}
	r.SignalP50, r.SignalP99 = over(pegasus, bare, p50), over(pegasus, bare, p99)
	if bare, pegasus, err = b.roundTrips(ctx, "pair", 2, 0); err != nil {
		return err
	}
	r.ProbeP50 = over(pegasus, bare, p50)
	if bare, pegasus, err = b.roundTrips(ctx, "apart", 1, 1); err == nil {
		r.ApartP50 = over(pegasus, bare, p50)
	}
	return err
}

// roundTrips measures the signals of a group, of which some members are in the third
// process.
func (b *bench) roundTrips(ctx context.Context, group string, members, apart int) (bare, pegasus []figures, err error) {
	s, err := b.startGroup(ctx, fmt.Sprintf(signalConfig, group, members+apart), group, request{Members: members})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, b.endGroup(ctx, group, s)) }()
	if apart > 0 {
		join := request{Op: opJoin, URL: b.url, Tenant: tenant, Group: group, Members: apart, First: members}
		for _, q := range []request{join, {Op: opTell, Group: group}} {
			if _, err := b.apart.call(ctx, q); err != nil {
				return nil, nil, err
			}
		}
		defer func() {
			_, failed := b.apart.call(ctx, request{Op: opLeave, Group: group})
			err = errors.Join(err, failed)
		}()
	}
	sizes, err := b.sizes(ctx, request{Op: opSignal, Group: group})
	if err != nil {
		return nil, nil, err
	}
	b.echo.answerWith(sizes.signal)
	legs, err := b.legs(ctx, request{Op: opRawEcho, Bytes: sizes.report}, request{Op: opSignal, Group: group})
	if err != nil {
		return nil, nil, err
	}
	return legs[0], legs[1], nil
}

// threads measures what stays inside the worker.
func (b *bench) threads(ctx context.Context, r *Result) (err error) {
	s, err := b.startGroup(ctx, threadConfig, "threads", request{Members: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.endGroup(ctx, "threads", s)) }()
	legs, err := b.legs(ctx, request{Op: opThreads, Group: "threads"})
	if err != nil {
		return err
	}
	at := func(figure func(figures) float64) float64 { return middle(legs[0], figure) }
	r.ThreadSignal = Percentiles{at(p50), at(p99)}
	r.Check = at(func(f figures) float64 { return f.Check })
	r.AtomicLoad = at(func(f figures) float64 { return f.Load })
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/connect"
)

// result is what a member prints at its end.
type result struct {
	Name           string
	Done           []int
	Sent, Received int
	Sum            uint64
}

// unit is how many steps a unit of work takes; a member that is slow does it several
// times.
const unit = 400_000

// spin is the work of a task, and its result.
func spin(units float64, slow int) uint64 {
	x := uint64(88172645463325252)
	for range slow * int(units*unit) {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// calibrate finds how many units a second this member can do.
func calibrate(slow int) float64 {
	const units = 2
	begun := time.Now()
	_ = spin(units, slow)
	return units / max(time.Since(begun).Seconds(), 1e-6)
}

// worker is a member with a pool.
type worker struct {
	f      *flags
	nc     *nats.Conn // for tasks; the agent has a connection of its own
	pool   *pool
	number int    // of the parcels
	sum    uint64 // of the results
}

func subject(member string) string { return "pool.take." + member }

func work(ctx context.Context, f *flags) (err error) {
	nc, err := dialData(f.url)
	if err != nil {
		return err
	}
	defer nc.Close()
	m, err := agent.Join(ctx, f.url, agent.Config{Group: "workers", Name: f.name, State: state{}, JoinTimeout: time.Minute, BatchAge: f.batch})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	w := worker{f: f, nc: nc, pool: newPool(tasksOf(f), calibrate(f.slow), func(s state) error { return m.Set(s) })}
	if err := w.listen(); err != nil {
		return err
	}
	err = m.Region(ctx, "pool", func(ctx context.Context, _ *agent.Region) error { return w.serve(ctx) },
		agent.OnActivateNow("balance", w.obey))
	if _, ended := errors.AsType[*agent.Canceled](err); !ended {
		return errors.Join(err, errors.New("the work ended without the signal that all is done"))
	}
	return json.NewEncoder(os.Stdout).Encode(result{f.name, w.pool.done, w.pool.sent, w.pool.received, w.sum})
}

// dialData opens the connection for tasks, with the credentials that agent.Join uses.
func dialData(url string) (*nats.Conn, error) {
	server, options, err := connect.To(url, nil)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(server.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("the connection for tasks to the NATS server at %s failed: %w", connect.WithoutUser(server.URL), server.Explain(err))
	}
	return nc, nil
}

// listen takes parcels from now on.
func (w *worker) listen() error {
	_, err := w.nc.Subscribe(subject(w.f.name), func(m *nats.Msg) {
		var x parcel
		if json.Unmarshal(m.Data, &x) == nil {
			w.pool.take(x)
			_ = m.Respond(nil) // Without it the parcel comes again.
		}
	})
	return errors.Join(err, w.nc.Flush())
}

// serve does tasks until all are done.
func (w *worker) serve(ctx context.Context) error {
	for {
		t, ok, err := w.pool.next()
		switch {
		case err != nil:
			return err
		case ok:
			w.sum ^= spin(t.Units, w.f.slow)
			w.pool.finish(t)
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.pool.wake:
		}
	}
}

// obey sends away what the synchronizer has ordered. It runs beside the work, so a long
// task does not hold it up.
func (w *worker) obey(ctx context.Context, s agent.Signal) error {
	orders, err := balance.ParseOrders(s.Text(balance.OrdersDatum))
	if err != nil {
		return err
	}
	for to, tasks := range w.pool.give(orders) {
		w.number++
		if err := w.send(ctx, to, parcel{fmt.Sprintf("%s/%d", w.f.name, w.number), tasks}); err != nil {
			return fmt.Errorf("%d tasks for %s were not taken: %w", len(tasks), to, err)
		}
	}
	return nil
}

// send repeats a parcel until it was taken.
func (w *worker) send(ctx context.Context, to string, x parcel) error {
	body, err := json.Marshal(x)
	if err != nil {
		return err
	}
	for {
		once, cancel := context.WithTimeout(ctx, time.Second)
		_, err := w.nc.RequestWithContext(once, subject(to), body)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/gopegasus/pegasus/internal/peers"
)

const (
	keyState = "peers/state/" // and the number of the worker
	keyTold  = "peers/told"
)

func etcdController() peers.Controller {
	return peers.Controller{Name: "etcd", Serve: serveEtcd, Watch: watchEtcd, Join: joinEtcd}
}

// received counts the messages that a gRPC server receives.
type received struct{ messages atomic.Int64 }

func (r *received) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, is := s.(*stats.InPayload); is {
		r.messages.Add(1)
	}
}

func (*received) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*received) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*received) HandleConn(context.Context, stats.ConnStats)                       {}

// serveEtcd starts one etcd in this process, on free ports. It does not wait for the disk, as the bucket of NATS KV is
// in memory.
func serveEtcd(ctx context.Context) (*peers.Server, error) {
	dir, err := os.MkdirTemp("", "pegasus-etcd")
	if err != nil {
		return nil, fmt.Errorf("directory for etcd: %w", err)
	}
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	var count received
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls, cfg.ListenClientUrls, cfg.AdvertiseClientUrls = free, free, free, free
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	cfg.EnableGRPCGateway = false
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.StatsHandler(&count)}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("etcd: the server cannot start: %w", err), os.RemoveAll(dir))
	}
	end := func() error {
		e.Close()
		return os.RemoveAll(dir)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the server was not ready within %v: end other programs on this machine, or free space in %s", patience, os.TempDir()))
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
		return &peers.Server{
			URL: "http://" + e.Clients[0].Addr().String(), End: end,
			Spent: func() (time.Duration, int64, error) { return 0, count.messages.Load(), nil },
		}, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, errors.Join(fmt.Errorf("etcd: %w", err), end())
}

// connectEtcd connects a client.
func connectEtcd(ctx context.Context, address string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: patience, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connection to etcd at %s: %w", address, err)
	}
	return c, nil
}

// watchKeys calls a function with each put into a key, on one goroutine, from its return until the end. The end waits for
// that goroutine.
func watchKeys(ctx context.Context, c *clientv3.Client, key string, put func(key, value string), fail func(error), options ...clientv3.OpOption) (end func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, cancel)
	changes := c.Watch(ctx, key, append(options, clientv3.WithCreatedNotify())...)
	if first := <-changes; !first.Created || !timer.Stop() {
		cancel()
		return nil, fmt.Errorf("watch of %s: etcd has not created it within %v: %w", key, patience, errors.Join(first.Err(), ctx.Err()))
	}
	var running sync.WaitGroup
	running.Go(func() {
		for r := range changes {
			if err := r.Err(); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("watch of %s: %w", key, err))
			}
			for _, e := range r.Events {
				put(string(e.Kv.Key), string(e.Kv.Value))
			}
		}
	})
	return func() error {
		cancel()
		running.Wait()
		return nil
	}, nil
}

// putInto returns what puts a text into a key, and waits for the answer.
func putInto(c *clientv3.Client, key string) func(context.Context, string) error {
	return func(ctx context.Context, text string) error {
		_, err := c.Put(ctx, key, text)
		return err
	}
}

func watchEtcd(ctx context.Context, s *peers.Server, v *peers.View) (func() error, error) {
	c, err := connectEtcd(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	tell := newSender(ctx, putInto(c, keyTold), v.Fail)
	v.Tell = func(number []byte) error { return tell.enqueue(string(number)) }
	end, err := watchKeys(ctx, c, keyState, func(key, value string) {
		v.Update(strings.TrimPrefix(key, keyState), value)
	}, v.Fail, clientv3.WithPrefix())
	if err != nil {
		return nil, errors.Join(err, tell.close(), c.Close())
	}
	return func() error { return errors.Join(end(), tell.close(), c.Close()) }, nil
}

func joinEtcd(ctx context.Context, at *peers.Connection) error {
	c, err := connectEtcd(ctx, at.URL)
	if err != nil {
		return err
	}
	at.OnLeave(c.Close)
	end, err := watchKeys(ctx, c, keyTold, func(_, number string) { at.Receive(number) }, at.Fail)
	if err != nil {
		return err
	}
	at.OnLeave(end)
	report := newSender(ctx, putInto(c, keyState+at.Worker), at.Fail)
	at.OnLeave(report.close)
	at.OnReport(report.enqueue)
	return nil
}

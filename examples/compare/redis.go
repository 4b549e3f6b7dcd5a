package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/gopegasus/pegasus/internal/peers"
)

const (
	channelState = "peers.state"
	channelTold  = "peers.told"
)

// redisController uses a program. A worker needs none.
func redisController(program string) peers.Controller {
	serve := func(ctx context.Context) (*peers.Server, error) { return serveRedis(ctx, program) }
	return peers.Controller{Name: "redis", Serve: serve, Watch: watchRedis, Join: joinRedis}
}

// attempts is how often a free port is looked for: another program may take it before redis-server does.
const attempts = 3

// serveRedis starts a redis-server without persistence, in the process group of this program.
func serveRedis(ctx context.Context, program string) (s *peers.Server, err error) {
	for range attempts {
		if s, err = tryRedis(ctx, program); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func tryRedis(ctx context.Context, program string) (*peers.Server, error) {
	port, err := findPort(ctx)
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	ctx, cancel := context.WithCancel(ctx)
	var log bytes.Buffer                          // Some lines, without a client that goes wrong.
	cmd := exec.CommandContext(ctx, program, "-") // Its input is the configuration, which other users cannot read.
	cmd.Stdin = strings.NewReader(fmt.Sprintf("bind 127.0.0.1\nport %d\nrequirepass %s\nsave \"\"\nappendonly no\nloglevel warning\n", port, token))
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("redis-server: the program cannot start: %w", err)
	}
	ended := make(chan struct{})
	go func() { // Until end.
		_ = cmd.Wait() // It was killed, or the log says more.
		close(ended)
	}()
	address := "redis://127.0.0.1:" + strconv.Itoa(port)
	c := connectRedis(address, token)
	end := func() error {
		cancel()
		<-ended
		return c.Close()
	}
	if err := waitForRedis(ctx, c, ended); err != nil {
		err = errors.Join(err, end())
		return nil, fmt.Errorf("redis-server: %w: %s", err, bytes.TrimSpace(log.Bytes()))
	}
	return &peers.Server{URL: address, Token: token, End: end, Spent: func() (time.Duration, int64, error) { return spentRedis(ctx, c) }}, nil
}

// findPort finds a free port of the loopback interface. redis-server cannot find one.
func findPort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("port for redis-server: cannot listen on the loopback interface: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // It is the address of a TCP listener.
	return port, l.Close()
}

// waitForRedis waits until a server answers.
func waitForRedis(ctx context.Context, c *redis.Client, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the server was not ready within %v: end other programs on this machine", patience))
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if c.Ping(ctx).Err() == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ended:
			return errors.New("the program ended at once: check that redis-server on the PATH is of Redis")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// spentRedis reads the processor time of the server, and how many commands it has processed.
func spentRedis(ctx context.Context, c *redis.Client) (cpu time.Duration, commands int64, err error) {
	text, err := c.Info(ctx, "cpu", "stats").Result()
	if err != nil {
		return 0, 0, err
	}
	return parseInfo(text)
}

func parseInfo(text string) (cpu time.Duration, commands int64, err error) {
	var seconds float64
	found := 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_sys", "used_cpu_user":
			part, bad := strconv.ParseFloat(value, 64)
			seconds += part
			err = errors.Join(err, bad)
		case "total_commands_processed":
			var bad error
			commands, bad = strconv.ParseInt(value, 10, 64)
			err = errors.Join(err, bad)
		default:
			continue
		}
		found++
	}
	if err == nil && found != 3 {
		err = errors.New("the answer of INFO lacks used_cpu_sys, used_cpu_user or total_commands_processed: use Redis 6.2 or later")
	}
	return time.Duration(seconds * float64(time.Second)), commands, err
}

// connectRedis makes a client. It repeats no command, since the second one could come after a later one.
func connectRedis(address, token string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: strings.TrimPrefix(address, "redis://"), Password: token, Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// subscribe calls a function with each message of a channel, on one goroutine, from its return until the end. The end waits
// for that goroutine.
func subscribe(ctx context.Context, c *redis.Client, channel string, receive func(text string), fail func(error)) (end func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	s := c.Subscribe(ctx, channel)
	if _, err := s.ReceiveTimeout(ctx, patience); err != nil { // Its confirmation.
		cancel()
		return nil, errors.Join(fmt.Errorf("subscription to %s: %w", channel, err), s.Close())
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			m, err := s.ReceiveMessage(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				fail(fmt.Errorf("subscription to %s: %w", channel, err))
				return
			}
			receive(m.Payload)
		}
	})
	return func() error {
		cancel()
		err := s.Close()
		running.Wait()
		return err
	}, nil
}

func watchRedis(ctx context.Context, s *peers.Server, v *peers.View) (func() error, error) {
	c := connectRedis(s.URL, s.Token)
	tell := newSender(ctx, func(ctx context.Context, number string) error { return c.Publish(ctx, channelTold, number).Err() }, v.Fail)
	v.Tell = func(number []byte) error { return tell.enqueue(string(number)) }
	end, err := subscribe(ctx, c, channelState, func(text string) {
		worker, state, _ := strings.Cut(text, " ")
		v.Update(worker, state)
	}, v.Fail)
	if err != nil {
		return nil, errors.Join(err, tell.close(), c.Close())
	}
	return func() error { return errors.Join(end(), tell.close(), c.Close()) }, nil
}

func joinRedis(ctx context.Context, at *peers.Connection) error {
	c := connectRedis(at.URL, at.Token)
	at.OnLeave(c.Close)
	end, err := subscribe(ctx, c, channelTold, at.Receive, at.Fail)
	if err != nil {
		return err
	}
	at.OnLeave(end)
	report := newSender(ctx, func(ctx context.Context, state string) error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, channelState+"."+at.Worker, state, 0)
			p.Publish(ctx, channelState, at.Worker+" "+state)
			return nil
		})
		return err
	}, at.Fail)
	at.OnLeave(report.close)
	at.OnReport(report.enqueue)
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// fakeServer answers requests as its function says; an error is a lost answer.
type fakeServer func(request) (reply, error)

// Request implements transport.
func (f fakeServer) Request(_ context.Context, data []byte) ([]byte, error) {
	var r request
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	a, err := f(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// carry runs a courier until the test ends.
func carry(t *testing.T, c *courier) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.run(t.Context()) }()
	return ended
}

// later lets the virtual time of the bubble pass.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestCourierRepeatsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []uint64
		lost := 2
		c := newCourier(fakeServer(func(r request) (reply, error) {
			seen = append(seen, r.Number)
			if r.Number == 2 && lost > 0 {
				lost--
				return reply{}, errors.New("lost")
			}
			return reply{Status: statusOK, Length: int(r.Number)}, nil
		}), "w1", true, func() {})
		var answers []int
		for range 3 {
			c.post(request{Op: opPing}, func(a reply) { answers = append(answers, a.Length) })
		}
		carry(t, c)
		later(10 * againWait)
		if want := []uint64{1, 2, 2, 2, 3}; !slices.Equal(seen, want) {
			t.Errorf("the server saw %v, want %v", seen, want)
		}
		if want := []int{1, 2, 3}; !slices.Equal(answers, want) || c.waiting() != 0 {
			t.Errorf("answers %v, want %v", answers, want)
		}
	})
}

// TestCourierBeginsAgain: after void the next session begins with a hello, and
// what spoke of the old one is dropped.
func TestCourierBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []op
		var sessions []string
		voided := 0
		c := newCourier(fakeServer(func(r request) (reply, error) {
			seen, sessions = append(seen, r.Op), append(sessions, r.Session)
			if r.Op == opComplete {
				return reply{Status: statusVoid}, nil
			}
			return reply{Status: statusOK}, nil
		}), "w1", true, func() { voided++ })
		var answers []status
		for _, o := range []op{opHello, opComplete, opGrant} {
			c.post(request{Op: o}, func(a reply) { answers = append(answers, a.Status) })
		}
		carry(t, c)
		synctest.Wait()
		if want := []op{opHello, opComplete, opHello}; !slices.Equal(seen, want) || voided != 1 {
			t.Errorf("the server saw %v, want %v", seen, want)
		}
		if want := []status{statusOK, statusVoid, statusVoid}; !slices.Equal(answers, want) {
			t.Errorf("answers %v, want %v", answers, want)
		}
		if sessions[0] != sessions[1] || sessions[1] == sessions[2] {
			t.Errorf("sessions %v", sessions)
		}
		if _, err := c.ask(t.Context(), request{Op: opComplete}); !errors.Is(err, errVoid) {
			t.Errorf("ask: %v, want %v", err, errVoid)
		}
	})
}

func TestCourierEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer  reply
		err     error
		patient bool
		want    error // nil: it goes on
	}{
		"the run is over":                     {answer: reply{Status: statusOver}, patient: true, want: errOver},
		"nobody serves an outside worker":     {err: nats.ErrNoResponders, want: errGone},
		"no answer to an outside worker":      {err: nats.ErrTimeout, want: errGone},
		"nobody serves a child of the run":    {err: nats.ErrNoResponders, patient: true},
		"a message that the server refuses":   {err: nats.ErrMaxPayload, patient: true, want: nats.ErrMaxPayload},
		"the server is away for a short time": {err: nil, answer: reply{Status: statusOK}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				courier := newCourier(fakeServer(func(request) (reply, error) { return c.answer, c.err }), "w1", c.patient, func() {})
				courier.post(request{Op: opPing}, nil)
				ended := carry(t, courier)
				later(2 * goneLimit)
				select {
				case err := <-ended:
					if c.want == nil || !errors.Is(err, c.want) {
						t.Errorf("ended with %v, want %v", err, c.want)
					}
				default:
					if c.want != nil {
						t.Errorf("goes on, want %v", c.want)
					}
				}
			})
		})
	}
}

func TestAskTellsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCourier(fakeServer(func(request) (reply, error) {
			return reply{Status: statusError, Error: "no such lease"}, nil
		}), "w1", true, func() {})
		carry(t, c)
		if _, err := c.ask(t.Context(), request{Op: opReturn}); err == nil || err.Error() != "return: no such lease" {
			t.Errorf("error %v", err)
		}
	})
}

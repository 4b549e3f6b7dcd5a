package main

import (
	"context"
	"encoding/json"
	"errors"
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

func TestClient(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		name    string
		patient bool
		errs    []error // of the answers, the last one for ever
		status  status
		want    string
		after   time.Duration
	}{
		{"answered", false, []error{nil}, statusOK, "", 0},
		{"repeated", false, []error{lost, lost, nil}, statusOK, "", 2 * againWait},
		{"over", true, []error{nil}, statusOver, errOver.Error(), 0},
		{"refused", true, []error{nil}, statusError, "ping: no", 0},
		{"too large", true, []error{nats.ErrMaxPayload}, statusOK, "ping: 24 bytes are more than the server takes: raise its max_payload to 64 KiB: nats: maximum payload exceeded", 0},
		{"absent", false, []error{nats.ErrNoResponders}, statusOK, errGone.Error(), absentLimit + againWait},
		{"gone", false, []error{lost}, statusOK, errGone.Error(), goneLimit + againWait},
		{"patient", true, []error{lost}, statusOK, context.DeadlineExceeded.Error(), time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start, calls := time.Now(), 0
				k := &client{name: "w", patient: c.patient, conn: fakeServer(func(r request) (reply, error) {
					err := c.errs[min(calls, len(c.errs)-1)]
					if calls++; r.Name != "w" {
						t.Errorf("a request of %q", r.Name)
					}
					return reply{Status: c.status, Error: "no"}, err
				})}
				_, err := k.ask(ctx, request{Op: opPing})
				if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
					t.Errorf("%v, want %s", err, c.want)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
			})
		})
	}
}

package bus

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// Endpoint is one function of a service of NATS.
type Endpoint struct {
	Name    string // letters, digits, _ and -
	Subject string // to which requests go
	// Handle takes a request. It must not wait for the result; answer is called once, from any goroutine.
	Handle func(data []byte, answer func(result []byte, err error))
}

// serviceVersion is the version that services tell: the version of the format of requests.
const serviceVersion = "1.0.0"

// Offer offers functions as a service of NATS, which `nats micro ls` lists. One of all connections that offer a
// subject gets each request. An error of a function goes to its caller in the headers of the answer. Stop ends it.
func (b *Bus) Offer(name, description string, endpoints []Endpoint) (stop func() error, err error) {
	service, err := micro.AddService(b.nc, micro.Config{Name: name, Version: serviceVersion, Description: description})
	if err != nil {
		return nil, fmt.Errorf("bus: service %q: %w", name, err)
	}
	for _, e := range endpoints {
		if err = checkSubject(e.Subject, false); err == nil {
			err = service.AddEndpoint(e.Name, micro.HandlerFunc(e.take), micro.WithEndpointSubject(e.Subject))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bus: service %q: function %q on %q: %w", name, e.Name, e.Subject, err), service.Stop())
		}
	}
	return service.Stop, nil
}

func (e Endpoint) take(r micro.Request) {
	e.Handle(r.Data(), func(result []byte, err error) {
		if err == nil {
			err = r.Respond(result)
		}
		if errors.Is(err, nats.ErrMaxPayload) {
			err = fmt.Errorf("the result has %d bytes: %w", len(result), ErrTooLarge)
		}
		if err != nil {
			_ = r.Error("500", err.Error(), nil) // The caller is gone.
		}
	})
}

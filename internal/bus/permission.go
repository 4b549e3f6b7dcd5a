package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// Denial is a subject that the server refuses to this user.
type Denial struct {
	Publish bool   // else to subscribe
	Subject string // with its wildcards
}

// String is such as `publish to "a.b"`.
func (d Denial) String() string {
	if d.Publish {
		return fmt.Sprintf("publish to %q", d.Subject)
	}
	return fmt.Sprintf("subscribe to %q", d.Subject)
}

// Denied returns the subject of an error with [ErrPermission]. It returns false for other errors.
func Denied(err error) (Denial, bool) {
	if !errors.Is(err, ErrPermission) {
		return Denial{}, false
	}
	for verb, publish := range map[string]bool{`Publish to "`: true, `Subscription to "`: false} {
		if _, rest, found := strings.Cut(err.Error(), verb); found {
			subject, _, closed := strings.Cut(rest, `"`)
			return Denial{publish, subject}, closed
		}
	}
	return Denial{}, false
}

// Open reports whether the server takes anybody, without credentials.
func (b *Bus) Open() bool { return b.nc != nil && !b.nc.AuthRequired() }

// Permitted asks the server whether this user may subscribe to the first subjects and publish to the others. It
// subscribes for a moment, and publishes an empty message to each of the others. It returns all that the server refuses
// in one error with [ErrPermission], or why the server could not be asked.
func (b *Bus) Permitted(ctx context.Context, subscribe, publish []string) error {
	if b.nc == nil { // Nobody refuses anything inside a process.
		return nil
	}
	if err := b.checkUsable(); err != nil {
		return err
	}
	var denials []string
	ask := func(subject string, do func() error) error {
		before := b.nc.LastError()
		if err := do(); err != nil {
			return err
		}
		if err := b.Flush(ctx); err != nil {
			return err
		}
		refused := b.Refused(`"` + subject + `"`)
		if d, ok := Denied(refused); ok && b.nc.LastError() != before { //nolint:errorlint // Is it the same one?
			denials = append(denials, d.String())
		}
		return nil
	}
	for _, subject := range subscribe {
		var sub *nats.Subscription
		err := ask(subject, func() (err error) {
			sub, err = b.nc.SubscribeSync(subject)
			return b.translateError(err, 0)
		})
		if sub != nil {
			err = errors.Join(err, b.translateError(sub.Unsubscribe(), 0))
		}
		if err != nil {
			return failedOn("subscribe", subject, err)
		}
	}
	for _, subject := range publish {
		if err := ask(subject, func() error { return b.Publish(subject, nil) }); err != nil {
			return err
		}
	}
	if len(denials) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrPermission, strings.Join(denials, ", "))
}

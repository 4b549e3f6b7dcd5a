package work

import (
	"context"
	"errors"
	"strconv"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/scgs"
)

// obeyOrders moves objects as the synchronizer orders it, while the space is open.
func (s *Space) obeyOrders(ctx context.Context) {
	if err := s.link.Orders(ctx, s.takeOrders); ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.log.Warn("orders to move objects do not come any more", "error", err)
		}
	}
}

// takeOrders takes the orders of one signal.
func (s *Space) takeOrders(text string) {
	orders, err := parseOrders(text)
	if err != nil {
		s.log.Warn("orders to move objects cannot be read", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_ = s.step(&workcore.Input{Kind: workcore.InOrders, Orders: orders}) // It is never refused.
		s.tell(s.now)
	}
}

// parseOrders reads orders, in which objects have their numbers.
func parseOrders(text string) ([]workcore.Order, error) {
	list, err := balance.ParseOrders(text)
	orders := make([]workcore.Order, len(list))
	for i, o := range list {
		n, bad := strconv.ParseInt(o.Load, 10, 64)
		orders[i] = workcore.Order{Object: n, To: o.To}
		err = errors.Join(err, bad)
	}
	return orders, err
}

// loadField gives the value of a field about objects.
func loadField(l *workcore.Load, name string) (scgs.Value, bool) {
	if l == nil {
		return scgs.Value{}, false
	}
	switch name {
	case "work.slots":
		return scgs.IntValue(int64(l.Slots)), true
	case "work.tasks":
		return listOf(scgs.Int, l.Objects, scgs.IntValue), true
	case "work.weights":
		return listOf(scgs.Float, l.Weights, scgs.FloatValue), true
	case "work.names":
		return listOf(scgs.String, l.Names, scgs.StringValue), true
	case "work.senders":
		return listOf(scgs.Int, l.Senders, scgs.IntValue), true
	case "work.receivers":
		return listOf(scgs.Int, l.Receivers, scgs.IntValue), true
	case "work.volumes":
		return listOf(scgs.Float, l.Volumes, scgs.FloatValue), true
	case "work.refused":
		return listOf(scgs.Int, l.Refused, scgs.IntValue), true
	case "work.reasons":
		return listOf(scgs.String, l.Reasons, scgs.StringValue), true
	default:
		return scgs.Value{}, false
	}
}

func listOf[T any](t scgs.Type, list []T, value func(T) scgs.Value) scgs.Value {
	values := make([]scgs.Value, len(list))
	for i, v := range list {
		values[i] = value(v)
	}
	return scgs.ListValue(t, values...)
}

package balance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Order tells a node to send one of its loads to another node. A synchronizer
// sends the orders of a plan as a signal to the node that has the loads.
type Order struct {
	Load   string  `json:"load"`   // as the node has named it; a number in decimal
	To     string  `json:"to"`     // the node that takes it
	Weight float64 `json:"weight"` // by the report that was planned on
}

// OrdersDatum is the name of the datum of a signal that has the orders as a text.
const OrdersDatum = "moves"

// AppendOrder appends an order to a text that [ParseOrders] reads, which begins empty. A weight
// is finite, as in a [Plan].
func AppendOrder(text string, o Order) string {
	raw, err := json.Marshal(o)
	if err != nil {
		panic("balance: an order that does not encode: " + err.Error())
	}
	if text == "" {
		return "[" + string(raw) + "]"
	}
	return strings.TrimSuffix(text, "]") + "," + string(raw) + "]"
}

// ParseOrders reads the orders that a signal has in its datum [OrdersDatum], a JSON
// list of them:
//
//	agent.OnActivate("balance", func(ctx context.Context, s agent.Signal) error {
//		orders, err := balance.ParseOrders(s.Text(balance.OrdersDatum))
//		...
//	})
//
// A load that has begun in the meantime, or is gone, stays: what the node does not
// send counts as under way until the transit time of the configuration is over.
func ParseOrders(text string) ([]Order, error) {
	var orders []Order
	if err := json.Unmarshal([]byte(text), &orders); err != nil {
		return nil, fmt.Errorf("balance: orders: %w: they are the datum %s of a signal of the section balance", err, OrdersDatum)
	}
	for _, o := range orders {
		if o.Load == "" || o.To == "" {
			return nil, errors.New("balance: orders: one has no load or no target")
		}
	}
	return orders, nil
}

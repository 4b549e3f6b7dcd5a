package synccore

import (
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/scgs"
)

// Memory is what the predicates have set so far: Invalid where nothing is known.
// It is not to be changed, and changes with the next step.
func (c *Core) Memory() []scgs.Value { return c.memory }

// ParseValue reads a value of a field as a configuration file writes it.
func ParseValue(f scgs.Field, text string) (scgs.Value, error) { return config.ParseValue(f, text) }

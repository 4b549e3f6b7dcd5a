package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
)

// maxReplicaName is how many bytes the name of a member has.
const maxReplicaName = 128

// workCalls checks how calls travel.
func (c *compiler) workCalls(at string, s *config.Work) {
	for i := range s.Calls {
		e := &s.Calls[i]
		here, call := at+"."+e.Key, &e.Value
		if e.Key == "" { // No key of a file has more than 128 bytes.
			c.report(at, -1, "the name of a function is empty", "use the name of the server in the program")
			continue
		}
		if _, _, _, _, err := config.ParseStyle(call.Style); err != nil {
			c.report(here+".style", -1, err.Error(), "")
		}
		c.callServers(here, call)
		if call.Priority != "" {
			if _, err := predicates.CompilePriority(call.Priority); err != nil {
				c.refuseText(here+".priority", call.Priority, err)
			}
		}
		if !slices.Contains([]string{"", config.Intermittent, config.Incremental, config.Bulk}, call.Traffic) {
			c.report(here+".traffic", -1, fmt.Sprintf("%q is no kind of traffic", call.Traffic), "use "+config.Intermittent+", "+config.Incremental+" or "+config.Bulk)
		}
		if call.Batch < 0 || call.Batch > config.MaxBatch {
			c.report(here+".batch", -1, fmt.Sprintf("%d calls in a batch: use 1 to %d", call.Batch, config.MaxBatch), "")
		} else if _, linger := call.BatchOf(); call.Batch > 1 && linger == 0 {
			c.report(here+".batch", -1, "calls of intermittent traffic are sent at once, and never in batches", "add traffic: "+config.Incremental+", or leave batch out")
		}
		if call.Service && strings.ContainsFunc(e.Key, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			c.report(here+".service", -1, fmt.Sprintf("%q cannot name a function of a service of NATS", e.Key), "give the server a name of letters, digits, _ and -")
		}
		if call.Retry < 0 || call.Retry > maxRetries {
			c.report(here+".retry", -1, fmt.Sprintf("%d servers may be lost with a call: use 1 to %d, or leave it out", call.Retry, maxRetries), "")
		}
	}
}

// callServers checks which members serve calls, and in which ratio.
func (c *compiler) callServers(here string, call *config.WorkCall) {
	switch {
	case call.Replicas != nil && len(call.Replicas) == 0:
		c.report(here+".replicas", -1, "the list of replicas is empty, so no member serves the call", "name members, or leave replicas out for all that have opened the space with that server")
	case len(call.Replicas) > wire.MaxListed:
		c.report(here+".replicas", -1, fmt.Sprintf("%d replicas: use at most %d", len(call.Replicas), wire.MaxListed), "")
	}
	for i, name := range call.Replicas {
		switch {
		case name == "" || len(name) > maxReplicaName:
			c.report(fmt.Sprintf("%s.replicas[%d]", here, i), -1, fmt.Sprintf("the name of a member has %d bytes: use 1 to %d", len(name), maxReplicaName), "")
		case slices.Contains(call.Replicas[:i], name):
			c.report(fmt.Sprintf("%s.replicas[%d]", here, i), -1, fmt.Sprintf("the replica %q is listed twice", name), "give it a larger share in ratio instead")
		}
	}
	shares, err := config.ParseRatio(call.Ratio)
	switch {
	case err != nil:
		c.report(here+".ratio", -1, err.Error(), "")
	case shares != nil && len(shares) != len(call.Replicas):
		c.report(here+".ratio", -1, fmt.Sprintf("the ratio %q has %d shares, and there are %d replicas", call.Ratio, len(shares), len(call.Replicas)), "list one replica for each share")
	}
	if _, demand, _, _, err := config.ParseStyle(call.Style); err == nil && demand && call.Ratio != "" {
		c.report(here+".ratio", -1, "a ratio divides calls by numbers, and async-demand by what servers have done", "use style: async, or leave ratio out")
	}
}

package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// RegionHandlers declares a region for [Config].Regions, and the activations that the
// program has handlers for there. A cancellation needs no handler.
type RegionHandlers struct {
	Region      string   // its name
	Activations []string // the names given to [OnActivate] or [OnActivateNow]
}

// maxUndeclared is how many faults, and how many names, an error lists.
const maxUndeclared = 8

// checkRegions finds the faults of a declaration.
func checkRegions(regions []RegionHandlers) (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("agent: join: "+format, args...))
	}
	for i, r := range regions {
		if err := wire.CheckToken("region", r.Region); err != nil {
			fault("Config.Regions: %w", err)
		}
		if slices.ContainsFunc(regions[:i], func(o RegionHandlers) bool { return o.Region == r.Region }) {
			fault("Config.Regions has region %q twice: keep one", r.Region)
		}
		for _, name := range r.Activations {
			if err := wire.CheckToken("signal", name); err != nil {
				fault("Config.Regions: region %q: %w", r.Region, err)
			}
		}
	}
	return faults
}

// undeclaredSignals returns an error that names the signals of a configuration whose region or handler the
// program does not declare; nil if there is none.
func undeclaredSignals(regions []RegionHandlers, aims []wire.Aim) error {
	var faults []string
	for _, a := range aims {
		i := slices.IndexFunc(regions, func(r RegionHandlers) bool { return r.Region == a.Region })
		switch {
		case i < 0:
			faults = append(faults, fmt.Sprintf("signal %q goes to region %q, and the program declares %s", a.Signal, a.Region, regionList(regions)))
		case a.Kind == control.Activate && !slices.Contains(regions[i].Activations, a.Signal):
			faults = append(faults, fmt.Sprintf("signal %q activates region %q, which declares handlers for %s", a.Signal, a.Region, nearest.List(regions[i].Activations, maxUndeclared)))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	if more := len(faults) - maxUndeclared; more > 0 {
		faults = append(faults[:maxUndeclared], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s: correct the configuration or Config.Regions", ErrUndeclared, strings.Join(faults, "; "))
}

func regionList(regions []RegionHandlers) string {
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.Region
	}
	return nearest.List(names, maxUndeclared)
}

// checkRegion checks a region that is about to be entered.
func (m *Member) checkRegion(r *Region) error {
	regions := m.cfg.Regions
	if regions == nil {
		return nil
	}
	if r.name == config.WorkName {
		m.mu.Lock()
		works := m.hasWork()
		m.mu.Unlock()
		if works {
			return nil
		}
	}
	i := slices.IndexFunc(regions, func(d RegionHandlers) bool { return d.Region == r.name })
	if i < 0 {
		return fmt.Errorf("agent: region %q: %w, which has %s: add it there", r.name, ErrUndeclared, regionList(regions))
	}
	for _, name := range regions[i].Activations {
		if r.activate[name] == nil {
			return fmt.Errorf("agent: region %q is entered without the handler for %q that Config.Regions declares: give Region OnActivate or OnActivateNow, or correct Config.Regions", r.name, name)
		}
	}
	return nil
}

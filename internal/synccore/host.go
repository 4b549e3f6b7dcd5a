package synccore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// DefaultGroup is the group of the processors, and the name of their synchronizer,
// where the file of a program declares none.
const DefaultGroup = "processors"

// host finds the synchronizer that can run the program: the only one whose members
// are processes. They are processors, so what those tell is added to the declared
// state. It is empty if there are several.
func (p *parser) host() string {
	if len(p.cfg.Synchronizers) == 0 {
		p.cfg.Synchronizers = append(p.cfg.Synchronizers, yamlconf.Entry[Synchronizer]{
			Key:   DefaultGroup,
			Value: Synchronizer{Members: Members{Group: DefaultGroup, Min: 1, Count: 1, Max: defaultMaxMembers}},
		})
	}
	var host *yamlconf.Entry[Synchronizer]
	for i := range p.cfg.Synchronizers {
		e := &p.cfg.Synchronizers[i]
		if e.Value.Members.Threads {
			continue
		}
		if host != nil {
			return ""
		}
		host = e
	}
	if host == nil {
		return ""
	}
	own := wire.ProcessorSchema()
	for _, f := range host.Value.State {
		if own.Index(f.Name) >= 0 {
			p.doc.FaultAt(path(host.Key, "state", f.Name), "every processor of a program has a field %q of its own: use another name", f.Name)
			return ""
		}
	}
	for _, e := range host.Value.Predicates {
		if e.Key == wire.ProgramSignals {
			p.doc.FaultAt(path(host.Key, "predicates", e.Key), "the signals of a program have that name: use another")
			return ""
		}
	}
	host.Value.State = append(slices.Clone(host.Value.State), own...)
	return host.Key
}

// runs makes the synchronizer of the plan run a program.
func (p *Plan) runs(prog *program.Plan) {
	p.program = prog
	for _, name := range prog.Predicates() {
		synchronizer, predicate, _ := strings.Cut(name, ".")
		for _, r := range p.rules {
			r.read = r.read || synchronizer == p.Name && r.name == predicate
		}
	}
}

// Program is the program that the synchronizer runs on its members, nil if there
// is none.
func (p *Plan) Program() *program.Plan { return p.program }

// Runnable finds the level that runs the program. The error says why none does.
func (f *ProgramFile) Runnable() (*Plan, error) {
	var host *Plan
	for _, p := range f.Levels {
		if p.program != nil {
			host = p
		}
	}
	if err := f.Hosted(); err != nil {
		return nil, err
	}
	for _, b := range f.Program.Blocks {
		if b.Threads > 0 {
			return nil, fmt.Errorf("block %q: the threads of a block are not run yet: let its code start them", b.Name)
		}
	}
	for _, name := range f.Plan.Predicates() {
		if synchronizer, _, _ := strings.Cut(name, "."); synchronizer != host.Name {
			return nil, fmt.Errorf("predicate %q: only those of %q can be read where the program runs", name, host.Name)
		}
	}
	return host, nil
}

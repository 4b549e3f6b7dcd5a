package synccore

import (
	"encoding/json"
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

// runs makes the synchronizer of the plan run a program. Its members learn of the
// threads of blocks by the level below.
func (p *Plan) runs(prog *program.Compiled, levels map[string]Section) {
	p.program = prog
	p.below = threadsOf(prog.Program(), levels)
	for _, name := range prog.Predicates() {
		synchronizer, predicate, _ := strings.Cut(name, ".")
		for _, r := range p.rules {
			if synchronizer == p.Name && r.name == predicate {
				r.read, r.attached = true, prog.Attached(name)
			}
		}
	}
}

// blockLevels are the blocks of a program that have threads, and the sections of the
// thread-level synchronizers above these.
type blockLevels struct {
	Blocks   []blockLevel
	Sections []Section
}

type blockLevel struct {
	Block        string
	Threads      int
	Synchronizer string `json:",omitempty"` // empty: one that declares nothing
}

// threadsOf encodes what the program's blocks have for threads, nil for nothing.
func threadsOf(p *program.Program, levels map[string]Section) []byte {
	var l blockLevels
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.Threads == 0 {
			continue
		}
		l.Blocks = append(l.Blocks, blockLevel{b.Name, b.Threads, b.Synchronizer})
		sec, ok := levels[b.Synchronizer]
		if ok && !slices.ContainsFunc(l.Sections, func(s Section) bool { return s.Name == sec.Name }) {
			l.Sections = append(l.Sections, sec)
		}
	}
	if len(l.Blocks) == 0 {
		return nil
	}
	return encoded(l)
}

// FromBlocks compiles the levels of the blocks with threads, by block, as they came
// with a Welcome of a synchronizer that runs a program.
func FromBlocks(raw []byte) (map[string]*Plan, error) {
	plans := map[string]*Plan{}
	if len(raw) == 0 {
		return plans, nil
	}
	var l blockLevels
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("the threads of blocks: %w", err)
	}
	for _, b := range l.Blocks {
		sec := Section{Name: b.Block}
		if i := slices.IndexFunc(l.Sections, func(s Section) bool { return s.Name == b.Synchronizer }); i >= 0 {
			sec = l.Sections[i]
		}
		sec.Synchronizer.Members = Members{Threads: true, Min: b.Threads, Count: b.Threads, Max: b.Threads}
		plan, err := fromSection(&sec)
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", b.Block, err)
		}
		plans[b.Block] = plan
	}
	return plans, nil
}

// Program is the program that the synchronizer runs on its members, nil if there
// is none.
func (p *Plan) Program() *program.Compiled { return p.program }

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
	for _, name := range f.Plan.Predicates() {
		if synchronizer, _, _ := strings.Cut(name, "."); synchronizer != host.Name {
			return nil, fmt.Errorf("predicate %q: only those of %q can be read where the program runs", name, host.Name)
		}
	}
	return host, nil
}

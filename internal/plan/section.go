package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gopegasus/pegasus/internal/config"
)

// Levels are the compiled levels of a configuration, parents before children.
type Levels []*Level

// Get returns the level of that name, or nil.
func (p Levels) Get(name string) *Level {
	for _, plan := range p {
		if plan.Name == name {
			return plan
		}
	}
	return nil
}

// FromSection compiles a section that came with a Welcome.
func FromSection(raw []byte) (*Level, error) {
	var sec config.Section
	if err := json.Unmarshal(raw, &sec); err != nil {
		return nil, fmt.Errorf("section of the synchronizer below: %w", err)
	}
	return fromSection(&sec)
}

func fromSection(sec *config.Section) (*Level, error) {
	var faults []error
	plan := Compile(sec, func(at string, _ int, message, _ string) {
		faults = append(faults, fmt.Errorf("section %s: %s: %s", sec.Name, at, message))
	})
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return plan, nil
}

// FromBlocks compiles the levels of the blocks with threads, by block, as they came
// with a Welcome of a synchronizer that runs a program.
func FromBlocks(raw []byte) (map[string]*Level, error) {
	plans := map[string]*Level{}
	if len(raw) == 0 {
		return plans, nil
	}
	var l config.BlockLevels
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("the threads of blocks: %w", err)
	}
	for _, b := range l.Blocks {
		sec := config.Section{Name: b.Block}
		if i := slices.IndexFunc(l.Sections, func(s config.Section) bool { return s.Name == b.Synchronizer }); i >= 0 {
			sec = l.Sections[i]
		}
		sec.Synchronizer.Members = config.Members{Threads: true, Min: b.Threads, Count: b.Threads, Max: b.Threads}
		plan, err := fromSection(&sec)
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", b.Block, err)
		}
		plans[b.Block] = plan
	}
	return plans, nil
}

// SectionHash names a section, so that a member knows whether it has it already.
func SectionHash(raw []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(raw)
	return h.Sum64()
}

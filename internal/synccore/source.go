package synccore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Source is the text that plans were compiled from: with it they can be compiled
// again.
type Source struct {
	Name      string     `json:"name"` // stands for the file
	Text      string     `json:"text"`
	Overrides []Override `json:"overrides,omitempty"`
	Program   bool       `json:"program,omitempty"` // it is a file with a program
}

// Override replaces the number of members that a section of the file awaits.
type Override struct {
	Synchronizer string `json:"synchronizer"`
	Count        int    `json:"count"`
}

// Source is the text that the plan was compiled from, nil if it came from the
// level above.
func (p *Plan) Source() *Source { return p.source }

// Hash is the SHA-256 of the text, in hexadecimal.
func (s *Source) Hash() string {
	sum := sha256.Sum256([]byte(s.Text))
	return hex.EncodeToString(sum[:])
}

// compile compiles the source again and returns the plan of a synchronizer.
func (s *Source) compile(synchronizer string) (*Plan, error) {
	plans, err := s.levels()
	if err != nil {
		return nil, err
	}
	plan := plans.Get(synchronizer)
	if plan == nil {
		return nil, fmt.Errorf("its configuration has no synchronizer %q", synchronizer)
	}
	return plan, nil
}

func (s *Source) levels() (Plans, error) {
	if !s.Program {
		return Parse(s.Name, []byte(s.Text), s.Overrides...)
	}
	file, err := ParseProgram(s.Name, []byte(s.Text))
	if err != nil {
		return nil, err
	}
	return file.Levels, nil
}

package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// Definition is a task or an object that is defined and not put yet: ALDY's three steps are [Space.Define] or
// [Space.DefineObject], Direct, and Ready (section 3.4). Its methods may be called on any goroutine.
//
// Only this process knows a definition. It keeps no phase open, and is gone with the process: Ready puts it.
type Definition struct {
	space *Space
	name  string // of the function, or of the kind of objects
	body  []byte

	mu      sync.Mutex
	options []PutOption
	ready   bool
}

// Define defines a task. It takes the argument at once, and refuses what [Space.Put] would.
func (s *Space) Define(name string, arg any, options ...PutOption) (*Definition, error) {
	if f := s.functions[name]; f != nil && (f.object != nil || f.kind != "") {
		return nil, fmt.Errorf("work: define: %q is about objects: use DefineObject", name)
	}
	return s.define(name, arg, nil, options)
}

// DefineObject defines an object. It takes the argument at once, and refuses what [Space.Create] would.
func (s *Space) DefineObject(kind string, id, arg any, options ...PutOption) (*Definition, error) {
	if f := s.functions[kind]; f != nil && f.object == nil {
		return nil, fmt.Errorf("work: define: %q is no kind of objects: declare it by Object", kind)
	}
	return s.define(kind, arg, []PutOption{asObject(objectID(kind, id))}, options)
}

func (s *Space) define(name string, arg any, first, options []PutOption) (*Definition, error) {
	f := s.functions[name]
	if f == nil {
		return nil, unknownFunc(name, s.functions)
	}
	body, err := f.encode(arg)
	if err != nil {
		return nil, fmt.Errorf("work: define: %w", err)
	}
	d := &Definition{space: s, name: name, body: body, options: first}
	return d, d.Direct(options...)
}

// ErrReady is wrapped if a definition is ready already: it cannot be changed or put again.
var ErrReady = errors.New("the definition is ready already: make another one")

// Direct adds options to the definition. It refuses options that [Space.Put] or [Space.Create] would refuse, and then
// changes nothing.
func (d *Definition) Direct(options ...PutOption) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return fmt.Errorf("work: definition of %q: %w", d.name, ErrReady)
	}
	all := slices.Concat(d.options, options)
	if _, err := d.space.makeTask(d.name, d.body, all); err != nil {
		return err
	}
	d.options = all
	return nil
}

// Ready puts the defined task or object, as [Space.Put] or [Space.Create] with all its options. If it fails, it may be called again.
func (d *Definition) Ready(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return fmt.Errorf("work: definition of %q: %w", d.name, ErrReady)
	}
	err := d.space.putBody(ctx, d.name, d.body, d.options)
	d.ready = err == nil
	return err
}

// asObject makes the task of a put an object.
func asObject(name string) PutOption {
	return func(t *workcore.Task) error {
		t.ID, t.Object = name, &workcore.Object{}
		return nil
	}
}

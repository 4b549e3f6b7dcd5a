package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// maxYAML is one byte more than a file of YAML may have: the decoder tells the
// rest.
const maxYAML = 1<<20 + 1

// readYAML reads a file up to the limit of its size.
func readYAML(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: give the path of a YAML file", err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	return io.ReadAll(io.LimitReader(f, maxYAML))
}

// faultList lists the faults of a file by their places; an error of another kind,
// such as a missing file, has no place.
func faultList(path string, err error) []yamlconf.Fault {
	if err == nil {
		return []yamlconf.Fault{}
	}
	if e, ok := errors.AsType[*yamlconf.Error](err); ok {
		return e.Faults
	}
	return []yamlconf.Fault{{File: path, Message: err.Error()}}
}

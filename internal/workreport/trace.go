package workreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// TraceLine is one line of a trace: a member has put a task, run one to its end, or written data. Exactly one of Put, Ran and
// Data is not empty.
type TraceLine struct {
	Member  string   `json:"member"`            // that has done it
	At      float64  `json:"at"`                // seconds on the clock of the machine, at the end of it
	Put     string   `json:"put,omitempty"`     // the ID of a task
	Ran     string   `json:"ran,omitempty"`     // the ID of a task
	Data    string   `json:"data,omitempty"`    // the name of data
	Seconds float64  `json:"seconds,omitempty"` // of a run
	Weight  float64  `json:"weight,omitempty"`  // of a task that is put
	Bytes   int      `json:"bytes,omitempty"`   // of its argument, or of data
	Reads   []string `json:"reads,omitempty"`   // names of the data that the task reads
}

// ParseTraceLine reads one line. It refuses keys that a line does not have.
func ParseTraceLine(line []byte) (l TraceLine, err error) {
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	if err := in.Decode(&l); err != nil {
		return l, fmt.Errorf("line of a trace: %w: write one JSON object a line, as a space writes them", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return l, errors.New("line of a trace: something follows the JSON object: write one object a line")
	}
	kinds := 0
	for _, name := range []string{l.Put, l.Ran, l.Data} {
		if name != "" {
			kinds++
		}
	}
	switch {
	case l.Member == "":
		return l, errors.New("line of a trace: it names no member: write member, as a space does")
	case kinds != 1:
		return l, fmt.Errorf("line of a trace: it has %d of the keys put, ran and data: write exactly one of them", kinds)
	case l.Bytes < 0 || l.Weight < 0 || l.Seconds < 0:
		return l, errors.New("line of a trace: bytes, weight or seconds is below 0: write numbers from 0")
	}
	return l, nil
}

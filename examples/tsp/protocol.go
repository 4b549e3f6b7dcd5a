package main

import (
	"crypto/rand"
	"path/filepath"
	"strings"
)

// The data protocol between the workers and the coordinator: requests and
// replies in JSON on a connection of its own, beside the control connection of
// the agents. Subtasks do not travel here: the space of package work carries them. A worker repeats a request until it is
// answered; a request that comes twice does what it does once.

// request is what a worker sends.
type request struct {
	Name string `json:"name"`
	Op   op     `json:"op"`

	PID      int      `json:"pid,omitempty"`
	Outside  bool     `json:"outside,omitempty"` // not started by the run
	Offset   int      `json:"offset,omitempty"`
	Tour     []int    `json:"tour,omitempty"`
	Length   int      `json:"length,omitempty"`
	Progress progress `json:"progress,omitzero"`
}

// progress is what a worker tells about itself twice a second, for the people
// who watch.
type progress struct {
	Load  float64 `json:"load"`
	Nodes int64   `json:"nodes"`
	Busy  float64 `json:"busy"` // seconds that its threads have searched, added up
	Late  uint64  `json:"late"` // signals that came too late to its threads
}

// op is an operation of the data protocol.
type op string

const (
	opHello    op = "hello"    // what the run is about
	opInstance op = "instance" // a part of the instance's file
	opTour     op = "tour"     // the best tour
	opImprove  op = "improve"  // a tour that local search has found
	opPing     op = "ping"     // progress
)

// reply is the coordinator's answer.
type reply struct {
	Status status `json:"status"`
	Error  string `json:"error,omitempty"`

	Run    runInfo `json:"run,omitzero"`
	Chunk  []byte  `json:"chunk,omitempty"`
	Tour   []int   `json:"tour,omitempty"`
	Length int     `json:"length,omitempty"`
}

// status is how an answer is meant.
type status string

const (
	statusOK    status = "ok"
	statusOver  status = "over"  // the run has ended
	statusError status = "error" // the request makes no sense
)

// runInfo is what a worker has to know of the run it joins.
type runInfo struct {
	ID       string `json:"id"`
	Instance string `json:"instance"` // as tsplib.Load takes it, or the name of the file
	Size     int    `json:"size"`     // of the file, which opInstance gives; 0: there is none
	N        int    `json:"n"`
	Kind     string `json:"kind"` // of the subtasks
	Seed     uint64 `json:"seed"`
	Threads  int    `json:"threads"`
	Strategy string `json:"strategy"`           // by which subtasks move
	Separate bool   `json:"separate,omitempty"` // each process has a clock of its own
}

// title names the instance to people.
func (r *runInfo) title() string {
	return strings.TrimSuffix(filepath.Base(r.Instance), ".tsp")
}

// chunkSize is how much of the instance's file one message has. JSON writes bytes a third longer than they are, and
// the server takes 64 KiB.
const chunkSize = 40 << 10

// dataSubject is where the coordinator of a run takes requests.
func dataSubject(run string) string { return "tsp." + run + ".data" }

// runsSubject is where all coordinators on a server tell of their runs.
const runsSubject = "tsp.runs"

// newID makes a name for a run that no other has.
func newID() string { return strings.ToLower(rand.Text()[:10]) }

package main

import (
	"crypto/rand"
	"path/filepath"
	"strings"

	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

// The data protocol between the workers and the coordinator: requests and
// replies in JSON on a connection of its own, beside the control connection of
// the agents. Signals carry numbers, bodies travel here.
//
// A worker sends one request at a time and repeats it until it is answered; the
// coordinator answers a repeated number with the reply it gave before, so each
// request counts once. A session is one life of a worker's account: when the
// coordinator has dropped it, it answers void, and the worker begins again with
// nothing in hand.

// request is what a worker sends. Name and Session say who it is, Number counts
// from 1 in each session; the rest belongs to the operation.
type request struct {
	Name    string `json:"name"`
	Session string `json:"session"`
	Number  uint64 `json:"number"`
	Op      op     `json:"op"`

	PID      int          `json:"pid,omitempty"`
	Outside  bool         `json:"outside,omitempty"` // not started by the run
	Offset   int          `json:"offset,omitempty"`
	First    lease.ID     `json:"first,omitempty"`
	Count    int          `json:"count,omitempty"`
	ID       lease.ID     `json:"id,omitempty"`
	IDs      []lease.ID   `json:"ids,omitempty"`
	Given    []lease.Item `json:"given,omitempty"`
	Kept     []lease.Item `json:"kept,omitempty"`
	Tour     []int        `json:"tour,omitempty"`
	Length   int          `json:"length,omitempty"`
	Progress progress     `json:"progress,omitzero"`
}

// progress is what a worker tells about itself twice a second, for the people
// who watch and for the lower bound.
type progress struct {
	Load   float64     `json:"load"`
	Nodes  int64       `json:"nodes"`
	Busy   float64     `json:"busy"` // seconds that its threads have searched, added up
	Bounds []heldBound `json:"bounds,omitempty"`
	Late   uint64      `json:"late"` // signals that came too late to its threads
}

// heldBound is the lower bound of a lease that is being searched.
type heldBound struct {
	ID    lease.ID `json:"id"`
	Bound int      `json:"bound"`
}

// op is an operation of the data protocol.
type op string

const (
	opHello    op = "hello"    // begin a session
	opInstance op = "instance" // a part of the instance's file
	opTour     op = "tour"     // the best tour
	opGrant    op = "grant"    // subtasks, from First on
	opRelease  op = "release"  // subtasks back that were not begun
	opReturn   op = "return"   // children of a subtask
	opComplete op = "complete" // a subtask is searched
	opImprove  op = "improve"  // a better tour
	opPing     op = "ping"     // progress
	opBye      op = "bye"      // the worker ends
)

// reply is the coordinator's answer.
type reply struct {
	Status status `json:"status"`
	Error  string `json:"error,omitempty"`

	Run    runInfo       `json:"run,omitzero"`
	Chunk  []byte        `json:"chunk,omitempty"`
	Leases []lease.Lease `json:"leases,omitempty"`
	Tour   []int         `json:"tour,omitempty"`
	Length int           `json:"length,omitempty"`
}

// status is how an answer is meant.
type status string

const (
	statusOK    status = "ok"
	statusVoid  status = "void"  // the session is not known (any more)
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
	Separate bool   `json:"separate,omitempty"` // each process has a clock of its own
}

// title names the instance to people.
func (r *runInfo) title() string {
	return strings.TrimSuffix(filepath.Base(r.Instance), ".tsp")
}

// The limits of a message. JSON writes bytes a third longer than they are, and
// the server takes 64 KiB.
const (
	maxBodies = 40 << 10 // of the subtasks in one message
	maxPriced = 8 << 10  // of a subtask with its prices; a larger one goes without
	chunkSize = 40 << 10 // of the instance's file
)

// dataSubject is where the coordinator of a run takes requests.
func dataSubject(run string) string { return "tsp." + run + ".data" }

// runsSubject is where all coordinators on a server tell of their runs.
const runsSubject = "tsp.runs"

// newID makes a name for a run or a session that no other has.
func newID() string { return strings.ToLower(rand.Text()[:10]) }

// bodySize is the size of the subtasks' bodies.
func bodySize(items []lease.Item) int {
	n := 0
	for _, it := range items {
		n += len(it.Body)
	}
	return n
}

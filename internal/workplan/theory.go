package workplan

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Cost is what a message takes: Message seconds, and PerByte seconds for each byte (CORD, section 6.3.1).
type Cost struct {
	Message float64 `json:"message_seconds"`  // of each message
	PerByte float64 `json:"per_byte_seconds"` // of each byte in it
}

// Of returns the seconds of a message of so many bytes.
func (c Cost) Of(bytes float64) float64 { return c.Message + c.PerByte*bytes }

// WorstTree returns the seconds that the messages of a tree of p members take at most, if each has n tasks of so many bytes
// at first: p(p-1)/2 (a log2 n + b n) (CORD, section 6.3.2).
func (c Cost) WorstTree(p, n int, bytes float64) float64 {
	return float64(p) * float64(p-1) / 2 * (c.Message*math.Log2(float64(max(1, n))) + c.PerByte*bytes*float64(n))
}

// SelfScheduling returns the seconds of the messages if p members get n tasks each, one at a time: p n (a + b).
func (c Cost) SelfScheduling(p, n int, bytes float64) float64 {
	return float64(p) * float64(n) * c.Of(bytes)
}

// Moved returns how many tasks move between two clusters with throughputs slow and fast that have n tasks each at first
// (CORD, theorem 6.1).
func Moved(slow, fast, n float64) float64 { return n * (fast - slow) / (fast + slow) }

// Moves returns how often they move if half of what is left is given each time (theorem 6.2); 0 if no task moves.
func Moves(slow, fast, n float64) float64 {
	ratio := (1 - slow/fast) / 2
	if n <= 1 || !(ratio > 0) {
		return 0
	}
	return math.Log(1/n) / math.Log(ratio)
}

// timing is what a way to spread tasks should come to.
type timing struct {
	seconds float64
	counts  []int // by member
}

// way computes the timing of tasks on members with these speeds. A member with the speed 0 takes no part.
type way func(speeds []float64, tasks int) timing

// byShares divides the tasks by fixed shares, whatever the speeds; nil shares are equal ones. All are sent at once.
func byShares(shares []float64, delay float64) way {
	return func(speeds []float64, tasks int) timing {
		t := timing{counts: apportion(speeds, shares, tasks)}
		for i, n := range t.counts {
			if n > 0 {
				t.seconds = max(t.seconds, delay+float64(n)/speeds[i])
			}
		}
		return t
	}
}

// apportion divides tasks by shares among the members that take part: rounded down, and the rest to the largest remainders.
func apportion(speeds, shares []float64, tasks int) []int {
	counts, rest := make([]int, len(speeds)), make([]float64, len(speeds))
	share := func(i int) float64 {
		switch {
		case speeds[i] <= 0:
			return 0
		case shares == nil:
			return 1
		}
		return shares[i]
	}
	sum, left := 0.0, tasks
	for i := range speeds {
		sum += share(i)
	}
	if sum <= 0 {
		return counts
	}
	var order []int
	for i := range speeds {
		if share(i) > 0 {
			exact := float64(tasks) * share(i) / sum
			counts[i] = int(math.Floor(exact + 1e-9))
			rest[i] = exact - float64(counts[i])
			left -= counts[i]
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i++ {
		counts[order[i%len(order)]]++
		left--
	}
	return counts
}

// oneByOne makes a call after the answer to the one before, to each member in turn.
func oneByOne(delay float64) way {
	return func(speeds []float64, tasks int) timing {
		t := timing{counts: apportion(speeds, nil, tasks)}
		for i, n := range t.counts {
			if n > 0 {
				t.seconds += float64(n) * (delay + 1/speeds[i])
			}
		}
		return t
	}
}

// together has all members busy until the end: throughputs add (CORD, theorem 6.3).
func together(speeds []float64, tasks int) timing {
	sum := 0.0
	for _, s := range speeds {
		sum += max(0, s)
	}
	if sum <= 0 {
		return timing{seconds: math.Inf(1), counts: make([]int, len(speeds))}
	}
	return timing{float64(tasks) / sum, apportion(speeds, speeds, tasks)}
}

// request is a place at a member that is free from an instant on.
type request struct {
	at     float64
	place  int // of those of the member
	member int
}

type requests []request

func (r requests) Len() int { return len(r) }
func (r requests) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(r[i].at, r[k].at), cmp.Compare(r[i].place, r[k].place), cmp.Compare(r[i].member, r[k].member)) < 0
}
func (r requests) Swap(i, k int) { r[i], r[k] = r[k], r[i] }
func (r *requests) Push(x any)   { *r = append(*r, x.(request)) } //nolint:forcetypeassert // Of heap.Push below.
func (r *requests) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// source sends tasks to the members that have a free place, in the order in which these ask.
type source struct {
	size   func(left, members int) int // of the next parcel
	places int                         // of each member
	home   int                         // the member at which the tasks lie, and which needs no message; -1: none of these
	cost   Cost
	bytes  float64 // of a task
}

// onDemand gives each free place the next parcel. The source sends one parcel after the other.
func (s *source) onDemand(speeds []float64, tasks int) timing {
	t := timing{counts: make([]int, len(speeds))}
	free, members := requests{}, 0
	for i, speed := range speeds {
		if speed <= 0 {
			continue
		}
		members++
		for place := range min(s.places, tasks) {
			free = append(free, request{0, place, i})
		}
	}
	heap.Init(&free)
	ends, sent := make([]float64, len(speeds)), 0.0
	for left := tasks; left > 0 && len(free) > 0; {
		next := heap.Pop(&free).(request) //nolint:forcetypeassert // It holds nothing else.
		n := 1                            // A member takes its own tasks one at a time.
		if next.member != s.home {
			n = max(1, min(left, s.size(left, members)))
		}
		left -= n
		t.counts[next.member] += n
		begin, back := next.at, 0.0
		if next.member != s.home {
			sent = max(sent, next.at) + s.cost.Of(s.bytes*float64(n))
			begin, back = sent, s.cost.Of(0)
		}
		ends[next.member] = max(begin, ends[next.member]) + float64(n)/speeds[next.member]
		next.at = ends[next.member] + back
		t.seconds = max(t.seconds, next.at)
		heap.Push(&free, next)
	}
	return t
}

// Anomaly says that the members are faster without some of the slowest ones (CORD, section 6, first paragraph).
type Anomaly struct {
	Without []string `json:"without"`         // the slowest members
	Seconds float64  `json:"seconds_without"` // that the others take
}

// maxWithout is how many of the slowest members are left out at most.
const maxWithout = 16

// anomaly looks whether the tasks end earlier without the slowest member, and then without the next one.
func anomaly(run way, names []string, speeds []float64, tasks int, with float64) *Anomaly {
	const counts = 0.99 // Less than one part in a hundred is no reason.
	speeds = slices.Clone(speeds)
	order := make([]int, len(speeds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(speeds[a], speeds[b]) })
	var found *Anomaly
	var without []string
	for _, i := range order[:max(0, min(maxWithout, len(order)-1))] {
		if speeds[i] <= 0 {
			continue
		}
		speeds[i] = 0
		without = append(without, names[i])
		t := run(speeds, tasks)
		if t.seconds <= 0 || t.seconds > counts*with {
			break
		}
		with = t.seconds
		found = &Anomaly{slices.Clone(without), t.seconds}
	}
	return found
}

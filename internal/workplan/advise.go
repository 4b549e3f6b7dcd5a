package workplan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// Sample is what one member told of its work. It holds until the next one of the member.
type Sample struct {
	At      float64 // seconds, on a clock that all members share
	Gone    bool    // the member has left or ended
	Idle    bool    // it has nothing to run
	Queued  int     // tasks that wait there
	Running int     // tasks that run there
	Slots   int     // tasks that it runs at a time
	Moved   int     // tasks that have come to it so far
	Calls   []workreport.Calls
}

// Recorded are the samples of the members of a run, by name, each list in the order of At.
type Recorded struct {
	Figures bool // the members told more than Idle: the key record was true
	Members map[string][]Sample
}

// Advice names one line of the configuration that is to be changed.
type Advice struct {
	Key    string  `json:"key"`    // path below the section work
	Lost   float64 `json:"lost"`   // the part of the members' time that the cause has cost
	Reason string  `json:"reason"` // what was seen
	Change string  `json:"change"` // what to write
}

// The parts from which on something counts.
const (
	muchLost = 0.15 // of the time of all members
	busy     = 0.85 // a server that runs for that part of the time has no time left
	often    = 0.5
	few      = 0.6
)

// Advise finds what has kept members from working while there was work. An empty list: nothing has, or nobody can tell.
// The most that was lost comes first.
func Advise(w *config.Work, r *Recorded) []Advice {
	t := measure(r)
	if t.work <= 0 {
		return nil
	}
	var list []Advice
	if !r.Figures {
		if lost := t.idle / t.work; lost >= muchLost {
			list = append(list, Advice{"", lost, fmt.Sprintf("while some member had work, %s of the others' time passed without any, and members told no figures", percent(lost)), "record: true, run again, and ask again"})
		}
		return list
	}
	for _, f := range t.functions {
		call, _ := w.Calls.Get(f.name)
		if a, ok := t.call(f, &call, syncs(w)); ok {
			list = append(list, a)
		}
	}
	if a, ok := t.tasks(w); ok {
		list = append(list, a)
	}
	slices.SortStableFunc(list, func(a, b Advice) int { return cmp.Compare(b.Lost, a.Lost) })
	return list
}

func percent(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

// tally is what a run came to, in seconds.
type tally struct {
	names     []string
	work      float64 // in which some member had work
	idle      float64 // of it, the mean of the members without any
	functions []*function
	tasked    float64 // in which tasks were there
	uneven    float64 // of it, while tasks waited at one member and another one had a free slot
	free      float64 // the mean part of the slots that were free meanwhile, over time
	waitedAt  map[string]float64
	freeAt    map[string]float64
	moved     int
}

// function is the record of the calls of a function.
type function struct {
	name    string
	active  float64 // while calls were open or at a server
	held    float64 // of it, while calls waited at callers for a server
	single  float64 // of it, while at most one call was at the servers of all functions
	servers []*serverTally
}

type serverTally struct {
	name    string
	slots   int
	busy    float64 // seconds of all slots
	waited  float64 // while calls waited there
	open    float64 // call-seconds, of those at the server
	served  uint64
	seconds float64
}

// speed is how many calls a second a slot of the server does; 0: not known.
func (s *serverTally) speed() float64 {
	if s.seconds <= 0 {
		return 0
	}
	return float64(s.served) / s.seconds * float64(max(1, s.slots))
}

func (s *serverTally) use(active float64) float64 { return s.busy / float64(max(1, s.slots)) / active }

// measure adds up the time between samples.
func measure(r *Recorded) *tally {
	t := &tally{waitedAt: map[string]float64{}, freeAt: map[string]float64{}}
	var times []float64
	for name, list := range r.Members {
		t.names = append(t.names, name)
		for i := range list {
			times = append(times, list[i].At)
		}
		if n := len(list); n > 0 {
			t.moved += list[n-1].Moved
		}
	}
	slices.Sort(t.names)
	slices.Sort(times)
	times = slices.Compact(times)
	next := make([]int, len(t.names))
	now := make([]*Sample, len(t.names))
	for i := 0; i+1 < len(times); i++ {
		for k, name := range t.names {
			list := r.Members[name]
			for next[k] < len(list) && list[next[k]].At <= times[i] {
				now[k] = &list[next[k]]
				next[k]++
			}
		}
		t.add(now, times[i+1]-times[i])
	}
	slices.SortFunc(t.functions, func(a, b *function) int { return cmp.Compare(a.name, b.name) })
	return t
}

// function returns the tally of a function.
func (t *tally) function(name string) *function {
	for _, f := range t.functions {
		if f.name == name {
			return f
		}
	}
	f := &function{name: name}
	t.functions = append(t.functions, f)
	return f
}

func (f *function) server(name string, slots int) *serverTally {
	for _, s := range f.servers {
		if s.name == name {
			s.slots = max(s.slots, slots)
			return s
		}
	}
	s := &serverTally{name: name, slots: slots}
	f.servers = append(f.servers, s)
	return s
}

// add adds an interval in which the members stood as they told.
func (t *tally) add(now []*Sample, d float64) {
	members, idle, serving := 0, 0, 0
	tasks, queued, free, slots := 0, 0, 0, 0
	open := map[string]bool{}
	for k, s := range now {
		if s == nil || s.Gone {
			continue
		}
		members++
		inCalls := false
		for i := range s.Calls {
			c := &s.Calls[i]
			open[c.Name] = open[c.Name] || c.Open+c.Waiting+c.Running > 0
			serving += c.Waiting + c.Running
			inCalls = inCalls || c.Waiting+c.Running > 0
		}
		if s.Idle && !inCalls {
			idle++
		}
		tasks += s.Queued + s.Running
		slots += s.Slots
		if s.Queued > 0 {
			queued++
			t.waitedAt[t.names[k]] += d
		}
		if s.Queued == 0 && s.Running < s.Slots {
			free += s.Slots - s.Running
		}
	}
	if members == 0 {
		return
	}
	if idle < members {
		t.work += d
		t.idle += d * float64(idle) / float64(members)
	}
	if tasks > 0 && slots > 0 {
		t.tasked += d
		if queued > 0 && free > 0 {
			t.uneven += d
			t.free += d * float64(free) / float64(slots)
			for k, s := range now {
				if s != nil && !s.Gone && s.Queued == 0 && s.Running < s.Slots {
					t.freeAt[t.names[k]] += d
				}
			}
		}
	}
	for name, active := range open {
		if active {
			t.addCalls(now, t.function(name), serving, d)
		}
	}
}

func (t *tally) addCalls(now []*Sample, f *function, serving int, d float64) {
	f.active += d
	held := false
	for k, s := range now {
		if s == nil || s.Gone {
			continue
		}
		i := slices.IndexFunc(s.Calls, func(c workreport.Calls) bool { return c.Name == f.name })
		if i < 0 {
			continue
		}
		c := &s.Calls[i]
		held = held || c.Held > 0
		if c.Served == 0 && c.Waiting+c.Running == 0 {
			continue // It may only call.
		}
		server := f.server(t.names[k], s.Slots)
		server.open += d * float64(c.Waiting+c.Running)
		server.served, server.seconds = c.Served, c.Seconds
		server.busy = c.Seconds // More exact than states at times.
		if c.Waiting > 0 {
			server.waited += d
		}
	}
	if held {
		f.held += d
	}
	if serving <= 1 {
		f.single += d
	}
}

// servers are the members that have served some function.
func (t *tally) servers() int {
	names := map[string]bool{}
	for _, f := range t.functions {
		for _, s := range f.servers {
			names[s.name] = true
		}
	}
	return len(names)
}

// call advises on the calls of a function.
func (t *tally) call(f *function, c *config.WorkCall, syncs []string) (Advice, bool) {
	if len(f.servers) == 0 || f.active < often*t.work {
		return Advice{}, false
	}
	sync, demand, low, high, err := config.ParseStyle(c.Style)
	if err != nil {
		return Advice{}, false // The loader has refused it before.
	}
	at := "calls." + f.name
	least, most, mean := math.Inf(1), 0.0, 0.0
	var fastest, slowest *serverTally
	for _, s := range f.servers {
		use := s.use(f.active)
		mean += use / float64(len(f.servers))
		if use < least {
			least, fastest = use, s
		}
		if use > most {
			most, slowest = use, s
		}
	}
	all := t.servers()
	switch lost := 1 - mean; {
	case sync && f.single >= busy*f.active:
		if all == 1 && mean >= busy {
			break
		}
		if all > 1 {
			lost = 1 - mean/float64(all)*float64(len(f.servers))
		}
		return Advice{at + ".style", lost, fmt.Sprintf("with style: sync at most one call was under way for %s of the time, and %d members serve: %s ran for %s of it", percent(f.single/f.active), all, namesOfServers(f.servers), percent(mean)), fmt.Sprintf(`style: async for %s, or style: "async-demand(2:4)" for the first of a chain`, strings.Join(syncs, ", "))}, true
	case c.Ratio != "" && len(f.servers) > 1 && most >= few && most-least >= 0.3:
		return Advice{at + ".ratio", lost, fmt.Sprintf("%s ran for %s of the time and %s for %s: the ratio %s differs from their speeds, %s", slowest.name, percent(most), fastest.name, percent(least), c.Ratio, speedsOf(f.servers)), fmt.Sprintf("ratio: %q", ratioOf(c.Replicas, f.servers)) + `, or style: "async-demand(*:2)" without it`}, true
	case demand && high > 0 && mean < busy && f.held >= often*f.active && waitedPart(f) < 1-few:
		service := meanService(f.servers)
		each := math.Inf(1)
		for _, s := range f.servers {
			each = min(each, float64(s.slots))
		}
		need := int(math.Ceil(float64(high)/max(mean, 0.01))) + 1
		return Advice{at + ".style", lost, fmt.Sprintf("calls waited at callers for %s of the time while servers ran for %s of it, with %d calls at each: an answer and the next call take longer than the call itself, %s s", percent(f.held/f.active), percent(mean), high, number(service)), fmt.Sprintf(`style: "async-demand(%d:%d)"`, max(low, need/2, int(each)), max(need, high+1))}, true
	case len(c.Replicas) > 0 && len(c.Replicas) < len(t.names) && most >= busy && waitedPart(f) >= often:
		rest := 0.0
		for _, other := range t.functions {
			for _, s := range other.servers {
				rest += s.busy / float64(max(1, s.slots))
			}
		}
		lost = 1 - rest/(t.work*float64(len(t.names)))
		if lost < muchLost {
			break
		}
		return Advice{at + ".replicas", lost, fmt.Sprintf("%s ran for %s of the time and calls waited there for %s of it; %d of the %d members serve it, and all members ran functions for %s of their time", slowest.name, percent(most), percent(waitedPart(f)), len(c.Replicas), len(t.names), percent(1-lost)), fmt.Sprintf("replicas: [%s, ...] with a further member, or leave replicas out", strings.Join(c.Replicas, ", "))}, true
	case !sync && !demand && c.Ratio == "" && len(f.servers) > 1 && most >= few && most-least >= 0.3:
		return Advice{at + ".style", lost, fmt.Sprintf("%s ran for %s of the time and %s for %s: each got as many calls, and their speeds differ, %s", slowest.name, percent(most), fastest.name, percent(least), speedsOf(f.servers)), `style: "async-demand(*:2)"`}, true
	}
	return Advice{}, false
}

// syncs are the functions with style: sync.
func syncs(w *config.Work) (names []string) {
	for i := range w.Calls {
		if w.Calls[i].Value.Style == config.StyleSync {
			names = append(names, w.Calls[i].Key)
		}
	}
	return names
}

func namesOfServers(list []*serverTally) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// waitedPart is for which part of the time calls waited at the server where they waited most.
func waitedPart(f *function) float64 {
	most := 0.0
	for _, s := range f.servers {
		most = max(most, s.waited/f.active)
	}
	return most
}

// meanService is how long a call runs.
func meanService(list []*serverTally) float64 {
	served, seconds := uint64(0), 0.0
	for _, s := range list {
		served += s.served
		seconds += s.seconds
	}
	return seconds / float64(max(1, served))
}

func speedsOf(list []*serverTally) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, fmt.Sprintf("%s %s a second", s.name, number(s.speed())))
	}
	return strings.Join(parts, ", ")
}

// ratioOf is the ratio of the speeds of replicas, the slowest as 10.
func ratioOf(replicas []string, list []*serverTally) string {
	speeds, least := make([]float64, len(replicas)), math.Inf(1)
	for i, name := range replicas {
		for _, s := range list {
			if s.name == name && s.speed() > 0 {
				speeds[i] = s.speed()
				least = min(least, speeds[i])
			}
		}
	}
	parts := make([]string, len(replicas))
	for i, speed := range speeds {
		part := 10.0 // Nothing is known of it.
		if speed > 0 {
			part = min(config.MaxShare, math.Round(10*speed/least))
		}
		parts[i] = fmt.Sprintf("%.0f", part)
	}
	return strings.Join(parts, ":")
}

// tasks advises on the strategy.
func (t *tally) tasks(w *config.Work) (Advice, bool) {
	if t.tasked <= 0 || t.tasked < often*t.work || t.free < muchLost*t.tasked {
		return Advice{}, false
	}
	lost := t.free / t.tasked
	s := &w.Strategy
	waited, free := largest(t.waitedAt), largest(t.freeAt)
	seen := fmt.Sprintf("for %s of the time tasks waited at one member, mostly %s, while others had free slots, mostly %s; %d tasks moved", percent(t.uneven/t.tasked), waited, free, t.moved)
	switch {
	case s.Kind == local.Chunk:
		return Advice{"strategy.cut", lost, seen + ": the chunks that " + waited + " took are too large for the end", cutAdvice(s.Cut)}, true
	case s.Kind == local.Links && t.moved == 0:
		return Advice{"strategy.links", lost, seen + ": no condition of a link held", "links with a lower o, or with u=(L<2) at the members that are short of tasks, or kind: receiver"}, true
	case s.Kind == local.Links:
		return Advice{"strategy.links", lost, seen, fmt.Sprintf("a link from %s to %s, or a lower o, or u=(L<2) at %s", waited, free, free)}, true
	case t.moved == 0:
		return Advice{"strategy", lost, seen + ": the strategy gives nothing away", "from: activity, which gives as soon as a task runs, or leave the strategy out"}, true
	}
	return Advice{"strategy", lost, seen + ": moves come too late or too seldom", "a lower again or longest, or a larger share"}, true
}

// cutAdvice is a rule with smaller chunks.
func cutAdvice(cut string) string {
	if cut == "gss" || cut == "tss" || strings.HasPrefix(cut, "tss(") {
		return "cut: fac2, or cut: ss for long tasks"
	}
	return "cut: gss, or cut: ss for long tasks"
}

// largest is the key with the largest value, of equal ones the first by name.
func largest(of map[string]float64) (name string) {
	for key, value := range of {
		if name == "" || value > of[name] || value == of[name] && key < name {
			name = key
		}
	}
	return name
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// LoadOptions say what load a synchronizer is put under.
type LoadOptions struct {
	Program

	URL        string           // of the NATS server, to show it; empty starts one here
	Connect    connect.Settings // what leads to URL, together with the environment
	Members    int              // members in the same process share a connection
	Processes  int              // that the members are shared out to evenly; at most as many as these
	Rate       int              // reports a second, of all members together
	Time       time.Duration    // how long, after a second that is not counted
	Predicates int              // judged on every global state
	Counts     int              // of these: whether Least members are in a state that about half are in
	Least      int              // 0: all of them and one more, which are never

	// Overload times Rate is told for OverloadTime after that, and then Rate again for five
	// seconds, or five times as long if that is less. 0: there is no overload.
	Overload     int
	OverloadTime time.Duration
}

// LoadResult is what became of a load.
type LoadResult struct {
	Program

	Server     string  `json:"nats,omitempty"` // of the options, without a password; empty: one of its own
	Time       string  `json:"time"`           // of the options, such as 10s
	Counts     int     `json:"counts"`
	Least      int     `json:"least,omitempty"` // of the options
	Members    int     `json:"members"`
	Processes  int     `json:"processes"`
	Predicates int     `json:"predicates"`
	Asked      float64 `json:"asked_per_second"` // reports
	Told       float64 `json:"told_per_second"`  // states that the members have set
	Taken      float64 `json:"taken_per_second"` // by the synchronizer
	Verdicts   int     `json:"verdicts"`         // that were timed
	// Latency is the time from the change of state that began a global state to the
	// verdict on it, for the verdicts that changed.
	Latency Percentiles `json:"verdict_us"`
	// Shed are states, or messages with states, that were given up anywhere: by members, or as
	// the three after it, on the connection, unread in the inbox, and in gaps.
	Shed    uint64 `json:"shed"`
	Dropped uint64 `json:"shed_on_connection"`
	Unread  uint64 `json:"shed_unread"`
	Gaps    uint64 `json:"gaps"`
	// Growth is by how much more memory this process has from the system at the most than when
	// the load began, in MiB; that is what it has used, and not given back.
	Growth float64 `json:"memory_growth_mib"`
	// Overload is left out if there was none.
	Overload *OverloadResult `json:"overload,omitempty"`
	Seconds  []LoadSecond    `json:"seconds,omitempty"` // since the load began
}

// OverloadResult is what became of an overload.
type OverloadResult struct {
	Times  int     `json:"times"`             // the rate
	Time   string  `json:"time"`              // of it, such as 10s
	Told   float64 `json:"told_per_second"`   // as of the whole
	Taken  float64 `json:"taken_per_second"`  // likewise
	Unread uint64  `json:"shed_unread"`       // likewise
	Gaps   uint64  `json:"gaps"`              // likewise
	Growth float64 `json:"memory_growth_mib"` // as of the whole, up to the end
	// Right is when nothing was given up any more, and the state of every member was known, from
	// its end; Prompt when half of the verdicts were as soon as p99 before it. Below 0: never.
	Right  float64 `json:"right_after_seconds"`
	Prompt float64 `json:"prompt_after_seconds"`
}

// LoadSecond is one second of a load.
type LoadSecond struct {
	Phase  string  `json:"phase"`            // load, overload or after
	Taken  float64 `json:"taken_per_second"` // reports
	Unread uint64  `json:"shed_unread"`      // messages
	Gaps   uint64  `json:"gaps"`             // in it
	P50    float64 `json:"verdict_p50_us"`   // 0 without verdicts
	P99    float64 `json:"verdict_p99_us"`   // likewise
	Memory float64 `json:"memory_mib"`       // that the process has of the system
}

const (
	loadGroup  = "load"
	warmUp     = time.Second
	joinTime   = 20 * time.Millisecond // a member, at most
	loadSample = 200                   // verdicts a second that are timed, about
)

// loadConfig has one predicate whose verdict changes with every sampled report,
// and others that look at all members and seldom change.
func loadConfig(o *LoadOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
synchronizers:
  load:
    members: {group: load, count: %d}
    state: {load: float, n: int}
    predicates:
      sampled: {when: "sum(map(members, .n)) %% 2 == 1", signal: []}
`, o.Members)
	forms := []string{
		"sum(map(members, .load)) > %[1]d * 0.9%[2]d",
		"max(map(members, .load)) > 1.%[2]d",
		"min(map(members, .load)) < -0.%[2]d",
		"any(members, .load > 1.%[2]d and .n < 0)",
	}
	for i := 1; i < o.Predicates; i++ {
		form := forms[i%len(forms)]
		if i <= o.Counts {
			form = "count(members, .load > 0.5%[2]d) >= %[3]d"
		}
		when, modality := fmt.Sprintf(form, o.Members, 10+i), ""
		if i <= o.Counts {
			when, modality = fmt.Sprintf(form, o.Members, 10+i, cmp.Or(o.Least, o.Members+1)), "modality: atleast, "
		}
		fmt.Fprintf(&b, "      p%d: {when: %q, %ssignal: []}\n", i, when, modality)
	}
	return b.String()
}

// Load puts a synchronizer in this process under the load of members in another
// one, under a tenant of their own.
func Load(ctx context.Context, o LoadOptions) (r *LoadResult, err error) {
	cfg, err := synchronizer.ParseConfig("load", []byte(loadConfig(&o)))
	if err != nil {
		return nil, err
	}
	join := request{Op: opJoin, Connect: o.Connect, Group: loadGroup, Time: time.Duration(o.Members) * joinTime}
	if o.URL == "" {
		server, err := embedded.Start(embedded.Options{MaxConnections: o.Members + 16}) //nolint:contextcheck // It is closed, not cancelled.
		if err != nil {
			return nil, err
		}
		defer server.Close()
		join.URL = server.URL()
	}
	server, options, err := join.server()
	if err != nil {
		return nil, err
	}
	var timed timedVerdicts
	join.Tenant = fmt.Sprintf("bench-%x", source.WallNano())
	s, err := synchronizer.Start(ctx, server.URL, cfg, synchronizer.Options{Tenant: join.Tenant, Observe: timed.observe, NATS: options})
	if err != nil {
		return nil, server.Explain(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var f fleet
	defer func() { err = errors.Join(err, f.end()) }()
	if f, err = startFleet(ctx, &o); err != nil {
		return nil, err
	}
	if _, err := f.call(ctx, join); err != nil {
		return nil, err
	}
	q := request{Op: opLoad, Group: loadGroup, Rate: float64(o.Rate), Time: warmUp}
	if _, err := f.call(ctx, q); err != nil {
		return nil, err
	}
	r = &LoadResult{
		Program: o.Program, Time: o.Time.String(), Counts: o.Counts, Least: o.Least,
		Members: o.Members, Processes: len(f), Predicates: o.Predicates, Asked: q.Rate,
	}
	w := newLoadWatch(s, &timed) //nolint:contextcheck // It is ended, not cancelled.
	defer w.end()
	q.Time = o.Time
	p, err := w.run(ctx, f, q, phaseLoad)
	if err != nil {
		return nil, err
	}
	r.Told, r.Taken, r.Verdicts, r.Growth = p.told, p.taken, len(p.ages), p.growth
	r.Dropped, r.Unread, r.Gaps = p.dropped, p.unread, p.gaps
	r.Shed = p.shed + p.dropped + p.unread + p.gaps + p.collapsed
	if len(p.ages) == 0 {
		return nil, fmt.Errorf("no verdict within %v: %.0f reports a second were taken in, %d shed: ask for a lower --rate or fewer --members", o.Time, r.Taken, r.Shed)
	}
	all := percentiles(p.ages)
	r.Latency = Percentiles{all.P50, all.P99}
	if o.Overload > 0 {
		if r.Overload, err = w.overload(ctx, f, q, &o, r.Latency); err != nil {
			return nil, err
		}
	}
	r.Seconds = w.seconds()
	_, err = f.call(ctx, request{Op: opLeave, Group: loadGroup, Time: join.Time})
	return r, err
}

// fleet is the processes of a load, each with its share of the members.
type fleet []share

type share struct {
	*Process
	first, members int
	part           float64 // of the load
}

func startFleet(ctx context.Context, o *LoadOptions) (f fleet, err error) {
	for i := range o.Processes {
		p, err := Start(ctx, o.Command)
		if err != nil {
			return f, err
		}
		first, next := i*o.Members/o.Processes, (i+1)*o.Members/o.Processes
		f = append(f, share{p, first, next - first, float64(next-first) / float64(o.Members)})
	}
	return f, nil
}

// call asks all processes at once, each for its share, and adds up what they answer.
func (f fleet) call(ctx context.Context, q request) (sum figures, err error) {
	answers, errs := make([]figures, len(f)), make([]error, len(f))
	var asking sync.WaitGroup
	for i, s := range f {
		mine := q
		mine.First, mine.Members, mine.Rate, mine.Sample = s.first, s.members, q.Rate*s.part, loadSample*s.part
		asking.Go(func() { answers[i], errs[i] = s.call(ctx, mine) })
	}
	asking.Wait()
	for _, a := range answers {
		sum.Rate, sum.Shed, sum.Seconds = sum.Rate+a.Rate, sum.Shed+a.Shed, max(sum.Seconds, a.Seconds)
	}
	return sum, errors.Join(errs...)
}

func (f fleet) end() error {
	var errs []error
	for _, s := range f {
		errs = append(errs, s.End())
	}
	return errors.Join(errs...)
}

// timedVerdicts are the ages of verdicts when they are reported, in microseconds.
type timedVerdicts struct {
	mu   sync.Mutex
	ages []float64
}

func (t *timedVerdicts) observe(e monitor.Event) {
	v, ok := e.(monitor.Verdict)
	if !ok || !v.Span.SameClock {
		return
	}
	age := source.System().Now().Mono.Sub(v.Span.MonoFrom)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ages = append(t.ages, float64(age)/1e3)
}

// take returns the ages since the last call.
func (t *timedVerdicts) take() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	ages := t.ages
	t.ages = nil
	return ages
}

// load has the members tell states in turn at a rate, with pauses of a
// millisecond.
func (g *group) load(ctx context.Context, q request) (figures, error) {
	rng := rand.New(rand.NewPCG(1, uint64(g.n))) //nolint:gosec // Numbers of a load.
	before, told, sampled := g.dropped(), 0, max(int(q.Rate/q.Sample), 1)
	if len(g.states) == 0 {
		g.states = make([]state, len(g.members))
		if err := g.tell(); err != nil { // So that there is an epoch.
			return figures{}, err
		}
	}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	began := source.Monotonic()
	for now := began; now < began.Add(q.Time); now = source.Monotonic() {
		for due := int(now.Sub(began).Seconds() * q.Rate); told < due; told++ {
			i := int(g.n) % len(g.members)
			s := &g.states[i]
			s.Load = rng.Float64()
			if told%sampled == 0 {
				s.N++
			}
			if err := g.members[i].Set(*s); err != nil {
				return figures{}, err
			}
			g.n++
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return figures{}, context.Cause(ctx)
		}
	}
	took := source.Monotonic().Sub(began).Seconds()
	return figures{Rate: float64(told) / took, Seconds: took, Shed: g.dropped() - before}, nil
}

package web

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

// programView is a program as browsers get it.
type programView struct {
	Name    string      `json:"name"`
	Outcome string      `json:"outcome"`
	Blocks  []blockView `json:"blocks"`
	More    int         `json:"blocks_more"`
	Waits   []waitView  `json:"waits"`
	Waiting int         `json:"waits_more"`

	Drawing *monitor.ProgramDrawing `json:"drawing,omitempty"`
	Places  map[string]placeView    `json:"places,omitempty"` // by the path of the construct
}

// placeView is where a construct of the drawing stands.
type placeView struct {
	State string `json:"state"` // running, waiting, failed, lost or done; empty: it was not started
	Text  string `json:"text"`
}

// blockView has a text for each column.
type blockView struct {
	Name   string `json:"name"`
	Starts string `json:"starts"`
	Done   string `json:"done"`
	Ended  string `json:"ended"` // otherwise: failed, cancelled, lost, perhaps run twice
	Runs   string `json:"runs"`  // where it runs now
	Path   string `json:"path"`
}

type waitView struct {
	Name string `json:"name"`
	For  string `json:"for"`
	Path string `json:"path"`
}

func newProgramView(p *monitor.ProgramStatus) *programView {
	if p == nil {
		return nil
	}
	v := &programView{Name: p.Name, Outcome: p.Outcome, More: p.LeftOut, Blocks: []blockView{}, Waits: []waitView{}, Waiting: p.WaitsMore, Drawing: p.Drawing}
	if p.Reason != "" {
		v.Outcome += ": " + p.Reason
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		v.setPlace(b.Path, blockState(b), blockText(b))
		v.Blocks = append(v.Blocks, blockView{b.Name, strconv.FormatUint(b.Starts, 10), strconv.FormatUint(b.Done, 10), endedText(&b.RunCounts), runsText(b.Runs), b.Path})
	}
	waiting := map[string][]string{}
	for _, w := range p.Waits {
		name := w.Name
		if w.Replica != "" {
			name += "[" + w.Replica + "]"
		}
		waiting[w.Path] = append(waiting[w.Path], w.For)
		v.Waits = append(v.Waits, waitView{name, w.For, w.Path})
	}
	for path, list := range waiting {
		text := "waits for " + list[0]
		if len(list) > 1 {
			text = fmt.Sprintf("%d replicas wait, the first one for %s", len(list), list[0])
		}
		v.setPlace(path, "waiting", text)
	}
	return v
}

// setPlace sets where a construct stands. A block of which a replica runs is drawn as running.
func (v *programView) setPlace(path, state, text string) {
	if v.Drawing == nil {
		return
	}
	if v.Places == nil {
		v.Places = map[string]placeView{}
	}
	if before, is := v.Places[path]; is {
		text = before.Text + "; " + text
		if before.State == "running" {
			state = before.State
		}
	}
	v.Places[path] = placeView{state, text}
}

// blockState is the state that a block is drawn with: of several runs a running one comes first, then a fault.
func blockState(b *monitor.BlockStatus) string {
	switch {
	case len(b.Runs) > 0:
		return "running"
	case b.Failed > 0:
		return "failed"
	case b.Lost > 0:
		return "lost"
	case b.Done > 0:
		return "done"
	}
	return ""
}

// blockText counts the runs of a block: a replicated block is a single vertex.
func blockText(b *monitor.BlockStatus) string {
	var parts []string
	if len(b.Runs) > 0 {
		parts = append(parts, runsText(b.Runs))
	}
	if b.Done > 0 {
		parts = append(parts, fmt.Sprintf("%d done%s", b.Done, timesText(b)))
	}
	if ended := endedText(&b.RunCounts); ended != "" {
		parts = append(parts, ended)
	}
	return fmt.Sprintf("%d started: %s", b.Starts, cmp.Or(strings.Join(parts, ", "), "none has ended"))
}

// timesText says how long the runs with a result took; empty if the status does not have it.
func timesText(b *monitor.BlockStatus) string {
	switch {
	case b.Longest == 0: // Of a release before.
		return ""
	case b.Done == 1:
		return " in " + seconds(b.Longest)
	}
	return fmt.Sprintf(" in %s on average and %s at most", seconds(b.Mean), seconds(b.Longest))
}

// seconds is a time with three digits, or whole seconds.
func seconds(n float64) string {
	if n >= 100 {
		return time.Duration(n * float64(time.Second)).Round(time.Second).String()
	}
	return strconv.FormatFloat(n, 'g', 3, 64) + " s"
}

// endedText counts the runs that have ended without a result.
func endedText(c *monitor.RunCounts) string {
	var parts []string
	for _, one := range []struct {
		n    uint64
		what string
	}{{c.Failed, "failed"}, {c.Canceled, "cancelled"}, {c.Lost, "lost"}, {c.Twice, "perhaps run twice"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return strings.Join(parts, ", ")
}

// runsText counts replicas alike: where many run, the processors of the first ones stand for all.
func runsText(runs []monitor.RunStatus) string {
	const named = 4
	var parts []string
	for _, phase := range []string{"running", "starting", "cancelling"} {
		n, longest := 0, 0.0
		var on []string
		for i := range runs {
			if runs[i].Phase != phase {
				continue
			}
			longest = max(longest, runs[i].Seconds)
			if n++; n <= named {
				where := cmp.Or(runs[i].Processor, "no processor")
				if runs[i].Attempt > 1 {
					where += fmt.Sprintf(" (attempt %d)", runs[i].Attempt)
				}
				on = append(on, where)
			}
		}
		if n > named {
			on = append(on, fmt.Sprintf("and %d more", n-named))
		}
		if n > 0 {
			text := fmt.Sprintf("%d %s on %s", n, phase, strings.Join(on, ", "))
			if longest >= 1 {
				before := " for "
				if n > 1 {
					before = ", the longest for "
				}
				text += before + seconds(math.Floor(longest))
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// balanceView is how loads are moved, as browsers get it.
type balanceView struct {
	Text     string       `json:"text"`
	Moves    []moveView   `json:"moves"` // of the last plan
	Refused  []refuseView `json:"refused"`
	LeftOut  int          `json:"refused_more"`
	UnderWay string       `json:"under_way"`
}

type moveView struct {
	Load string `json:"load"`
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why"`
}

type refuseView struct {
	Load   string `json:"load"`
	Detail string `json:"detail"`
}

func newBalanceView(b *monitor.BalanceStatus) *balanceView {
	if b == nil {
		return nil
	}
	v := &balanceView{Text: fmt.Sprintf("strategy %s: %d looks, %d of them in balance, %d plans, %d moves", b.Strategy, b.Looks, b.Quiet, b.Plans, b.Moves), Moves: []moveView{}, Refused: []refuseView{}}
	if b.Flights > 0 {
		v.UnderWay = fmt.Sprintf("%d loads are under way", b.Flights)
	}
	if b.Last == nil {
		return v
	}
	v.Text += "; last plan: " + b.Last.Verdict
	for _, m := range b.Last.Moves {
		v.Moves = append(v.Moves, moveView{m.Load, m.From, m.To, m.Why})
	}
	more := 0
	v.Moves, more = first(v.Moves, maxPredicates)
	for _, r := range b.Last.Refused {
		v.Refused = append(v.Refused, refuseView{cmp.Or(r.Load, r.From), r.Detail})
	}
	v.LeftOut = b.Last.LeftOut + more
	return v
}

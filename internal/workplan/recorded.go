package workplan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/workreport"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/scgs"
)

// Advised is what a journal says of the section work of its configuration.
type Advised struct {
	Synchronizer string   `json:"synchronizer"` // its name
	Members      int      `json:"members"`      // that have told states
	Seconds      float64  `json:"seconds"`      // in which some member had work
	Figures      bool     `json:"figures"`      // the key record was true
	Advice       []Placed `json:"advice"`       // what has cost most first; empty: no line is to be changed
}

// Placed is advice with the place of the line.
type Placed struct {
	Advice
	File   string `json:"file"`   // of the configuration
	Line   int    `json:"line"`   // from 1; the line of the nearest key above, if the file does not have the key
	Column int    `json:"column"` // from 1
	Path   string `json:"path"`   // of the key
}

// maxSamples is the most samples that are kept of a journal.
const maxSamples = 1 << 20

// Read reads a journal, and advises on the section work of its configuration. File and src are the configuration in which places
// are looked up; without src that of the journal.
func Read(r io.Reader, file string, src []byte) (*Advised, error) {
	in, err := journal.Read(r)
	if err != nil {
		return nil, err
	}
	w, name := in.Level.Work, in.Level.Name
	if w == nil {
		return nil, fmt.Errorf("synchronizer %s has no section work: give the journal of a synchronizer whose members share tasks", name)
	}
	rec, err := samples(in)
	if err != nil {
		return nil, err
	}
	if src == nil {
		file, src = in.Header.Config.Name, []byte(in.Header.Config.Text)
	} else if err := hasSection(file, src, name); err != nil {
		return nil, err
	}
	doc, err := yamlconf.Decode(file, src, &config.Config{})
	if doc == nil {
		return nil, err
	}
	a := &Advised{Synchronizer: name, Members: len(rec.Members), Seconds: measure(rec).work, Figures: rec.Figures, Advice: []Placed{}}
	for _, advice := range Advise(w, rec) {
		path := strings.TrimSuffix("synchronizers."+name+"."+config.WorkName+"."+advice.Key, ".")
		at := path
		for doc.KeyPos(at) == (yamlconf.Pos{}) && strings.Contains(at, ".") {
			at = at[:strings.LastIndexByte(at, '.')]
		}
		pos := doc.KeyPos(at)
		a.Advice = append(a.Advice, Placed{advice, file, max(1, pos.Line), max(1, pos.Column), path})
	}
	return a, nil
}

// hasSection refuses a configuration that has not the section of the journal.
func hasSection(file string, src []byte, synchronizer string) error {
	levels, err := configfile.Parse(file, src)
	if err != nil {
		return err
	}
	if level := levels.Get(synchronizer); level == nil || level.Work == nil {
		return fmt.Errorf("%s: it has no section work of the synchronizer %s, which the journal is of: give the configuration of that run", file, synchronizer)
	}
	return nil
}

// samples reads the states of the members.
func samples(in *journal.Reader) (*Recorded, error) {
	type key struct {
		life, seq uint64
	}
	seen := map[string]map[key]bool{}
	out := &Recorded{Figures: in.Level.Work.Record, Members: map[string][]Sample{}}
	total := 0
	for {
		var rec journal.Record
		err := in.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if rec.Input.Kind != synccore.InBatch || rec.Input.Group != "" || rec.Input.Batch == nil {
			continue
		}
		b := rec.Input.Batch
		if seen[b.Member] == nil {
			seen[b.Member] = map[key]bool{}
		}
		for i := range b.Reports {
			k := key{b.Incarnation, b.Reports[i].Seq}
			if seen[b.Member][k] {
				continue // It was sent again.
			}
			seen[b.Member][k] = true
			s, err := sample(in.Level.State, &b.Reports[i], rec.Now.Add(-sent(b).Sub(b.Reports[i].At.Mono)))
			if err != nil {
				return nil, fmt.Errorf("line %d: member %s: %w", in.Line(), b.Member, err)
			}
			out.Members[b.Member] = append(out.Members[b.Member], s)
			if total++; total > maxSamples {
				return nil, fmt.Errorf("the journal has more than %d states: record a shorter run", maxSamples)
			}
		}
		if n := len(out.Members[b.Member]); b.Leaving && n > 0 {
			out.Members[b.Member] = append(out.Members[b.Member], Sample{At: out.Members[b.Member][n-1].At, Gone: true})
		}
	}
	for _, list := range out.Members {
		slices.SortStableFunc(list, func(a, b Sample) int { return cmp.Compare(a.At, b.At) })
	}
	return out, nil
}

// sample is one state of a member, which began at an instant of the synchronizer's clock: its clocks may be others, and the way of
// a message is short.
func sample(state scgs.Schema, r *wire.Report, at clocksync.Instant) (s Sample, err error) {
	s.At = at.Sub(0).Seconds()
	if s.Gone = r.End; s.Gone {
		return s, nil
	}
	value := func(name string) (v scgs.Value) {
		if i := state.Index(config.WorkPrefix + name); i >= 0 && i < len(r.Row) {
			v = r.Row[i]
		}
		return v
	}
	count := func(name string) int { return int(min(max(value(name).Int(), 0), 1<<31)) }
	s.Idle = value("idle").Bool() || value("phase").Int() == 0 // It has not opened the space.
	s.Queued, s.Running, s.Slots, s.Moved = count("queued"), count("running"), count("slots"), count("moved")
	s.Calls, err = workreport.ParseCalls(value("calls").Text())
	return s, err
}

// sent is the reading of the member's clock when it sent a batch, as far as the batch says.
func sent(b *wire.Batch) clocksync.Instant {
	last := clocksync.MinInstant
	if b.Evidence.Seq > 0 {
		last = b.Evidence.At.Mono
	}
	for i := range b.Reports {
		last = max(last, b.Reports[i].At.Mono)
	}
	return last
}

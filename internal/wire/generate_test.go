package wire_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

func tokens() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`) }

func texts(limit int) *rapid.Generator[string] { return rapid.StringN(-1, -1, limit) }

func finiteFloats() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.SampledFrom([]float64{0, 0.5, 1e300, math.SmallestNonzeroFloat64}))
}

func fields() *rapid.Generator[scgs.Field] {
	return rapid.Custom(func(t *rapid.T) scgs.Field {
		f := scgs.Field{
			Name: rapid.StringMatching(`f[A-Za-z0-9_]{0,8}`).Draw(t, "field"),
			Type: scgs.Type(rapid.IntRange(int(scgs.Bool), int(scgs.Enum)).Draw(t, "type")),
		}
		if f.Type == scgs.Enum {
			f.Words = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,6}`), 1, 5, rapid.ID).Draw(t, "words")
		}
		if rapid.IntRange(0, 2).Draw(t, "list") == 0 {
			f.Type = scgs.ListOf(f.Type)
		}
		if rapid.IntRange(0, 3).Draw(t, "default") == 0 {
			f.Default = value(t, f)
		}
		return f
	})
}

func schemas() *rapid.Generator[scgs.Schema] {
	return rapid.Custom(func(t *rapid.T) scgs.Schema {
		name := func(f scgs.Field) string { return f.Name }
		drawn := rapid.SliceOfNDistinct(fields(), 0, 8, name).Draw(t, "schema")
		if len(drawn) == 0 {
			return nil
		}
		return drawn
	})
}

// value draws one of the field, Invalid of no type.
func value(t *rapid.T, f scgs.Field) scgs.Value {
	if f.Type.IsList() {
		return list(t, f.Element())
	}
	switch f.Type {
	case scgs.Bool:
		return scgs.BoolValue(rapid.Bool().Draw(t, "bool"))
	case scgs.Int:
		return scgs.IntValue(rapid.Int64().Draw(t, "int"))
	case scgs.Duration:
		return scgs.DurationValue(time.Duration(rapid.Int64().Draw(t, "duration")))
	case scgs.Float:
		return scgs.FloatValue(finiteFloats().Draw(t, "float"))
	case scgs.String:
		return scgs.StringValue(texts(scgs.MaxTextBytes).Draw(t, "text"))
	case scgs.Enum:
		return scgs.EnumValue(rapid.SampledFrom(f.Words).Draw(t, "word"))
	case scgs.Invalid:
	}
	return scgs.Value{}
}

// list draws a list; the texts of one fit together.
func list(t *rapid.T, elem scgs.Field) scgs.Value {
	one := rapid.Custom(func(t *rapid.T) scgs.Value { return value(t, elem) })
	if elem.Type == scgs.String {
		one = rapid.Map(texts(scgs.MaxTextBytes/4), scgs.StringValue)
	}
	most := 4
	if elem.Type != scgs.String && rapid.IntRange(0, 20).Draw(t, "long") == 0 {
		most = scgs.MaxElements
	}
	return scgs.ListValue(elem.Type, rapid.SliceOfN(one, 0, most).Draw(t, "elements")...)
}

func row(t *rapid.T, schema scgs.Schema) []scgs.Value {
	values := make([]scgs.Value, len(schema))
	for i, f := range schema {
		if rapid.IntRange(0, 9).Draw(t, "unset") > 0 {
			values[i] = value(t, f)
		}
	}
	return values
}

func stamps(domain clocksync.Domain) *rapid.Generator[clocksync.Stamp] {
	finite := rapid.Int64Range(math.MinInt64+1, math.MaxInt64-1)
	return rapid.Custom(func(t *rapid.T) clocksync.Stamp {
		a, b := finite.Draw(t, "end"), finite.Draw(t, "end")
		s := clocksync.Stamp{
			Domain: domain,
			Mono:   clocksync.Instant(finite.Draw(t, "mono")),
			Within: clocksync.Interval{Earliest: clocksync.Instant(min(a, b)), Latest: clocksync.Instant(max(a, b))},
		}
		if rapid.IntRange(0, 3).Draw(t, "early") == 0 {
			s.Within.Earliest = clocksync.MinInstant
		}
		if rapid.IntRange(0, 3).Draw(t, "late") == 0 {
			s.Within.Latest = clocksync.MaxInstant
		}
		return s
	})
}

// reports draws reports whose Seq goes up, some of them ends.
func reports(t *rapid.T, schema scgs.Schema, domain clocksync.Domain) []wire.Report {
	var drawn []wire.Report
	seq := rapid.Uint64Range(0, math.MaxUint64/2).Draw(t, "first")
	for range rapid.IntRange(0, 12).Draw(t, "reports") {
		r := wire.Report{At: stamps(domain).Draw(t, "at")}
		r.End = rapid.IntRange(0, 3).Draw(t, "end") == 0
		seq += rapid.Uint64Range(1, 1<<40).Draw(t, "step")
		r.Seq = seq
		if !r.End {
			r.Row = row(t, schema)
		}
		drawn = append(drawn, r)
	}
	return drawn
}

func batches(schema scgs.Schema, domain clocksync.Domain) *rapid.Generator[wire.Batch] {
	return rapid.Custom(func(t *rapid.T) wire.Batch {
		b := wire.Batch{
			Member:      tokens().Draw(t, "member"),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Schema:      schema.Hash(),
			Again:       rapid.Bool().Draw(t, "again"),
			Leaving:     rapid.Bool().Draw(t, "leaving"),
			Reports:     reports(t, schema, domain),
			Regions:     some(t, rapid.Custom(region)),
		}
		if b.Evidence.Seq = rapid.Uint64Range(0, 3).Draw(t, "evidence"); b.Evidence.Seq > 0 {
			b.Evidence.At = stamps(domain).Draw(t, "at")
		}
		b.Trace = traced(t)
		if b.Tagged = rapid.Bool().Draw(t, "tagged"); b.Tagged {
			b.Quality = quality(t, "")
		}
		return b
	})
}

func quality(t *rapid.T, timeline clocksync.Timeline) clocksync.Quality {
	return clocksync.Quality{
		Source:     texts(wire.MaxHostBytes).Draw(t, "source"),
		Assumed:    rapid.Bool().Draw(t, "assumed"),
		Unverified: rapid.Bool().Draw(t, "unverified"),
		Timeline:   timeline,
		Status:     clocksync.Status(rapid.IntRange(0, int(clocksync.Untrusted)).Draw(t, "status")),
		Expires:    clocksync.Instant(rapid.Int64().Draw(t, "expires")),
	}
}

func region(t *rapid.T) wire.Region {
	return wire.Region{
		Name:  tokens().Draw(t, "region"),
		Entry: rapid.Uint64Min(1).Draw(t, "entry"),
		Since: rapid.Uint64().Draw(t, "since"),
	}
}

// some draws a list; an empty one is nil, as decoders return it.
func some[T any](t *rapid.T, g *rapid.Generator[T]) []T {
	drawn := rapid.SliceOfN(g, 0, 5).Draw(t, "list")
	if len(drawn) == 0 {
		return nil
	}
	return drawn
}

func decision(t *rapid.T) control.Decision {
	return control.Decision{
		Synchronizer: tokens().Draw(t, "synchronizer"),
		Term:         rapid.Uint64().Draw(t, "term"),
		Epoch:        rapid.Uint64().Draw(t, "epoch"),
		Number:       rapid.Uint64().Draw(t, "number"),
	}
}

func signal(t *rapid.T) control.Signal {
	return control.Signal{
		Decision:  decision(t),
		Name:      tokens().Draw(t, "name"),
		Predicate: tokens().Draw(t, "predicate"),
		Kind:      rapid.SampledFrom([]control.Kind{control.Activate, control.Cancel}).Draw(t, "kind"),
		Target:    tokens().Draw(t, "target"),
		Region:    tokens().Draw(t, "region"),
		Entry:     rapid.Uint64().Draw(t, "entry"),
		TTL:       time.Duration(rapid.Int64Min(0).Draw(t, "ttl")),
		Cause:     caused(t, 0),
		Trace:     traced(t),
		Over:      rapid.Bool().Draw(t, "over"),
		Data: some(t, rapid.Custom(func(t *rapid.T) control.Datum {
			typ := scgs.Type(rapid.IntRange(0, int(scgs.Enum)).Draw(t, "type"))
			field := scgs.Field{Type: typ, Words: []string{"idle", "busy"}}
			return control.Datum{Name: tokens().Draw(t, "name"), Value: value(t, field)}
		})),
	}
}

// caused draws a cause whose source is not below least; 0 is none.
func caused(t *rapid.T, least uint64) (c control.Cause) {
	if c.Source = rapid.Uint64Min(least).Draw(t, "source"); c.Source > 0 {
		c.Witness, c.Firing = rapid.Uint64().Draw(t, "witness"), rapid.Uint32().Draw(t, "firing")
	}
	return c
}

func fated(t *rapid.T) control.Fated {
	return control.Fated{
		Cause: caused(t, 1), Name: tokens().Draw(t, "name"), Entry: rapid.Uint64().Draw(t, "entry"),
		Fate: rapid.SampledFrom(control.Fates).Draw(t, "fate"),
	}
}

// traced draws a trace context, or none.
func traced(t *rapid.T) (c control.Trace) {
	if rapid.Bool().Draw(t, "traced") {
		copy(c[:], rapid.SliceOfN(rapid.ByteRange(1, 255), len(c), len(c)).Draw(t, "trace"))
	}
	return c
}

func answer(t *rapid.T) wire.Answer {
	a := wire.Answer{
		Decision: decision(t),
		Name:     tokens().Draw(t, "name"),
		Target:   tokens().Draw(t, "target"),
		Fate:     rapid.SampledFrom(control.Fates).Draw(t, "fate"),
		Detail:   texts(wire.MaxReasonByte).Draw(t, "detail"),
	}
	if rapid.Bool().Draw(t, "known") {
		a.Kind = rapid.SampledFrom([]control.Kind{control.Activate, control.Cancel}).Draw(t, "kind")
		a.Predicate, a.Region, a.Entry = tokens().Draw(t, "predicate"), tokens().Draw(t, "region"), rapid.Uint64().Draw(t, "entry")
	}
	return a
}

func receipt(t *rapid.T) wire.Receipt {
	return wire.Receipt{Term: rapid.Uint64().Draw(t, "term"), Number: rapid.Uint64().Draw(t, "number"), Name: tokens().Draw(t, "name")}
}

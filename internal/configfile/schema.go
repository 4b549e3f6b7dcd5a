package configfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// JSONSchema describes the form of a configuration as a JSON Schema (2020-12), for
// editors. It is wider than Parse: what expressions, names and numbers have to do
// with each other is not in it. The keys come from the types that are decoded.
func JSONSchema() []byte {
	root := object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Pegasus configuration",
		"description": "Synchronizers: whose states are watched, and what follows from their global states.",
		"$defs": object{
			"duration":   durationSchema,
			"expression": object{"type": "string", "minLength": 1, "maxLength": predicates.MaxSource},
			"token":      object{"type": "string", "pattern": tokenPattern},
			"type":       typeSchema,
			"list":       closed(object{"list": reference("type")}, "list"),
			"field": object{"anyOf": []any{reference("type"), reference("list"), closed(object{
				"type":    object{"anyOf": []any{reference("type"), reference("list")}},
				"default": object{"type": []string{"boolean", "number", "string", "array"}},
				"redact":  redactSchema,
			}, "type")}},
			"variable": object{"anyOf": []any{reference("type"), closed(object{
				"type": reference("type"), "initial": object{"type": []string{"boolean", "number", "string"}}, "redact": redactSchema,
			}, "type")}},
			"param": closed(object{
				"type": reference("type"), "default": scalar, "min": scalar, "max": scalar,
			}, "type", "default"),
			"count":        object{"anyOf": []any{positive, closed(object{"min": positive, "max": positive})}},
			"strategy":     structSchema(reflect.TypeFor[local.Config]()),
			"work":         structSchema(reflect.TypeFor[config.Work]()),
			"log":          structSchema(reflect.TypeFor[config.WorkLog]()),
			"call":         structSchema(reflect.TypeFor[config.WorkCall]()),
			"balance":      structSchema(reflect.TypeFor[config.Balance]()),
			"signal":       structSchema(reflect.TypeFor[config.Signal]()),
			"predicate":    structSchema(reflect.TypeFor[config.Predicate]()),
			"synchronizer": structSchema(reflect.TypeFor[config.Synchronizer]()),
		},
	}
	maps.Copy(root, structSchema(reflect.TypeFor[config.Config]()))
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("configfile: the schema does not encode: %v", err))
	}
	return append(out, '\n')
}

// object is a JSON object; encoding sorts its keys.
type object map[string]any

func reference(name string) object { return object{"$ref": "#/$defs/" + name} }

var (
	tokenPattern   = fmt.Sprintf("^[A-Za-z0-9_-]{1,%d}$", wire.MaxTokenBytes)
	fieldPattern   = fmt.Sprintf(`^(work\.)?[A-Za-z_][A-Za-z0-9_]{0,%d}$`, scgs.MaxNameBytes-1)
	namePattern    = fmt.Sprintf("^[A-Za-z_][A-Za-z0-9_]{0,%d}$", scgs.MaxNameBytes-1)
	positive       = object{"anyOf": []any{object{"type": "integer", "minimum": 1, "maximum": config.MaxMembers}, named}}
	named          = object{"type": "string", "pattern": `^params\.[A-Za-z_][A-Za-z0-9_]*$`}
	durationSchema = object{"anyOf": []any{
		named,
		object{"const": 0},
		object{"type": "string", "pattern": `^[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$|^0$`},
	}}
	typeSchema = object{"anyOf": []any{
		object{"enum": []string{
			scgs.Bool.String(), scgs.Int.String(), scgs.Float.String(), scgs.String.String(), scgs.Duration.String(),
		}},
		closed(object{"enum": object{
			"type": "array", "minItems": 1, "maxItems": scgs.MaxFields, "uniqueItems": true, "items": object{"type": "string", "minLength": 1},
		}}, "enum"),
	}}
)

// scalar is a single value.
var (
	scalar       = object{"type": []string{"boolean", "number", "string"}}
	redactSchema = object{"type": "boolean", "description": "Show (redacted) in place of the values, and keep them out of journals.", "default": false}
)

// closed is an object that has no other properties.
func closed(properties object, required ...string) object {
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// mapOf is a map whose keys are data.
func mapOf(pattern string, of object) object {
	return object{"type": "object", "propertyNames": object{"pattern": pattern}, "additionalProperties": of}
}

// forms are the schemas of the types that decode themselves, and of the maps.
var forms = map[reflect.Type]object{
	reflect.TypeFor[time.Duration](): reference("duration"),
	reflect.TypeFor[config.Members](): {"oneOf": []any{
		closed(object{"group": reference("token"), "count": reference("count"), "min": positive, "max": positive}, "group"),
		closed(object{"threads": reference("count"), "min": positive, "max": positive}, "threads"),
	}},
	reflect.TypeFor[config.Silence](): closed(object{
		"after": reference("duration"), "then": object{"enum": []config.Policy{config.Drop, config.Block, config.Fail}},
	}),
	reflect.TypeFor[config.Fields]():    mapOf(fieldPattern, reference("field")),
	reflect.TypeFor[config.Params]():    mapOf(namePattern, reference("param")),
	reflect.TypeFor[config.Variables](): mapOf(namePattern, reference("variable")),
	reflect.TypeFor[config.Signals](): {"anyOf": []any{
		reference("signal"), object{"type": "array", "items": reference("signal")},
	}},
	reflect.TypeFor[*config.Balance]():               reference("balance"),
	reflect.TypeFor[*config.Work]():                  reference("work"),
	reflect.TypeFor[config.WorkLog]():                reference("log"),
	reflect.TypeFor[yamlconf.Map[config.WorkCall]](): {"type": "object", "additionalProperties": reference("call")},
	reflect.TypeFor[config.Withdraw](): closed(object{
		"when": object{"$ref": "#/$defs/expression", "description": "A member takes no work once this condition on its own fields has held for the time under for."},
		"for":  object{"$ref": "#/$defs/duration", "description": "How long a condition has to hold without interruption.", "default": "0s"},
		"back": object{"$ref": "#/$defs/expression", "description": "A withdrawn member takes work again once this has held for that time. Without it a member stays withdrawn."},
	}, "when"),
	reflect.TypeFor[config.WorkObjects](): closed(object{"save": closed(object{
		"tasks": object{"type": "integer", "minimum": 1, "maximum": 1024, "default": workAlone.Objects.Save.Tasks}, "every": reference("duration"),
	}), "stay": reference("duration")}),
	reflect.TypeFor[config.WorkData](): closed(object{
		"cache":   object{"type": "integer", "minimum": 1, "default": workAlone.Data.Cache, "description": "How many MiB of data of other members a member keeps."},
		"classes": object{"type": "integer", "minimum": 0, "default": 0, "description": "How many classes of tasks, those that read the same data, a member works on at a time; 0: any number."},
	}),
	reflect.TypeFor[local.Config](): reference("strategy"),
	reflect.TypeFor[config.Target](): {"anyOf": []any{
		reference("expression"),
		object{"type": "array", "minItems": 1, "uniqueItems": true, "items": reference("token")},
		closed(object{"group": reference("token"), "max": positive}, "group"),
	}},
	reflect.TypeFor[yamlconf.Map[string]]():              mapOf(namePattern, reference("expression")),
	reflect.TypeFor[yamlconf.Map[time.Duration]]():       mapOf(tokenPattern, reference("duration")),
	reflect.TypeFor[yamlconf.Map[config.Predicate]]():    mapOf(tokenPattern, reference("predicate")),
	reflect.TypeFor[yamlconf.Map[config.Synchronizer]](): mapOf(tokenPattern, reference("synchronizer")),
}

// The defaults of a section balance, and of a section work.
var (
	defaults  = config.DefaultBalance()
	workAlone = config.DefaultWork()
)

// words are the keys whose texts are more than texts, and what every key is for.
var words = map[string]object{
	"Synchronizer.parent":     {"$ref": "#/$defs/token", "description": "The synchronizer one level up, whose members have these threads."},
	"Synchronizer.members":    {"description": "The members of a group, or the threads of each process."},
	"Synchronizer.silence":    {"description": "When a member that says nothing counts as silent, and what follows."},
	"Synchronizer.state":      {"description": "The fields of a member's state."},
	"Synchronizer.process":    {"description": "What a process reports beside its threads."},
	"Synchronizer.memory":     {"description": "The synchronizer's own variables."},
	"Synchronizer.predicates": {"description": "Conditions on global states, and what follows from them."},
	"Synchronizer.let":        {"description": "Names for expressions, in all predicates."},
	"Synchronizer.balance":    {"description": "Moves loads between the members."},
	"Synchronizer.work":       {"description": "Shares tasks among the members."},
	"Synchronizer.summary":    {"description": "The process's state at the parent, an expression for each field."},
	"Predicate.when":          {"$ref": "#/$defs/expression", "description": "The condition, judged on every global state."},
	"Predicate.modality":      {"enum": []string{"inst", "definitely", "possibly", plan.AtLeast}, "description": "How the states held together, and of how many members.", "default": "inst"},
	"Predicate.for":           {"description": "How long it must certainly have held.", "default": "0s"},
	"Predicate.every":         {"description": "Fire on every global state on which it holds.", "default": false},
	"Predicate.until":         {"$ref": "#/$defs/expression", "description": "Having fired it may fire again once this is true; by default once when is false."},
	"Predicate.cooldown":      {"description": "The least time between two firings.", "default": "0s"},
	"Predicate.priority":      {"description": "Predicates are judged from the highest down.", "default": 0},
	"Predicate.set":           {"description": "New values of memory, an expression each."},
	"Predicate.signal":        {"description": "The signals sent when the predicate fires."},
	"Predicate.let":           {"description": "Names for expressions, in this predicate."},
	"Predicate.by":            {"type": "string", "pattern": `^\.`, "description": "A field that is an enum or a bool: the predicate is judged for each value, on the members that have it."},
	"Predicate.each":          {"enum": []string{config.EachMember}, "description": "The condition reads one member, and is judged for each member separately."},
	"Predicate.once":          {"enum": []string{config.OnceRun, config.OnceEpoch, config.OnceMember}, "description": "The scope within which the predicate fires at most once."},
	"Predicate.refire":        {"enum": []string{config.RefireNewcomers, config.RefireEpoch}, "description": "For whom it fires in a new epoch in which it stays true: for members that entered after its last firing, or for all.", "default": config.RefireNewcomers},
	"Predicate.after":         {"type": "object", "description": "Predicates that must have fired before, and how long before."},
	"Config.params":           {"description": "Values that have names, which a run may be given others for."},
	"Balance.strategy":        {"enum": balance.Names, "description": "What decides.", "default": balance.Pegasus},
	"Balance.loads":           {"$ref": "#/$defs/expression", "description": "A list of ints or strings: the names of the loads that a member has waiting."},
	"Balance.weights":         {"$ref": "#/$defs/expression", "description": "The work in each of them: a list of numbers, or one number for all.", "default": "1"},
	"Balance.rest":            {"$ref": "#/$defs/expression", "description": "The work of a member that stays.", "default": "0"},
	"Balance.power":           {"$ref": "#/$defs/expression", "description": "Work that a member does in a second.", "default": "1"},
	"Balance.share":           {"$ref": "#/$defs/expression", "description": "The part of it that is left to the application, from 0 to 1.", "default": "1"},
	"Balance.when":            {"$ref": "#/$defs/expression", "description": "A condition on the global state without which nothing moves."},
	"Balance.every":           {"description": "The least time between two looks.", "default": "250ms"},
	"Balance.region":          {"$ref": "#/$defs/token", "description": "The region to which orders go."},
	"Balance.name":            {"$ref": "#/$defs/token", "description": "The name of the signal, which selects the handler.", "default": config.BalanceName},
	"Balance.expires":         {"description": "How long an order is tried, at most 1h.", "default": "5s"},
	"Balance.transit":         {"description": "How long a load that was ordered away counts as under way, at most 1h.", "default": "2s"},
	"Balance.transfer":        {"description": "The time that a move takes.", "default": "0s"},
	"Balance.alpha":           {"exclusiveMinimum": 1, "description": "How many times the least availability the greatest is in an imbalance.", "default": defaults.Alpha},
	"Balance.beta":            {"minimum": 0, "maximum": 1, "description": "What attraction counts in the choice of the load.", "default": defaults.Beta},
	"Balance.gamma":           {"minimum": 0, "maximum": 1, "description": "What attraction counts in the choice of the target.", "default": defaults.Gamma},
	"Balance.waiting":         {"enum": []string{balance.ByWeight, balance.ByCount}, "description": "How loads that wait lower availability.", "default": defaults.Waiting},
	"Balance.margin":          {"minimum": 0, "exclusiveMaximum": 1, "description": "By which part the target's queue has to stay shorter.", "default": defaults.Margin},
	"Balance.cooldown":        {"description": "How long a load rests after a move.", "default": "1s"},
	"Balance.return":          {"minimum": 0, "maximum": 1, "description": "The part of its availability below which a member gives loads back.", "default": defaults.Return},
	"Balance.outlier":         {"exclusiveMinimum": 1, "description": "How many times a member may differ from the median and be believed.", "default": defaults.Outlier},
	"Balance.moves":           {"minimum": 1, "maximum": 100_000, "description": "The most moves of a plan.", "default": defaults.Moves},
	"Work.store":              {"enum": []string{config.Memory, config.JetStream}, "description": "Where the accounts of the tasks are kept.", "default": config.Memory},
	"Work.log":                {"description": "The stream of JetStream that keeps the accounts, with store: jetstream."},
	"WorkLog.stream":          {"type": "string", "description": "Name of the stream; without it, a name made of the tenant and the group."},
	"WorkLog.replicas":        {"minimum": 1, "maximum": 5, "description": "How many servers keep the stream.", "default": 1},
	"WorkLog.most":            {"minimum": 0, "maximum": 1 << 20, "description": "Largest size of the stream in MiB; Put waits before it is reached; 0: no limit of its own.", "default": 0},
	"Work.slots":              {"minimum": 0, "maximum": 1024, "description": "How many tasks a member runs at a time; 0: one for each processor.", "default": workAlone.Slots},
	"Work.retry":              {"minimum": 1, "maximum": 1000, "description": "How often a task that returns an error is run.", "default": workAlone.Retry},
	"Work.losses":             {"minimum": 1, "maximum": 1000, "description": "How many members may die while they run a task.", "default": workAlone.Losses},
	"Work.open":               {"minimum": 0, "description": "How many open tasks a member may have before Put waits; 0: no limit.", "default": workAlone.Open},
	"Work.order":              {"$ref": "#/$defs/expression", "description": "An expression on a task: those with smaller values run first."},
	"Work.lost":               {"enum": []string{config.LostFail, config.LostGoOn}, "description": "What follows when a member is gone with tasks that it has put.", "default": config.LostFail},
	"Work.data":               {"description": "How much of the data that tasks read a member keeps."},
	"Work.objects":            {"description": "When an object that has messages is saved: after how many, and after what time at the latest. An idle one is saved at once."},
	"Work.stuck":              {"description": "How long a handler may take to return when its context has ended before it counts as stuck, 100ms to 1h.", "default": "10s"},
	"Work.topology":           {"enum": local.Topologies, "description": "Which members ask each other for tasks.", "default": workAlone.Topology},
	"Work.strategy":           {"description": "What a member asks for and what it gives."},
	"Work.withdraw":           {"description": "When a member takes no work, and when it takes work again."},
	"Work.calls":              {"description": "How calls of functions travel, by the names of the functions."},
	"WorkCall.style":          {"type": "string", "pattern": `^(sync|async|async-demand\(.*\))$`, "description": "When a member sends its next call: sync, async, or async-demand(L:U) with water marks."},
	"WorkCall.ratio":          {"type": "string", "description": "The share of each of the replicas, such as 1:2:3."},
	"WorkCall.replicas":       {"type": "array", "minItems": 1, "uniqueItems": true, "items": object{"type": "string"}, "description": "The members that serve it; without it all that have opened the space with that server."},
	"WorkCall.priority":       {"$ref": "#/$defs/expression", "description": "An expression on a waiting call and its server: those with smaller values run first."},
	"WorkCall.traffic":        {"enum": []string{config.Intermittent, config.Incremental, config.Bulk}, "description": "Whether calls are sent at once, or together with others."},
	"WorkCall.batch":          {"minimum": 0, "maximum": config.MaxBatch, "description": "How many calls go to a server together; 0: as traffic has it."},
	"WorkCall.retry":          {"minimum": 0, "maximum": 1000, "description": "How many servers may be lost with a call; 0: as often as a task is run."},
	"WorkCall.service":        {"description": "Whether the function is offered as a service of NATS, for programs that are no members.", "default": false},
	"Work.record":             {"description": "Whether members tell the figures that pegasus work advise reads from a journal.", "default": false},
	"Work.end":                {"$ref": "#/$defs/expression", "description": "The condition on the global state by which a phase is over.", "default": config.DefaultEnd},
	"Config.kind":             {"enum": local.Kinds, "description": "Who moves tasks.", "default": local.Receiver},
	"Config.below":            {"$ref": "#/$defs/expression", "description": "The threshold below which a member asks.", "default": workAlone.Strategy.Below},
	"Config.from":             {"$ref": "#/$defs/expression", "description": "The threshold above which a member gives.", "default": workAlone.Strategy.From},
	"Config.again":            {"description": "How long a member that refused is left alone, 1ms to 1h.", "default": "10ms"},
	"Config.longest":          {"description": "Up to where that wait doubles, with each refusal in a row.", "default": "10s"},
	"Config.share":            {"exclusiveMinimum": 0, "maximum": 1, "description": "The part of its spare tasks that a member gives; of the kind field, of a difference of loads, at most 0.5.", "default": workAlone.Strategy.Share},
	"Config.cut":              {"type": "string", "description": "How chunks are cut, of the kind chunk.", "default": "gss"},
	"Config.factor":           {"exclusiveMinimum": 0, "exclusiveMaximum": 1, "description": "How much the load at which phase 1 looks next falls with each look, of the kind diffusion.", "default": 0.5},
	"Config.latency":          {"description": "How long a member waits for tasks that it asked for, of the kind diffusion, or what a move costs, of the kind market; 1us to 1h.", "default": "10ms"},
	"Config.start":            {"minimum": 1, "maximum": 1_000_000, "description": "The load at which phase 1 looks first, of the kind diffusion.", "default": 64},
	"Config.links":            {"type": "string", "description": "Paths of tasks between members, of the kind links, such as M1(o=(L>=10))[1/2]#M2."},
	"Config.alpha":            {"exclusiveMinimum": 1, "maximum": 1000, "description": "How many times the least availability the greatest is at an imbalance, of the kind pegasus.", "default": 1.5},
	"Config.beta":             {"exclusiveMinimum": 0, "maximum": 1, "description": "How much attraction counts in the choice of the object that moves, of the kind pegasus.", "default": 0.5},
	"Config.gamma":            {"exclusiveMinimum": 0, "maximum": 1, "description": "How much attraction counts in the choice of the target, of the kind pegasus.", "default": 0.5},
	"Config.speeds":           {"type": "string", "description": "Throughputs of members, of the kind tree, such as harvey: 125, bugs: 59. A member that is not there has 1."},
	"Signal.name":             {"$ref": "#/$defs/token", "description": "Selects the handler; the predicate's name by default."},
	"Signal.kind":             {"enum": []string{"activate", "cancel"}, "description": "Interrupt the region and resume it, or leave it."},
	"Signal.region":           {"$ref": "#/$defs/token", "description": "The region it goes to."},
	"Signal.to":               {"description": "all, a group of members, holders, a list of names, or another group.", "default": "all"},
	"Signal.data":             {"description": "Values that go with it, an expression each."},
	"Signal.expires":          {"description": "How long it is tried, at most 1h.", "default": "30s"},
}

// structSchema describes a struct by its tags; a key that words does not know is
// described by its Go type.
func structSchema(t reflect.Type) object {
	properties, required := object{}, []string(nil)
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		property := object{}
		maps.Copy(property, formOf(f.Type))
		maps.Copy(property, words[t.Name()+"."+name])
		properties[name] = property
		if option == "required" {
			required = append(required, name)
		}
	}
	return closed(properties, required...)
}

func formOf(t reflect.Type) object {
	if form, ok := forms[t]; ok {
		return form
	}
	switch t.Kind() { //nolint:exhaustive // Of what is not listed anything may be written.
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"anyOf": []any{object{"type": "boolean"}, named}}
	case reflect.Int:
		return object{"anyOf": []any{object{"type": "integer"}, named}}
	case reflect.Float64:
		return object{"anyOf": []any{object{"type": "number"}, named}}
	}
	return object{}
}

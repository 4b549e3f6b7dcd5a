package config

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/scgs"
)

// Work is the section of a synchronizer whose members share tasks: a space of the package work.
type Work struct {
	// Store is where the accounts of the tasks lie: Memory, the processes that put them, or JetStream.
	Store string `yaml:"store"`
	// Log is the stream that the accounts lie in, with the store JetStream.
	Log WorkLog `yaml:"log"`
	// Slots is how many tasks a member runs at a time; 0: one for each processor.
	Slots int `yaml:"slots"`
	// Retry is how often a task that returns an error is run, from 1.
	Retry int `yaml:"retry"`
	// Losses is how many members may die while they run a task, from 1.
	Losses int `yaml:"losses"`
	// Open is the number of open tasks of a member beyond which Put waits; 0: no limit.
	Open int `yaml:"open"`
	// Order is an expression on a task; those with smaller values run first. Empty: as they were put.
	Order string `yaml:"order"`
	// Lost says what follows when a member is gone with tasks that it has put: LostFail or LostGoOn.
	Lost string `yaml:"lost"`
	// Objects says when objects are saved, and how long they stay.
	Objects WorkObjects `yaml:"objects"`
	// Data is about the data that tasks read.
	Data WorkData `yaml:"data"`
	// Stuck is after what time a handler that was asked to return and does not counts as stuck.
	Stuck time.Duration `yaml:"stuck"`
	// Topology is who asks whom, one of local.Topologies.
	Topology string `yaml:"topology"`
	// Strategy is what a member asks for and what it gives.
	Strategy local.Config `yaml:"strategy"`
	// Withdraw says when a member takes no work; without a condition it always does.
	Withdraw Withdraw `yaml:"withdraw"`
	// Calls says how calls of functions travel, by the names of the functions.
	Calls yamlconf.Map[WorkCall] `yaml:"calls"`
	// Record has members tell the figures that pegasus work advise reads: WorkRecorded.
	Record bool `json:",omitempty" yaml:"record"`
	// End is the condition on the global state by which a phase is over; empty: DefaultEnd. That all
	// members are in that phase, and it was not over, is a part of it that no text replaces.
	End string `yaml:"end"`
}

// Withdraw says when a member takes no work, and when it takes work again. Each member judges it on its own state.
type Withdraw struct {
	// When is a condition on one member: it is withdrawn once that has held for For. Empty: it never is.
	When string `yaml:"when"`
	// For is the time for which a condition has to hold without interruption; 0: none.
	For time.Duration `yaml:"for"`
	// Back is a condition on one member: it takes work again once that has held for For. Empty: it never does.
	Back string `yaml:"back"`
}

// WorkLog is a stream of JetStream.
type WorkLog struct {
	// Stream is its name; empty: a name made of the tenant and the group.
	Stream string `yaml:"stream"`
	// Replicas is how many servers have it, 1 to 5.
	Replicas int `yaml:"replicas"`
	// Most is how many MiB it may have; 0: no limit of its own.
	Most int `yaml:"most"`
}

// WorkObjects is about the objects of a space.
type WorkObjects struct {
	// Save says when an object that has messages is saved; an idle one is at once.
	Save WorkSave `yaml:"save"`
	// Stay is for how long an object that a strategy has moved does not go back to the member where it was
	// before; 0: it may at once.
	Stay time.Duration `yaml:"stay"`
}

// WorkData is about the data that tasks read.
type WorkData struct {
	// Cache is how many MiB of data of other members a member keeps, from 1.
	Cache int `yaml:"cache"`
	// Classes is how many classes of tasks, those that read the same data, a member works on at a time; 0: any number.
	Classes int `yaml:"classes"`
}

// WorkSave is how much a crash may have done again.
type WorkSave struct {
	// Tasks is after how many messages, 1 to 1024.
	Tasks int `yaml:"tasks"`
	// Every is after what time at the latest, once the message is served that runs then.
	Every time.Duration `yaml:"every"`
}

// The values of Work.Store and Work.Lost.
const (
	Memory    = "memory"
	JetStream = "jetstream"
	LostFail  = "fail"
	LostGoOn  = "go on"
)

// DefaultWork is a section with its defaults.
func DefaultWork() Work {
	return Work{Store: Memory, Log: WorkLog{Replicas: 1}, Retry: 3, Losses: 3, Lost: LostFail, Objects: WorkObjects{Save: WorkSave{Tasks: 10, Every: time.Second}}, Data: WorkData{Cache: 512}, Stuck: 10 * time.Second, Topology: string(local.Full), Strategy: local.Default(), End: DefaultEnd}
}

// WorkName is the name of the section work, of the region in which members wait for the end of
// a phase, and, with a dot behind it, the begin of the names of the fields that the section fills.
const WorkName = "work"

// WorkPrefix begins the names of the fields that the section fills.
const WorkPrefix = WorkName + "."

// The fields that the section fills, without work. before their names. A member has their defaults
// until its program opens the space.
var (
	// WorkFields are always there.
	WorkFields = []string{"idle", "settled", "awaits", "phase"}
	// WorkEstimates are there if an expression of the section reads them.
	WorkEstimates = []string{"queued", "running", "open", "stuck", "objects", "power", "share"}
	// WorkRecorded are there with the key record, the fields of WorkEstimates among them.
	WorkRecorded = []string{"queued", "running", "open", "slots", "moved", "calls"}
	// WorkLoads are those about objects. They are there with a strategy that is central.
	WorkLoads = []string{"slots", "tasks", "weights", "names", "senders", "receivers", "volumes", "refused", "reasons"}
)

// ObjectsRegion is the region in which members wait for orders to move objects, with a strategy that is central.
const ObjectsRegion = "work-objects"

// WorkFilled are the names of all of these fields.
func WorkFilled() []string { return slices.Concat(WorkFields, WorkEstimates) }

// WorkField is the field of a name of these lists.
func WorkField(name string) scgs.Field {
	f := scgs.Field{Name: WorkPrefix + name, Type: scgs.Int, Default: scgs.IntValue(0)}
	switch name {
	case "idle", "settled", "awaits":
		f.Type, f.Default = scgs.Bool, scgs.BoolValue(false)
	case "power":
		f.Type, f.Default = scgs.Float, scgs.FloatValue(0)
	case "share": // An unobserved share is whole.
		f.Type, f.Default = scgs.Float, scgs.FloatValue(1)
	case "calls":
		f.Type, f.Default = scgs.String, scgs.StringValue("")
	case "tasks", "senders", "receivers", "refused":
		f.Type, f.Default = scgs.ListOf(scgs.Int), scgs.ListValue(scgs.Int)
	case "weights", "volumes":
		f.Type, f.Default = scgs.ListOf(scgs.Float), scgs.ListValue(scgs.Float)
	case "names", "reasons":
		f.Type, f.Default = scgs.ListOf(scgs.String), scgs.ListValue(scgs.String)
	}
	return f
}

// The predicate that ends a phase, and the variable that counts the phases which are over.
const (
	EndName   = "end"
	EndedName = "ended"
)

// DefaultEnd is the condition of a section that has none.
const DefaultEnd = "all(members, .work.idle and .work.settled) and any(members, .work.awaits)"

// UnmarshalNode fills in the defaults. The defaults of a strategy go by its kind.
func (w *Work) UnmarshalNode(n yamlconf.Node) error {
	type plain Work // Without this method.
	raw := plain(DefaultWork())
	if _, given := n.Get("strategy"); given {
		raw.Strategy = local.Config{}
	}
	err := n.Decode(&raw)
	raw.Strategy = raw.Strategy.WithDefaults()
	*w = Work(raw)
	return err
}

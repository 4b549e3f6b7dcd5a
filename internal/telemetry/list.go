package telemetry

// The metrics of a synchronizer. Each has the attributes synchronizer and tenant.
var (
	Frames = &Metric{
		Name: "pegasus.frames", Unit: "{frame}", Attributes: []string{"kind"},
		About: "Frames of members that could be read, by kind.",
	}
	Reports = &Metric{
		Name: "pegasus.reports", Unit: "{report}",
		About: "Reports of members that were taken in, without copies.",
	}
	Gaps = &Metric{
		Name: "pegasus.gaps", Unit: "{gap}",
		About: "Gaps in the reports of a member that no ring could fill; what was in them is unknown.",
	}
	Collapsed = &Metric{
		Name: "pegasus.states.collapsed", Unit: "{state}",
		About: "Local states given up because too many of one member waited for those of others.",
	}
	GlobalStates = &Metric{
		Name: "pegasus.global_states", Unit: "{state}", Attributes: []string{"partial"},
		About: "Global states found; in partial ones the state of some member is unknown.",
	}
	Verdicts = &Metric{
		Name: "pegasus.verdicts", Unit: "{verdict}", Attributes: []string{"truth"},
		About: "Verdicts that differ from the one before, or fired.",
	}
	Decisions = &Metric{
		Name: "pegasus.decisions", Unit: "{decision}", Attributes: []string{"predicate"},
		About: "Firings of predicates.",
	}
	Signals = &Metric{
		Name: "pegasus.signals", Unit: "{signal}", Attributes: []string{"kind", "fate"},
		About: "Signals that have found their final fate.",
	}
	SignalsWaiting = &Metric{
		Name: "pegasus.signals.waiting", Kind: Gauge, Unit: "{signal}",
		About: "Signals without a final fate.",
	}
	BalancePlans = &Metric{
		Name: "pegasus.balance.plans", Unit: "{plan}", Attributes: []string{"strategy"},
		About: "Plans of the section balance, also those without moves.",
	}
	BalanceMoves = &Metric{
		Name: "pegasus.balance.moves", Unit: "{move}", Attributes: []string{"strategy"},
		About: "Moves of loads that the section balance has ordered.",
	}
	BalanceRefused = &Metric{
		Name: "pegasus.balance.refused", Unit: "{refusal}", Attributes: []string{"strategy"},
		About: "What plans considered or were told and refused, counted in each plan.",
	}
	Probes = &Metric{
		Name: "pegasus.probes", Unit: "{probe}",
		About: "Requests for evidence that were sent.",
	}
	Resends = &Metric{
		Name: "pegasus.resends", Unit: "{request}",
		About: "Requests for reports that were lost on the way.",
	}
	Rejected = &Metric{
		Name: "pegasus.rejected", Unit: "{input}", Attributes: []string{"reason"},
		About: "Inputs that were refused, by the class of the reason.",
	}
	InboxDepth = &Metric{
		Name: "pegasus.inbox.depth", Kind: Gauge, Unit: "{message}",
		About: "Messages that wait for the synchronizer.",
	}
	InboxDropped = &Metric{
		Name: "pegasus.inbox.dropped", Unit: "{message}",
		About: "Messages lost because the process was too slow.",
	}
	JournalInputs = &Metric{
		Name: "pegasus.journal.inputs", Unit: "{input}",
		About: "Inputs handed to the writer of the journal.",
	}
	JournalLost = &Metric{
		Name: "pegasus.journal.lost", Unit: "{input}",
		About: "Inputs that are not in the journal, since it had ended before the run.",
	}
	Connected = &Metric{
		Name: "pegasus.connected", Kind: Gauge, Unit: "{connection}",
		About: "1 while the NATS server can be reached, otherwise 0.",
	}
	MembersOnline = &Metric{
		Name: "pegasus.members.online", Kind: Gauge, Unit: "{member}",
		About: "Members that are there.",
	}
	MembersAwaited = &Metric{
		Name: "pegasus.members.awaited", Kind: Gauge, Unit: "{member}",
		About: "Members that an epoch needs: count before the first one, min afterwards.",
	}
	MembersClock = &Metric{
		Name: "pegasus.members.clock", Kind: Gauge, Unit: "{member}", Attributes: []string{"status"},
		About: "Members that are there, by the status of their clock; exact ones read the reference clock itself.",
	}
	MembersBound = &Metric{
		Name: "pegasus.members.clock.bound", Kind: Gauge, Unit: "s",
		About: "Widest bound (half the width) of the newest stamps of members that have one; not there without any.",
	}
	Predicates = &Metric{
		Name: "pegasus.predicates", Kind: Gauge, Unit: "{predicate}", Attributes: []string{"truth"},
		About: "Predicates by their newest verdict in this epoch; those without one are unknown.",
	}
	Epoch = &Metric{
		Name: "pegasus.epoch", Kind: Gauge, Unit: "{epoch}",
		About: "Number of the epoch in force; 0 while there are too few members and nothing is decided.",
	}
	StepDuration = &Metric{
		Name: "pegasus.step.duration", Kind: Histogram, Unit: "s",
		Bounds: []float64{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1},
		About:  "Time one step of the synchronizer took, with what it sent.",
	}
	VerdictLatency = &Metric{
		Name: "pegasus.verdict.latency", Kind: Histogram, Unit: "s",
		Bounds: []float64{3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3},
		About:  "Time from a report in the inbox to the verdict it changed or the decision it led to.",
	}
)

// Synchronizer lists the metrics of a synchronizer.
var Synchronizer = []*Metric{
	Frames, Reports, Gaps, Collapsed, GlobalStates, Verdicts, Decisions, Signals, SignalsWaiting,
	BalancePlans, BalanceMoves, BalanceRefused, Probes, Resends, Rejected,
	InboxDepth, InboxDropped, JournalInputs, JournalLost, Connected, MembersOnline, MembersAwaited, MembersClock, MembersBound, Predicates, Epoch,
	StepDuration, VerdictLatency,
}

// The metrics that a synchronizer has beside these where it runs a program. Each has
// the attributes synchronizer and tenant.
var (
	ProgramRuns = &Metric{
		Name: "pegasus.program.runs", Unit: "{run}", Attributes: []string{"event"},
		About: "Runs of blocks that were started, and that are done, failed, canceled or lost; those of earlier lives of the program count.",
	}
	ProgramRunning = &Metric{
		Name: "pegasus.program.running", Kind: Gauge, Unit: "{run}",
		About: "Runs that have not ended.",
	}
	ProgramWaiting = &Metric{
		Name: "pegasus.program.waiting", Kind: Gauge, Unit: "{block}",
		About: "Blocks that wait for a processor.",
	}
	Bodies = &Metric{
		Name: "pegasus.bodies", Unit: "{body}", Attributes: []string{"kind", "fate"},
		About: "Inputs given to processors, and results and failures taken from them: whole (taken), refused, and repeated ones, which were there before.",
	}
	BodyBytes = &Metric{
		Name: "pegasus.bodies.bytes", Unit: "{byte}", Attributes: []string{"kind"},
		About: "Bytes of the bodies that were taken.",
	}
)

// Program lists the metrics of a program.
var Program = []*Metric{ProgramRuns, ProgramRunning, ProgramWaiting, Bodies, BodyBytes}

// The metrics of an agent. Each has the attributes group and tenant.
var (
	AgentStates = &Metric{
		Name: "pegasus.agent.states", Unit: "{state}",
		About: "States that were begun or ended.",
	}
	AgentDropped = &Metric{
		Name: "pegasus.agent.states.dropped", Unit: "{state}",
		About: "States pushed out of the ring before anybody was told; they are unknown to the synchronizer.",
	}
	AgentRing = &Metric{
		Name: "pegasus.agent.ring", Kind: Sum, Unit: "{state}",
		About: "States kept in the ring in case they are asked for again.",
	}
	AgentBatches = &Metric{
		Name: "pegasus.agent.batches", Unit: "{batch}",
		About: "Batches made, with those that only say that a state still holds.",
	}
	AgentResent = &Metric{
		Name: "pegasus.agent.states.resent", Unit: "{state}",
		About: "States told again because a message was lost.",
	}
	AgentSendErrors = &Metric{
		Name: "pegasus.agent.send.errors", Unit: "{message}",
		About: "Messages that could not be sent because the server was away.",
	}
	AgentRejected = &Metric{
		Name: "pegasus.agent.rejected", Unit: "{message}", Attributes: []string{"reason"},
		About: "Messages that were refused: unreadable ones (frame), and those of another incarnation or term (strange).",
	}
	AgentRejoins = &Metric{
		Name: "pegasus.agent.rejoins", Unit: "{rejoin}",
		About: "Returns after the synchronizer had dropped the member.",
	}
	AgentSignals = &Metric{
		Name: "pegasus.agent.signals", Unit: "{signal}", Attributes: []string{"fate"},
		About: "Signals into regions of the process and its threads that have found their final fate.",
	}
	AgentRegions = &Metric{
		Name: "pegasus.agent.regions", Kind: Sum, Unit: "{region}",
		About: "Regions of the process and its threads that are open.",
	}
)

// Agent lists the metrics of an agent.
var Agent = []*Metric{
	AgentStates, AgentDropped, AgentRing, AgentBatches, AgentResent, AgentSendErrors, AgentRejected, AgentRejoins,
	AgentSignals, AgentRegions,
}

package telemetry

// List is the metrics of a kind of source, in the order of their declarations.
type List []*Metric

var (
	// Synchronizer lists the metrics of a synchronizer.
	Synchronizer List
	// Program lists the metrics of a program.
	Program List
	// Agent lists the metrics of an agent.
	Agent List
)

// add declares a metric; about is a sentence.
func (l *List) add(kind Kind, name, unit, about string, attributes ...string) *Metric {
	m := &Metric{Name: name, Kind: kind, Unit: unit, About: about, Attributes: attributes}
	*l = append(*l, m)
	return m
}

// histogram declares one of lengths of time.
func (l *List) histogram(name string, bounds []float64, about string) *Metric {
	m := l.add(Histogram, name, "s", about)
	m.Bounds = bounds
	return m
}

// The metrics of a synchronizer. Each has the attributes synchronizer and tenant.
var (
	Frames = Synchronizer.add(Counter, "pegasus.frames", "{frame}",
		"Frames of members that could be read, by kind.", "kind")
	Reports = Synchronizer.add(Counter, "pegasus.reports", "{report}",
		"Reports of members that were accepted, without copies.")
	Gaps = Synchronizer.add(Counter, "pegasus.gaps", "{gap}",
		"Gaps in the reports of a member that no ring could fill; the states in the gaps are unknown.")
	Collapsed = Synchronizer.add(Counter, "pegasus.states.collapsed", "{state}",
		"Local states dropped because too many states of a member waited for states of others.")
	GlobalStates = Synchronizer.add(Counter, "pegasus.global_states", "{state}",
		"Global states found; in partial ones the state of some member is unknown.", "partial")
	Verdicts = Synchronizer.add(Counter, "pegasus.verdicts", "{verdict}",
		"Verdicts that differ from the one before, or fired.", "truth")
	Decisions = Synchronizer.add(Counter, "pegasus.decisions", "{decision}",
		"Firings of predicates.", "predicate")
	Signals = Synchronizer.add(Counter, "pegasus.signals", "{signal}",
		"Signals that have found their final fate.", "kind", "fate")
	SignalsWaiting = Synchronizer.add(Gauge, "pegasus.signals.waiting", "{signal}",
		"Signals without a final fate.")
	BalancePlans = Synchronizer.add(Counter, "pegasus.balance.plans", "{plan}",
		"Plans of the section balance, also those without moves.", "strategy")
	BalanceMoves = Synchronizer.add(Counter, "pegasus.balance.moves", "{move}",
		"Moves of loads that the section balance has ordered.", "strategy")
	BalanceRefused = Synchronizer.add(Counter, "pegasus.balance.refused", "{refusal}",
		"Moves that a plan considered, or a node asked for, and the plan refused; counted in each plan.", "strategy")
	Probes = Synchronizer.add(Counter, "pegasus.probes", "{probe}",
		"Requests for evidence that were sent.")
	Resends = Synchronizer.add(Counter, "pegasus.resends", "{request}",
		"Requests for reports that were lost on the way.")
	Rejected = Synchronizer.add(Counter, "pegasus.rejected", "{input}",
		"Inputs that were refused, by the reject reason.", "reason")
	InboxDepth = Synchronizer.add(Gauge, "pegasus.inbox.depth", "{message}",
		"Messages that wait for the synchronizer.")
	InboxDropped = Synchronizer.add(Counter, "pegasus.inbox.dropped", "{message}",
		"Messages lost because the process was too slow.")
	InboxShed = Synchronizer.add(Counter, "pegasus.inbox.shed", "{message}",
		"Messages shed before they were read, because the synchronizer fell behind: full, where their sender had more than its share of the inbox; old, where they had waited for too long.", "reason")
	JournalInputs = Synchronizer.add(Counter, "pegasus.journal.inputs", "{input}",
		"Inputs handed to the writer of the journal.")
	JournalLost = Synchronizer.add(Counter, "pegasus.journal.lost", "{input}",
		"Inputs that are not in the journal, since it had ended before the run.")
	Connected = Synchronizer.add(Gauge, "pegasus.connected", "{connection}",
		"1 while the NATS server can be reached, otherwise 0.")
	Leads = Synchronizer.add(Gauge, "pegasus.leads", "{process}",
		"1 while this process leads, 0 while it is a standby.")
	MembersOnline = Synchronizer.add(Gauge, "pegasus.members.online", "{member}",
		"Members that are online.")
	MembersAwaited = Synchronizer.add(Gauge, "pegasus.members.awaited", "{member}",
		"Members that an epoch needs: count before the first one, min afterwards.")
	MembersClock = Synchronizer.add(Gauge, "pegasus.members.clock", "{member}",
		"Online members, by the status of their clock; members with status exact read the reference clock itself.", "status")
	MembersBound = Synchronizer.add(Gauge, "pegasus.members.clock.bound", "s",
		"Widest bound (half the width) of the members' newest stamps; absent if no member has a bound.")
	Predicates = Synchronizer.add(Gauge, "pegasus.predicates", "{predicate}",
		"Predicates by their newest verdict in this epoch; a predicate without a verdict is unknown.", "truth")
	Epoch = Synchronizer.add(Gauge, "pegasus.epoch", "{epoch}",
		"Number of the current epoch; 0 while there are too few members and nothing is decided.")
	StepDuration = Synchronizer.histogram("pegasus.step.duration", []float64{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1},
		"Duration of a step of the synchronizer, with the sending of its messages.")
	VerdictLatency = Synchronizer.histogram("pegasus.verdict.latency", []float64{3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3},
		"Time from a report in the inbox to the verdict it changed or the decision it led to.")
)

// The metrics that a synchronizer has beside these where it runs a program. Each has
// the attributes synchronizer and tenant.
var (
	ProgramRuns = Program.add(Counter, "pegasus.program.runs", "{run}",
		"Runs of blocks that were started, done, failed, canceled or lost, or continued after they were given up (perhaps_twice); runs of earlier lives of the program count.", "event")
	ProgramRunning = Program.add(Gauge, "pegasus.program.running", "{run}",
		"Runs that have not ended.")
	ProgramWaiting = Program.add(Gauge, "pegasus.program.waiting", "{block}",
		"Blocks that wait for a processor.")
	Bodies = Program.add(Counter, "pegasus.bodies", "{body}",
		"Inputs given to processors, and results and failures received from them: accepted whole (taken), refused, or received before (repeated).", "kind", "fate")
	BodyBytes = Program.add(Counter, "pegasus.bodies.bytes", "{byte}",
		"Bytes of the bodies that were taken.", "kind")
)

// The metrics of an agent. Each has the attributes group and tenant.
var (
	AgentStates = Agent.add(Counter, "pegasus.agent.states", "{state}",
		"States that were begun or ended.")
	AgentDropped = Agent.add(Counter, "pegasus.agent.states.dropped", "{state}",
		"States that left the ring before they were sent; they are unknown to the synchronizer.")
	AgentRing = Agent.add(Sum, "pegasus.agent.ring", "{state}",
		"States that the ring keeps for repeated requests.")
	AgentBatches = Agent.add(Counter, "pegasus.agent.batches", "{batch}",
		"Batches made, including batches that only say that a state still holds.")
	AgentResent = Agent.add(Counter, "pegasus.agent.states.resent", "{state}",
		"States sent again because a message was lost.")
	AgentSendErrors = Agent.add(Counter, "pegasus.agent.send.errors", "{message}",
		"Messages that could not be sent because the server was away.")
	AgentRejected = Agent.add(Counter, "pegasus.agent.rejected", "{message}",
		"Messages that were refused: unreadable messages (frame), and messages of another incarnation or term (strange).", "reason")
	AgentRejoins = Agent.add(Counter, "pegasus.agent.rejoins", "{rejoin}",
		"Returns after the synchronizer had dropped the member.")
	AgentSignals = Agent.add(Counter, "pegasus.agent.signals", "{signal}",
		"Signals into regions of the process and its threads that have found their final fate.", "fate")
	AgentHeld = Agent.add(Counter, "pegasus.agent.regions.held", "{hold}",
		"Times a region was held for want of control.")
	AgentLapsed = Agent.add(Counter, "pegasus.agent.regions.lapsed", "{region}",
		"Regions that were cancelled for want of control.")
	AgentRegions = Agent.add(Sum, "pegasus.agent.regions", "{region}",
		"Regions of the process and its threads that are open.")
)

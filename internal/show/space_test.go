package show_test

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/workreport"
)

func TestSpaceText(t *testing.T) {
	used := 0.0042
	got := show.SpaceText(&show.Space{
		Synchronizer: "gsync", Group: "solvers", Epoch: 3, Silent: []string{"w4"},
		Members: []*workreport.Report{
			{Member: "w1", Phase: 2, Awaits: true, Settled: true, Slots: 2, Open: 14, Blocked: 2, Missing: 1, Queued: 3, Running: 2, Put: 100, Given: 40, Redone: 1, Dropped: 1, Holders: []workreport.Holding{
				{Member: "w1", Tasks: 2, Runs: 2}, {Member: "w2\x1b[2J", Tasks: 7},
			}},
			{Member: "w2", Phase: 2, Settled: true, Slots: 1, Queued: 6, Running: 1, Moved: 40, Stuck: 1},
			{Member: "w3", Phase: 2, Slots: 1, Mail: workreport.Mail{Local: 1, Directed: 1, Undirected: 3}},
			{Member: "w5", Phase: 2, Settled: true, Slots: 1, Withdrawal: &workreport.Withdrawal{Seconds: 62.04, Stay: 3, Objects: []string{"part/1", "part/\x1b7"}}},
			{Member: "w7", Phase: 2, Slots: 1, Waiting: []workreport.Bound{{Object: "part/\x1b9", Members: []string{"w8", "w\x1b9"}}}, WaitingMore: 1},
			{Member: "w6", Phase: 2, Settled: true, Slots: 1, Withdrawal: &workreport.Withdrawal{Seconds: 1e300, Alone: true}, Calls: []workreport.Calls{
				{Name: "idle"}, {Name: "r\x1b", Open: 1, Waiting: 2, Running: 3}, {Name: "s", Lost: 1, Full: 1 << 60, Busy: 3},
			}},
			{Member: "w7", Phase: 2, Slots: 1, Loops: []workreport.Loop{
				{Name: "r\x1b", Home: true, Rows: 1000, Iteration: 3, Moved: 300, Released: 280, Redone: 7, Efficiency: 0.996, Overall: 0.9, Speeds: []workreport.Speed{{Member: "w6", Rows: 250.44}, {Member: "w7", Rows: 1e6}}},
				{Name: "s", Rows: 10},
				{Name: "t", Rows: 10, Withdrawals: 2, Withdrawing: 0.0123, Used: &used},
				{Name: "u", Withdrawals: 1, Withdrawing: 1e300},
			}},
		},
	})
	const want = `gsync: group solvers, epoch 3; 14 tasks open, 2 blocked, 9 queued, 3 running
MEMBER  PHASE  PROGRAM            OPEN  BLOCKED          QUEUED  RUNNING  STUCK  PUT  GIVEN  MOVED  REDONE  HOLDS ITS TASKS
w1      2      waits for the end  14    2, 1 ID not put  3       2 of 2   0      100  40     0      1       w1 2 (2 run), w2�[2J 7
w2      2      serves             0     0                6       1 of 1   1      0    0      40     0       -
w3      2      may put tasks      0     0                0       0 of 1   0      0    0      0      0       -
w5      2      WITHDRAWN          0     0                0       0 of 1   0      0    0      0      0       -
w7      2      may put tasks      0     0                0       0 of 1   0      0    0      0      0       -
w6      2      WITHDRAWN          0     0                0       0 of 1   0      0    0      0      0       -
w7      2      may put tasks      0     0                0       0 of 1   0      0    0      0      0       -
w4: no answer: it has not opened the space, has died, or cannot be reached; pegasus why end says whether the phase waits for it
w1: 1 message to others found the queue full; what matters is sent again
w3: asked all members 3 times which of them has an object, more often than it sent messages: create objects before others send to them
w5: withdrawn for 1m2s; 3 objects stay there, pinned or bound to members: part/1, part/�7 and 1 more
w7: messages to object part/�9 wait: it is bound to w8, w�9, and none of them is in the group: start one of them
w7: and messages to 1 object more wait for such members
w6: withdrawn for 277777h46m40s; none of its neighbours takes work, so it works on; no object stays there
w6: function r�: 1 call open, 2 waiting and 3 running there
w6: function s: 0 calls open, 0 waiting and 0 running there; servers were lost with its calls 1 time; servers refused its calls 2147483648 times; servers at their upper mark had its calls wait 3 times
w7: home of loop r�: iteration 3 of 1000 rows; 300 rows moved, 280 of them of members that left; 7 redone; efficiency 0.90, 1.00 in the last iteration
w7: rows a second in loop r�: w6 250.4, w7 1000000.0
w7: gave its rows of loop t back 2 times, within 12ms; its process uses 0.4 % of the cores since
w7: gave its rows of loop u back 1 time, within 277777h46m40s
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSpaceTextOfAStream: the stream is told once, as whoever asked last knows it, and what each member has of it.
func TestSpaceTextOfAStream(t *testing.T) {
	log := func(messages uint64, unwritten int, stalled bool, accounts ...string) *workreport.LogReport {
		return &workreport.LogReport{Stream: "pegasus+default+g", Messages: messages, Bytes: messages * 1024, Unwritten: unwritten, Stalled: stalled, Accounts: accounts}
	}
	broken := log(1, 0, false)
	broken.Fault = "work: stream S: message 7 is damaged"
	got := show.SpaceText(&show.Space{
		Synchronizer: "gsync", Group: "g", Epoch: 1,
		Members: []*workreport.Report{
			{Member: "w1", Phase: 1, Slots: 1, Log: log(512, 0, false, "w4", "w5")},
			{Member: "w2", Phase: 1, Slots: 1, Log: log(2048, 3, true)},
			{Member: "w3", Phase: 1, Slots: 1, Log: broken},
		},
	})
	const want = `gsync: group g, epoch 1; 0 tasks open, 0 blocked, 0 queued, 0 running
MEMBER  PHASE  PROGRAM        OPEN  BLOCKED  QUEUED  RUNNING  STUCK  PUT  GIVEN  MOVED  REDONE  HOLDS ITS TASKS
w1      1      may put tasks  0     0        0       0 of 1   0      0    0      0      0       -
w2      1      may put tasks  0     0        0       0 of 1   0      0    0      0      0       -
w3      1      may put tasks  0     0        0       0 of 1   0      0    0      0      0       -
stream pegasus+default+g: 2048 messages, 2.0 MiB
w1: has taken over the tasks of lost members: w4, w5
w2: the stream takes no messages of it; 3 appends wait, and nothing counts before: look at the NATS server and its disk
w3: no phase ends now: work: stream S: message 7 is damaged
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

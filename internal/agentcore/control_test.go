package agentcore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
)

// TestControl plays testdata/control. Times are in milliseconds. After each command it
// looks, and shows what comes about and when it is to look again.
//
//	accepted term=N [by=S] | beat term=N [standby] | hear at=MS | away | there
//	enter [silence=MS] [cancel=MS] | exit rule=N | trip [failed] | look
func TestControl(t *testing.T) {
	datadriven.Walk(t, "testdata/control", func(t *testing.T, path string) {
		c := agentcore.NewControl()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var text strings.Builder
			now := instant(t, d, "now", 0)
			switch d.Cmd {
			case "accepted":
				c.Accepted(now, word(t, d, "by", "s"), num(t, d, "term", 1))
			case "beat":
				c.Beat(now, num(t, d, "term", 1), !d.HasArg("standby"))
			case "hear":
				c.Hear(now, instant(t, d, "at", now))
			case "away", "there":
				c.Server(now, d.Cmd == "away")
			case "enter":
				n, lost := c.Enter(now, agentcore.Rule{
					Silence:     time.Duration(num(t, d, "silence", 0)) * time.Millisecond,
					CancelAfter: time.Duration(num(t, d, "cancel", 0)) * time.Millisecond,
				})
				fmt.Fprintf(&text, "rule %d", n)
				if lost {
					text.WriteString(", lost")
				}
				text.WriteString("\n")
			case "exit":
				c.Exit(num(t, d, "rule", 0))
			case "trip":
				c.RoundTrip(now, !d.HasArg("failed"))
			case "look":
			default:
				t.Fatalf("%s: no such command", d.Pos)
			}
			show(&text, c, now)
			return text.String()
		})
	})
}

func show(text *strings.Builder, c *agentcore.Control, now clocksync.Instant) {
	effects, ask, told, wake := c.Turn(now, nil)
	for _, e := range effects {
		fmt.Fprintf(text, "%d: %s\n", e.Rule, [...]string{"", "lost", "back", "cancel after " + e.After.String()}[e.Kind])
	}
	if ask {
		text.WriteString("a round trip\n")
	}
	if told {
		text.WriteString("to be told\n")
	}
	fmt.Fprintf(text, "look at %s\n", ms(wake))
}

// TestCanceledOnlyWithoutControl lets a process hear who leads through a server that goes
// away, while who leads falls silent and the process stands still. A region is cancelled only
// if it was truly without control for its time, and always if that is so for long enough.
func TestCanceledOnlyWithoutControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const step, beat = 50 * time.Millisecond, 250 * time.Millisecond
		silence := time.Duration(rapid.IntRange(10, 60).Draw(t, "silence")) * step
		after := time.Duration(rapid.IntRange(1, 60).Draw(t, "after")) * step
		c := agentcore.NewControl()
		now := clocksync.Instant(time.Hour)
		c.Accepted(now, "s", 1)
		c.Beat(now, 1, true)
		rule, _ := c.Enter(now, agentcore.Rule{Silence: silence, CancelAfter: after})
		var (
			waits            int                     // beats that are on the way
			sent             = now                   // the last message that has come to the server, and was not lost there
			heard            = now                   // ... and that was taken
			asked            = clocksync.Instant(-1) // the round trip in progress
			awaySince        = clocksync.Instant(-1)
			ran              time.Duration // since control was truly lost, without a pause
			leads, canceled  = true, false
			left, next       [3]int // steps until something changes: who leads, the server, the pause
			paused, wasPause = false, 0
		)
		failed := false // the round trip
		for range 600 {
			now = now.Add(step)
			for i := range left {
				if left[i]--; left[i] > 0 {
					continue
				}
				left[i] = rapid.IntRange(1, []int{120, 60, 40}[i]).Draw(t, "steps")
				switch next[i]++; i {
				case 0:
					leads = next[i]%2 == 1
				case 1:
					if next[i]%2 == 1 {
						awaySince = -1
					} else {
						awaySince, waits, failed, sent = now, 0, true, heard // What waited is lost.
					}
				case 2:
					paused = next[i]%2 == 0
				}
			}
			away := awaySince >= 0
			if leads && !away && int64(now)%int64(beat) == 0 {
				waits, sent = waits+1, now
			}
			if paused {
				wasPause++
				continue
			}
			if pause := wasPause >= 20; pause {
				ran = 0 // Simpler than to say what counts, and no less strict.
			}
			wasPause = 0
			c.Server(now, away)
			for ; waits > 0; waits-- {
				c.Beat(now, 1, true)
				heard = now
			}
			if asked >= 0 {
				c.RoundTrip(now, !failed)
				asked = -1
			}
			failed = false
			if lost := away || now.Sub(sent) >= silence; lost {
				ran += step
			} else {
				ran = 0
			}
			effects, ask, _, _ := c.Turn(now, nil)
			if ask {
				asked = now
			}
			for _, e := range effects {
				if e.Kind != agentcore.EffectCancel {
					continue
				}
				if canceled || e.Rule != rule {
					t.Fatalf("%+v a second time", e)
				}
				canceled = true
				if quiet := now.Sub(sent); !away && quiet < after {
					t.Fatalf("cancelled, and a beat came %v ago; silence %v, after %v", quiet, silence, after)
				}
				if quiet := now.Sub(heard); away && quiet < after {
					t.Fatalf("cancelled, and a beat was heard %v ago; after %v", quiet, after)
				}
			}
			// A beat that waited for a second is taken late, and a round trip may fail.
			if ran > after+silence+2*time.Second && !canceled {
				t.Fatalf("not cancelled after %v without control; silence %v, after %v", ran, silence, after)
			}
		}
	})
}

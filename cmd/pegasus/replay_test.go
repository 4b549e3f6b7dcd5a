package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// The times of a replay are local ones. The zone is read when a time is first shown; to set
// time.Local would race with a goroutine of the server's package.
func init() {
	if err := os.Setenv("TZ", "UTC"); err != nil {
		panic(err)
	}
}

// recording writes a journal of two members of good.yaml.
type recording struct {
	t      *testing.T
	core   *synccore.Core
	out    synccore.Output
	digest journal.Digest
	text   []byte
	now    clocksync.Instant
	inputs uint64
	seq    map[string]uint64
	state  scgs.Schema
}

func (r *recording) step(in synccore.Input) {
	r.t.Helper()
	r.now, r.inputs = r.now.Add(1_500_000), r.inputs+1
	text, err := journal.AppendInput(r.text, r.state, r.now, &in)
	if err != nil {
		r.t.Fatal(err)
	}
	r.core.Step(r.now, &in, &r.out)
	r.digest.Add(&r.out)
	r.text = journal.AppendOutput(text, &r.digest)
}

func (r *recording) says(name, phase string, load float64) {
	r.t.Helper()
	r.seq[name]++
	at := clocksync.Stamp{Domain: "host", Mono: r.now, Within: clocksync.Unbounded}
	alive := at
	alive.Mono++
	r.step(synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
		Member: name, Incarnation: 1, Regions: []wire.Region{{Name: "search", Entry: 1, Since: 1}},
		Reports:  []wire.Report{{Seq: r.seq[name], At: at, Row: []scgs.Value{scgs.EnumValue(phase), scgs.FloatValue(load)}}},
		Evidence: wire.Evidence{Seq: r.seq[name], At: alive},
	}})
}

func (r *recording) applied(name string, number uint64) {
	r.t.Helper()
	d := control.Decision{Synchronizer: "gsync", Term: 7, Epoch: 1, Number: number}
	r.step(synccore.Input{Kind: synccore.InAck, From: name, Ack: &wire.Ack{
		Member: name, Incarnation: 1, Answers: []wire.Answer{{Decision: d, Name: "all-idle", Target: name, Fate: control.Applied}},
	}})
}

func (r *recording) hello(from, member string) {
	r.t.Helper()
	r.step(synccore.Input{Kind: synccore.InHello, From: from, Hello: &wire.Hello{Member: member, Incarnation: 1, Host: "host", Domain: "host"}})
}

// recordIdle is a short story: two members are busy, then idle.
func recordIdle(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile(goodConfig)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := configfile.Parse(goodConfig, src)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{t: t, state: plans[0].State, seq: map[string]uint64{}, core: synccore.New(plans[0], synccore.Options{Term: 7, Reference: "host"})}
	h := journal.NewHeader(plans[0], synccore.Options{Term: 7, Reference: "host"})
	h.Pegasus, h.Started = "v0.0.1", 1_893_553_445_000_000_000
	r.text = journal.AppendHeader(nil, &h)
	r.hello("w1", "w1")
	r.hello("w2", "w2")
	r.says("w1", "search", 1)
	r.says("w2", "search", 0.75)
	r.says("w1", "idle", 0.25)
	r.says("w2", "idle", 0.125)
	r.says("w1", "idle", 0) // With it the states before are known to have held together.
	r.applied("w1", 2)
	r.applied("w2", 2)
	r.hello("w3", "w4")
	return journal.AppendEnd(r.text, r.inputs, "")
}

// TestReplays runs the command lines of testdata/replays.
func TestReplays(t *testing.T) {
	dir := t.TempDir()
	journal := recordIdle(t)
	lines := bytes.SplitAfter(journal, []byte("\n"))
	for name, text := range map[string][]byte{
		"idle":    journal,
		"changed": bytes.Replace(journal, []byte(`["idle",0.25]`), []byte(`["idle",0.5]`), 1),
		"cut":     journal[:len(journal)-60],
		"garbage": append(bytes.Join(lines[:3], nil), "{\"now\":12x}\n"...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".journal.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	datadriven.RunTest(t, filepath.Join("testdata", "replays"), func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		code, stdout, stderr := execute(t, strings.Fields(strings.ReplaceAll(d.Input, "DIR", dir))...)
		text := fmt.Sprintf("exit %d\n%s%s", code, stream("stdout", stdout), stream("stderr", stderr))
		return strings.ReplaceAll(text, dir, "DIR")
	})
}

// TestReplayOfARun: replay prints what run printed, but for the times, which it
// tells as the machine had them.
func TestReplayOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journals")
	p := launch(t, "run", goodConfig, "--journal", dir, "-v", "--json")
	url := p.object("ready")["url"].(string)
	m1, left1 := searcher(t, url, "w1")
	m2, left2 := searcher(t, url, "w2")
	p.object("epoch")
	for i := range 50 {
		if err := m1.Set(state{"search", float64(i) / 3}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []interface{ Set(any) error }{m1, m2} {
		if err := m.Set(state{"idle", 0.25}); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []<-chan error{left1, left2} {
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		p.line(`"event":"signal"`, `"fate":"applied"`)
	}
	p.cancel()
	stopped := p.object("stopped")
	p.stop()
	code, stdout, stderr := execute(t, "replay", dir, "-v", "--json")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	last := len(lines) - 1
	inputs := stopped["journal"].(map[string]any)["inputs"]
	if want := fmt.Sprintf(`"inputs":%v,`, inputs); !containsAll(lines[last], []string{`"event":"replayed"`, want, `"same":true`, `"complete":true`}) {
		t.Errorf("the last line is %s, want %s", lines[last], want)
	}
	var run []string
	for _, line := range p.seen {
		if !containsAll(line, []string{`"event":"ready"`}) && !strings.Contains(line, `"event":"stopped"`) {
			run = append(run, withoutTime(line))
		}
	}
	for i := range lines {
		lines[i] = withoutTime(lines[i])
	}
	if d := cmp.Diff(run, lines[:last]); d != "" {
		t.Errorf("replay prints other lines than run (-run +replay):\n%s", d)
	}
}

// withoutTime cuts the time out of a JSON line.
func withoutTime(line string) string {
	from := strings.Index(line, `"time":"`)
	if from < 0 {
		return line
	}
	to := from + len(`"time":"`) + strings.IndexByte(line[from+len(`"time":"`):], '"')
	return line[:from] + line[to:]
}

// TestReplayTakesTheNewestRun of a directory, all its synchronizers.
func TestReplayTakesTheNewestRun(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		p := launch(t, "run", levelsConfig, "--journal", dir)
		p.url()
		p.stop()
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d files, %v; want one a synchronizer of each run", len(entries), err)
	}
	code, stdout, stderr := execute(t, "replay", dir)
	if code != exitOK || stderr != "" || strings.Count(stdout, "\n") != 2 ||
		!strings.Contains(stdout, entries[2].Name()) || !strings.Contains(stdout, entries[3].Name()) {
		t.Errorf("exit %d, stderr %q, stdout:\n%s", code, stderr, stdout)
	}
}

// TestRunLeavesNoEmptyJournal where it could not start.
func TestRunLeavesNoEmptyJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := execute(t, "run", goodConfig, "--nats", "127.0.0.1:1", "--journal", dir)
	if code != exitFailure || !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

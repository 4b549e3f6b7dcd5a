package program_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/predicates"
)

// wide is a loop around a replicated block on four nodes.
func wide(tb testing.TB, times int) *program.Compiled {
	tb.Helper()
	p := &program.Program{
		Name:   "wide",
		Blocks: []program.Block{{Name: "b"}},
		Body: program.DoUntil{
			Do:    program.Par{Times: times, Of: []program.Construct{program.Do{Block: "b", Async: []string{"s.p"}}}},
			Until: "s.q",
		},
	}
	compiled, err := program.Compile(p, refEnv)
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

// started begins a run on four nodes.
func started(compiled *program.Compiled, out *program.Output) *program.Run {
	run := program.NewRun(compiled)
	for i := range 4 {
		run.Step(0, &program.Input{Kind: program.InJoined, Node: program.Node{Name: fmt.Sprint("n", i), Cores: 8}}, out)
	}
	no := program.Input{Kind: program.InVerdict, Predicate: "s.q", Truth: predicates.False, Decision: control.Decision{Synchronizer: "s", Number: 1}}
	run.Step(0, &no, out)
	run.Step(0, &program.Input{Kind: program.InBegin}, out)
	return run
}

// BenchmarkStep ends the blocks of a PAR one by one; the last of them has it
// begin again. A step is the end of one block.
func BenchmarkStep(b *testing.B) {
	for _, times := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("blocks=%d", times), func(b *testing.B) {
			var out program.Output
			run := started(wide(b, times), &out)
			in := program.Input{Kind: program.InDone, Block: program.ID{Instance: 1, Attempt: 1}, Decision: control.Decision{Synchronizer: "s", Number: 1}}
			b.ReportAllocs()
			for b.Loop() {
				run.Step(0, &in, &out)
				in.Block.Instance++
			}
			if run.Finished() {
				b.Fatal("the run has ended")
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// TestStepAllocatesNothing in the steady state.
func TestStepAllocatesNothing(t *testing.T) {
	var out program.Output
	run := started(wide(t, 100), &out)
	in := program.Input{Kind: program.InDone, Block: program.ID{Instance: 1, Attempt: 1}, Decision: control.Decision{Synchronizer: "s", Number: 1}}
	step := func() {
		run.Step(0, &in, &out)
		in.Block.Instance++
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(5000, step); n != 0 || run.Finished() {
		t.Errorf("%v allocations a step, finished %t", n, run.Finished())
	}
}

// held is the memory that a run of so many blocks keeps.
func held(tb testing.TB, blocks int) (run *program.Run, size uint64) {
	tb.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var out program.Output
	run = started(wide(tb, blocks), &out)
	out = program.Output{}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return run, after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
}

func TestMemoryOfAProgram(t *testing.T) {
	run, size := held(t, 10_000)
	if n := len(run.Blocks()); n != 10_000 {
		t.Fatalf("%d blocks run", n)
	}
	if t.Logf("%.1f MiB for 10,000 blocks", float64(size)/(1<<20)); size > 50<<20 {
		t.Errorf("%d bytes, at most 50 MiB", size)
	}
}

// chain is a program of so many blocks, nested and not.
func chain(tb testing.TB, blocks int) *program.Compiled {
	tb.Helper()
	var of []program.Construct
	for i := 0; i < blocks; i += 10 {
		pair := []program.Construct{program.Do{Block: "b"}, program.Do{Block: "b"}}
		of = append(of,
			program.Par{Of: []program.Construct{program.Seq{Of: pair}, program.Seq{Of: pair}}},
			program.If{When: "s.p", Then: program.Par{Of: pair}, Else: program.Seq{Of: pair}},
			program.DoUntil{Do: program.Par{Of: pair}, Until: "s.q"},
		)
	}
	p := &program.Program{Name: "chain", Blocks: []program.Block{{Name: "b"}}, Body: program.Seq{Of: of}}
	compiled, err := program.Compile(p, refEnv)
	if err != nil {
		tb.Fatal(err)
	}
	if compiled.Blocks() != blocks {
		tb.Fatalf("%d blocks, want %d", compiled.Blocks(), blocks)
	}
	return compiled
}

func BenchmarkDrawSVG(b *testing.B) {
	for _, blocks := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			compiled := chain(b, blocks)
			b.ReportAllocs()
			for b.Loop() {
				if len(compiled.Draw().SVG()) < blocks {
					b.Fatal("no drawing")
				}
			}
		})
	}
}

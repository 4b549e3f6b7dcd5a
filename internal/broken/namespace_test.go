//go:build broken && linux

package broken

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// cable leads from a network namespace to the namespace of the test.
type cable struct {
	space       string
	here, there string // the devices
	address     string // of the end here
}

// do runs a command with words that are separated by spaces.
func do(format string, args ...any) error {
	words := strings.Fields(fmt.Sprintf(format, args...))
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newCable makes a namespace and its cable; it fails where the kernel or the user does not
// allow that.
func newCable(t *testing.T, i int) (c cable, err error) {
	t.Helper()
	id := fmt.Sprintf("%d-%d", os.Getpid(), i)
	c = cable{space: "pegasus-" + id, here: "pg" + id, there: "there", address: fmt.Sprintf("10.214.%d.1", i)}
	if err := do("ip netns add %s", c.space); err != nil {
		return c, err
	}
	t.Cleanup(func() {
		if err := do("ip netns del %s", c.space); err != nil { // The cable goes with it.
			t.Error(err)
		}
	})
	return c, errors.Join(
		do("ip link add %s type veth peer name %s netns %s", c.here, c.there, c.space),
		do("ip addr add %s/30 dev %s", c.address, c.here),
		do("ip link set %s up", c.here),
		do("ip -n %s addr add 10.214.%d.2/30 dev %s", c.space, i, c.there),
		do("ip -n %s link set %s up", c.space, c.there),
		do("ip -n %s link set lo up", c.space),
	)
}

// without ends a test for what this machine has not. In CI it has all.
func without(t *testing.T, p *part, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI tests all: "+format, args...)
	}
	p.skip(t, format, args...)
	t.SkipNow()
}

// TestNamespaces has each process in a network namespace of its own, whose cable is cut,
// leads nowhere, or is slow. It needs root.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	n := often(t, 1, 30)
	p, random := newPart(t, n), newRandom(t)
	if os.Getuid() != 0 {
		without(t, p, "network namespaces, which need root")
	}
	w := newWorld(t, 3)
	cables := map[string]cable{}
	var r []role
	for i := range w.groups {
		r = append(r, role{Kind: aMember, Name: w.groupName(i), Members: w.groups[i]})
	}
	r = append(r, role{Kind: aSynchronizer, Name: "s0", Awaited: len(w.groups) * perProcess})
	for i, one := range r {
		c, err := newCable(t, i)
		if err != nil {
			without(t, p, "network namespaces, which are not allowed here: %v", err)
		}
		cables[one.Name] = c
	}
	kinds := []struct{ name, do, undo string }{
		{"the cable is pulled", "ip -n SPACE link set DEVICE down", "ip -n SPACE link set DEVICE up"},
		{"a route leads nowhere", "ip -n SPACE route add blackhole ADDRESS/32", "ip -n SPACE route del blackhole ADDRESS/32"},
		{"64 kbit/s", "tc -n SPACE qdisc add dev DEVICE root tbf rate 64kbit burst 4kb latency 400ms", "tc -n SPACE qdisc del dev DEVICE root"},
	}
	w.server()
	for _, one := range r {
		one.URL = newProxy(t, cables[one.Name].address, w.port).url
		w.startIn(cables[one.Name].space, one)
	}
	since := clock()
	w.until("all to be shown", func() bool { return w.right(since) })
	var healed int64
	for range n {
		for _, k := range random.Perm(len(kinds)) {
			kind, name := kinds[k], r[random.IntN(len(r))].Name
			c := cables[name]
			of := strings.NewReplacer("SPACE", c.space, "DEVICE", c.there, "ADDRESS", c.address)
			if err := do("%s", of.Replace(kind.do)); err != nil {
				p.skip(t, "%s, which is not allowed here: %v", kind.name, err)
				continue
			}
			elapse(between(random, 300*time.Millisecond, 4*time.Second))
			healed = clock()
			if err := do("%s", of.Replace(kind.undo)); err != nil {
				t.Fatal(err)
			}
			p.took("healed ("+kind.name+"): the truth is shown", "", w.shownSince(healed))
			w.until("the barrier to open", func() bool { return w.opened(healed) })
		}
	}
	p.took("states keep still: what is true is shown", "", w.quiesce(healed))
	p.judged(t, w, everything...)
	p.loss(t, w)
}

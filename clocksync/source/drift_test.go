package source

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// TestDriftOfMachines gives the files of machines that say what they are.
func TestDriftOfMachines(t *testing.T) {
	const (
		cpu = "proc/cpuinfo"
		dmi = "sys/class/dmi/id/"
		dt  = "proc/device-tree/"
		arm = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd hypervisor\n"
	)
	for name, c := range map[string]struct {
		files   map[string]string
		virtual bool
	}{
		"nothing":               {nil, false},
		"x86":                   {map[string]string{cpu: "processor\t: 0\nflags\t\t: fpu vme ht\nvmx flags\t: vnmi hypervisor\n"}, false},
		"x86 guest":             {map[string]string{cpu: "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n"}, true},
		"x86 of a cloud":        {map[string]string{cpu: "flags\t: fpu\n", dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "c5.large\n"}, false},
		"x86 with another flag": {map[string]string{cpu: "flags\t: nohypervisor\n"}, false},
		"arm":                   {map[string]string{cpu: arm, dmi + "sys_vendor": "Ampere(R)\n", dt + "compatible": "raspberrypi,4\x00brcm,bcm2711\x00"}, false},
		"arm under QEMU":        {map[string]string{cpu: arm, dmi + "sys_vendor": "QEMU\n"}, true},
		"arm on EC2":            {map[string]string{cpu: arm, dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "m7g.large\n"}, true},
		"metal on EC2":          {map[string]string{cpu: arm, dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "m7g.metal\n"}, false},
		"metal of a size":       {map[string]string{cpu: arm, dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "m8g.metal-24xl\n"}, false},
		"arm on GCE":            {map[string]string{cpu: arm, dmi + "sys_vendor": "Google\n", dmi + "product_name": "Google Compute Engine\n"}, true},
		"arm on Azure":          {map[string]string{cpu: arm, dmi + "sys_vendor": "Microsoft Corporation\n", dmi + "product_name": "Virtual Machine\n"}, true},
		"a tablet":              {map[string]string{cpu: arm, dmi + "sys_vendor": "Microsoft Corporation\n", dmi + "product_name": "Surface Pro X\n"}, false},
		"arm by its board":      {map[string]string{cpu: arm, dmi + "board_vendor": "KVM\n"}, true},
		"arm by its bios":       {map[string]string{cpu: arm, dmi + "bios_vendor": "Xen\n"}, true},
		"tree of QEMU":          {map[string]string{cpu: arm, dt + "compatible": "linux,dummy-virt\x00"}, true},
		"tree of pseries":       {map[string]string{dt + "compatible": "qemu,pseries\x00"}, true},
		"tree with hypervisor":  {map[string]string{cpu: arm, dt + "compatible": "xen,xenvm\x00", dt + "hypervisor/compatible": "xen,xen-4.17\x00xen,xen\x00"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for path, content := range c.files {
				root[path] = &fstest.MapFile{Data: []byte(content)}
			}
			want := map[bool]float64{false: clocksync.DefaultDrift, true: VirtualDrift}[c.virtual]
			if got := driftOf(root); got != want {
				t.Errorf("drift %v, want %v", got, want)
			}
		})
	}
}

// TestDefaultDrift: this machine is asked once, and a clock that is not told
// otherwise takes its word.
func TestDefaultDrift(t *testing.T) {
	want := clocksync.DefaultDrift
	if info, err := os.ReadFile("/proc/cpuinfo"); runtime.GOARCH == "amd64" && err == nil && strings.Contains(string(info), " hypervisor ") {
		want = VirtualDrift
	} else if runtime.GOARCH != "amd64" {
		want = driftOf(os.DirFS("/"))
	}
	if got := DefaultDrift(); got != want {
		t.Errorf("drift %v, want %v", got, want)
	}
	word, err := Operator(time.Millisecond, clocksync.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[float64]float64{0: DefaultDrift(), 70: 70} {
		c := measuredOf(t, MeasuredOptions{Timeline: clocksync.UTC, Drift: given}, machine, word)
		testwait.Until(t, "a bound", bounded(c))
		if got := c.Diagnostics().Bound.Drift; got != want {
			t.Errorf("a bound with a drift of %v, want %v", got, want)
		}
	}
}

package source

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gopegasus/pegasus/clocksync"
)

// VirtualDrift is how many parts per million the clock of a virtual machine may
// run fast or slow: beside the drift of the host's, the guest's kernel measured
// the frequency of its counter while others ran on the processor, and a host that
// takes the guest over has another counter.
const VirtualDrift = 200.0

// DefaultDrift is how many parts per million the clock of this machine may run
// fast or slow, where nothing else is said: [VirtualDrift] in a virtual machine,
// [clocksync.DefaultDrift] on a machine of its own. It is the latter, too, where
// that cannot be told: Linux says it, by the flags of the processor on x86, and
// elsewhere by the names in its firmware; other systems do not.
//
// It is a guess about the machine, and a daemon that slews the clock adds to it.
func DefaultDrift() float64 { return machineDrift() }

var machineDrift = sync.OnceValue(func() float64 { return driftOf(os.DirFS("/")) })

func driftOf(root fs.FS) float64 {
	if virtual(root) {
		return VirtualDrift
	}
	return clocksync.DefaultDrift
}

// virtual reports whether the files of a machine say that it is a virtual one.
func virtual(root fs.FS) bool {
	for line := range strings.Lines(text(root, "proc/cpuinfo")) {
		// Only x86 has this line; the first processor speaks for all.
		if name, flags, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "flags" {
			return slices.Contains(strings.Fields(flags), "hypervisor")
		}
	}
	return virtualFirmware(root) || virtualTree(root)
}

// virtualVendors is how the names begin that hypervisors put in the firmware.
var virtualVendors = []string{
	"Amazon EC2", "Apple Virtualization", "BHYVE", "Bochs", "Google Compute Engine", "KubeVirt", "KVM",
	"OpenStack", "Parallels", "QEMU", "VirtualBox", "VMware", "VMW", "Xen", "innotek GmbH",
}

func virtualFirmware(root fs.FS) bool {
	dmi := func(name string) string { return strings.TrimSpace(text(root, path.Join("sys/class/dmi/id", name))) }
	vendor, product := dmi("sys_vendor"), dmi("product_name")
	if strings.Contains(product, ".metal") {
		return false // A whole machine under the vendor's name.
	}
	for _, name := range []string{vendor, product, dmi("board_vendor"), dmi("bios_vendor")} {
		if slices.ContainsFunc(virtualVendors, func(v string) bool { return strings.HasPrefix(name, v) }) {
			return true
		}
	}
	return vendor == "Microsoft Corporation" && product == "Virtual Machine"
}

func virtualTree(root fs.FS) bool {
	compatible := text(root, "proc/device-tree/compatible")
	return text(root, "proc/device-tree/hypervisor/compatible") != "" ||
		strings.Contains(compatible, "dummy-virt") || strings.Contains(compatible, "qemu")
}

// text is the beginning of a file, empty if it cannot be read.
func text(root fs.FS, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()                              //nolint:errcheck // Nothing was written.
	b, _ := io.ReadAll(io.LimitReader(f, 1<<16)) // What was read counts.
	return string(b)
}

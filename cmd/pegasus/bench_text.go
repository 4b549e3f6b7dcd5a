package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopegasus/pegasus/internal/bench"
	"github.com/gopegasus/pegasus/internal/show"
)

// setFlags are the flags that were given, as on the command line but for
// passwords in URLs.
func setFlags(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			b.WriteString(" --" + f.Name)
			return
		}
		value := f.Value.String()
		if f.Name == "nats" {
			value = withUser(value, nil)
		}
		fmt.Fprintf(&b, " --%s %s", f.Name, value)
	})
	return b.String()
}

// machine is what the figures are measured on.
func machine() bench.Machine {
	v := ownVersion()
	m := bench.Machine{CPUs: runtime.NumCPU(), OS: v.OS, Arch: v.Arch, Go: v.Go}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil { // Elsewhere its name is left out.
		for line := range strings.Lines(string(info)) {
			if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(model)
				break
			}
		}
	}
	return m
}

func machineText(m bench.Machine) string {
	processor := ""
	if m.CPU != "" {
		processor = m.CPU + ", "
	}
	return show.Printable(fmt.Sprintf("%s%s, %s/%s, %s", processor, show.Count(m.CPUs, "CPU"), m.OS, m.Arch, m.Go))
}

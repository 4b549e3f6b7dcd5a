package source

import (
	"fmt"
	"os"
	"strings"
)

// bootID names what shares CLOCK_MONOTONIC: the boot of the kernel, which is the
// same in every container, and the time namespace, which shifts the clock.
func bootID() (string, error) {
	const path = "/proc/sys/kernel/random/boot_id"
	boot, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(boot))
	if id == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	namespace, err := timeNamespace()
	if err != nil {
		return "", err
	}
	return id + namespace, nil
}

// timeNamespace is like "-4026531834", the number of the namespace. A kernel
// without time namespaces (before 5.6) has one clock for all.
func timeNamespace() (string, error) {
	const path = "/proc/self/ns/time"
	target, err := os.Readlink(path)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	number, ok := strings.CutPrefix(strings.TrimSuffix(target, "]"), "time:[")
	if !ok || number == "" {
		return "", fmt.Errorf("%s links to %q, not to time:[number]", path, target)
	}
	return "-" + number, nil
}

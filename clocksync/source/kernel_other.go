//go:build !linux

package source

import "runtime"

func adjtimex() (discipline, error) {
	return discipline{}, refuse(Unavailable, "the kernel's maximum error is not available on %s, only on linux", runtime.GOOS)
}

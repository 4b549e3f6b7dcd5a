//go:build !linux

package source

import "runtime"

func readAdjtimex() (discipline, error) {
	return discipline{}, refuseServer(Unavailable, "the kernel's maximum error is not available on %s, only on linux", runtime.GOOS)
}

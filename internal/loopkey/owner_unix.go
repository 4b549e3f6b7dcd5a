//go:build unix

package loopkey

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether this user owns a file.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(s.Uid) == int64(os.Geteuid())
}

// isShared reports whether other users may open a file.
func isShared(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

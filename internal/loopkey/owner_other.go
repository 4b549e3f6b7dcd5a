//go:build !unix

package loopkey

import "io/fs"

// isOwn is true: this system keeps the profile of a user from others.
func isOwn(fs.FileInfo) bool { return true }

func isShared(fs.FileInfo) bool { return false }

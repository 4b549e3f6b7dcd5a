package configs

import "embed"

// Files are the configurations of this directory by file name. It does not
// change and may be used from any goroutine.
//
//go:embed *.yaml
var Files embed.FS

package configs

import "embed"

// Files are the configurations of this directory by file name, and the program
// files as programs/NAME.yaml. It does not change and may be used from any
// goroutine.
//
//go:embed *.yaml programs/*.yaml recipes/*.yaml
var Files embed.FS

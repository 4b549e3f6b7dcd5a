//go:build nightly

package scgs_test

func init() { forgotten = 100_000 }

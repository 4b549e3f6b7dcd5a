//go:build nightly

package synccore_test

func init() { *worlds = 20_000 }

//go:build nightly

package balancesim

func init() { figureSeeds = 5 }

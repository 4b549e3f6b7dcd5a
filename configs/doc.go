// Package configs holds the configurations of the examples, a commented YAML
// file each with its rule tests beside it; in programs, the program files; and all
// of them as an [embed.FS], so that an example needs no file beside its binary.
//
//	src, err := configs.Files.ReadFile("tsp.yaml")
package configs

// Package configs holds the configurations of the examples and, in programs, the
// program files, a commented YAML file each, and the same files as an
// [embed.FS], so that an example needs no file beside its binary.
//
//	src, err := configs.Files.ReadFile("tsp.yaml")
package configs

// Package tsplib reads symmetric travelling salesman instances in the format
// of TSPLIB95 (Reinelt 1991), embeds a few small ones with their published
// optima, and draws random ones.
//
// A spec names an instance in one word:
//
//	kroA100          an embedded instance, see [Embedded]
//	random:120:7     120 uniform random cities drawn from seed 7, see [Random]
//	path/to/file.tsp a file, see [Parse]
//
// [Load] takes any of them:
//
//	in, err := tsplib.Load("kroA100")
//	if err != nil {
//		return err
//	}
//	fmt.Println(in.N, in.Dist(0, 1))
//
// Cities are numbered from 0 here and from 1 in the files. Distances are whole
// numbers from 0 to [MaxWeight], held as a full matrix. An [Instance] never
// changes once made and may be shared between goroutines.
package tsplib

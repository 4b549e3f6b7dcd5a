// Package span divides a range of iterations, or a grid of cells, among members by their
// speeds, and moves as little as it can when the speeds change: the elastic partitions of
// ADM (Adaptive Data Movement, section 4.1). It is pure: a result follows from its
// arguments.
//
//	sizes, err := span.Cut(1000, []float64{1, 2, 3, 4})  // 100, 200, 300, 400
//	spans := span.Lay(sizes)                             // [0,100) [100,300) [300,600) [600,1000)
//	sizes, err = span.Cut(1000, []float64{1, 2, 0, 4})   // the third member is withdrawn
//	lists, err := span.Move(span.Lists(spans), sizes)    // 300 iterations move: those that it had
//
// With one interval for each member instead, [Lay] of the new sizes moves 343.
package span

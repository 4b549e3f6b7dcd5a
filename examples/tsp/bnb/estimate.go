package bnb

import "math"

// Estimate is the work in a subtask as the PEGASUS paper has it (4.3): S = (N-t)!, the full tours that go on from a partial
// tour with t of N cities. The paper also takes 1 away for each partial tour that is kept, which adds up to more than S: to 325 of
// 120 where five cities are left. Here only full tours and those that are cut off count, so S ends at 0. [Problem.Load] tells
// work far better; this one is for comparison.
type Estimate struct{ left int64 }

// mostFactorial is the largest number whose factorial 64 bits hold.
const mostFactorial = 20

// NewEstimate is the estimate for a partial tour with so many cities left. It is at most math.MaxInt64, for more than 20
// cities, and does not fall then.
func NewEstimate(left int) Estimate { return Estimate{toursOf(left)} }

func toursOf(left int) int64 {
	if left > mostFactorial {
		return math.MaxInt64
	}
	n := int64(1)
	for i := int64(2); i <= int64(left); i++ {
		n *= i
	}
	return n
}

// Left is how many full tours are left.
func (e *Estimate) Left() int64 { return e.left }

// Full notes that a full tour was made.
func (e *Estimate) Full() { e.CutOff(0) }

// CutOff notes that a partial tour with so many cities left is not developed further.
func (e *Estimate) CutOff(left int) {
	if e.left < math.MaxInt64 {
		e.left = max(0, e.left-toursOf(left))
	}
}

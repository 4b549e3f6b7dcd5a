package balance

// Class is what a node is by its index (section 3.4.1). A high index is much
// power to spare, so the overloaded nodes are those with the least.
type Class uint8

// The classes. Aside is a node that has nothing to give and less to spare than every node that
// has, or a node that is left alone.
const (
	Aside Class = iota
	Overloaded
	Normal
	Underloaded
)

// String is the word for a class.
func (c Class) String() string {
	return [...]string{"aside", "overloaded", "normal", "underloaded"}[c]
}

// rounds bounds K-means, which ends long before: in one dimension each round but
// the last takes some point over a border.
const rounds = 1000

// classifyValues puts values into three classes by K-means, seeded with minimum, mean
// and maximum. Centres stay in order, and a class that is empty keeps its
// centre. A value midway belongs to Normal. Equal values are all Normal.
func classifyValues(values []float64, into []Class) {
	if len(values) == 0 {
		return
	}
	low, high, sum := values[0], values[0], 0.0
	for _, v := range values {
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	centre := [...]float64{Overloaded: low, Normal: sum / float64(len(values)), Underloaded: high}
	for range rounds {
		moved := false
		var total [len(centre)]float64
		var number [len(centre)]int
		for i, v := range values {
			class := Normal
			switch mid := absolute(v - centre[Normal]); {
			case v-centre[Overloaded] < mid:
				class = Overloaded
			case centre[Underloaded]-v < mid:
				class = Underloaded
			}
			moved = moved || into[i] != class
			into[i] = class
			total[class] += v
			number[class]++
		}
		if !moved {
			return
		}
		for class := Overloaded; class <= Underloaded; class++ {
			if number[class] > 0 {
				centre[class] = total[class] / float64(number[class])
			}
		}
	}
}

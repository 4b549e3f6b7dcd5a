package scgs

// ring is a queue that grows and never shrinks: its length is a power of two.
type ring[T any] struct {
	slots []T
	head  int32
	n     int32
}

func (r *ring[T]) at(i int32) *T { return &r.slots[int(r.head+i)&(len(r.slots)-1)] }

func (r *ring[T]) front() *T { return r.at(0) }

func (r *ring[T]) back() *T { return r.at(r.n - 1) }

// push makes room for one more and returns it.
func (r *ring[T]) push() *T {
	if int(r.n) == len(r.slots) {
		r.grow()
	}
	r.n++
	return r.back()
}

func (r *ring[T]) pop() {
	r.head = (r.head + 1) & int32(len(r.slots)-1)
	r.n--
}

func (r *ring[T]) grow() {
	slots := make([]T, max(2, 2*len(r.slots)))
	for i := range r.n {
		slots[i] = *r.at(i)
	}
	r.slots, r.head = slots, 0
}

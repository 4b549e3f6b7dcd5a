// Package work spreads tasks over the members of a group, and tells when all of them are done.
//
// # A space
//
// The synchronizer of the group has a section work in its configuration. Each member opens the space
// and says which functions it can run:
//
//	s, err := work.Open(ctx, member, work.Func("square", func(ctx context.Context, n int) (int, error) { return n * n, nil }))
//
// Whoever has work puts tasks, and reads what they have come to:
//
//	for i := range 100 {
//		err := s.Put(ctx, "square", i)
//	}
//	for r, err := range work.Results[int](ctx, s, "square") {
//		sum += r.Value
//	}
//
// The other members call [Space.Serve] or [Space.Wait]. Their free slots ask for tasks by the strategy
// of the section, and run them.
//
// # Tasks that split
//
// A bag is a task that can be split: an interval, the stack of a search, a list. Its function works on
// the bag and calls [Yield] often, which costs some nanoseconds. There the bag gives away a part when
// another member has nothing to do, and there it is saved.
//
//	func search(ctx context.Context, b *Stack, found *int64) error {
//		for b.Len() > 0 {
//			b.Visit(1000, found)
//			if err := work.Yield(ctx); err != nil {
//				return err
//			}
//		}
//		return nil
//	}
//
//	s, err := work.Open(ctx, member, work.Bag("search", search, func(a, b int64) int64 { return a + b }))
//	err = s.Put(ctx, "search", root)
//	total, err := work.Total[int64](ctx, s, "search")
//
// # Tasks in an order
//
// A task with the option [After] runs once the tasks are done that it names, with all parts of bags. If one
// of these fails, it fails without a run.
//
// # Calls
//
// A member with a [Server] serves calls of others. A call is no task: the answer goes to the caller, and nobody keeps it. The
// configuration says which server gets a call, and in which order a server runs them.
//
//	s, err := work.Open(ctx, member, work.Server("compare", compare))
//	c := work.Client[Pair, float64](s, "compare")
//	p := c.Go(ctx, Pair{x, y})
//	r, err := p.Wait(ctx)
//
// # Objects that move
//
// An object is state that one member has at a time: a partition, a shard, a strip of a matrix. It serves messages one by
// one, from any member and from other objects, and moves between members as tasks do.
//
//	type Part struct{ Hits int }
//
//	s, err := work.Open(ctx, member,
//		work.Object("part", func(ctx context.Context, first int) (*Part, error) { return &Part{first}, nil }),
//		work.On("part", "access", func(ctx context.Context, p *Part, n int) error { p.Hits += n; return nil }))
//	for i := range 100 {
//		err = s.Create(ctx, "part", i, 0)
//	}
//	err = s.Send(ctx, 17, "access", 1)
//	err = s.Wait(ctx)
//
// An object is saved after some messages, and the save is the commit: the state, the messages that it has served
// and what its functions have put and sent count together. [Near], [At], [Pin] and [Space.Move] say where it may be, and
// [Fence] keeps a process that has lost an object out of a store of the program's own.
//
// # Loops over rows
//
// A loop divides rows among the members by their measured speeds, iteration after iteration. All members run the same
// body. One of them, the home, keeps the partition and the results.
//
//	l := work.Loop(s, "rows", total, readRows) // The home gives the option work.Home() as well.
//	for it, err := range l.Iterations(ctx) {
//		if err != nil {
//			return err
//		}
//		it.Carry(&net) // From the home to all.
//		grad := new(Grad)
//		for i := range it.Mine() {
//			grad.Add(part(net, i))
//		}
//		sum, err := work.Reduce(ctx, it, grad, add)
//		if err != nil {
//			return err
//		}
//		net = step(net, sum)
//	}
//
// A member that joins gets rows in the next iteration. A member that drains gives its rows back between two of them.
// The rows of a member that is lost are redone by the others. Each row counts once in each iteration.
//
// # What counts
//
// The member that puts a task keeps its account. A task runs at least once, and is recorded once: its
// result is delivered once, and the tasks that its function puts are put once, with the record. A
// function that has an effect outside may have it twice, so it must bear repetition.
//
// # The end
//
// A phase ends at one instant at which every member of the group has told that it has nothing to do
// and that its program waits. The synchronizer proves that on one global state, so no task can be on
// its way at that instant. [Space.Wait], [Total] and [Results] return then, and a new phase begins.
// A member that has set a state and never opens the space keeps the phase from ending.
//
// # Losses
//
// With store: memory the tasks of a process die with it. The other members learn how many
// ([LostError]), once: a program that waits again continues without them. So do the objects that it has created.
// A member that dies while it runs tasks of others loses nothing: their accounts put them again, from where
// they were last saved.
//
// Everything here may be called from any goroutine, but for what says otherwise.
package work

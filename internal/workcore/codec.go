package workcore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The first byte of each encoded frame is the form of its layout. A frame with a task that has After or Part has the form of tasks
// that wait. A frame about objects has the form of objects, a frame of a loop the form of loops, a frame of a member that takes no
// work the form of withdrawals, an order to move an object and its answer the form of moves, and every other frame the first form.
const (
	formFirst   = 1
	formWaits   = 2
	formObjects = 3
	formLoops   = 4
	formAway    = 5
	formMoves   = 6
	formData    = 7 // A task reads data.
	formFuncs   = 8 // A member tells which functions it can run.
	formLast    = formFuncs
)

// MaxFrame is how many bytes an encoded frame has at most that fits into one message.
const MaxFrame = 62 << 10

// The parts of a frame, as the second byte says.
const (
	partDemand = iota + 1
	partParcel
	partStep
	partVerdict
	partHolds
	partOffer
	partPost
	partPosted
	partLoop
	partMoveOrder
	partMoveAnswer
)

// Append appends the encoded frame to dst. The frame must have passed [Frame.Check]: what a member
// sends has.
func (f *Frame) Append(dst []byte) []byte {
	form := f.form()
	c := coder{buf: append(dst, form, f.partOf()), writing: true, form: form}
	c.frame(f)
	return c.buf
}

// Reader reads encoded frames one after the other. It keeps the memory of a frame for the next one, and the texts
// that many frames have: names of members and functions. The zero Reader is ready.
type Reader struct {
	frame   Frame
	demand  Demand
	parcel  Parcel
	step    Step
	verdict Verdict
	holds   Holds
	post    Post
	posted  Posted
	loop    LoopFrame
	order   MoveOrder
	answer  MoveAnswer
	names   map[string]string
}

// maxNames is how many names a [Reader] keeps.
const maxNames = 1024

// Read reads an encoded frame. It keeps none of data, and allocates no more than a few times its size. What it
// returns has passed [Frame.Check], and counts until the next call; texts and bytes of tasks and records last.
func (r *Reader) Read(data []byte) (*Frame, error) {
	if len(data) < 2 || len(data) > MaxWhole {
		return nil, fmt.Errorf("frame: it has %d bytes: 2 to %d are allowed", len(data), MaxWhole)
	}
	if data[0] < formFirst || data[0] > formLast {
		return nil, fmt.Errorf("frame: it has the form %d, and this program reads %d to %d: let all members of the space run the same version", data[0], formFirst, formLast)
	}
	f := &r.frame
	*f = Frame{}
	switch data[1] {
	case partDemand, partOffer:
		r.demand = Demand{Offer: data[1] == partOffer}
		f.Demand = &r.demand
	case partParcel:
		r.parcel = Parcel{Leases: emptied(r.parcel.Leases)}
		f.Parcel = &r.parcel
	case partStep:
		r.step = Step{Record: Record{Children: emptied(r.step.Record.Children)}, Keys: emptied(r.step.Keys)}
		f.Step = &r.step
	case partVerdict:
		r.verdict = Verdict{}
		f.Verdict = &r.verdict
	case partHolds:
		r.holds = Holds{List: emptied(r.holds.List)}
		f.Holds = &r.holds
	case partPost:
		r.post = Post{}
		f.Post = &r.post
	case partPosted:
		r.posted = Posted{}
		f.Posted = &r.posted
	case partLoop:
		r.loop = LoopFrame{}
		f.Loop = &r.loop
	case partMoveOrder:
		r.order = MoveOrder{}
		f.MoveOrder = &r.order
	case partMoveAnswer:
		r.answer = MoveAnswer{}
		f.MoveAnswer = &r.answer
	default:
		return nil, fmt.Errorf("frame: there is no part %d", data[1])
	}
	if r.names == nil {
		r.names = map[string]string{}
	}
	c := coder{buf: data[2:], form: data[0], names: r.names}
	c.frame(f)
	if c.err == nil && len(c.buf) > 0 {
		c.err = fmt.Errorf("%d bytes are left over", len(c.buf))
	}
	if c.err != nil {
		return nil, fmt.Errorf("frame: %w", c.err)
	}
	return f, f.Check()
}

// emptied is a list without its items, for other ones.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// form is the first form that has all of the frame.
func (f *Frame) form() byte {
	of := func(t Task) bool { return t.For != "" || t.Object != nil }
	reads := func(t Task) bool { return len(t.Reads) > 0 }
	switch {
	case f.Parcel != nil && slices.ContainsFunc(f.Parcel.Leases, func(p Parted) bool { return reads(p.Lease.Task) }),
		f.Step != nil && slices.ContainsFunc(f.Step.Record.Children, reads):
		return formData
	case f.MoveOrder != nil, f.MoveAnswer != nil:
		return formMoves
	case f.Holds != nil && f.Holds.Funcs != nil:
		return formFuncs
	case f.Holds != nil && f.Holds.Away:
		return formAway
	case f.Loop != nil:
		return formLoops
	case f.Post != nil, f.Posted != nil, f.Demand != nil && len(f.Demand.Has) > 0, f.Holds != nil && f.Holds.Objects > 0,
		f.Parcel != nil && slices.ContainsFunc(f.Parcel.Leases, func(p Parted) bool { return of(p.Lease.Task) }),
		f.Step != nil && (f.Step.Record.Served > 0 || f.Step.Record.Pinned || slices.ContainsFunc(f.Step.Record.Children, of)):
		return formObjects
	}
	if f.Step != nil && slices.ContainsFunc(f.Step.Record.Children, func(t Task) bool { return t.Part || len(t.After) > 0 }) {
		return formWaits
	}
	return formFirst
}

func (f *Frame) partOf() byte {
	switch {
	case f.Demand != nil && f.Demand.Offer:
		return partOffer
	case f.Demand != nil:
		return partDemand
	case f.Parcel != nil:
		return partParcel
	case f.Step != nil:
		return partStep
	case f.Verdict != nil:
		return partVerdict
	case f.Post != nil:
		return partPost
	case f.Posted != nil:
		return partPosted
	case f.Loop != nil:
		return partLoop
	case f.MoveOrder != nil:
		return partMoveOrder
	case f.MoveAnswer != nil:
		return partMoveAnswer
	default:
		return partHolds
	}
}

// coder writes or reads a frame field by field, so that the layout is written down once. After the
// first fault it does nothing more.
type coder struct {
	buf     []byte // all that was written, or the rest to read
	writing bool
	form    byte
	names   map[string]string // that were read before
	err     error
}

var errShort = errors.New("the end is missing")

func (c *coder) frame(f *Frame) {
	c.codePeer(&f.From)
	c.codePeer(&f.To)
	c.codeUint(&f.Phase)
	switch {
	case f.Demand != nil:
		c.codeUint(&f.Demand.Number)
		if c.codeInt(&f.Demand.Tasks); c.form >= formObjects {
			list(c, &f.Demand.Has, c.codeText)
		}
	case f.Parcel != nil:
		if c.codeUint(&f.Parcel.Demand); c.form >= formObjects {
			c.codeUint(&f.Parcel.Push)
		}
		list(c, &f.Parcel.Leases, func(p *Parted) {
			c.codePeer(&p.Account)
			c.codeTask(&p.Lease.Task)
			c.codeUint(&p.Lease.On)
			c.codeFloat(&p.Lease.Key)
			if c.codeInt(&p.Lease.Try); c.form >= formObjects {
				list(c, &p.Lease.Inbox, c.message)
				c.codeBool(&p.Lease.Pinned)
			}
		})
	case f.Step != nil:
		c.codeStep(f.Step)
	case f.Verdict != nil:
		v := f.Verdict
		c.codeText(&v.ID)
		c.codeUint(&v.On)
		c.codeBool(&v.Failed)
		c.codeInt(&v.Try)
		codeSmall(c, &v.Outcome)
		c.codeUint(&v.Seq)
	case f.Holds != nil:
		h := f.Holds
		c.codeUint(&h.Number)
		c.codeUint(&h.Settled)
		c.codeFloat(&h.Load)
		if c.codeInt(&h.Open); c.form >= formObjects {
			c.codeInt(&h.Objects)
		}
		if c.form >= formAway {
			c.codeBool(&h.Away)
		}
		list(c, &h.List, func(l *Held) {
			c.codeText(&l.ID)
			c.codeUint(&l.On)
			c.codeBool(&l.Runs)
			c.codeBool(&l.Passed)
		})
		if c.form >= formFuncs {
			if list(c, &h.Funcs, c.codeUint); h.Funcs == nil {
				h.Funcs = []uint64{}
			}
		}
	case f.Post != nil:
		c.codePost(f.Post)
	case f.Posted != nil:
		c.codeText(&f.Posted.For)
		c.codeText(&f.Posted.Account)
		c.codeUint(&f.Posted.Number)
		c.codeBool(&f.Posted.Gone)
	case f.Loop != nil:
		c.loop(f.Loop)
	case f.MoveOrder != nil:
		c.codeText(&f.MoveOrder.ID)
		c.codeText(&f.MoveOrder.To)
	case f.MoveAnswer != nil:
		c.codeText(&f.MoveAnswer.ID)
		c.codeText(&f.MoveAnswer.Refusal)
	}
}

func (c *coder) loop(f *LoopFrame) {
	c.name(&f.Name)
	c.codeBool(&f.Home)
	c.codeUint(&f.Version)
	c.codeUint(&f.Heard)
	c.codeBool(&f.Asks)
	c.codeInt(&f.Number)
	list(c, &f.Spans, func(s *Span) {
		c.codeInt(&s.Low)
		c.codeInt(&s.High)
	})
	c.codeBool(&f.Close)
	c.codeBool(&f.Ended)
	c.codeText(&f.Error)
	c.codeInt(&f.Total)
	c.codeInt(&f.Done)
	c.codeBool(&f.Gives)
	c.codeBool(&f.Out)
	c.codeFloat(&f.Speed)
	c.codeBool(&f.Has)
	c.name(&f.Result)
	c.bytes(&f.Value)
}

func (c *coder) codePost(p *Post) {
	c.codeText(&p.For)
	c.codeText(&p.Account)
	list(c, &p.Messages, c.message)
}

func (c *coder) message(m *Message) {
	c.codeText(&m.ID)
	c.name(&m.Func)
	c.bytes(&m.Body)
	c.codeUint(&m.Number)
}

func (c *coder) object(t *Task) {
	c.codeText(&t.For)
	is := t.Object != nil
	if c.codeBool(&is); !is || c.err != nil {
		return
	}
	if !c.writing {
		t.Object = &Object{}
	}
	list(c, &t.Object.Near, c.codeText)
	list(c, &t.Object.Pull, c.codeFloat)
	list(c, &t.Object.At, c.codeText)
	c.codeText(&t.Object.Group)
}

func (c *coder) codeStep(s *Step) {
	r := &s.Record
	c.codeText(&r.ID)
	c.codeUint(&r.On)
	codeSmall(c, &r.Fate)
	c.bytes(&r.Result)
	c.bytes(&r.Rest)
	list(c, &r.Children, c.codeTask)
	c.codeText(&r.Error)
	list(c, &s.Keys, c.codeFloat)
	if c.codeInt(&s.Try); c.form >= formObjects {
		c.codeInt(&r.Served)
		c.codeBool(&r.Pinned)
	}
	if c.codeUint(&s.Demand); s.Demand > 0 {
		c.codePeer(&s.For)
	}
}

func (c *coder) codeTask(t *Task) {
	c.codeText(&t.ID)
	c.name(&t.Func)
	c.bytes(&t.Body)
	if c.codeFloat(&t.Weight); c.form < formWaits {
		return
	}
	n := uint64(len(t.After))
	if c.codeUint(&n); n > MaxAfter { // Before anything is allocated for it.
		c.keepFault(fmt.Errorf("a task runs after %d tasks, and at most %d are allowed", n, MaxAfter))
		return
	}
	if !c.writing && n > 0 && c.err == nil {
		t.After = make([]string, n)
	}
	for i := range t.After {
		c.codeText(&t.After[i])
	}
	if c.codeBool(&t.Part); c.form >= formObjects {
		c.object(t)
	}
	if c.form >= formData {
		list(c, &t.Reads, c.codeText)
	}
}

func (c *coder) codePeer(p *Peer) {
	c.name(&p.Name)
	c.codeUint(&p.Life)
}

func (c *coder) codeUint(v *uint64) {
	if c.writing {
		c.buf = binary.AppendUvarint(c.buf, *v)
		return
	}
	got, n := binary.Uvarint(c.buf)
	if n <= 0 {
		c.keepFault(errShort)
		return
	}
	*v, c.buf = got, c.buf[n:]
}

// codeInt is a number of at least 0 that fits 31 bits.
func (c *coder) codeInt(v *int) {
	wide := uint64(max(0, *v))
	if c.codeUint(&wide); wide > math.MaxInt32 {
		c.keepFault(fmt.Errorf("%d is too large a number", wide))
		return
	}
	*v = int(wide)
}

func codeSmall[T ~uint8](c *coder, v *T) {
	wide := uint64(*v)
	if c.codeUint(&wide); wide > math.MaxUint8 {
		c.keepFault(fmt.Errorf("%d is too large a number", wide))
		return
	}
	*v = T(wide)
}

func (c *coder) codeBool(v *bool) {
	var wide uint64
	if *v {
		wide = 1
	}
	if c.codeUint(&wide); wide > 1 {
		c.keepFault(fmt.Errorf("%d is neither 0 nor 1", wide))
		return
	}
	*v = wide == 1
}

func (c *coder) codeFloat(v *float64) {
	switch {
	case c.writing:
		c.buf = binary.BigEndian.AppendUint64(c.buf, math.Float64bits(*v))
	case len(c.buf) < 8:
		c.keepFault(errShort)
	default:
		*v, c.buf = math.Float64frombits(binary.BigEndian.Uint64(c.buf)), c.buf[8:]
	}
}

func (c *coder) codeText(v *string) {
	if c.writing {
		c.buf = append(binary.AppendUvarint(c.buf, uint64(len(*v))), *v...)
		return
	}
	*v = string(c.next())
}

// name is a text that many frames have.
func (c *coder) name(v *string) {
	if c.writing {
		c.codeText(v)
		return
	}
	b := c.next()
	if known, ok := c.names[string(b)]; ok {
		*v = known
		return
	}
	if *v = string(b); len(c.names) < maxNames && len(b) <= MaxName {
		c.names[*v] = *v
	}
}

func (c *coder) bytes(v *[]byte) {
	if c.writing {
		c.buf = append(binary.AppendUvarint(c.buf, uint64(len(*v))), *v...)
		return
	}
	if b := c.next(); len(b) > 0 {
		*v = append([]byte(nil), b...)
	}
}

// next reads a length and as many bytes.
func (c *coder) next() []byte {
	var n uint64
	if c.codeUint(&n); c.err != nil || n > uint64(len(c.buf)) {
		c.keepFault(errShort)
		return nil
	}
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

// keepFault keeps the first fault.
func (c *coder) keepFault(err error) {
	if c.err == nil {
		c.err, c.buf = err, nil
	}
}

// list codes a list. A length that the bytes which are left cannot hold is refused before anything is
// allocated: each item takes a byte at least.
func list[T any](c *coder, items *[]T, item func(*T)) {
	n := uint64(len(*items))
	if c.codeUint(&n); !c.writing {
		if n > uint64(len(c.buf)) {
			c.keepFault(errShort)
			return
		}
		*items = (*items)[:0]
		for i := uint64(0); i < n && c.err == nil; i++ {
			*items = append(*items, *new(T))
			item(&(*items)[i])
		}
		return
	}
	for i := range *items {
		item(&(*items)[i])
	}
}

package wire

import (
	"encoding/binary"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// codeCount codes the length of a list. Reading refuses a length that exceeds the
// limit, or that the bytes left cannot hold at least bytes an item, before
// anybody allocates for it.
func (c *coder) codeCount(field string, n, limit, least int) int {
	if c.err != nil {
		return 0
	}
	if c.writing {
		if n > limit {
			c.keepFault(field, tooMany(n, limit))
			return 0
		}
		c.buf = msgp.AppendArrayHeader(c.buf, uint32(n))
		return n
	}
	got, rest, err := msgp.ReadArrayHeaderBytes(c.buf)
	switch {
	case err != nil:
		c.failRead(field, "a list", err)
	case uint64(got) > uint64(limit):
		c.keepFault(field, tooMany(int(got), limit))
	case int(got)*least > len(rest):
		c.keepFault(field, "the frame ends inside it")
	default:
		c.buf = rest
		return int(got)
	}
	return 0
}

// codeEach codes the items 0 to n-1 and says in which of them the first fault is.
func (c *coder) codeEach(field string, n int, item func(i int)) {
	for i := range n {
		if item(i); c.err != nil {
			c.noteWithin(field, i)
			return
		}
	}
}

func (c *coder) noteWithin(field string, i int) {
	c.err.Field = field + "[" + strconv.Itoa(i) + "]." + c.err.Field
}

// list codes a list that must go into one frame whole. Reading makes a new one.
func list[T any](c *coder, field string, items *[]T, limit, least int, item func(*T)) {
	n := c.codeCount(field, len(*items), limit, least)
	if !c.writing && n > 0 {
		*items = make([]T, n)
	}
	c.codeEach(field, n, func(i int) { item(&(*items)[i]) })
}

// some codes a list whose rest may go into further frames. It returns how many
// items this frame holds.
func some[T any](c *coder, field string, items *[]T, limit, least int, item func(*T)) int {
	if c.writing {
		return c.fitItems(field, len(*items), limit, 0, func(i int) { item(&(*items)[i]) })
	}
	list(c, field, items, limit, least, item)
	return len(*items)
}

// fitItems writes the items of a list until the frame or the list's limit is full,
// leaving reserve bytes free, and returns how many it wrote. Their number comes
// first, so its place is kept and filled in afterwards.
func (c *coder) fitItems(field string, n, limit, reserve int, item func(i int)) int {
	if c.err != nil {
		return 0
	}
	const array16 = 0xdc
	head := len(c.buf)
	c.buf = append(c.buf, array16, 0, 0)
	n = min(n, limit)
	for i := range n {
		before := len(c.buf)
		if item(i); c.err != nil {
			c.noteWithin(field, i)
			return 0
		}
		if c.size()+reserve > MaxFrameBytes {
			c.buf, n = c.buf[:before], i
			break
		}
	}
	binary.BigEndian.PutUint16(c.buf[head+1:], uint16(n))
	return n
}

func tooMany(n, limit int) string {
	return strconv.Itoa(n) + " of them, at most " + strconv.Itoa(limit) + " are allowed"
}

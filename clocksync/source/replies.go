package source

import (
	"bytes"
	"context"
	"math"
	"net"
	"time"
)

// Of an NTP packet (RFC 5905, section 7.3).
const (
	ntpLength   = 48
	ntpOrigin   = 24 // in a reply, the transmit time of its request
	ntpTransmit = 40
	ntpServer3  = 3<<3 | 4 // version 3, mode server
	ntpServer4  = 4<<3 | 4
)

// replies passes only the reply to the last packet written. It skips every other packet, as
// long as there is time: a late packet, or a foreign one, must not take the place of the
// answer. The socket is connected, so packets of other addresses do not get here.
type replies struct {
	net.Conn

	ctx     context.Context
	check   func(reply, request []byte) error // why it is none
	stop    func() bool
	request []byte
	skipped error // what was wrong with the last packet skipped
}

func dialUDP(ctx context.Context, remote string, timeout time.Duration) (net.Conn, error) {
	resolving, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var dialer net.Dialer
	return dialer.DialContext(resolving, "udp", remote)
}

// SetDeadline also lets the end of the context interrupt what waits.
func (c *replies) SetDeadline(t time.Time) error {
	err := c.Conn.SetDeadline(t)
	c.stop = context.AfterFunc(c.ctx, func() { _ = c.Conn.SetDeadline(time.Unix(1, 0)) })
	return err
}

func (c *replies) Write(request []byte) (int, error) {
	c.request = bytes.Clone(request)
	return c.Conn.Write(request)
}

func (c *replies) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil {
			return n, err
		}
		if c.skipped = c.check(b[:n], c.request); c.skipped == nil {
			return n, nil
		}
	}
}

func (c *replies) Close() error {
	if c.stop != nil {
		c.stop()
	}
	return c.Conn.Close()
}

// checkReply refuses what beevik/ntp would misread or give up on.
func checkReply(b, request []byte) error {
	if len(b) != ntpLength {
		return refuseServer(Malformed, "reply of %d bytes, want %d", len(b), ntpLength)
	}
	if kind := b[0] & 0x3f; kind != ntpServer3 && kind != ntpServer4 {
		return refuseServer(Malformed, "version %d, mode %d: no reply of an NTP server", kind>>3, kind&7)
	}
	if !bytes.Equal(b[ntpOrigin:ntpOrigin+8], request[ntpTransmit:]) {
		return refuseServer(Mismatch, "the reply is to another request")
	}
	// beevik/ntp 1.6.0 shifts by these exponents: large ones give no duration,
	// and one of -128 panics.
	if poll := int8(b[2]); poll == math.MinInt8 {
		return refuseServer(Malformed, "poll interval of 2^%d s", poll)
	}
	if precision := int8(b[3]); precision > 0 || precision == math.MinInt8 {
		return refuseServer(Malformed, "precision of 2^%d s", precision)
	}
	return nil
}

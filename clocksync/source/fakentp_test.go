package source

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// away is the reference time minus this machine's readings in tests, whatever
// time it is: fake servers show it, and bounds must hold it.
const away = clocksync.Instant(1_600_000_000e9)

// fakeNTP is a server on loopback whose clock is the readings, and away.
type fakeNTP struct {
	clock  func() clocksync.Instant // readings, and away, if nil
	ahead  time.Duration            // by which it lies
	in     time.Duration            // delay of requests
	out    time.Duration            // delay of replies
	held   time.Duration            // in the server, and told
	mutate func(reply []byte) []byte

	conn  *net.UDPConn
	asked atomic.Int64
	busy  sync.WaitGroup
}

func (f *fakeNTP) start(tb testing.TB) (address string) {
	tb.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	f.conn = conn
	f.busy.Go(f.serve)
	tb.Cleanup(func() { _ = conn.Close(); f.busy.Wait() })
	return conn.LocalAddr().String()
}

func (f *fakeNTP) serve() {
	request := make([]byte, 512)
	for {
		n, from, err := f.conn.ReadFromUDP(request)
		if err != nil {
			return
		}
		f.asked.Add(1)
		if n != ntpLength {
			continue
		}
		testwait.Elapse(f.in)
		reply := f.reply([ntpLength]byte(request[:n]))
		if f.mutate != nil {
			reply = f.mutate(reply)
		}
		testwait.Elapse(f.out)
		if reply != nil {
			_, _ = f.conn.WriteToUDP(reply, from)
		}
	}
}

func (f *fakeNTP) now() clocksync.Instant {
	if f.clock != nil {
		return f.clock().Add(f.ahead)
	}
	return (readRaw() + away).Add(f.ahead)
}

// reply is what a server of stratum 1 and a precision of 2^-20 s answers.
func (f *fakeNTP) reply(request [ntpLength]byte) []byte {
	arrived := f.now()
	testwait.Elapse(f.held)
	b := make([]byte, ntpLength)
	b[0], b[1], b[2], b[3] = ntpServer4, 1, 6, 0xec
	binary.BigEndian.PutUint32(b[4:], 2<<16/1000) // root delay of 2 ms
	binary.BigEndian.PutUint32(b[8:], 3<<16/1000) // root dispersion of 3 ms
	copy(b[12:], "TEST")
	putNTP(b[16:], arrived.Add(-time.Second))
	copy(b[ntpOrigin:], request[ntpTransmit:])
	putNTP(b[32:], arrived)
	putNTP(b[ntpTransmit:], f.now())
	return b
}

// putNTP writes seconds since 1900 and their fraction, rounded down.
func putNTP(b []byte, t clocksync.Instant) {
	const since1900 = 2_208_988_800
	sec, nsec := uint64(t)/1e9, uint64(t)%1e9
	binary.BigEndian.PutUint32(b, uint32(sec+since1900))
	binary.BigEndian.PutUint32(b[4:], uint32(nsec<<32/1e9))
}

package source

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source/ntp"
)

func ntpOf(tb testing.TB, timeout time.Duration, servers ...string) *ntpSource {
	tb.Helper()
	s, err := NTP(ntp.Query, NTPOptions{Servers: servers, Timeout: timeout, Every: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	return s.(*ntpSource)
}

// patient is a timeout that no healthy exchange on loopback reaches.
const patient = time.Minute

func TestNTPHoldsTheTruth(t *testing.T) {
	for name, fake := range map[string]*fakeNTP{
		"honest":      {},
		"slow in":     {in: 30 * time.Millisecond},
		"slow out":    {out: 30 * time.Millisecond},
		"slow server": {held: 30 * time.Millisecond},
		"ahead":       {ahead: 7 * time.Second},
		"behind":      {ahead: -7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := fake.start(t)
			before := readRaw()
			samples, err := ntpOf(t, patient, address).Sample(t.Context())
			after := readRaw()
			if err != nil || len(samples) != 1 {
				t.Fatalf("%v, %v", samples, err)
			}
			s := samples[0]
			if truth := away.Add(fake.ahead); !s.Offset.Contains(truth) {
				t.Errorf("%v does not hold %v: ends %v, %v", s.Offset, truth, s.Offset.Earliest-truth, s.Offset.Latest-truth)
			}
			if s.From < before || s.At < s.From || s.At > after || s.Source != "ntp" || s.Server != address || s.Timeline != clocksync.UTC {
				t.Errorf("%+v, asked from %v to %v", s, before, after)
			}
			// The distance, both ends of the round trip, the precision, and the drift of all
			// that time.
			if s.Parts.RootDelay.Round(time.Millisecond) != 2*time.Millisecond || s.Parts.RootDispersion.Round(time.Millisecond) != 3*time.Millisecond {
				t.Errorf("%+v", s.Parts)
			}
			least := s.Parts.RoundTrip + s.Parts.RootDelay + 2*s.Parts.RootDispersion
			if w := s.Offset.Width(); w < least || w > least+10*time.Microsecond+after.Sub(before)/1000 {
				t.Errorf("%v wide, of %+v", w, s.Parts)
			}
			if s.Parts.RoundTrip < fake.in+fake.out || fake.held > 0 && s.Parts.RoundTrip > after.Sub(before)-fake.held {
				t.Errorf("round trip %v", s.Parts.RoundTrip)
			}
		})
	}
}

// broken are servers whose answers are refused; the late one answers when it is over.
func broken(over <-chan struct{}) map[string]struct {
	mutate func([]byte) []byte
	reason Reason
	text   string
} {
	type row = struct {
		mutate func([]byte) []byte
		reason Reason
		text   string
	}
	set := func(at int, value ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], value); return b }
	}
	return map[string]row{
		"silent":          {func([]byte) []byte { return nil }, Unanswered, "no answer within 10ms"},
		"late":            {func(b []byte) []byte { <-over; return b }, Unanswered, "no answer within 10ms"},
		"empty":           {func([]byte) []byte { return []byte{} }, Malformed, "reply of 0 bytes, want 48"},
		"truncated":       {func(b []byte) []byte { return b[:47] }, Malformed, "reply of 47 bytes, want 48"},
		"oversized":       {func(b []byte) []byte { return append(b, 0) }, Malformed, "reply of 49 bytes, want 48"},
		"huge":            {func([]byte) []byte { return make([]byte, 20_000) }, Malformed, "bytes, want 48"},
		"random":          {func([]byte) []byte { return []byte(strings.Repeat("?", ntpLength)) }, Malformed, "version 7, mode 7: no reply of an NTP server"},
		"echo":            {set(0, 4<<3|3), Malformed, "version 4, mode 3: no reply of an NTP server"},
		"other origin":    {set(ntpOrigin, 1, 2, 3, 4, 5, 6, 7, 8), Mismatch, "the reply is to another request"},
		"no time":         {set(ntpTransmit, make([]byte, 8)...), Malformed, "transmit time"},
		"backwards":       {set(32, 0xff, 0xff), Implausible, "ticked backwards"},
		"held too long":   {func(b []byte) []byte { putNTP(b[ntpTransmit:], away.Add(time.Hour)+readRaw()); return b }, Implausible, "the server says it held the request for"},
		"unsynchronized":  {set(0, 3<<6|ntpServer4), Unsynchronized, "leap second"},
		"stratum 16":      {set(1, 16), Unsynchronized, "stratum"},
		"far away":        {set(8, 0x40), Unsynchronized, "dispersion"},
		"stale":           {func(b []byte) []byte { putNTP(b[16:], away.Add(-1000*time.Hour)); return b }, Stale, "not fresh"},
		"from the future": {func(b []byte) []byte { putNTP(b[16:], away.Add(1000*time.Hour)+readRaw()); return b }, Implausible, "invalid time"},
		"precision":       {set(3, 35), Malformed, "precision of 2^35 s"},
		"precise":         {set(3, 0x80), Malformed, "precision of 2^-128 s"},
		"polled":          {set(2, 0x80), Malformed, "poll interval of 2^-128 s"},
		"kiss":            {func(b []byte) []byte { b[1] = 0; copy(b[12:], "RATE"); return b }, Denied, `kiss code "RATE" instead of a time`},
		"not yet":         {func(b []byte) []byte { b[1] = 0; copy(b[12:], "INIT"); return b }, Unsynchronized, `kiss code "INIT" instead of a time`},
	}
}

func TestNTPRefuses(t *testing.T) {
	over := make(chan struct{})
	for name, c := range broken(over) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeNTP{mutate: c.mutate}
			address := fake.start(t)
			s := ntpOf(t, patient, address)
			if c.reason == Unanswered {
				s = ntpOf(t, shortest, address)
			} else {
				s.dial = func(ctx context.Context, remote string, timeout time.Duration) (net.Conn, error) {
					conn, err := dialUDP(ctx, remote, timeout)
					return &hasty{conn, 1}, err
				}
			}
			samples, err := s.Sample(t.Context())
			if name == "late" {
				close(over)
			}
			got := refusals("ntp", err)
			if len(samples) != 0 || len(got) != 1 {
				t.Fatalf("%v, %v", samples, err)
			}
			if got[0].Reason != c.reason || got[0].Server != address || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v, want %s: %s", got[0].Reason, err, c.reason, c.text)
			}
			if !strings.HasPrefix(err.Error(), "source: ntp "+address+": ") {
				t.Errorf("%v names neither the source nor the server", err)
			}
		})
	}
}

// TestNTPSkipsWhatIsNoAnswer sends rubbish before the answer: it costs nothing.
func TestNTPSkipsWhatIsNoAnswer(t *testing.T) {
	fake := &fakeNTP{}
	var rubbish [][]byte
	for _, b := range broken(nil) {
		if b.reason == Malformed && !strings.Contains(b.text, "2^") && !strings.Contains(b.text, "transmit") {
			rubbish = append(rubbish, b.mutate(make([]byte, ntpLength)))
		}
	}
	inner, err := net.Dial("udp", fake.start(t))
	if err != nil {
		t.Fatal(err)
	}
	s := ntpOf(t, patient, "ignored")
	s.dial = func(context.Context, string, time.Duration) (net.Conn, error) {
		return &noisy{inner, rubbish}, nil
	}
	samples, err := s.Sample(t.Context())
	if err != nil || len(samples) != 1 || !samples[0].Offset.Contains(away) {
		t.Errorf("%v, %v", samples, err)
	}
}

// noisy receives other things first.
type noisy struct {
	net.Conn

	rubbish [][]byte
}

func (n *noisy) Read(b []byte) (int, error) {
	if len(n.rubbish) == 0 {
		return n.Conn.Read(b)
	}
	first := n.rubbish[0]
	n.rubbish = n.rubbish[1:]
	return copy(b, first), nil
}

// TestNTPIgnoresOtherAddresses answers from another socket than was asked.
func TestNTPIgnoresOtherAddresses(t *testing.T) {
	asked, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	go func() {
		request := make([]byte, ntpLength)
		if _, from, err := asked.ReadFromUDP(request); err == nil {
			other, err := net.DialUDP("udp", nil, from)
			if err == nil {
				defer other.Close()
				_, _ = other.Write((&fakeNTP{}).reply([ntpLength]byte(request)))
			}
		}
	}()
	samples, err := ntpOf(t, 150*time.Millisecond, asked.LocalAddr().String()).Sample(t.Context())
	if got := refusals("ntp", err); len(samples) != 0 || len(got) != 1 || got[0].Reason != Unanswered {
		t.Errorf("%v, %v", samples, err)
	}
}

func TestNTPRefusesWhatWasDisturbed(t *testing.T) {
	for name, c := range map[string]struct {
		wall, boot time.Duration
		text       string
	}{
		"stepped on":   {wall: 3 * time.Second, text: "the wall clock was set by 3s meanwhile"},
		"stepped back": {wall: -3 * time.Second, text: "the wall clock was set by -3s meanwhile"},
		"asleep":       {wall: 3 * time.Second, boot: 3 * time.Second, text: "the machine slept meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			host := newHost(readRaw)
			fake := &fakeNTP{mutate: func(b []byte) []byte { host.step(c.wall, c.boot); return b }}
			s := ntpOf(t, patient, fake.start(t))
			s.clocks = host.readings()
			samples, err := s.Sample(t.Context())
			got := refusals("ntp", err)
			if len(samples) != 0 || len(got) != 1 || got[0].Reason != Disturbed || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, %v, want %s", samples, err, c.text)
			}
		})
	}
}

// TestNTPAsksSeveralAtOnce has one server that holds up nobody.
func TestNTPAsksSeveralAtOnce(t *testing.T) {
	honest, liar := &fakeNTP{}, &fakeNTP{ahead: time.Hour}
	silent := &fakeNTP{mutate: func([]byte) []byte { return nil }}
	addresses := []string{honest.start(t), silent.start(t), liar.start(t)}
	samples, err := ntpOf(t, time.Second, addresses...).Sample(t.Context())
	if got := refusals("ntp", err); len(got) != 1 || got[0].Server != addresses[1] || got[0].Reason != Unanswered {
		t.Errorf("%v", err)
	}
	if len(samples) != 2 || samples[0].Server != addresses[0] || samples[1].Server != addresses[2] {
		t.Fatalf("%+v", samples)
	}
	if !samples[0].Offset.Contains(away) || !samples[1].Offset.Contains(away.Add(time.Hour)) {
		t.Errorf("%+v", samples)
	}
}

// TestNTPBacksOff counts how often a server is asked while time passes.
func TestNTPBacksOff(t *testing.T) {
	kiss := func(code string) func([]byte) []byte {
		return func(b []byte) []byte { b[1] = 0; copy(b[12:], code); return b }
	}
	for name, c := range map[string]struct {
		mutate func([]byte) []byte
		want   []int // at which polls, one a second, it is asked
	}{
		"healthy": {nil, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		"rate":    {kiss("RATE"), []int{0, 2, 6, 14}},
		"deny":    {kiss("DENY"), []int{0}},
		"restr":   {kiss("RSTR"), []int{0}},
		"broken":  {func(b []byte) []byte { b[1] = 16; return b }, []int{0, 1, 2, 3, 5, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			host := newHost(func() clocksync.Instant { return 0 })
			fake := &fakeNTP{mutate: c.mutate, clock: host.serve}
			s := ntpOf(t, patient, fake.start(t))
			s.clocks = host.readings()
			var got []int
			for poll := range 16 {
				before := fake.asked.Load()
				_, _ = s.Sample(t.Context())
				if fake.asked.Load() > before {
					got = append(got, poll)
				}
				host.pass(time.Second)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("asked at %v, want %v", got, c.want)
			}
		})
	}
}

func TestNTPComesBackAfterAPause(t *testing.T) {
	host := newHost(func() clocksync.Instant { return 0 })
	var denied atomic.Bool
	denied.Store(true)
	fake := &fakeNTP{clock: host.serve, mutate: func(b []byte) []byte {
		if denied.Load() {
			b[1] = 0
			copy(b[12:], "DENY")
		}
		return b
	}}
	s := ntpOf(t, patient, fake.start(t))
	s.clocks = host.readings()
	if _, err := s.Sample(t.Context()); err == nil {
		t.Fatal("a denial gives a sample")
	}
	denied.Store(false)
	host.pass(banned)
	if _, err := s.Sample(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNTPStartsWithABurst(t *testing.T) {
	s, err := NTP(ntp.Query, NTPOptions{Servers: []string{"127.0.0.1:9"}, Timeout: shortest})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for poll := range burst {
		if got := s.Every(); got != 2*time.Second {
			t.Fatalf("poll %d: every %v", poll, got)
		}
		_, _ = s.Sample(ctx)
	}
	if got := s.Every(); got != 64*time.Second {
		t.Errorf("every %v", got)
	}
}

func TestNTPEndsWithTheContext(t *testing.T) {
	fake := &fakeNTP{mutate: func([]byte) []byte { return nil }}
	s := ntpOf(t, time.Hour, fake.start(t))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if samples, err := s.Sample(ctx); len(samples) != 0 || err == nil {
		t.Errorf("%v, %v", samples, err)
	}
}

func TestNTPRefusesOptions(t *testing.T) {
	const noQuery = "source: ntp: the function that asks servers is nil: pass ntp.Query of the package clocksync/source/ntp"
	if _, err := NTP(nil, NTPOptions{Servers: []string{"a"}}); err == nil || err.Error() != noQuery {
		t.Errorf("%v, want %s", err, noQuery)
	}
	for want, o := range map[string]NTPOptions{
		"source: ntp: no servers: name at least one, three to outlast a lying one": {},
		"source: ntp: 65 servers: at most 64":                                      {Servers: make([]string, 65)},
		"source: ntp: server a is named twice, and would count twice":              {Servers: []string{"a", "b", "a"}},
		"source: ntp: polling every 1ms: it must be at least 10ms":                 {Servers: []string{"a"}, Every: time.Millisecond},
		"source: ntp: timeout -1ns: it must be at least 10ms":                      {Servers: []string{"a"}, Timeout: -1},
		"source: ntp: drift -1 ppm: it must be above 0 and at most 100000":         {Servers: []string{"a"}, Drift: -1},
	} {
		if _, err := NTP(ntp.Query, o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestNTPNamesWhatCannotBeReached(t *testing.T) {
	closed, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	address := closed.LocalAddr().String()
	_ = closed.Close()
	_, err = ntpOf(t, patient, address).Sample(t.Context())
	if got := refusals("ntp", err); len(got) != 1 || got[0].Reason != Unavailable || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

// answer is a connection whose peer answers with given bytes.
type answer struct {
	net.Conn // nil: nothing else is called

	reply  []byte
	origin bool // the reply is to the request
}

func (a *answer) SetDeadline(time.Time) error { return nil }
func (a *answer) Close() error                { return nil }

func (a *answer) Write(b []byte) (int, error) {
	if a.origin && len(a.reply) >= ntpOrigin+8 {
		copy(a.reply[ntpOrigin:], b[ntpTransmit:])
	}
	return len(b), nil
}

func (a *answer) Read(b []byte) (int, error) {
	if a.reply == nil {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, a.reply)
	a.reply = nil
	return n, nil
}

// FuzzNTPReply has any bytes as an answer: it is refused, or the bound is no
// narrower than the answer itself says.
func FuzzNTPReply(f *testing.F) {
	fake := &fakeNTP{}
	honest := fake.reply([ntpLength]byte{})
	f.Add(honest, true)
	f.Add(honest, false)
	for _, b := range broken(nil) {
		if b.reason != Unanswered {
			f.Add(b.mutate(slices.Clone(honest)), true)
		}
	}
	f.Fuzz(func(t *testing.T, reply []byte, origin bool) {
		mono := clocksync.Instant(1e12)
		s := ntpOf(t, patient, "fuzz")
		s.clocks = readings{
			mono: func() clocksync.Instant { mono += 1000; return mono },
			wall: func() int64 { return int64(away + mono) },
			boot: func() clocksync.Instant { return mono },
			raw:  func() clocksync.Instant { return mono },
		}
		s.dial = func(context.Context, string, time.Duration) (net.Conn, error) {
			return &answer{reply: slices.Clone(reply), origin: origin}, nil
		}
		samples, err := s.Sample(t.Context())
		if len(samples) == 0 {
			if got := refusals("ntp", err); len(got) != 1 || got[0].Reason == "" {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		if !origin || len(reply) != ntpLength || reply[1] == 0 || reply[1] > 15 || reply[0]>>6 == 3 {
			t.Fatalf("taken: %x", reply)
		}
		got := samples[0]
		delay, dispersion := binary.BigEndian.Uint32(reply[4:]), binary.BigEndian.Uint32(reply[8:])
		least := time.Duration((float64(delay) + 2*float64(dispersion)) / (1 << 16) * 1e9)
		if !got.Offset.Valid() || !got.Offset.Bounded() || got.Offset.Width() < least-time.Microsecond || got.From > got.At {
			t.Fatalf("%x gives %+v", reply, got)
		}
	})
}

func TestRefusalsAreTakenApart(t *testing.T) {
	err := errors.Join(refusalOf("a", "1", refuseServer(Stale, "old")), errors.New("other"), errors.Join(refusalOf("b", "", refuseServer(Busy, "x"))))
	got := refusals("s", err)
	if len(got) != 3 || got[0].Reason != Stale || got[1].Reason != Failed || got[1].Source != "s" || got[2].Reason != Busy {
		t.Errorf("%v", got)
	}
	if len(refusals("s", nil)) != 0 {
		t.Error("no error is refused")
	}
}
